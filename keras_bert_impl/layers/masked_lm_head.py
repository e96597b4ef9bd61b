"""The output head of the masked language model."""

import keras
from keras import ops

from keras_bert_impl.distribution import BY_WORDS, split
from keras_bert_impl.kernels.gather import gather
from keras_bert_impl.kernels.gelu import checked_activation
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.prediction_head import dense_and_norm
from keras_bert_impl.layers.token_embedding import TokenEmbedding


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MaskedLMHead(ConfiguredLayer):
    """Scores every word of the vocabulary at the masked positions (Devlin et al. 2019, section 3.1, task 1).

    Only the vectors at masked positions are transformed (dense, activation, norm), and multiplied by the transposed
    token embedding; a bias is added.

    Args:
        token_embedding (TokenEmbedding): the encoder's token embedding, whose table is shared, not copied.
        activation (str or callable, optional): a name in `kernels.gelu.ACTIVATIONS` or of Keras, or a function.
            Default: "gelu".
        layer_norm_epsilon (float, optional): epsilon of the norm. Default: 1e-12, as in Google's code.
        initializer (str or Initializer, optional): initializer of the kernel. Default: "glorot_uniform".
        use_bias (bool, optional): whether the dense layer has a bias and the norm a centre. Default: True.
        has_transform (bool, optional): whether there are a dense layer and a norm, unlike in XLNet. Default: True.
        is_tied (bool, optional): whether the embedding's table is used; otherwise the head has its own. Default: True.
        has_output_bias (bool, optional): whether each word has a bias. Default: True.

    Input:  sequence_output (batch, length, width); mask_positions (batch, predictions), int.
    Output: logits (batch, predictions, vocabulary), float32.
    """

    def __init__(
        self,
        token_embedding,
        activation="gelu",
        layer_norm_epsilon=1e-12,
        initializer="glorot_uniform",
        use_bias=True,
        has_transform=True,
        is_tied=True,
        has_output_bias=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.token_embedding = token_embedding
        self.activation = checked_activation(activation)
        self.layer_norm_epsilon = float(layer_norm_epsilon)
        self.initializer = keras.initializers.get(initializer)
        self.use_bias, self.has_transform, self.is_tied = bool(use_bias), bool(has_transform), bool(is_tied)
        self.has_output_bias, self.decoder = bool(has_output_bias), None

    def build(self, sequence_output_shape, mask_positions_shape=None):
        table = self.token_embedding
        if not table.built:
            table.build()
        self.build_transform(sequence_output_shape)
        if not self.is_tied:
            sizes, initializer = (table.input_dim, table.output_dim), self.initializer.clone()
            self.decoder = TokenEmbedding(*sizes, initializer, dtype=self.dtype_policy, name="decoder")
            with split(self.decoder, BY_WORDS):
                self.decoder.build()
        if self.has_output_bias:
            with split(self, BY_WORDS):
                self.output_bias = self.add_weight(
                    name="output_bias", shape=(table.input_dim,), initializer="zeros", autocast=False
                )

    def build_transform(self, sequence_output_shape):
        """Builds the layers between the gathered vectors and the table of words."""
        if self.has_transform:
            # The width of the embeddings, which in some families is not that of the encoder.
            width = self.token_embedding.output_dim
            self.transform, self.norm = dense_and_norm(self, sequence_output_shape, width)

    def call(self, sequence_output, mask_positions):
        hidden = gather(sequence_output, mask_positions)  # (batch, predictions, width)
        return self.scores(self.transformed(hidden))

    def transformed(self, hidden):
        """Transforms (batch, predictions, width) to (batch, predictions, embedding width)."""
        return self.norm(self.transform(hidden)) if self.has_transform else hidden

    def scores(self, hidden):
        """Returns the logits of transformed vectors, (batch, predictions, embedding width)."""
        rows = ops.reshape(hidden, (-1, hidden.shape[-1]))  # (batch * predictions, embedding width)
        table = self.token_embedding if self.decoder is None else self.decoder
        logits = ops.cast(table(rows, reverse=True), "float32")
        logits = logits + self.output_bias if self.has_output_bias else logits
        return ops.reshape(logits, (-1, ops.shape(hidden)[1], self.token_embedding.input_dim))

    def compute_output_spec(self, sequence_output, mask_positions):
        return keras.KerasTensor((*mask_positions.shape, self.token_embedding.input_dim), dtype="float32")

    def get_config(self):
        embedding = keras.saving.serialize_keras_object(self.token_embedding)
        return {**super().get_config(), "token_embedding": embedding}

    @classmethod
    def from_config(cls, config):
        config = {**config, "token_embedding": keras.saving.deserialize_keras_object(config["token_embedding"])}
        return cls(**config)
