import numpy as np
import pytest
import tensorflow as tf
from conftest import WORDS

import keras_bert_impl as kbi
from keras_bert_impl.corpora import Document
from keras_bert_impl.preprocessing.pretraining import read_training_data, write_examples
from keras_bert_impl.preprocessing.row_packing import assign_rows, unpack_features

TOKENIZER = kbi.WordPieceTokenizer(WORDS)


def documents(count=40):
    random = np.random.default_rng(0)
    words = [word for word in WORDS[5:] if word.isalpha()]
    for number in range(count):
        sentences = [" ".join(random.choice(words, random.integers(3, 9))) for _ in range(random.integers(1, 9))]
        yield Document(name=f"document {number}", source="test", sentences=sentences)


def test_every_pair_is_in_one_row_that_has_room_for_it():
    lengths = np.random.default_rng(0).integers(3, 33, 500)
    rows = assign_rows(lengths, 64, 8)
    assert sorted(place for row in rows for place in row) == list(range(500))
    assert all(lengths[row].sum() <= 64 and len(row) <= 8 for row in rows)
    assert lengths.sum() / (64 * len(rows)) > 0.97


def test_a_pair_that_fits_no_row_is_refused():
    with pytest.raises(ValueError, match="A pair of 9 tokens does not fit a row of 8"):
        assign_rows([3, 9], 8, 2)


def test_arrays_of_a_row_by_hand():
    arrays = unpack_features(
        tf.ragged.constant([[2, 7, 3, 8, 3, 2, 9, 3, 6, 6, 3]], dtype=tf.int64),
        tf.ragged.constant([[5, 6]], dtype=tf.int64),
        tf.ragged.constant([[3, 3]], dtype=tf.int64),
        tf.ragged.constant([[1, 0]], dtype=tf.int64),
        sequence_length=48,
    )
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
    write_examples(documents(), TOKENIZER, tmp_path / "packed", packed=True, **shape)
    write_examples(documents(), TOKENIZER, tmp_path / "padded", **shape)
    return {name: sorted((tmp_path / name).glob("*.tfrecord")) for name in ("packed", "padded")}


def read(paths, packed):
    dataset = read_training_data(
        paths,
        TOKENIZER,
        sequence_length=48,
        predictions_per_sequence=7,
        batch_size=4,
        packed=packed,
        repeat=False,
    )
    return list(dataset.as_numpy_iterator())


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


def test_a_packed_row_gives_what_its_pairs_give_alone(paths):
    config = kbi.BertConfig(len(WORDS), hidden_size=15, num_layers=2, num_heads=3, intermediate_size=21, max_length=48)
    packed = kbi.BertPretrainer(kbi.BertEncoder(config, packed=True))
    alone = kbi.BertPretrainer(kbi.BertEncoder(config))
    random = np.random.default_rng(1)
    for weight, other in zip(packed.weights, alone.weights, strict=True):
        assert weight.path == other.path
        value = random.normal(size=weight.shape, scale=0.3)
        weight.assign(value)
        other.assign(value)
    inputs, labels = read(paths["packed"], True)[0]
    found = packed.predict_on_batch(inputs)
    pairs = 0
    for row in range(4):
        for number in range(int(labels["next_sentence_weights"][row].sum())):
            where = np.flatnonzero(inputs["sequence_ids"][row] == number + 1)
            is_here = np.isin(inputs["mask_positions"][row], where) & (labels["mask_weights"][row] > 0)
            pair = {name: inputs[name][row, where][None] for name in ("token_ids", "segment_ids", "padding_mask")}
            pair["mask_positions"] = inputs["mask_positions"][row, is_here][None] - where[0]
            if is_here.any():
                expected = alone.predict_on_batch(pair)
                np.testing.assert_allclose(
                    found["masked_lm_logits"][row, is_here], expected["masked_lm_logits"][0], atol=1e-5
                )
                np.testing.assert_allclose(
                    found["next_sentence_logits"][row, number], expected["next_sentence_logits"][0], atol=1e-5
                )
                pairs += 1
    assert pairs > 4


def test_padding_of_labels_does_not_count(paths):
    config = kbi.BertConfig(len(WORDS), hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=48)
    model = kbi.BertPretrainer(kbi.BertEncoder(config, packed=True))
    model.compile(optimizer=kbi.optimization.BertAdamW(1e-3), jit_compile=False)
    ((inputs, labels), *_) = read(paths["packed"], True)
    before = model.evaluate(inputs, labels, batch_size=4, return_dict=True, verbose=0)
    wrong = np.where(labels["next_sentence_weights"] > 0, labels["next_sentence_labels"], 1)
    after = model.evaluate(inputs, {**labels, "next_sentence_labels": wrong}, batch_size=4, return_dict=True, verbose=0)
    assert before == after
    model.fit(tf.data.Dataset.from_tensors((inputs, labels)), verbose=0)


def test_static_masks_have_no_packed_rows(tmp_path):
    with pytest.raises(ValueError, match="Google's format has no packed rows"):
        write_examples(
            documents(),
            TOKENIZER,
            tmp_path,
            sequence_length=48,
            predictions_per_sequence=7,
            packed=True,
            static_masks=True,
        )
