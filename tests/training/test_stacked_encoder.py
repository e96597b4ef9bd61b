import dataclasses
import sys

import documentation
import keras
import numpy as np
import pytest
from conftest import without
from families import SIZES
from keras import ops
from tiers import full_but, on

from keras_bert_impl import BertEncoder, LongformerConfig, LongformerEncoder, TextClassifier, TokenClassifier

sys.path.append(str(documentation.ROOT / "studies"))

from stacked import StackedEncoder


def two_encoders(config):
    left = BertEncoder(dataclasses.replace(config, direction="left_to_right", initializer_range=0.2))
    with keras.name_scope("joined"):
        right = BertEncoder(
            dataclasses.replace(config, direction="right_to_left", initializer_range=0.2), name="joined_encoder"
        )
    return left, right


@pytest.fixture
def inputs(small_batch):
    return without(small_batch, "mask_positions")


def numpy_of(outputs):
    return {name: ops.convert_to_numpy(array) for name, array in outputs.items()}


def test_joined_encoders_give_their_vectors_side_by_side(small_config, inputs):
    left, right = two_encoders(small_config)
    found = numpy_of(StackedEncoder([left, right])(inputs))
    parts = [numpy_of(encoder(inputs)) for encoder in (left, right)]
    for name in ("sequence_output", "pooled_output"):
        expected = np.concatenate([part[name] for part in parts], axis=-1)
        np.testing.assert_allclose(found[name], expected, atol=1e-6)


def test_the_text_vector_of_a_bilstm_is_the_last_state_of_both_of_its_directions(small_config, inputs):
    found = numpy_of(StackedEncoder([BertEncoder(small_config)], bilstm_units=2)(inputs))
    sequence, pooled = found["sequence_output"], found["pooled_output"]
    assert sequence.shape == (2, 7, 4)
    # The second row has five tokens.
    np.testing.assert_allclose(pooled[:, :2], [sequence[0, 6, :2], sequence[1, 4, :2]], atol=1e-6)
    np.testing.assert_allclose(pooled[:, 2:], sequence[:, 0, 2:], atol=1e-6)


def test_padding_does_not_change_what_a_bilstm_gives(small_config, inputs):
    encoder = StackedEncoder([BertEncoder(small_config)], bilstm_units=2)
    changed = {**inputs, "token_ids": inputs["token_ids"].copy()}
    changed["token_ids"][1, 5:] = [41, 3]
    one, other = numpy_of(encoder(inputs)), numpy_of(encoder(changed))
    np.testing.assert_allclose(one["sequence_output"][1, :5], other["sequence_output"][1, :5], atol=1e-6)
    np.testing.assert_allclose(one["pooled_output"], other["pooled_output"], atol=1e-6)


def test_no_mask_of_keras_reaches_losses_and_metrics(small_config, inputs):
    logits = TokenClassifier(StackedEncoder([BertEncoder(small_config)], bilstm_units=2), 3)(inputs)
    assert getattr(logits, "_keras_mask", None) is None


@pytest.mark.parametrize("head", full_but([TextClassifier, TokenClassifier], TextClassifier))
def test_a_head_over_a_stack_survives_a_keras_file(head, small_config, inputs, tmp_path):
    model = head(StackedEncoder(two_encoders(small_config), bilstm_units=2), 3)
    assert len({weight.path for weight in model.weights}) == len(model.weights)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(ops.convert_to_numpy(again(inputs)), ops.convert_to_numpy(model(inputs)), atol=1e-6)


def test_vocabularies_of_different_sizes_and_packed_rows_are_not_joined(small_config):
    other = BertEncoder(dataclasses.replace(small_config, vocabulary_size=59), name="other")
    packed = BertEncoder(small_config, packed=True, name="packed")
    for one in (other, packed):
        with pytest.raises(ValueError, match="Join encoders of one vocabulary, not packed"):
            StackedEncoder([BertEncoder(small_config), one])


def test_a_pooler_that_an_lstm_replaces_is_not_among_the_weights(small_config):
    encoder = BertEncoder(small_config)
    assert [weight.path for weight in encoder.weights if "pooler" in weight.path]
    paths = [weight.path for weight in TextClassifier(StackedEncoder([encoder], bilstm_units=2), 3).weights]
    assert not [path for path in paths if "pooler" in path]
    assert len(paths) == len(set(paths)) == len(encoder.weights) - 2 + 6 + 2  # the LSTM's and the head's


@on("torch")
def test_a_stacked_encoder_does_not_lose_global_tokens():
    def stacked(**options):
        return StackedEncoder([LongformerEncoder(LongformerConfig(**SIZES), **options)], bilstm_units=3)

    with pytest.raises(ValueError, match="build its encoders with task='text'"):
        TextClassifier(stacked(), 2)
    assert TextClassifier(stacked(task="text"), 2)
