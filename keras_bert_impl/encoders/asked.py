"""How a kind of model is asked outside Python: in SavedModels, other exports, the server and the command line."""

import typing

SENTENCE = "The cat sat on the mat."
TEXT = {"text": [SENTENCE]}
PAIR = {"text": [SENTENCE], "text_pair": ["It slept."]}


class Asked(typing.NamedTuple):
    """The class attribute `asked` of a kind of model that can be exported, beside its method `named_outputs`.

    Fields:
        task: its name in the options of `keras-bert export` and `keras-bert predict`.
        signatures: those of a SavedModel by name, each with an example of its inputs, strings by their names.
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
    """The class that a model belongs to, or inherits from, which says how such models are asked."""
    return next(kind for kind in type(model).__mro__ if "asked" in vars(kind))
