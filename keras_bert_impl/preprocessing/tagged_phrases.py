"""Marks the phrases that a tagger has found at certain characters, the `spans` of documents, in the ids of their text.

A span becomes whole words, since a phrase is masked with all pieces of its words. Ids stay those of the text.
"""

import bisect
import collections
import itertools

import numpy as np

from keras_bert_impl.preprocessing.phrases import MARK
from keras_bert_impl.preprocessing.ragged import Ragged

# What becomes of a span: it is marked, after being extended to whole words or as it is, or left out.
OUTCOMES = ("marked", "extended", "overlapping", "across_sentences", "without_tokens")


def mark_spans(tokenizer, documents, ids):
    """Marks the phrases of documents.

    Args:
        tokenizer: a WordPieceTokenizer.
        documents: list of `corpora.Document`.
        ids: theirs, `Ragged` (documents, sentences, tokens).

    Returns: the ids, with MARK added to those that go on with a phrase, and a Counter of the spans by OUTCOMES.
    Raises: RuntimeError if the ids of a sentence are not those that the tokenizer gives it now.
    """
    sentences, found, places, first = ids.values, collections.Counter(), [], 0
    for document in documents:
        inner, crossing = spans_of_sentences(document)
        found["across_sentences"] += crossing
        places += [(first + number, document.sentences[number], spans) for number, spans in inner.items()]
        first += len(document.sentences)
    marked, starts = sentences.values.astype(np.int32), sentences.offsets.tolist()
    encodings = tokenizer.encode_batch([text for _, text, _ in places], add_special_tokens=False)
    for (number, text, spans), encoding in zip(places, encodings, strict=True):
        row = marked[starts[number] : starts[number + 1]]
        if encoding.ids != row.tolist():
            raise RuntimeError(f"The tokenizer gives other ids than those in which phrases are to be marked: {text!r}.")
        words = tokenizer.word_numbers(text, encoding)
        pieces = [pieces_of_span(np.array(encoding.offsets).reshape(-1, 2), words, span) for span in spans]
        found += mark_pieces(row, pieces)
    return Ragged(Ragged(marked, sentences.lengths), ids.lengths), +found


def spans_of_sentences(document):
    """The spans of a document within one sentence: dict of its number to (start, end) in its characters; and how many
    others there are."""
    starts = list(itertools.accumulate((len(sentence) + 1 for sentence in document.sentences), initial=0))
    inner, crossing = collections.defaultdict(list), 0
    for start, end in document.spans:
        number = bisect.bisect_right(starts, start) - 1
        if end < starts[number + 1]:
            inner[number].append((start - starts[number], end - starts[number]))
        else:
            crossing += 1
    return inner, crossing


def pieces_of_span(offsets, words, span):
    """The pieces of all words that a span has a part of: (first, end, whether it was extended); None without any.

    Args:
        offsets: of the pieces of the sentence, in characters, ascending: (pieces, 2).
        words: the number of the word of each piece, ascending: (pieces,).
        span: (start, end) in characters.
    """
    start, end = span
    first, after = np.searchsorted(offsets[:, 1], start, "right"), np.searchsorted(offsets[:, 0], end)
    if first >= after:
        return None
    first, after = np.searchsorted(words, words[first]), np.searchsorted(words, words[after - 1], "right")
    return int(first), int(after), bool(offsets[first, 0] < start or offsets[after - 1, 1] > end)


def mark_pieces(row, pieces):
    """Marks phrases in the ids of a sentence: of those that overlap, the longest, and of equal ones the first.

    Args:
        row: ids (tokens,), changed in place.
        pieces: list of what `pieces_of_span` returns.

    Returns: a Counter of OUTCOMES.
    """
    found, is_taken = collections.Counter(without_tokens=pieces.count(None)), np.zeros(len(row), bool)
    inside = [phrase for phrase in pieces if phrase is not None]
    for first, after, is_extended in sorted(inside, key=lambda phrase: (phrase[0] - phrase[1], phrase[0])):
        if is_taken[first:after].any():
            found["overlapping"] += 1
            continue
        is_taken[first:after] = True
        row[first + 1 : after] |= MARK
        found["marked"] += 1
        found["extended"] += is_extended
    return found
