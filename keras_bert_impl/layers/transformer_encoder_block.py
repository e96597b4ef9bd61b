"""One layer of the encoder."""

import keras
from keras import ops

from keras_bert_impl.distribution import BY_COLUMNS, BY_ROWS
from keras_bert_impl.kernels.activated_product import project_activated
from keras_bert_impl.kernels.gelu import activation_function, checked_activation
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.dropout import DrawnSeed, Dropout, fixed_seeds
from keras_bert_impl.layers.loss_scaling import warn_of_unscaled_loss
from keras_bert_impl.layers.self_attention import MultiHeadSelfAttention, seen_by_all, split_dense


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TransformerEncoderBlock(ConfiguredLayer):
    """A transformer block: self-attention and feed-forward, each with dropout, residual sum and normalization.

    By default the norm follows the sum (post-norm), as in Vaswani et al. 2017, figure 1, and in BERT.

    Args:
        num_heads (int): number of attention heads, a divisor of the input's width.
        intermediate_size (int): width of the feed-forward layer. BERT: 4 * width.
        activation (str or callable, optional): a name in `kernels.gelu.ACTIVATIONS` or of Keras, or a function.
            Default: "gelu".
        dropout_rate (float, optional): dropout after attention and after feed-forward. BERT: 0.1. Default: 0.0.
        attention_dropout_rate (float, optional): dropout of the attention probabilities. BERT: 0.1. Default: 0.0.
        layer_norm_epsilon (float, optional): epsilon of the norms. Default: 1e-12, as in Google's code.
        initializer (str or Initializer, optional): initializer of all kernels; BERT's is a truncated normal of standard
            deviation 0.02. Default: "glorot_uniform".
        rematerialize (bool, optional): whether training computes the block twice, instead of keeping its activations:
            a third more work, and a fraction of the memory. There are then no attention probabilities. Default: False.
        norm_first (bool, optional): whether attention and feed-forward each begin with their norm, and the sum is not
            normalized (pre-norm, Xiong et al. 2020, "On layer normalization in the transformer architecture").
            Default: False.
        normalizes_attention (bool, optional): whether attention has a norm; False if hidden states are already
            normalized. Default: True.
        use_bias (bool, optional): whether kernels have a bias, and norms a centre. Default: True.
        gated (bool, optional): whether one half of the feed-forward layer's inner values, activated, is multiplied by
            the other half, as in GeGLU (Shazeer 2020, "GLU variants improve transformer"); the first kernel then has
            twice as many columns. Default: False.
        output_initializer (str or Initializer, optional): initializer of the last kernels of attention and
            feed-forward. Default: None, `initializer`.
        attention (keras.layers.Layer, optional): attention layer, called like MultiHeadSelfAttention, with a `dropout`
            of its own. Default: None, a MultiHeadSelfAttention of these arguments.
        without_bias (tuple of str, optional): kernels without bias even so: "attention" for its two, "intermediate",
            "output". Default: ().
        rms_norm (bool, optional): whether norms are RMS norms (Zhang and Sennrich 2019). Default: False.
        num_key_value_heads (int, optional): as for MultiHeadSelfAttention. Default: None.

    Input:  (batch, length, width); by name the other inputs of the attention, see MultiHeadSelfAttention, and
            `global_places`, `same_segment` and `places` for an attention that reads them.
    Output: (batch, length, width); with `return_probabilities=True` a pair with the attention probabilities (batch,
            heads, length, length).
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
        norm_first=False,
        normalizes_attention=True,
        use_bias=True,
        gated=False,
        output_initializer=None,
        attention=None,
        without_bias=(),
        rms_norm=False,
        num_key_value_heads=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = int(num_heads)
        self.intermediate_size = int(intermediate_size)
        self.activation = checked_activation(activation)
        self.dropout_rate = float(dropout_rate)
        self.attention_dropout_rate = float(attention_dropout_rate)
        self.layer_norm_epsilon = float(layer_norm_epsilon)
        self.initializer = keras.initializers.get(initializer)
        self.rematerialize = bool(rematerialize)
        self.norm_first = bool(norm_first)
        self.normalizes_attention = bool(normalizes_attention)
        self.use_bias = bool(use_bias)
        self.gated = bool(gated)
        self.output_initializer = keras.initializers.get(output_initializer)
        self.without_bias, self.rms_norm = tuple(without_bias), bool(rms_norm)
        self.num_key_value_heads = num_key_value_heads
        self.attention = attention or MultiHeadSelfAttention(
            self.num_heads,
            self.attention_dropout_rate,
            self.initializer.clone(),
            use_bias=self.has_bias("attention"),
            output_initializer=self.output_initializer and self.output_initializer.clone(),
            num_key_value_heads=self.num_key_value_heads,
            dtype=self.dtype_policy,
            name="attention",
        )

    def has_bias(self, part):
        return self.use_bias and part not in self.without_bias

    def build(self, inputs_shape, **other_shapes):
        policy, width = self.dtype_policy, inputs_shape[-1]

        def norm(name):
            layer = norm_layer(self.layer_norm_epsilon, self.use_bias, self.rms_norm, dtype=policy, name=name)
            layer.build(inputs_shape)
            return layer

        self.attention.build(inputs_shape)
        self.attention_dropout = Dropout(self.dropout_rate, dtype=policy, name="attention_dropout")
        self.attention_norm = (
            norm("attention_norm")
            if self.normalizes_attention
            else keras.layers.Identity(dtype=policy, name="attention_norm")
        )
        columns = self.intermediate_size * (2 if self.gated else 1)
        self.intermediate = split_dense(
            self, inputs_shape, columns, "intermediate", BY_COLUMNS, self.initializer, self.has_bias("intermediate")
        )
        inner_shape = (*inputs_shape[:-1], self.intermediate_size)
        self.output_dense = split_dense(
            self,
            inner_shape,
            width,
            "output",
            BY_ROWS,
            self.output_initializer or self.initializer,
            self.has_bias("output"),
        )
        self.output_dropout = Dropout(self.dropout_rate, dtype=policy, name="output_dropout")
        self.output_norm = norm("output_norm")

    def call(
        self,
        inputs,
        attention_mask=None,
        sequence_ids=None,
        attention_bias=None,
        window=None,
        positions=None,
        query_states=None,
        global_places=None,
        same_segment=None,
        places=None,
        training=False,
        return_probabilities=False,
        mask=None,
    ):
        attention_mask = seen_by_all(mask) if attention_mask is None else attention_mask
        warn_of_unscaled_loss(self)
        context = {"attention_bias": attention_bias, "positions": positions, "query_states": query_states}
        context |= {"attention_mask": attention_mask, "sequence_ids": sequence_ids, "window": window}
        context |= {"global_places": global_places, "same_segment": same_segment, "places": places}
        # What is not there is not an argument that every attention has to know.
        context = {name: value for name, value in context.items() if value is not None}
        if training and self.rematerialize:
            return self._rematerialized(inputs, context)
        return self._transform(inputs, context, training, return_probabilities)

    def _rematerialized(self, inputs, context):
        dropouts = [*self.attention.dropouts, self.attention_dropout, self.output_dropout]
        dropouts = [layer for layer in dropouts if layer.rate]
        # Seeds are drawn here: a generator used inside would draw again when the block is computed again, which gives
        # other masks and hence wrong gradients, and JAX could not return its state.
        seeds = [DrawnSeed(layer.seed_generator) for layer in dropouts]
        names = [name for name in ("attention_bias", "positions", "query_states") if name in context]

        # Mask and seeds are not arguments: TensorFlow looks for the gradient of each argument, and booleans have none.
        def transform(inputs, *values):
            with fixed_seeds(dropouts, seeds):
                return self._transform(inputs, {**context, **dict(zip(names, values, strict=True))}, training=True)

        return keras.remat(transform)(inputs, *(context[name] for name in names))

    def _transform(self, inputs, context, training, return_probabilities=False):
        seen = self.attention_norm(inputs) if self.norm_first else inputs
        queried = context.get("query_states", inputs)
        if "query_states" in context and self.norm_first:
            context = {**context, "query_states": self.attention_norm(queried)}
        attended = self.attention(seen, training=training, return_probabilities=return_probabilities, **context)
        attended, probabilities = attended if return_probabilities else (attended, None)
        attended = queried + self.attention_dropout(attended, training=training)
        attended = attended if self.norm_first else self.attention_norm(attended)
        inner = self.intermediate(self.output_norm(attended) if self.norm_first else attended)
        outputs = project_activated(self._activated, self.output_dense, inner)
        outputs = attended + self.output_dropout(outputs, training=training)
        outputs = outputs if self.norm_first else self.output_norm(outputs)
        return (outputs, probabilities) if return_probabilities else outputs

    def _activated(self, inner):
        """(..., columns of the first kernel) to (..., intermediate_size)."""
        activate = activation_function(self.activation)
        if not self.gated:
            return activate(inner)
        values, gates = ops.split(inner, 2, axis=-1)
        return activate(values) * gates

    compute_output_spec = MultiHeadSelfAttention.compute_output_spec

    def get_config(self):
        # Without its shape, which would have it built before this block, hence by another path.
        attention = {**keras.saving.serialize_keras_object(self.attention), "build_config": None}
        return {**super().get_config(), "attention": attention}

    @classmethod
    def from_config(cls, config):
        attention = config.get("attention")
        return cls(**{**config, "attention": attention and keras.saving.deserialize_keras_object(attention)})


def norm_layer(epsilon, center, rms_norm, **arguments):
    """A norm of vectors: of mean and variance, or of their mean square alone, which has no centre."""
    if rms_norm:
        return keras.layers.RMSNormalization(epsilon=epsilon, **arguments)
    return keras.layers.LayerNormalization(epsilon=epsilon, center=center, **arguments)
