"""`fit` on labelled words and on texts with marked entities; `tag`, which labels words and finds entities."""

import numpy as np

from keras_bert_impl.batching import Rows, SortedBatches, predict_rows
from keras_bert_impl.distribution import in_scope_of_model
from keras_bert_impl.losses import NO_LABEL, LabelledAccuracy
from keras_bert_impl.models.answers import Label, softmax
from keras_bert_impl.models.entities import entities_of, labels_of_spans
from keras_bert_impl.models.labels import LabelRule, Positions, checked_word_labels, require_labels, sizes_of_texts
from keras_bert_impl.models.raw_text import RawTextMixin
from keras_bert_impl.models.text_inputs import is_texts, is_word_lists, to_strings, to_word_lists
from keras_bert_impl.models.windows import best_windows, windows_of
from keras_bert_impl.models.word_rows import IGNORED, rows_of_pieces, split_texts, split_words
from keras_bert_impl.tokenizers.rows import warn_of_cut

AGGREGATIONS = ("first", "average", "max")


class WordLabelsMixin(RawTextMixin):
    """`fit` on words with labels and on texts with marked characters, and `tag`, for models with an output for each
    token and with `class_names`.

    Texts are lists of words, with a label each, a name or a number; or strings, with a list of (start, end, label) for
    each, in characters. The first piece of a word is trained and, by default, predicted; the others have no label.
    """

    def compile(
        self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None, weighted_metrics=None, **arguments
    ):
        """`keras.Model.compile`, where "accuracy" is that of the tokens that have a label: Keras' own would count
        padding and the further pieces of words as wrong."""
        if self._takes_class_numbers(loss):
            metrics, weighted_metrics = _of_labelled(metrics), _of_labelled(weighted_metrics)
        super().compile(optimizer, loss, loss_weights, metrics, weighted_metrics, **arguments)

    @in_scope_of_model
    def tag(self, texts, aggregation="first", batch_size=32):
        """The entities in texts, or the labels of words.

        A text is divided at white space and before and after each punctuation mark, as BERT's tokenizer does it, unless
        a piece of another tokenizer joins what stands there. A text
        that is longer than a row is computed in windows that overlap by half; the label of each piece is taken from the
        window that shows it with the most context.

        Args:
            texts: a text, or several; or lists of words.
            aggregation: how a word of several pieces gets its label: "first", from its first piece, as BERT is trained;
                "average", by the highest mean probability over its pieces; "max", from its most certain piece.
            batch_size: how many rows are computed at once.

        Returns: for a text the list of its `entities.Entity`, in order, each with `text`, `label`, `score` (the mean
            probability of its words), and `start` and `end`, its characters: neighbouring words are joined as their
            labels say (IOB1, IOB2, IOBES, BILOU; without prefixes, equal ones, unless there is no label "O"). For
            lists of words a list of Label (`label`, `probability`) for each list, one for each word. A list of strings
            is several texts: the words of one text are `[words]`.
        Raises: ValueError for an unknown aggregation.
        """
        if aggregation not in AGGREGATIONS:
            raise ValueError(f"aggregation {aggregation!r} is unknown; known are {', '.join(AGGREGATIONS)}.")
        if is_word_lists(texts):
            split, texts = split_words(self._require_tokenizer(), to_word_lists(texts)), None
            return [
                [Label(self.class_names[number], score) for number, score in zip(*words, strict=True)]
                for words in self._labelled_words(split, aggregation, batch_size)
            ]
        is_one = isinstance(texts, str)
        texts = to_strings([texts] if is_one else texts)
        split = split_texts(self._require_tokenizer(), texts)
        found = []
        for text, of_text, (numbers, scores) in zip(
            texts, split, self._labelled_words(split, aggregation, batch_size), strict=True
        ):
            labels = [self.class_names[number] for number in numbers]
            found.append(entities_of(text, of_text.spans, labels, scores, self.class_names))
        return found[0] if is_one else found

    def _labelled_words(self, split, aggregation, batch_size):
        """For each SplitText the numbers of the classes of its words and their probabilities, two lists."""
        room = self.sequence_length - 2
        begins, windows = windows_of([text.ids for text in split], room)
        batches = SortedBatches(
            self.tokenizer, Rows(windows), batch_size, self.sequence_length, multiple=self._length_multiple
        )
        logits = iter(predict_rows(self, batches))
        labelled = []
        for text, of_text in zip(split, begins, strict=True):
            probabilities = softmax(_joined([next(logits) for _ in of_text], of_text, len(text.ids), room))
            labelled.append(_of_words(probabilities, text.word, aggregation))
        return labelled

    def _is_text_input(self, x):
        return super()._is_text_input(x) or is_word_lists(x)

    def _rows_of(self, texts):
        if not is_word_lists(texts):
            return super()._rows_of(texts)
        return self._rows_of_split(split_words(self._require_tokenizer(), to_word_lists(texts)))

    def label_rule(self, sizes):
        return rule_of_classes(self.class_names)._replace(shape=(len(sizes.tokens), sizes.width))

    def _rows_of_split(self, split):
        pieces = rows_of_pieces(split, self.sequence_length)
        return Rows(pieces.ids, source=pieces, num_cut=pieces.num_cut)

    def _labelled_rows(self, texts, labels, weights):
        """Labels of words, or marked characters, become labels of first pieces."""
        if is_word_lists(texts):
            words = to_word_lists(texts)
            split, counts = split_words(self._require_tokenizer(), words), list(map(len, words))
        elif is_texts(texts) and are_spans(labels):
            texts = to_strings(texts)
            split = split_texts(self._require_tokenizer(), texts)
            labels = self._labels_of_spans(texts, split, labels)
            counts = [len(of_text.spans) for of_text in split]
        else:
            return super()._labelled_rows(texts, labels, weights)
        rows = self._rows_of_split(split)
        warn_of_cut(rows.num_cut, len(counts), self.sequence_length)
        rule = rule_of_classes(self.class_names)
        require_labels(labels, len(counts), rule, "word")
        numbers = checked_word_labels(labels, "labels", counts, rule)
        if weights is not None and np.ndim(weights[0]):
            weights = checked_word_labels(weights, "sample_weight", counts)
        return self._label_first_pieces(rows, numbers, weights)

    def _are_in_words(self, texts, labels):
        return is_word_lists(texts) or are_spans(labels)

    def _labels_of_spans(self, texts, split, spans):
        """A label for each word of each text from marked characters."""
        if len(spans) != len(texts):
            raise ValueError(f"{len(texts):,} texts but {len(spans):,} lists of spans: give [] for a text without any.")
        return [
            labels_of_spans(row, text, of_text.spans, of_row, self.class_names)
            for row, (text, of_text, of_row) in enumerate(zip(texts, split, spans, strict=True))
        ]

    def _label_first_pieces(self, rows, numbers, weights):
        """Labels and weights of words, (texts, words), become those of the pieces in `rows`."""
        words = np.stack(rows.source.words)  # (texts, length)
        is_first = words != IGNORED

        def of_pieces(values, otherwise):
            return np.where(is_first, np.take_along_axis(values, np.maximum(words, 0), axis=1), otherwise)

        if weights is not None and np.ndim(weights) > 1:
            weights = of_pieces(weights, 0)
        sizes = sizes_of_texts(rows, self.tokenizer.template, self.sequence_length)
        positions = of_pieces(numbers, NO_LABEL[0]).view(Positions)
        rows.labels, rows.weights = self._checked_against(sizes, positions, weights)
        rows.per_token = True
        return rows


