"""Sequences whose predicted tokens have a random order, for the pre-training of MPNet."""

import keras
from keras import ops

from keras_bert_impl.kernels.random_numbers import uniform
from keras_bert_impl.layers.configured_layer import ConfiguredLayer
from keras_bert_impl.layers.dropout import SeedOfReplica
from keras_bert_impl.layers.sample_tokens import EVALUATION_SEED


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PermutedRows(ConfiguredLayer):
    """Prepares permuted language modelling for MPNet (Song et al. 2020, section 2), without moving a token.

    The order of the predicted tokens only decides which tokens attend to which, as in microsoft/MPNet. After a
    sequence's tokens comes a masked form of each predicted token, and after these the same again, as the queries that
    predict the tokens. All attend to the tokens that are not predicted, and to none of the queries. In addition:

    - a predicted token attends to itself, to those before it in the order, and to the masked forms of those after it;
    - a query attends to those before its token, and to the masked forms of its token and of those after it;
    - a masked form, and a token that is not predicted, attends to all masked forms.

    So each attends to as many positions as the sequence has tokens, and no query to its token. Evaluation draws orders
    and masks with a fixed seed, as SampleTokens does.

    Args:
        mask_id (int): ID of [MASK].
        vocabulary_size (int): number of tokens that random tokens are drawn from.
        mask_token_rate (float, optional): fraction of predicted tokens whose masked form is [MASK]. Default: 0.8.
        random_token_rate (float, optional): fraction whose masked form is a random token; the others stay unchanged.
            Default: 0.1.
        seed (int, optional): random seed. Default: None, a random one.

    Input:  token_ids (batch, length), none of which is masked; mask_positions (batch, predictions), where 0 is padding;
            padding_mask (batch, length); optionally sequence_ids (batch, length) for packing; all int32.
    Output: dict of `token_ids`, and `places`, their positions in the sequence, both int32 (batch, length + 2 *
            predictions), the queries at the end; `query_places`, the positions of the queries in these, int32 (batch,
            predictions); and `attention_mask`, bool (batch, 1, queries, keys) over all.
    """

    def __init__(self, mask_id, vocabulary_size, mask_token_rate=0.8, random_token_rate=0.1, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.mask_id, self.vocabulary_size, self.seed = int(mask_id), int(vocabulary_size), seed
        self.mask_token_rate, self.random_token_rate = float(mask_token_rate), float(random_token_rate)
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, token_ids, mask_positions, padding_mask, sequence_ids=None, training=False):
        places = ops.arange(ops.shape(token_ids)[1], dtype="int32")
        is_predicted = ops.greater(mask_positions, 0)  # (batch, predictions)
        is_here = ops.logical_and(ops.expand_dims(mask_positions, -1) == places, ops.expand_dims(is_predicted, -1))
        is_here = ops.cast(is_here, "int32")  # (batch, predictions, length)

        def at_predictions(array):
            return ops.sum(is_here * ops.expand_dims(ops.cast(array, "int32"), 1), axis=-1)

        seed = SeedOfReplica(self.seed_generator) if training else EVALUATION_SEED
        drawn = uniform((3, *ops.shape(mask_positions)), seed)
        keys, choice, words = drawn[0], drawn[1], drawn[2]
        is_before = ops.logical_and(ops.expand_dims(keys, 1) < ops.expand_dims(keys, 2), is_predicted[:, None, :])
        # 1, 2, ... for predicted tokens in their order, (batch, predictions); 0 for all others, (batch, length).
        ranks = 1 + ops.sum(ops.cast(is_before, "int32"), axis=-1)
        rank_of_token = ops.sum(is_here * ops.expand_dims(ranks, -1), axis=1)

        words = ops.cast(words * self.vocabulary_size, "int32")
        masked = ops.where(choice < self.mask_token_rate + self.random_token_rate, words, at_predictions(token_ids))
        masked = ops.where(choice < self.mask_token_rate, self.mask_id, masked)

        # What each token sees: of the predicted tokens those up to this rank, and the masked forms of the others.
        seen_until = ops.concatenate([rank_of_token, ops.zeros_like(ranks), ranks - 1], axis=1)
        seen_until = ops.expand_dims(seen_until, -1)  # (batch, queries, 1)
        sees_token = ops.expand_dims(rank_of_token, 1) <= seen_until
        sees_mask = ops.expand_dims(ranks, 1) > seen_until
        seen = ops.concatenate([sees_token, sees_mask, ops.zeros_like(sees_mask)], axis=-1)
        is_key = ops.concatenate([ops.cast(padding_mask, "bool"), is_predicted, is_predicted], axis=1)
        seen = ops.logical_and(seen, ops.expand_dims(is_key, 1))
        if sequence_ids is not None:
            of_predictions = at_predictions(sequence_ids)
            ids = ops.concatenate([ops.cast(sequence_ids, "int32"), of_predictions, of_predictions], axis=1)
            seen = ops.logical_and(seen, ops.expand_dims(ids, 1) == ops.expand_dims(ids, 2))
        rows = ops.zeros_like(token_ids) + places
        (_, length), count = ops.shape(token_ids), ops.shape(mask_positions)[1]
        return {
            "token_ids": ops.concatenate([token_ids, masked, masked], axis=1),
            "places": ops.concatenate([rows, mask_positions, mask_positions], axis=1),
            "query_places": ops.zeros_like(mask_positions) + ops.arange(count, dtype="int32") + length + count,
            "attention_mask": ops.expand_dims(seen, 1),
        }

    def compute_output_spec(self, token_ids, mask_positions, padding_mask, sequence_ids=None, training=False):
        (batch, length), predictions = token_ids.shape, mask_positions.shape[1]
        total = None if length is None or predictions is None else length + 2 * predictions
        # Each of its own: Keras tells tensors apart by identity.
        return {
            "token_ids": keras.KerasTensor((batch, total), dtype="int32"),
            "places": keras.KerasTensor((batch, total), dtype="int32"),
            "query_places": keras.KerasTensor((batch, predictions), dtype="int32"),
            "attention_mask": keras.KerasTensor((batch, 1, total, total), dtype="bool"),
        }
