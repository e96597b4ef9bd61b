"""From one or two segments of token ids to a row of fixed length: [CLS] a [SEP] b [SEP] padding, for BERT.

Devlin et al. 2019, section 3 and figure 2. All functions work on a batch at once and run eagerly, inside
`Dataset.map` and in a SavedModel. The number of tokens that survive truncation is computed in closed form
from the two lengths; the tests compare it with Google's loop.
"""

from keras_bert_impl.preprocessing.graphs.ragged import between, side_by_side
from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.tokenizers.rows import kept_lengths, room_for_text


def truncate_pairs(a, b, max_tokens, rule):
    """Cuts tokens from the ends until a pair holds at most `max_tokens`.

    Args:
        a: first segments, int32 RaggedTensor (batch, tokens).
        b: second segments, likewise.
        max_tokens: tokens left for both together.
        rule: "longest_first", "waterfall" or "only_second"; see `text.tokenizers.rows.kept_lengths`.

    Returns: a, b: RaggedTensor (batch, tokens).
    Raises:
        tf.errors.InvalidArgumentError if the rule is "only_second" and a first segment alone is too long.
    """
    if rule == "only_second":
        tf.debugging.assert_less_equal(
            a.row_lengths(),
            tf.constant(max_tokens, tf.int64),
            message=f"The first text of a pair alone is longer than the {max_tokens} tokens that fit in a pair, and "
            "'only_second' does not truncate it: shorten it, or use a larger sequence_length.",
        )
    kept = kept_lengths(a.row_lengths(), b.row_lengths(), max_tokens, rule, tf.minimum, tf.maximum)
    return _first_tokens(a, kept[0]), _first_tokens(b, kept[1])


def pack(tokenizer, a, b, sequence_length, rule="longest_first"):
    """Lays segments out as a family reads them, [CLS] a [SEP] or [CLS] a [SEP] b [SEP], cut and padded to one length.

    Args:
        tokenizer: its template and control tokens are those of the rows.
        a: int32 RaggedTensor (batch, tokens).
        b: int32 RaggedTensor (batch, tokens), or None for single segments.
        sequence_length: tokens in every row, special tokens and padding included.
        rule: how a pair that is too long is cut, see `truncate_pairs`. A single segment loses its end.

    Returns: dict of int32 (batch, sequence_length): `token_ids`; `segment_ids`, 0 for [CLS] a [SEP] and padding,
        1, or what the template says, for b [SEP]; `padding_mask`, 1 for tokens and 0 for padding. A template may give
        [CLS] a segment of its own.
    Raises: ValueError if `sequence_length` leaves no room for text.
    """
    template, cls_id = tokenizer.template, tokenizer.cls_id
    max_tokens = room_for_text(template, b is not None, sequence_length)
    before, between, after = template.control_of(cls_id, tokenizer.sep_id)
    if b is None:
        a, second = _first_tokens(a, tf.minimum(a.row_lengths(), max_tokens)), []
    else:
        a, b = truncate_pairs(a, b, max_tokens, rule)
        second = [*between, b]
    token_ids = side_by_side([*before, a, *second, *after])
    first_length = tf.cast(template.first_length(a.row_lengths(), b is not None), tf.int64)
    position = tf.range(sequence_length, dtype=tf.int64)[tf.newaxis]  # (1, length)
    is_token = position < token_ids.row_lengths()[:, tf.newaxis]  # (batch, length)
    is_second = is_token & (position >= first_length[:, tf.newaxis])
    rows = {
        "token_ids": tf.cast(token_ids.to_tensor(tokenizer.pad_id, shape=(None, sequence_length)), tf.int32),
        "padding_mask": tf.cast(is_token, tf.int32),
        "segment_ids": tf.cast(is_second, tf.int32) * template.second_segment,
    }
    return template.with_cls_segments(rows, cls_id, tf.where)


def _first_tokens(rows, length):
    """The first `length` (batch,) tokens of each row."""
    begins = rows.row_starts()
    return between(rows.flat_values, begins, begins + length)