def rule_of_classes(class_names):
    """The LabelRule of a class for each word or token, of any number of them."""
    meaning = "the number or the name of the class of its token, or -1 for none"
    return LabelRule((), len(class_names), meaning, per_token=True, names=tuple(class_names))


def are_spans(labels):
    """Whether labels are lists of marked characters: (start, end, label), or dicts of them."""
    if not isinstance(labels, list | tuple):
        return False
    rows = [row for row in labels if not isinstance(row, list | tuple) or len(row)]
    return all(isinstance(row, list | tuple) and isinstance(row[0], tuple | list | dict) for row in rows)


def _of_labelled(metrics):
    """The metrics of `compile` with LabelledAccuracy for "accuracy"."""
    if isinstance(metrics, list | tuple):
        return [_of_labelled(metric) for metric in metrics]
    return LabelledAccuracy() if metrics in ("accuracy", "acc") else metrics


def _joined(logits, begins, count, room):
    """Logits of the windows of a text as one array (pieces, classes): each piece from the window that shows it best."""
    best = best_windows(count, begins, room)
    rows = [logits[window][1 + piece - begins[window]] for piece, window in enumerate(best)]  # behind [CLS]
    return np.array(rows).reshape(count, logits[0].shape[-1])


def _of_words(probabilities, word, aggregation):
    """The classes of words and their probabilities, as two lists.

    Args:
        probabilities: (pieces, classes).
        word: for each piece the number of its word, (pieces,).
        aggregation: one of AGGREGATIONS.
    """
    _, first, counts = np.unique(word, return_index=True, return_counts=True)
    if aggregation == "first":
        chosen = probabilities[first]
    elif aggregation == "average":
        chosen = np.add.reduceat(probabilities, first, axis=0) / counts[:, None] if len(first) else probabilities
    else:
        surest = [
            start + probabilities[start : start + count].max(axis=1).argmax()
            for start, count in zip(first, counts, strict=True)
        ]
        chosen = probabilities[surest] if surest else probabilities
    return chosen.argmax(axis=1).tolist(), chosen.max(axis=1).tolist() if len(chosen) else []
