"""The parts of encoders: embeddings and their norm, the blocks, and the pooler."""

import typing

import keras

from keras_bert_impl.configurations.encoder_config import EncoderConfig
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.distribution import BY_WORDS, split
from keras_bert_impl.layers import (
    AttentionMask,
    Dense,
    Dropout,
    PaddingAwarePositions,
    PositionEmbedding,
    SegmentEmbedding,
    TokenEmbedding,
    TransformerEncoderBlock,
)
from keras_bert_impl.layers.transformer_encoder_block import norm_layer


class Connected(typing.NamedTuple):
    """The outputs of an encoder's layers, as tensors of its graph.

    Attributes:
        hidden_states: (batch, length, hidden_size) each: the embeddings, then the output of every layer.
        attention: the probabilities of every layer, (batch, heads, length, length) each; empty by default.
        pooled_output: (batch, hidden_size); None if the family has no vector of a whole sequence.
        last_context: the last block's arguments besides the hidden states.
    """

    hidden_states: list
    attention: list
    pooled_output: typing.Any = None
    last_context: typing.Any = None


class Parts(typing.NamedTuple):
    """Makes the layers of an encoder, with the names that checkpoints and `.keras` files have for them.

    Attributes:
        config: the encoder's configuration.
        policy: dtype policy of every layer.
        initializer: initializer, of which every layer gets a clone.
        rematerialize, return_attention: as for BertEncoder.
    """

    config: EncoderConfig
    policy: keras.DTypePolicy
    initializer: keras.initializers.Initializer
    rematerialize: bool
    return_attention: bool

    def token_embedding(self, width):
        embedding = TokenEmbedding(
            self.config.vocabulary_size,
            width,
            embeddings_initializer=kernel_initializer(self.config, "token_embedding/embeddings"),
            dtype=self.policy,
            name="token_embedding",
        )
        with split(embedding, BY_WORDS):
            embedding.build()
        return embedding

    def position_embedding(self):
        """Embedding of the positions 0, 1, 2, ..."""
        return PositionEmbedding(
            self.config.max_length, self.initializer.clone(), dtype=self.policy, name="position_embedding"
        )

    def padding_aware_positions(self, width):
        """Embedding of positions among the tokens that are not padding."""
        return PaddingAwarePositions(
            self.config.max_length,
            width,
            self.config.pad_id,
            self.initializer.clone(),
            dtype=self.policy,
            name="position_embedding",
        )

    def segment_embedding(self, width, rows=None, name="segment_embedding"):
        rows = self.config.num_segments if rows is None else rows
        return SegmentEmbedding(width, rows, self.initializer.clone(), dtype=self.policy, name=name)

    def norm(self, name):
        config = self.config
        return norm_layer(config.layer_norm_epsilon, config.use_bias, config.rms_norm, dtype=self.policy, name=name)

    def dropout(self, name):
        return Dropout(self.config.hidden_dropout_rate, dtype=self.policy, name=name)

    def dense(self, units, name, activation=None):
        return Dense(
            units, activation=activation, kernel_initializer=self.initializer.clone(), dtype=self.policy, name=name
        )

    def summed_embeddings(self, inputs, width, scale=1.0):
        """Returns BERT's sum of the embeddings of tokens, multiplied by `scale`, segments and positions, (batch,
        length, width)."""
        hidden = self.token_embedding(width)(inputs["token_ids"])
        hidden = hidden if scale == 1 else hidden * scale
        position_rows = self.position_embedding()(hidden, position_ids=inputs.get("position_ids"))
        return self.sum_of(hidden, self.segment_embedding(width)(inputs["segment_ids"]), position_rows)

    def sum_of(self, hidden, segment_rows, position_rows):
        """The sum of the embeddings, (batch, length, width)."""
        return keras.layers.Add(dtype=self.policy, name="embeddings")([hidden, segment_rows]) + position_rows

    def normalized(self, embeddings):
        """The sum of the embeddings (batch, length, width) after layer norm and dropout."""
        norm = self.norm("embeddings_norm")
        return self.dropout("embeddings_dropout")(norm(embeddings))

    def context(self, inputs, direction="both"):
        """Returns the blocks' arguments besides the hidden states: which tokens attend to which."""
        sequence_ids = inputs.get("sequence_ids")
        mask = AttentionMask(direction, name="attention_mask")(inputs["padding_mask"], sequence_ids=sequence_ids)
        # Kernels that read the numbers instead of the mask know no direction.
        return {"attention_mask": mask, "sequence_ids": sequence_ids if direction == "both" else None}

    def turning_contexts(self, inputs, of_whole_rows, of_windows=None):
        """Returns each layer's arguments besides the hidden states, for a family with rotary positions: its window, and
        the angles of a RotaryPositions for layers with full attention and for those with a window."""
        arguments = {"position_ids": inputs.get("position_ids")}
        whole, near = (of and of(inputs["token_ids"], **arguments) for of in (of_whole_rows, of_windows))
        context = self.context(inputs)
        return [
            {**context, "window": window, "positions": whole if window is None else near}
            for window in self.config.windows
        ]

    def block(self, number, **options):
        """Makes the block of this number, BERT's except for the options; families can pass `apply_layers` another
        function."""
        return TransformerEncoderBlock(
            num_heads=self.config.num_heads,
            intermediate_size=self.config.intermediate_size,
            activation=self.config.activation,
            dropout_rate=self.config.hidden_dropout_rate,
            attention_dropout_rate=self.config.attention_dropout_rate,
            layer_norm_epsilon=self.config.layer_norm_epsilon,
            initializer=self.initializer.clone(),
            rematerialize=self.rematerialize,
            use_bias=self.config.use_bias,
            rms_norm=self.config.rms_norm,
            dtype=self.policy,
            name=f"block_{number}",
            **options,
        )

    def block_with(self, number, attention_class, *more):
        """Makes the block of this number with a family's own attention, whose class takes `more` after the usual
        arguments."""
        config, initializer = self.config, self.initializer.clone()
        attention = attention_class(
            config.num_heads, config.attention_dropout_rate, initializer, *more, dtype=self.policy, name="attention"
        )
        return self.block(number, attention=attention)

    def apply_layers(self, hidden, context, block=None, behind=None):
        """Applies all layers to the embeddings (batch, length, hidden_size), and returns Connected.

        Args:
            hidden: the embeddings.
            context: the other arguments of every block, a dict; or a list of dicts, one for each layer.
            block: a function from a number to its block; default is `block`.
            behind: functions by a layer's number, which replace the layer's output.
        """
        make, blocks, hidden_states, attention = block or self.block, {}, [hidden], []
        contexts = context if isinstance(context, list) else [context] * self.config.depth
        for place, (number, of_layer) in enumerate(zip(self.config.schedule, contexts, strict=True)):
            if number not in blocks:
                blocks[number] = make(number)
            hidden = blocks[number](hidden, return_probabilities=self.return_attention, **of_layer)
            if self.return_attention:
                hidden, probabilities = hidden
                attention.append(probabilities)
            if behind and place in behind:
                hidden = behind[place](hidden)
            hidden_states.append(hidden)
        return Connected(hidden_states, attention, last_context=contexts[-1])

    def with_pooled(self, connected):
        """Adds the pooled vector of the first token to Connected."""
        return connected._replace(pooled_output=self.pooler(connected.hidden_states[-1][:, 0]))

    def pooler(self, first):
        """Pools the first token's vector (batch, hidden_size) by a dense tanh layer, as in Google's code."""
        return self.dense(self.config.hidden_size, "pooler", activation="tanh")(first)
