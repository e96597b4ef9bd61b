"""From questions and contexts to answers in a TensorFlow graph: windows, model, best span, its bytes in the context.

Does the same as `preprocessing.question_windows.make_windows` and `models.span_answers.best_answers`, for the best
answer only.
"""

import unicodedata

import numpy as np
import tensorflow as tf

from keras_bert_impl.preprocessing.graphs.characters import (
    CODE_POINTS,
    CodePointTable,
    character_starts,
    readable,
    without_spaces,
)
from keras_bert_impl.preprocessing.graphs.text_rows import question_windows
from keras_bert_impl.text.tokenizers.rows import longest_question

NO_SCORE = float("-inf")


def question_answers(model, pieces_of, sequence_length, stride=128, question_length=64, longest=30, top=20):
    """From questions and their contexts to the best answers; the options are those of the task."""
    question_length, stride = longest_question(sequence_length, question_length), min(stride, sequence_length // 2)
    template, is_mark = pieces_of.tokenizer.template, CodePointTable(combining_marks())
    model.encoder.check_texts([range(question_length)], [()], template)

    def answer_one(question_and_context):
        question, context = question_and_context
        context = readable(context)
        found = question_windows(pieces_of, question, context, sequence_length, stride, question_length)
        rows, windows, is_best, begins, ends, before = found
        begins, ends = ends_of_answers(context, begins, ends, is_mark)
        lengths = tf.reduce_sum(rows["padding_mask"], axis=1)
        length = tf.reduce_max(lengths)
        logits = tf.cast(model({name: row[:, :length] for name, row in rows.items()}, training=False), tf.float32)
        of_cls = tf.gather(logits, template.cls_place(lengths), batch_dims=1)  # (windows, 2)
        null_score = tf.reduce_min(of_cls[:, 0] + of_cls[:, 1])
        of_context = logits[:, before : -len(template.after)]  # (windows, tokens of the longest, 2)
        places = (windows.with_flat_values(tf.gather(array, windows.flat_values)) for array in (begins, ends))
        row, first, last, score = best_span(of_context, windows, is_best, *places, longest, top)
        found = tf.math.is_finite(score)
        token = tf.cond(found, lambda: tf.gather(windows[row], [first, last]), lambda: tf.zeros([2], tf.int32))
        # A context without any token has no offsets.
        place = tf.concat([begins, [0]], 0)[token[0]], tf.concat([ends, [0]], 0)[token[1]]
        score = tf.where(found, score, 0.0)
        if model.null_threshold is not None:
            found = tf.logical_and(found, null_score - score <= model.null_threshold)
        begin, end = (tf.where(found, value, 0) for value in place)
        return {
            "answer": tf.strings.substr(context, begin, end - begin),
            "begin": begin,
            "end": end,
            "score": score,
            "null_odds": null_score - score,
        }

    def answer(question, context):
        message = "question and context must have equally many strings."
        with tf.control_dependencies([tf.debugging.assert_equal(tf.size(question), tf.size(context), message)]):
            types = {"answer": tf.string, "begin": tf.int32, "end": tf.int32, "score": tf.float32}
            specs = {name: tf.TensorSpec([], kind) for name, kind in {**types, "null_odds": tf.float32}.items()}
            return tf.map_fn(answer_one, (question, context), fn_output_signature=specs)

    return answer


def ends_of_answers(context, begins, ends, is_mark):
    """The bytes where answers that pieces begin and end do so, as `words.end_with_marks` and `words.stripped_span`."""
    codes = tf.strings.unicode_decode(context, "UTF-8")
    starts = character_starts(codes)
    first, after = (tf.searchsorted(starts, places) for places in (begins, ends))
    others = tf.cast(tf.where(is_mark(codes) == 0)[:, 0], tf.int32)
    after = tf.gather(tf.concat([others, [tf.size(codes)]], axis=0), tf.searchsorted(others, after))
    return (tf.gather(starts, places) for places in without_spaces(codes, first, after))


def combining_marks():
    """1 for each code point that is a combining mark, (CODE_POINTS,)."""
    return np.array([unicodedata.category(chr(code)).startswith("M") for code in range(CODE_POINTS)], np.int32)


def best_span(logits, windows, is_best, begins, ends, longest, top):
    """The window of the best span with characters, the first and last position in it, and the score, which is -inf
    without any span.

    Args:
        logits: (windows, tokens, 2), for start and end.
        windows: as `windows_of` returns it.
        is_best: likewise.
        begins: RaggedTensor (windows, tokens) of int32, the first byte of each token.
        ends: likewise, the byte after the last.
        longest: largest number of tokens in a span.
        top: number of starts and ends considered in a window.
    """
    shape = tf.shape(logits)[:2]
    starts = tf.where(is_best.to_tensor(False, shape=[None, None])[:, : shape[1]], logits[:, : shape[1], 0], NO_SCORE)
    is_token = tf.sequence_mask(windows.row_lengths(), shape[1])
    begins, ends = (places.to_tensor(0, shape=[None, None])[:, : shape[1]] for places in (begins, ends))
    stops = tf.where(is_token, logits[..., 1], NO_SCORE)
    count = tf.minimum(top, shape[1])
    start_scores, first = tf.math.top_k(starts, count)  # (windows, top)
    end_scores, last = tf.math.top_k(stops, count)
    scores = start_scores[:, :, tf.newaxis] + end_scores[:, tf.newaxis]  # (windows, top, top)
    distance = last[:, tf.newaxis] - first[:, :, tf.newaxis]
    first_byte, last_byte = tf.gather(begins, first, batch_dims=1), tf.gather(ends, last, batch_dims=1)
    has_text = last_byte[:, tf.newaxis] > first_byte[:, :, tf.newaxis]
    scores = tf.where((distance >= 0) & (distance < longest) & has_text, scores, NO_SCORE)
    flat = tf.concat([tf.reshape(scores, [-1]), [NO_SCORE]], axis=0)
    place = tf.argmax(flat, output_type=tf.int32)
    # Without any span, `place` is behind all others and `count` may be 0, by which nothing can be divided.
    inside, each = tf.minimum(place, tf.maximum(tf.size(flat) - 2, 0)), tf.maximum(count, 1)
    row, rest = inside // (each * each), inside % (each * each)
    flat_first, flat_last = (tf.concat([tf.reshape(array, [-1]), [0]], axis=0) for array in (first, last))
    return row, flat_first[row * each + rest // each], flat_last[row * each + rest % each], flat[place]
