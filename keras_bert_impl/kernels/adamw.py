"""AdamW's update of one weight: by `keras.ops`, or by the backend's own kernel where that saves passes over memory.

XLA fuses the dozen steps of the formula into one pass over weight, moments and gradient. TensorFlow without XLA and
torch need a pass for each step, and on an accelerator a kernel launch for each; both have one kernel for the whole
update, which differs only in rounding. Each backend is imported only in the function that uses it.
"""

import typing

import keras
from keras import ops


class Update(typing.NamedTuple):
    """The update of a weight w with gradient g and moments m, v (Kingma and Ba 2015; Loshchilov and Hutter 2019):

        m += (1 - beta_1) (g - m)
        v += (1 - beta_2) (g g - v)
        w  = keep w - rate (m / missing_1) / (sqrt(v / missing_2) + epsilon)

    Args:
        gradient, first, second, variable: g, m, v and w.
        step: the number of the update, from 1, an integer scalar.
        rate, keep: scalars.
        beta_1, beta_2, epsilon: numbers; missing_i = 1 - beta_i ** step corrects for moments that start at zero.
    """

    variable: typing.Any
    first: typing.Any
    second: typing.Any
    gradient: typing.Any
    step: typing.Any
    rate: typing.Any
    keep: typing.Any
    beta_1: float
    beta_2: float
    epsilon: float

    def missing(self, beta):
        """1 - beta ** step, a scalar of the gradient's type."""
        return missing(beta, self.step, self.gradient.dtype)


def missing(beta, step, dtype):
    """1 - beta ** step, a scalar of this type."""
    # bfloat16 rounds 0.999 to 1: a weight of that type would never change.
    exact = keras.backend.result_type(dtype, "float32")
    return ops.cast(1 - ops.power(ops.cast(beta, exact), ops.cast(step, exact)), dtype)


def apply(update, assign):
    """Applies an Update; `assign` is the optimizer's function of (variable, value)."""
    KERNELS.get(keras.backend.backend(), by_ops)(update, assign)


def by_ops(update, assign):
    """The plain form, as `apply`."""
    gradient, variable = update.gradient, update.variable
    first = update.first + (gradient - update.first) * (1 - update.beta_1)
    second = update.second + (ops.square(gradient) - update.second) * (1 - update.beta_2)
    assign(update.first, first)
    assign(update.second, second)
    root = ops.sqrt(update.missing(update.beta_2))
    # The corrections are scalars: they are applied where they cost no additional pass over the weights.
    rate = update.rate * root / update.missing(update.beta_1)
    assign(variable, variable * update.keep - rate * first / (ops.sqrt(second) + update.epsilon * root))


def _by_tensorflow(update, assign):
    import tensorflow as tf

    if keras.backend.standardize_dtype(update.variable.dtype) in ("float16", "bfloat16"):
        # The kernel computes 1 - beta ** step in the type of the weight, see `missing`.
        by_ops(update, assign)
        return
    variable, first, second = (
        each.value if isinstance(each, keras.Variable) else each
        for each in (update.variable, update.first, update.second)
    )
    assign(variable, variable * update.keep)
    missing_2 = update.missing(update.beta_2)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=first.handle,
        v=second.handle,
        beta1_power=1 - update.missing(update.beta_1),
        beta2_power=1 - missing_2,
        lr=update.rate,
        beta1=update.beta_1,
        beta2=update.beta_2,
        epsilon=update.epsilon * tf.sqrt(missing_2),  # the kernel adds it to the uncorrected second moment's root
        grad=update.gradient,
    )


def _by_torch(update, assign):
    import torch
    from torch.optim.adamw import adamw

    variable, first, second = (each.value for each in (update.variable, update.first, update.second))
    step = ops.cast(update.step - 1, "float32").clone()  # the kernel adds 1
    with torch.no_grad():
        variable.mul_(update.keep)
        adamw(
            *([tensor] for tensor in (variable, update.gradient, first, second)),
            max_exp_avg_sqs=[],
            state_steps=[step],
            fused=True,
            amsgrad=False,
            beta1=update.beta_1,
            beta2=update.beta_2,
            lr=update.rate,
            weight_decay=0.0,
            eps=update.epsilon,
            maximize=False,
        )


KERNELS = {"tensorflow": _by_tensorflow, "torch": _by_torch}
