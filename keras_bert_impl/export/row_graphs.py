"""The graph of a model from rows of ids to named outputs, in `keras.ops`: what runtimes without strings serve.

`served(model)` gives the function, and `arrays_of` its inputs. All outputs are float32, and padding does not change
them.
"""

from keras_bert_impl import features


def served(model):
    """The function to export: from a dict of the arrays of `arrays_of` to a dict of named outputs."""
    return lambda rows: model.named_outputs(model(rows, training=False), rows)


def kind_of(model):
    """The class that a model belongs to, or inherits from, which says how such models are asked."""
    return next(kind for kind in type(model).__mro__ if "asked" in vars(kind))


def arrays_of(model):
    """The names of the axes of each input by its name, in the order of `features.ENCODER_INPUTS`; all are int32."""
    axes = ("batch", "choices", "length") if len(model.input["token_ids"].shape) == 3 else ("batch", "length")
    masks = {"mask_positions": ("batch", "masks")} if "mask_positions" in model.input else {}
    return {**dict.fromkeys(features.ENCODER_INPUTS, axes), **masks}
