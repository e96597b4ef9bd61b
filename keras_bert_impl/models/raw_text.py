"""`fit`, `evaluate` and `predict` on raw text, for models that hold a tokenizer."""

import random

import keras
import numpy as np

from keras_bert_impl.batching import LengthBatches, Rows, SortedBatches
from keras_bert_impl.tokenizers.rows import ROW_MULTIPLE, ids_from_texts, rows_from_texts


class RawTextMixin:
    """Lets a model's `fit`, `evaluate` and `predict` take texts wherever they take ids.

    Texts are a list or array of strings, a pair of such lists (sentence pairs), or a `tf.data.Dataset` that yields
    batches of them; anything else goes to Keras unchanged. The model has the attributes `tokenizer` and
    `sequence_length` (longer texts are cut).
    """

    def fit(self, x=None, y=None, batch_size=None, validation_data=None, **arguments):
        """`keras.Model.fit`, with texts or ids for `x` and in `validation_data`; batches of 32 unless told.

        Lists of texts are tokenized once and batched by length (`batching.LengthBatches`), in a new order each epoch;
        with shuffle=False in the order given.
        """
        if isinstance(validation_data, tuple) and _is_text_input(validation_data[0]):
            validation_data = self._length_batches(*validation_data, batch_size=batch_size)
        elif validation_data is not None and not isinstance(validation_data, tuple):
            validation_data = self._to_inputs(validation_data)
        if _is_text_input(x):
            shuffle, weights = arguments.pop("shuffle", True), arguments.pop("sample_weight", None)
            if arguments.pop("validation_split", 0):
                raise ValueError("validation_split divides arrays; for texts pass validation_data=(texts, labels).")
            x, y, batch_size = self._length_batches(x, y, weights, batch_size, shuffle), None, None
        inputs = self._to_inputs(x)
        if isinstance(inputs, keras.utils.PyDataset):
            arguments["shuffle"] = False  # the dataset shuffles itself; Keras would permute the order of its batches
        return super().fit(inputs, y, batch_size=batch_size, validation_data=validation_data, **arguments)

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **arguments):
        """`keras.Model.evaluate`, with texts or ids for `x`."""
        if _is_text_input(x):
            x, y = self._length_batches(x, y, sample_weight, batch_size), None
            batch_size = sample_weight = None
        return super().evaluate(self._to_inputs(x), y, batch_size=batch_size, sample_weight=sample_weight, **arguments)

    def predict(self, x, batch_size=None, **arguments):
        """`keras.Model.predict`, with texts or ids for `x`; one string is one text.

        Lists of texts are computed in batches of about the same length; the outputs are in the order of the texts.
        Where there is an output for each token, all rows are as long as the longest.
        """
        x = [x] if isinstance(x, str) else x
        if not _is_text_input(x) or any(None in output.shape[1:] for output in self.outputs):
            return super().predict(self._to_inputs(x), batch_size=batch_size, **arguments)
        batches = SortedBatches(
            self.tokenizer,
            Rows(*self._ids(x)),
            batch_size=batch_size or 32,
            sequence_length=self.sequence_length,
            # A compiler wants few different shapes.
            multiple=ROW_MULTIPLE if self.jit_compile else 1,
        )
        return batches.restore(super().predict(batches, **arguments))

    def rows(self, texts, pad_to=None):
        """The input arrays of `texts`: a list of strings or a pair of lists. Shape (batch, length).

        The length is `pad_to`, or that of the longest text rounded up to a multiple of 32.
        """
        return rows_from_texts(self._require_tokenizer(), *texts_of(texts), self.sequence_length, pad_to)

    def _length_batches(self, texts, labels, weights=None, batch_size=None, shuffle=True):
        """Texts and their labels as batches of about the same length."""
        return LengthBatches(
            self.tokenizer,
            Rows(*self._ids(texts), labels, weights),
            batch_size=batch_size or 32,
            sequence_length=self.sequence_length,
            shuffle=shuffle,
            # Of keras.utils.set_random_seed, as Keras' own order is.
            seed=random.randrange(2**31),
        )

    def _ids(self, texts):
        return ids_from_texts(self._require_tokenizer(), *texts_of(texts), self.sequence_length)

    def _to_inputs(self, x):
        if isinstance(x, str):
            raise ValueError("Got one string where texts were expected: pass a list of strings.")
        if isinstance(x, (list, tuple)) and not x:
            raise ValueError("Got no texts: the list is empty.")
        if is_text_dataset(x):
            self._require_tokenizer()
            return TextBatches(x, self._convert_batch)
        return self.rows(x) if is_texts(x) or is_text_pair(x) else x

    def _convert_batch(self, batch):
        """One element of a dataset of texts: texts, (texts, labels) or (texts, labels, weights)."""
        # All of one length: Keras takes the shapes of the first batches for those of all.
        if is_texts(batch) or is_text_pair(batch):
            return self.rows(batch, pad_to=self.sequence_length)
        return (self.rows(batch[0], pad_to=self.sequence_length), *batch[1:])

    def _require_tokenizer(self):
        if self.tokenizer is None:
            raise ValueError(
                f"{type(self).__name__} was given text but has no tokenizer: build it with "
                "tokenizer=WordPieceTokenizer('vocab.txt'), or pass ids."
            )
        return self.tokenizer


