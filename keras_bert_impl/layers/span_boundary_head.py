"""SpanBERT's second objective: the words of a masked span from the tokens next to it."""

import keras
from keras import ops

from keras_bert_impl.kernels.gather import gather
from keras_bert_impl.layers.masked_lm_head import MaskedLMHead
from keras_bert_impl.layers.prediction_head import dense_and_norm


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SpanBoundaryHead(MaskedLMHead):
    """Predicts masked spans from the tokens next to them, for SpanBERT (Joshi et al. 2020, "SpanBERT", section 3.2).

    It scores every word of the vocabulary at a masked position from the vectors of the two tokens next to the span and
    from the position within it. A span is a run of neighbouring masked positions: spans without a token between them
    are one, as in the published code.

    Args:
        token_embedding (TokenEmbedding): the encoder's token embedding, whose table is shared, not copied.
        position_size (int, optional): width of the position vectors. Default: 200, as in the published code.
        longest_span (int, optional): number of positions within a span; later tokens of a span are not scored, see
            `is_within`. Default: 20, as in the published code; single spans have at most 10 words.
        options: activation, layer_norm_epsilon and initializer, as for `MaskedLMHead`.

    Input:  sequence_output (batch, length, width); mask_positions (batch, predictions), int, ascending, padded with 0,
            which is [CLS] and never masked.
    Output: dict of `logits` (batch, predictions, vocabulary), float32, and `is_within` (batch, predictions), float32, 1
            for a position that is scored, 0 for padding and for positions after the longest span.
    """

    def __init__(self, token_embedding, position_size=200, longest_span=20, **options):
        super().__init__(token_embedding, **options)
        self.position_size, self.longest_span = int(position_size), int(longest_span)

    def build_transform(self, sequence_output_shape):
        self.positions = self.add_weight(
            name="positions",
            shape=(self.longest_span, self.position_size),
            initializer=self.initializer.clone(),
            autocast=False,  # see PositionEmbedding
        )
        *rest, width = sequence_output_shape
        sizes = ((2 * width + self.position_size, width), (width, self.token_embedding.output_dim))
        self.transforms, self.norms = [], []
        for number, (inner, outer) in enumerate(sizes, start=1):
            transform, norm = dense_and_norm(self, (*rest, inner), outer, f"_{number}")
            self.transforms.append(transform)
            self.norms.append(norm)

    def call(self, sequence_output, mask_positions):
        left, right, offset = span_boundaries(mask_positions)
        is_within = ops.logical_and(ops.greater(mask_positions, 0), ops.less(offset, self.longest_span))
        offset = ops.minimum(offset, self.longest_span - 1)
        beside = [gather(sequence_output, place) for place in (left, right)]  # (batch, predictions, width)
        places = ops.cast(ops.take(self.positions, offset, axis=0), self.compute_dtype)
        hidden = ops.concatenate([*beside, places], axis=-1)
        for dense, norm in zip(self.transforms, self.norms, strict=True):
            hidden = norm(dense(hidden))
        return {"logits": self.scores(hidden), "is_within": ops.cast(is_within, "float32")}

    def compute_output_spec(self, sequence_output, mask_positions):
        logits = super().compute_output_spec(sequence_output, mask_positions)
        return {"logits": logits, "is_within": keras.KerasTensor(tuple(mask_positions.shape), dtype="float32")}


def span_boundaries(mask_positions):
    """Returns the positions next to the span of each masked position, and its number within the span, counted from 0.

    Args:
        mask_positions: (batch, predictions), int, ascending, padded with 0.

    Returns: left, right and offset, each (batch, predictions), int; 0 where mask_positions is 0.
    """
    positions = ops.cast(mask_positions, "int32")
    count = ops.shape(positions)[1]
    is_real = ops.greater(positions, 0)
    number = ops.cumsum(ops.ones_like(positions), axis=1) - 1  # 0, 1, 2, ... of each row
    # Positions are ascending, so that those of one span, and only they, have the same difference from their numbers.
    span = positions - number
    is_same = ops.equal(ops.expand_dims(span, 2), ops.expand_dims(span, 1))  # (batch, predictions, predictions)
    both = ops.logical_and(ops.expand_dims(is_real, 2), ops.expand_dims(is_real, 1))
    is_same = ops.logical_and(is_same, both)
    columns = ops.broadcast_to(ops.expand_dims(number, 1), ops.shape(is_same))
    first = ops.amin(ops.where(is_same, columns, count), axis=2)
    last = ops.amax(ops.where(is_same, columns, -1), axis=2)
    offset = ops.where(is_real, number - first, 0)
    left = ops.where(is_real, positions - offset - 1, 0)
    right = ops.where(is_real, positions + (last - number) + 1, 0)
    return left, right, offset
