"""What is done with texts that are longer than a row: cut, without their middle, or in windows."""

import numpy as np

from keras_bert_impl.batching import Rows, predict_rows
from keras_bert_impl.models.fit_arguments import weights_of_rows
from keras_bert_impl.models.labels import RowSizes, require_labels
from keras_bert_impl.models.raw_text import RawTextMixin
from keras_bert_impl.models.text_inputs import is_texts, to_strings
from keras_bert_impl.models.windows import windows_of
from keras_bert_impl.tokenizers.rows import encode_texts

LONG_TEXTS = ("cut", "head_and_tail", "windows")


class LongTextsMixin(RawTextMixin):
    """Lets a model of single texts read more of a long text than fits into a row, as its `long_texts` says.

    "cut" keeps the beginning. "head_and_tail" keeps a quarter of a row from the beginning and the rest from the end of
    the text, the best of Sun et al. 2019, "How to Fine-Tune BERT for Text Classification?", section 5.3.1. "windows"
    computes the whole text in windows that overlap by half: the outputs of a text are the mean of its windows', and in
    training each window is a row with the text's label, whose weight is divided among them. `evaluate` and validation
    are of texts, by their mean outputs, as `predict` gives them. Pairs are always cut.
    """

    def _judged(self, batches):
        """Texts, by the mean outputs of their windows."""
        rows, counts = batches.rows, batches.rows.source
        if self.long_texts != "windows" or counts is None:
            return None
        outputs = self._of_texts(rows, np.stack(predict_rows(self, batches)))
        begins = np.cumsum(counts) - counts
        weights = None if rows.weights is None else rows.weights[begins] * counts  # they were divided among the windows
        return outputs, rows.labels[begins], weights, {}

    def _rows_of(self, texts):
        if self.long_texts == "cut" or not is_texts(texts):
            return super()._rows_of(texts)
        room = self.sequence_length - 2
        ids = encode_texts(self._require_tokenizer(), to_strings(texts))
        if self.long_texts == "head_and_tail":
            return Rows([head_and_tail(one, room) for one in ids], num_cut=sum(len(one) > room for one in ids))
        begins, windows = windows_of(ids, room)
        return Rows(windows, source=np.array(list(map(len, begins))))

    def _labelled_rows(self, texts, labels, weights):
        if self.long_texts != "windows" or not is_texts(texts):
            return super()._labelled_rows(texts, labels, weights)
        rows = self._text_rows(texts)
        counts = rows.source
        sizes = RowSizes(np.ones(len(counts), "int32"), 1)
        require_labels(labels, len(counts), self.label_rule(sizes))
        labels, weights = self._checked_against(sizes, labels, weights)
        owner = np.repeat(np.arange(len(counts)), counts)
        rows.labels = labels[owner]
        if weights is not None or counts.max() > 1:
            rows.weights = (np.ones(len(counts), "float32") if weights is None else weights)[owner] / counts[owner]
        return rows

    def _with_class_weights(self, class_weight, rows):
        if self.long_texts != "windows" or rows.source is None:
            return super()._with_class_weights(class_weight, rows)
        # A text counts once, however many windows it has.
        begins = np.cumsum(rows.source) - rows.source
        of_texts = weights_of_rows(class_weight, rows.labels[begins], None)
        return np.repeat(of_texts, rows.source) * (1 if rows.weights is None else rows.weights)

    def _of_texts(self, rows, outputs):
        if rows.source is None:
            return outputs
        begins = np.cumsum(rows.source) - rows.source
        return np.add.reduceat(outputs, begins, axis=0) / rows.source[:, None]

    def _convert_batch(self, batch, random, pad_to):
        if self.long_texts == "windows" and is_texts(batch if self._is_text_input(batch) else batch[0]):
            raise ValueError(
                "long_texts='windows' needs all texts in memory, since a dataset has one row for each text: pass "
                "lists, or build the model with long_texts='head_and_tail'."
            )
        return super()._convert_batch(batch, random, pad_to)


def checked_long_texts(long_texts):
    """`long_texts`. Raises ValueError if it is none of LONG_TEXTS."""
    if long_texts not in LONG_TEXTS:
        raise ValueError(f"long_texts {long_texts!r} is unknown; known are {', '.join(LONG_TEXTS)}.")
    return long_texts


def head_and_tail(ids, room):
    """At most `room` ids: if there are more, a quarter from the beginning and the rest from the end."""
    head = room // 4
    return ids if len(ids) <= room else [*ids[:head], *ids[len(ids) - (room - head) :]]
