"""Objects that turn what a person has into the inputs of a model.

`dataset.map(preprocessor, num_parallel_calls=tf.data.AUTOTUNE)` computes them in the graph of a `tf.data.Dataset`,
before or after `batch`. Of lists, tuples and arrays they are computed without TensorFlow: by a call, as the
`collate_fn` of a `DataLoader`, or in the map of `grain`. Both ways give the same ids.
"""

import collections.abc
import dataclasses

import keras
import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.batch_sources import LABELS, parts_of_columns
from keras_bert_impl.preprocessing.choices import rows_of_choices
from keras_bert_impl.preprocessing.labelled_words import of_first_pieces, of_words, rows_of_split
from keras_bert_impl.preprocessing.labels import named_by_numbers, numbers_of_names
from keras_bert_impl.preprocessing.long_texts import rows_of_long_texts
from keras_bert_impl.preprocessing.other_libraries import in_memory
from keras_bert_impl.preprocessing.question_windows import question_rows, questions_of
from keras_bert_impl.preprocessing.texts import is_texts, texts_of, to_strings, to_word_lists
from keras_bert_impl.preprocessing.word_rows import split_words
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.rows.masking import MaskingRule
from keras_bert_impl.text.tokenizers import tokenizer_from_config, tokenizer_to_config
from keras_bert_impl.text.tokenizers.rows import ids_from_texts, longest_question, pack_rows

TRUNCATE = ("longest_first", "waterfall", "only_second", "head_and_tail")


