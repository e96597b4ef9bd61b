"""Multi-head self-attention with one fused projection."""

import math

import keras
from keras import ops

from keras_bert_impl.layers.dropout import Dropout

MASKED_LOGIT = -1e9  # finite, so that a row without any visible key gives a uniform distribution and not NaN


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MultiHeadSelfAttention(keras.layers.Layer):
    """Scaled dot-product self-attention in several heads (Vaswani et al. 2017, section 3.2).

    Query, key and value come from one matrix product. Without dropout on the attention probabilities, and if they are
    not to be returned, Keras' fused attention computes the result (flash attention if the backend has it); otherwise
    the probabilities are computed in float32.

    Args:
        num_heads: the number of heads, which must divide the width of the input.
        dropout_rate: dropout on the attention probabilities. BERT: 0.1.
        initializer: of the two kernels.
        seed: of the dropout.

    Input:  (batch, length, width); `attention_mask`, bool, broadcastable to (batch, heads, length, length),
            True where a query (third axis) may attend to a key (fourth axis).
    Output: (batch, length, width); with `return_probabilities=True` a pair with the probabilities
            (batch, heads, length, length), before dropout.
    Raises: ValueError if the width is not a multiple of num_heads.
    """

    def __init__(self, num_heads, dropout_rate=0.0, initializer="glorot_uniform", seed=None, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = int(num_heads)
        self.dropout_rate = float(dropout_rate)
        self.initializer = keras.initializers.get(initializer)
        self.seed = seed
        self.dropout = Dropout(dropout_rate, seed=seed, dtype=self.dtype_policy)

    def build(self, inputs_shape, attention_mask_shape=None):
        width = inputs_shape[-1]
        if width % self.num_heads:
            raise ValueError(f"The width {width} of the input is not a multiple of num_heads {self.num_heads}.")
        # Initializers are cloned: one seeded instance would give two kernels the same numbers.
        self.query_key_value = keras.layers.Dense(
            3 * width, kernel_initializer=self.initializer.clone(), dtype=self.dtype_policy, name="query_key_value"
        )
        self.query_key_value.build(inputs_shape)
        self.output_projection = keras.layers.Dense(
            width, kernel_initializer=self.initializer.clone(), dtype=self.dtype_policy, name="output"
        )
        self.output_projection.build(inputs_shape)
        self.dropout.build(inputs_shape)

    def call(self, inputs, attention_mask=None, training=False, return_probabilities=False):
        length, width = ops.shape(inputs)[1], inputs.shape[-1]
        head_width = width // self.num_heads
        # Split before the heads are formed: the gradient of a split is one concatenation, that of three slices a sum of
        # three arrays padded with zeros.
        parts = ops.split(self.query_key_value(inputs), 3, axis=-1)  # 3 of (batch, length, width)
        query, key, value = (ops.reshape(part, (-1, length, self.num_heads, head_width)) for part in parts)
        if return_probabilities or (training and self.dropout_rate > 0):
            mixed, probabilities = self._attend(query, key, value, attention_mask, training)
        else:
            mixed = ops.dot_product_attention(query, key, value, mask=attention_mask)
        outputs = self.output_projection(ops.reshape(mixed, (-1, length, width)))
        return (outputs, probabilities) if return_probabilities else outputs

    def _attend(self, query, key, value, attention_mask, training):
        # (batch, length, heads, head_width) to (batch, heads, length, head_width), the key's transposed
        query, value = ops.transpose(query, (0, 2, 1, 3)), ops.transpose(value, (0, 2, 1, 3))
        key = ops.transpose(key, (0, 2, 3, 1))
        logits = ops.matmul(query * (1 / math.sqrt(query.shape[-1])), key)
        logits = ops.cast(logits, "float32")  # (batch, heads, length, length)
        if attention_mask is not None:
            logits = ops.where(attention_mask, logits, MASKED_LOGIT)
        probabilities = ops.softmax(logits)
        dropped = self.dropout(ops.cast(probabilities, self.compute_dtype), training=training)
        return ops.transpose(ops.matmul(dropped, value), (0, 2, 1, 3)), probabilities  # (batch, length, heads, ...)

    def compute_output_spec(self, inputs, attention_mask=None, training=False, return_probabilities=False):
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_probabilities:
            return outputs
        batch, length, _ = inputs.shape
        return outputs, keras.KerasTensor((batch, self.num_heads, length, length), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout_rate": self.dropout_rate,
            "initializer": keras.initializers.serialize(self.initializer),
            "seed": self.seed,
        }
