"""What a run prints: progress bars on a terminal, lines in a file. Only one of several processes prints."""

import functools
import sys
import time

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


# After so many seconds a file gets its first line about what is left; each next one after twice the time.
SILENCE = 2.0


def progress(jobs, what, total=None):
    """Iterates over jobs and shows how many are left and for how long: as a bar on a terminal; as a line now and then
    in a file and in a notebook, which keep everything that was ever shown."""
    if sys.stdout.isatty():
        yield from track(jobs, f"  {what}", total=total, transient=True)
        return
    total = len(jobs) if total is None and hasattr(jobs, "__len__") else total
    start, due = time.monotonic(), SILENCE
    for done, job in enumerate(jobs, start=1):
        yield job
        spent = time.monotonic() - start
        if spent >= due and done != total:
            due = 2 * spent
            say(f"  {what}: {progress_line(done, total, spent)}")


def progress_line(done, total, spent):
    """How much is done after so many seconds, and how long the rest takes at this speed."""
    if total is None:
        return f"{done:,} in {in_words(spent)}"
    return f"{done:,} of {total:,}, about {in_words(spent / done * (total - done))} left"


def in_words(seconds):
    """A time, such as "40 s", "3 minutes", "2.5 hours"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"
