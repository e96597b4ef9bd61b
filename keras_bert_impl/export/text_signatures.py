"""Graphs from strings to named outputs, one function for each kind of model, and the SavedModel that holds them.

Runs on Keras' TensorFlow backend, if need be in a process of its own; see `handover`.
"""

import keras
import tensorflow as tf

from keras_bert_impl import models
from keras_bert_impl.encoders.encoder import Encoder
from keras_bert_impl.export import handover, warm_up_requests
from keras_bert_impl.export.attention_graph import with_attention
from keras_bert_impl.export.question_graph import question_answerer_signatures
from keras_bert_impl.export.row_graphs import OUTPUTS, kind_of
from keras_bert_impl.preprocessing.graphs.long_texts import (
    best_windows,
    checked_output,
    computed_in_parts,
    head_and_tail,
    means_of_texts,
    windows_of,
)
from keras_bert_impl.preprocessing.graphs.ragged import of_texts, row_numbers
from keras_bert_impl.preprocessing.graphs.rows import pack
from keras_bert_impl.preprocessing.graphs.text_rows import graph_of, pieces_of_words

GUESSES = 5  # for each [MASK]
TEXT = tf.TensorSpec((None,), tf.string, name="text")
TEXT_PAIR = tf.TensorSpec((None,), tf.string, name="text_pair")


def write(model, tokenizer, sequence_length, target):
    """Writes `model` as a SavedModel to the new directory `target`; see `saved_model.export_saved_model`."""
    # Without `archive.track(model)`: the variables that the functions use are saved anyhow, and would be saved twice.
    archive = keras.export.ExportArchive()
    # One for all signatures: each of its own would hold the vocabulary again, 3.6 MB for BERT's.
    pieces_of = graph_of(tokenizer, offsets=kind_of(model) is models.QuestionAnswerer)
    archive.track(pieces_of)  # its model of SentencePiece is a resource, which is not saved with the functions
    for name, (function, inputs) in signatures(model, pieces_of, sequence_length).items():
        archive.add_endpoint(name, function, input_signature=inputs)
    archive.write_out(str(target), verbose=False)
    warm_up_requests.write(model, target)


def signatures(model, pieces_of, sequence_length):
    """The functions to serve, by signature name, each with the specification of its inputs.

    Args:
        model: a model of one of the kinds in SIGNATURES.
        pieces_of: as `graph_of` returns it.
        sequence_length: tokens of the longest row.
    """
    found = SIGNATURES[kind_of(model)](model, pieces_of, sequence_length)
    if found["serving_default"][1] == [TEXT]:
        found["attention"] = (attention_function(model, pieces_of, sequence_length), [TEXT])
    return found


def classifier_signatures(model, pieces_of, sequence_length):
    """From texts, or pairs of texts, to logits, probabilities, and number and name of the likeliest class."""

    def named(logits):
        if model.multi_label:
            return classes_above_half(logits, model.class_names)
        return {**choice_of(logits), "label": tf.gather(tf.constant(model.class_names), tf.argmax(logits, axis=-1))}

    return texts_or_pairs(model, pieces_of, sequence_length, named)


def embedder_signatures(model, pieces_of, sequence_length):
    """From texts to vectors."""

    def named(vectors):
        # The mean of several windows' vectors is shorter than they are.
        return {"vector": tf.math.l2_normalize(vectors, axis=-1, epsilon=1e-24) if model.normalize else vectors}

    return {"serving_default": texts_or_pairs(model, pieces_of, sequence_length, named)["serving_default"]}


def next_sentence_signatures(model, pieces_of, sequence_length):
    """From pairs of texts to the probability that the second follows the first."""
    return {"serving_default": texts_or_pairs(model, pieces_of, sequence_length)["pairs"]}


