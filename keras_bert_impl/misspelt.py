"""What a misspelt name was meant to be."""

import difflib


def did_you_mean(name, known):
    """A question for the end of a message, with the known name most like `name`; empty if none is like it."""
    close = difflib.get_close_matches(str(name), list(known), 1)
    return f" Did you mean {close[0]}?" if close else ""
