"""mixed_float16: scaling the loss keeps gradients that are too small for float16."""

import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without
from every_model import KINDS, MODELS
from tiers import every_backend, full_but, full_on

import keras_bert_impl as kbi
from keras_bert_impl.optimization import BertAdamW

LABELS = np.array([0, 2], "int32")


@pytest.fixture
def encoder(small_config):
    return kbi.BertEncoder(small_config, dtype="mixed_float16")


def functional(encoder):
    """A user-defined functional model."""
    return keras.Model(encoder.input, keras.layers.Dense(3, dtype="float32")(encoder.output["pooled_output"]))


def tiny_loss(labels, logits):
    """Gradients of a kernel of about 1e-10, which are 0 in float16; times the scale, 2**15, they are not."""
    return 1e-6 * keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def step_of_block(model, batch):
    """How far a step of gradient descent with a tiny loss moves a kernel of the first block."""
    model.compile(optimizer=keras.optimizers.SGD(1e7), loss=tiny_loss, **QUICK_STEPS)
    kernel = next(weight for weight in model.weights if weight.path == "block_0/output/kernel")
    before = keras.ops.convert_to_numpy(kernel).copy()
    model.train_on_batch(without(batch, "mask_positions"), LABELS)
    return np.abs(keras.ops.convert_to_numpy(kernel) - before).max()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "FeatureTagger"])  # which trains only float32
def test_every_model_trains_with_a_scaled_loss(kind, encoder):
    model = MODELS[kind](encoder)
    if getattr(model, "optimizer", None) is not None:  # it is compiled by default
        assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    model.compile(optimizer=BertAdamW(1e-3), loss=tiny_loss)
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)


def test_gradients_too_small_for_float16_arrive(encoder, small_batch):
    assert step_of_block(kbi.TextClassifier(encoder, 3), small_batch) > 1e-4


def test_a_model_of_a_user_s_own_that_loses_gradients_says_so_with_the_remedy(encoder, small_batch):
    model = functional(encoder)
    weights = model.get_weights()
    with pytest.warns(UserWarning, match=r"Set model\.dtype_policy = 'mixed_float16' before model\.compile\(\)"):
        assert step_of_block(model, small_batch) == 0
    model.set_weights(weights)  # the last layer, in float32, was moved so far that every gradient may be 0 now
    model.dtype_policy = "mixed_float16"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert step_of_block(model, small_batch) > 1e-4


@every_backend
@full_on("jax")
@pytest.mark.parametrize("dtype", full_but(["float16", "mixed_float16"], "mixed_float16", on=("tensorflow",)))
def test_an_encoder_of_float16_predicts_as_one_of_float32(small_config, small_batch, dtype):
    """Without dropout, for which XLA has no fused attention of float16 on a CPU."""
    wide, narrow = kbi.BertEncoder(small_config), kbi.BertEncoder(small_config, dtype=dtype)
    narrow.set_weights(wide.get_weights())
    inputs = {name: small_batch[name] for name in wide.input}
    expected, found = (keras.ops.convert_to_numpy(one(inputs)["sequence_output"]) for one in (wide, narrow))
    np.testing.assert_allclose(found.astype("float32"), expected, atol=0.02)
