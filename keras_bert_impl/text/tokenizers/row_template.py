"""How the texts of a row are laid out between control tokens, which differs from family to family."""

import typing

from tokenizers import processors


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
