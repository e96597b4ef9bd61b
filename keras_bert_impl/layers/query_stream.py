"""What the two streams of an XLNet attend to."""

import keras
from keras import ops

from keras_bert_impl.kernels.random_numbers import uniform
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.dropout import SeedOfReplica
from keras_bert_impl.layers.sample_tokens import EVALUATION_SEED


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class QueryStream(ConfiguredLayer):
    """Prepares XLNet's second stream, whose queries predict words (Yang et al. 2019, sections 2.2 and 2.3).

    Queries come after a sequence's tokens, each with the position of its token. No token moves: the order of the
    predicted tokens only decides which tokens attend to which.

    - All attend to the tokens that are not predicted, control tokens included, and to none of the queries.
    - A predicted token attends to itself and to those before it in the order; a query only to those before its token;
      other tokens attend to no predicted token.
    - Only padding attends to padding, each to itself.

    In the original code (`_local_perm` of zihangdai/xlnet) control tokens also have a position in the order. Evaluation
    draws orders with a fixed seed, as SampleTokens does.

    Args:
        permuted (bool, optional): whether the order is drawn anew for each sequence; otherwise nothing attends to any
            other predicted token, as with masked words. Default: True.
        seed (int, optional): random seed. Default: None, a random one.

    Input:  mask_positions (batch, predictions), where 0 is padding except in the first column, since an XLNet's
            sequence begins with a word; padding_mask and segment_ids (batch, length); optionally sequence_ids (batch,
            length) for packing; int32.
    Output: dict of `places`, the position of each query's token, int32 (batch, predictions), -1 for padding;
            `query_places`, the positions of the queries after the tokens, int32 (batch, predictions); `attention_mask`,
            bool (batch, 1, length + predictions, length), and `same_segment`, bool (batch, length + predictions,
            length), for queries and keys.
    """

    def __init__(self, permuted=True, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.permuted, self.seed = bool(permuted), seed
        self.seed_generator = keras.random.SeedGenerator(seed) if self.permuted else None

    def call(self, mask_positions, padding_mask, segment_ids, sequence_ids=None, training=False):
        (_, length), count = ops.shape(padding_mask), ops.shape(mask_positions)[1]
        places, numbers = ops.arange(length, dtype="int32"), ops.arange(count, dtype="int32")
        is_predicted = ops.logical_or(ops.greater(mask_positions, 0), ops.equal(numbers, 0))
        query_places = ops.where(is_predicted, mask_positions, -1)
        is_here = ops.cast(ops.expand_dims(query_places, -1) == places, "int32")  # (batch, predictions, length)

        def with_queries(of_tokens):
            """(batch, length) to (batch, length + predictions)."""
            of_tokens = ops.cast(of_tokens, "int32")
            return ops.concatenate([of_tokens, ops.sum(is_here * ops.expand_dims(of_tokens, 1), axis=-1)], axis=1)

        def equal(of_tokens):
            of_keys = ops.expand_dims(ops.cast(of_tokens, "int32"), 1)
            return ops.equal(ops.expand_dims(with_queries(of_tokens), 2), of_keys)

        # 1, 2, ... for predicted tokens in their order, or 1 for all of them; 0 for all others.
        ranks = ops.ones_like(mask_positions)
        if self.permuted:
            seed = SeedOfReplica(self.seed_generator) if training else EVALUATION_SEED
            keys = uniform(ops.shape(mask_positions), seed)
            is_before = ops.logical_and(ops.expand_dims(keys, 1) < ops.expand_dims(keys, 2), is_predicted[:, None, :])
            ranks = ranks + ops.sum(ops.cast(is_before, "int32"), axis=-1)
        rank_of_token = ops.sum(is_here * ops.expand_dims(ranks, -1), axis=1)  # (batch, length)

        # Of the queries and of predicted tokens, each sees the tokens of a lower rank; those without a rank see others
        # without one.
        seen_below = ops.expand_dims(ops.maximum(with_queries(rank_of_token), 1), -1)
        seen = ops.expand_dims(rank_of_token, 1) < seen_below
        seen = ops.logical_and(seen, ops.expand_dims(ops.cast(padding_mask, "bool"), 1))
        if sequence_ids is not None:
            seen = ops.logical_and(seen, equal(sequence_ids))
        of_all = ops.concatenate([places, numbers * 0 - 1], axis=0)
        seen = ops.logical_or(seen, ops.expand_dims(of_all, 1) == places)  # a token sees itself
        return {
            "places": query_places,
            "query_places": ops.zeros_like(mask_positions) + numbers + length,
            "attention_mask": ops.expand_dims(seen, 1),
            "same_segment": equal(segment_ids),
        }

    def compute_output_spec(self, mask_positions, padding_mask, segment_ids, sequence_ids=None, training=False):
        (batch, length), count = padding_mask.shape, mask_positions.shape[1]
        total = None if length is None or count is None else length + count
        # Each of its own: Keras tells tensors apart by identity.
        return {
            "places": keras.KerasTensor((batch, count), dtype="int32"),
            "query_places": keras.KerasTensor((batch, count), dtype="int32"),
            "attention_mask": keras.KerasTensor((batch, 1, total, length), dtype="bool"),
            "same_segment": keras.KerasTensor((batch, total, length), dtype="bool"),
        }
