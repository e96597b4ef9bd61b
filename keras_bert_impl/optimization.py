"""The optimizer and learning-rate schedule of the paper (Devlin et al. 2019, appendix A.2)."""

import re

import keras
from keras import ops
from keras.backend import standardize_dtype

from keras_bert_impl.distribution import adds_up_replicas, divided_as_state, layout_of_state, sum_over_replicas
from keras_bert_impl.kernels import adamw
from keras_bert_impl.kernels.conditional import assign_if
from keras_bert_impl.kernels.global_norm import dense, global_norm, scaled
from keras_bert_impl.suggestions import one_of

__all__ = ["BertAdamW", "BertLamb", "BertStableAdamW", "MovableDecay", "WarmupLinearDecay", "WarmupStableDecay"]


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """The learning-rate schedule of BERT: rises linearly during warm-up, then falls linearly to 0.

    Args:
        peak (float): highest learning rate. BERT: 1e-4 for pre-training, 2e-5 to 5e-5 for fine-tuning.
        warmup_steps (int): number of steps until the peak. BERT: 10,000 of 1,000,000 in pre-training, 10 % in
            fine-tuning.
        total_steps (int): step at which the rate reaches 0, where it stays.

    Raises: ValueError if warmup_steps is not below total_steps.

    Example:
        >>> schedule = kbi.optimization.WarmupLinearDecay(1e-4, 10, total_steps=100)
        >>> [round(float(schedule(step)), 6) for step in (0, 9, 55, 100)]
        [1e-05, 0.0001, 5e-05, 0.0]
    """

    def __init__(self, peak, warmup_steps, total_steps):
        super().__init__()
        if not 0 <= warmup_steps < total_steps:
            raise ValueError(f"warmup_steps {warmup_steps} must be at least 0 and below total_steps {total_steps}.")
        self.peak, self.warmup_steps, self.total_steps = float(peak), int(warmup_steps), int(total_steps)

    def __call__(self, step):
        step = ops.cast(step, "float32")
        # (step + 1) / warmup, so that step 0 already learns; Google's first step has rate 0 and changes nothing.
        rising = (step + 1) / max(self.warmup_steps, 1)
        falling = (self.total_steps - step) / (self.total_steps - self.warmup_steps)
        return self.peak * ops.maximum(0.0, ops.minimum(rising, falling))

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "total_steps": self.total_steps}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WarmupStableDecay(WarmupLinearDecay):
    """A learning-rate schedule that rises linearly, stays at its peak, and falls at the end by a square root.

    It is from Hägele et al. 2024, "Scaling laws and compute-optimal training beyond fixed training durations", and
    ModernBERT (Warner et al. 2024, section 2.2.1).

    Args:
        peak (float): highest learning rate.
        warmup_steps (int): number of steps until the peak.
        total_steps (int): step at which the rate reaches 0, where it stays.
        decay_steps (int): number of steps at the end, in which the rate is peak * (1 - sqrt(fraction of them done)).

    Raises: ValueError if decay_steps is below 1, or warmup_steps and decay_steps together exceed total_steps.
    """

    def __init__(self, peak, warmup_steps, total_steps, decay_steps):
        super().__init__(peak, warmup_steps, total_steps)
        if not 0 < decay_steps <= total_steps - warmup_steps:
            raise ValueError(
                f"decay_steps {decay_steps} must be above 0, and with warmup_steps {warmup_steps} not be more than "
                f"total_steps {total_steps}."
            )
        self.decay_steps = int(decay_steps)

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = (step + 1) / max(self.warmup_steps, 1)
        done = (step - (self.total_steps - self.decay_steps)) / self.decay_steps
        falling = 1 - ops.sqrt(ops.clip(done, 0.0, 1.0))
        return self.peak * ops.minimum(rising, falling)

    def get_config(self):
        return {**super().get_config(), "decay_steps": self.decay_steps}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MovableDecay(WarmupLinearDecay):
    """A `WarmupLinearDecay` whose end can be moved during training, for a training that ends at a certain time.

    After a move, training continues on the same curve, only faster or slower, so that the rate never jumps and always
    ends at 0. Geiping and Goldstein 2022 proposed a schedule over the available time instead of over steps.

    Args:
        peak (float): highest learning rate.
        warmup_steps (int): number of steps until the peak.
        total_steps (int): the planned end.

    Attributes:
        pace (keras.Variable): (3,), saved with the optimizer: a step, its position on the curve, and how far each later
            step advances on the curve.
    """

    def __init__(self, peak, warmup_steps, total_steps):
        super().__init__(peak, warmup_steps, total_steps)
        self.pace = keras.Variable([0.0, 0.0, 1.0], trainable=False, dtype="float32", name="pace")

    def __call__(self, step):
        first, place, pace = self.pace[0], self.pace[1], self.pace[2]
        return super().__call__(place + (ops.cast(step, "float32") - first) * pace)

    def move_end(self, step, total_steps):
        """Moves the end: from `step` on, the rate falls so that it is 0 at `total_steps`.

        Call it only between two calls of the compiled training step.

        Args:
            step (int): the current step.
            total_steps (int): the new end.
        """
        first, place, pace = ops.convert_to_numpy(self.pace).astype("float64")
        place += (step - first) * pace
        self.pace.assign([step, place, (self.total_steps - place) / (total_steps - step)])


