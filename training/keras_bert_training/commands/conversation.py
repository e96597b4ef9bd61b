"""Reads questions from a terminal or a pipe and prints an answer to each."""

import contextlib
import importlib
import sys

from keras_bert_impl.checkpoints.hub import in_one_line
from keras_bert_impl.console import say

END = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"  # what ends the input of a terminal


def converse(wanted, answer):
    """Answers each line of standard input: typed ones until Ctrl-D, piped ones in one line each.

    A line that cannot be answered gets its error in the place of an answer. An empty line asks nothing: a terminal asks
    again, and of a pipe it gets an empty line, so that lines and answers stay side by side.

    Args:
        wanted: what a terminal asks for, such as "a text".
        answer: function from a line to its answer in one line.

    Returns: the answers, "" for an empty line of a pipe.
    Raises: ValueError after the last piped line, if some of them could not be answered.
    """
    is_typed = sys.stdin.isatty()
    answers, failed = [], 0
    for line in typed_lines(wanted) if is_typed else (line.rstrip("\r\n") for line in sys.stdin):
        try:
            found = answer(line) if line.strip() else ""
        except ValueError as error:
            found, failed = f"error: {in_one_line(error)}", failed + 1
        say(f"  {found}" if is_typed else found)
        answers.append(found)
    if failed and not is_typed:
        raise ValueError(f"{failed:,} of {len(answers):,} lines could not be answered.")
    return answers


def typed_lines(wanted):
    """The lines that somebody types, with the arrow keys and the history of readline, without empty ones."""
    with contextlib.suppress(ImportError):  # Windows has none, and edits lines itself
        importlib.import_module("readline")
    while True:
        try:
            line = input(f"{wanted} ({END} ends): ")
        except (EOFError, KeyboardInterrupt):  # Ctrl-D and Ctrl-C
            print()
            return
        if line.strip():
            yield line
