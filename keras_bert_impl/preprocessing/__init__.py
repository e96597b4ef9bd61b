"""From what a user has to the inputs of a model: preprocessors, and what `fit` does itself."""

from keras_bert_impl.preprocessing.column_rows import ChoicePreprocessor
from keras_bert_impl.preprocessing.labelled_words import WordsPreprocessor
from keras_bert_impl.preprocessing.masked_texts import MaskedLMPreprocessor, Masking
from keras_bert_impl.preprocessing.preprocessors import TextPreprocessor
from keras_bert_impl.preprocessing.question_windows import QuestionPreprocessor

__all__ = [
    "ChoicePreprocessor",
    "MaskedLMPreprocessor",
    "Masking",
    "QuestionPreprocessor",
    "TextPreprocessor",
    "WordsPreprocessor",
]
