"""AdamW's update of the weights: by `keras.ops`, or by the backend's own kernel where that saves passes over memory.

XLA fuses the dozen steps of the formula into one pass over weight, moments and gradient. TensorFlow without XLA and
torch need a pass for each step, and on an accelerator a kernel launch for each; both have one kernel for the whole
update, torch's for many weights at once. These differ only in rounding. Each backend is imported only in the function
that uses it.
"""

import collections
import operator
import typing

import keras
from keras import ops


class Update(typing.NamedTuple):
    """The update of a weight w with gradient g and moments m, v (Kingma and Ba 2015; Loshchilov and Hutter 2019):

        m += (1 - beta_1) (g - m)
        v += (1 - beta_2) (g g - v)
        w  = (1 - decay learning_rate) w - rate learning_rate (m / missing_1) / (sqrt(v / missing_2) + epsilon)

    Args:
        variable, first, second, gradient: w, m, v and g.
        step: the number of the update, from 1, an integer scalar.
        learning_rate: a scalar, the same for all weights of a step.
        rate, decay: numbers.
        beta_1, beta_2, epsilon: numbers; missing_i = 1 - beta_i ** step corrects for moments that start at zero.
        salt: None; of a weight whose moments are kept in bfloat16, an integer scalar that differs between steps, see
            `rounded`.
    """

    variable: typing.Any
    first: typing.Any
    second: typing.Any
    gradient: typing.Any
    step: typing.Any
    learning_rate: typing.Any
    rate: float
    decay: float
    beta_1: float
    beta_2: float
    epsilon: float
    salt: typing.Any = None

    def missing(self, beta):
        """1 - beta ** step, a scalar of the gradient's type."""
        return missing(beta, self.step, self.gradient.dtype)

    @property
    def kept(self):
        """What decay leaves of a weight, a scalar of its type."""
        return ops.cast(1 - self.learning_rate * self.decay, self.variable.dtype)

    @property
    def scaled_rate(self):
        """The learning rate of this weight, a scalar of its type."""
        return ops.cast(self.learning_rate * self.rate, self.variable.dtype)


def missing(beta, step, dtype):
    """1 - beta ** step, a scalar of this type."""
    # bfloat16 rounds 0.999 to 1: a weight of that type would never change.
    exact = keras.backend.result_type(dtype, "float32")
    return ops.cast(1 - ops.power(ops.cast(beta, exact), ops.cast(step, exact)), dtype)


def updates_together():
    """Whether the backend's kernel updates many weights by one call, see `Together`."""
    return keras.backend.backend() == "torch"


def apply(updates, assign):
    """Applies the Updates of a step; `assign` is the optimizer's function of (variable, value)."""
    by_ops([update for update in updates if update.salt is not None], assign)
    KERNELS.get(keras.backend.backend(), by_ops)([update for update in updates if update.salt is None], assign)


class Together:
    """The weights of a model on torch, divided once into groups that a kernel updates by one call: a few launches on a
    GPU in place of hundreds, and in Python a list in place of a dozen calls for each weight.

    Args:
        updates: an Update of each weight, of which gradient, step, learning rate and salt are those of `apply`; a salt
            that is not None is replaced by that of `apply`.
    """

    def __init__(self, updates):
        self.variables = [update.variable for update in updates]
        self.salted = [(place, update) for place, update in enumerate(updates) if update.salt is not None]
        groups = collections.defaultdict(list)
        for place, update in enumerate(updates):
            if update.salt is None:
                weight = update.variable.value
                groups[update.rate, update.decay, weight.dtype, weight.device].append(place)
        self.groups = [
            (places, updates[places[0]], *([updates[each][field].value for each in places] for field in range(3)))
            for places in groups.values()
        ]

    def holds(self, variables):
        """Whether these are the weights that it was made of, in the same order."""
        return len(variables) == len(self.variables) and all(map(operator.is_, variables, self.variables))

    def apply(self, gradients, step, learning_rate, salt, assign):
        """Applies the update of a step with these gradients; `assign` as of `apply`."""
        import torch

        shared = {"step": step, "learning_rate": learning_rate}
        for place, update in self.salted:
            gradient = gradients[place].to(update.variable.value.dtype)
            by_ops([update._replace(gradient=gradient, salt=salt, **shared)], assign)
        with torch.no_grad():
            for places, update, *arrays in self.groups:
                _group_by_torch(update._replace(**shared), [gradients[place] for place in places], *arrays)