NOT_TAKEN = {
    "clipnorm": "it clips all gradients together, to the norm global_clipnorm",
    "clipvalue": "it clips all gradients together, to the norm global_clipnorm",
    "amsgrad": "its update keeps no maximum of the second moments; keras.optimizers.AdamW does",
}


class ClipsToGlobalNorm:
    """What BertAdamW and BertLamb share: the norm of all gradients together is limited, and recorded; gradients of
    several steps are accumulated so that the update, and the moving average of the weights, is computed once for them.

    Attributes:
        gradient_norm: variable, the norm in the last step, before clipping.
        first_bad_update: variable, the number of the first update, from 1, whose norm was NaN or infinite, 0 if there
            is none: steps that are executed together are seen from outside only when all are done.
        followers: pairs (leader, follower) of weights, see `let_follow`.

    Raises: ValueError for an argument of Keras' optimizer that this update does not implement.
    """

    followers = ()

    def __init__(self, learning_rate, **arguments):
        for name, remedy in NOT_TAKEN.items():
            if arguments.get(name):  # Keras' own config of an optimizer holds them as None or False
                raise ValueError(f"{type(self).__name__} does not take {name}={arguments[name]!r}: {remedy}.")
        super().__init__(learning_rate, **arguments)
        self.movable = learning_rate if isinstance(learning_rate, MovableDecay) else None
        if self.gradient_accumulation_steps and adds_up_replicas():
            raise ValueError(
                f"gradient_accumulation_steps={self.gradient_accumulation_steps} does not work with a tf.distribute "
                "strategy of several replicas, which cannot accumulate gradients: train with "
                "KERAS_BACKEND=jax, or use larger batches with gradient checkpointing."
            )
        if self.gradient_accumulation_steps and self.ema_overwrite_frequency:
            raise ValueError(
                f"{type(self).__name__} does not take ema_overwrite_frequency={self.ema_overwrite_frequency} together "
                "with gradient_accumulation_steps: leave it out, and the average is applied at the end of training."
            )

    def let_follow(self, leader, follower):
        """What an update changes in the weight `leader` it also adds to `follower`, of the same shape, whose own update
        is that of its difference from the leader, decay included. (He et al. 2021, "DeBERTaV3", section 3.3:
        gradient-disentangled embedding sharing.)"""
        # Keras would track the weights as variables of the optimizer.
        object.__setattr__(self, "followers", ((leader, follower),))

    def build(self, variables):
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, variables)  # without that of Adam or Lamb: the moments are our own
        self.first_moments, self.second_moments = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        self.gradient_norm = self.add_variable((), name="gradient_norm")
        self.first_bad_update = self.add_variable((), dtype="int32", name="first_bad_update")
        if self.movable is not None:
            self.pace = self.movable.pace  # which Keras then saves and restores with the moments

    def add_variable(self, shape, initializer="zeros", dtype=None, aggregation="none", layout=None, name=None):
        layout = layout_of_state(shape) or layout  # that of the weight
        return super().add_variable(shape, initializer, dtype, aggregation, layout, name)

    def _clip_gradients(self, gradients):
        # Clips by the norm for the whole batch, not for each replica: Keras would clip first and sum afterwards.
        summed = sum_over_replicas(dense(gradients))
        summed = divided_as_state(summed)
        clipped = clip_to_norm(summed, self.global_clipnorm, self.gradient_norm)
        is_bad = ops.logical_not(ops.isfinite(ops.convert_to_tensor(self.gradient_norm)))
        first, number = ops.convert_to_tensor(self.first_bad_update), ops.cast(self.iterations + 1, "int32")
        self.first_bad_update.assign(ops.where(ops.logical_and(first == 0, is_bad), number, first))
        return clipped

    def _backend_apply_gradients(self, gradients, variables):
        updated = {id(variable) for variable in variables}
        pairs = [pair for pair in self.followers if id(pair[1]) in updated]  # not those that are frozen
        for leader, follower in pairs:
            follower.assign(ops.convert_to_tensor(follower) - ops.convert_to_tensor(leader))
        self._apply_or_accumulate(gradients, variables)
        for leader, follower in pairs:
            follower.assign(ops.convert_to_tensor(follower) + ops.convert_to_tensor(leader))

    def _apply_or_accumulate(self, gradients, variables):
        steps = self.gradient_accumulation_steps
        if not steps:
            super()._backend_apply_gradients(gradients, variables)
            return
        sums = [self._accumulated_gradients[self._get_variable_index(variable)] for variable in variables]

        def update():
            means = [(gradient + before) / steps for gradient, before in zip(gradients, sums, strict=True)]
            means = self._clip_gradients(means)
            self._backend_update_step(means, variables, self.learning_rate)
            for held in sums:
                self.assign(held, ops.zeros(held.shape, held.dtype))
            # Keras averages the weights after each micro-step, also those that change nothing.
            if self.use_ema:
                self._update_model_variables_moving_average(self._trainable_variables)

        def accumulate():
            for gradient, held in zip(gradients, sums, strict=True):
                self.assign_add(held, gradient)

        # The first of an optimizer's variables counts its steps, also those that `iterations` leaves out here.
        is_last = ops.equal((self.variables[0] + 1) % steps, 0)
        assign_if(is_last, update, accumulate, [*variables, *self.variables])

    def _all_reduce_sum_gradients(self, gradients_and_variables):
        """Overrides a method of Keras' TensorFlow optimizers: the gradients are already summed."""
        return gradients_and_variables


