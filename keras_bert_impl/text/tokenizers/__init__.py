"""Turns text into token ids and character offsets, without TensorFlow."""

from keras_bert_impl.text.tokenizers.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import learn_byte_pairs
from keras_bert_impl.text.tokenizers.deberta_tokenizer import DebertaTokenizer
from keras_bert_impl.text.tokenizers.mmbert_tokenizer import MmBertTokenizer
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import ModernBertTokenizer
from keras_bert_impl.text.tokenizers.opening import kind_in, open_tokenizer, tokenizer_from_config, tokenizer_to_config
from keras_bert_impl.text.tokenizers.row_template import RowTemplate
from keras_bert_impl.text.tokenizers.sentence_piece_model import learn_sentence_pieces
from keras_bert_impl.text.tokenizers.sentence_piece_tokenizer import (
    AlbertTokenizer,
    BigBirdTokenizer,
    DebertaV2Tokenizer,
    XLMRobertaTokenizer,
    XLNetTokenizer,
)
from keras_bert_impl.text.tokenizers.tokenizer import Tokenizer
from keras_bert_impl.text.tokenizers.vocabulary import learn_vocabulary, read_vocabulary, write_vocabulary
from keras_bert_impl.text.tokenizers.wordpiece_tokenizer import MPNetTokenizer, WordPieceTokenizer

__all__ = [
    "AlbertTokenizer",
    "BigBirdTokenizer",
    "BytePairTokenizer",
    "DebertaTokenizer",
    "DebertaV2Tokenizer",
    "MPNetTokenizer",
    "MmBertTokenizer",
    "ModernBertTokenizer",
    "RowTemplate",
    "Tokenizer",
    "WordPieceTokenizer",
    "XLMRobertaTokenizer",
    "XLNetTokenizer",
    "kind_in",
    "learn_byte_pairs",
    "learn_sentence_pieces",
    "learn_vocabulary",
    "open_tokenizer",
    "read_vocabulary",
    "tokenizer_from_config",
    "tokenizer_to_config",
    "write_vocabulary",
]
