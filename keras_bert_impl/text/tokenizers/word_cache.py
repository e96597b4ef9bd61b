"""WordPiece ids by a cache of words."""

import functools
import itertools
import re
import threading

import numpy as np
from tokenizers import Tokenizer as Pipeline

from keras_bert_impl.text.ragged import Ragged, concatenated, of_lists, take
from keras_bert_impl.text.tokenizers import google_characters

MOST_WORDS, MOST_CHARACTERS = 200_000, 4_000_000  # remembered when a call begins: some 50 MB
# Of printable ASCII: letters and digits together, each mark by itself, and the end of a text.
_WORDS = re.compile(r"[0-9A-Za-z]+|[!-/:-@\[-`{-~\n]")
_END = "\0"  # the end of a text among its words, none of which holds such a character


class WordCache:
    """The ids of texts by a WordPieceTokenizer without added tokens, which may be parts of words.

    What stands between two spaces is looked up, and if it is new divided into words, which are looked up in turn.

    Args:
        tokenizer: provides vocabulary and case.
    """

    def __init__(self, tokenizer):
        self._one_thread = threading.Lock()  # servers tokenize in several threads
        self._lowercase, self._table = tokenizer.lowercase, _Table(tokenizer.lowercase)
        self._model = Pipeline(tokenizer.model)
        longest = google_characters.MAX_CHARACTERS_PER_WORD
        self._vocabulary = {token: index for index, token in enumerate(tokenizer.vocabulary) if len(token) <= longest}
        self._words = _Remembered(self._pieces, ["\n", _END])
        self._between_spaces = _Remembered(self._ids)

    def __call__(self, texts: list[str]) -> Ragged:
        """The ids of texts without [CLS] and [SEP], int32 (texts, tokens)."""
        with self._one_thread:
            _, rows = self._between_spaces(" ".join(texts).split(" ") if len(texts) else [])
        counts = np.fromiter((text.count(" ") + 1 for text in texts), np.int64, len(texts))
        return Ragged(rows.values, np.diff(rows.offsets[np.cumsum(counts)], prepend=0))

    def _ids(self, texts):
        is_plain = np.fromiter(map(str.isascii, texts), bool, len(texts))
        if not google_characters.is_plain("".join(itertools.compress(texts, is_plain))):  # control characters
            is_plain = np.fromiter(map(google_characters.is_plain, texts), bool, len(texts))
        plain, other = np.flatnonzero(is_plain), np.flatnonzero(~is_plain)
        rows = [
            self._ids_of_words(self._plain_words([texts[place] for place in plain])),
            self._ids_of_words(self._other_words([texts[place] for place in other])),
        ]
        return take(concatenated(rows), np.argsort(np.concatenate([plain, other])))

    def _plain_words(self, texts):
        """The words of texts in printable ASCII, with an end behind each text."""
        text = _lines(texts)
        return _WORDS.findall(text.lower() if self._lowercase else text)

    def _other_words(self, texts):
        text = _lines(texts)
        if self._lowercase and "Σ" in text:
            text = _final_sigma().sub(r"\1ς", text)
        return text.translate(self._table).split()

    def _ids_of_words(self, words):
        numbers, rows = self._words(words)
        return Ragged(rows.values, np.diff(np.cumsum(rows.lengths)[numbers < 2], prepend=0))  # both signs for an end

    def _pieces(self, words):
        # A word that the vocabulary holds is its own longest piece, which the library takes longer to say.
        whole = np.fromiter(map(self._vocabulary.get, words, itertools.repeat(-1)), np.int32, len(words))
        known, new = np.flatnonzero(whole >= 0), np.flatnonzero(whole < 0)
        encodings = self._model.encode_batch_fast([words[place] for place in new], add_special_tokens=False)
        cut = of_lists([encoding.ids for encoding in encodings])
        rows = concatenated([Ragged(whole[known], np.ones(len(known), np.int64)), cut])
        return take(rows, np.argsort(np.concatenate([known, new])))


class _Remembered:
    """The ids of strings, of which each is cut once.

    Args:
        cut: function from new strings to their ids, a `Ragged`.
        without_ids: the strings with the first numbers, which have no ids.
    """

    def __init__(self, cut, without_ids=()):
        self._cut, self._without_ids = cut, without_ids
        self._forget()

    def __call__(self, strings):
        """The number of each string, and its ids, int32 `Ragged` (strings, tokens)."""
        if len(self._numbers) > MOST_WORDS or self._characters > MOST_CHARACTERS:
            self._forget()
        numbers = np.fromiter(map(self._numbers.__getitem__, strings), np.int64, len(strings))
        if new := list(itertools.islice(self._numbers, len(self._ids.lengths), None)):
            try:
                self._ids = concatenated([self._ids, self._cut(new)])
            except BaseException:  # a lone surrogate, Ctrl+C: these strings have numbers but no ids
                self._forget()
                raise
            self._characters += sum(map(len, new))
        return numbers, take(self._ids, numbers)

    def _forget(self):
        self._numbers = _Numbers((string, number) for number, string in enumerate(self._without_ids))
        self._ids = Ragged(np.zeros(0, np.int32), np.zeros(len(self._numbers), np.int64))
        self._characters = 0


class _Numbers(dict):
    """A number for each string, in the order in which they are asked for."""

    def __missing__(self, string):
        self[string] = number = len(self)
        return number


class _Table(dict):
    """What `str.translate` makes of a character that is in no other text: Google's cleaning, lower-casing and spaces
    around words of one character. The ends of texts become words."""

    def __init__(self, lowercase):
        super().__init__({ord("\n"): f" {_END} "})
        self._replacements, self._lowercase = google_characters.replacements(lowercase), lowercase

    def __missing__(self, code):
        character = chr(code)
        text = self._replacements.get(character, character)
        if self._lowercase and "가" <= character <= "힣":
            text = google_characters.decompose_hangul(character)
        is_alone = not google_characters.isolated_characters().isdisjoint((character, text))
        self[code] = found = f" {text} " if is_alone else text
        return found


@functools.cache
def _final_sigma():
    cased, ignorable = (
        "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)
        for ranges in (google_characters.CASED, google_characters.CASE_IGNORABLE)
    )
    return re.compile(f"([{cased}][{ignorable}]*)Σ(?=[{ignorable}]*(?:[^{cased}{ignorable}]|$))")


def _lines(texts):
    """Texts with a line end behind each, and none within: that is as any other space."""
    joined = "\n".join([*texts, ""])
    if joined.count("\n") == len(texts):
        return joined
    return "\n".join([*(text.replace("\n", " ") for text in texts), ""])
