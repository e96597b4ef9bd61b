"""Turns texts into the input arrays of a model, without TensorFlow."""

import typing

import numpy as np
from tokenizers import processors

from keras_bert_impl.user_warnings import warn_user

ROW_MULTIPLE = 32  # rows are padded to a multiple of this: few different shapes, so few compilations


class RowTemplate(typing.NamedTuple):
    """The slots of a row: `before` a `after`, or for a pair `before` a `between` b `after`, then padding.

    Fields:
        before, between, after: the control tokens of a slot, each "cls" or "sep".
        second_segment: the segment id of the second text and of what follows it. BERT: 1; RoBERTa has no segments: 0.
        cls_segment: the segment id of "cls"; None if it has that of the text beside it. XLNet: 2.
    """

    before: tuple[str, ...]
    between: tuple[str, ...]
    after: tuple[str, ...]
    second_segment: int
    cls_segment: int | None = None

    def first_length(self, length, is_pair):
        """The tokens of a row before its second text, for a first text of `length` tokens; of a row, if there is no
        second text."""
        return len(self.before) + length + len(self.between if is_pair else self.after)

    def num_control(self, is_pair):
        """The number of control tokens of a row."""
        return self.first_length(0, is_pair) + len(self.after) * is_pair

    def control_of(self, cls, sep):
        """The control tokens of each slot, three lists of what stands for "cls" and "sep": their ids, or others."""
        return tuple(
            [{"cls": cls, "sep": sep}[name] for name in slot] for slot in (self.before, self.between, self.after)
        )

    def segments_of(self, slot, segment):
        """The segment ids of the control tokens of a slot beside a text of this segment."""
        own = {} if self.cls_segment is None else {"cls": self.cls_segment}
        return [own.get(name, segment) for name in slot]

    def processor(self, cls, sep):
        """These rows as a step of the `tokenizers` library, for control tokens that are pairs of a name and an id."""

        def control(slot, segment=0):
            names = {"cls": cls[0], "sep": sep[0]}
            return [f"{names[one]}:{own}" for one, own in zip(slot, self.segments_of(slot, segment), strict=True)]

        first = [*control(self.before), "$A"]
        second = [*control(self.between), f"$B:{self.second_segment}", *control(self.after, self.second_segment)]
        return processors.TemplateProcessing(
            single=[*first, *control(self.after)], pair=[*first, *second], special_tokens=[cls, sep]
        )

    def cls_place(self, length):
        """Where "cls" stands in a row of so many tokens: a number, or an array as the lengths."""
        return 0 * length if "cls" in self.before else length - len(self.after) + self.after.index("cls")

    def with_cls_segments(self, rows, cls_id, where):
        """Rows of arrays in which "cls", of this id, has the segment that is its own, if it has one; `where` is the
        function of NumPy or of TensorFlow. No other token may have this id yet, as a random one may."""
        if self.cls_segment is None:
            return rows
        return {**rows, "segment_ids": where(rows["token_ids"] == cls_id, self.cls_segment, rows["segment_ids"])}

    def text_in(self, row):
        """What belongs to the text in a row of a single text without padding: ids, or what there is for each."""
        return row[len(self.before) : len(row) - len(self.after)]


BERT_ROWS = RowTemplate(("cls",), ("sep",), ("sep",), second_segment=1)  # [CLS] a [SEP] b [SEP]
ROBERTA_ROWS = RowTemplate(("cls",), ("sep", "sep"), ("sep",), second_segment=0)  # <s> a </s></s> b </s>
MODERNBERT_ROWS = BERT_ROWS._replace(second_segment=0)  # [CLS] a [SEP] b [SEP], without segments
XLNET_ROWS = RowTemplate((), ("sep",), ("sep", "cls"), second_segment=1, cls_segment=2)  # a <sep> b <sep> <cls>


