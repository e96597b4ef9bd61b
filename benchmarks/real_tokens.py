"""Tokens that are no padding a second, rows of 512 of the default corpus: ours packed, KerasHub's padded.

    python benchmarks/real_tokens.py --output DIR

The model of benchmarks/pretraining_step.py on 4 rows of 512 with 77 predictions. The same corpus and vocabulary, cut
into sentence pairs as google-research/bert does; KerasHub has no packing, so it gets a pair a row, padded. (The rows of
its own examples, a line of text each, would hold fewer tokens.)
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import pretraining_step
from in_turn import OURS, Case, Setting, Target, main

ROWS, LENGTH, STEPS = 4, 512, 8
HOME = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(tempfile.gettempdir()) / "keras_bert_impl_real_tokens"


def prepare(packed):
    """The rows, made once; returns their directory."""
    directory = DATA / ("packed" if packed else "padded")
    command = [sys.executable, str(HOME / "training" / "prepare_data.py"), "--output", str(directory)]
    command += ["--sequence_length", str(LENGTH), *(["--packed"] if packed else [])]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return directory


def batches(packed):
    """STEPS batches, (inputs, labels), in memory."""
    sys.path.insert(0, str(HOME / "training"))
    from pretrain import PretrainConfig
    from pretraining_data import PretrainingData

    data = PretrainingData(PretrainConfig(data=str(prepare(packed)), output="", batch_size=ROWS))
    return list(data.batches("train").take(STEPS).as_numpy_iterator())


def our_step(setting):
    import keras

    from keras_bert_impl import BertEncoder, BertPretrainer
    from keras_bert_impl.optimization import BertAdamW

    encoder = BertEncoder(pretraining_step.our_config(), packed=True, dtype=keras.dtype_policies.get(setting.precision))
    model = BertPretrainer(encoder)
    model.compile(optimizer=BertAdamW(1e-4), jit_compile=setting.compiled)
    return model.train_on_batch


def keras_hub_step(setting):
    model = pretraining_step.keras_hub_model(setting.precision, setting.compiled)
    names = ("token_ids", "segment_ids", "padding_mask", "mask_positions")

    def step(inputs, labels):
        inputs = {name: inputs[name] for name in names}
        model.train_on_batch(inputs, labels["mask_ids"], sample_weight=labels["mask_weights"])

    return step


def measure(setting):
    """Real tokens a second, by the median step and the mean tokens of a batch."""
    ours = setting.side == OURS
    step = (our_step if ours else keras_hub_step)(setting)
    taken = batches(packed=ours)
    for inputs, labels in taken[:3]:
        step(inputs, labels)
    seconds = []
    for inputs, labels in taken:
        start = time.perf_counter()
        step(inputs, labels)
        seconds.append(time.perf_counter() - start)
    return statistics.mean(inputs["padding_mask"].sum() for inputs, _ in taken) / statistics.median(seconds)


def case():
    settings = [
        Setting(side, backend, precision, compiled, "packed" if side == OURS else "padded")
        for backend, compiled in (("tensorflow", False), ("tensorflow", True), ("jax", True), ("torch", False))
        for precision in ("float32", "mixed_bfloat16")
        if (compiled or precision != "float32")
        and (backend, compiled, precision) != ("tensorflow", True, "mixed_bfloat16")
        for side in (OURS, "KerasHub")
    ]
    title = f"Real tokens in training, rows of {LENGTH}, L{pretraining_step.LAYERS} H{pretraining_step.WIDTH}"
    return Case(title, "tokens", settings, [Target("KerasHub", 2.5)], measure)


if __name__ == "__main__":
    main(case(), __file__)
