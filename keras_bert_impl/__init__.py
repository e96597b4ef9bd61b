"""BERT in Keras 3: pre-training, fine-tuning and export on TensorFlow, JAX and PyTorch."""

from keras_bert_impl import corpora, export, layers, losses, models, optimization, tokenizers
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import BertEncoder, BertMaskedLM, BertPretrainer, BertTextClassifier
from keras_bert_impl.tokenizers import WordPieceTokenizer

__all__ = [
    "BertConfig",
    "BertEncoder",
    "BertMaskedLM",
    "BertPretrainer",
    "BertTextClassifier",
    "WordPieceTokenizer",
    "corpora",
    "export",
    "layers",
    "losses",
    "models",
    "optimization",
    "tokenizers",
]
