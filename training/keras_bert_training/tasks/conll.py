"""CoNLL-style files, with one word and its label per line and blank lines between sentences."""

import collections
import pathlib
import typing

from keras_bert_training.tasks.labelled_texts import in_order


class Sentence(typing.NamedTuple):
    """Words and their labels; `document` numbers the documents of a file."""

    words: list[str]
    labels: list[str]
    document: int


def read_conll(path, bad_rows, labelled=True):
    """The sentences of a file: the first column is the word, the last the label; -DOCSTART- begins a document.

    Columns are separated by tabs if a line has one, otherwise by spaces; other white space, like U+00A0, belongs to a
    word. A line of only white space ends a sentence (WNUT-17 has some with a tab). Comments are left out: lines that
    begin with #, come before a sentence and do not have the form of the lines with words.

    Args:
        path: the file, UTF-8.
        bad_rows: a BadRows; a line is malformed if it has no label or an empty word. Skipping leaves out the whole
            sentence, since its labels would no longer match its words.
        labelled: False allows lines with nothing but a word; a sentence with such a line has no labels, [].

    Raises: ValueError if the file has no sentence.
    """
    path = pathlib.Path(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line.rstrip("\r") for line in file.read().split("\n")]
    is_comment, least = _comment_test(lines), 2 if labelled else 1
    sentences, words, labels, document, is_sound = [], [], [], 0, True
    for number, line in enumerate([*lines, ""], start=1):
        cells = _cells(line)
        if not line.strip() or cells[0] == "-DOCSTART-":
            if words and is_sound:
                sentences.append(Sentence(words, [] if None in labels else labels, document))
            words, labels, is_sound = [], [], True
            document += bool(line.strip())
        elif not words and is_sound and is_comment(line):
            continue
        elif len(cells) < least or not cells[0] or not cells[-1]:
            bad_rows.add(f"{path} line {number}", f"{len(cells)} columns, expected a word and its label", line)
            is_sound = False
        else:
            words.append(cells[0])
            labels.append(cells[-1] if len(cells) > 1 else None)
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


def label_names(sentences):
    """The labels that occur, "O" first, then as `in_order` sorts them."""
    found = {label for sentence in sentences for label in sentence.labels}
    return [*(["O"] if "O" in found else []), *in_order(found - {"O"})]
