"""Turns text into token ids and character offsets, without TensorFlow."""

from keras_bert_impl.tokenizers.vocabulary import learn_vocabulary, read_vocabulary, write_vocabulary
from keras_bert_impl.tokenizers.wordpiece_tokenizer import WordPieceTokenizer

__all__ = ["WordPieceTokenizer", "learn_vocabulary", "read_vocabulary", "write_vocabulary"]
