"""What the encoders of all families share: configuration, loading, saving, and what heads need from them."""

import keras

from keras_bert_impl import checkpoints, features
from keras_bert_impl.encoders.initialization import build_filled
from keras_bert_impl.encoders.keras_methods import KerasMethodsMixin
from keras_bert_impl.encoders.layer_states import layer_states, restore_layer_states, without_layer_states


class Encoder(KerasMethodsMixin, keras.Model):
    """Base class of the encoders: functional models whose constructors connect their layers and then call this one.

    Layers that every family has, by name: `token_embedding`, `embeddings_norm`, `block_0`, `block_1`, ...

    Args:
        inputs, outputs, name, trainable: of `keras.Model`; `features` describes the outputs.
        options: the other arguments of the family's constructor, each of which becomes an attribute.
    """

    config_class = None

    def __init__(self, inputs, outputs, name, trainable, **options):
        super().__init__(inputs=inputs, outputs=outputs, name=name, trainable=trainable)
        options["dtype_policy"] = options.pop("dtype")
        for option, value in options.items():
            setattr(self, option, value)

    def call(self, inputs, training=None, mask=None, **options):
        """The graph's outputs. Raises TypeError for what is an option of the constructor."""
        if options:
            kind = type(self).__name__
            raise TypeError(
                f"A call of {kind} takes no {', '.join(options)}; what it returns is decided when it is built: "
                f"{kind}(config, return_attention=True), or from_pretrained(path, return_attention=True)."
            )
        return super().call(inputs, training=training, mask=mask)

    @property
    def token_embedding(self):
        """The `keras.layers.ReversibleEmbedding` that a masked-LM head shares."""
        return self.get_layer("token_embedding")

    def pool(self, vectors):
        """Turns the vectors of first tokens, (..., hidden_size), into those of the same shape for a classifier."""
        return self.get_layer("pooler")(vectors)

    def pooled(self, outputs):
        """The vectors that a classifier takes, (batch, hidden_size), from the outputs of this encoder."""
        if "pooled_output" in outputs:
            return outputs["pooled_output"]
        return self.pool(outputs["sequence_output"][:, 0])

    def block_outputs(self):
        """The hidden states after each block as tensors of the graph, (batch, length, hidden_size) each, in order."""
        outputs = [self.get_layer(f"block_{index}").output for index in range(self.config.depth)]
        return [output[0] if isinstance(output, list | tuple) else output for output in outputs]

    def get_config(self):
        return {
            "config": self.config.to_dict(),
            "packed": self.packed,
            "return_hidden_states": self.return_hidden_states,
            "return_attention": self.return_attention,
            "rematerialize": self.rematerialize,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "name": self.name,
            "trainable": self.trainable,
            **layer_states(self),
        }

    @classmethod
    def from_config(cls, config):
        arguments = {**without_layer_states(config), "config": cls.config_class.from_dict(config["config"])}
        return restore_layer_states(cls(**arguments), config)

    @classmethod
    def from_pretrained(cls, path, report=False, **arguments):
        """The encoder of a checkpoint.

        Args:
            path: a checkpoint directory, "hf://owner/name", or a name that `list_pretrained` prints.
            report: print which tensors were used, left over and newly initialised.
            arguments: of the constructor.

        Raises: ValueError if the checkpoint is damaged, of another family, or cannot be reached.
        """
        checkpoint = checkpoints.open_checkpoint(path)
        if type(checkpoint.config) is not cls.config_class:
            raise ValueError(
                f"{checkpoint.source.path} is a {checkpoint.config.family}, not a {cls.config_class.family}: "
                f"read it with a {checkpoint.config.class_prefix()}Encoder, or with "
                "keras_bert_impl.encoder_from_pretrained, which takes any family."
            )
        return build_filled(lambda: cls(checkpoint.config, **arguments), checkpoint, report=report)

    @staticmethod
    def list_pretrained():
        """Prints the published checkpoints that `from_pretrained` knows by name."""
        print(checkpoints.published_table())

    def save_pretrained(self, directory):
        """Writes `config.json` and `model.safetensors` as Hugging Face's model of this family reads them."""
        checkpoints.huggingface.save(self, directory)


def encoder_inputs(packed):
    """The inputs of an encoder by name, (batch, length) each; `packed` adds those of packed rows."""
    names = features.ENCODER_INPUTS + (features.PACKED_INPUTS if packed else ())
    return {name: keras.Input((None,), dtype="int32", name=name) for name in names}


def check_options(rematerialize, return_attention):
    """Raises ValueError if both are set: one needs the probabilities that the other does not keep."""
    if rematerialize and return_attention:
        raise ValueError("return_attention needs the probabilities that rematerialize does not keep: set only one.")
