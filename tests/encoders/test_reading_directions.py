"""Encoders that read from left to right, as GPT, or from right to left."""

import dataclasses
import warnings

import keras
import numpy as np
import pytest
from conftest import without
from keras import ops
from reference_models import outputs_of, random_model
from tiers import on

from keras_bert_impl import BertConfig, BertEncoder, MaskedLM, Pretrainer, TextClassifier
from keras_bert_impl.kernels import attention

# (direction, where in a row of seven a token is changed, the places that must not see it)
SIDES = [("left_to_right", 4, slice(0, 4)), ("right_to_left", 2, slice(3, 7))]


def reading(direction, config):
    return dataclasses.replace(config, direction=direction, initializer_range=0.2)


def changed_at(inputs, place):
    ids = inputs["token_ids"].copy()
    ids[0, place] = 5 + (ids[0, place] - 4) % 48
    return {**inputs, "token_ids": ids}


def outputs(encoder, inputs, training=False):
    keras.utils.set_random_seed(3)
    return ops.convert_to_numpy(encoder(inputs, training=training)["sequence_output"])[0]


def packed(inputs):
    """The first row as two sequences of three and four tokens."""
    ids = np.array([[1, 1, 1, 2, 2, 2, 2], [1, 1, 2, 2, 2, 0, 0]], "int32")
    places = np.array([[0, 1, 2, 0, 1, 2, 3], [0, 1, 0, 1, 2, 0, 0]], "int32")
    return {**inputs, "sequence_ids": ids, "position_ids": places}


@pytest.mark.parametrize(("direction", "place", "unseeing"), SIDES)
@pytest.mark.parametrize(("is_packed", "asks_for_attention"), [(False, False), (False, True), (True, False)])
def test_a_token_does_not_change_the_outputs_that_do_not_see_it(
    direction, place, unseeing, is_packed, asks_for_attention, small_config, small_batch
):
    inputs = without(small_batch, "mask_positions")
    inputs = packed(inputs) if is_packed else inputs
    config = reading(direction, small_config)
    encoder = BertEncoder(config, packed=is_packed, return_attention=asks_for_attention)
    before, after = outputs(encoder, inputs), outputs(encoder, changed_at(inputs, place))
    np.testing.assert_array_equal(before[unseeing], after[unseeing])
    assert np.abs(before[place] - after[place]).max() > 1e-3
    assert np.isfinite(before).all()


@pytest.mark.parametrize(("direction", "place", "unseeing"), SIDES)
def test_a_direction_holds_in_training_with_dropout(direction, place, unseeing, small_config, small_batch):
    inputs, encoder = without(small_batch, "mask_positions"), BertEncoder(reading(direction, small_config))
    states = [layer.seed_generator for layer in encoder._flatten_layers() if hasattr(layer, "seed_generator")]

    def trained(inputs):
        for state in states:  # before and after drop the same units
            state.state.assign([7, 0])
        return outputs(encoder, inputs, training=True)

    before, after = trained(inputs), trained(changed_at(inputs, place))
    np.testing.assert_allclose(before[unseeing], after[unseeing], atol=1e-6)
    assert np.abs(before[place] - after[place]).max() > 1e-3


@on("jax")  # a kernel of JAX
def test_the_tpu_kernel_which_knows_no_direction_is_not_used(small_batch):
    """Also of packed rows, whose sequences it does know."""
    config = BertConfig(53, 128, 1, 2, 21, max_length=11, direction="left_to_right", initializer_range=0.2)
    inputs = packed(without(small_batch, "mask_positions"))
    encoder = BertEncoder(config, packed=True)
    expected = encoder.predict_on_batch(inputs)["sequence_output"]
    encoder.predict_function = None
    with attention.placed(attention.Placement("tpu", is_here=False, interpret=True)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = encoder.predict_on_batch(inputs)["sequence_output"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_next_token_logits_equal_those_of_transformers(small_config, small_batch, tmp_path):
    inputs = without(small_batch, "mask_positions")
    model = random_model("BertLMHeadModel", reading("left_to_right", small_config), tmp_path, use_cache=False)
    assert model.config.is_decoder
    theirs = np.asarray(outputs_of(model, inputs)["logits"])
    ours = Pretrainer.from_pretrained(tmp_path, next_sentence=False)
    places = np.tile(np.arange(7, dtype="int32"), (2, 1))
    found = ours.predict_on_batch({**inputs, "mask_positions": places})["masked_lm_logits"]
    tokens = inputs["padding_mask"] == 1
    np.testing.assert_allclose(found[tokens], theirs[tokens], atol=1e-5)


def test_a_checkpoint_keeps_its_direction(small_config, tmp_path):
    BertEncoder(reading("right_to_left", small_config)).save_pretrained(tmp_path)
    assert BertEncoder.from_pretrained(tmp_path).config.direction == "right_to_left"


def test_the_text_vector_of_a_row_that_is_read_from_left_to_right_sees_the_whole_row(small_config, small_batch):
    inputs = without(small_batch, "mask_positions")
    model = TextClassifier(BertEncoder(reading("left_to_right", small_config)), 3)
    before, after = (ops.convert_to_numpy(model(x)) for x in (inputs, changed_at(inputs, 5)))
    assert np.abs(before[0] - after[0]).max() > 1e-4
    np.testing.assert_array_equal(before[1], after[1])


def test_a_model_that_reads_one_side_fills_no_masks(small_config):
    with pytest.raises(ValueError, match="reads left_to_right predicts the next token"):
        MaskedLM(BertEncoder(reading("left_to_right", small_config)))
