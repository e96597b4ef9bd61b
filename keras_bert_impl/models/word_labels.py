"""`fit` on labelled words and on texts with marked entities; `tag`, which labels words and finds entities."""

import numpy as np

from keras_bert_impl.batching import Rows, predict_rows
from keras_bert_impl.distribution import in_scope_of_model
from keras_bert_impl.models.answers import Label, softmax
from keras_bert_impl.models.task_model import ClassesModel
from keras_bert_impl.preprocessing import WordsPreprocessor, fit_inputs
from keras_bert_impl.preprocessing.entities import entities_of
from keras_bert_impl.preprocessing.labelled_words import rule_of_classes, split_texts, split_words
from keras_bert_impl.preprocessing.long_texts import windows_of
from keras_bert_impl.preprocessing.texts import is_word_lists, to_strings, to_word_lists
from keras_bert_impl.suggestions import one_of
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.tokenizers.rows import best_windows

AGGREGATIONS = ("first", "average", "max")


class WordLabelsModel(ClassesModel):
    """`fit` on words with labels and on texts with marked characters, and `tag`, for models with an output for each
    token and with `class_names`.

    Texts are lists of words, with a label each, a name or a number; or strings, with a list of (start, end, label) for
    each, in characters. The first piece of a word is trained and, by default, predicted; the others have no label.
    """

    preprocessor_class = WordsPreprocessor
    label_kind = "token"

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
        one_of("aggregation", aggregation, AGGREGATIONS)
        if isinstance(texts, tuple) and is_word_lists(list(texts)):
            texts = list(texts)
        if is_word_lists(texts):
            texts = to_word_lists(texts)
            split, texts = split_words(self.tokenizer, texts), None
            return [
                [Label(self.class_names[number], score) for number, score in zip(*words, strict=True)]
                for words in self._labelled_words(split, aggregation, batch_size)
            ]
        is_one = isinstance(texts, str)
        texts = to_strings([texts] if is_one else texts)
        split = split_texts(self.tokenizer, texts)
        found = []
        for text, of_text, (numbers, scores) in zip(
            texts, split, self._labelled_words(split, aggregation, batch_size), strict=True
        ):
            labels = [self.class_names[number] for number in numbers]
            found.append(entities_of(text, of_text.spans, labels, scores, self.class_names))
        return found[0] if is_one else found

    def _labelled_words(self, split, aggregation, batch_size):
        """For each SplitText the numbers of the classes of its words and their probabilities, two lists."""
        template = self.tokenizer.template
        room, first = self.sequence_length - template.num_control(is_pair=False), len(template.before)
        begins, windows = windows_of([text.ids for text in split], room)
        logits = iter(predict_rows(self, fit_inputs.sorted_batches(self, Rows(windows), batch_size)))
        labelled = []
        for text, of_text in zip(split, begins, strict=True):
            probabilities = softmax(_joined([next(logits)[first:] for _ in of_text], len(text.ids), room))
            labelled.append(_of_words(probabilities, text.word, aggregation))
        return labelled

    def preprocessor_arguments(self):
        return {"class_names": self.class_names}

    def label_rule(self, sizes):
        return rule_of_classes(self.class_names)._replace(shape=(len(sizes.tokens), sizes.width))


def _joined(logits, count, room):
    """Logits of the windows of a text, from its first piece on, as one array (pieces, classes): each piece from the
    window that shows it best."""
    best = best_windows(np.arange(count), count, room, numpy_arrays)
    rows = [logits[window][place] for window, place in zip(*best, strict=True)]
    return np.array(rows).reshape(count, logits[0].shape[-1])


def _of_words(probabilities, word, aggregation):
    """The classes of words and their probabilities, as two lists, from those of pieces, (pieces, classes), and the
    number of each piece's word."""
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
