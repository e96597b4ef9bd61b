"""Words as rows of pieces: each word is tokenized by itself, or found in a text, and its first piece stands for it."""

import typing

import numpy as np

from keras_bert_impl.text.tokenizers.words import end_with_marks, stripped_span

IGNORED = -1  # marks a position that is not the first piece of a word


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