def rows_from_texts(tokenizer, first, second=None, sequence_length=512, pad_to=None):
    """Rows of texts or pairs between control tokens, as the tokenizer's `template` says: `[CLS] first [SEP]` or
    `[CLS] first [SEP] second [SEP]` for BERT, equal to those of `preprocessing.graphs.rows`.

    Args:
        tokenizer: a Tokenizer.
        first: list of texts.
        second: list of texts as long as `first`, or None.
        sequence_length: tokens of the longest row allowed. Longer rows lose tokens from the end of the longer text
            first, as in google-research/bert's `_truncate_seq_pair`.
        pad_to: length of all rows; None means the longest row, rounded up to a multiple of 32.

    Returns: dict of `token_ids`, `segment_ids`, `padding_mask`, int32 (batch, length). A warning reports how many
        texts had to be cut.
    Raises: ValueError if no token fits.
    """
    first_ids, second_ids, num_cut = ids_from_texts(tokenizer, first, second, sequence_length)
    warn_of_cut(num_cut, len(first_ids), sequence_length)
    return pack_rows(tokenizer, first_ids, second_ids, sequence_length, pad_to)


def ids_from_texts(tokenizer, first, second=None, sequence_length=512, truncate="longest_first"):
    """Tokenizes texts and cuts them to what fits in a row: (ids of the first texts, of the second texts, rows cut).

    Arguments and errors are those of `rows_from_texts`; the second list is None for single texts. `truncate` is a rule
    of `kept_lengths`.
    """
    room = room_for_text(tokenizer.template, second is not None, sequence_length)
    first_ids = tokenizer.ids_batch(first)
    if second is None:
        return [ids[:room] for ids in first_ids], None, sum(len(ids) > room for ids in first_ids)
    whole = list(zip(first_ids, tokenizer.ids_batch(second), strict=True))
    kept = [kept_lengths(len(a), len(b), room, truncate) for a, b in whole]
    if too_long := [row for row, (_, of_second) in enumerate(kept) if of_second < 0]:
        raise ValueError(
            f"The first text of pair {too_long[0]} alone is longer than the {room} tokens that fit in a pair, and "
            f"{truncate!r} does not truncate it: shorten it, or use a larger sequence_length."
        )
    pairs = [(a[:of_a], b[:of_b]) for (a, b), (of_a, of_b) in zip(whole, kept, strict=True)]
    return [a for a, _ in pairs], [b for _, b in pairs], sum(len(a) + len(b) > room for a, b in whole)


class TextsCutWarning(UserWarning):
    """Some texts were too long; `num_cut` is their number."""

    def __init__(self, message, num_cut):
        super().__init__(message)
        self.num_cut = num_cut


def warn_of_cut(num_cut, count, sequence_length):
    """Warns, if any of `count` texts had to be cut."""
    if num_cut:
        warn_user(TextsCutWarning(sentence_of_cut(num_cut, count, sequence_length), num_cut))


def sentence_of_cut(num_cut, count, sequence_length):
    """What `fit`, `predict` and the server say of texts that were truncated."""
    return (
        f"{num_cut:,} of {count:,} texts have more than {sequence_length} tokens and were truncated to that length: a "
        "model with a larger sequence_length reads more of them."
    )


def sentence_of_cut_questions(num_cut, count, question_length):
    """What `fit`, `answer` and the server say of questions that were truncated; contexts never are."""
    return (
        f"{num_cut:,} of {count:,} questions have more than {question_length} tokens and were truncated to that length."
    )


