"""CoNLL-style files, with one word and its label per line and blank lines between sentences; sentences as rows of
pieces."""

import collections
import pathlib
import typing

import numpy as np

from keras_bert_impl.tasks.labelled_texts import in_order

IGNORED = -1  # marks a position that is not the first piece of a word


class Sentence(typing.NamedTuple):
    """Words and their labels; `document` numbers the documents of a file."""

    words: list[str]
    labels: list[str]
    document: int


class Pieces(typing.NamedTuple):
    """Rows of pieces, one for each sentence. `ids`: the pieces, without control tokens; `words`: for each position of
    the row, counted with [CLS], the number of the word that begins there, or IGNORED; `lost`: how many words did not
    fit into their row."""

    ids: list[list[int]]
    words: list[np.ndarray]
    lost: int


def read_conll(path, bad_rows):
    """The sentences of a file: the first column is the word, the last the label; -DOCSTART- begins a document.

    Columns are separated by tabs if a line has one, otherwise by spaces; other white space, like U+00A0, belongs to a
    word. A line of only white space ends a sentence (WNUT-17 has some with a tab). Comments are left out: lines that
    begin with #, come before a sentence and do not have the form of the lines with words.

    Args:
        path: the file, UTF-8.
        bad_rows: a BadRows; a line is malformed if it has no label or an empty word. Skipping leaves out the whole
            sentence, since its labels would no longer match its words.

    Raises: ValueError if the file is missing or has no sentence.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f"{path} not found: expected one word and its label per line, blank lines between sentences.")
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line.rstrip("\r") for line in file.read().split("\n")]
    is_comment = _comment_test(lines)
    sentences, words, labels, document, is_sound = [], [], [], 0, True
    for number, line in enumerate([*lines, ""], start=1):
        cells = _cells(line)
        if not line.strip() or cells[0] == "-DOCSTART-":
            if words and is_sound:
                sentences.append(Sentence(words, labels, document))
            words, labels, is_sound = [], [], True
            document += bool(line.strip())
        elif not words and is_sound and is_comment(line):
            continue
        elif len(cells) < 2 or not cells[0] or not cells[-1]:
            bad_rows.add(f"{path} line {number}", f"{len(cells)} columns, expected a word and its label", line)
            is_sound = False
        else:
            words.append(cells[0])
            labels.append(cells[-1])
    if not sentences:
        raise ValueError(f"{path} has no sentence: expected one word and its label per line.")
    return sentences


def _cells(line):
    return line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]


def _comment_test(lines):
    """A function that tells whether a line before a sentence is a comment, judging by the form of the other lines.

    "# id 7 domain=en" is a comment, and so is "#begin document" before rows of eleven columns. "#Obama B-PER" is not a
    comment, nor is the word # with a label that other words have.
    """
    rows = [(("\t" in line), _cells(line)) for line in lines if line.strip() and not line.startswith("#")]
    shapes = collections.Counter((has_tab, len(cells)) for has_tab, cells in rows)
    usual = shapes.most_common(1)[0][0] if shapes else None
    labels = {cells[-1] for _, cells in rows}

    def is_comment(line):
        if not line.startswith("#") or usual is None:
            return False
        cells, has_tab = _cells(line), "\t" in line
        if (has_tab, len(cells)) != usual:
            return True
        return line.startswith("# ") and (has_tab or cells[-1] not in labels)

    return is_comment


def pieces_of(tokenizer, sentences, sequence_length, document_context=False):
    """The Pieces of sentences: each word is tokenized by itself, and its first piece stands for it.

    Args:
        tokenizer: a WordPieceTokenizer.
        sentences: list of Sentence.
        sequence_length: length of the longest row, with [CLS] and [SEP].
        document_context: fill each row with neighbouring sentences of the document, equally on both sides; "the
            maximal document context provided by the data" (Devlin et al. 2019, section 5.3). Only the sentence's own
            words are predicted.

    A word that the tokenizer removes completely, like a lone U+200D, becomes [UNK]. If a sentence is too long for a
    row, its last words are lost; `lost` counts them.
    """
    flat = tokenizer.encode_batch([word for s in sentences for word in s.words], add_special_tokens=False)
    ids = iter([encoding.ids or [tokenizer.unk_id] for encoding in flat])
    cut = [[next(ids) for _ in sentence.words] for sentence in sentences]
    room, rows, places, lost = sequence_length - 2, [], [], 0
    for number, words in enumerate(cut):
        kept = _that_fit(words, room)
        lost += len(words) - len(kept)
        own = [piece for word in kept for piece in word]
        before, after = _context(sentences, cut, number, room - len(own)) if document_context else ([], [])
        rows.append(before + own + after)
        place = np.full(sequence_length, IGNORED, "int32")
        starts = 1 + len(before) + np.cumsum([0, *map(len, kept)])[:-1]
        place[starts.astype(int)] = np.arange(len(kept))
        places.append(place)
    return Pieces(rows, places, lost)


def _that_fit(words, room):
    """The first words, as many as fit into `room` with all their pieces."""
    ends = np.cumsum([len(pieces) for pieces in words])
    return words[: int(np.searchsorted(ends, room, side="right"))]


def _context(sentences, cut, number, room):
    """Pieces of the same document before and after a sentence: half of `room` on each side, or what the other side
    leaves."""
    document = sentences[number].document

    def collect(numbers):
        found, count = [], 0
        for other in numbers:
            if sentences[other].document != document or count >= room:
                break
            found.append([piece for word in cut[other] for piece in word])
            count += len(found[-1])
        return found

    before = [piece for part in reversed(collect(range(number - 1, -1, -1))) for piece in part]
    after = [piece for part in collect(range(number + 1, len(cut))) for piece in part]
    keep_before = min(len(before), max(room // 2, room - len(after)))
    keep_after = min(len(after), room - keep_before)
    return before[len(before) - keep_before :], after[:keep_after]


def label_names(sentences):
    """The labels that occur, "O" first, then as `in_order` sorts them."""
    found = {label for sentence in sentences for label in sentence.labels}
    return [*(["O"] if "O" in found else []), *in_order(found - {"O"})]
