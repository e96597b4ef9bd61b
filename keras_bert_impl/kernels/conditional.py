"""Assigns variables only if a condition holds that is known when the step runs."""

import keras
from keras import ops


def assign_if(condition, then, otherwise, variables):
    """Calls `then` if the condition holds and `otherwise` if not; in both, only these variables may be assigned.

    Args:
        condition: a bool scalar.
        then: function without arguments or result, for a condition that holds.
        otherwise: the same for one that does not.
        variables: the `keras.Variable`s that either function may assign.
    """
    if keras.backend.backend() == "jax":
        _assign_if_in_jax(condition, then, otherwise, variables)
    else:
        ops.cond(condition, then, otherwise)


def _assign_if_in_jax(condition, then, otherwise, variables):
    """Keras computes both in JAX, and chooses between the results: Adam at each micro-step, and its state twice in
    memory. Here a branch is a function of the values and returns the new ones, which XLA computes in place."""
    import jax

    def branch(assign):
        def new_values(values):
            with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))) as scope:
                assign()
            return [scope.get_current_value(variable) for variable in variables]

        return new_values

    values = jax.lax.cond(condition, branch(then), branch(otherwise), [variable.value for variable in variables])
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