LATE_STEP = 2**30  # beta ** step is 0 for any beta below 1 - 1e-7


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertAdamW(ClipsToGlobalNorm, keras.optimizers.AdamW):
    """AdamW as BERT was trained: no weight decay on biases and layer norms, gradients clipped to a global norm.

    Unlike google-research/bert's optimizer, it corrects the bias of the moments (see bias_correction). Unlike Keras'
    AdamW, it adds epsilon to the corrected second moment (Kingma and Ba 2015, algorithm 1), as torch does.

    Args:
        learning_rate (float or schedule, optional): learning rate. Default: 5e-5.
        weight_decay (float, optional): decoupled weight decay. Default: 0.01, as in the paper.
        global_clipnorm (float, optional): largest norm of all gradients together; None for no clipping. Default: 1.0,
            as in Google's code.
        beta_2 (float, optional): decay of the second moment. Default: 0.999, as in Google's code.
        epsilon (float, optional): added to the root of the second moment. Default: 1e-6, as in Google's code.
        layer_decay (float, optional): factor of the learning rate from each transformer block to the one below; the top
            block, pooler and head have the full rate, the embeddings the lowest (Howard and Ruder 2018; ELECTRA uses
            0.8). Weight decay uses the full rate. Default: 1.0, as in BERT.
        bias_correction (bool, optional): False reproduces Google's AdamWeightDecayOptimizer, whose first updates are
            several times larger. Default: True.
        moments (str, optional): "float32", or "bfloat16" to store both moments in half the memory, rounded at random so
            that their means are kept. Default: "float32".
        arguments: further arguments of `keras.optimizers.AdamW`, such as `gradient_accumulation_steps` and `use_ema`.

    Raises: ValueError for moments of another type, and for `clipnorm`, `clipvalue` and `amsgrad`.

    Example:
        >>> schedule = kbi.optimization.WarmupLinearDecay(5e-5, 10, total_steps=100)
        >>> model = kbi.MaskedLM.from_pretrained("small_english")
        >>> model.compile(kbi.optimization.BertAdamW(schedule), model.loss)
    """

    settings = together = None  # on torch, the last `adamw.Together` and what it was made with

    def __init__(
        self,
        learning_rate=5e-5,
        weight_decay=0.01,
        global_clipnorm=1.0,
        beta_2=0.999,
        epsilon=1e-6,
        layer_decay=1.0,
        bias_correction=True,
        moments="float32",
        **arguments,
    ):
        one_of("moments", moments, ("float32", "bfloat16"))
        super().__init__(
            learning_rate,
            weight_decay=weight_decay,
            global_clipnorm=global_clipnorm,
            beta_2=beta_2,
            epsilon=epsilon,
            **{"name": "bert_adamw", **arguments},
        )
        self.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "scale"])
        self.layer_decay = float(layer_decay)
        self.bias_correction = bool(bias_correction)
        self.moments = moments

    def add_variable(self, shape, initializer="zeros", dtype=None, aggregation="none", layout=None, name=None):
        is_short = self.moments == "bfloat16" and dtype == "float32" and str(name).endswith(("_momentum", "_velocity"))
        return super().add_variable(shape, initializer, self.moments if is_short else dtype, aggregation, layout, name)

    def build(self, variables):
        super().build(variables)
        self.layer_rates = layer_rates([variable.path for variable in variables], self.layer_decay)
        self.decays = [float(self._use_weight_decay(variable)) for variable in variables]
        # Once, not for each weight in each step, which torch computes one by one.
        self.are_short = [
            moment is not None and standardize_dtype(moment.dtype) != standardize_dtype(variable.dtype)
            for moment, variable in zip(self.first_moments, variables, strict=True)
        ]

    def _apply_weight_decay(self, variables):
        """Does nothing: the decay is part of the update, which saves a pass over the weights."""

    def _backend_update_step(self, gradients, variables, learning_rate):
        if not adamw.updates_together():
            super()._backend_update_step(gradients, variables, learning_rate)
            return
        settings = self.weight_decay, self.beta_1, self.beta_2, self.epsilon
        if settings != self.settings or not self.together.holds(variables):
            self.settings = settings
            self.together = adamw.Together([self._update(None, variable, None, None) for variable in variables])
        self.together.apply(gradients, self._step(), learning_rate, self.iterations, self.assign)

    def update_step(self, gradient, variable, learning_rate):
        adamw.apply([self._update(gradient, variable, learning_rate, self._step())], self.assign)

    def _step(self):
        """The number of the update; a late one if bias is not corrected, since the correction for that is 1."""
        return self.iterations + 1 if self.bias_correction else ops.full((), LATE_STEP, self.iterations.dtype)

    def _update(self, gradient, variable, learning_rate, step):
        index = self._get_variable_index(variable)
        return adamw.Update(
            variable,
            self.first_moments[index],
            self.second_moments[index],
            gradient if gradient is None else ops.cast(gradient, variable.dtype),
            step,
            learning_rate=learning_rate,
            rate=self.layer_rates[index],
            decay=(self.weight_decay or 0.0) * self.decays[index],
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            salt=self.iterations if self.are_short[index] else None,
        )

    def get_config(self):
        names = ("layer_decay", "bias_correction", "moments")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertStableAdamW(BertAdamW):
    """AdamW with update clipping: takes smaller steps where a gradient is larger than its second moment expects.

    This replaces clipping all gradients together (Wortsman et al. 2023, "Stable and low-precision training for
    large-scale vision-language models", algorithm 2). ModernBERT was trained with it. For each weight, learning rate
    and decay are divided by the root mean square of g / sqrt(v) if it is above 1. Here g is the gradient, and v the
    corrected second moment, at least epsilon squared.

    Args:
        learning_rate (float or schedule, optional): learning rate. Default: 8e-4.
        weight_decay (float, optional): decoupled weight decay. Default: 1e-5, as in ModernBERT.
        global_clipnorm (float, optional): largest norm of all gradients together. Default: None, no clipping.
        beta_2 (float, optional): decay of the second moment. Default: 0.98, as in ModernBERT.
        epsilon (float, optional): as in BertAdamW. Default: 1e-6.
        arguments: further arguments of BertAdamW.
    """

    def __init__(
        self, learning_rate=8e-4, weight_decay=1e-5, global_clipnorm=None, beta_2=0.98, epsilon=1e-6, **arguments
    ):
        super().__init__(
            learning_rate,
            weight_decay,
            global_clipnorm,
            beta_2,
            epsilon,
            **{"name": "bert_stable_adamw", **arguments},
        )

    def _backend_update_step(self, gradients, variables, learning_rate):
        # Weight by weight: each has a rate of its own.
        super(BertAdamW, self)._backend_update_step(gradients, variables, learning_rate)

    def update_step(self, gradient, variable, learning_rate):
        update = self._update(gradient, variable, learning_rate, self._step())
        square = ops.square(update.gradient)
        before = ops.cast(update.second, square.dtype)
        second = before + (square - before) * (1 - self.beta_2)
        corrected = ops.maximum(second / update.missing(self.beta_2), self.epsilon**2)
        ratio = ops.sqrt(ops.mean(square / corrected))
        slower = ops.cast(ops.maximum(ratio, 1.0), ops.dtype(learning_rate))
        adamw.by_ops([update._replace(learning_rate=learning_rate / slower)], self.assign)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertLamb(ClipsToGlobalNorm, keras.optimizers.Lamb):
    """LAMB, for batches of thousands (You et al. 2020, algorithm 2): each weight's update is scaled to the weight's
    norm.

    As in the paper, and unlike in Keras' Lamb, the norm of an update includes its decay. As in Google's code, biases
    and layer norms have no decay and no scaling by norms, and gradients are clipped to a global norm.

    Args:
        learning_rate (float or schedule, optional): learning rate. The paper has 0.005 for batches of 32,768, and less
            in proportion to the square root of the batch size: 0.00177 for 4,096, 0.000625 for 512. Default: 1e-3.
        weight_decay (float, optional): weight decay. Default: 0.01, as in the paper.
        global_clipnorm (float, optional): largest norm of all gradients together; None for no clipping. Default: 1.0.
        beta_2 (float, optional): decay of the second moment. Default: 0.999, as in the paper.
        epsilon (float, optional): added to the root of the second moment. Default: 1e-6, as in the paper.
        arguments: further arguments of `keras.optimizers.Lamb`.
    """

    def __init__(
        self, learning_rate=1e-3, weight_decay=0.01, global_clipnorm=1.0, beta_2=0.999, epsilon=1e-6, **arguments
    ):
        super().__init__(
            learning_rate,
            global_clipnorm=global_clipnorm,
            beta_2=beta_2,
            epsilon=epsilon,
            **{"name": "bert_lamb", **arguments},
        )
        self.decay = float(weight_decay)

    def build(self, variables):
        super().build(variables)
        names = [variable.path.split("/")[-1] for variable in variables]
        self.is_plain = [name in ("bias", "output_bias", "gamma", "beta", "scale") for name in names]
        self.decays = [self.decay * self._use_weight_decay(variable) for variable in variables]

    def update_step(self, gradient, variable, learning_rate):
        rate, gradient = ops.cast(learning_rate, variable.dtype), ops.cast(gradient, variable.dtype)
        step, index = self.iterations + 1, self._get_variable_index(variable)
        first, second = self.first_moments[index], self.second_moments[index]
        self.assign_add(first, (gradient - first) * (1 - self.beta_1))
        self.assign_add(second, (ops.square(gradient) - second) * (1 - self.beta_2))
        corrected = second / adamw.missing(self.beta_2, step, variable.dtype)
        update = first / adamw.missing(self.beta_1, step, variable.dtype)
        update = update / (ops.sqrt(corrected) + self.epsilon)
        if self.is_plain[index]:
            self.assign_sub(variable, rate * update)
            return
        update = update + self.decays[index] * variable
        norms = [ops.sqrt(ops.sum(ops.square(array))) for array in (variable, update)]
        # A weight that is still zero, or whose update is zero, is not scaled.
        defined = ops.logical_and(norms[0] > 0, norms[1] > 0)
        share = ops.where(defined, norms[0] / ops.where(norms[1] > 0, norms[1], 1.0), 1.0)
        self.assign_sub(variable, share * rate * update)

    def get_config(self):
        return {**super().get_config(), "weight_decay": self.decay}


