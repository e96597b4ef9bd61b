"""BERT in Keras 3: pre-training, fine-tuning and export on TensorFlow, JAX and PyTorch."""

from keras_bert_impl import checkpoints, corpora, export, layers, losses, models, optimization, tokenizers
from keras_bert_impl.config import BertConfig
from keras_bert_impl.models import (
    BertEncoder,
    BertFeatureTagger,
    BertMaskedLM,
    BertMultipleChoice,
    BertNextSentencePredictor,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTextClassifier,
    BertTextEmbedder,
    BertTextRegressor,
    BertTokenClassifier,
)
from keras_bert_impl.tokenizers import WordPieceTokenizer

__all__ = [
    "BertConfig",
    "BertEncoder",
    "BertFeatureTagger",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertNextSentencePredictor",
    "BertPretrainer",
    "BertQuestionAnswerer",
    "BertTextClassifier",
    "BertTextEmbedder",
    "BertTextRegressor",
    "BertTokenClassifier",
    "WordPieceTokenizer",
    "checkpoints",
    "corpora",
    "export",
    "layers",
    "losses",
    "models",
    "optimization",
    "tokenizers",
]
