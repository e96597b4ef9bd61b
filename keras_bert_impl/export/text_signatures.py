"""Graphs from strings to named outputs, one function for each task, and the SavedModel that holds them.

Runs on Keras' TensorFlow backend, if need be in a process of its own; see `handover`.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.export import handover
from keras_bert_impl.export.attention_graph import with_attention
from keras_bert_impl.export.question_graph import question_answers
from keras_bert_impl.models.masked_lm import guesses
from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.preprocessing.graphs.long_texts import (
    checked_output,
    computed_in_parts,
    head_and_tail,
    means_of_texts,
    windows_of,
)
from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers
from keras_bert_impl.preprocessing.graphs.rows import pack
from keras_bert_impl.preprocessing.graphs.text_rows import graph_of, pieces_of_words
from keras_bert_impl.text.tokenizers.rows import best_windows

GUESSES = 5  # for each [MASK]
WHITE_SPACE = r"[\t-\r\x1c-\x1f\x{85}\p{Z}]"  # of str.split; TensorFlow's own is ASCII's
TEXT = tf.TensorSpec((None,), tf.string, name="text")


def write(model, tokenizer, sequence_length, target):
    """Writes `model` as a SavedModel to the new directory `target`; see `exports.export_saved_model`."""
    # Without `archive.track(model)`: the variables that the functions use are saved anyhow, and would be saved twice.
    archive = keras.export.ExportArchive()
    # One for all signatures: each of its own would hold the vocabulary again, 3.6 MB for BERT's.
    pieces_of = graph_of(tokenizer, offsets=model.asked.task == "answer")
    archive.track(pieces_of)  # its model of SentencePiece is a resource, which is not saved with the functions
    for name, (function, inputs) in signatures(model, pieces_of, sequence_length).items():
        archive.add_endpoint(name, function, input_signature=inputs)
    archive.write_out(str(target), verbose=False)


def signatures(model, pieces_of, sequence_length):
    """The functions to serve, by signature name, each with the specification of its inputs.

    Args:
        model: a model that has `asked`.
        pieces_of: as `graph_of` returns it.
        sequence_length: tokens of the longest row.
    """
    function = FUNCTIONS.get(model.asked.task, texts_or_pairs)(model, pieces_of, sequence_length)
    found = {
        signature: (
            function,
            [tf.TensorSpec((None,) * np.ndim(texts), tf.string, name) for name, texts in inputs.items()],
        )
        for signature, inputs in model.asked.signatures.items()
    }
    if found["serving_default"][1] == [TEXT]:
        found["attention"] = (attention_function(model, pieces_of, sequence_length), [TEXT])
    return found


def texts_or_pairs(model, pieces_of, sequence_length):
    """From texts, long ones as the model's `long_texts` says, or pairs, which are cut, to the model's outputs, and the
    names of the classes that it chooses."""
    long_texts, tokenizer = getattr(model, "long_texts", "cut"), pieces_of.tokenizer
    room = sequence_length - tokenizer.template.num_control(is_pair=False)

    def answer(text, text_pair=None):
        return with_labels(
            model, model.named_outputs(outputs_of(text) if text_pair is None else of_pairs(text, text_pair))
        )

    def outputs_of(text):
        pieces = pieces_of(text)
        if long_texts == "windows":
            windows, counts = windows_of(pieces, room)
            rows = pack_to_longest(windows, None, tokenizer, sequence_length)
            return means_of_texts(computed_in_parts(model, rows), counts)
        pieces = head_and_tail(pieces, room) if long_texts == "head_and_tail" else pieces
        return checked_output(model, pack_to_longest(pieces, None, tokenizer, sequence_length))

    def of_pairs(text, text_pair):
        message = "text and text_pair must have equally many strings."
        with tf.control_dependencies([tf.debugging.assert_equal(tf.size(text), tf.size(text_pair), message)]):
            first, second = pieces_of(text), pieces_of(text_pair)
        return checked_output(model, pack_to_longest(first, second, tokenizer, sequence_length))

    return answer


def with_labels(model, outputs):
    """The outputs of a classifier with number and name of the likeliest class, or with multi_label the names of the
    classes above 0.5, the likeliest first; those of other models as they are."""
    if getattr(model, "class_names", None) is None:
        return outputs
    logits, names = outputs["logits"], tf.constant(model.class_names)
    if not model.multi_label:
        class_id = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {**outputs, "class_id": class_id, "label": tf.gather(names, class_id)}
    order = tf.argsort(logits, axis=-1, direction="DESCENDING", stable=True)  # (batch, classes)
    labels = tf.ragged.boolean_mask(tf.gather(names, order), tf.gather(logits, order, batch_dims=1) > 0)
    return {**outputs, "labels": labels.to_tensor()}


def choices_of_texts(model, pieces_of, sequence_length):
    """From texts, with equally many endings for each, to a score for each ending."""

    def choose(text, endings):
        message = "endings must be (batch, choices) strings, with one row for each string of text."
        choices = tf.shape(endings)[1]
        with tf.control_dependencies([tf.debugging.assert_equal(tf.size(text), tf.shape(endings)[0], message)]):
            first, second = pieces_of(tf.repeat(text, choices)), pieces_of(tf.reshape(endings, [-1]))
        rows = pack_to_longest(first, second, pieces_of.tokenizer, sequence_length)
        shape = [tf.size(text), choices, tf.shape(rows["token_ids"])[1]]
        logits = checked_output(model, {name: tf.reshape(array, shape) for name, array in rows.items()})
        return {**model.named_outputs(logits), "class_id": tf.argmax(logits, axis=-1, output_type=tf.int32)}

    return choose


def labels_of_words(model, pieces_of, sequence_length):
    """From texts to their words, separated by white space, and a label for each word, taken from its first piece in the
    window that shows it with the most context, as in `tag`."""
    template = pieces_of.tokenizer.template
    room = sequence_length - template.num_control(is_pair=False)

    def label_words(text):
        words = tf.strings.split(tf.strings.regex_replace(text, WHITE_SPACE, " "))  # (batch, words)
        pieces = pieces_of_words(pieces_of, words)  # (all words, pieces)
        of_rows = of_texts(words, pieces)  # (batch, pieces)
        windows, counts = windows_of(of_rows, room)
        rows = pack_to_longest(windows, None, pieces_of.tokenizer, sequence_length)
        logits = computed_in_parts(model, rows)  # (windows, length, classes)
        text = row_numbers(words)
        # The place of each word's first piece among those of its text: (all words,).
        first = tf.cast(pieces.row_starts() - tf.gather(of_rows.row_starts(), text), tf.int32)
        lengths = tf.gather(tf.cast(of_rows.row_lengths(), tf.int32), text)
        window, place = best_windows(first, lengths, room, tensorflow_arrays)
        window += tf.gather(tf.cumsum(counts, exclusive=True), text)
        of_words = tf.gather_nd(logits, tf.stack([window, place + len(template.before)], axis=1))
        probabilities = model.named_outputs(of_words)["probabilities"]  # (all words, classes)
        names = tf.gather(tf.constant(model.class_names), tf.argmax(probabilities, axis=-1))
        return {
            "words": words.to_tensor(),
            "labels": words.with_flat_values(names).to_tensor(),
            "probabilities": words.with_flat_values(tf.reduce_max(probabilities, axis=-1)).to_tensor(),
        }

    return label_words


def words_for_masks(model, pieces_of, sequence_length):
    """From texts with [MASK] in them to the likeliest words for each mask."""
    tokenizer = pieces_of.tokenizer
    words = list(map(tokenizer.piece_text, range(tokenizer.vocabulary_size)))

    def fill_masks(text):
        rows = pack_to_longest(pieces_of.with_masks(text), None, tokenizer, sequence_length)
        positions = mask_positions(rows["token_ids"], tokenizer.mask_id)
        is_mask = tf.sequence_mask(positions.row_lengths())[..., tf.newaxis]  # (batch, masks, 1)
        logits = checked_output(model, {**rows, "mask_positions": positions.to_tensor()})  # (batch, masks, vocabulary)
        probabilities, token_ids = guesses(logits, min(GUESSES, len(words)), len(words))
        return {
            "tokens": tf.where(is_mask, tf.gather(tf.constant(words), token_ids), ""),
            "token_ids": tf.where(is_mask, token_ids, tokenizer.pad_id),
            "probabilities": tf.where(is_mask, probabilities, 0.0),
        }

    return fill_masks


def vectors_of_texts(model, pieces_of, sequence_length):
    """From texts to an encoder's vectors: that of the pooler, if there is one, the mean over tokens, and one for each
    token."""

    def embed(text):
        rows = pack_to_longest(pieces_of(text), None, pieces_of.tokenizer, sequence_length)
        found = {**model.named_outputs(model(rows, training=False), rows), **rows}
        wanted = ("pooled_output", "mean_pooled", "sequence_output", "token_ids", "padding_mask")
        return {name: found[name] for name in wanted if name in found}

    return embed


def attention_function(model, pieces_of, sequence_length):
    """From texts to their tokens, and for each token the share of its attention that each token receives."""
    attend = with_attention(getattr(model, "encoder", model))
    cut = pieces_of.with_masks if model.asked.task == "fill_mask" else pieces_of

    def attention(text):
        rows = pack_to_longest(cut(text), None, pieces_of.tokenizer, sequence_length)
        is_token = rows["padding_mask"] == 1  # (batch, length)
        tokens = tf.gather(tf.constant(pieces_of.tokenizer.vocabulary), rows["token_ids"])
        # The model also computes what the padding attends to, which means nothing.
        is_asked = is_token[:, tf.newaxis, tf.newaxis, :, tf.newaxis]
        return {
            "tokens": tf.where(is_token, tokens, ""),
            "attention": tf.where(is_asked, attend(rows, training=False), 0.0),
        }

    return attention


def pack_to_longest(first, second, tokenizer, sequence_length):
    """`preprocessing.graphs.rows.pack` for ragged pieces, padded only to the longest row of the batch."""
    rows = pack(tokenizer, first, second, sequence_length)
    # A batch without rows keeps one column: otherwise reshaping it would divide by a length of 0.
    longest = tf.maximum(tf.reduce_max(tf.reduce_sum(rows["padding_mask"], axis=1)), 1)
    return {name: row[:, :longest] for name, row in rows.items()}  # each (batch, longest)


def mask_positions(token_ids, mask_id):
    """The positions of the mask token in each row, ascending: RaggedTensor (batch, masks) of int32."""
    positions = tf.broadcast_to(tf.range(tf.shape(token_ids)[1]), tf.shape(token_ids))
    return tf.ragged.boolean_mask(positions, token_ids == mask_id)


FUNCTIONS = {  # others take texts or pairs
    "choose": choices_of_texts,
    "label_words": labels_of_words,
    "answer": question_answers,
    "fill_mask": words_for_masks,
    "embed": vectors_of_texts,
}


if __name__ == "__main__":
    handover.main(write)
