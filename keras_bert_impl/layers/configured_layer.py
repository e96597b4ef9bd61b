"""A layer whose configuration follows from its constructor."""

import inspect

import keras


class ConfiguredLayer(keras.layers.Layer):
    """Base class of layers that keep each argument of the constructor as an attribute of the same name: their
    configuration.

    A subclass adds what JSON cannot hold, such as a layer; initializers are serialized.
    """

    def get_config(self):
        found = {name: getattr(self, name) for name in sorted(arguments_of(type(self))) if hasattr(self, name)}
        found |= {name: keras.initializers.serialize(found[name]) for name in found if name.endswith("initializer")}
        return {**super().get_config(), **found}


def arguments_of(layer_class):
    """The names of the arguments of a ConfiguredLayer's constructor, and of those passed to its parents."""
    parents = [parent for parent in layer_class.__mro__ if issubclass(parent, ConfiguredLayer)]
    constructors = [vars(parent)["__init__"] for parent in parents if "__init__" in vars(parent)]
    parameters = [parameter for one in constructors for parameter in inspect.signature(one).parameters.values()]
    return {one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD} - {"self"}