def longest_question(sequence_length, question_length=64):
    """The most tokens of a question in a row: Google's 64, and at most a quarter."""
    return min(question_length, sequence_length // 4)


def sentence_without_mask(text, mask):
    """What `fill_mask` and the server say of a text without a mask."""
    return f"There is no {mask} in the text {text[:60]!r}: write {mask} in place of the word to guess."


def kept_lengths(first, second, room, truncate="longest_first", least=min, most=max):
    """The tokens that are kept of pairs of texts with so many tokens, where a row has `room` for both together.

    Args:
        first: lengths of the first texts, a number or an array.
        second: likewise of the second.
        room: tokens of both texts that a row holds.
        truncate: "longest_first": the longer text loses its last token (in a tie the second) until the pair fits, as in
            `_truncate_seq_pair` of google-research/bert's run_classifier.py and KerasHub's "round_robin"; "waterfall":
            the second text has the room that the first leaves; "only_second": the first is kept whole.
        least: `min` for such lengths.
        most: `max` for them.
    """
    if truncate == "only_second":
        return first, least(second, room - first)
    if truncate == "waterfall":
        kept = least(first, room)
        return kept, least(second, room - kept)
    # Google's loop ends when the second has half of the room, rounded down, or all that a shorter first leaves.
    kept = least(second, most(room - first, room // 2))
    return least(first, room - kept), kept


def best_windows(places, lengths, room, arrays, step=None):
    """The window of its text that shows a token with the most context, on the side that has less of it. Ties go to the
    longer window, as in the original code's `_check_is_max_context`, then to the earlier one.

    Args:
        places: of tokens in their texts, int32 (places,).
        lengths: how many tokens the text of each has, likewise, or one number.
        room: tokens of a window.
        arrays: the module of the array operations, of which the places are arrays.
        step: tokens from the beginning of one window to that of the next; None lets them overlap by half.

    Returns: the number of the window within the text, int32 (places,); the token's place in it, likewise.
    """
    step = max(1, room // 2) if step is None else step
    place, lengths = places[:, None], (lengths + 0 * places)[:, None]
    # All windows that can show a token, from the first on: of equals the first is taken.
    number = place // step - arrays.arange(-(-room // step))[::-1]  # (places, windows)
    begins = number * step
    ends = arrays.where(begins + room < lengths, begins + room, lengths)
    left, right = place - begins, ends - 1 - place
    # After the first window, there is one more as long as the one before it does not reach the end.
    is_there = (right >= 0) & ((begins == 0) | ((begins > 0) & (begins - step + room < lengths)))
    size = arrays.cast(ends - begins, arrays.float64)
    context = arrays.cast(arrays.where(left < right, left, right), arrays.float64) + 0.01 * size
    order = arrays.order_of(arrays.where(is_there, -context, arrays.constant(1, arrays.float64)))
    window = arrays.take(number, order[:, :1])[:, 0]
    return window, places - window * step


def rounded_length(longest, sequence_length):
    """The length of rows of which the longest has so many tokens: a multiple of 32, at most `sequence_length`."""
    return min(-(-longest // ROW_MULTIPLE) * ROW_MULTIPLE, sequence_length)


def pack_rows(tokenizer, first, second, sequence_length, pad_to=None):
    """Packs lists of ids, which must already be short enough, into padded rows; see `rows_from_texts`."""
    before, between, after = tokenizer.template.control_of(tokenizer.cls_id, tokenizer.sep_id)
    heads = [before + ids + (after if second is None else between) for ids in first]
    tails = [ids + after for ids in second] if second is not None else [[]] * len(heads)
    longest = max((len(head) + len(tail) for head, tail in zip(heads, tails, strict=True)), default=1)
    length = pad_to or rounded_length(longest, sequence_length)
    token_ids = np.full((len(heads), length), tokenizer.pad_id, "int32")
    segment_ids = np.zeros((len(heads), length), "int32")
    padding_mask = np.zeros((len(heads), length), "int32")
    for row, (head, tail) in enumerate(zip(heads, tails, strict=True)):
        end = len(head) + len(tail)
        token_ids[row, :end] = head + tail
        segment_ids[row, len(head) : end] = tokenizer.template.second_segment
        padding_mask[row, :end] = 1
    rows = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
    return tokenizer.template.with_cls_segments(rows, tokenizer.cls_id, np.where)


def room_for_text(template, is_pair, sequence_length):
    """The tokens of text that a row holds. Raises ValueError if there are none."""
    control = template.num_control(is_pair)
    if sequence_length <= control:
        raise ValueError(f"sequence_length {sequence_length} leaves no room for text after {control} control tokens.")
    return sequence_length - control
