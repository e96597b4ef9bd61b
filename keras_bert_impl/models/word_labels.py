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
        """Finds the entities in texts, or labels the words of lists of words.

        A text is split at white space and around each punctuation mark, as BERT's tokenizer does, unless a token of
        another tokenizer spans such a boundary. A text above `sequence_length` is computed in windows that overlap by
        half; each token gets its label from the window with the most context around it.

        Args:
            texts (str or list): a text, several texts, or lists of words; `[words]` for the words of one text.
            aggregation (str, optional): how a word of several tokens gets its label. "first" takes its first token, as
                BERT is trained; "average" the highest mean probability; "max" the most certain token. Default: "first".
            batch_size (int, optional): number of windows in a batch. Default: 32.

        Returns: a list of `Entity` (`text`, `label`, `score`, `start`, `end`) for one text, in order; a list of such
            lists for several texts. Neighbouring words are joined as their labels say (IOB1, IOB2, IOBES, BILOU).
            Equal labels without prefixes are joined if the classes include "O". For lists of words, a list for each
            text, with a `Label` (`label`, `probability`) for each word.
        Raises: ValueError for an unknown aggregation, and for an empty word before others.

        Example:
            >>> classes = ["O", "B-LOC"]
            >>> model = kbi.TokenClassifier.from_pretrained("small_english", class_names=classes)
            >>> [labels] = model.tag([["Ada", "lived", "in", "London"]])
            >>> labels
            [Label(label=..., probability=0...), Label(...), Label(...), Label(...)]
        """
        one_of("aggregation", aggregation, AGGREGATIONS)
        if isinstance(texts, tuple) and is_word_lists(list(texts)):
            texts = list(texts)
        if is_word_lists(texts):
            texts = to_word_lists(texts)
            for index, words in enumerate(texts):
                if "" in list(words)[: sum(map(bool, words))]:  # at the end, it is padding
                    raise ValueError(f"text {index} has an empty word, which has no label: leave it out. {words}")
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
        if not split:
            return []
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
