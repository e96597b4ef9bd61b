"""Decides whether the lines of a text file are one sentence or document each, or running text, and cuts any of them
into documents."""

import itertools
import re

from keras_bert_impl.text.corpora.sentences import (
    CHARACTER_WITHOUT_SPACES,
    ENDS_WITHOUT_MARK,
    LINE_BREAK_WITHOUT_SPACE,
    SENTENCE_END,
    split_sentences,
)

# The formats, and what messages call them. "auto" chooses one of the first three for each file, see `format_of`.
TEXT_FORMATS = {
    "lines": "one sentence a line",
    "documents": "one document a line",
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

# How "auto" distinguishes one document per line from paragraphs that were never wrapped: of 100 novels with a paragraph
# per line at most 87 % of the lines are long and hold several sentences. Fewer lines may be those of an article.
LEAST_DOCUMENT_LINES = 20
DOCUMENT_LINES_SHARE = 9 / 10

# Few texts are wrapped at more than this; a longer line is a paragraph that was never wrapped, unless many of the first
# lines have no room for the next word, end within a sentence, and go on without a capital letter: 76 % or more of the
# lines of 100 novels wrapped at 121 to 200 characters do, 3 % or less of their unwrapped paragraphs.
WRAPPED_LINE_CHARACTERS = 120
CONTINUED_LINES_SHARE = 1 / 2
WIDTH_MARGIN = 10  # a few lines are wider than nine of ten
# Project Gutenberg breaks lines after hyphens of compounds: "window-" and "seat" are "window-seat".
WRAPPED_COMPOUND = re.compile(r"(?<=\w-)\n(?=\w)")
WIKITEXT_HEADING = re.compile(r" ?= .* =\s*$")
WIKITEXT_TITLE = re.compile(r" ?= [^=].* =\s*$")

# A longer document is cut, because a reader of a corpus larger than memory must still hold one whole document.
LONGEST_DOCUMENT_CHARACTERS = 4_000_000


def probe_lines(lines):
    """Yields the first lines, by which a format is recognized: fewer if they are so long that they fill the memory."""
    size = 0
    for line in itertools.islice(lines, PROBED_LINES):
        yield line
        size += len(line)
        if size > LONGEST_DOCUMENT_CHARACTERS:
            return


def format_of(lines, language="en"):
    """The format of a text, one of TEXT_FORMATS, by its first lines."""
    if has_sentence_per_line(lines, language):
        return "lines"
    return "documents" if has_document_per_line(lines, language) else "running"


def has_document_per_line(lines, language="en"):
    """Whether a text holds one document per line, by its first lines.

    True if there are twenty or more lines, without blank ones between them, that were not wrapped, and nine of ten are
    long and hold several sentences.
    """
    lines = "\n".join(lines).strip().split("\n")
    long_ones = [line for line in lines if len(line) > WRAPPED_LINE_CHARACTERS]
    least = max(LEAST_DOCUMENT_LINES, len(lines)) * DOCUMENT_LINES_SHARE
    if len(long_ones) < least or not all(map(str.strip, lines)) or is_wrapped(lines):
        return False
    return sum(len(split_sentences(line, language)) > 1 for line in long_ones) >= least


def has_sentence_per_line(lines, language="en"):
    """Whether a text holds one sentence per line, by its first lines.

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
    width, pairs = _width_and_pairs(lines)
    full = sum(len(line) + len(_first_word(following)) >= width for line, following in pairs)
    small = sum(following[0].islower() for _, following in pairs)
    return bool(pairs) and (full >= FULL_LINES_SHARE * len(pairs) or small >= SMALL_LETTERS_SHARE * len(pairs))


def _width_and_pairs(lines):
    lines = [line.strip() for line in lines]
    lengths = sorted(len(line) for line in lines if line)
    width = lengths[len(lengths) * 9 // 10] if lengths else 0  # a few lines may be longer: verses, tables, addresses
    return width, [(line, following) for line, following in itertools.pairwise(lines) if line and following]


def _first_word(line):
    # In text without spaces between words, a line may end after any character.
    return line[0] if CHARACTER_WITHOUT_SPACES.match(line) else line.split(" ", 1)[0]


def width_of(lines):
    """The longest line that may continue in the next one, by the first lines of a text."""
    width, pairs = _width_and_pairs(lines)
    continued = sum(
        len(line) + len(_first_word(following)) >= width
        and not following[0].isupper()
        and SENTENCE_END.search(line) is None
        for line, following in pairs
    )
    if len(pairs) < 2 or continued < CONTINUED_LINES_SHARE * len(pairs):  # one pair may be anything
        return WRAPPED_LINE_CHARACTERS
    return max(WRAPPED_LINE_CHARACTERS, width + WIDTH_MARGIN)


def documents_of_lines(lines, text_format, language="en", longest=LONGEST_DOCUMENT_CHARACTERS):
    """Yields documents, each a list of sentences.

    Args:
        lines: strings without their line ends.
        text_format: one of TEXT_FORMATS.
        language: code of ISO 639-1, for `split_sentences`.
        longest: characters after which a document is cut, see `cut_documents`.
    """
    if text_format == "lines":
        groups = _between_blank_lines(lines)
        return _cut_each((([" ".join(line.split())] for line in group) for group in groups), longest)
    if text_format == "documents":
        return _cut_each(([split_sentences(line, language)] for line in lines), longest)
    lines = iter(lines)
    first = list(probe_lines(lines))
    lines, width = itertools.chain(first, lines), width_of(first)
    if text_format == "paragraphs":
        documents = (unwrapped_paragraphs(group, width) for group in _between_blank_lines(lines))
    else:
        documents = _articles(unwrapped_paragraphs(lines, width))
    return _cut_each(((split_sentences(one, language) for one in document) for document in documents), longest)


def _cut_each(documents, longest):
    return itertools.chain.from_iterable(cut_documents(document, longest) for document in documents)


def _between_blank_lines(lines):
    groups = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    return (group for is_text, group in groups if is_text)


def _articles(paragraphs):
    """The paragraphs of each article in WikiText's format; all of them if there are no titles."""
    titles = 0

    def article(paragraph):
        nonlocal titles
        titles += WIKITEXT_TITLE.match(paragraph) is not None
        return titles

    return (found for _, found in itertools.groupby(paragraphs, key=article))


def sentences_of_row(text, text_format, language="en"):
    """The sentences of a .jsonl row's text, which is one document; with "auto" and "documents" every line is a
    paragraph."""
    lines = text.splitlines()
    if text_format == "lines":
        return [" ".join(line.split()) for line in lines if line.strip()]
    if text_format not in ("auto", "documents"):
        lines = unwrapped_paragraphs(lines, width_of(lines[:PROBED_LINES]))
    return [sentence for line in lines for sentence in split_sentences(line, language)]


def cut_documents(paragraphs, longest):
    """Joins the paragraphs of a document, lists of sentences, to one list; of more than `longest` characters several
    are made, cut between paragraphs, and within one that is longer than that itself."""
    sentences, size = [], 0
    for paragraph in paragraphs:
        begun = size
        for sentence in paragraph:
            sentences.append(sentence)
            size += len(sentence)
            if size - begun > longest:
                yield sentences
                sentences, size, begun = [], 0, 0
        if size > longest:
            yield sentences
            sentences, size = [], 0
    if sentences:
        yield sentences


def unwrapped_paragraphs(lines, width):
    """Yields paragraphs. A blank line ends one; a line longer than `width` and a WikiText heading are one each."""
    wrapped = []
    for line in itertools.chain(lines, [""]):
        stripped = line.strip()
        stands_alone = len(line) > width or (stripped[:1] == "=" and WIKITEXT_HEADING.match(line))
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
