"""What others have published, measured on this GPU: the figures of `accelerator.py --public`."""

import time
import typing

JAX, TORCH, PEER = "jax", "torch", "transformers compiled by torch"
NVIDIA, KERAS = "NVIDIA, A100-80", "keras.io, A100-40"


class Figure(typing.NamedTuple):
    """What is measured, in sequences/s; rows and tokens are those of the publication."""

    what: str
    model: str  # a published size, "modernbert" or "deberta"
    do: str
    rows: int
    length: int
    sides: tuple  # of JAX, TORCH, PEER
    published: str = ""
    goal: float | None = None  # sequences/s on an H100
    ahead: float | None = None  # times the peer's, in the same run
    precision: str = "mixed_bfloat16"


FIGURES = (
    Figure("BERT-large pre-training", "bert_large", "pretrain", 128, 128, (JAX,), f"{NVIDIA}: 580; TF2 486", 1840),
    Figure("BERT-large pre-training", "bert_large", "pretrain", 32, 512, (JAX,), f"{NVIDIA}, TF2: 96.5", 306),
    Figure("BERT-base pre-training", "bert_base", "pretrain", 256, 128, (TORCH, PEER, JAX), ahead=1.3),
    Figure("ModernBERT-base pre-training", "modernbert", "pretrain", 32, 1024, (TORCH, PEER), ahead=1.2),
    Figure("ModernBERT-base pre-training", "modernbert", "pretrain", 4, 8192, (TORCH, PEER), ahead=1.2),
    Figure("EuroBERT-210m pre-training", "eurobert_210m", "pretrain", 16, 1024, (TORCH, PEER), ahead=1.2),
    Figure("DeBERTa-v3 of 4 layers, pre-training", "deberta", "pretrain", 64, 128, (TORCH, PEER), ahead=1.2),
    Figure("DeBERTa-v3 of 4 layers, pre-training", "deberta", "pretrain", 16, 512, (TORCH, PEER), ahead=1.2),
    Figure("BERT-base classifier, fit", "bert_base", "fit", 32, 512, (JAX, TORCH),
           f"{KERAS}: JAX 222 ms, TF 214, torch 809; transformers compiled 202", 32 / 0.064),
    Figure("BERT-base classifier, predict", "bert_base", "predict", 256, 512, (JAX, TORCH),
           f"{KERAS}: JAX 419 ms, TF 466, torch 1,866; transformers compiled 733", 256 / 0.132),
    Figure("BERT-base classifier, predict", "bert_base", "predict", 128, 128, (JAX, TORCH),
           "TensorRT's forward pass, A100-40: 7,930", 12_500, precision="mixed_float16"),
    Figure("BERT-large SQuAD step", "bert_large", "squad", 32, 384, (JAX, TORCH), f"{NVIDIA}: 110 to 134", 350),
)  # fmt: skip


def measure(figure, side, is_small, steps):
    """{sequences per second, seconds of a step, of the first steps, and GiB} of a figure on one side.

    `is_small`: with two layers of width 32 and two rows of at most 32 tokens, to try the script on a CPU.
    """
    from keras_bert_impl.distribution import hardware

    if is_small:
        figure = figure._replace(rows=2, length=min(figure.length, 32))
    first, seconds = (of_transformers if side == PEER else ours)(figure, is_small, steps)
    memory = hardware.peak_memory()
    return {
        **{"sequences_per_second": figure.rows / seconds, "seconds_per_step": seconds},
        **{"seconds_of_first_steps": first, "memory_gib": memory and memory / 2**30},
    }


def encoder_of(figure, is_small):
    import keras

    import keras_bert_impl as kbi
    from deberta_step import config_of
    from keras_bert_impl.encoders import build_encoder, config_from_name

    shape = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64} if is_small else {}
    dtype, shape = keras.dtype_policies.get(figure.precision), {"max_length": max(figure.length, 512), **shape}
    if figure.model == "modernbert":
        return kbi.ModernBertEncoder(kbi.ModernBertConfig(50368, **{"pad_id": 0, **shape}), dtype=dtype)
    if figure.model == "deberta":
        base = {"layers": 4, "width": 768, "heads": 12, "inner": 3072, "vocabulary": 128100}
        small = {"layers": 2, "width": 32, "heads": 2, "inner": 64}
        return kbi.DebertaV2Encoder(config_of(**(small if is_small else base)), dtype=dtype)
    return build_encoder(config_from_name(figure.model, **shape), dtype=dtype)


