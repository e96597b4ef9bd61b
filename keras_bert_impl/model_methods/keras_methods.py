"""Methods of `keras.Model` that are adapted to BERT: `fit`, `export` and `quantize`."""

import keras

from keras_bert_impl.distribution import in_scope_of_model
from keras_bert_impl.misspelt import KnownArguments
from keras_bert_impl.model_methods import resumed_fit, trainable, trained_weights
from keras_bert_impl.model_methods.compiling import CompilingMixin


class KerasMethodsMixin(KnownArguments, CompilingMixin):
    """`fit` that can be resumed, and says when it compiles; `quantize` for the weights alone by default; `export` that
    names an alternative where Keras cannot export."""

    @in_scope_of_model
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, **arguments):
        """`keras.Model.fit`. With `callbacks.ExactResume` among the callbacks, it resumes an interrupted `fit`. If the
        optimizer keeps a moving average of the weights, the model has the average afterwards, but another `fit` trains
        on from the weights that were trained."""
        self.says_compiling = verbose != 0
        arguments |= {"batch_size": batch_size, "epochs": epochs, "verbose": verbose, "callbacks": callbacks}
        if resumed_fit.needs_steps(callbacks):
            return resumed_fit.fit(super().fit, self, x, y, **arguments)
        with trained_weights.kept(self):
            return super().fit(x, y, **arguments)

    def quantize(self, mode=None, config=None, **arguments):
        """`keras.Model.quantize`, but by default "int8" rounds only the weights, not the activations.

        Keras rounds both. A few hidden states of a BERT are many times larger than the others, for which only a few
        levels then remain: vectors of all-MiniLM-L6-v2 are off by 5.0 % of their range, with rounded weights alone by
        1.5 %, in two fifths of the time on a CPU. To round activations, too, pass the config
        `Int8QuantizationConfig(activation_quantizer=AbsMaxQuantizer(axis=-1))`.
        """
        if mode == "int8" and is_default(config):
            config = keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
        return super().quantize(mode, config=config, **arguments)

    def freeze_layers(self, count):
        """Freezes the embeddings and the first `count` blocks; see `trainable.freeze_layers`. Compile afterwards."""
        trainable.freeze_layers(self, count)

    def enable_lora(self, rank):
        """Trains low-rank updates of the blocks' kernels alone; see `trainable.enable_lora`. Compile afterwards."""
        trainable.enable_lora(self, rank)

    def merge_lora(self):
        """Adds what was learnt by `enable_lora` to the kernels; see `trainable.merge_lora`. To be called before a
        checkpoint is saved."""
        trainable.merge_lora(self)

    def export(self, filepath, format="tf_saved_model", **arguments):
        """`keras.Model.export`: a graph that takes token ids.

        Raises: ValueError if Keras cannot write this model in this format on this backend: its SavedModel export of
            JAX and torch does not support a dict of inputs of unknown length.
        """
        try:
            return super().export(filepath, format=format, **arguments)
        except OSError:
            raise  # a full disk, a missing folder
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
            raise ValueError(
                f"Keras cannot export {type(self).__name__} {self.name!r} as {format!r} here ({reason}). "
                "keras_bert_impl.export.export_saved_model(model, directory) writes a SavedModel that takes strings, "
                "whatever backend trained the model."
            ) from error


def is_default(config):
    """Whether an int8 configuration is the one that Keras uses when `quantize` is given none."""
    return config is None or config.get_config() == keras.quantizers.Int8QuantizationConfig().get_config()
