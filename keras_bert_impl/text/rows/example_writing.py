"""Pre-training examples on disk, as TFRecord files of `tf.train.Example`, written without TensorFlow.

Masked examples have exactly the features of google-research/bert's create_pretraining_data.py, so either code base
reads what the other wrote. Unmasked examples are the same rows before masking and without padding, with a number that
determines how each epoch masks them. They have about a third of the size, and every epoch masks them differently.
"""

import numpy as np

from keras_bert_impl.text.rows.phrases import MARKS
from keras_bert_impl.text.rows.ragged import Ragged, concatenated, take
from keras_bert_impl.text.rows.record_files import write_records
from keras_bert_impl.text.rows.serialized_rows import serialize_rows

# Our names and Google's, see `features.py`.
GOOGLE_NAMES = {
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
    "segment_ids": "segment_ids",
    "mask_positions": "masked_lm_positions",
    "mask_ids": "masked_lm_ids",
    "mask_weights": "masked_lm_weights",
    "next_sentence_labels": "next_sentence_labels",
}
PACKED_NAMES = ("input_ids", "lengths", "first_segment_lengths", "next_sentence_labels")

ROWS_WRITTEN_AT_ONCE = 4096


def write_masked_examples(path, batches):
    """Writes one file of masked examples in Google's format. The file gets its name only when it is complete.

    Args:
        path: the file; an existing one is replaced.
        batches: iterable of dicts of arrays: `token_ids`, `padding_mask`, `segment_ids` (batch, length);
            `mask_positions`, `mask_ids`, `mask_weights` (batch, predictions); `next_sentence_labels` (batch,).

    Returns: the number of examples written.
    """
    columns = ({google_name: rows[name] for name, google_name in GOOGLE_NAMES.items()} for rows in batches)
    return _write(path, columns)


def write_unmasked_examples(path, batches):
    """Writes one file of examples that are masked when read. The file gets its name only when it is complete.

    Args:
        path: the file; an existing one is replaced.
        batches: iterable of dicts: `token_ids`, `Ragged` (batch, tokens); `first_segment_length`, the length of
            [CLS] a [SEP], `next_sentence_labels`, `example_index`, arrays (batch,); if the text has phrases,
            `phrase_continuations`, `Ragged` (batch, tokens).

    Returns: the number of examples written.
    """
    return _write(path, map(_unmasked_columns, batches))


def write_packed_examples(path, batches, share_out, first_index):
    """Writes one file of rows that hold several pairs each, masked when read.

    Args:
        path: the file; an existing one is replaced.
        batches: as for `write_unmasked_examples`; all of them are held in memory, without padding.
        share_out: function that takes the lengths of all examples, (examples,), and returns rows, each a list of
            indices of examples, see `bin_packing.assign_rows`.
        first_index: `example_index` of the first row written; the others count from it.

    Returns: the number of rows written.
    """
    parts = list(map(_unmasked_columns, batches))
    if not parts:
        return _write(path, [])
    columns = {name: concatenated([part[name] for part in parts]) for name in parts[0]}
    rows_of_pairs = share_out(columns["input_ids"].lengths)

    def columns_of_rows():
        for start in range(0, len(rows_of_pairs), ROWS_WRITTEN_AT_ONCE):
            part = rows_of_pairs[start : start + ROWS_WRITTEN_AT_ONCE]
            pairs, counts = np.concatenate(part), np.array(list(map(len, part)))
            tokens = take(columns["input_ids"], pairs)
            first_pairs = np.cumsum(counts) - counts
            lengths = np.add.reduceat(tokens.lengths, first_pairs)
            marks = {MARKS: Ragged(take(columns[MARKS], pairs).values, lengths)} if MARKS in columns else {}
            yield {
                "input_ids": Ragged(tokens.values, lengths),
                **marks,
                "lengths": Ragged(tokens.lengths, counts),
                "first_segment_lengths": Ragged(columns["first_segment_length"][pairs], counts),
                "next_sentence_labels": Ragged(columns["next_sentence_labels"][pairs], counts),
                "example_index": np.arange(first_index + start, first_index + start + len(part)),
            }

    return _write(path, columns_of_rows())


def _unmasked_columns(rows):
    return {"input_ids" if name == "token_ids" else name: values for name, values in rows.items()}


def _write(path, batches_of_columns):
    return write_records(path, (record for columns in batches_of_columns for record in serialize_rows(columns)))
