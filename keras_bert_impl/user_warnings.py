"""Warnings that name the line of the user's program, however deep in this package or in Keras they arise."""

import inspect
import warnings

PASSED_OVER = ("keras_bert_impl", "keras")


def warn_user(message, category=UserWarning):
    """`warnings.warn` at the innermost line that belongs neither to this package nor to Keras.

    A fixed `stacklevel` would be right for one way through the code only: `fit` reads its validation data deeper than
    its training data, and `classify` calls `predict`.
    """
    frame, level = inspect.currentframe().f_back, 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in PASSED_OVER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
