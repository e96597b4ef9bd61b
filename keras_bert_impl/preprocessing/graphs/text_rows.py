"""Texts, words and questions to rows of ids in a graph, as `preprocessing.preprocessors` makes them without one."""

import threading

from keras_bert_impl.losses import NO_LABEL
from keras_bert_impl.preprocessing.graphs import long_texts
from keras_bert_impl.preprocessing.graphs import tensorflow_arrays as arrays
from keras_bert_impl.preprocessing.graphs.byte_pairs import BytePairs, CharacterPairs, LlamaPairs
from keras_bert_impl.preprocessing.graphs.characters import readable
from keras_bert_impl.preprocessing.graphs.ragged import between, of_texts, row_numbers, side_by_side
from keras_bert_impl.preprocessing.graphs.rows import pack
from keras_bert_impl.preprocessing.graphs.sentence_pieces import SentencePieces
from keras_bert_impl.preprocessing.graphs.wordpiece import WordPiece
from keras_bert_impl.quiet_tensorflow import tf
from keras_bert_impl.text.tokenizers import BytePairTokenizer, EuroBertTokenizer, MmBertTokenizer, WordPieceTokenizer
from keras_bert_impl.text.tokenizers.rows import best_windows, room_for_text

UNKNOWN = -2  # of no class


def graph_of(tokenizer, offsets):
    """The module that cuts texts into the tokenizer's pieces, with `offsets` also where each piece stands."""
    if isinstance(tokenizer, WordPieceTokenizer):
        if tokenizer.added_tokens:
            raise ValueError(
                f"A TensorFlow graph cannot find added tokens, such as {next(iter(tokenizer.added_tokens))!r}, and "
                "would give other ids: pass texts as a list or an array instead of a tf.data.Dataset, and export to "
                "another format than a SavedModel of strings."
            )
        return WordPiece(tokenizer, offsets)
    if isinstance(tokenizer, MmBertTokenizer):
        return CharacterPairs(tokenizer)
    if isinstance(tokenizer, EuroBertTokenizer):
        return LlamaPairs(tokenizer)
    if isinstance(tokenizer, BytePairTokenizer):
        return BytePairs(tokenizer)
    return SentencePieces(tokenizer, offsets)


class Counter:
    """A number that begins with 0, which several calls of a graph may change at the same time."""

    def __init__(self):
        def make():
            self.variable = tf.Variable(0, dtype=tf.int64, trainable=False)

        # A strategy is in scope of one thread, and would make it a variable of its devices.
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()

    def next(self):
        """The number before 1 is added to it; no two calls get the same one, as after `assign_add`."""
        return tf.raw_ops.ResourceCountUpTo(resource=self.variable.handle, limit=2**62, T=tf.int64)

    def add(self, number):
        """The operation that adds to it."""
        return self.variable.assign_add(tf.cast(number, tf.int64), read_value=False)

    def value(self):
        return int(self.variable.numpy())


@tf.autograph.experimental.do_not_convert
def of_batches(function, x, y=None, sample_weight=None, rank=0, strips=True):
    """What a function of batches returns for a batch or for one example, whose first part has this rank."""
    y, sample_weight = (tf.constant(part) if isinstance(part, list) else part for part in (y, sample_weight))
    parts = tf.nest.map_structure(_tensor, (x, y, sample_weight))
    first = tf.nest.flatten(parts[0])[0]
    is_one = first.shape.rank == rank
    found = function(*(tf.nest.map_structure(_as_batch, parts) if is_one else parts))
    if is_one:
        return tf.nest.map_structure(lambda part: part if part is None else part[0], found) if strips else found
    # What is computed from ragged rows has lost the static number of rows, which a TPU needs.
    return tf.nest.map_structure(lambda part: _with_rows(part, first.shape[0]), found)


def _tensor(part):
    return part if part is None or isinstance(part, tf.RaggedTensor) else tf.convert_to_tensor(part)


def _as_batch(part):
    return None if part is None else tf.expand_dims(part, 0)


