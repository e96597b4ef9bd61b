"""Methods of `keras.Model` that need help with a BERT: its own `export`, and `quantize`."""

import keras


class KerasMethodsMixin:
    """Quantizes weights alone unless told otherwise; where Keras cannot export, says what can."""

    def quantize(self, mode=None, config=None, **arguments):
        """`keras.Model.quantize`, but by itself "int8" rounds weights and leaves activations as they are.

        Keras rounds both. A few hidden states of a BERT are many times larger than the others, which then share the
        few levels that are left: vectors of all-MiniLM-L6-v2 are off by 5.0 % of their range, by rounded weights alone
        1.5 %, in two fifths of the time on a CPU. To round activations, too, say so in a config:
        `Int8QuantizationConfig(activation_quantizer=AbsMaxQuantizer(axis=-1))`.
        """
        if mode == "int8" and is_default(config):
            config = keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
        return super().quantize(mode, config=config, **arguments)

    def export(self, filepath, format="tf_saved_model", **arguments):
        """`keras.Model.export`: a graph that takes token ids.

        Raises: ValueError where Keras cannot write this model in this format on this backend: its SavedModel of JAX
            and torch takes no dict of inputs of unknown length.
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
    """Whether a configuration of int8 is the one that Keras puts in where `quantize` is given none."""
    return config is None or config.get_config() == keras.quantizers.Int8QuantizationConfig().get_config()
