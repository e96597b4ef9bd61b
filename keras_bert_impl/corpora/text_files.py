"""A person's own text files as documents of sentences: .txt and .jsonl, plain or compressed, read as a stream."""

import collections
import contextlib
import copy
import glob
import itertools
import json
import logging
import os
import pathlib
import re
from typing import NamedTuple

from keras_bert_impl.corpora.document import Document
from keras_bert_impl.corpora.numbered_lines import COMPRESSIONS, READ_ERRORS, NotUtf8Error, numbered_lines, text_lines
from keras_bert_impl.corpora.sentences import split_sentences

EXTENSIONS = tuple(kind + compression for kind in (".txt", ".jsonl") for compression in ("", *COMPRESSIONS))

# How "auto" tells one sentence a line from running text, see `has_sentence_per_line`.
PROBED_LINES = 200
ENDED_LINES_SHARE = 2 / 3
SENTENCES_PER_LINE = 1.5
SENTENCE_END = re.compile(r"[.!?…]['\"\u201d\u2019\u00bb)\]\s]*$")

# No hard-wrapped text is this wide; a longer line is a paragraph that was never wrapped.
WRAPPED_LINE_CHARACTERS = 120
# Project Gutenberg breaks lines after hyphens of compounds: "window-" and "seat" are "window-seat".
WRAPPED_COMPOUND = re.compile(r"(?<=\w-)\n(?=\w)")
WIKITEXT_HEADING = re.compile(r" ?= .* =\s*$")
WIKITEXT_TITLE = re.compile(r" ?= [^=].* =\s*$")

# A longer document is cut: what reads a corpus larger than memory must hold one whole document.
LONGEST_DOCUMENT_CHARACTERS = 4_000_000

# Compressed text counts for what it is likely to hold.
COMPRESSION_RATIO = 3

logger = logging.getLogger(__name__)


class Problem(NamedTuple):
    """Something that was not read: `place` is "file" or "file:line", `reason` what is wrong with it."""

    place: str
    reason: str


class TextCorpus:
    """Documents of a file, a folder or a glob. Every iteration reads the files anew, in sorted order.

    `.txt` holds either one sentence a line with blank lines between documents (the input of google-research/bert)
    or running text: paragraphs between blank lines, wrapped or not, one document a file; the article titles of
    WikiText (` = Title = `) begin a document too. `.jsonl` holds a document a row; line breaks in its text end
    paragraphs. All are UTF-8, and may be compressed (.gz, .xz, .zst). A file that is named, or matched by a glob,
    is read as text whatever its extension; a folder is searched, with its subfolders, for the known extensions.

    Memory holds one document at a time; a document of more than 4 million characters is read as several.

    Args:
        path: file, folder, or glob (`**` stands for any folders).
        on_error: "skip" leaves out what cannot be read and names it in `problems`; "raise" stops there.
        sentences: "lines", "running", or "auto", which decides by file (`has_sentence_per_line`) and logs it.
        text_field: key of the text in a .jsonl row.

    Attributes:
        files: sorted list of pathlib.Path.
        formats: how many files the last iteration read as "running text" and "one sentence a line".
        problems: list of `Problem` of the last iteration. A text file is read up to the damage, and the document
            in which the damage lies is left out; a bad .jsonl row is left out alone.

    Raises: ValueError for a path without files, for files without a sentence (at the end of the iteration), and
        with `on_error="raise"` for the first problem.
    """

    def __init__(self, path, on_error="skip", sentences="auto", text_field="text"):
        if on_error not in ("skip", "raise"):
            raise ValueError(f'on_error is "{on_error}", expected "skip" or "raise".')
        if sentences not in ("auto", "lines", "running"):
            raise ValueError(f'sentences is "{sentences}", expected "auto", "lines" or "running".')
        self.path = os.fspath(path)
        self.on_error = on_error
        self.sentences = sentences
        self.text_field = text_field
        self.root, self.files = files_at(self.path)
        self.problems, self.formats = [], collections.Counter()
        self.may_be_empty = False

    def pieces(self, piece_bytes):
        """Corpora of consecutive files, of about so many bytes of text each, that together are this one.

        A piece without a sentence is no error. Pieces may be read by several processes; a single file is one piece.
        """
        pieces, size = [[]], 0
        for file in self.files:
            ratio = COMPRESSION_RATIO if file.suffix in COMPRESSIONS else 1
            size += ratio * file.stat().st_size
            pieces[-1].append(file)
            if size >= piece_bytes:
                pieces.append([])
                size = 0
        return [self._with_files(files) for files in pieces if files]

    def _with_files(self, files):
        piece = copy.copy(self)
        piece.files, piece.may_be_empty = files, True
        piece.problems, piece.formats = [], collections.Counter()
        return piece

    def __iter__(self):
        self.problems, self.formats = [], collections.Counter()
        is_empty = not self.may_be_empty
        for file in self.files:
            for number, sentences in self._numbered_documents(file):
                is_empty = False
                relative = file.relative_to(self.root)
                yield Document(f"{relative.as_posix()}#{number}", relative.parts[0], sentences)
        if is_empty:
            first = f" First problem: {self.problems[0].place}: {self.problems[0].reason}" if self.problems else ""
            raise ValueError(
                f"No sentence in the {len(self.files)} file(s) at {self.path}; {len(self.problems)} problem(s)."
                f"{first} Expected UTF-8 text, or .jsonl rows with the text in the field {self.text_field!r}."
            )

    def _numbered_documents(self, file):
        read = self._rows if ".jsonl" in file.suffixes[-2:] else self._texts
        try:
            for number, sentences in read(file):
                if sentences:
                    yield number, sentences
        except (NotUtf8Error, *READ_ERRORS) as error:
            self._report(str(file), str(error) or type(error).__name__)

    def _texts(self, file):
        by_line = has_sentence_per_line(_first_lines(file)) if self.sentences == "auto" else self.sentences == "lines"
        text_format = "one sentence a line" if by_line else "running text"
        logger.info("%s is read as %s.", file, text_format)
        self.formats[text_format] += 1
        documents = documents_of_sentence_lines if by_line else documents_of_running_text
        return enumerate(documents(text_lines(file)), start=1)

    def _rows(self, file):
        for number, line in numbered_lines(file):
            if not line.strip():
                continue
            try:
                text = _text_of_row(line, self.text_field)
            except ValueError as error:
                self._report(f"{file}:{number}", str(error))
            else:
                yield number, list(itertools.chain.from_iterable(map(split_sentences, text.splitlines())))

    def _report(self, place, reason):
        if self.on_error == "raise":
            raise ValueError(
                f'{place}: {reason} (on_error="skip", in training/prepare_data.py --skip_unreadable true, goes on '
                "without it.)"
            )
        self.problems.append(Problem(place, reason))
        logger.warning("Left out %s: %s", place, reason)


