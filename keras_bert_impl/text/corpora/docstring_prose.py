"""The English prose in a docstring: reStructuredText, Markdown, numpydoc or Google style.

Docstrings follow conventions rather than a grammar, and one file may mix them all. The rules here look at single
lines and at their indentation; each sentence that remains is then checked by `is_prose`.
"""

import re

from keras_bert_impl.text.corpora.sentences import split_sentences

FENCE = re.compile(r"\s*(```|~~~)")
# Directives whose body is prose. Any other directive (code-block, math, plot, ...) is dropped with its body.
PROSE_DIRECTIVE = re.compile(
    r"\s*\.\. (note|warning|important|tip|hint|caution|seealso|deprecated|versionadded|versionchanged|admonition)::"
)
# Whatever reStructuredText marks with two dots: footnotes, link targets, comments and all other directives.
EXPLICIT_MARKUP = re.compile(r"\s*\.\.( |$)")

UNDERLINE = re.compile(r"\s*([-=~^*#+`'\"_.])\1{2,}\s*$")
TABLE_BORDER = re.compile(r"\s*(?:[=-]{2,}\s+[=-]{2,}|\+[-=]{2,})")
TABLE_ROW = re.compile(r"\s*\||.*\S\s*\|\s*\S.*\|")
SECTION_NAME = re.compile(r"\s*#*\s*[A-Z]\w*( \w+){0,3}:\s*$")
SIGNATURE = re.compile(r"\s*(class |def )?[\w.]+\(.*\)(\s*->.*)?:?\s*$")

BULLET = re.compile(r"\s*([-*+•]|\(?\d{1,2}[.)]|#+)\s+")
FIELD = re.compile(r"\s*:(param|type|returns?|rtype|raises?|arg|argument|key|keyword|var|ivar|cvar)\b[^:]*:\s*")
# `x: text`, `x (int): text`, `*args, **kwargs: text`, numpydoc's `x : int`; group 1 is the space before the colon.
NAMED_ENTRY = re.compile(r"\s*`?\*{0,2}[\w.]+`?(?:, `?\*{0,2}[\w.]+`?)*(?: ?\([^()]*\))?( ?):(?:\s+|$)")

ROLE = re.compile(r":[\w:+-]+:`")
LINK_TEXT = re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{0,2}|!?\[([^][]+)\]\(\s*[^()\s]*\)")
CITATION = re.compile(r"\s*\[[\w*#]+\]_")
STRONG = re.compile(r"(?<![\w*])(\*{1,2})(?=\S)([^*]+?)(?<=\S)\1(?![\w*])")
BACKQUOTES = re.compile(r"(`{1,2})~?([^`]*)\1_{0,2}")

# Identifiers, calls, dotted names and numbers are not words.
WORD = re.compile(r"(?<![\w.])[^\W\d_]+(?:['\u2019-][^\W\d_]+)*(?![\w(=\[]|\.\w)")
CODE = re.compile(
    r"[\w)\]]\s*(?:==|\+=|:=|->|=>|&&)\s*\S|\w = \S|\)\(|\(\)\.|\s# |\\\w|\$"
    r"|^(?:import|from|def|class|return|print)\b.*[(:]"
)
FUNCTION_WORD = re.compile(
    r"\b(the|an?|is|are|be|of|to|in|for|if|that|this|with|from|on|by|or|and|as|not|it|at|when|which|will|can|used)\b",
    re.IGNORECASE,
)
SHORTEST_SENTENCE_WORDS = 3


