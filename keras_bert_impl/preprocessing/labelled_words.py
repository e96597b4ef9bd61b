"""Words with a label each, and texts with marked entities, as rows of pieces.

Each word is tokenized by itself, or found in a text, and its first piece stands for it.
"""

import typing

import keras
import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.preprocessing.entities import labels_of_spans
from keras_bert_impl.preprocessing.labels import LabelRule, Positions, checked_word_labels
from keras_bert_impl.preprocessing.preprocessors import Preprocessor
from keras_bert_impl.preprocessing.texts import is_text_input, is_texts, is_word_lists, to_strings, to_word_lists
from keras_bert_impl.text.tokenizers.words import end_with_marks, stripped_span

IGNORED = -1  # marks a position that is not the first piece of a word


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WordsPreprocessor(Preprocessor):
    """Makes a `TokenClassifier`'s inputs and labels from lists of words, with a label for each word.

    Words are lists of str, or a RaggedTensor; in a dense tensor, empty words at the end are padding. The first token of
    a word has its label, all other tokens have -1. The first word that does not fit, and all after it, are dropped.

    Args:
        tokenizer (Tokenizer): tokenizer.
        sequence_length (int, optional): length that every text is truncated or padded to. Default: 512.
        class_names (list of str, optional): the classes that labels name. Default: None, labels are numbers.

    Returns: inputs, y and sample_weight; y, and sample_weight if it is given for words, are (batch, sequence_length).

    Example:
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> preprocessor = kbi.preprocessing.WordsPreprocessor(tokenizer, 8, class_names=["O", "PER"])
        >>> inputs, labels = preprocessor([["Ada", "sings"]], [["PER", "O"]])
        >>> labels.tolist()
        [[-1, 1, -1, 0, -1, -1, -1, -1]]
    """

    columns, is_split = ("words",), True

    def _are_inputs(self, parts):
        return False

    def takes(self, x):
        return is_text_input(x) or is_word_lists(x)

    def sentences(self, x, y=None):
        return list(x) if are_sentences(x, y) else x

    def rows(self, x, y=None, sample_weight=None, check=None):
        """As of every preprocessor; of texts in memory, too, with marked characters or a label for each token."""
        if not isinstance(x, tuple) and any(isinstance(words, list | np.ndarray) for words in x):
            words = to_word_lists(x)
            words, y, sample_weight = (of_words(values, words) for values in (words, y, sample_weight))
            split, counts = split_words(self.tokenizer, words), list(map(len, words))
        elif is_texts(x) and are_spans(y):
            texts = to_strings(x)
            split = split_texts(self.tokenizer, texts)
            y = [
                labels_of_spans(row, text, of_text.spans, spans_of(of_row), self.class_names)
                for row, (text, of_text, of_row) in enumerate(zip(texts, split, y, strict=True))
            ]
            counts = [len(of_text.spans) for of_text in split]
        else:
            split, rows = None, self.unlabelled(x)
        if split is not None:
            pieces = rows_of_pieces(split, self.tokenizer.template, self.sequence_length)
            rows = Rows(pieces.ids, source=pieces, num_cut=pieces.num_cut)
            y, sample_weight = of_first_pieces(pieces, counts, y, sample_weight, self.class_names)
            y = None if y is None else y.view(Positions)
        rows.labels, rows.weights = (check or self.named)(self.sizes(rows), y, sample_weight)
        rows.per_token = True
        return rows

    def _in_graph(self, x, y, sample_weight):
        return self._graph.rows_of_words(x, y, sample_weight, self.sequence_length)


def of_first_pieces(pieces, counts, labels, weights=None, class_names=None):
    """Labels and weights of words as those of the words' first pieces, (texts, sequence_length); weights of texts stay.

    `pieces` are those of the rows, `counts` the words of each text; without `class_names` labels are numbers.
    """
    words = np.stack(pieces.words)  # (texts, sequence_length)

    def of_pieces(values, name, otherwise, rule=None):
        values = checked_word_labels(values, name, counts, rule)
        values = np.pad(values, ((0, 0), (0, 1)), constant_values=otherwise)  # what IGNORED, -1, takes
        return np.take_along_axis(values, words, axis=1)

    if labels is not None:
        rule = rule_of_classes(class_names) if class_names else None
        labels = of_pieces(labels, "labels", NO_LABEL[0], rule)
    if weights is not None and np.ndim(weights[0]):
        weights = of_pieces(weights, "sample_weight", 0)
    return labels, weights


def rule_of_classes(class_names):
    """The LabelRule of a class for each word or token, of any number of them."""
    meaning = "the number or the name of the class of its token, or -1 for none"
    return LabelRule((), len(class_names), meaning, per_token=True, names=tuple(class_names))


def are_sentences(x, labels=None):
    """Whether a tuple holds sentences in words, as `zip` gives them. Of two that are equally long, which could be
    columns of texts, they are if there is a label for each word."""
    if not isinstance(x, tuple) or not is_word_lists(list(x)):
        return False
    lengths = list(map(len, x))
    if len(x) != 2 or lengths[0] != lengths[1]:
        return True
    return labels is not None and [len(row) if hasattr(row, "__len__") else 0 for row in labels] == lengths


