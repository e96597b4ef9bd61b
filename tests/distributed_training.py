"""Trains a small Pretrainer on batches with very uneven masks; it is a program, since devices are set up only once.

    KERAS_BACKEND=jax python tests/distributed_training.py '[{"distribution": "data_parallel"}, {}]' found.json

Writes for each training the loss of each step, the metrics of an evaluation, the norm of the last gradients, and how
many replicas there were.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

if keras.backend.backend() != "tensorflow":
    tf.config.set_visible_devices([], "GPU")

from keras_bert_impl import BertConfig, BertEncoder, EuroBertConfig, EuroBertEncoder, Pretrainer, distribution
from keras_bert_impl.optimization import BertAdamW

STEPS, ROWS, LENGTH, PREDICTIONS, VOCABULARY = 16, 8, 16, 4, 64
KERNELS = ("attention/query_key_value/kernel", "pooler/kernel")  # the second of BERT alone


def batches():
    """The first rows of a batch have four masked tokens each, the last ones none or one."""
    random = np.random.default_rng(0)
    counts = np.minimum([4, 4, 4, 3, 1, 0, 0, 1], PREDICTIONS)
    for _ in range(STEPS):
        token_ids = random.integers(5, VOCABULARY, (ROWS, LENGTH))
        inputs = {
            "token_ids": token_ids,
            "segment_ids": np.zeros_like(token_ids),
            "padding_mask": np.ones_like(token_ids),
            "mask_positions": np.tile(np.arange(1, PREDICTIONS + 1), (ROWS, 1)),
        }
        labels = {
            "mask_ids": token_ids[:, 1 : PREDICTIONS + 1],
            "mask_weights": (np.arange(PREDICTIONS) < counts[:, None]).astype("float32"),
            "next_sentence_labels": token_ids[:, 5] % 2,
        }
        labels = {name: array if array.dtype == "float32" else array.astype("int32") for name, array in labels.items()}
        yield {name: array.astype("int32") for name, array in inputs.items()}, labels


def share_of_state(optimizer):
    """The largest share of a matrix of moments that the first device holds; None where the backend does not tell."""
    values = [variable.value for variable in optimizer.variables if len(variable.shape) > 1]
    if keras.backend.backend() != "jax":
        return None
    return max(value.addressable_shards[0].data.size / value.size for value in values)


def pretrainer(key_value_heads):
    """A BERT, or a EuroBERT with this number of heads of keys."""
    shape = {"hidden_size": 16, "num_layers": 1, "num_heads": 4, "intermediate_size": 32, "max_length": LENGTH}
    if key_value_heads:
        encoder = EuroBertEncoder(EuroBertConfig(VOCABULARY, num_key_value_heads=key_value_heads, pad_id=0, **shape))
        return Pretrainer(encoder, next_sentence=False)
    return Pretrainer(BertEncoder(BertConfig(VOCABULARY, hidden_dropout_rate=0.0, attention_dropout_rate=0.0, **shape)))


def train(options):
    heads = options.pop("key_value_heads", None)
    with distribution.distributed(distribution.Distribution(**options)):
        keras.utils.set_random_seed(1)
        model = pretrainer(heads)
        model.compile(optimizer=BertAdamW(4e-3), jit_compile=keras.backend.backend() == "jax")
        stacked = tf.nest.map_structure(lambda *parts: np.stack(parts), *batches())
        number, parts = distribution.part_of_batch()
        rows = slice(number * ROWS // parts, (number + 1) * ROWS // parts)
        stacked = tf.nest.map_structure(lambda array: array[:, rows], stacked)
        if heads:
            stacked[1].pop("next_sentence_labels")
        dataset = distribution.shared(tf.data.Dataset.from_tensor_slices(stacked))
        history = model.fit(dataset, epochs=STEPS, steps_per_epoch=1, verbose=0)
        for variable in model.optimizer.variables:  # as a saved state is restored
            variable.assign(distribution.to_numpy(variable))
        return {
            "losses": history.history["loss"],
            "masked_lm_losses": history.history["masked_lm_loss"],
            "evaluation": model.evaluate(dataset, verbose=0, return_dict=True),
            "gradient_norm": float(keras.ops.convert_to_numpy(model.optimizer.gradient_norm)),
            "replicas": distribution.num_replicas(),
            "is_chief": distribution.is_chief(),
            "share_of_state": share_of_state(model.optimizer),
            "kernel": np.concatenate(
                [
                    distribution.to_numpy(weight).ravel()
                    for weight in model.trainable_weights
                    if weight.path.endswith(KERNELS)
                ]
            ).tolist(),
        }


def main():
    found = [train(options) for options in json.loads(sys.argv[1])]
    if found[0]["is_chief"]:
        pathlib.Path(sys.argv[2]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
