"""The user's own text files as documents of sentences: .txt and .jsonl, plain or compressed, read as a stream."""

import collections
import contextlib
import copy
import glob
import itertools
import json
import logging
import os
import pathlib
from typing import NamedTuple

from keras_bert_impl.suggestions import one_of
from keras_bert_impl.text.corpora.document import Document
from keras_bert_impl.text.corpora.numbered_lines import (
    COMPRESSIONS,
    READ_ERRORS,
    NotUtf8Error,
    numbered_lines,
    text_lines,
)
from keras_bert_impl.text.corpora.sentences import check_language
from keras_bert_impl.text.corpora.text_formats import (
    LONGEST_DOCUMENT_CHARACTERS,
    TEXT_FORMATS,
    cut_documents,
    documents_of_lines,
    format_of,
    probe_lines,
    sentences_of_row,
)

EXTENSIONS = tuple(kind + compression for kind in (".txt", ".jsonl") for compression in ("", *COMPRESSIONS))

# The assumed ratio of a file's size after decompression to its size before.
COMPRESSION_RATIO = 3

logger = logging.getLogger(__name__)


class Problem(NamedTuple):
    """Something that could not be read: `place` is "file" or "file:line", `reason` tells what is wrong with it."""

    place: str
    reason: str


class TextCorpus:
    """Text files as documents of sentences: a file, a folder or a glob. Every iteration reads the files again, sorted.

    A `.txt` file holds one sentence per line with blank lines between documents (the input of google-research/bert),
    one document per line, or running text: paragraphs between blank lines, wrapped or not, one document per file. The
    article titles of WikiText (` = Title = `) also begin a document. A `.jsonl` file holds one document per line; line
    breaks in its text end paragraphs. Files are UTF-8, and may be compressed (.gz, .xz, .zst). A file that is named, or
    matched by a glob, is read as text whatever its extension; a folder is searched, with its subfolders and links, for
    the known extensions.

    Memory holds one document at a time; a document of more than 4 million characters is read as several.

    Args:
        path (str or pathlib.Path): file, folder, or glob (`**` stands for any folders).
        on_error (str, optional): "skip" leaves out unreadable parts and records them in `problems`; "raise" stops
            there. Default: "skip".
        text_format (str, optional): for .txt, "lines", "documents", "running", "paragraphs" (running text with blank
            lines between documents), or "auto", which chooses one of the first three for each file and logs the choice.
            For .jsonl, a line of the text is a sentence with "lines", part of a wrapped paragraph with "running" and
            "paragraphs", and a paragraph with "auto" and "documents". Default: "auto".
        text_field (str, optional): key of the text in .jsonl. Default: "text".
        language (str, optional): ISO 639-1 code, see `split_sentences`. Default: "en".

    Attributes:
        files (list of pathlib.Path): the files, sorted.
        left_out (collections.Counter): extensions of other files in a folder.
        formats (collections.Counter): number of files that the last iteration read in each format.
        problems (list): where a file or line could not be read, and why, in the last iteration. A damaged text file is
            read up to the damaged document; in a .jsonl file only bad lines are left out.

    Raises: ValueError for an unknown choice, a path without files, files without a sentence (at the end of the
        iteration), and with `on_error="raise"` for the first problem.
    """

    def __init__(self, path, on_error="skip", text_format="auto", text_field="text", language="en"):
        check_language(language)
        self.path = os.fspath(path)
        self.on_error = one_of("on_error", on_error, ("skip", "raise"))
        self.text_format = one_of("text_format", text_format, ("auto", *TEXT_FORMATS))
        self.text_field, self.language = text_field, language
        self.root, self.files, self.left_out, unreadable = files_at(self.path)
        self.problems, self.formats = [], collections.Counter()
        self.may_be_empty, self.longest = False, None
        for place, reason in unreadable:
            self._report(place, reason)
        self.unreadable = self.problems

    def pieces(self, piece_bytes):
        """Splits this corpus into corpora of consecutive files, with about `piece_bytes` bytes of text each.

        A piece without a sentence is not an error. Several processes may read the pieces; no file is split.
        """
        pieces, size = [[]], 0
        for file in self.files:
            ratio = COMPRESSION_RATIO if file.suffix in COMPRESSIONS else 1
            size += ratio * file.stat().st_size
            pieces[-1].append(file)
            if size >= piece_bytes:
                pieces.append([])
                size = 0
        pieces = [self._copy(files=files, may_be_empty=True, unreadable=[]) for files in pieces if files]
        pieces[0].unreadable = self.unreadable
        return pieces

    def cut(self, longest):
        """This corpus with documents of more than `longest` characters read as several.

        They are cut between paragraphs, those of .jsonl rows between sentences.
        """
        return self._copy(longest=longest)

    def moved(self, root):
        """This corpus after its files have been copied to the folder `root`, under the same names."""
        files = [pathlib.Path(root) / file.relative_to(self.root) for file in self.files]
        return self._copy(root=pathlib.Path(root), files=files)

    def _copy(self, **changes):
        copied = copy.copy(self)
        vars(copied).update(problems=[], formats=collections.Counter(), **changes)
        return copied

    def __iter__(self):
        self.problems, self.formats = list(self.unreadable), collections.Counter()
        is_empty = not self.may_be_empty
        for file in self.files:
            for number, sentences in self._numbered_documents(file):
                is_empty = False
                relative = file.relative_to(self.root)
                yield Document(f"{relative.as_posix()}#{number}", relative.parts[0], sentences)
        if is_empty:
            first = f" First problem: {self.problems[0].place}: {self.problems[0].reason}" if self.problems else ""
            raise ValueError(
                f"No text found in the {len(self.files)} file(s) at {self.path} ({len(self.problems)} problem(s))."
                f"{first} Expected UTF-8 text, or .jsonl rows with the text in the field {self.text_field!r}."
            )

    def _numbered_documents(self, file):
        read = self._rows if _has_rows(file) else self._texts
        try:
            for number, sentences in read(file):
                if sentences:
                    yield number, sentences
        except (NotUtf8Error, *READ_ERRORS) as error:
            self._report(str(file), str(error) or type(error).__name__)

    def _texts(self, file):
        text_format = self.text_format
        if text_format == "auto":
            text_format = format_of(_first_lines(file), self.language)
        logger.info("%s is read as %s.", file, TEXT_FORMATS[text_format])
        self.formats[TEXT_FORMATS[text_format]] += 1
        longest = self.longest or LONGEST_DOCUMENT_CHARACTERS
        lines = text_lines(file, LONGEST_DOCUMENT_CHARACTERS)
        return enumerate(documents_of_lines(lines, text_format, self.language, longest), start=1)

    def _rows(self, file):
        for number, line in numbered_lines(file):
            if not line.strip():
                continue
            try:
                text = _text_of_row(line, self.text_field)
            except ValueError as error:
                self._report(f"{file}:{number}", str(error))
                continue
            sentences = sentences_of_row(text, self.text_format, self.language)
            longest = self.longest or LONGEST_DOCUMENT_CHARACTERS
            if self.longest is None and sum(map(len, sentences)) <= longest:
                yield number, sentences
                continue
            parts = cut_documents(([sentence] for sentence in sentences), longest)
            yield from ((f"{number}.{part}", sentences) for part, sentences in enumerate(parts, start=1))

    def _report(self, place, reason):
        if self.on_error == "raise":
            raise ValueError(
                f'{place}: {reason} (To skip unreadable texts: on_error="skip", or keras-bert prepare-data '
                "--skip_unreadable true.)"
            )
        self.problems.append(Problem(place, reason))
        logger.warning("Skipped %s: %s", place, reason)


