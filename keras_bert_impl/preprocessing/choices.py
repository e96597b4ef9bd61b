"""Rows of a text and each of the endings to choose from."""

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.row_maker import RowMaker
from keras_bert_impl.preprocessing.texts import is_texts, to_strings


class ChoiceRows(RowMaker):
    """A row for each choice: the text, and the choice."""

    def is_natural(self, x):
        return has_choices(x)

    def unlabelled(self, texts):
        """Raises: ValueError if not all texts have the same number of choices, naming the first that differs."""
        first, choices = texts
        for index, endings in enumerate(choices):
            if len(endings) != len(choices[0]):
                raise ValueError(
                    f"text {index} has {len(endings)} choices, but text 0 has {len(choices[0])}: all texts need the "
                    "same number."
                )
        repeated = [text for text, endings in zip(first, choices, strict=True) for _ in endings]
        flat = [ending for endings in choices for ending in endings]
        return Rows.from_texts(
            self.tokenizer,
            to_strings(repeated),
            to_strings(flat),
            self.sequence_length,
            choices=len(choices[0]),
        )

    def packed(self, rows, pad_to=None):
        arrays = super().packed(rows, pad_to)
        return {name: array.reshape(-1, rows.choices, array.shape[-1]) for name, array in arrays.items()}


def has_choices(x):
    """Whether `x` is a pair: texts, and for each of them a list of texts."""
    return isinstance(x, (list, tuple)) and len(x) == 2 and is_texts(x[0]) and any(map(is_texts, x[1]))
