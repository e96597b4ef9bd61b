"""The weights that a `fit` trained, where the optimizer keeps their moving average (`use_ema`).

At the end of each `fit`, Keras puts the averages in the place of the weights, which is what one wants to evaluate and
to save. The next `fit` would train from the averages, too; here it goes on from the weights that were trained.
"""

import contextlib
import weakref

from keras import ops

TRAINED = weakref.WeakKeyDictionary()  # of each optimizer: the weights before the averages took their place


@contextlib.contextmanager
def kept(model):
    """A call of Keras' `fit` within this context trains on from the weights that the last one trained.

    Weights that were set after the last `fit`, such as those of a checkpoint, are kept as they are.

    Args:
        model: a compiled model.
    """
    optimizer = model.optimizer
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
    trained = TRAINED.pop(model.optimizer, None)
    if trained is None:
        return
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    variables = model.trainable_variables
    averages = optimizer._model_variables_moving_average
    if all(bool(ops.all(ops.equal(one, other))) for one, other in zip(variables, averages, strict=True)):
        for variable, array in zip(variables, trained, strict=True):
            variable.assign(array)


def has_average(optimizer):
    """Whether an optimizer, or the one that it wraps to scale the loss, keeps a moving average of the weights."""
    return bool(optimizer.use_ema or getattr(getattr(optimizer, "inner_optimizer", None), "use_ema", False))
