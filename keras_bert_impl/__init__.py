"""BERT in Keras 3: pre-training, fine-tuning and export on TensorFlow, JAX and PyTorch."""

import keras_bert_impl.startup  # noqa: F401  before Keras is imported

from keras_bert_impl import (
    callbacks,
    checkpoints,
    corpora,
    embedding_losses,
    embedding_metrics,
    export,
    layers,
    losses,
    models,
    optimization,
    tokenizers,
)
from keras_bert_impl.configurations.bert import BertConfig
from keras_bert_impl.configurations.distilbert import DistilBertConfig
from keras_bert_impl.encoders.bert import BertEncoder
from keras_bert_impl.encoders.distilbert import DistilBertEncoder
from keras_bert_impl.encoders.families import encoder_from_pretrained
from keras_bert_impl.models import (
    FeatureTagger,
    MaskedLM,
    MultipleChoice,
    NextSentencePredictor,
    Pretrainer,
    QuestionAnswerer,
    TextClassifier,
    TextEmbedder,
    TextRegressor,
    TokenClassifier,
)
from keras_bert_impl.tokenizers import WordPieceTokenizer

__all__ = [
    "BertConfig",
    "BertEncoder",
    "DistilBertConfig",
    "DistilBertEncoder",
    "FeatureTagger",
    "MaskedLM",
    "MultipleChoice",
    "NextSentencePredictor",
    "Pretrainer",
    "QuestionAnswerer",
    "TextClassifier",
    "TextEmbedder",
    "TextRegressor",
    "TokenClassifier",
    "WordPieceTokenizer",
    "callbacks",
    "checkpoints",
    "corpora",
    "embedding_losses",
    "embedding_metrics",
    "encoder_from_pretrained",
    "export",
    "layers",
    "losses",
    "models",
    "optimization",
    "tokenizers",
]