def by_ops(updates, assign):
    """The plain form, as `apply`."""
    for update in updates:
        gradient, variable = update.gradient, update.variable
        before = [ops.cast(moment, gradient.dtype) for moment in (update.first, update.second)]
        first = before[0] + (gradient - before[0]) * (1 - update.beta_1)
        second = before[1] + (ops.square(gradient) - before[1]) * (1 - update.beta_2)
        for moment, value in ((update.first, first), (update.second, second)):
            assign(moment, value if update.salt is None else rounded(value, update.salt))
        root = ops.sqrt(update.missing(update.beta_2))
        # The corrections are scalars: they are applied where they cost no additional pass over the weights.
        rate = update.scaled_rate * root / update.missing(update.beta_1)
        assign(variable, variable * update.kept - rate * first / (ops.sqrt(second) + update.epsilon * root))


def rounded(values, salt):
    """float32 values in bfloat16, each rounded up or down with the probability that keeps its mean: to the nearest, a
    second moment would never fall, since 1 - beta_2 is less than half of a bfloat16's last digit (stochastic rounding,
    Gupta et al. 2015, "Deep Learning with Limited Numerical Precision").

    The random bits are a hash of the value, its place and the salt: they need no memory, and are the same on each
    device that holds a copy of the value.
    """
    bits, place = ops.view(values, dtype="int32"), 0
    for axis, size in enumerate(values.shape):
        of_axis = [size if other == axis else 1 for other in range(len(values.shape))]
        place = place * size + ops.reshape(ops.arange(size, dtype="int32"), of_axis)
    # Integers wrap around on all backends.
    mixed = bits * -1640531535 + place * 668265263 + ops.cast(salt, "int32") * -2048144789
    mixed = ops.bitwise_xor(mixed, ops.right_shift(mixed, 15)) * 739982445
    noise = ops.bitwise_and(ops.right_shift(mixed, 16), 0xFFFF)
    # A bfloat16 is the first 16 bits of a float32.
    kept = ops.view(ops.bitwise_and(bits + noise, -0x10000), dtype="float32")
    return ops.cast(ops.where(ops.isfinite(values), kept, values), "bfloat16")


def _by_tensorflow(updates, assign):
    for update in updates:
        if keras.backend.standardize_dtype(update.variable.dtype) in ("float16", "bfloat16"):
            # The kernel computes 1 - beta ** step in the type of the weight, see `missing`.
            by_ops([update], assign)
        else:
            _one_by_tensorflow(update, assign)


def _one_by_tensorflow(update, assign):
    import tensorflow as tf

    variable, first, second = (
        each.value if isinstance(each, keras.Variable) else each
        for each in (update.variable, update.first, update.second)
    )
    assign(variable, variable * update.kept)
    missing_2 = update.missing(update.beta_2)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=first.handle,
        v=second.handle,
        beta1_power=1 - update.missing(update.beta_1),
        beta2_power=1 - missing_2,
        lr=update.scaled_rate,
        beta1=update.beta_1,
        beta2=update.beta_2,
        epsilon=update.epsilon * tf.sqrt(missing_2),  # the kernel adds it to the uncorrected second moment's root
        grad=update.gradient,
    )


def _by_torch(updates, assign):
    if updates:
        one = updates[0]
        gradients = [update.gradient for update in updates]
        Together(updates).apply(gradients, one.step, one.learning_rate, None, assign)


def _group_by_torch(one, gradients, weights, first, second):
    """Applies an Update to weights of the same rate, decay, type and device, each with its own gradient and moments."""
    import torch

    if not one.rate:  # the kernel multiplies its decay by the weight's own rate
        torch._foreach_mul_(weights, one.kept)
    torch._fused_adamw_(
        weights,
        [each if each.dtype is weights[0].dtype else each.to(weights[0].dtype) for each in gradients],
        first,
        second,
        [],
        [ops.cast(one.step, "float32")] * len(weights),
        lr=ops.cast(one.learning_rate, "float32") * one.rate,
        beta1=one.beta_1,
        beta2=one.beta_2,
        weight_decay=one.decay / one.rate if one.rate else 0.0,
        eps=one.epsilon,
        amsgrad=False,
        maximize=False,
    )


KERNELS = {"tensorflow": _by_tensorflow, "torch": _by_torch}
