"""A pre-training step of the published sizes on a GPU or TPU, in bfloat16: ours on JAX and torch, and Hugging Face's.

    python benchmarks/accelerator.py --output DIR
    python benchmarks/accelerator.py --output DIR --only 'jax bert_large'

Needs keras with JAX or torch (transformers for the peer) and no TensorFlow. All sides compute the same: 15 % of the
tokens predicted, AdamW with decay and clipping, no dropout, so that attention is fused (flash attention where the
backend has it; scaled_dot_product_attention under torch.compile in transformers). Shares are relative to the speed of
the chip's own matrix products, measured in the same run. A setting that does not fit into memory is shown as an error.
"""

import pretraining_step
from in_turn import OURS, Case, Setting, Target, main, median_seconds
from keras_bert_impl.features import usual_predictions

# Rows that fit into 80 GB, by size and length.
ROWS = {("bert_base", 128): 256, ("bert_base", 512): 64, ("bert_large", 128): 128, ("bert_large", 512): 32}
STEPS = 20


def variant(size, length):
    return f"{size} {ROWS[size, length]} x {length}"


def shape_of(setting):
    """(size, rows, length) of a setting."""
    size, rows, _, length = setting.variant.split()
    return size, int(rows), int(length)


def config_of(size):
    from keras_bert_impl import BertConfig

    return BertConfig.from_name(size, vocabulary_size=30522, hidden_dropout_rate=0.0, attention_dropout_rate=0.0)


def our_seconds(setting):
    """Seconds per step of `fit`, which does not wait for the device after each step."""
    import keras

    size, rows, length = shape_of(setting)
    one = pretraining_step.batch(rows, length, usual_predictions(length))

    class SameBatch(keras.utils.PyDataset):
        num_batches = STEPS

        def __getitem__(self, index):
            return one

    model = pretraining_step.our_model(config_of(size), setting.precision, setting.compiled)
    return median_seconds(lambda: model.fit(SameBatch(), epochs=1, verbose=0), warm=1, repeats=1) / STEPS


def their_seconds(setting):
    import torch

    size, rows, length = shape_of(setting)
    step = pretraining_step.transformers_training(
        config_of(size),
        *pretraining_step.batch(rows, length, usual_predictions(length)),
        setting.precision,
        setting.compiled,
        "cuda" if torch.cuda.is_available() else "cpu",
    )

    def steps():
        for _ in range(STEPS):
            loss = step()
        return loss.item()  # waits for the device

    return median_seconds(steps, warm=1, repeats=1) / STEPS


def measure(setting):
    """Tokens per second."""
    _, rows, length = shape_of(setting)
    return rows * length / (our_seconds if setting.side == OURS else their_seconds)(setting)


def flops_per_token(setting):
    from keras_bert_impl.callbacks.flops import training_flops

    size, rows, length = shape_of(setting)
    return training_flops(config_of(size), rows, length, usual_predictions(length)) / (rows * length)


def case():
    variants = [variant(size, length) for size, length in ROWS]
    settings, targets = [], []
    for name in variants:
        settings += [
            Setting(OURS, "jax", "mixed_bfloat16", True, name),
            Setting(OURS, "torch", "mixed_bfloat16", False, name),
            Setting("transformers", "torch", "bfloat16", True, name),
        ]
        targets.append(Target("transformers", 1.3, {"variant": name}, {"variant": name}))
    return Case("Pre-training step on an accelerator", "tokens", settings, targets, measure, flops_per_token)


if __name__ == "__main__":
    main(case(), __file__)