def prose_paragraphs(docstring):
    """The English prose in a docstring, as paragraphs.

    Args:
        docstring: text with line breaks, with clean indentation as from `ast.get_docstring`.

    Returns: list of paragraphs, each a list of sentences. Examples, tables, signatures and headings are dropped, the
    description of a parameter is a paragraph of its own without the parameter's name, and inline markup is removed:
    ``x``, :class:`x` and `x` become x.
    """
    lines = _without_literal_blocks(_without_doctests(_without_fences(docstring.expandtabs().split("\n"))))
    paragraphs = []
    for paragraph in _joined_paragraphs(_without_layout(lines)):
        sentences = [sentence for sentence in split_sentences(_reduced_marks(paragraph)) if is_prose(sentence)]
        if sentences:
            paragraphs.append(sentences)
    return paragraphs


def is_prose(sentence):
    """Whether a sentence of a docstring is English: three words or more, mostly words, a function word, and no code."""
    words = WORD.findall(sentence)
    return (
        len(words) >= SHORTEST_SENTENCE_WORDS
        and 2 * len(words) > sentence.count(" ") + 1
        and FUNCTION_WORD.search(sentence) is not None
        and CODE.search(sentence) is None
    )


def _without_fences(lines):
    inside = False
    for line in lines:
        if FENCE.match(line):
            inside = not inside and line.count("```") != 2  # ```one line``` opens and closes
            yield ""
        else:
            yield "" if inside else line


def _without_doctests(lines):
    inside = False
    for line in lines:
        stripped = line.lstrip()
        # A doctest and its expected output end at a blank line.
        inside = bool(stripped) and (inside or stripped.startswith((">>>", "In [")))
        yield "" if inside else line


def _without_literal_blocks(lines):
    """Drops the block indented below a line that ends in `::`, and explicit markup (`.. `) with its body."""
    block_indent = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if block_indent is not None and (not line.strip() or indent > block_indent):
            yield ""
            continue
        block_indent = None
        if PROSE_DIRECTIVE.match(line):
            yield ""
        elif EXPLICIT_MARKUP.match(line):
            block_indent = indent
            yield ""
        elif line.rstrip().endswith("::"):
            block_indent = indent
            yield line.rstrip()[:-1]
        else:
            yield line


def _without_layout(lines):
    """Drops underlines with the heading above them, section names, tables and signatures."""
    held, in_table = "", False
    for line in lines:
        in_table = bool(line.strip()) and (in_table or TABLE_BORDER.match(line) is not None)
        if UNDERLINE.match(line):
            held = line = ""
        elif in_table or TABLE_ROW.match(line) or SECTION_NAME.match(line) or SIGNATURE.match(line):
            line = ""
        yield held
        held = line
    yield held


def _joined_paragraphs(lines):
    """Joins hard-wrapped lines to paragraphs; a list item or a parameter's description is a paragraph of its own."""
    current = []
    indent, in_entries = 0, False
    for line in lines:
        text, line_indent = line.strip(), len(line) - len(line.lstrip())
        marker = _item_marker(line, may_be_entry=in_entries or not current)
        if current and (not text or marker or line_indent < indent):
            yield " ".join(current)
            current = []
        if not text:
            continue
        if not current:
            marker = marker or _item_marker(line, may_be_entry=True)
            in_entries = marker is not None
            text = _without_entry_type(line, marker) if marker else text
        indent = line_indent
        if text:
            current.append(text)
    if current:
        yield " ".join(current)


def _item_marker(line, may_be_entry):
    # A wrapped line of prose may begin with "following: "; an entry starts a paragraph or follows another entry.
    return BULLET.match(line) or FIELD.match(line) or (NAMED_ENTRY.match(line) if may_be_entry else None)


def _without_entry_type(line, marker):
    text = line[marker.end() :].strip()
    names_a_type = marker.re is NAMED_ENTRY and marker[1] and not text.endswith(".")
    return "" if names_a_type else text


def _reduced_marks(paragraph):
    paragraph = ROLE.sub("`", paragraph)
    paragraph = LINK_TEXT.sub(lambda match: match[1] or match[2], paragraph)
    paragraph = BACKQUOTES.sub(r"\2", CITATION.sub("", paragraph))
    return STRONG.sub(r"\2", paragraph).replace("`", "")
