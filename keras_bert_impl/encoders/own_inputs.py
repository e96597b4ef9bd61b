"""The arrays of ids that a model takes: those that it has inputs for, with ids that its tables have."""

import collections.abc
import math

import numpy as np

from keras_bert_impl.preprocessing.labels import refuse

# What is not left out in silence, since it would change what is computed: names of other libraries for our inputs, and
# inputs that not every model has.
OTHERWISE = {
    "input_ids": "token_ids",
    "token_type_ids": "segment_ids",
    "attention_mask": "padding_mask",
    "label": "y, beside the inputs",
    "labels": "y, beside the inputs",
    "position_ids": "an input of an encoder with packed=True",
    "sequence_ids": "an input of an encoder with packed=True",
}


def own_inputs(model, inputs):
    """The arrays of a dict that a model has inputs for, without the others; what is no dict is returned as it is.

    Keras assigns the arrays of a dict to inputs by the order of their names: one too many, and each of those after it
    would silently take the place of another.

    Raises: ValueError for an array that is missing, or that another library calls so; and for arrays of NumPy with ids
        out of range, of which one backend takes another row, and another one NaN.
    """
    if not isinstance(inputs, collections.abc.Mapping):
        return inputs
    names = list(model.input)
    wrong = [f"{name} is {OTHERWISE[name]}" for name in inputs if name in OTHERWISE and name not in names]
    if missing := [name for name in names if name not in inputs]:
        wrong.append(f"it lacks {', '.join(missing)}")
    if wrong:
        raise ValueError(
            f"{type(model).__name__} takes a dict of {', '.join(names)}, but got {', '.join(inputs)}: "
            f"{'; '.join(wrong)}."
        )
    found = {name: _as_array(inputs[name]) for name in names}
    config, tokens = getattr(model, "encoder", model).config, found["token_ids"]
    width = tokens.shape[-1] if isinstance(tokens, np.ndarray) else math.inf  # the values of replicas have no shape
    limits = {"token_ids": config.vocabulary_size, "mask_positions": width, "cls_positions": width}
    if config.has_position_table:
        limits["position_ids"] = config.max_length
    for name, ids in found.items():
        if isinstance(ids, np.ndarray):
            limit = limits.get(name, math.inf)
            allowed = "at least 0" if limit == math.inf else f"from 0 to {limit - 1}"
            refuse(ids, (ids < 0) | (ids >= limit), name, f"expected {allowed}")
    return found


def _as_array(ids):
    """Lists as an array of NumPy, of which Keras would take each number for an array; arrays as they are."""
    return np.array(ids, "int32") if isinstance(ids, list | tuple) else ids
