"""Objects that turn what a person has into the inputs of a model.

`dataset.map(preprocessor, num_parallel_calls=tf.data.AUTOTUNE)` computes them in the graph of a `tf.data.Dataset`,
before or after `batch`. Of lists, tuples and arrays they are computed without TensorFlow: by a call, as the
`collate_fn` of a `DataLoader`, or in the map of `grain`. Both ways give the same ids.
"""

import collections.abc

import keras
import numpy as np

from keras_bert_impl.batching import LengthBatches, Rows, SortedBatches
from keras_bert_impl.preprocessing.labels import (
    Positions,
    RowSizes,
    named_by_numbers,
    numbers_of_names,
    refuse,
    rows_of_zeros_and_ones,
    sizes_of_texts,
)
from keras_bert_impl.preprocessing.long_texts import rows_of_long_texts, share_labels
from keras_bert_impl.preprocessing.texts import (
    in_memory,
    is_text_input,
    is_text_pair,
    is_texts,
    texts_of,
    to_strings,
)
from keras_bert_impl.suggestions import one_of
from keras_bert_impl.text.tokenizers import tokenizer_from_config, tokenizer_to_config
from keras_bert_impl.text.tokenizers.rows import warn_of_cut

LABELS = ("label", "labels")
TRUNCATE = ("longest_first", "waterfall", "only_second", "head_and_tail", "windows")


