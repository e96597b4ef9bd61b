import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS

import keras_bert_impl as kbi
from keras_bert_impl.batching import LengthBatches, Rows, SortedBatches, predict_rows

LENGTHS = (3, 70, 5, 31, 40, 2, 64, 9, 33, 7, 1)


@pytest.fixture
def rows():
    """Eleven rows of these lengths, each of which repeats the id "number of the row + 5"."""
    return [[number + 5] * length for number, length in enumerate(LENGTHS)]


def batches_of(tokenizer, rows, shuffle=True, seed=0, multiple=32, **arguments):
    made = Rows(rows, **arguments)
    return LengthBatches(tokenizer, made, 2, sequence_length=72, shuffle=shuffle, seed=seed, multiple=multiple)


def numbers_in(batch):
    return (batch["token_ids"][:, 1] - 5).tolist()


def test_an_epoch_holds_every_row_once(small_tokenizer, rows):
    batches = batches_of(small_tokenizer, rows)
    found = [number for index in range(batches.num_batches) for number in numbers_in(batches[index])]
    assert sorted(found) == list(range(11)) and found != sorted(found)


def test_rows_of_a_batch_have_the_same_rounded_length(small_tokenizer, rows):
    batches = batches_of(small_tokenizer, rows, multiple=16)
    shapes = [batches[index]["token_ids"].shape for index in range(batches.num_batches)]
    # With [CLS] and [SEP], 6 rows are padded to 16, 3 to 48 and 2 to the limit of 72; the single one is a shortest row.
    assert sorted(shapes) == [(1, 16), (2, 16), (2, 16), (2, 48), (2, 48), (2, 72)]
    assert shapes[0] == (2, 72) and shapes[1] == (1, 16)


def test_less_is_padding_than_in_one_shape_for_all(small_tokenizer, rows):
    together = batches_of(small_tokenizer, rows, shuffle=False)
    assert together.padding_share() == pytest.approx(1 - (sum(LENGTHS) + 22) / (11 * 72))
    positions, batches = 5 * 16 + 4 * 48 + 2 * 72, batches_of(small_tokenizer, rows, multiple=16)
    assert batches.padding_share() == pytest.approx(1 - (sum(LENGTHS) + 22) / positions)


def test_a_length_of_fewer_than_eight_batches_has_no_shape_of_its_own(small_tokenizer):
    counts = {20: 17, 50: 15, 80: 16, 120: 1}  # rows of each length; a batch has two
    ids = [[7] * length for length, count in counts.items() for _ in range(count)]
    batches = LengthBatches(small_tokenizer, Rows(ids), batch_size=2, sequence_length=128)
    assert dict(zip(*np.unique(batches.lengths, return_counts=True), strict=True)) == {32: 17, 96: 31, 128: 1}
    assert np.all(batches.lengths >= Rows(ids).lengths(small_tokenizer.template))


def test_the_order_is_a_function_of_seed_and_epoch(small_tokenizer, rows):
    one, other = batches_of(small_tokenizer, rows, seed=3), batches_of(small_tokenizer, rows, seed=3)
    first = [place.tolist() for place in one.plan]
    one.on_epoch_end()
    one.on_epoch_end()
    other.start_epoch(2)
    assert [place.tolist() for place in one.plan] == [place.tolist() for place in other.plan] != first


def test_a_seed_that_is_not_given_follows_from_keras_random_seed(small_tokenizer, rows):
    seeds = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        seeds.append(batches_of(small_tokenizer, rows, seed=None).seed)
    assert seeds[0] == seeds[1] != seeds[2]


def test_without_shuffling_rows_come_as_given(small_tokenizer, rows):
    batches = batches_of(small_tokenizer, rows, shuffle=False)
    assert [numbers_in(batches[index]) for index in range(6)] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10]]
    assert {batches[index]["token_ids"].shape[1] for index in range(6)} == {72}


def test_labels_and_weights_stay_with_their_rows(small_tokenizer, rows):
    per_token = np.arange(11)[:, None] * np.ones((1, 72))
    batches = batches_of(
        small_tokenizer, rows, labels={"a": per_token, "b": per_token + 1}, weights=per_token * 10, per_token=True
    )
    for index in range(batches.num_batches):
        inputs, labels, weights = batches[index]
        assert labels["a"].shape == inputs["token_ids"].shape
        assert labels["a"][:, 0].tolist() == numbers_in(inputs)
        np.testing.assert_array_equal(weights, 10 * (labels["b"] - 1))


def test_choices_are_consecutive_rows_of_one_example(small_tokenizer, rows):
    batches = batches_of(small_tokenizer, rows[:9], labels=np.arange(3), choices=3)
    for index in range(2):
        inputs, labels = batches[index]
        assert inputs["token_ids"].shape[:2] == (len(labels), 3)
        for example, label in zip(inputs["token_ids"], labels, strict=True):
            assert (example[:, 1] - 5).tolist() == [3 * label, 3 * label + 1, 3 * label + 2]


def test_labels_of_another_number_are_refused(small_tokenizer, rows):
    with pytest.raises(ValueError, match="11 examples but 4 labels"):
        batches_of(small_tokenizer, rows, labels=np.arange(4))


def test_predictions_come_back_in_the_order_of_the_rows(small_tokenizer, rows):
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=72)
    model = kbi.TextClassifier(kbi.BertEncoder(config), 3, tokenizer=small_tokenizer)
    model.compile(loss=model.loss, **QUICK_STEPS)
    alone = [predict_rows(model, batches_of(small_tokenizer, [row]))[0] for row in rows]
    np.testing.assert_allclose(predict_rows(model, batches_of(small_tokenizer, rows)), alone, atol=1e-5)


def test_sorted_batches_give_outputs_back_in_the_order_of_the_rows(small_tokenizer):
    ids = [[7] * length for length in (3, 5, 2, 6, 4, 1, 3)]
    batches = SortedBatches(small_tokenizer, Rows(ids), batch_size=2, sequence_length=11, multiple=1)
    tokens = np.concatenate([batches[index]["padding_mask"].sum(axis=1) for index in range(batches.num_batches)])
    np.testing.assert_array_equal(batches.restore({"tokens": tokens})["tokens"], [len(row) + 2 for row in ids])
    batches.on_epoch_end()
    np.testing.assert_array_equal(batches.restore(tokens), [len(row) + 2 for row in ids])
