"""What processes that train together do as one, for code that also runs without Keras.

A process that has not imported Keras, such as one that prepares data, trains with no other. Importing Keras, and with
it a backend, takes longer than preparing some 50 MB of text.
"""

import contextlib

# The module `keras_bert_impl.distribution`, once it is imported.
group = None


def is_chief():
    """Whether this process is the one that prints and writes."""
    return group is None or group.is_chief()


def failing_together():
    """A context as `distribution.failing_together`: if one process fails within it, all end with an error."""
    return contextlib.nullcontext() if group is None else group.failing_together()


def check_shared(directory):
    """As `distribution.check_shared`: raises ValueError unless all processes see this directory."""
    if group is not None:
        group.check_shared(directory)
