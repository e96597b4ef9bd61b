"""Training data as a function of the step: what `fit` needs in order to begin anywhere, also within an epoch.

Keras' data have only one beginning. Here each kind of data can be opened at any step, and gives the same batches from
there on as if it had been read from its beginning:
    PyDatasetSteps    a keras.utils.PyDataset whose batches depend only on the pass over the data and the index
    DatasetSteps      a tf.data.Dataset that yields the same batches whenever it is read
    FunctionSteps     a function from the step to a tf.data.Dataset or PyDataset that begins with this step's batch
    arrays, texts     become a PyDataset of the first kind
"""

import threading
import zlib

import keras
import numpy as np

from keras_bert_impl.batching import drawn_seed


class StepCallback(keras.callbacks.Callback):
    """Counts the steps of a training over all its epochs, also where it goes on in the middle of one.

    Attributes:
        data: of the `fit`, as `step_data.steps_of` returns it; None if they are no function of the step.
        reason: why they are none.
        step: how many steps are done; within a batch, how many were done before it.
        epoch_start: how many were done before this epoch.
    """

    def __init__(self):
        super().__init__()
        self.data, self.reason = None, "It was not recorded."
        self.step = self.epoch_start = 0

    def set_data(self, data, reason=None):
        self.data, self.reason = data, reason

    def on_train_begin(self, logs=None):
        self.step = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch_start = self.step if self.data is None else self.data.epoch_start

    def on_train_batch_begin(self, batch, logs=None):
        self.step = self.epoch_start + batch

    def on_train_batch_end(self, batch, logs=None):
        self.step = self.epoch_start + batch + 1


def steps_of(x, y=None, sample_weight=None, batch_size=None, steps_per_epoch=None, shuffle=True):
    """The data of a `fit` as a function of the step.

    Raises: ValueError if the data are not one, naming the reason and the remedy.
    """
    if isinstance(x, keras.utils.PyDataset):
        found = PyDatasetSteps(x, steps_per_epoch, shuffle)
    elif hasattr(x, "as_numpy_iterator"):
        found = DatasetSteps(x, steps_per_epoch)
    elif are_arrays((x, y, sample_weight)):
        found = PyDatasetSteps(ArrayBatches(x, y, sample_weight, batch_size or 32, shuffle), steps_per_epoch)
    elif callable(x):
        found = FunctionSteps(x, steps_per_epoch)
    else:
        raise ValueError(
            f"{type(x).__name__} can only be read from its beginning, and may yield other batches the next time. Pass "
            "lists of texts, arrays, a keras.utils.PyDataset, a tf.data.Dataset, or a function that maps a step to one "
            "of the last two."
        )
    return found


def are_arrays(tree):
    """Whether all leaves are arrays or tensors of numbers, or None."""
    leaves = keras.tree.flatten(tree)
    return leaves[0] is not None and all(
        leaf is None or isinstance(leaf, np.ndarray) or keras.ops.is_tensor(leaf) for leaf in leaves
    )