def batch_of(figure):
    from keras_bert_impl.features import usual_predictions
    from pretraining_step import batch

    return batch(figure.rows, figure.length, usual_predictions(figure.length))


def ours(figure, is_small, steps):
    """(seconds of the first steps, which compile; seconds of a step)."""
    import keras
    import numpy as np

    import keras_bert_impl as kbi
    from accelerator import same_batch, timed, timed_fit
    from keras_bert_impl.kernels.compiled_steps import PLAIN_PREDICTIONS
    from keras_bert_impl.optimization import BertAdamW

    encoder, (inputs, labels) = encoder_of(figure, is_small), batch_of(figure)
    if figure.do == "pretrain":
        model = kbi.Pretrainer(encoder, next_sentence=False)
    else:
        inputs = {name: inputs[name] for name in encoder.input}
        is_squad = figure.do == "squad"
        model = kbi.QuestionAnswerer(encoder) if is_squad else kbi.TextClassifier(encoder, num_classes=2)
        labels = np.arange(figure.rows, dtype="int32") % 2
        if is_squad:
            labels = np.stack([labels + 1, labels + 4], axis=1)  # the first and last token of each answer
    # Keras executes one step at a time on torch; `pretrain` and `finetune` execute these together elsewhere.
    together = steps if figure.do in ("pretrain", "squad") and keras.backend.backend() != TORCH else 1
    model.compile(optimizer=BertAdamW(1e-5), jit_compile=True, steps_per_execution=together)
    if figure.do != "predict":
        return timed_fit(model, (inputs, labels), steps)
    start = time.perf_counter()
    model.predict(same_batch(inputs, PLAIN_PREDICTIONS), verbose=0)
    before = time.perf_counter() - start
    first, seconds = timed(lambda: model.predict(same_batch(inputs, steps), verbose=0), steps)
    return before + first, seconds


def of_transformers(figure, is_small, steps):
    """The same for Hugging Face's masked-LM model, compiled, with the attention that it has by default."""
    import torch
    import transformers

    from accelerator import timed_loop
    from pretraining_step import training_of

    config = encoder_of(figure, is_small).config
    kind = config.class_prefix()
    theirs = getattr(transformers, f"{kind}Config")(**config.to_huggingface())
    net = getattr(transformers, f"{kind}ForMaskedLM")(theirs)
    run = training_of(net, *batch_of(figure), "bfloat16", True, "cuda" if torch.cuda.is_available() else "cpu")

    return timed_loop(run, steps)


def page(found):
    """The lines of `public.txt`, of what has been measured so far."""
    device = found.get("devices", {})
    lines = [f"{device.get('device')}, {', '.join(f'{k} {v}' for k, v in device.get('versions', {}).items())}", ""]
    for number, figure in enumerate(FIGURES):
        lines.append(f"{figure.what}, {figure.rows} x {figure.length}, {figure.precision.removeprefix('mixed_')}")
        if figure.published:
            lines.append(f"  published: {figure.published}")
        rates = {side: found.get(f"{number} {side}", {}) for side in figure.sides}
        lines += [f"  {line_of(side, row)}{verdict(figure, side, rates)}" for side, row in rates.items()]
    return lines


def line_of(side, row):
    if not row or "error" in row:
        return f"{side}: {row.get('error', 'not measured yet')}"
    memory = f", {row['memory_gib']:.1f} GiB" if row["memory_gib"] else ""
    ready = f"ready in {row['seconds_of_first_steps']:.0f} s"
    rate, milliseconds = row["sequences_per_second"], row["seconds_per_step"] * 1000
    return f"{side}: {rate:,.1f} sequences/s, {milliseconds:,.1f} ms, {ready}{memory}"


def verdict(figure, side, rates):
    """What is said of a goal behind a figure of ours."""
    rate, theirs = (rates.get(one, {}).get("sequences_per_second") for one in (side, PEER))
    if rate is None or side == PEER:
        return ""
    if figure.ahead and side == TORCH and theirs:
        return f"; {rate / theirs:.2f} times {PEER} (goal {figure.ahead})"
    return f"; {rate / figure.goal:.2f} of the goal, {figure.goal:,.0f}" if figure.goal else ""
