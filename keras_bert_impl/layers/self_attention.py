"""Multi-head self-attention with one fused projection."""

import keras

from keras_bert_impl.kernels import attention
from keras_bert_impl.layers.dropout import Dropout, SeedOfReplica


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MultiHeadSelfAttention(keras.layers.Layer):
    """Scaled dot-product self-attention in several heads (Vaswani et al. 2017, section 3.2).

    Query, key and value come from one matrix product. `kernels.attention` computes the rest in the way that suits
    backend and device; where probabilities are kept in memory, they are float32.

    Args:
        num_heads: the number of heads, which must divide the width of the input.
        dropout_rate: dropout on the attention probabilities. BERT: 0.1.
        initializer: of the two kernels.
        seed: of the dropout.

    Input:  (batch, length, width); `attention_mask`, bool, broadcastable to (batch, heads, length, length),
            True where a query (third axis) may attend to a key (fourth axis); for packed rows also `sequence_ids`,
            (batch, length), int, of which `AttentionMask` made the mask: some kernels read it instead;
            `attention_bias`, float, broadcastable to (batch, heads, length, length), which is added to the scaled
            products, as for relative positions; `window`, the largest distance between a query and a key that it sees.
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

    def build(self, inputs_shape, attention_mask_shape=None, sequence_ids_shape=None, attention_bias_shape=None):
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
        rate = self.dropout_rate if training else 0.0
        attended = attention.of_fused(
            self.query_key_value(inputs),
            self.num_heads,
            attention_mask,
            attention_bias,
            window,
            sequence_ids,
            rate,
            SeedOfReplica(self.dropout.seed_generator) if rate else None,
        )
        if not return_probabilities:
            return self.output_projection(attention.attend(attended))
        mixed, probabilities = attention.with_probabilities(attended)
        return self.output_projection(mixed), probabilities

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
            "dropout_rate": self.dropout_rate,
            "initializer": keras.initializers.serialize(self.initializer),
            "seed": self.seed,
        }