class ArrayBatches(keras.utils.PyDataset):
    """Batches of arrays in an order that depends only on seed and epoch; Keras' own cannot be repeated.

    Args:
        x, y, sample_weight: arrays (examples, ...), nested or not; y and sample_weight may be None.
        batch_size: the last batch may be smaller.
        shuffle: False keeps the order given.
        seed: of the order; None draws it from Python's random module, which keras.utils.set_random_seed seeds.
    """

    def __init__(self, x, y, sample_weight, batch_size, shuffle, seed=None):
        super().__init__()
        parts = (x, y, sample_weight)[: 3 if sample_weight is not None else 2 if y is not None else 1]
        self.arrays = keras.tree.map_structure(keras.ops.convert_to_numpy, parts)
        sizes = {len(array) for array in keras.tree.flatten(self.arrays)}
        if len(sizes) != 1:
            raise ValueError(f"The arrays have different lengths: {' and '.join(map(str, sorted(sizes)))}.")
        (self.examples,) = sizes
        self.batch_size, self.shuffle = batch_size, shuffle
        self.is_seed_drawn, self.seed = seed is None, drawn_seed() if seed is None else seed
        self.start_epoch(0)

    @property
    def num_batches(self):
        return -(-self.examples // self.batch_size)

    def start_epoch(self, epoch):
        random = np.random.default_rng((self.seed, epoch))
        self.order = random.permutation(self.examples) if self.shuffle else np.arange(self.examples)

    def __getitem__(self, index):
        places = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return keras.tree.map_structure(lambda array: array[places], self.arrays)


class PyDatasetSteps:
    """A PyDataset as a function of the step.

    A dataset that changes from one pass to the next has a method `start_epoch(epoch)`, after which `dataset[index]`
    depends only on this number and the index, as `batching.LengthBatches` has.

    Args:
        dataset: a keras.utils.PyDataset.
        steps_per_epoch: None means the number of its batches.
        shuffle: as given to `fit`: True would let Keras permute the batches of a dataset that is not ours.

    Raises: ValueError if the dataset has another order in each epoch, but no `start_epoch`.
    """

    is_checked = True

    def __init__(self, dataset, steps_per_epoch=None, shuffle=False):
        kind = type(dataset)
        self.has_passes = hasattr(dataset, "start_epoch")
        changes = [
            name
            for name in ("on_epoch_begin", "on_epoch_end")
            if getattr(kind, name) is not getattr(keras.utils.PyDataset, name)
        ]
        if changes and not self.has_passes:
            raise ValueError(
                f"{kind.__name__}.{changes[0]} changes its batches from one epoch to the next, but it cannot start "
                "at a given epoch. Give it a method start_epoch(epoch) after which its batches depend only "
                "on this number and their index."
            )
        if shuffle and not self.has_passes and dataset.num_batches is not None:
            raise ValueError(
                f"shuffle=True makes Keras permute the batches of {kind.__name__} in an order that cannot be "
                "repeated: pass shuffle=False, or let the dataset shuffle itself and define start_epoch(epoch)."
            )
        self.dataset, self.size = dataset, dataset.num_batches
        self.steps_per_epoch = steps_per_epoch or self.size
        self.lock, self.current_pass = threading.Lock(), None
        self.listeners = []  # functions called with (step, batch) when a batch is given to Keras
        self.checksums = {}  # of the first batch of each pass, by its step
        self.description = [type(dataset).__name__, self.size]

    def batch(self, step):
        """The batch of a step, counted from 0 over all epochs."""
        number, index = (0, step) if self.size is None else divmod(step, self.size)
        if not self.has_passes:
            return self.dataset[index]
        with self.lock:  # Keras may ask in a thread of its own, ahead of the training
            if number != self.current_pass:
                self.dataset.start_epoch(number)
                self.current_pass = number
            return self.dataset[index]

    def sample(self, index):
        """Batch `index` as TensorFlow, which looks at two batches to see which axes vary, is to see it."""
        index = index if self.size is None else index % self.size
        # A dataset's first batches are chosen to show it, or its samples are.
        return getattr(self.dataset, "sample", self.batch)(index)

    def read_again(self):
        """The first batch, read several times; all must be equal."""
        return [self.batch(0), self.batch(0)]

    def from_step(self, step):
        """What Keras reads: an endless PyDataset that begins with the batch of this step."""
        return FromStep(self, step)


class FromStep(keras.utils.PyDataset):
    """The batches of a PyDatasetSteps from a step on, without end: epochs are what `steps_per_epoch` makes of them."""

    def __init__(self, steps, first_step):
        super().__init__(workers=steps.dataset.workers, max_queue_size=steps.dataset.max_queue_size)
        self.steps, self.first_step, self.is_begun = steps, first_step, False

    @property
    def num_batches(self):
        return None

    def on_epoch_begin(self):
        self.is_begun = True

    def __getitem__(self, index):
        if not self.is_begun:
            return self.steps.sample(index)
        step = self.first_step + index
        batch = self.steps.batch(step)
        if self.steps.size and step % self.steps.size == 0:
            self.steps.checksums[step] = checksum(batch)
        for listener in self.steps.listeners:
            listener(step, batch)
        return batch


class DatasetSteps:
    """A tf.data.Dataset as a function of the step: it has to yield the same batches whenever it is read."""

    is_checked, listeners = True, None  # TensorFlow reads it without calling Python

    def __init__(self, dataset, steps_per_epoch=None):
        size = int(dataset.cardinality())
        self.dataset, self.size = dataset, size if size >= 0 else None
        if self.size is not None and (steps_per_epoch or 0) > self.size:
            raise ValueError(f"steps_per_epoch is {steps_per_epoch}, but the dataset has only {self.size} batches.")
        self.steps_per_epoch = steps_per_epoch or self.size
        self.checksums = {}
        self.description = [type(dataset).__name__, self.size]

    def batch(self, step):
        return first_batch(self.from_step(step))

    def read_again(self):
        return [first_batch(self.dataset), first_batch(self.dataset)]

    def from_step(self, step):
        """The dataset from the batch of this step on; a finite one begins again and again."""
        return self.dataset.skip(step) if self.size is None else self.dataset.repeat().skip(step % self.size)


class FunctionSteps:
    """Data that a function opens at a step: `function(step)` returns a tf.data.Dataset or PyDataset, which begins with
    the batch of this step and is long enough for the rest of the training.

    Args:
        function: for example one that puts the step into a dataset's seeds.
        steps_per_epoch: None if epochs have different sizes.
        is_checked: False if the caller checks by other means that the data are those of the run.
        batch: function from the step to its batch as NumPy arrays; None takes the first of `function(step)`.
    """

    listeners = None

    def __init__(self, function, steps_per_epoch=None, is_checked=True, batch=None):
        self.from_step, self.steps_per_epoch, self.is_checked = function, steps_per_epoch, is_checked
        self.checksums, self.description = {}, ["function", None]
        self.batch = batch or (lambda step: first_batch(function(step)))

    def read_again(self):
        opened = self.from_step(0)  # Keras reads what is opened more than once, too
        return [first_batch(opened), first_batch(opened), first_batch(self.from_step(0))]


def first_batch(data):
    """The first batch of a tf.data.Dataset or PyDataset, as NumPy arrays."""
    return data[0] if isinstance(data, keras.utils.PyDataset) else next(iter(data.take(1).as_numpy_iterator()))


def checksum(batch):
    """The CRC-32 of all arrays of a batch, with their shapes and dtypes."""
    found = 0
    for leaf in keras.tree.flatten(batch):
        array = np.ascontiguousarray(keras.ops.convert_to_numpy(leaf))
        found = zlib.crc32(array.tobytes(), zlib.crc32(str((array.shape, array.dtype)).encode(), found))
    return found
