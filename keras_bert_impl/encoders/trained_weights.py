"""The weights that a `fit` trained, where the optimizer keeps their moving average (`use_ema`).

At the end of each `fit`, Keras puts the averages in the place of the weights, which is what one wants to evaluate and
to save. The next `fit` would train from the averages, too; here it goes on from the weights that were trained, which
`.keras` files hold beside the averages.
"""

import contextlib
import weakref

from keras import ops

TRAINED = weakref.WeakKeyDictionary()  # of each optimizer: the weights before the averages took their place
PREFIX = "trained_"  # of the names in a file


@contextlib.contextmanager
def kept(model):
    """A call of Keras' `fit` within this context trains on from the weights that the last one trained.

    Weights that were set after the last `fit`, such as those of a checkpoint, are kept as they are.

    Args:
        model: a model; Keras asks for one that is not compiled to be compiled.
    """
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or not has_average(optimizer):
        yield
        return
    restore(model)
    finalize = optimizer.finalize_variable_values

    def keep_and_finalize(variables):
        TRAINED[optimizer] = [ops.copy(variable) for variable in variables]
        finalize(variables)
        # On JAX, weights and averages would share their memory, which the next step cannot take for its results.
        for variable in variables:
            variable.assign(ops.copy(variable))

    optimizer.finalize_variable_values = keep_and_finalize
    try:
        yield
    finally:
        del optimizer.finalize_variable_values


def restore(model):
    """Gives a model the weights that its last `fit` trained, unless others than the averages were set meanwhile."""
    for variable, array in of_last_fit(model):
        variable.assign(array)
    TRAINED.pop(model.optimizer, None)


def of_last_fit(model):
    """Pairs of the variables that a model's last `fit` trained and their values, if the averages are in their place;
    otherwise an empty list."""
    optimizer = getattr(model, "optimizer", None)
    values = TRAINED.get(optimizer, ()) if optimizer is not None else ()
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    averages = getattr(optimizer, "_model_variables_moving_average", ())
    if not values or len(values) != len(averages):  # such as of an optimizer that a file's weights are not of
        return []
    # Not the model's trainable variables, which it may have frozen since.
    variables = optimizer._trainable_variables
    is_average = all(bool(ops.all(ops.equal(*pair))) for pair in zip(variables, averages, strict=True))
    return list(zip(variables, values, strict=True)) if is_average else []


def save(model, store):
    """Writes the weights that the last `fit` trained into the part of a file that is the model's own."""
    for number, (_, array) in enumerate(of_last_fit(model)):
        store[f"{PREFIX}{number}"] = ops.convert_to_numpy(array)


def load(model, store):
    """Reads what `save` wrote, for the next `fit`. Returns the rest of the model's own part, as a dict."""
    rest = {name: store[name] for name in store.keys() if not name.startswith(PREFIX)}
    count = len(store.keys()) - len(rest)
    if count and getattr(model, "optimizer", None) is not None:
        TRAINED[model.optimizer] = [ops.convert_to_tensor(store[f"{PREFIX}{number}"]) for number in range(count)]
    return rest


def has_average(optimizer):
    """Whether an optimizer, or the one that it wraps to scale the loss, keeps a moving average of the weights."""
    return bool(optimizer.use_ema or getattr(getattr(optimizer, "inner_optimizer", None), "use_ema", False))