def texts_or_pairs(model, pieces_of, sequence_length, named=None):
    """Two signatures of a model: `serving_default` takes texts, long ones as its `long_texts` says, `pairs` takes
    pairs, which are cut. `named` is a function from its output, one for each text or pair, to named outputs; None for
    those of `row_graphs`."""
    named = named or (lambda outputs: OUTPUTS[kind_of(model)](model, outputs, None))
    long_texts = getattr(model, "long_texts", "cut")
    room = sequence_length - pieces_of.tokenizer.template.num_control(is_pair=False)

    def of_texts(text):
        pieces = pieces_of(text)
        if long_texts == "windows":
            windows, counts = windows_of(pieces, room)
            rows = pack_to_longest(windows, None, pieces_of.tokenizer, sequence_length)
            return named(means_of_texts(computed_in_parts(model, rows), counts))
        pieces = head_and_tail(pieces, room) if long_texts == "head_and_tail" else pieces
        return named(checked_output(model, pack_to_longest(pieces, None, pieces_of.tokenizer, sequence_length)))

    def of_pairs(text, text_pair):
        message = "text and text_pair must have equally many strings."
        with tf.control_dependencies([tf.debugging.assert_equal(tf.size(text), tf.size(text_pair), message)]):
            first, second = pieces_of(text), pieces_of(text_pair)
        return named(checked_output(model, pack_to_longest(first, second, pieces_of.tokenizer, sequence_length)))

    return {"serving_default": (of_texts, [TEXT]), "pairs": (of_pairs, [TEXT, TEXT_PAIR])}


def choice_of(logits):
    """Logits (batch, classes) with their probabilities and the number of the likeliest class."""
    class_id = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return {"logits": logits, "probabilities": tf.nn.softmax(logits), "class_id": class_id}


def classes_above_half(logits, class_names):
    """Logits (batch, classes) with the probability of each class, and the names of those above 0.5."""
    order = tf.argsort(logits, axis=-1, direction="DESCENDING", stable=True)  # (batch, classes)
    names = tf.gather(tf.constant(class_names), order)
    labels = tf.ragged.boolean_mask(names, tf.gather(logits, order, batch_dims=1) > 0)
    return {"logits": logits, "probabilities": tf.sigmoid(logits), "labels": labels.to_tensor()}


def multiple_choice_signatures(model, pieces_of, sequence_length):
    """From texts, with equally many endings for each, to a score for each ending."""

    def choose(text, endings):
        message = "endings must be (batch, choices) strings, with one row for each string of text."
        choices = tf.shape(endings)[1]
        with tf.control_dependencies([tf.debugging.assert_equal(tf.size(text), tf.shape(endings)[0], message)]):
            first, second = pieces_of(tf.repeat(text, choices)), pieces_of(tf.reshape(endings, [-1]))
        rows = pack_to_longest(first, second, pieces_of.tokenizer, sequence_length)
        shape = [tf.size(text), choices, tf.shape(rows["token_ids"])[1]]
        return choice_of(checked_output(model, {name: tf.reshape(array, shape) for name, array in rows.items()}))

    return {"serving_default": (choose, [TEXT, tf.TensorSpec((None, None), tf.string, name="endings")])}


def token_classifier_signatures(model, pieces_of, sequence_length):
    """From texts to their words, separated by white space, and a label for each word, taken from its first piece in the
    window that shows it with the most context, as in `TokenClassifier.tag`."""
    template = pieces_of.tokenizer.template
    room = sequence_length - template.num_control(is_pair=False)

    def label_words(text):
        words = tf.strings.split(text)  # (batch, words)
        pieces = pieces_of_words(pieces_of, words)  # (all words, pieces)
        of_rows = of_texts(words, pieces)  # (batch, pieces)
        windows, counts = windows_of(of_rows, room)
        rows = pack_to_longest(windows, None, pieces_of.tokenizer, sequence_length)
        logits = computed_in_parts(model, rows)  # (windows, length, classes)
        text = row_numbers(words)
        # The place of each word's first piece among those of its text: (all words,).
        first = tf.cast(pieces.row_starts() - tf.gather(of_rows.row_starts(), text), tf.int32)
        window, place = best_windows(first, tf.gather(tf.cast(of_rows.row_lengths(), tf.int32), text), room)
        window += tf.gather(tf.cumsum(counts, exclusive=True), text)
        of_words = tf.gather_nd(logits, tf.stack([window, place + len(template.before)], axis=1))
        probabilities = tf.nn.softmax(of_words)  # (all words, classes)
        names = tf.gather(tf.constant(model.class_names), tf.argmax(probabilities, axis=-1))
        return {
            "words": words.to_tensor(),
            "labels": words.with_flat_values(names).to_tensor(),
            "probabilities": words.with_flat_values(tf.reduce_max(probabilities, axis=-1)).to_tensor(),
        }

    return {"serving_default": (label_words, [TEXT])}


