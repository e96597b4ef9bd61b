"""Mixed precision keeps the gradients: sums over the tokens of a batch are not made in bfloat16, which ends at 256."""

import dataclasses

import keras
import numpy as np
import pytest
from tiers import every_backend, full_but, full_on

from keras_bert_impl import Pretrainer
from keras_bert_impl.configurations.known_families import config_from_name
from keras_bert_impl.encoders import build_encoder

pytestmark = every_backend

ROWS, LENGTH, WORDS, FREQUENT = 256, 32, 50, 7
SHAPE = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "max_length": 64}
SHAPE |= {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0, "initializer_range": 0.3, "embedding_size": 16}
QUICK = ("bert_tiny", "roberta_small", "deberta_base")
OTHERS = ("albert_base", "electra_small", "deberta_v3_xsmall", "modernbert_tiny", "longformer_tiny")


def changes_of(size, policy):
    """How a step of SGD changes each weight. A third of the 8,192 tokens are one word."""
    keras.utils.set_random_seed(0)
    config = config_from_name(size, vocabulary_size=WORDS, pad_id=0)
    names = {field.name for field in dataclasses.fields(config)}
    config = dataclasses.replace(config, **{name: value for name, value in SHAPE.items() if name in names})
    model = Pretrainer(build_encoder(config, dtype=keras.dtype_policies.get(policy)), next_sentence=False)
    model.compile(keras.optimizers.SGD(1.0), jit_compile=keras.backend.backend() == "jax")
    random = np.random.default_rng(0)
    ids = random.integers(5, WORDS, (ROWS, LENGTH)).astype("int32")
    ids[random.random(ids.shape) < 0.3] = FREQUENT
    places = np.tile(np.array([3, 9, 20], "int32"), (ROWS, 1))
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids), "mask_positions": places}
    labels = {"mask_ids": np.full_like(places, 9), "mask_weights": np.ones(places.shape, "float32")}
    before = [keras.ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights]
    model.train_on_batch(inputs, labels)
    pairs = zip(model.trainable_weights, before, strict=True)
    return {weight.path: keras.ops.convert_to_numpy(weight) - value for weight, value in pairs}


@full_on("jax")
@pytest.mark.parametrize("size", [*full_but(QUICK, QUICK[0], on=("tensorflow",)), *full_but(OTHERS)])
def test_each_weight_gets_the_gradient_that_it_gets_in_float32(size):
    expected, found = (changes_of(size, policy) for policy in ("float32", "mixed_bfloat16"))
    largest = max(np.linalg.norm(change) for change in expected.values())
    for path, change in expected.items():
        if np.linalg.norm(change) > 1e-4 * largest:  # the bias of the keys has a gradient of 0
            assert np.linalg.norm(found[path] - change) < 0.05 * np.linalg.norm(change), path
