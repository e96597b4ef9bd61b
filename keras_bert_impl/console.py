"""What a run prints: progress bars on a terminal, lines in a file. Only one of several processes prints."""

import functools
import sys

from rich.progress import track

from keras_bert_impl.process_group import is_chief


def say(text):
    """Prints one line immediately, even if the output is a file. Only one of several processes prints."""
    if is_chief():
        print(text, flush=True)


@functools.cache
def say_once(text, about):
    """`say`, unless this process has printed the same about the same, for what several trials have in common."""
    say(text)


def verbosity():
    """The `verbose` argument of `fit`: a bar on a terminal, one line per epoch in a file. Only one process prints."""
    return (1 if sys.stdout.isatty() else 2) if is_chief() else 0


def progress(jobs, what, total=None):
    """Iterates over jobs and shows a progress bar, unless the output is a file."""
    return track(jobs, f"  {what}", total=total, transient=True, disable=not sys.stdout.isatty())
