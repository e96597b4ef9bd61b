"""What every model here does differently from `keras.Model`."""

import collections.abc
import math

import keras
import numpy as np

from keras_bert_impl import checkpoints
from keras_bert_impl.distribution import compiles_steps, in_scope_of_model, is_shared, kept_step, weights_given_back
from keras_bert_impl.encoders import resumed_fit, trainable, trained_weights
from keras_bert_impl.encoders.compiling import announced
from keras_bert_impl.kernels.compiled_steps import STEPS
from keras_bert_impl.preprocessing.labels import refuse

# Arrays that are not silently left out, since they would change the outputs: other libraries' names of our inputs, and
# inputs that not every model has.
OTHERWISE = {
    "input_ids": "token_ids",
    "token_type_ids": "segment_ids",
    "attention_mask": "padding_mask",
    "label": "the separate argument y",
    "labels": "the separate argument y",
    "position_ids": "an input of an encoder with packed=True",
    "sequence_ids": "an input of an encoder with packed=True",
}


class AdaptedModel(STEPS, keras.Model):
    """A `keras.Model` that saves Hugging Face checkpoints, whose `fit` can be resumed and says when it compiles, and
    whose `quantize` rounds only weights by default.

    Attributes:
        says_compiling: False for `verbose=0`.
    """

    says_compiling = True

    @staticmethod
    def list_pretrained():
        """Prints the published checkpoints that `from_pretrained` knows by name."""
        print(checkpoints.published_table())

    def save_pretrained(self, directory):
        """Saves a Hugging Face checkpoint: `config.json`, `model.safetensors`, a model card (README.md), and the
        tokenizer, if the model has one.

        Args:
            directory (str or pathlib.Path): created if it does not exist.

        Raises: ValueError for weights that the format does not have, such as LoRA updates before `merge_lora`.
        """
        checkpoints.huggingface.save(self, directory)

    def __call__(self, inputs, *arguments, **options):
        return super().__call__(own_inputs(self, inputs), *arguments, **options)

    def call(self, inputs, training=None, mask=None):
        """Computes the graph's outputs. Keras' own method would silently ignore other arguments."""
        return super().call(inputs, training=training, mask=mask)

    def stateless_call(self, trainable_variables, non_trainable_variables, inputs, *arguments, **options):
        inputs = own_inputs(self, inputs)
        return super().stateless_call(trainable_variables, non_trainable_variables, inputs, *arguments, **options)

    @in_scope_of_model
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, **arguments):
        """Trains the model as `keras.Model.fit` does, with the same arguments.

        With `callbacks.ExactResume` among the callbacks, it resumes an interrupted training. If the optimizer keeps a
        moving average of the weights (`use_ema`), the model has the averages afterwards, but another `fit` continues
        from the trained weights.
        """
        self.says_compiling = verbose != 0
        arguments |= {"batch_size": batch_size, "epochs": epochs, "verbose": verbose, "callbacks": callbacks}
        x, validation = own_inputs(self, x), arguments.get("validation_data")
        if isinstance(validation, tuple):
            arguments["validation_data"] = (own_inputs(self, validation[0]), *validation[1:])
        with weights_given_back(self):
            if callbacks and resumed_fit.needs_steps(callbacks):
                return resumed_fit.fit(super().fit, self, x, y, **arguments)
            with trained_weights.kept(self):
                return super().fit(x, y, **arguments)

    @in_scope_of_model
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", *further, **arguments):
        if "_use_cached_eval_dataset" not in arguments:  # within `fit` it is as silent as that
            self.says_compiling = verbose != 0
        with weights_given_back(self):
            return super().evaluate(own_inputs(self, x), y, batch_size, verbose, *further, **arguments)

    @in_scope_of_model
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        self.says_compiling = verbose != 0
        if not (verbose or steps or callbacks or is_shared()) and (batch := only_batch(x, batch_size)) is not None:
            return self.predict_on_batch(batch)
        with weights_given_back(self):
            return super().predict(own_inputs(self, x), batch_size, verbose, steps, callbacks)

    def train_on_batch(self, x, *arguments, **options):
        with weights_given_back(self):
            return super().train_on_batch(own_inputs(self, x), *arguments, **options)

    def test_on_batch(self, x, *arguments, **options):
        with weights_given_back(self):
            return super().test_on_batch(own_inputs(self, x), *arguments, **options)

    def predict_on_batch(self, x):
        with weights_given_back(self):
            return super().predict_on_batch(own_inputs(self, x))

    def make_train_function(self, force=False):
        self._announce("train_function", "training step", super().make_train_function, force)

    def make_test_function(self, force=False):
        self._announce("test_function", "evaluation step", super().make_test_function, force)

    def make_predict_function(self, force=False):
        self._announce("predict_function", "prediction step", super().make_predict_function, force)
        return self.predict_function

    def _announce(self, name, what, make, force):
        before = getattr(self, name)
        make(force)
        made = getattr(self, name)
        if made is not before:
            made = kept_step(self, made)
            says = self.says_compiling and compiles_steps(self)
            setattr(self, name, announced(made, what, bool(self.jit_compile)) if says else made)

    def save_own_variables(self, store):
        super().save_own_variables(store)
        trained_weights.save(self, store)

    def load_own_variables(self, store):
        super().load_own_variables(trained_weights.load(self, store))

    def get_compile_config(self):
        """As Keras', and whether the optimizer has a state, which it lacks before the first step."""
        config = super().get_compile_config()
        return config and {**config, "is_optimizer_built": bool(self.optimizer and self.optimizer.built)}

    def compile_from_config(self, config):
        """As Keras', which skips this for a class with a `compile` of its own: the optimizer's state in a file would be
        lost."""
        config = keras.saving.deserialize_keras_object(config)
        is_built = config.pop("is_optimizer_built", True)
        self.compile(**config)
        if is_built and self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def _run_through_graph(self, inputs, **how):
        is_clone = getattr(how.get("operation_fn"), "__qualname__", "").startswith("_clone_functional_model")
        if is_clone and how.get("call_fn") is None:
            raise ValueError(
                f"clone_model would return a plain keras.Model instead of a {type(self).__name__}. Use "
                "type(model).from_config(model.get_config()) for new weights, copy.deepcopy(model) for the same."
            )
        return super()._run_through_graph(inputs, **how)

    def _purge_model_variables(self, **kinds):
        """Does nothing. Keras' JAX trainer takes the values out of the variables before the first step, and an error in
        the step would lose them. Keeping them costs no memory, since each step reuses that of the values before."""

    def quantize(self, mode=None, config=None, **arguments):
        """Quantizes the model as `keras.Model.quantize` does, except that "int8" rounds only weights by default.

        Keras also rounds activations, which costs accuracy: vectors of all-MiniLM-L6-v2 are off by 5.0 % of their
        range, but with rounded weights alone by 1.5 %. To round activations as well, pass the config
        `keras.quantizers.Int8QuantizationConfig(activation_quantizer=keras.quantizers.AbsMaxQuantizer(axis=-1))`.

        Args:
            mode (str, optional): a mode of Keras, such as "int8". Default: the config's.
            config (keras.quantizers.QuantizationConfig, optional): settings of the mode. Default: None, those of the
                mode.
            arguments: further arguments of `keras.Model.quantize`.
        """
        if mode == "int8" and is_default(config):
            config = keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
        return super().quantize(mode, config=config, **arguments)

    freeze_layers, enable_lora, merge_lora = trainable.freeze_layers, trainable.enable_lora, trainable.merge_lora