def _with_rows(part, number):
    return tf.ensure_shape(part, (number, *part.shape[1:])) if tf.is_tensor(part) else part


class Graph:
    """What the graphs of a preprocessor share in a process: its tables and counts."""

    def __init__(self, tokenizer, class_names, by_number, multi_label=False, offsets=False):
        with tf.init_scope():  # they outlive the graph of a `Dataset.map`
            self.tokenizer, self.pieces_of, self.num_cut = tokenizer, graph_of(tokenizer, offsets), Counter()
            self.by_number, self.table = by_number, None
            self.count = len(class_names or ())
            self.num_classes = len(class_names) if multi_label and class_names else None
            if class_names:
                names = tf.lookup.KeyValueTensorInitializer(class_names, tf.range(len(class_names)))
                self.table = tf.lookup.StaticHashTable(names, UNKNOWN)

    def numbers(self, y):
        """The numbers of the classes that labels name; as `labels.numbers_of_names`."""
        if y is None or self.table is None:
            if y is not None and y.dtype == tf.string:
                raise ValueError(
                    "The labels are strings, but the preprocessor has no class_names. Second texts of pairs belong in "
                    "a tuple with the first: ((first, second),)."
                )
            return y
        if self.num_classes and y.dtype != tf.string and not isinstance(y, tf.RaggedTensor):
            return y  # rows of 0 and 1
        found = tf.ragged.map_flat_values(self._number, y)
        if not self.num_classes:
            return found
        found = found.to_tensor(NO_LABEL[0]) if isinstance(found, tf.RaggedTensor) else found
        of_each = tf.one_hot(found, self.num_classes, True, False, dtype=tf.bool)  # (batch, labels, classes)
        return tf.cast(tf.reduce_any(of_each, axis=1), tf.int32)

    def _number(self, y):
        if y.dtype != tf.string and not self.by_number:
            return y if y.dtype.is_bool or y.shape.rank != 1 else self._in_range(y)
        names = y if y.dtype == tf.string else tf.strings.as_string(y)
        found = self.table.lookup(names)
        if y.dtype != tf.string:
            found = tf.where((y == NO_LABEL[0]) | (y == NO_LABEL[1]), NO_LABEL[0], found)
        known = tf.debugging.Assert(
            tf.reduce_all(found > UNKNOWN), ["Some labels are not among the class_names:", names]
        )
        with tf.control_dependencies([known]):
            return tf.identity(found)

    def _in_range(self, y):
        """Numbers of classes, (labels,), after a check; tokens without a label have -1 or -100."""
        number = tf.cast(y, tf.float64)  # unsigned types have no -1 to compare with
        is_right = (number >= 0) & (number < self.count) & (number == tf.floor(number))
        if not self.num_classes:
            is_right |= (number == NO_LABEL[0]) | (number == NO_LABEL[1])
        message = f"Some labels are not numbers of the {self.count} classes:"
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_right), [message, y])]):
            return tf.identity(y)

    def rows_of_texts(self, first, second=None, *, sequence_length, truncate="longest_first"):
        """Rows (batch, sequence_length) of strings (batch,)."""
        second = None if second is None else self.pieces_of(second)
        return self._packed(self.pieces_of(first), second, sequence_length, truncate)

    def rows_of_choices(self, texts, endings, *, sequence_length):
        """Rows (batch, choices, sequence_length) of strings (batch,) and (batch, choices), not ragged but in type."""
        if isinstance(endings, tf.RaggedTensor):
            counts = endings.row_lengths()
            message = "Texts have different numbers of choices: give every text the same number."
            with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(counts == counts[:1]), [message, counts])]):
                endings = endings.to_tensor()
        count = tf.shape(endings)[1]
        first, second = tf.repeat(texts, count), tf.reshape(endings, [-1])
        rows = self.rows_of_texts(first, second, sequence_length=sequence_length)
        return {name: tf.reshape(row, [-1, endings.shape[1] or count, sequence_length]) for name, row in rows.items()}

    def rows_of_words(self, words, labels, weights, sequence_length):
        """Rows of words that are tokenized one by one, and labels and weights of words as those of their first pieces.

        Args:
            words: (batch, words) strings, ragged, or with "" after the last.
            labels: likewise, or None.
            weights: likewise, or (batch,), or None.
            sequence_length: tokens of a row.
        """
        words, labels, weights = (_without_padding(values, words) for values in (words, labels, weights))
        labels = self.numbers(labels)
        template = self.tokenizer.template
        pieces = pieces_of_words(self.pieces_of, words)  # (all words, pieces)
        lengths = pieces.row_lengths()
        all_before = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(lengths)], 0)  # pieces before each word of all texts
        place = all_before[:-1] - tf.gather(tf.gather(all_before, words.row_splits), row_numbers(words))
        is_kept = place + lengths <= sequence_length - template.num_control(is_pair=False)
        # Once a word does not fit, none of the words after it fits.
        kept = tf.ragged.boolean_mask(words.with_flat_values(place), words.with_flat_values(is_kept))
        rows = of_texts(words, pieces)
        begins = tf.gather(all_before, words.row_splits[:-1])
        kept_before = tf.gather(tf.concat([[0], tf.cumsum(tf.where(is_kept, lengths, 0))], 0), words.row_splits)
        ends = begins + kept_before[1:] - kept_before[:-1]
        with tf.control_dependencies([self._count(kept.row_lengths() < words.row_lengths())]):
            rows = self._packed(between(rows.flat_values, begins, ends), None, sequence_length)
        positions = kept + len(template.before)

        def of_tokens(values, otherwise):
            is_of_words = isinstance(values, tf.RaggedTensor)
            return at_positions(values, positions, sequence_length, otherwise) if is_of_words else values

        return rows, of_tokens(labels, NO_LABEL[0]), of_tokens(weights, 0)

    def rows_of_question(self, question, context, answers, weight, sequence_length, stride, question_length):
        """The windows of one question, () strings: rows (windows, sequence_length), labels (windows, 2) or None, and
        for each window the weight of the question, (1,), or None."""
        template = self.tokenizer.template
        context = readable(context)
        counted = self._count(self.pieces_of(question[tf.newaxis]).row_lengths() > question_length)
        with tf.control_dependencies([counted]):
            question = tf.identity(question)
        found = question_windows(self.pieces_of, question, context, sequence_length, stride, question_length)
        rows, windows, _, begins, ends, before = found
        weights = None if weight is None else tf.repeat(weight, windows.nrows())
        if answers is None:
            return rows, None, weights
        text, start = (
            tf.concat([tf.reshape(part, [-1])[:1], other], 0)[0]
            for part, other in ((answers["text"], [""]), (tf.cast(answers["answer_start"], tf.int32), [0]))
        )
        begin = tf.strings.length(tf.strings.substr(context, 0, start, unit="UTF8_CHAR"))
        end = begin + tf.strings.length(text)
        is_there = tf.debugging.assert_equal(
            tf.strings.substr(context, begin, end - begin), text, "The context has no such answer at answer_start."
        )
        with tf.control_dependencies([is_there]):
            shared = tf.where((begins < end) & (ends > begin) & (end > begin))[:, 0]
        shared = tf.cast(tf.concat([shared[:1], shared[-1:]], 0), tf.int32)  # first and last token, or none
        answer = tf.cond(tf.size(shared) > 0, lambda: shared, lambda: tf.constant([-1, -1]))
        first = tf.reduce_min(windows, axis=1)  # (windows,) of context tokens
        count = tf.cast(windows.row_lengths(), tf.int32)
        holds = (answer[0] >= first) & (answer[1] < first + count)
        cls_place = template.cls_place(before + count + len(template.after))
        places = answer[tf.newaxis] - first[:, tf.newaxis] + before  # (windows, 2)
        return rows, tf.where(holds[:, tf.newaxis], places, cls_place[:, tf.newaxis]), weights

    def _packed(self, first, second, sequence_length, truncate="longest_first"):
        room = room_for_text(self.tokenizer.template, second is not None, sequence_length)
        is_cut = first.row_lengths() + (0 if second is None else second.row_lengths()) > room
        if truncate == "head_and_tail":
            first, truncate = first if second is not None else long_texts.head_and_tail(first, room), "longest_first"
        with tf.control_dependencies([self._count(is_cut)]):
            return pack(self.tokenizer, first, second, sequence_length, truncate)

    def _count(self, is_cut):
        return self.num_cut.add(tf.math.count_nonzero(is_cut))


