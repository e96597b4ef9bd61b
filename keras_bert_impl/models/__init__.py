"""BERT models, functional, one a file."""

from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.masked_lm import BertMaskedLM
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.text_classifier import BertTextClassifier

__all__ = ["BertEncoder", "BertMaskedLM", "BertPretrainer", "BertTextClassifier"]
