"""Tokens per second, padding not counted, on rows of 512 of the default corpus: ours packed, KerasHub's padded.

    python benchmarks/real_tokens.py --output DIR

The model of benchmarks/pretraining_step.py on 4 rows of 512 tokens with 77 predictions. Both sides use the same corpus
and vocabulary, cut into sentence pairs as google-research/bert does. KerasHub has no packing, so it gets one pair per
row, padded. (The rows of its own examples, one line of text each, would hold fewer tokens.)
"""

import itertools
import pathlib
import statistics
import tempfile

import keras_hub_models
import pretraining_step
from in_turn import OURS, Case, Setting, Target, main, median_seconds
from prepared import prepared

ROWS, LENGTH, STEPS = 4, 512, 8
DATA = pathlib.Path(tempfile.gettempdir()) / "keras_bert_impl_real_tokens"


def batches(packed):
    """STEPS batches, (inputs, labels), in memory."""
    data = prepared(DATA / ("packed" if packed else "padded"), LENGTH, packed, ROWS)
    return list(itertools.islice(data.arrays("train"), STEPS))


def our_step(setting):
    config = pretraining_step.our_config()
    model = pretraining_step.our_model(config, setting.precision, setting.compiled, packed=True, next_sentence=True)
    return model.train_on_batch


def keras_hub_step(setting):
    model = keras_hub_models.masked_lm(pretraining_step.our_config(), setting.precision, setting.compiled)
    names = ("token_ids", "segment_ids", "padding_mask", "mask_positions")

    def step(inputs, labels):
        inputs = {name: inputs[name] for name in names}
        model.train_on_batch(inputs, labels["mask_ids"], sample_weight=labels["mask_weights"])

    return step


def measure(setting):
    """Real tokens per second, from the median time of a step and the mean number of tokens in a batch."""
    ours = setting.side == OURS
    step = (our_step if ours else keras_hub_step)(setting)
    taken = batches(packed=ours)
    in_turn = itertools.cycle(taken)
    seconds = median_seconds(lambda: step(*next(in_turn)), warm=3, repeats=STEPS)
    return statistics.mean(inputs["padding_mask"].sum() for inputs, _ in taken) / seconds


# Compiled or not, whichever is faster; to save time, TensorFlow is not run in float32 without XLA or bfloat16 with it.
WAYS = [
    ("tensorflow", "mixed_bfloat16", False),
    ("tensorflow", "float32", True),
    ("jax", "float32", True),
    ("jax", "mixed_bfloat16", True),
    ("torch", "mixed_bfloat16", False),
]


def case():
    settings = [
        Setting(side, *way, "packed" if side == OURS else "padded") for way in WAYS for side in (OURS, "KerasHub")
    ]
    title = f"Real tokens in training, rows of {LENGTH}, L{pretraining_step.LAYERS} H{pretraining_step.WIDTH}"
    return Case(title, "tokens", settings, [Target("KerasHub", 2.5)], measure)


if __name__ == "__main__":
    main(case(), __file__)