def pieces_of_words(pieces_of, words):
    """The pieces of each word of each text, (batch, words) strings: RaggedTensor (all words, pieces).

    A word that the tokenizer removes completely becomes the unknown token, as in `labelled_words.split_words`.
    """
    pieces = pieces_of.of_words(words)
    spare = tf.fill([tf.shape(words.flat_values)[0], 1], pieces_of.tokenizer.unk_id)
    return side_by_side([pieces, tf.ragged.boolean_mask(spare, tf.equal(pieces.row_lengths(), 0)[:, tf.newaxis])])


def at_positions(values, positions, sequence_length, otherwise):
    """Values of words at the positions of their first pieces: (batch, sequence_length).

    Args:
        values: RaggedTensor (batch, words), at least one for each position.
        positions: RaggedTensor (batch, kept words).
        sequence_length: tokens of a row.
        otherwise: what all other positions have.
    """
    begins = values.row_starts()
    kept = between(values.flat_values, begins, begins + positions.row_lengths())
    found = tf.fill([positions.nrows(), sequence_length], tf.cast(otherwise, values.dtype))
    return tf.tensor_scatter_nd_update(
        found, tf.stack([row_numbers(positions), positions.flat_values], axis=1), kept.flat_values
    )


def question_windows(pieces_of, question, context, sequence_length, stride, question_length):
    """The windows of one question, () strings, of which the context is valid UTF-8.

    Returns: rows (windows, sequence_length); the numbers of the context's tokens that each window shows, and which of
        them it shows with more context than any other window, RaggedTensors (windows, tokens); the first byte of each
        token of the context and the one after its last, (tokens,); the tokens of a row before the context.
    """
    template = pieces_of.tokenizer.template
    asked = pieces_of(question[tf.newaxis])[0, :question_length]
    pieces, begins, ends = pieces_of.with_offsets(context)
    room = sequence_length - template.num_control(is_pair=True) - tf.size(asked)
    windows, is_best = windows_of(tf.size(pieces), room, tf.minimum(stride, room))  # ragged (windows, tokens)
    segments = windows.with_flat_values(tf.gather(pieces, windows.flat_values))
    asked_again = tf.RaggedTensor.from_tensor(tf.tile(asked[tf.newaxis], [segments.nrows(out_type=tf.int32), 1]))
    rows = pack(pieces_of.tokenizer, asked_again, segments, sequence_length, "only_second")
    return rows, windows, is_best, begins, ends, template.first_length(tf.size(asked), is_pair=True)


def windows_of(count, room, stride):
    """Which tokens each window shows, and which of them it shows with more context than any other window.

    Returns: RaggedTensor (windows, tokens) of int32; RaggedTensor of bool, likewise.
    """
    token = tf.range(count)
    tokens = tf.RaggedTensor.from_row_lengths(token, tf.cast(count[tf.newaxis], tf.int64))
    windows, _ = long_texts.windows_of(tokens, tf.cast(room, tf.int64), tf.cast(stride, tf.int64))
    best, _ = best_windows(token, count, room, arrays, stride)
    rows = tf.cast(row_numbers(windows), tf.int32)
    return windows, windows.with_flat_values(tf.gather(best, windows.flat_values) == rows)


def _without_padding(values, words):
    """Values of words, ragged, without those of empty words; values of texts stay."""
    if values is None or values.shape.rank < 2:
        return values
    words, values = (
        each if isinstance(each, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(each) for each in (words, values)
    )
    return tf.ragged.boolean_mask(values, tf.not_equal(words, ""))
