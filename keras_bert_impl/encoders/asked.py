"""How a kind of model is used outside Python: in SavedModels, other exports, the server and the command line."""

import typing

SENTENCE = "The cat sat on the mat."
TEXT = {"text": [SENTENCE]}
PAIR = {"text": [SENTENCE], "text_pair": ["It slept."]}


class Asked(typing.NamedTuple):
    """How a kind of model is used outside Python; with its method `named_outputs`, all that an export needs.

    Fields:
        task: its name in the options of `keras-bert export` and `keras-bert predict`.
        signatures: signatures of a SavedModel by name, each with an example of its inputs, strings by their names.
        shown: the output of `serving_default` that an example prints.
    """

    task: str
    signatures: dict
    shown: str

    @property
    def inputs(self):
        """The example for `serving_default`."""
        return self.signatures["serving_default"]


def kind_of(model):
    """Returns the class of a model, or its parent, whose `asked` says how such models are used."""
    return next(kind for kind in type(model).__mro__ if "asked" in vars(kind))
