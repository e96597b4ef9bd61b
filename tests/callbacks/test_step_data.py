"""Data as a function of the step."""

import keras
import numpy as np
import pytest

from keras_bert_impl.callbacks.step_data import ArrayBatches, FunctionSteps, PyDatasetSteps, checksum, steps_of


class Numbered(keras.utils.PyDataset):
    """Five batches, each its pass and its index."""

    epoch = 0

    def __len__(self):
        return 5

    def start_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, index):
        return np.array([self.epoch, index])


def test_a_step_is_a_batch_of_a_pass():
    steps = PyDatasetSteps(Numbered())
    assert [steps.batch(step).tolist() for step in (0, 7, 3, 14)] == [[0, 0], [1, 2], [0, 3], [2, 4]]


def test_an_epoch_of_fewer_steps_goes_on_in_the_pass():
    opened = PyDatasetSteps(Numbered(), steps_per_epoch=3).from_step(3)
    opened.on_epoch_begin()
    assert opened.num_batches is None, "Keras takes the number from steps_per_epoch"
    assert [opened[index].tolist() for index in range(3)] == [[0, 3], [0, 4], [1, 0]]


def test_before_it_begins_keras_sees_the_shapes_of_the_whole():
    """TensorFlow learns from the first two batches which axes vary, and LengthBatches begins with such two."""
    opened = PyDatasetSteps(Numbered()).from_step(8)
    assert [opened[index].tolist() for index in range(2)] == [[0, 0], [0, 1]]


def test_listeners_are_told_the_step():
    steps, heard = PyDatasetSteps(Numbered()), []
    steps.listeners.append(lambda step, batch: heard.append((step, batch.tolist())))
    opened = steps.from_step(6)
    opened[0]
    opened.on_epoch_begin()
    opened[1]
    assert heard == [(7, [1, 2])]


def test_every_row_of_arrays_comes_once_in_an_epoch_and_in_another_order_in_the_next():
    x, y = np.arange(7), np.arange(7) * 10
    batches = ArrayBatches({"a": x}, y, None, batch_size=3, shuffle=True, seed=1)
    orders = []
    for epoch in (0, 1, 0):
        batches.start_epoch(epoch)
        found = [batches[index] for index in range(batches.num_batches)]
        orders.append(np.concatenate([inputs["a"] for inputs, _ in found]).tolist())
        assert np.concatenate([labels for _, labels in found]).tolist() == [10 * row for row in orders[-1]]
    assert sorted(orders[0]) == list(range(7)) and orders[0] == orders[2] != orders[1]


def test_arrays_of_different_numbers_of_rows_are_refused():
    with pytest.raises(ValueError, match="The arrays have different lengths: 2 and 3"):
        steps_of(np.ones(2), np.ones(3))


def test_a_dataset_is_read_on_from_a_step():
    tf = pytest.importorskip("tensorflow")
    steps = steps_of(tf.data.Dataset.range(5), steps_per_epoch=3)
    assert [int(x) for x in steps.from_step(3).take(4).as_numpy_iterator()] == [3, 4, 0, 1]
    assert int(steps_of(tf.data.Dataset.range(5).repeat(), steps_per_epoch=3).batch(11)) == 1
    with pytest.raises(ValueError, match="steps_per_epoch is 6, but the dataset has only 5 batches"):
        steps_of(tf.data.Dataset.range(5), steps_per_epoch=6)


def test_the_batch_of_a_function_is_its_first():
    tf = pytest.importorskip("tensorflow")
    assert int(FunctionSteps(lambda step: tf.data.Dataset.range(step, 99), 3).batch(7)) == 7


@pytest.mark.parametrize("other", [[[1, 2, 4]], [[1], [2], [3]], [[1.0, 2.0, 3.0]]])
def test_a_checksum_tells_values_shapes_and_types(other):
    assert checksum(np.array([[1, 2, 3]])) == checksum(np.array([[1, 2, 3]])) != checksum(np.array(other))