def is_default(config):
    """Whether an int8 configuration is the one that Keras uses by default."""
    return config is None or config.get_config() == keras.quantizers.Int8QuantizationConfig().get_config()


def only_batch(x, batch_size):
    """Returns the only batch of `x`, or None if there are several, or if `x` is neither a dict of NumPy arrays nor a
    PyDataset.

    Keras makes an iterator of each `x`; for one text on TensorFlow that takes ten times as long as the model.
    """
    if isinstance(x, keras.utils.PyDataset):
        return keras.utils.unpack_x_y_sample_weight(x[0])[0] if x.num_batches == 1 else None
    arrays = list(x.values()) if isinstance(x, collections.abc.Mapping) else []
    is_small = all(isinstance(array, np.ndarray) and 0 < len(array) <= (batch_size or 32) for array in arrays)
    return x if arrays and is_small else None


def own_inputs(model, inputs):
    """Returns the arrays of a dict that a model has inputs for, without the others; anything but a dict is returned
    unchanged.

    Keras assigns the arrays of a dict to inputs by the order of their names: with one too many, each of those after it
    would silently take the place of another.

    Raises: ValueError for a missing array, or one by another library's name; and for NumPy arrays with IDs out of
        range, for which one backend takes another vector, and another NaN.
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
    """Lists as a NumPy array, as Keras would take each of their numbers for an array; arrays unchanged."""
    return np.array(ids, "int32") if isinstance(ids, list | tuple) else ids