def files_at(path):
    """(folder that names are relative to, sorted files) at a file, folder or glob.

    Raises: ValueError if there is none, saying what was looked for.
    """
    place = pathlib.Path(path)
    if place.is_file():
        return place.parent, [place]
    if place.is_dir():
        root, found = place, [file for file in place.rglob("*") if file.name.endswith(EXTENSIONS)]
    elif glob.has_magic(path):
        fixed = itertools.takewhile(lambda part: not glob.has_magic(part), place.parts)
        root, found = pathlib.Path(*fixed), map(pathlib.Path, glob.iglob(path, recursive=True))
    else:
        raise ValueError(f"{path} does not exist. Give a file, a folder or a glob such as 'texts/**/*.txt'.")
    files = sorted(file for file in found if file.is_file())
    if not files:
        raise ValueError(
            f"No text file at {path}. In a folder, files that end in {', '.join(EXTENSIONS)} are read; "
            "name files of another extension by a glob."
        )
    return root, files


def has_sentence_per_line(lines):
    """Whether text holds one sentence a line, judged by its first lines.

    True if of the lines that are not blank two thirds end as a sentence ends, and they hold fewer than 1.5
    sentences on average. Wrapped text ends mid-sentence in most lines; paragraphs that were never wrapped end as
    sentences do but hold several.
    """
    lines = [line for line in lines if line.strip()]
    ended = sum(SENTENCE_END.search(line) is not None for line in lines)
    if ended < ENDED_LINES_SHARE * len(lines):
        return False
    return sum(len(split_sentences(line)) for line in lines) < SENTENCES_PER_LINE * len(lines)


def documents_of_sentence_lines(lines):
    """Lists of sentences from one sentence a line, blank lines between documents."""
    for is_text, group in itertools.groupby(lines, key=lambda line: bool(line.strip())):
        if is_text:
            yield from cut_documents([" ".join(line.split())] for line in group)


def documents_of_running_text(lines):
    """Lists of sentences from paragraphs: all lines are one document, or one an article in WikiText's format."""
    titles = 0

    def article(paragraph):
        nonlocal titles
        titles += WIKITEXT_TITLE.match(paragraph) is not None
        return titles

    for _, paragraphs in itertools.groupby(unwrapped_paragraphs(lines), key=article):
        yield from cut_documents(map(split_sentences, paragraphs))


def cut_documents(paragraphs):
    """Lists of sentences from the paragraphs of one document, itself lists: one, or several of a very long one."""
    sentences, size = [], 0
    for paragraph in paragraphs:
        sentences += paragraph
        size += sum(map(len, paragraph))
        if size > LONGEST_DOCUMENT_CHARACTERS:
            yield sentences
            sentences, size = [], 0
    if sentences:
        yield sentences


def unwrapped_paragraphs(lines):
    """Paragraphs of text: a blank line ends one, a line too long to be wrapped and a WikiText heading are one."""
    wrapped = []
    for line in itertools.chain(lines, [""]):
        stripped = line.strip()
        stands_alone = len(line) > WRAPPED_LINE_CHARACTERS or (stripped[:1] == "=" and WIKITEXT_HEADING.match(line))
        if wrapped and (stands_alone or not stripped):
            paragraph = "\n".join(wrapped)
            yield WRAPPED_COMPOUND.sub("", paragraph) if "-\n" in paragraph else paragraph
            wrapped = []
        if stands_alone:
            yield line
        elif stripped:
            wrapped.append(stripped)


def _first_lines(file):
    lines = []
    # Damage is met again, and reported, when the file is read from its beginning.
    with contextlib.suppress(NotUtf8Error, *READ_ERRORS):
        lines.extend(itertools.islice(text_lines(file), PROBED_LINES))
    return lines


def _text_of_row(line, field):
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}.") from error
    if not isinstance(row, dict):
        raise ValueError(f"the row is a {type(row).__name__}, expected an object.")
    if field not in row:
        raise ValueError(f'no field "{field}"; it has {", ".join(row) or "none"}.')
    if not isinstance(row[field], str):
        raise ValueError(f'field "{field}" is a {type(row[field]).__name__}, expected a string.')
    return row[field]
