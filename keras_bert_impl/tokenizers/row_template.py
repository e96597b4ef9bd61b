"""How the texts of a row are laid out between control tokens, which differs from family to family."""

import typing


class RowTemplate(typing.NamedTuple):
    """A single text is `cls a sep` everywhere; pairs differ.

    Fields:
        separators: how many separator tokens stand between the texts of a pair. BERT: 1, RoBERTa: 2.
        second_segment: the segment id of the second text and of the separator behind it. BERT: 1; RoBERTa has no
            segments: 0.
    """

    separators: int
    second_segment: int

    def first_length(self, length, is_pair):
        """The tokens of a row before its second text, for a first text of `length` tokens; of a row, if there is no
        second text."""
        return 1 + length + (self.separators if is_pair else 1)

    def num_control(self, is_pair):
        """The number of control tokens of a row."""
        return self.first_length(0, is_pair) + is_pair


BERT_ROWS = RowTemplate(separators=1, second_segment=1)  # [CLS] a [SEP] b [SEP]
ROBERTA_ROWS = RowTemplate(separators=2, second_segment=0)  # <s> a </s></s> b </s>
