"""What a misspelt name was meant to be."""

import difflib
import inspect


def did_you_mean(name, known):
    """A question for the end of a message, with the known name most like `name`; empty if none is like it."""
    close = difflib.get_close_matches(str(name), list(known), 1)
    return f" Did you mean {close[0]}?" if close else ""


def refuse_unknown(options, known, called):
    """Raises TypeError, as Python does, for the first argument that a function does not know, with the one that was
    meant.

    Args:
        options: the arguments that were given by name.
        known: the names that there are.
        called: the function's name.
    """
    for name in options:
        if name not in known:
            raise TypeError(f"{called}() got an unexpected keyword argument {name!r}.{did_you_mean(name, known)}")


class KnownArguments:
    """Base of classes whose constructors tell a misspelt argument from the one that was meant. It is told before the
    constructor runs, which stays as it is, with its signature."""

    def __new__(cls, *arguments, **options):
        refuse_unknown(options, cls.arguments_of_constructor(), cls.__name__)
        make = super().__new__
        return make(cls) if make is object.__new__ else make(cls, *arguments, **options)

    @classmethod
    def arguments_of_constructor(cls):
        """The names of the constructor's arguments, and of those that it passes on to the next one by `**`."""
        names = []
        for parent in cls.__mro__:
            if "__init__" in vars(parent):
                parameters = inspect.signature(vars(parent)["__init__"]).parameters.values()
                names += [one.name for one in parameters if one.kind is not one.VAR_KEYWORD and one.name != "self"]
                if not any(one.kind is one.VAR_KEYWORD for one in parameters):
                    break
        return names