def rate_of_last_step(optimizer):
    """The learning rate of the last step, a float; `optimizer.learning_rate` is already that of the next one."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of one that scales the loss
    count = optimizer.variables[0]
    with keras.StatelessScope(state_mapping=[(count, ops.maximum(ops.convert_to_tensor(count) - 1, 0))]):
        return float(optimizer.learning_rate)


def clip_to_norm(gradients, most, norm):
    """Scales the gradients down together to a norm of at most `most`; the variable `norm` gets the norm before scaling.

    The result equals that of Keras' own function, which does not return the norm.
    """
    norm.assign(global_norm(gradients))
    return scaled(gradients, most / ops.maximum(norm, most)) if most else gradients


def layer_rates(paths, layer_decay):
    """The factor of the learning rate for each weight path: 1 above the blocks, times `layer_decay` per block down.

    With two blocks: head, pooler and block_1 have 1, block_0 d, the embeddings d ** 2. Frozen weights have no path.
    """
    blocks = [re.match(r"block_(\d+)/", path) for path in paths]
    depth = 1 + max((int(block[1]) for block in blocks if block), default=-1)

    def rate(path, block):
        if block:
            return layer_decay ** (depth - 1 - int(block[1]))
        is_embedding = path.split("/")[0] in EMBEDDING_LAYERS
        return layer_decay**depth if is_embedding else 1.0

    return [rate(path, block) for path, block in zip(paths, blocks, strict=True)]


EMBEDDING_LAYERS = (
    *("token_embedding", "position_embedding", "segment_embedding", "embeddings_norm"),
    *("embeddings_projection", "task_embedding", "relative_positions", "relative_embeddings", "convolution"),
    "query_start",
)