def files_at(path):
    """The files at a path, folder or glob.

    Returns: the folder that document names are relative to; sorted files; a Counter of the endings of other files in a
        folder; and a list of `Problem`s, for what cannot be read.
    Raises: ValueError if there are no files; the message tells what was looked for.
    """
    place, problems, left_out = pathlib.Path(path), [], []
    if place.is_file():
        root, found = place.parent, [place]
    elif place.is_dir():
        root, found = place, list(_files_below(place, problems))
        left_out = [file for file in found if not file.name.endswith(EXTENSIONS)]
        found = [file for file in found if file.name.endswith(EXTENSIONS)]
    elif glob.has_magic(path):
        fixed = itertools.takewhile(lambda part: not glob.has_magic(part), place.parts)
        root, found = pathlib.Path(*fixed), map(pathlib.Path, glob.iglob(path, recursive=True))
    else:
        root, found = place, []
    files = []
    for file in sorted(found):
        if not file.exists():
            problems.append(Problem(_shown(file), "the link leads nowhere."))
        elif _shown(file) != str(file):
            problems.append(Problem(_shown(file), "the name is not UTF-8: rename the file."))
        elif file.is_file():
            files.append(file)
    if not files:
        raise ValueError(
            f"No text file at {path}: give a file, a folder of files that end in {', '.join(EXTENSIONS)}, or a glob "
            "such as 'texts/**/*.text'."
        )
    return root, files, collections.Counter(_shown(file.suffix) or "none" for file in left_out), problems


def _files_below(folder, problems):
    """Yields the files in a folder and its subfolders. Links are followed, but no folder is read twice."""
    visited = set()
    unreadable = lambda error: problems.append(Problem(_shown(error.filename), error.strerror))  # noqa: E731
    for place, folders, names in os.walk(folder, onerror=unreadable, followlinks=True):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in visited:
            folders.clear()
            continue
        visited.add((status.st_dev, status.st_ino))
        folders.sort()
        yield from (pathlib.Path(place, name) for name in names)


def _shown(path):
    """A path as it can be printed, also if it is not UTF-8."""
    return str(path).encode(errors="backslashreplace").decode()


def _has_rows(file):
    return ".jsonl" in file.suffixes[-2:]


def _first_lines(file):
    lines = []
    # Damage is ignored here, and reported when the file is read from its beginning.
    with contextlib.suppress(NotUtf8Error, *READ_ERRORS):
        lines.extend(probe_lines(text_lines(file, LONGEST_DOCUMENT_CHARACTERS)))
    return lines


def _text_of_row(line, field):
    row = json.loads(line.decode())
    if not isinstance(row, dict) or not isinstance(row.get(field), str):
        found = ", ".join(row) if isinstance(row, dict) else type(row).__name__
        raise ValueError(
            f'no text in the field "{field}"; the row has {found}. Set text_field to the field that holds the text.'
        )
    if half := next((character for character in row[field] if "\ud800" <= character <= "\udfff"), None):
        raise ValueError(f'field "{field}" contains U+{ord(half):04X}, half of a UTF-16 character, which is not text.')
    return row[field]
