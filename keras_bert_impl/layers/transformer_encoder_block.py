"""One layer of the encoder."""

import contextlib

import keras

from keras_bert_impl.kernels.activated_product import project_activated
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.loss_scaling import warn_of_unscaled_loss
from keras_bert_impl.layers.self_attention import MultiHeadSelfAttention


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TransformerEncoderBlock(keras.layers.Layer):
    """Self-attention and feed-forward, each followed by dropout, residual sum and normalization.

    The norm follows the sum (post-norm), as in Vaswani et al. 2017, figure 1, and in BERT.

    Args:
        num_heads: the number of attention heads, which must divide the width of the input.
        intermediate_size: inner width of the feed-forward layer. BERT: 4 * width.
        activation: a name in `kernels.gelu.ACTIVATIONS`.
        dropout_rate: dropout after attention and after feed-forward. BERT: 0.1.
        attention_dropout_rate: dropout on the attention probabilities. BERT: 0.1.
        layer_norm_epsilon: 1e-12 in Google's code.
        initializer: of all kernels. BERT: truncated normal of standard deviation 0.02.
        rematerialize: whether training computes the block a second time for its gradients, instead of keeping its
            activations (Chen et al. 2016, "Training deep nets with sublinear memory cost"): a third more work, and a
            fraction of the memory. Attention probabilities are then not available.

    Input:  (batch, length, width); `attention_mask`, `sequence_ids`, `attention_bias` and `window` as
            MultiHeadSelfAttention takes them.
    Output: (batch, length, width); with `return_probabilities=True` a pair with the attention probabilities
            (batch, heads, length, length).
    """

    def __init__(
        self,
        num_heads,
        intermediate_size,
        activation="gelu",
        dropout_rate=0.0,
        attention_dropout_rate=0.0,
        layer_norm_epsilon=1e-12,
        initializer="glorot_uniform",
        rematerialize=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = int(num_heads)
        self.intermediate_size = int(intermediate_size)
        self.activation = activation
        self.dropout_rate = float(dropout_rate)
        self.attention_dropout_rate = float(attention_dropout_rate)
        self.layer_norm_epsilon = float(layer_norm_epsilon)
        self.initializer = keras.initializers.get(initializer)
        self.rematerialize = bool(rematerialize)

    def build(self, inputs_shape, attention_mask_shape=None, sequence_ids_shape=None, attention_bias_shape=None):
        policy, width = self.dtype_policy, inputs_shape[-1]
        inner_shape = (*inputs_shape[:-1], self.intermediate_size)

        def norm(name):
            return keras.layers.LayerNormalization(epsilon=self.layer_norm_epsilon, dtype=policy, name=name)

        def dense(units, name):
            return keras.layers.Dense(units, kernel_initializer=self.initializer.clone(), dtype=policy, name=name)

        self.attention = MultiHeadSelfAttention(
            self.num_heads, self.attention_dropout_rate, self.initializer.clone(), dtype=policy, name="attention"
        )
        self.attention.build(inputs_shape)
        self.attention_dropout = Dropout(self.dropout_rate, dtype=policy, name="attention_dropout")
        self.attention_norm = norm("attention_norm")
        self.attention_norm.build(inputs_shape)
        self.intermediate = dense(self.intermediate_size, "intermediate")
        self.intermediate.build(inputs_shape)
        self.activate = activation_function(self.activation)
        self.output_dense = dense(width, "output")
        self.output_dense.build(inner_shape)
        self.output_dropout = Dropout(self.dropout_rate, dtype=policy, name="output_dropout")
        self.output_norm = norm("output_norm")
        self.output_norm.build(inputs_shape)

    def call(
        self,
        inputs,
        attention_mask=None,
        sequence_ids=None,
        attention_bias=None,
        window=None,
        training=False,
        return_probabilities=False,
    ):
        warn_of_unscaled_loss(self)
        seen = {"attention_mask": attention_mask, "sequence_ids": sequence_ids, "window": window}
        if training and self.rematerialize:
            return self._rematerialized(inputs, attention_bias, seen)
        return self._transform(inputs, attention_bias, seen, training, return_probabilities)

    def _rematerialized(self, inputs, attention_bias, seen):
        dropouts = [self.attention.dropout, self.attention_dropout, self.output_dropout]
        dropouts = [layer for layer in dropouts if layer.rate]
        # Seeds are drawn here: a generator used inside would draw again when the block is computed again, which gives
        # other masks and hence wrong gradients, and JAX could not return its state.
        seeds = [DrawnSeed(layer.seed_generator) for layer in dropouts]

        # Mask and seeds are not arguments: TensorFlow looks for the gradient of each argument, and booleans have none.
        def transform(inputs, attention_bias=None):
            with fixed_seeds(dropouts, seeds):
                return self._transform(inputs, attention_bias, seen, training=True)

        return keras.remat(transform)(*(argument for argument in (inputs, attention_bias) if argument is not None))

    def _transform(self, inputs, attention_bias, seen, training, return_probabilities=False):
        attended = self.attention(
            inputs,
            attention_bias=attention_bias,
            training=training,
            return_probabilities=return_probabilities,
            **seen,
        )
        attended, probabilities = attended if return_probabilities else (attended, None)
        attended = self.attention_norm(inputs + self.attention_dropout(attended, training=training))
        transformed = project_activated(self.activate, self.output_dense, self.intermediate(attended))
        outputs = self.output_norm(attended + self.output_dropout(transformed, training=training))
        return (outputs, probabilities) if return_probabilities else outputs

    def compute_output_spec(self, inputs, return_probabilities=False, **context):
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_probabilities:
            return outputs
        batch, length, _ = inputs.shape
        return outputs, keras.KerasTensor((batch, self.num_heads, length, length), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_size": self.intermediate_size,
            "activation": self.activation,
            "dropout_rate": self.dropout_rate,
            "attention_dropout_rate": self.attention_dropout_rate,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer": keras.initializers.serialize(self.initializer),
            "rematerialize": self.rematerialize,
        }


class DrawnSeed(keras.random.SeedGenerator):
    """Draws the next seed of a generator once and always returns it; it has no state of its own."""

    def __init__(self, generator):  # without super(), which would make a variable
        self.drawn = generator.next()
        # On torch, Keras decides by this whether torch's own dropout can be used.
        self._initial_seed = generator._initial_seed

    def next(self, ordered=True):
        return self.drawn


@contextlib.contextmanager
def fixed_seeds(dropouts, seeds):
    """Within this context, dropout layers use these seeds instead of their generators."""
    generators = [layer.seed_generator for layer in dropouts]
    try:
        for layer, seed in zip(dropouts, seeds, strict=True):
            # Bypasses Keras' setter, which would track the seed as a part of the layer.
            object.__setattr__(layer, "seed_generator", seed)
        yield
    finally:
        for layer, generator in zip(dropouts, generators, strict=True):
            object.__setattr__(layer, "seed_generator", generator)
