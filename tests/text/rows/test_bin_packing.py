import numpy as np
import pytest
import tensorflow as tf
from made_text import TOKENIZER, opened, tokens, write
from tiers import on, once

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.text.rows.row_features import assign_rows, most_sequences, padded_rows

pytestmark = on("tensorflow")


def test_every_pair_is_in_one_row_that_has_room_for_it():
    lengths = np.random.default_rng(0).integers(3, 33, 500)
    rows = assign_rows(lengths, 64, 8)
    assert sorted(place for row in rows for place in row) == list(range(500))
    assert all(lengths[row].sum() <= 64 and len(row) <= 8 for row in rows)
    assert lengths.sum() / (64 * len(rows)) > 0.97


def test_the_longest_pairs_come_first_each_into_the_fullest_row_that_holds_it():
    # Open rows of 6 and 5 tokens can take 2 and 3: 3 fits only the second, the first 2 the first, the other 2 neither.
    assert assign_rows([2, 5, 3, 6, 2], 8, 8) == [[3, 0], [1, 2], [4]]
    assert assign_rows([1, 1, 1, 1], 3, 8) == [[0, 1, 2], [3]]


def test_no_row_has_more_than_the_most_pairs():
    assert assign_rows([1, 1, 1, 1, 1], 7, 2) == [[0, 1], [2, 3], [4]]


def test_a_row_of_sixteen_tokens_or_more_has_a_place_for_each_sixteen():
    lengths = [3, 15, 16, 31, 32, 48, 128]
    assert [most_sequences(length) for length in lengths] == [1, 1, 1, 1, 2, 3, 8]


def test_arrays_of_a_row_by_hand():
    features = {
        "input_ids": [[2, 7, 3, 8, 3, 2, 9, 3, 6, 6, 3]],
        "lengths": [[5, 6]],
        "first_segment_lengths": [[3, 3]],
        "next_sentence_labels": [[1, 0]],
    }
    features = {name: tf.ragged.constant(values, dtype=tf.int64) for name, values in features.items()}
    arrays = padded_rows({**features, "example_index": tf.constant([0])}, 48, TOKENIZER, tensorflow_arrays)
    expected = {
        "token_ids": [2, 7, 3, 8, 3, 2, 9, 3, 6, 6, 3, 0, 0],
        "padding_mask": [1] * 11 + [0, 0],
        "segment_ids": [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0],
        "position_ids": [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 0, 0],
        "sequence_ids": [1] * 5 + [2] * 6 + [0, 0],
    }
    for name, values in expected.items():
        assert arrays[name].numpy()[0, :13].tolist() == values, name
        assert not arrays[name].numpy()[0, 13:].any(), name
    assert arrays["cls_positions"].numpy().tolist() == [[0, 5, 0]]
    assert arrays["next_sentence_labels"].numpy().tolist() == [[1, 0, 0]]
    assert arrays["next_sentence_weights"].numpy().tolist() == [[1, 1, 0]]


@pytest.fixture
def paths(tmp_path):
    shape = {"sequence_length": 48, "predictions_per_sequence": 7}
    for name in ("packed", "padded"):
        write(tmp_path / name, tokens(40), packed=name == "packed", **shape)
    return {name: [tmp_path / name] for name in ("packed", "padded")}


def read(paths, packed):
    options = {"sequence_length": 48, "predictions_per_sequence": 7, "batch_size": 4}
    return list(opened(paths, packed=packed, repeat=False, **options))


@once
def test_packed_files_hold_the_pairs_of_the_padded_ones(paths):
    def pairs(batches, split):
        found = []
        for inputs, labels in batches:
            tokens = inputs["token_ids"].copy()
            row, column = np.nonzero(labels["mask_weights"])
            tokens[row, inputs["mask_positions"][row, column]] = labels["mask_ids"][row, column]
            for number, row in enumerate(tokens):
                found += split(row, {name: array[number] for name, array in inputs.items()})
        return sorted(found)

    packed = pairs(
        read(paths["packed"], True),
        lambda row, inputs: [
            tuple(row[inputs["sequence_ids"] == number]) for number in range(1, inputs["sequence_ids"].max() + 1)
        ],
    )
    padded = pairs(read(paths["padded"], False), lambda row, inputs: [tuple(row[inputs["padding_mask"] == 1])])
    assert packed == padded
