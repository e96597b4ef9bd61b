"""What a run prints, and how much of it: a terminal gets bars, a file gets lines, of several processes one prints."""

import sys

from rich.progress import track

from keras_bert_impl.distribution import is_chief


def say(text):
    """Prints one line at once, also where the output is a file. Of several processes one prints."""
    if is_chief():
        print(text, flush=True)


def verbosity():
    """`verbose` of `fit`: a bar on a terminal, a line an epoch in a file. Of several processes one prints."""
    return (1 if sys.stdout.isatty() else 2) if is_chief() else 0


def progress(jobs, what, total=None):
    """The jobs, with a bar while they are iterated; a file gets none."""
    return track(jobs, f"  {what}", total=total, transient=True, disable=not sys.stdout.isatty())