def masked_lm_signatures(model, pieces_of, sequence_length):
    """From texts with [MASK] in them to the likeliest words for each mask."""
    tokenizer = pieces_of.tokenizer
    words = list(map(tokenizer.piece_text, range(tokenizer.vocabulary_size)))

    def fill_masks(text):
        rows = pack_to_longest(pieces_of.with_masks(text), None, tokenizer, sequence_length)
        positions = mask_positions(rows["token_ids"], tokenizer.mask_id)
        is_mask = tf.sequence_mask(positions.row_lengths())[..., tf.newaxis]  # (batch, masks, 1)
        logits = checked_output(model, {**rows, "mask_positions": positions.to_tensor()})  # (batch, masks, vocabulary)
        # The embedding may have more rows than the vocabulary has words, as a multiple of 8: these cannot be guesses.
        logits = logits[..., : tokenizer.vocabulary_size]
        probabilities, token_ids = tf.math.top_k(tf.nn.softmax(logits), min(GUESSES, tokenizer.vocabulary_size))
        return {
            "tokens": tf.where(is_mask, tf.gather(tf.constant(words), token_ids), ""),
            "token_ids": tf.where(is_mask, token_ids, tokenizer.pad_id),
            "probabilities": tf.where(is_mask, probabilities, 0.0),
        }

    return {"serving_default": (fill_masks, [TEXT])}


def encoder_signatures(model, pieces_of, sequence_length):
    """From texts to vectors: that of the pooler, if there is one, the mean over tokens, and one for each token."""

    def embed(text):
        rows = pack_to_longest(pieces_of(text), None, pieces_of.tokenizer, sequence_length)
        outputs = model(rows, training=False)
        # Also for a bfloat16 model the mean is computed and returned in float32: NumPy has no bfloat16.
        vectors = tf.cast(outputs["sequence_output"], tf.float32)  # (batch, length, hidden_size)
        weights = tf.cast(rows["padding_mask"], tf.float32)[..., tf.newaxis]  # (batch, length, 1)
        pooled = {name: tf.cast(array, tf.float32) for name, array in outputs.items() if name == "pooled_output"}
        return {
            **pooled,
            "mean_pooled": tf.reduce_sum(vectors * weights, axis=1) / tf.reduce_sum(weights, axis=1),
            "sequence_output": vectors,
            "token_ids": rows["token_ids"],
            "padding_mask": rows["padding_mask"],
        }

    return {"serving_default": (embed, [TEXT])}


def attention_function(model, pieces_of, sequence_length):
    """From texts to their tokens, and for each token the share of its attention that each token receives."""
    attend = with_attention(getattr(model, "encoder", model))
    cut = pieces_of.with_masks if isinstance(model, models.MaskedLM) else pieces_of

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
    control = tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id
    rows = pack(first, second, sequence_length, *control, template=tokenizer.template)
    # A batch without rows keeps one column: otherwise reshaping it would divide by a length of 0.
    longest = tf.maximum(tf.reduce_max(tf.reduce_sum(rows["padding_mask"], axis=1)), 1)
    return {name: row[:, :longest] for name, row in rows.items()}  # each (batch, longest)


def mask_positions(token_ids, mask_id):
    """The positions of the mask token in each row, ascending: RaggedTensor (batch, masks) of int32."""
    positions = tf.broadcast_to(tf.range(tf.shape(token_ids)[1]), tf.shape(token_ids))
    return tf.ragged.boolean_mask(positions, token_ids == mask_id)


SIGNATURES = {
    models.TextClassifier: classifier_signatures,
    models.TextRegressor: texts_or_pairs,
    models.TokenClassifier: token_classifier_signatures,
    models.MultipleChoice: multiple_choice_signatures,
    models.QuestionAnswerer: question_answerer_signatures,
    models.NextSentencePredictor: next_sentence_signatures,
    models.MaskedLM: masked_lm_signatures,
    models.TextEmbedder: embedder_signatures,
    Encoder: encoder_signatures,
}


if __name__ == "__main__":
    handover.main(write)
