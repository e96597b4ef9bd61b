"""The pages are found by readers' words and are read once: titles and beginnings, lengths of sentences, usual words,
which messages use as well."""

import ast
import functools
import re

import pytest
from documentation import NOTEBOOKS, PAGES, PLACES, ROOT, python_blocks, text_of, without_code
from tiers import once

pytestmark = once
READ = [page for page in PAGES if page.parent.name != "results"]  # the records are for those who measure
of_pages = pytest.mark.parametrize("page", [*READ, *NOTEBOOKS], ids=lambda page: str(page.relative_to(ROOT)))

# Words of authors, and what to write instead.
UNUSUAL = {
    r", of which\b": "a sentence of its own",
    r"(?<![\w.])Of (the|a|an|several|these|two|all)\b[^.]*,": "name the subject first",
    r"\bbeside\b": "next to, compared with",
    r"\bbut for\b": "except",
    r", too\b": "also",
    r"\b(is|are) (refused|told)\b": "raises ValueError; a warning says",
    r"\b(is|are|was|were) cut\b": "truncated",
    r"\blearnt\b|\blearnt by heart\b": "learned, memorized",
    r"\bthe whole square\b": "full attention",
    r"\b(lies|stands) in\b": "is in, is included",
    r"\bfigures\b": "metrics, results",
    r"\bpictures?\b": "plot",
    r"\bwhat (it|they|that) (is|are|was|were) asked\b": "queries",
    r"\bin vain\b": "leave it out",
    r"\b(busy|quiet) machine\b.*\b(busy|quiet) machine\b": "leave it out",
    r"\b20\d\d-\d\d-\d\d\b": "no dates of measurements",
}
LONGEST = 45
WITH_MESSAGES = [file for name in ("keras_bert_impl", "training", "serving") for file in (ROOT / name).rglob("*.py")]
# What readers search for, and a page that has to be among the first five.
SEARCHES = {
    "sentiment analysis": "text_classification",
    "text classification": "text_classification",
    "multi label": "text_classification",
    "named entity recognition": "named_entities",
    "NER": "named_entities",
    "part-of-speech": "named_entities",
    "question answering": "questions",
    "SQuAD": "questions",
    "fill mask": "fill_mask",
    "semantic search": "search",
    "sentence similarity": "search",
    "reranking": "reranking",
    "cross-encoder": "reranking",
    "sentence embeddings": "embeddings",
    "transfer learning": "start",
    "zero-shot": "tasks",
    "few-shot": "cookbook",
    "class imbalance": "cookbook",
    "early stopping": "callbacks",
    "overfitting": "troubleshooting",
    "hyperparameters": "finetuning",
    "inference": "serving",
    "ONNX export": "serving",
    "CUDA": "installing",
    "GPU": "installing",
    "multi-GPU": "devices",
    "out of memory": "troubleshooting",
    "FAQ": "troubleshooting",
    "newly initialised": "troubleshooting",
    "pre-train from scratch": "training",
    "domain adaptation": "cookbook",
    "model compression": "distillation",
    "long documents": "long_texts",
    "Hugging Face Hub upload": "cards",
    "license": "choosing",
    "CSV": "formats",
    "confusion matrix": "plots",
    "LoRA": "cookbook",
    "REST API server": "server",
    "TPU": "README",
}


def sentences(text):
    """The sentences of a page's running text: paragraphs and items of lists, without code, tables and headings."""
    text = re.sub(r"^(?:\||#|!\[|<!--).*$", "", without_code(text), flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        yield from re.split(r"(?<=[.!?:;])\s+(?=[A-Z*\"])", " ".join(paragraph.split()))


@of_pages
def test_no_sentence_is_longer_than_can_be_read_once(page):
    long = [one for one in sentences(text_of(page)) if len(one.split()) > LONGEST]
    assert long == []


def test_a_long_sentence_is_found():
    text = "# A title\n\n- one two\n  three. Four\n- five [six](seven.md)\n\n| a | table |\n"
    assert [one for one in sentences(text) if one] == ["- one two three.", "Four", "- five six"]


@of_pages
def test_the_pages_have_the_words_of_readers(page):
    text = without_code(text_of(page))
    found = {pattern: re.findall(f".*{pattern}.*", text) for pattern in UNUSUAL}
    assert {one: f"{lines[0].strip()}: {UNUSUAL[one]}" for one, lines in found.items() if lines} == {}


def messages(source):
    """The strings that a program raises or warns with, {} where values are inserted."""
    for node in ast.walk(ast.parse(source)):
        warns = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("warn", "warn_user")
        if isinstance(node, ast.Raise) or warns:
            parts = [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr | ast.Constant)]
            inner = {id(value) for part in parts if isinstance(part, ast.JoinedStr) for value in part.values}
            yield from (_with_gaps(part) for part in parts if id(part) not in inner)


def _with_gaps(part):
    values = part.values if isinstance(part, ast.JoinedStr) else [part]
    return "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in values)


def test_messages_are_found():
    source = 'if bad:\n    raise ValueError(f"a {b} " "c")\nwarnings.warn(f"{d} e", stacklevel=2)\nprint("f")\n'
    assert [one for one in messages(source) if " " in one] == ["a {} c", "{} e"]


def test_messages_have_the_words_of_readers():
    unusual = {
        f"{file.relative_to(ROOT)}: {one}": UNUSUAL[pattern]
        for file in WITH_MESSAGES
        for one in messages(file.read_text(encoding="utf-8"))
        for pattern in UNUSUAL
        if re.search(pattern, one)
    }
    assert unusual == {}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_programs_fit_between_two_side_bars(page):
    long = [line for block in python_blocks(page) for line in block.splitlines() if len(line) > 84]
    assert long == []


def words_of(text):
    """Lower-cased words, joined by hyphens or not, without the plural's s."""
    return [re.sub(r"(?<=\w\w\w)s$", "", word) for word in re.findall(r"[a-z0-9]+", text.lower())]


@functools.cache
def index():
    """{page: (words of its title, of headings and first paragraph, of everything)}, as a site's search weighs them."""
    found = {}
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "tpu" / "README.md"]:
        text = page.read_text(encoding="utf-8")
        title, _, rest = text.partition("\n")
        first = rest.strip().split("\n\n")[0]
        headings = " ".join(re.findall(r"^#+ .*$", rest, re.MULTILINE))
        found[page.stem] = tuple(map(words_of, (title, f"{headings} {first}", rest)))
    return found


def search(query):
    """The five best pages that have all words of a query: those that have them in their titles come first."""
    asked = words_of(query)
    scores = {
        page: sum(15 * (word in title) + 5 * (word in top) + min(rest.count(word), 4) for word in asked)
        for page, (title, top, rest) in index().items()
        if all(word in title or word in rest for word in asked)
    }
    return sorted(scores, key=scores.get, reverse=True)[:5]


@pytest.mark.parametrize(("query", "page"), SEARCHES.items())
def test_a_readers_words_find_the_page(query, page):
    assert page in search(query)


def test_words_that_no_page_has_find_none():
    assert search("quantum chromodynamics") == []


def test_every_page_is_in_a_table_of_contents():
    listed = {"index"}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            listed |= {re.sub(r".*<(.*)>", r"\1", line).strip() for line in block.splitlines() if line[:1] != ":"}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= listed
    assert {f"../{place.removesuffix('.md')}" for place in PLACES if place != "README.md"} <= listed
