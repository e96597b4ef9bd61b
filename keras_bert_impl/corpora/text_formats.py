"""Decides whether the lines of a text file are one sentence each or running text, and cuts either into documents."""

import itertools
import re

from keras_bert_impl.corpora.scripts import (
    CHARACTER_WITHOUT_SPACES,
    ENDS_WITHOUT_MARK,
    LINE_BREAK_WITHOUT_SPACE,
    SENTENCE_END,
)
from keras_bert_impl.corpora.sentences import split_sentences

# The formats, and what messages call them. "auto" chooses one for each file, see `has_sentence_per_line`.
TEXT_FORMATS = {
    "lines": "one sentence a line",
    "running": "running text",
    "paragraphs": "documents between blank lines",
}

# How "auto" distinguishes one sentence per line from running text.
PROBED_LINES = 200
ENDED_LINES_SHARE = 2 / 3
SENTENCES_PER_LINE = 1.5
# This share is enough for lines that were not wrapped, with blank lines between documents: a title and two sentences,
# for example. In 100 wrapped novels up to 53 % of the lines end as a sentence does.
ENDED_UNWRAPPED_LINES_SHARE = 1 / 3
# Most wrapped lines have no room for the next word: 82 % or more in 98 of those novels, 41 % in the lowest.
FULL_LINES_SHARE = 1 / 3
# Used where the width is not conclusive: few sentences begin with a small letter.
SMALL_LETTERS_SHARE = 1 / 10

# No hard-wrapped text is this wide; a longer line is a paragraph that was never wrapped.
WRAPPED_LINE_CHARACTERS = 120
# Project Gutenberg breaks lines after hyphens of compounds: "window-" and "seat" are "window-seat".
WRAPPED_COMPOUND = re.compile(r"(?<=\w-)\n(?=\w)")
WIKITEXT_HEADING = re.compile(r" ?= .* =\s*$")
WIKITEXT_TITLE = re.compile(r" ?= [^=].* =\s*$")

# A longer document is cut, because a reader of a corpus larger than memory must still hold one whole document.
LONGEST_DOCUMENT_CHARACTERS = 4_000_000


def has_sentence_per_line(lines, language="en"):
    """Whether a text holds one sentence per line, judged by its first lines.

    True if the lines hold fewer than 1.5 sentences on average (paragraphs that were never wrapped hold several), and
    two thirds of the non-blank lines end as a sentence of any script does. For text with titles and other lines
    without a full stop, one third is enough if blank lines separate documents and the lines were not wrapped at a
    width. Thai and Lao sentences have no end mark: there it is enough that the lines were not wrapped.
    """
    written = [line.strip() for line in lines if line.strip()]
    ended = sum(SENTENCE_END.search(line) is not None for line in written)
    if ended < ENDED_LINES_SHARE * len(written):
        unmarked = sum(ENDS_WITHOUT_MARK.search(line) is not None for line in written)
        is_unmarked = ended + unmarked >= ENDED_LINES_SHARE * len(written)
        has_documents = len(written) < len(lines) and ended >= ENDED_UNWRAPPED_LINES_SHARE * len(written)
        if not (is_unmarked or has_documents) or is_wrapped(lines):
            return False
    return sum(len(split_sentences(line, language)) for line in written) < SENTENCES_PER_LINE * len(written)


def is_wrapped(lines):
    """Whether sentences continue from line to line.

    True if a third of the lines had no room for the first word of the next line, or if one in ten of the lines that
    follow another begins with a small letter.
    """
    lines = [line.strip() for line in lines]
    lengths = sorted(len(line) for line in lines if line)
    pairs = [(line, following) for line, following in itertools.pairwise(lines) if line and following]
    if not pairs:
        return False
    width = lengths[len(lengths) * 9 // 10]  # a few lines may be longer: verses, tables, addresses
    full = sum(len(line) + len(_first_word(following)) >= width for line, following in pairs)
    small = sum(following[0].islower() for _, following in pairs)
    return full >= FULL_LINES_SHARE * len(pairs) or small >= SMALL_LETTERS_SHARE * len(pairs)


def _first_word(line):
    # In text without spaces between words, a line may end after any character.
    return line[0] if CHARACTER_WITHOUT_SPACES.match(line) else line.split(" ", 1)[0]


def documents_of_lines(lines, text_format, language="en"):
    """Yields documents, each a list of sentences.

    Args:
        lines: strings without their line ends.
        text_format: one of TEXT_FORMATS.
        language: code of ISO 639-1, for `split_sentences`.
    """
    if text_format == "lines":
        return _documents_of_sentence_lines(lines)
    if text_format == "paragraphs":
        return _documents_of_paragraphs(lines, language)
    return _documents_of_running_text(lines, language)


def _documents_of_sentence_lines(lines):
    for is_text, group in itertools.groupby(lines, key=lambda line: bool(line.strip())):
        if is_text:
            yield from cut_documents([" ".join(line.split())] for line in group)


def _documents_of_paragraphs(lines, language):
    for is_text, group in itertools.groupby(lines, key=lambda line: bool(line.strip())):
        if is_text:
            yield from cut_documents(split_sentences(paragraph, language) for paragraph in unwrapped_paragraphs(group))


def _documents_of_running_text(lines, language):
    """All lines are one document, or one document per article in WikiText's format."""
    titles = 0

    def article(paragraph):
        nonlocal titles
        titles += WIKITEXT_TITLE.match(paragraph) is not None
        return titles

    for _, paragraphs in itertools.groupby(unwrapped_paragraphs(lines), key=article):
        yield from cut_documents(split_sentences(paragraph, language) for paragraph in paragraphs)


def sentences_of_row(text, text_format, language="en"):
    """The sentences of a .jsonl row's text, which is one document; with "auto" every line is a paragraph."""
    lines = text.splitlines()
    if text_format == "lines":
        return [" ".join(line.split()) for line in lines if line.strip()]
    paragraphs = lines if text_format == "auto" else unwrapped_paragraphs(lines)
    return [sentence for paragraph in paragraphs for sentence in split_sentences(paragraph, language)]


def cut_documents(paragraphs):
    """Joins the paragraphs of a document, lists of sentences, to one list; a very long document gives several."""
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
    """Yields paragraphs. A blank line ends one; a line too long to be wrapped and a WikiText heading are one each."""
    wrapped = []
    for line in itertools.chain(lines, [""]):
        stripped = line.strip()
        stands_alone = len(line) > WRAPPED_LINE_CHARACTERS or (stripped[:1] == "=" and WIKITEXT_HEADING.match(line))
        if wrapped and (stands_alone or not stripped):
            yield _joined(wrapped)
            wrapped = []
        if stands_alone:
            yield line
        elif stripped:
            wrapped.append(stripped)


def _joined(lines):
    paragraph = "\n".join(lines)
    if "-\n" in paragraph:
        paragraph = WRAPPED_COMPOUND.sub("", paragraph)
    return paragraph if paragraph.isascii() else LINE_BREAK_WITHOUT_SPACE.sub("", paragraph)
