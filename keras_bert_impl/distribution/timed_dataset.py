"""`timed_dataset`: a tf.data.Dataset that measures how long its batches are waited for."""

import keras


def timed_dataset(dataset, timed):
    """The same dataset. When Keras reads a batch of it, it calls `timed(read)`, which returns what `read()` does.

    On TensorFlow it is returned unchanged: there Keras' compiled steps read the dataset without calling Python.
    """
    if keras.backend.backend() == "tensorflow":
        return dataset
    import tensorflow as tf

    class TimedDataset(tf.data.Dataset):
        """A subclass, because Keras and its distributions accept nothing else as a dataset."""

        element_spec = dataset.element_spec

        def __init__(self):
            super().__init__(tf.data.experimental.to_variant(dataset))

        def _inputs(self):
            return [dataset]

        def __iter__(self):
            batches, end = iter(dataset), object()
            while (batch := timed(lambda: next(batches, end))) is not end:
                yield batch

    return TimedDataset()
