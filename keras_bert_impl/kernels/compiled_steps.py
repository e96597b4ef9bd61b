"""The steps of a model by torch's compiler: forward pass and loss are one compiled function.

`jit_compile=True` of Keras compiles on torch the whole step with its optimizer and metrics, which ends in an error or
takes minutes. Without it, most of a step of a small model is Keras' Python: a dozen layers are a thousand calls.
Compiled, the layers' Python runs once for each kind of step; lengths and batch sizes are variables of the program from
the second one on. The optimizer has a kernel for all weights at once already, see `adamw.py`.
"""

import warnings

import keras

from keras_bert_impl.user_warnings import warn_user

# Batches that `predict` computes before it compiles: who asks for one text waits for no compiler.
PLAIN_PREDICTIONS = 50


class PlainSteps:
    """JAX's and TensorFlow's: what Keras compiles."""


class CompiledSteps:
    """Mixin of a `keras.Model` on torch, where `jit_compile` means this form; "auto" is True on a GPU.

    What the compiler cannot take is computed without it, and a warning says why.
    """

    def compile(self, *arguments, **options):
        super().compile(*arguments, **options)
        vars(self)["compiled_steps"] = {}  # what was compiled held the loss that the model had

    def _resolve_auto_jit_compile(self):
        import torch

        return torch.cuda.is_available()

    def make_train_function(self, force=False):
        self._make_uncompiled(super().make_train_function, force)

    def make_test_function(self, force=False):
        self._make_uncompiled(super().make_test_function, force)

    def make_predict_function(self, force=False):
        return self._make_uncompiled(super().make_predict_function, force)

    def _make_uncompiled(self, make, force):
        """Keras' function of a whole step, whose parts are compiled here."""
        is_compiled, self.jit_compile = self.jit_compile, False
        try:
            return make(force)
        finally:
            self.jit_compile = is_compiled

    def train_step(self, data):
        import torch

        found = self._by_compiler(data, training=True)
        if found is None:
            return super().train_step(data)
        loss, outputs, (x, y, sample_weight) = found
        if weights := self.trainable_weights:
            loss = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
            gradients = torch.autograd.grad(loss, [weight.value for weight in weights], allow_unused=True)
            with torch.no_grad():
                self.optimizer.apply(list(gradients), weights)
        return self.compute_metrics(x, y, outputs, sample_weight=sample_weight)

    def test_step(self, data):
        found = self._by_compiler(data, training=False)
        if found is None:
            return super().test_step(data)
        _, outputs, (x, y, sample_weight) = found
        return self.compute_metrics(x, y, outputs, sample_weight=sample_weight)

    def predict_step(self, data):
        found = self._by_compiler(data, training=None)
        return super().predict_step(data) if found is None else found[1]

    def _by_compiler(self, data, training):
        """(loss, outputs, data as tensors); None where it is not compiled. `training` None computes no loss."""
        if not self.jit_compile:
            return None
        if training is None and (predicted := vars(self).get("predicted_batches", 0)) < PLAIN_PREDICTIONS:
            vars(self)["predicted_batches"] = predicted + 1
            return None
        import torch

        data = keras.utils.unpack_x_y_sample_weight(keras.tree.map_structure(_as_tensor, data))
        steps = vars(self).setdefault("compiled_steps", {})  # not tracked by Keras
        # Other weights are trained where layers are frozen, quantized, or have LoRA since.
        kind = training, *map(id, self.trainable_weights)
        if kind not in steps:
            steps[kind] = _compiled_for_shapes(_loss_and_outputs)
        # Keras notes the names of layers that are called, also within a block that is computed again.
        ignored = torch._dynamo.config.patch(skip_fwd_side_effects_in_bwd_under_checkpoint=True)
        try:
            with ignored, warnings.catch_warnings():
                # Of Keras' rules for types, which are functions of their arguments alone.
                warnings.filterwarnings("ignore", "Dynamo detected a call to a `functools.lru_cache`")
                found = steps[kind](self, *data, training)
            return found and (*found, data)
        except torch._dynamo.exc.TorchDynamoException as error:
            self.jit_compile = False
            warn_user(f"Steps run without torch's compiler: {_reason(error)}")
            return None


def _as_tensor(array):
    return None if array is None else keras.ops.convert_to_tensor(array)


def _loss_and_outputs(model, x, y, sample_weight, training):
    if training is None:
        return None, model(x, training=False)
    outputs = model(x, training=training)
    loss = model.compute_loss(x=x, y=y, y_pred=outputs, sample_weight=sample_weight, training=training)
    rows = next(array for array in keras.tree.flatten(x) if array is not None).shape[0]
    # As a tensor: a number would be a constant of the program, which then is one for so many rows alone.
    model._loss_tracker.update_state(loss, sample_weight=keras.ops.sum(keras.ops.ones((rows,))))
    return loss, outputs


def _compiled_for_shapes(function):
    """A function of a model, data and a flag as two programs: one for the shapes of the first batch alone, and one for
    all others of as many rows, in which the other sizes are variables. It returns None for another number of rows,
    which Keras' losses make a constant, and for a size of 1 or 0 that was none at first: each would be compiled apart,
    for the last batch of an epoch, say."""
    import torch

    fixed, variable = (
        torch.compile(_apart(function), fullgraph=True, dynamic=dynamic, options={"guard_filter_fn": _of_data})
        for dynamic in (False, None)
    )
    first = None

    def call(model, x, y, sample_weight, training):
        nonlocal first
        arrays = [array for array in keras.tree.flatten((x, y, sample_weight)) if array is not None]
        shapes = [size for array in arrays for size in array.shape]
        first = first or shapes
        if shapes == first:
            return fixed(model, x, y, sample_weight, training)
        is_of_other_rows = arrays[0].shape[0] != first[0]
        if is_of_other_rows or any(size < 2 and size != old for size, old in zip(shapes, first, strict=False)):
            return None
        for array in arrays:
            torch._dynamo.maybe_mark_dynamic(array, list(range(1, array.ndim)))
        return variable(model, x, y, sample_weight, training)

    return call


def _of_data(guards):
    """Which of torch's checks before each call are kept: those of the data and of torch's own state. To look at each
    layer takes a third of a step; what changes in one after `compile` does not count, as on the other backends."""
    names = ("", "x", "y", "sample_weight", "training")
    return [guard.name.partition("[")[0] in names for guard in guards]


def _apart(function):
    """A copy of a function with code of its own: torch keeps what it has compiled with the code, at most eight times,
    whichever model it was compiled for."""
    return type(function)(function.__code__.replace(), function.__globals__, function.__name__, function.__defaults__)


def _reason(error):
    """What a person needs of an error of torch's compiler: its first line, and the innermost line of the model."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    places = [line for line in lines if line.startswith("File ")]
    return f"{lines[0] if lines else type(error).__name__}{f' ({places[-1]})' if places else ''}"


STEPS = CompiledSteps if keras.backend.backend() == "torch" else PlainSteps
