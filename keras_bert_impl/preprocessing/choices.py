"""Rows of a text and each of the endings to choose from."""

import keras
import numpy as np

from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing.preprocessors import Preprocessor, are_strings, is_of_tensorflow
from keras_bert_impl.preprocessing.texts import is_texts, to_strings


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ChoicePreprocessor(Preprocessor):
    """Texts with equally many endings for each, (texts, endings), to the inputs of a MultipleChoice model.

    Returns: inputs are (batch, choices, sequence_length), a row for each ending; labels are passed through.
    """

    columns, targets = ("text", "endings"), ("label",)

    def _are_inputs(self, parts):
        endings = parts[1]
        if is_of_tensorflow(endings):
            return are_strings(endings)
        return isinstance(endings, list | tuple | np.ndarray) and (
            are_strings(endings) or any(map(are_strings, endings))
        )

    def takes(self, x):
        return isinstance(x, list | tuple) and len(x) == 2 and is_texts(x[0]) and any(map(is_texts, x[1]))

    def unlabelled(self, x):
        """The Rows of texts with each of their choices. Raises ValueError naming the first text that has another number
        of them."""
        texts, choices = x
        for index, endings in enumerate(choices):
            if len(endings) != len(choices[0]):
                raise ValueError(
                    f"text {index} has {len(endings)} choices, but text 0 has {len(choices[0])}: all texts need the "
                    "same number."
                )
        repeated = [text for text, endings in zip(texts, choices, strict=True) for _ in endings]
        columns = to_strings(repeated), to_strings([ending for endings in choices for ending in endings])
        return Rows.from_texts(self.tokenizer, *columns, self.sequence_length, choices=len(choices[0]))

    def _in_graph(self, x, y, sample_weight):
        return self._graph.rows_of_choices(*x, sequence_length=self.sequence_length), y, sample_weight
