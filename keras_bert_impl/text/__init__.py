"""Texts and what becomes of them without Keras: corpora, tokenizers, files of pre-training rows."""

from keras_bert_impl.text import corpora as corpora
from keras_bert_impl.text import tokenizers as tokenizers
