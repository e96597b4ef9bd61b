"""Rows of a text and each of the endings to choose from."""

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.row_maker import RowMaker
from keras_bert_impl.preprocessing.texts import is_texts, to_strings


class ChoiceRows(RowMaker):
    """A row for each choice: the text, and the choice."""

    def is_natural(self, x):
        return has_choices(x)

    def unlabelled(self, texts):
        return rows_of_choices(self.tokenizer, *texts, self.sequence_length)


def rows_of_choices(tokenizer, texts, choices, sequence_length):
    """The Rows of texts with each of their choices.

    Raises: ValueError if not all texts have the same number of choices, naming the first that differs.
    """
    for index, endings in enumerate(choices):
        if len(endings) != len(choices[0]):
            raise ValueError(
                f"text {index} has {len(endings)} choices, but text 0 has {len(choices[0])}: all texts need the "
                "same number."
            )
    repeated = [text for text, endings in zip(texts, choices, strict=True) for _ in endings]
    columns = to_strings(repeated), to_strings([ending for endings in choices for ending in endings])
    return Rows.from_texts(tokenizer, *columns, sequence_length, choices=len(choices[0]))


def has_choices(x):
    """Whether `x` is a pair: texts, and for each of them a list of texts."""
    return isinstance(x, (list, tuple)) and len(x) == 2 and is_texts(x[0]) and any(map(is_texts, x[1]))