class Preprocessor:
    """What all preprocessors have.

    Args:
        tokenizer: a Tokenizer.
        sequence_length: tokens of every row; longer texts are cut, shorter ones padded.
        class_names: the classes that labels name. None passes labels through.

    Call: `preprocessor(x, y=None, sample_weight=None)`, as KerasHub's, on a batch or on one example; or on a dict of
        columns, or a list of examples, each a tuple or a dict.
    Returns: inputs, (inputs, y) or (inputs, y, sample_weight), as `fit` takes them: a dict of `token_ids`,
        `segment_ids` and `padding_mask`, int32 (batch, sequence_length); of one example (sequence_length,).

    Attributes:
        num_cut: how many rows have lost tokens so far.
    """

    arguments = ("sequence_length", "class_names")  # of the constructor, beside the tokenizer
    columns, optional_column, targets = ("text",), None, LABELS  # of a dict
    is_split = False  # whether an example is a list of strings
    has_windows = False  # whether an example has several rows

    def __init__(self, tokenizer, sequence_length=512, class_names=None):
        self.tokenizer, self.sequence_length = tokenizer, sequence_length
        self.class_names = None if class_names is None else list(map(str, class_names))
        self._num_cut, self._graph = 0, None

    def __call__(self, x, y=None, sample_weight=None):
        if y is None:
            x, y, sample_weight = self._parts(x)
        if _is_of_tensorflow(x):
            from keras_bert_impl.preprocessing.graphs import text_rows

            if self._graph is None:
                by_number = bool(named_by_numbers(self.class_names or ()))
                self._graph = text_rows.Graph(self.tokenizer, self.class_names, by_number, self.has_windows)
            how = {"rank": int(self.is_split), "strips": not self.has_windows}
            found = text_rows.of_batches(self._in_graph, x, y, sample_weight, **how)
        else:
            x, y, sample_weight = map(in_memory, (x, y, sample_weight))
            is_one = self._is_one(x)
            if is_one:
                x = tuple([part] for part in x) if isinstance(x, tuple) else [x]
                y, sample_weight = (None if part is None else [part] for part in (y, sample_weight))
            found = self._in_memory(x, self._numbers(y), self._weights(sample_weight))
            found = _first_of(found) if is_one and not self.has_windows else found
        return keras.utils.pack_x_y_sample_weight(*found)

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
            return *parts_of_columns(x, self.columns, self.optional_column, self.targets), None
        if isinstance(x, list) and x and isinstance(x[0], tuple) and not self._are_inputs(x[0]):
            first, *others = zip(*x, strict=True)
            x = (tuple(map(list, zip(*first, strict=True))) if isinstance(first[0], tuple) else list(first), *others)
        if isinstance(x, tuple) and not self._are_inputs(x):
            return (*x, None, None)[:3]
        return x, None, None

    def _are_inputs(self, parts):
        """Whether a tuple holds the inputs, and not inputs beside labels, or beside the names of their classes."""
        if not all(isinstance(part, str | bytes) or _are_strings(part) for part in parts):
            return False
        if not self.class_names or _is_of_tensorflow(parts):
            return True
        second = [parts[1]] if isinstance(parts[1], str | bytes) else in_memory(parts[1])
        return not {*to_strings(second)} <= {*self.class_names}

    def _is_one(self, x):
        """Whether this is one example."""
        first = x[0] if isinstance(x, tuple) else x
        first = first[0] if self.is_split and len(first) else first
        return isinstance(first, str | bytes)

    def _numbers(self, y):
        if y is None or isinstance(y, dict):
            return y
        y = np.asarray(numbers_of_names(y, self.class_names) if self.class_names else y)
        if y.dtype.kind in "OSU":
            raise ValueError(f"The labels are {y.ravel()[:3].tolist()}, but the preprocessor has no class_names.")
        return y

    def _weights(self, sample_weight):
        return None if sample_weight is None else np.asarray(sample_weight)

    def _packed_rows(self, rows):
        self._num_cut += rows.num_cut
        arrays = pack_rows(self.tokenizer, rows.first, rows.second, self.sequence_length, pad_to=self.sequence_length)
        return rows.of_examples(arrays)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TextPreprocessor(Preprocessor):
    """Texts, or pairs as a tuple of two columns, to the inputs of a model.

    Args:
        tokenizer, sequence_length, class_names: see `Preprocessor`.
        truncate: how texts are cut that are too long. Pairs: "longest_first" (KerasHub's "round_robin"), "waterfall" or
            "only_second", see `text.tokenizers.rows.kept_lengths`. "head_and_tail" keeps a quarter of a row from the
            beginning of a single text and the rest from its end (Sun et al. 2019, section 5.3.1).
    """

    arguments = ("sequence_length", "truncate", "class_names")
    optional_column = "text_pair"

    def __init__(self, tokenizer, sequence_length=512, truncate="longest_first", class_names=None):
        super().__init__(tokenizer, sequence_length, class_names)
        if truncate not in TRUNCATE:
            raise ValueError(f"truncate {truncate!r} is unknown; known are {', '.join(TRUNCATE)}.")
        self.truncate = truncate

    def _in_memory(self, x, y, sample_weight):
        first, second = texts_of(x)
        if self.truncate != "head_and_tail" or second is not None:
            ids = ids_from_texts(self.tokenizer, first, second, self.sequence_length, self.truncate)
            return self._packed_rows(Rows(*ids[:2], num_cut=ids[2])), y, sample_weight
        room = self.sequence_length - self.tokenizer.template.num_control(is_pair=False)
        rows = rows_of_long_texts(self.tokenizer.ids_batch(first), room, self.truncate)
        return self._packed_rows(rows), y, sample_weight

    def _in_graph(self, x, y, sample_weight):
        texts = x if isinstance(x, tuple) else (x,)
        rows = self._graph.rows_of_texts(*texts, sequence_length=self.sequence_length, truncate=self.truncate)
        return rows, self._graph.numbers(y), sample_weight


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WordsPreprocessor(Preprocessor):
    """Texts that are split into words, with a label for each word, to the inputs and labels of a TokenClassifier.

    Words are lists of strings, or a RaggedTensor; in a dense one, empty words at the end are padding. The first piece
    of a word has its label, all other tokens have -1. A word that does not fit is lost with all after it.

    Returns: y and sample_weight, if it is of words, are (batch, sequence_length).
    """

    columns, is_split = ("words",), True

    def _are_inputs(self, parts):
        return False

    def _in_memory(self, x, y, sample_weight):
        sentences = to_word_lists(x)
        words, y, sample_weight = (of_words(values, sentences) for values in (sentences, y, sample_weight))
        split = split_words(self.tokenizer, words)
        rows = rows_of_split(split, self.tokenizer.template, self.sequence_length)
        y, sample_weight = of_first_pieces(rows, list(map(len, words)), y, sample_weight, self.class_names)
        return self._packed_rows(rows), y, super()._weights(sample_weight)

    def _numbers(self, y):
        return y  # those of each text, in `_in_memory`

    _weights = _numbers

    def _in_graph(self, x, y, sample_weight):
        return self._graph.rows_of_words(x, y, sample_weight, self.sequence_length)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ChoicePreprocessor(Preprocessor):
    """Texts with equally many endings for each, (texts, endings), to the inputs of a MultipleChoice model.

    Returns: inputs are (batch, choices, sequence_length), a row for each ending; labels are passed through.
    """

    columns, targets = ("text", "endings"), ("label",)

    def _are_inputs(self, parts):
        endings = parts[1]
        if _is_of_tensorflow(endings):
            return _are_strings(endings)
        return isinstance(endings, list | tuple | np.ndarray) and (
            _are_strings(endings) or any(map(_are_strings, endings))
        )

    def _in_memory(self, x, y, sample_weight):
        return self._packed_rows(rows_of_choices(self.tokenizer, *x, self.sequence_length)), y, sample_weight

    def _in_graph(self, x, y, sample_weight):
        return self._graph.rows_of_choices(*x, sequence_length=self.sequence_length), y, sample_weight


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class QuestionPreprocessor(Preprocessor):
    """Questions with contexts of any length, (questions, contexts), to windows (Devlin et al. 2019, section 4.2).

    Labels are answers, (text, first character) or SQuAD's dicts of `text` and `answer_start`, of which the first is
    taken; None or an empty list if the context has none. In a graph they are the dicts alone, and each call is on one
    example: `dataset.map(preprocessor).unbatch().batch(32)`.

    Args:
        tokenizer, sequence_length: see `Preprocessor`.
        stride: tokens from the beginning of one window to that of the next; at most half of a row.

    Returns: inputs (windows, sequence_length), and labels (windows, 2): the positions of the answer's first and last
        token, those of [CLS] in a window that does not hold it. A weight is that of each of its question's windows.
    """

    arguments = ("sequence_length", "stride")
    columns, targets = ("question", "context"), ("answers",)
    has_windows = True

    def __init__(self, tokenizer, sequence_length=384, stride=128):
        super().__init__(tokenizer, sequence_length)
        self.stride = stride

    def _numbers(self, y):
        return y  # answers, in `_in_memory`

    def _in_memory(self, x, y, sample_weight):
        rows = question_rows(self.tokenizer, questions_of(*x, y), self.sequence_length, self.stride)
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)[np.array(rows.source.question)]
        return self._packed_rows(rows), None if y is None else rows.labels, sample_weight

    def _in_graph(self, x, y, sample_weight):
        if tuple(x[0].shape) != (1,):
            raise ValueError(
                "In a graph questions are mapped one by one: dataset.map(preprocessor).unbatch().batch(32)."
            )
        length, stride = self.sequence_length, min(self.stride, self.sequence_length // 2)
        answers = None if y is None else {name: y[name][0] for name in ("text", "answer_start")}
        return self._graph.rows_of_question(
            x[0][0], x[1][0], answers, sample_weight, length, stride, longest_question(length)
        )


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Masking:
    """Chooses tokens of rows to predict and hides most of them, anew in each call (Liu et al. 2019, section 4.1).

    Args: see `text.rows.masking.MaskingRule`.
        tokenizer: of the rows.
        predictions_per_sequence: None for `masking_rate` of the row's length, rounded up.
        seed: of the masks. Call number N of an object masks as with `epoch=N`; of several parallel calls of `tf.data`
            it is not certain which comes first.
        unit: "token", "whole_word", "span", "ngram", "context_span" or "phrase".
        masking_rate, mask_token_rate, random_token_rate: 0.15, 0.8 and 0.1, as BERT's.

    Call: `masking(rows, epoch=None)` on the inputs of a model, of a batch or of one row.
    Returns: (inputs, mask_ids, mask_weights), inputs with `mask_positions`; each (batch, predictions).
    """

    def __init__(self, tokenizer, predictions_per_sequence=None, seed=0, **options):
        self.rule = MaskingRule(tokenizer, predictions_per_sequence, seed, **options)
        self._calls, self._graph_calls = 0, None

    def __call__(self, rows, *, epoch=None):
        if _is_of_tensorflow(rows):
            from keras_bert_impl.preprocessing.graphs import text_rows

            if epoch is None:
                self._graph_calls = self._graph_calls or text_rows.Counter()
                epoch = self._graph_calls.next()
            return text_rows.of_batches(lambda x, *_: self.masked(x, epoch, text_rows.arrays), rows, rank=1)
        if epoch is None:
            epoch, self._calls = self._calls, self._calls + 1
        if rows["token_ids"].ndim == 1:
            return _first_of(self.masked({name: array[None] for name, array in rows.items()}, epoch))
        return self.masked(rows, epoch)

    def get_config(self):
        options = {field.name: getattr(self.rule, field.name) for field in dataclasses.fields(self.rule)}
        return {**options, "tokenizer": tokenizer_to_config(self.rule.tokenizer)}

    from_config = classmethod(Preprocessor.from_config.__func__)

    def __getstate__(self):
        return {**self.__dict__, "_graph_calls": None}

    def masked(self, rows, epoch, arrays=numpy_arrays, numbers=None):
        """A batch masked; `numbers` (batch,) are those of its rows, on which the masks depend, if not 0, 1, ..."""
        if numbers is None:
            numbers = arrays.cast(arrays.arange(arrays.shape(rows["token_ids"])[0]), arrays.int64)
        masked = self.rule.mask({**rows, "example_index": numbers}, epoch, arrays)
        return {name: masked[name] for name in (*rows, "mask_positions")}, masked["mask_ids"], masked["mask_weights"]


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MaskedLMPreprocessor(TextPreprocessor):
    """Texts or pairs to rows with masks, new ones in each call: what `MaskedLM` is trained on.

    Args:
        tokenizer, sequence_length, truncate: see `TextPreprocessor`.
        masking: arguments of `Masking` by name.

    Returns: (inputs, mask_ids, mask_weights), inputs with `mask_positions`.
    """

    arguments, targets = ("sequence_length", "truncate"), ()

    def __init__(self, tokenizer, sequence_length=512, truncate="longest_first", **masking):
        super().__init__(tokenizer, sequence_length, truncate)
        self.masking = Masking(tokenizer, **masking)

    def get_config(self):
        return {**self.masking.get_config(), **super().get_config()}

    def _in_memory(self, x, y, sample_weight):
        return self.masking(super()._in_memory(x, y, sample_weight)[0])

    def _in_graph(self, x, y, sample_weight):
        return self.masking(super()._in_graph(x, y, sample_weight)[0])


def _first_of(parts):
    return keras.tree.map_structure(lambda part: part if part is None else part[0], parts)


def _is_of_tensorflow(x):
    while isinstance(x, list | tuple | collections.abc.Mapping) and len(x):
        x = next(iter(x.values() if isinstance(x, collections.abc.Mapping) else x))
    return type(x).__module__.startswith("tensorflow.")


def _are_strings(part):
    if _is_of_tensorflow(part):
        return part.dtype.name == "string"
    return is_texts(part)
