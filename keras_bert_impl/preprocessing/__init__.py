"""From what a user has to the inputs of a model: preprocessors, and what `fit` does itself."""

from keras_bert_impl.preprocessing.preprocessors import (
    ChoicePreprocessor,
    MaskedLMPreprocessor,
    Masking,
    QuestionPreprocessor,
    TextPreprocessor,
    WordsPreprocessor,
)

__all__ = [
    "ChoicePreprocessor",
    "MaskedLMPreprocessor",
    "Masking",
    "QuestionPreprocessor",
    "TextPreprocessor",
    "WordsPreprocessor",
]
