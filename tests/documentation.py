"""Extracts from a page of the documentation what it shows: Python blocks, commands, and what these print."""

import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).parents[1]
PLACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tpu/README.md", "serving/deploy/README.md")
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / place for place in PLACES),
                *(ROOT / "benchmarks" / "results").glob("*.md")])  # fmt: skip
NOTEBOOKS = sorted(path for path in (ROOT / "notebooks").glob("*.py") if path.name != "run.py")


def cells_of(notebook):
    """(kind, source) of each cell of a percent file."""
    parts = re.split(r"^# %%(.*)\n", notebook.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [
        ("markdown", re.sub(r"^# ?", "", text, flags=re.MULTILINE).strip())
        if "[markdown]" in head
        else ("code", text.strip())
        for head, text in zip(parts[1::2], parts[2::2], strict=True)
    ]


def text_of(page):
    """What a page says, or the text cells of a notebook."""
    if page.suffix == ".py":
        return "\n\n".join(source for kind, source in cells_of(page) if kind == "markdown")
    return page.read_text(encoding="utf-8")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```|^    .*?$", "", text, flags=re.DOTALL | re.MULTILINE))


def python_blocks(page):
    """The code of each ```python block of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def example_with_output(page):
    """The first ```python block of a page that a ```text block follows, and the text, which is what it prints."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.search(
        r"^```python\n((?:(?!```)[^\n]*\n)*)```\n\n```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    ).groups()


def blocks_with_outputs(page):
    """(code, what it prints) of each ```python block of a page; None if no ```text block follows it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    pattern = r"^```python\n((?:(?!```)[^\n]*\n)*)```\n(?:\n```text\n(.*?)^```\n)?"
    return [(code, shown or None) for code, shown in re.findall(pattern, text, re.DOTALL | re.MULTILINE)]


def indented_blocks(page):
    """Each block indented by four spaces, without the indentation, in order."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n") for block in found]


def commands(block, program):
    """The commands of a block that call `program`, each a list of words without the program and comments.

    A backslash at the end of a line joins it with the next line; variables before the program are left out.
    """
    joined = re.sub(r" *\\\n *", " ", block)
    found = re.findall(rf"^ *(?:\w+=\S+ +)*(?:\S*/)?{program} +(.*)$", joined, re.MULTILINE)
    return [shlex.split(command, comments=True) for command in found]


def shape_of_line(line):
    """A printed line with its numbers and the units of its times replaced, so that two runs can be compared."""
    line = re.sub(r"\d[\d,.:]*(e-?\d+)?", "N", line.strip())
    return re.sub(r"N ?(ms|us|s)\b", "N s", line)