class TextBatches(keras.utils.PyDataset):
    """The batches of a `tf.data.Dataset` of texts, tokenized one by one outside TensorFlow, so on every backend.

    Args:
        dataset: yields batches whose first part is texts: a vector of strings or a pair of them.
        convert: function from such a batch, as NumPy arrays, to what Keras trains on.

    Raises: ValueError if the dataset yields single texts.
    """

    def __init__(self, dataset, convert):
        super().__init__()
        if first_spec(dataset).shape.rank == 0:
            raise ValueError("The dataset yields single texts, not batches of them: pass dataset.batch(32).")
        self.dataset, self.convert = dataset, convert
        self.iterator, self.position = None, 0
        size = int(dataset.cardinality())
        self.size = size if size >= 0 else self._count(size)

    def _count(self, cardinality):
        # tf.data: -1 is endless, -2 unknown until read once.
        return None if cardinality == -1 else sum(1 for _ in self.dataset)

    @property
    def num_batches(self):
        """Batches in an epoch; None if endless."""
        return self.size

    def __getitem__(self, index):
        # Keras asks in order, but peeks at the first batches before an epoch: an earlier index starts anew.
        if self.iterator is None or index < self.position:
            self.iterator, self.position = self.dataset.as_numpy_iterator(), 0
        while self.position <= index:
            batch = next(self.iterator)
            self.position += 1
        return self.convert(batch)


def is_texts(x):
    """Whether `x` is a list, tuple or one-dimensional array of strings (or a tensor of them).

    One string makes them texts, so that a missing one among them is named by `to_strings`.
    """
    if isinstance(x, (list, tuple)):
        return any(isinstance(text, (str, bytes)) for text in x)
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and x.dtype.kind in "OSUT" and is_texts(x.tolist())
    # A pandas Series, a tf.Tensor of strings.
    return hasattr(x, "dtype") and str(x.dtype) in _TEXT_DTYPES and is_texts(np.asarray(x, dtype=object))


_TEXT_DTYPES = ("object", "str", "string", "<dtype: 'string'>")


def is_text_pair(x):
    """Whether `x` is a pair of equally long lists of strings."""
    return isinstance(x, (list, tuple)) and len(x) == 2 and is_texts(x[0]) and is_texts(x[1])


def texts_of(x):
    """First and second texts of texts (no second, None) or of a pair of lists of them, as lists of str."""
    first, second = x if is_text_pair(x) else (x, None)
    return to_strings(first), None if second is None else to_strings(second)


def _is_text_input(x):
    """Whether `x` is texts or a pair of lists of them, all at hand."""
    return not is_text_dataset(x) and (is_texts(x) or is_text_pair(x))


def is_text_dataset(x):
    """Whether `x` is a `tf.data.Dataset` whose inputs are strings."""
    return hasattr(x, "element_spec") and getattr(getattr(first_spec(x), "dtype", None), "name", None) == "string"


def first_spec(dataset):
    """The `tf.TensorSpec` of the first part of a dataset's elements: of the texts, or of the first of a pair."""
    spec = dataset.element_spec
    while isinstance(spec, tuple):
        spec = spec[0]
    return spec


def to_strings(texts):
    """A list of str; bytes are decoded as UTF-8, undecodable ones left out, as Google's tokenizer does.

    Raises: ValueError naming the first that is neither.
    """
    texts = np.asarray(texts, dtype=object).tolist()
    for index, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"text {index} is {repr(text)[:60]}, not a string: leave it out, or write '' for it.")
    return [text.decode("utf-8", errors="ignore") if isinstance(text, bytes) else text for text in texts]