def of_words(values, sentences):
    """For each sentence its labels, weights or words without those of empty words, which `padded_batch` fills up with;
    anything else as it is."""
    if values is None or not any("" in words for words in sentences) or len(values) != len(sentences):
        return values
    return [
        [value for value, word in zip(row, words, strict=True) if word] if np.shape(row)[:1] == (len(words),) else row
        for row, words in zip(values, sentences, strict=True)
    ]


def spans_of(row):
    """The marked characters of a text, which spaCy has in a dict."""
    return row.get("entities", row) if isinstance(row, dict) else row


def are_spans(labels):
    """Whether labels are lists of marked characters: (start, end, label), or dicts of them; or, as spaCy's, dicts with
    such a list as `entities`."""
    if not isinstance(labels, list | tuple):
        return False
    labels = map(spans_of, labels)
    rows = [row for row in labels if not isinstance(row, list | tuple) or len(row)]
    return all(isinstance(row, list | tuple) and isinstance(row[0], tuple | list | dict) for row in rows)


class Pieces(typing.NamedTuple):
    """Rows of pieces, one for each sentence.

    Fields:
        ids: the pieces of each row, without control tokens.
        words: for each position of the row, counted with control tokens, the number of the word that begins there, or
            IGNORED; int arrays (sequence_length,).
        lost: how many words did not fit into their row.
        num_cut: how many rows lost words.
    """

    ids: list
    words: list
    lost: int
    num_cut: int


class SplitText(typing.NamedTuple):
    """A text of any length, cut into pieces.

    Fields:
        ids: the pieces, without control tokens.
        word: for each piece the number of its word, int (pieces,).
        spans: the first character of each word in the text, and the one after its last, int (words, 2); None for words
            that were given one by one.
    """

    ids: list
    word: np.ndarray
    spans: np.ndarray | None = None


def split_words(tokenizer, sentences):
    """The SplitText of each list of words.

    A word that the tokenizer removes completely, like a lone U+200D, becomes the unknown token.
    """
    split = []
    for pieces in tokenizer.ids_of_words(sentences):
        word = np.repeat(np.arange(len(pieces)), [len(of_word) for of_word in pieces])
        split.append(SplitText([piece for of_word in pieces for piece in of_word], word))
    return split


def split_texts(tokenizer, texts):
    """The SplitText of each text, whose words are what BERT's tokenizer splits before it cuts words into pieces: they
    end at white space and before and after each punctuation mark; see `Tokenizer.word_numbers`."""
    split = []
    for text, encoding in zip(texts, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
        offsets = np.array(encoding.offsets, "int32").reshape(-1, 2)
        numbers = tokenizer.word_numbers(text, encoding)
        _, first, word = np.unique(numbers, return_index=True, return_inverse=True)
        last = np.append(first[1:], len(offsets))[: len(first)] - 1
        ends = [end_with_marks(text, end) for end in offsets[last, 1].tolist()]
        spans = [stripped_span(text, *span) for span in zip(offsets[first, 0], ends, strict=True)]
        split.append(SplitText(encoding.ids, word, np.array(spans, "int32").reshape(-1, 2)))
    return split


def rows_of_pieces(split, template, sequence_length, documents=None):
    """The Pieces of split texts. A word that does not fit into its row as a whole is lost, with all that follow it.

    Args:
        split: list of SplitText.
        template: the RowTemplate of the tokenizer.
        sequence_length: length of the longest row, with control tokens.
        documents: None, or the number of the document that each text belongs to: then each row is filled with
            neighbouring texts of its document, equally on both sides; "the maximal document context provided by the
            data" (Devlin et al. 2019, section 5.3). Only the text's own words are predicted.
    """
    room = sequence_length - template.num_control(is_pair=False)
    rows, places, lost, num_cut = [], [], 0, 0
    for number, text in enumerate(split):
        kept = len(text.ids)
        if kept > room:
            kept = int(np.searchsorted(text.word, text.word[room]))  # up to the first word that does not fit
            lost += int(text.word[-1] + 1 - text.word[room])
            num_cut += 1
        own = text.ids[:kept]
        before, after = ([], []) if documents is None else _context(split, documents, number, room - kept)
        rows.append([*before, *own, *after])
        place = np.full(sequence_length, IGNORED, "int32")
        numbers, first = np.unique(text.word[:kept], return_index=True)
        place[len(template.before) + len(before) + first] = numbers
        places.append(place)
    return Pieces(rows, places, lost, num_cut)


def _context(split, documents, number, room):
    """Pieces of the same document before and after a text: half of `room` on each side, or what the other side
    leaves."""

    def collect(numbers):
        found, count = [], 0
        for other in numbers:
            if documents[other] != documents[number] or count >= room:
                break
            found.append(split[other].ids)
            count += len(found[-1])
        return found

    before = [piece for part in reversed(collect(range(number - 1, -1, -1))) for piece in part]
    after = [piece for part in collect(range(number + 1, len(split))) for piece in part]
    keep_before = min(len(before), max(room // 2, room - len(after)))
    keep_after = min(len(after), room - keep_before)
    return before[len(before) - keep_before :], after[:keep_after]
