"""Multi-head self-attention with one fused projection."""

import keras
from keras import ops

from keras_bert_impl.distribution import BY_COLUMNS, BY_ROWS, split
from keras_bert_impl.kernels import attention
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.dense import Dense
from keras_bert_impl.layers.dropout import Dropout, dropped_as


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MultiHeadSelfAttention(ConfiguredLayer):
    """Scaled dot-product self-attention in several heads (Vaswani et al. 2017, section 3.2).

    Args:
        num_heads (int): number of heads, a divisor of the input's width.
        dropout_rate (float, optional): dropout of the attention probabilities. BERT: 0.1. Default: 0.0.
        initializer (str or Initializer, optional): initializer of the two kernels. Default: "glorot_uniform".
        seed (int, optional): random seed of the dropout. Default: None, a random one.
        use_bias (bool, optional): whether the kernels have a bias. Default: True.
        output_initializer (str or Initializer, optional): initializer of the last kernel. Default: None, `initializer`.
        num_key_value_heads (int, optional): number of heads of keys and values, each for as many heads of queries
            (Ainslie et al. 2023, "GQA"), a divisor of num_heads. Default: None, num_heads.

    Input:  (batch, length, width), and optionally by name:
            `attention_mask`, bool, broadcastable to (batch, heads, length, length), True where a query (third axis) may
                attend to a key (fourth axis); without it, tokens do not attend to those that Keras masks, as by an
                `Embedding(mask_zero=True)`;
            `sequence_ids` (batch, length), int, for packing: those that `AttentionMask` made the mask from, since some
                kernels read them instead;
            `attention_bias`, float, broadcastable to (batch, heads, length, length), which is added to the scaled
                products, as for relative positions;
            `window`, the largest distance between a query and a key that it attends to;
            `positions`, the angles of RotaryPositions, by which queries and keys are rotated;
            `query_states` (batch, length, width), from which the queries are computed instead of from the input.
    Output: (batch, length, width); with `return_probabilities=True` a pair with the probabilities (batch, heads,
            length, length), before dropout.
    """

    def __init__(
        self,
        num_heads,
        dropout_rate=0.0,
        initializer="glorot_uniform",
        seed=None,
        use_bias=True,
        output_initializer=None,
        num_key_value_heads=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = int(num_heads)
        self.num_key_value_heads = int(num_key_value_heads or num_heads)
        self.dropout_rate = float(dropout_rate)
        self.initializer = keras.initializers.get(initializer)
        self.seed = seed
        self.use_bias = bool(use_bias)
        self.output_initializer = keras.initializers.get(output_initializer)
        self.dropout = Dropout(dropout_rate, seed=seed, dtype=self.dtype_policy)

    @property
    def dropouts(self):
        """The dropout layers."""
        return [self.dropout]

    @property
    def has_bias_of_inputs(self):
        """Whether the kernel of queries, keys and values has a bias."""
        return self.use_bias

    def build(self, inputs_shape):
        width = inputs_shape[-1]
        columns = width + 2 * width * self.num_key_value_heads // self.num_heads
        self.query_key_value = split_dense(
            self, inputs_shape, columns, "query_key_value", BY_COLUMNS, self.initializer, self.has_bias_of_inputs
        )
        self.output_projection = split_dense(
            self, inputs_shape, width, "output", BY_ROWS, self.output_initializer or self.initializer
        )
        self.dropout.build(inputs_shape)

    def call(
        self,
        inputs,
        attention_mask=None,
        sequence_ids=None,
        attention_bias=None,
        window=None,
        positions=None,
        query_states=None,
        training=False,
        return_probabilities=False,
        mask=None,
    ):
        attention_mask = seen_by_all(mask) if attention_mask is None else attention_mask
        attended = self.attention_inputs(
            self.contents(inputs, query_states),
            positions,
            training,
            mask=attention_mask,
            bias=attention_bias,
            window=window,
            sequence_ids=sequence_ids,
            **dropped_as(self.dropout, training),
        )
        if not return_probabilities:
            return self.output_projection(attention.attend(attended))
        mixed, probabilities = attention.with_probabilities(attended)
        return self.output_projection(mixed), probabilities

    def contents(self, inputs, query_states=None):
        """Returns queries, keys and values side by side: (batch, length, 3 * width), less with grouped heads."""
        fused = self.query_key_value(inputs)
        if query_states is None:
            return fused
        # The kernel is one for all three: a part of it alone would bypass LoRA and int8.
        width = inputs.shape[-1]
        return ops.concatenate([self.query_key_value(query_states)[..., :width], fused[..., width:]], axis=-1)

    def attention_inputs(self, contents, positions, training, **fields):
        """Returns the `kernels.attention.AttentionInputs` of the output of `contents`, with these further fields."""
        fields["num_key_value_heads"] = self.num_key_value_heads
        attended = attention.of_fused(contents, self.num_heads, **fields)
        return attended if positions is None else attention.turned(attended, positions)

    def compute_output_spec(self, inputs, *further, return_probabilities=False, **context):
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_probabilities:
            return outputs
        batch, length, _ = inputs.shape
        return outputs, keras.KerasTensor((batch, self.num_heads, length, length), dtype="float32")


def seen_by_all(mask):
    """The attention mask of Keras' mask of tokens, (batch, length), or None."""
    return None if mask is None else ops.expand_dims(mask, (1, 2))  # (batch, heads, queries, keys)


def split_dense(owner, inputs_shape, units, name, axes, initializer, use_bias=None):
    """Builds a dense layer with the bias and the dtype policy of its owner, whose weights are split over devices.

    Args:
        owner: has `use_bias` and `dtype_policy`.
        inputs_shape: shape of the dense layer's input.
        units: columns of the kernel.
        name: name of the layer.
        axes: as for `distribution.split`.
        initializer: initializer of the kernel. It is cloned: one seeded instance would give two kernels the same
            numbers.
        use_bias: whether it has a bias; None means as the owner.
    """
    layer = Dense(
        units,
        use_bias=owner.use_bias if use_bias is None else use_bias,
        kernel_initializer=initializer.clone(),
        dtype=owner.dtype_policy,
        name=name,
    )
    with split(layer, axes):
        layer.build(inputs_shape)
    return layer