class Preprocessor:
    """Base class of the preprocessors.

    Args:
        tokenizer (Tokenizer): tokenizer.
        sequence_length (int, optional): length that every text is truncated or padded to. Default: 512.
        class_names (list of str, optional): the classes that labels name. Default: None, labels are passed through.

    Call: `preprocessor(x, y=None, sample_weight=None)`, as in KerasHub, on a batch or on one example; or on a dict of
        columns, or a list of examples, each a tuple or a dict.
    Returns: inputs, (inputs, y) or (inputs, y, sample_weight), as `fit` takes them: a dict of `token_ids`,
        `segment_ids` and `padding_mask`, int32 (batch, sequence_length); of one example (sequence_length,).

    Attributes:
        num_cut (int): how many examples have been truncated so far.
    """

    arguments = ("sequence_length", "class_names")  # of the constructor, beside the tokenizer
    columns, optional_column, targets = ("text",), None, LABELS  # of a dict
    truncate = "longest_first"  # how texts are cut, see TextPreprocessor
    is_split = False  # whether an example is a list of strings
    has_windows = False  # whether an example has several rows
    multi_label = False  # whether an example has several classes, or none

    def __init__(self, tokenizer, sequence_length=512, class_names=None):
        self.tokenizer, self.sequence_length = tokenizer, sequence_length
        self.class_names = None if class_names is None else list(map(str, class_names))
        self._num_cut, self._graph = 0, None

    def __call__(self, x, y=None, sample_weight=None):
        if y is None:
            x, y, sample_weight = self._parts(x)
        if is_of_tensorflow(x):
            from keras_bert_impl.preprocessing.graphs import text_rows

            if self._graph is None:
                by_number = bool(named_by_numbers(self.class_names or ()))
                names = self.class_names, by_number, self.multi_label
                self._graph = text_rows.Graph(self.tokenizer, *names, offsets=self.has_windows)
            how = {"rank": int(self.is_split), "strips": not self.has_windows}
            found = text_rows.of_batches(self._in_graph, x, y, sample_weight, **how)
        else:
            x, y, sample_weight = map(in_memory, (x, y, sample_weight))
            is_one = self._is_one(x)
            if is_one:
                x = tuple([part] for part in x) if isinstance(x, tuple) else [x]
                y, sample_weight = (None if part is None else [part] for part in (y, sample_weight))
            found = self._in_memory(x, y, sample_weight)
            found = first_of(found) if is_one and not self.has_windows else found
        return keras.utils.pack_x_y_sample_weight(*found)

    @property
    def names_of_columns(self):
        """Of a dict: those needed, one that may be missing, and those of labels."""
        return self.columns, self.optional_column, self.targets

    @property
    def num_cut(self):
        return self._num_cut + (self._graph.num_cut.value() if self._graph else 0)

    def get_config(self):
        arguments = {name: getattr(self, name) for name in self.arguments}
        return {"tokenizer": tokenizer_to_config(self.tokenizer), **arguments}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "tokenizer": tokenizer_from_config(config["tokenizer"])})

    def __getstate__(self):
        """Without what belongs to this process' TensorFlow, so that the workers of a DataLoader get a copy."""
        return {**self.__dict__, "_graph": None}

    def _parts(self, x):
        """(x, y, sample_weight) of what was passed alone."""
        if isinstance(x, list) and x and isinstance(x[0], collections.abc.Mapping):
            x = {name: [row[name] for row in x] for name in x[0]}
        if {*self.columns} <= {*getattr(x, "columns", ())}:  # a table
            x = {name: x[name] for name in x.columns}
        if isinstance(x, collections.abc.Mapping):
            return *parts_of_columns(x, *self.names_of_columns), None
        if isinstance(x, list) and x and isinstance(x[0], tuple) and not self._are_inputs(x[0]):
            first, *others = zip(*x, strict=True)
            x = (tuple(map(list, zip(*first, strict=True))) if isinstance(first[0], tuple) else list(first), *others)
        if isinstance(x, tuple) and not self._are_inputs(x):
            return (*x, None, None)[:3]
        return x, None, None

    def arranged(self, batch, with_labels):
        """A batch of a `texts.BatchSource` as inputs, (inputs, labels) or (inputs, labels, weights).

        Two columns of strings are texts and the names of their classes in `fit` and `evaluate`, which need labels, for
        a model that has classes; otherwise they are pairs of texts.

        Raises: ValueError if the names of classes stand where `predict` expects texts, or if the columns of a dict have
            neither the names of `columns` nor "text", "text_pair" and "label".
        """

        def parts(columns):
            return parts_of_columns(columns, *(self.names_of_columns if {*self.columns} <= {*columns} else ()))

        if isinstance(batch, collections.abc.Mapping):
            texts, labels = parts(batch)
            batch = (texts,) if labels is None else (texts, labels)
        elif isinstance(batch, tuple) and isinstance(batch[0], collections.abc.Mapping):
            batch = (parts(batch[0])[0], *batch[1:])
        if self.class_names and is_text_pair(batch):
            if with_labels:
                return batch[0], np.array(numbers_of_names(batch[1], self.class_names)).view(Positions)
            if set(to_strings(batch[1])) <= set(self.class_names):
                raise ValueError(
                    "The second strings of each batch are names of classes, but predict takes texts alone: leave them "
                    "out, or, if they are the second texts of pairs, let the dataset yield ((first, second),)."
                )
        return batch[0] if isinstance(batch, tuple) and len(batch) == 1 and not is_texts(batch) else batch

    def _are_inputs(self, parts):
        """Whether a tuple holds the inputs, and not inputs beside labels, or beside the names of their classes."""
        if not all(isinstance(part, str | bytes) or are_strings(part) for part in parts):
            return False
        if not self.class_names or is_of_tensorflow(parts):
            return True
        second = [parts[1]] if isinstance(parts[1], str | bytes) else in_memory(parts[1])
        return not {*to_strings(second)} <= {*self.class_names}

    def _is_one(self, x):
        """Whether this is one example."""
        first = x[0] if isinstance(x, tuple) else x
        first = first[0] if self.is_split and len(first) else first
        return isinstance(first, str | bytes)

    def _in_memory(self, x, y, sample_weight):
        rows = self.rows(x, y, sample_weight)
        self._num_cut += rows.num_cut
        return self.packed(rows, self.sequence_length)

    def takes(self, x):
        """Whether `x` is what this makes rows of, in memory and without labels."""
        return is_text_input(x)

    def makes_labels(self, x):
        """Whether what this takes is trained without labels of its own."""
        return False

    def sentences(self, x, y=None):
        """What a user gave beside these labels: a tuple may be several examples instead of columns."""
        return x

    def rows(self, x, y=None, sample_weight=None, check=None):
        """The `batching.Rows` of examples in memory, with labels and weights.

        `check` is a function of `labels.RowSizes`, labels and weights that returns these as arrays, as `fit` has them
        checked; without it labels are those that `class_names` name, or any.
        """
        rows = self.unlabelled(x)
        rows.labels, rows.weights = (check or self.named)(self.sizes(rows), y, sample_weight)
        return rows if rows.windows is None else share_labels(rows)

    def unlabelled(self, x):
        """The Rows of texts or pairs, without labels."""
        return Rows.from_texts(self.tokenizer, *texts_of(x), self.sequence_length)

    def sizes(self, rows):
        """The `labels.RowSizes` of what has a label."""
        if rows.windows is not None:
            return RowSizes(np.ones(len(rows.windows), "int32"), 1)
        return sizes_of_texts(rows, self.tokenizer.template, self.sequence_length)

    def report_cut(self, rows):
        """Warns of the texts of Rows that were cut."""
        warn_of_cut(rows.num_cut, len(rows.first), self.sequence_length)

    def packed(self, rows, pad_to=None, seed=0):
        """(inputs, labels, weights) of Rows, each as long as `pad_to`, or as the longest rounded up to a multiple of
        32. `seed` is that of what is drawn for them."""
        return rows.packed(self.tokenizer, self.sequence_length, pad_to)

    def to_train(self, rows, batch_size, shuffle, seed, multiple):
        """The batches of Rows in an order that is drawn, of about the same length, rounded up to a multiple."""
        batches = LengthBatches(self.tokenizer, rows, batch_size, self.sequence_length, shuffle, seed, multiple)
        batches.is_seed_drawn = True
        return batches

    def to_evaluate(self, rows, batch_size, seed, multiple):
        """(x, y, sample_weight) of Rows, as `keras.Model.evaluate` takes them."""
        # The same batches each time, so that a figure of the same weights is the same to the last bit.
        return SortedBatches(self.tokenizer, rows, batch_size, self.sequence_length, multiple=multiple), None, None

    def named(self, sizes, y, sample_weight):
        """Labels and weights as arrays, with the numbers of the classes that are named."""
        if isinstance(y, dict):
            y = {name: np.asarray(part) for name, part in y.items()}
        elif y is not None:
            named = rows_of_zeros_and_ones if self.multi_label else numbers_of_names
            y = np.asarray(named(y, self.class_names) if self.class_names else y)
            if y.dtype.kind in "OSU":
                raise ValueError(f"The labels are {y.ravel()[:3].tolist()}, but the preprocessor has no class_names.")
            if self.class_names and y.ndim == 1:
                count = len(self.class_names)
                refuse(y, ~np.isin(y, range(count)), "labels", f"not the number of a class, 0 to {count - 1}")
        return y, None if sample_weight is None else np.asarray(sample_weight)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TextPreprocessor(Preprocessor):
    """Makes a model's inputs from texts, or from pairs of texts, for `tf.data`, data loaders and lists.

    Call: `preprocessor(x, y=None, sample_weight=None)` on a batch or on one example, as in KerasHub; on a dict of
    columns; or on a list of examples, each a tuple or a dict. Pairs are a tuple of two columns.

    Args:
        tokenizer (Tokenizer): tokenizer.
        sequence_length (int, optional): length that every text is truncated or padded to. Default: 512.
        truncate (str, optional): how to truncate. Pairs: "longest_first" (KerasHub's "round_robin"), "waterfall" or
            "only_second". Single texts: also "head_and_tail", a quarter from the beginning and the rest from the end
            (Sun et al. 2019, section 5.3.1); or, in memory, "windows", several inputs that share the weight of the
            text. Default: "longest_first".
        class_names (list of str, optional): the classes that labels name. Default: None, labels are passed through.
        multi_label (bool, optional): whether labels are a list of classes for each text, or 0 and 1 for each class.
            Default: False.

    Returns: inputs, (inputs, y) or (inputs, y, sample_weight), as `fit` takes them. Inputs are a dict of `token_ids`,
        `segment_ids` and `padding_mask`, int32 (batch, sequence_length); for one example (sequence_length,).

    Example:
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> names = ["negative", "positive"]
        >>> preprocessor = kbi.preprocessing.TextPreprocessor(tokenizer, 16, class_names=names)
        >>> inputs, labels = preprocessor(["I loved it.", "Dull."], ["positive", "negative"])
        >>> inputs["token_ids"].shape, labels.tolist()
        ((2, 16), [1, 0])
    """

    arguments = ("sequence_length", "truncate", "class_names", "multi_label")
    optional_column = "text_pair"

    def __init__(self, tokenizer, sequence_length=512, truncate="longest_first", class_names=None, multi_label=False):
        super().__init__(tokenizer, sequence_length, class_names)
        self.truncate, self.multi_label = one_of("truncate", truncate, TRUNCATE), multi_label
        self.has_windows = truncate == "windows"

    def unlabelled(self, x):
        first, second = texts_of(x)
        if second is not None or self.truncate not in ("head_and_tail", "windows"):
            return Rows.from_texts(self.tokenizer, first, second, self.sequence_length, truncate=self.truncate)
        room = self.sequence_length - self.tokenizer.template.num_control(is_pair=False)
        return rows_of_long_texts(self.tokenizer.ids_batch(first), room, self.truncate)

    def _in_graph(self, x, y, sample_weight):
        if self.has_windows:
            raise ValueError("With windows, a text becomes several sequences: pass the texts to fit directly.")
        texts = x if isinstance(x, tuple) else (x,)
        rows = self._graph.rows_of_texts(*texts, sequence_length=self.sequence_length, truncate=self.truncate)
        return rows, self._graph.numbers(y), sample_weight


def parts_of_columns(columns, needed=("text",), optional="text_pair", targets=LABELS):
    """(inputs, labels or None) of a dict of columns: of each of `needed`, and of one of `targets` if it is there."""
    found = [name for name in (*needed, optional) if name in columns]
    labels = [name for name in targets if name in columns]
    if not {*needed} <= {*found} or len(found) + len(labels) < len(columns) or len(labels) > 1:
        expected = ", ".join(filter(None, (*needed, optional, *targets[:1])))
        raise ValueError(
            f"Got the columns {', '.join(columns)}, expected {expected}: pass the data as (inputs, labels)."
        )
    inputs = tuple(columns[name] for name in found)
    return inputs if len(found) > 1 else inputs[0], columns[labels[0]] if labels else None


def first_of(parts):
    return keras.tree.map_structure(lambda part: part if part is None else part[0], parts)


def is_of_tensorflow(x):
    while isinstance(x, list | tuple | collections.abc.Mapping) and len(x):
        x = next(iter(x.values() if isinstance(x, collections.abc.Mapping) else x))
    return type(x).__module__.startswith("tensorflow.")


def are_strings(part):
    if is_of_tensorflow(part):
        return part.dtype.name == "string"
    return is_texts(part)
