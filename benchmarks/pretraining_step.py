"""A masked-LM training step of 4 layers, width 512: ours, KerasHub's and Hugging Face's.

    python benchmarks/pretraining_step.py --output DIR
    python benchmarks/pretraining_step.py --output DIR --only jax

The same 16 rows of 128 tokens with 20 predictions, AdamW with decay and clipping, dropout 0.1.
"""

import statistics
import time

import numpy as np

from in_turn import OURS, Case, Setting, Target, main

VOCABULARY, LAYERS, WIDTH, HEADS, INNER = 30522, 4, 512, 8, 2048
ROWS, LENGTH, PREDICTIONS = 16, 128, 20


def batch():
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(1000, VOCABULARY, (ROWS, LENGTH)).astype("int32"),
        "segment_ids": np.zeros((ROWS, LENGTH), "int32"),
        "padding_mask": np.ones((ROWS, LENGTH), "int32"),
        "mask_positions": np.sort(random.permuted(np.tile(np.arange(LENGTH), (ROWS, 1)), axis=1)[:, :PREDICTIONS]),
        "mask_ids": random.integers(1000, VOCABULARY, (ROWS, PREDICTIONS)).astype("int32"),
        "mask_weights": np.ones((ROWS, PREDICTIONS), "float32"),
    }


def our_config():
    from keras_bert_impl import BertConfig

    return BertConfig(
        VOCABULARY, hidden_size=WIDTH, num_layers=LAYERS, num_heads=HEADS, intermediate_size=INNER,
        hidden_dropout_rate=0.1, attention_dropout_rate=0.1,
    )  # fmt: skip


def our_step(precision, jit):
    import keras

    from keras_bert_impl import BertEncoder, BertPretrainer
    from keras_bert_impl.optimization import BertAdamW

    model = BertPretrainer(BertEncoder(our_config(), dtype=keras.dtype_policies.get(precision)), next_sentence=False)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=jit)
    arrays = batch()
    labels = {name: arrays.pop(name) for name in ("mask_ids", "mask_weights")}
    arrays["mask_positions"] = arrays["mask_positions"].astype("int32")
    return lambda: model.train_on_batch(arrays, labels)


def keras_hub_model(precision, jit):
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        VOCABULARY, num_layers=LAYERS, num_heads=HEADS, hidden_dim=WIDTH, intermediate_dim=INNER, dropout=0.1,
        max_sequence_length=512, dtype=precision,
    )  # fmt: skip
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    # As its own compile() has it, with decay and clipping as BERT is trained.
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit,
    )
    return model


def keras_hub_step(precision, jit):
    model = keras_hub_model(precision, jit)
    arrays = batch()
    labels, weights = arrays.pop("mask_ids"), arrays.pop("mask_weights")
    arrays["mask_positions"] = arrays["mask_positions"].astype("int32")
    return lambda: model.train_on_batch(arrays, labels, sample_weight=weights)


def transformers_step(precision, jit):
    import torch
    import transformers

    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=INNER,
    )  # fmt: skip
    net = transformers.BertForMaskedLM(config).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01)
    run = torch.compile(net) if jit else net
    arrays = batch()
    labels = np.full((ROWS, LENGTH), -100)
    np.put_along_axis(labels, arrays["mask_positions"], arrays["mask_ids"], axis=1)
    inputs = {"input_ids": arrays["token_ids"], "attention_mask": arrays["padding_mask"], "labels": labels}
    inputs = {name: torch.from_numpy(np.asarray(array, "int64")) for name, array in inputs.items()}

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = run(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


STEPS = {OURS: our_step, "KerasHub": keras_hub_step, "transformers": transformers_step}


def measure(setting, warm=4, steps=12):
    """Sequences a second, of the median step."""
    step = STEPS[setting.side](setting.precision, setting.compiled)
    for _ in range(warm):
        step()
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return ROWS / statistics.median(seconds)


def case():
    from keras_bert_impl.flops import training_flops

    # JAX always compiles; on torch "compiled" is torch.compile, which Keras' trainer does not survive.
    ways = [("tensorflow", False), ("tensorflow", True), ("jax", True), ("torch", False)]
    settings = [
        Setting(side, backend, precision, compiled)
        for backend, compiled in ways
        for precision in ("float32", "mixed_bfloat16")
        for side in (OURS, "KerasHub")
    ]
    settings += [
        Setting("transformers", "torch", precision, compiled)
        for precision, compiled in (("float32", False), ("bfloat16", False), ("bfloat16", True))
    ]
    targets = [
        Target("KerasHub", 1.5),
        *(Target("KerasHub", 1.2, {"backend": name}, {"backend": name}) for name in ("tensorflow", "jax", "torch")),
        Target("transformers", 2.5, {"compiled": True}),
        Target("transformers", 2.5, {"compiled": False}),
    ]
    return Case(
        f"Masked-LM training step, L{LAYERS} H{WIDTH}, {ROWS} x {LENGTH}, {PREDICTIONS} predictions",
        "sequences",
        settings,
        targets,
        measure,
        lambda setting: training_flops(our_config(), 1, LENGTH, PREDICTIONS),
    )


if __name__ == "__main__":
    main(case(), __file__)
