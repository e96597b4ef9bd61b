"""Phrases and entities that the user names, which `--masking_unit phrase` masks whole, as ERNIE does (Sun et al. 2019,
section 3.2); a list of Chinese words is whole-word masking of Chinese (Cui et al. 2019).

From the text to its rows, the id of a token that goes on with the phrase of the token before it is marked by a bit.
Rows have the marks as an array of their own, so that masks are drawn again in every epoch.
"""

import collections
import pathlib

import numpy as np

from keras_bert_impl.text.corpora.numbered_lines import text_lines
from keras_bert_impl.text.ragged import Ragged

MARK_BITS = 24  # above every id: no vocabulary has more than 2**24 words, see `encoder_config.LARGEST_SIZE`
MARK = 1 << MARK_BITS
MARKS = "phrase_continuations"  # 1 for a marked token; the name in rows and in files
FILE = "phrases.txt"  # in the directory of a run


def read_phrases(path):
    """The phrases of a UTF-8 file, one a line.

    Raises: ValueError if there is none, or a line is not UTF-8.
    """
    phrases = [" ".join(line.split()) for line in text_lines(pathlib.Path(path)) if line.strip()]
    if not phrases:
        raise ValueError(f"{path} contains no phrases: expected one phrase a line.")
    return phrases


class PhraseFinder:
    """Finds phrases in ids: at each place the longest, from left to right, and only whole words.

    A phrase is compared by its ids, so it is lower-cased as the text is. One that has a word unknown to the vocabulary
    is never found.

    Args:
        tokenizer: a WordPieceTokenizer, whose ids do not depend on what stands before a word.
        phrases: list of strings.

    Attributes: `unknown`: the numbers of the phrases with an unknown word; `empty`: of those that have no ids.
    """

    def __init__(self, tokenizer, phrases):
        rows = list(map(tuple, tokenizer.ids_batch(phrases)))
        self.unknown = [number for number, ids in enumerate(rows) if tokenizer.unk_id in ids]
        self.empty = [number for number, ids in enumerate(rows) if not ids]
        self.is_continuation = np.array(tokenizer.is_continuation)
        unknown = {rows[number] for number in self.unknown}
        # The first of several spellings stands for all of them.
        self.numbers = {ids: number for number, ids in reversed(list(enumerate(rows))) if ids and ids not in unknown}
        self.same = [self.numbers.get(ids) for ids in rows]
        long_ones = [ids for ids in self.numbers if len(ids) > 1]
        lengths = collections.defaultdict(set)
        for ids in long_ones:
            lengths[ids[0] << MARK_BITS | ids[1]].add(len(ids))
        self.lengths = {pair: sorted(found, reverse=True) for pair, found in lengths.items()}
        self.pairs = np.array(sorted(self.lengths), np.int64)
        self.words = np.array(sorted(ids[0] for ids in self.numbers if len(ids) == 1), np.int64)

    def mark(self, documents):
        """Marks the phrases of documents, `Ragged` (documents, sentences, tokens) of ids.

        Returns: the documents, with MARK added to the ids that go on with a phrase, and a Counter of the places at
            which each phrase was found, by its number. A phrase lies within a sentence.
        """
        sentences = documents.values
        ids, ends = sentences.values.astype(np.int64), np.repeat(sentences.offsets[1:], sentences.lengths)
        is_start = np.append(~self.is_continuation[ids], True)
        is_start[sentences.offsets] = True
        marked, found = sentences.values.astype(np.int32), collections.Counter()
        tokens, ends, starts = ids.tolist(), ends.tolist(), is_start.tolist()
        pairs = ids[:-1] << MARK_BITS | ids[1:]  # a phrase begins with a piece that begins a word
        places, free = np.flatnonzero(np.isin(pairs, self.pairs)).tolist(), 0
        for place in places:
            if place < free:
                continue
            for length in self.lengths[tokens[place] << MARK_BITS | tokens[place + 1]]:
                end = place + length
                number = self.numbers.get(tuple(tokens[place:end])) if end <= ends[place] and starts[end] else None
                if number is not None:
                    marked[place + 1 : end] |= MARK
                    found[number] += 1
                    free = end
                    break
        # A phrase of one token needs no mark: it is only counted.
        single = ids[is_start[1:] & np.isin(ids, self.words)]
        found.update({self.numbers[(word,)]: count for word, count in collections.Counter(single.tolist()).items()})
        return Ragged(Ragged(marked, sentences.lengths), documents.lengths), found


def with_marks_apart(rows):
    """Rows whose `input_ids`, a `Ragged`, are marked, as rows with plain ids and the marks under the name MARKS."""
    ids, lengths = rows["input_ids"]
    return {**rows, "input_ids": Ragged(ids & (MARK - 1), lengths), MARKS: Ragged(ids >> MARK_BITS, lengths)}
