"""BERT in Keras 3: pre-training, fine-tuning and export on TensorFlow, JAX and PyTorch."""

import importlib

from keras_bert_impl import startup  # before Keras is imported

__version__ = startup.VERSION

# `keras-bert` parses its options before these imports, which take seconds. In a program they are made at once: Keras
# finds our classes in a file only after they are registered.
if startup.imports_keras:
    from keras_bert_impl import (
        callbacks,
        checkpoints,
        corpora,
        embedding_losses,
        embedding_metrics,
        export,
        layers,
        losses,
        metrics,
        models,
        optimization,
        tokenizers,
    )
    from keras_bert_impl.checkpoints import encoder_from_pretrained, push_to_hub
    from keras_bert_impl.families.albert import AlbertConfig, AlbertEncoder
    from keras_bert_impl.families.bert import BertConfig, BertEncoder
    from keras_bert_impl.families.bigbird import BigBirdConfig, BigBirdEncoder
    from keras_bert_impl.families.deberta import DebertaV2Config, DebertaV2Encoder
    from keras_bert_impl.families.deberta_v1 import DebertaConfig, DebertaEncoder
    from keras_bert_impl.families.distilbert import DistilBertConfig, DistilBertEncoder
    from keras_bert_impl.families.electra import ElectraConfig, ElectraEncoder
    from keras_bert_impl.families.ernie import ErnieConfig, ErnieEncoder
    from keras_bert_impl.families.longformer import LongformerConfig, LongformerEncoder
    from keras_bert_impl.families.modernbert import ModernBertConfig, ModernBertEncoder
    from keras_bert_impl.families.mpnet import MPNetConfig, MPNetEncoder
    from keras_bert_impl.families.roberta import RobertaConfig, RobertaEncoder, XLMRobertaConfig, XLMRobertaEncoder
    from keras_bert_impl.families.xlnet import XLNetConfig, XLNetEncoder
    from keras_bert_impl.models import (
        ElectraPretrainer,
        FeatureTagger,
        MaskedLM,
        MaskedLMDistiller,
        MultipleChoice,
        NextSentencePredictor,
        Pretrainer,
        QuestionAnswerer,
        RelationDistiller,
        ReplacedTokenDetector,
        Reranker,
        TextClassifier,
        TextEmbedder,
        TextRegressor,
        TokenClassifier,
    )
    from keras_bert_impl.tokenizers import (
        AlbertTokenizer,
        BigBirdTokenizer,
        BytePairTokenizer,
        DebertaTokenizer,
        DebertaV2Tokenizer,
        MmBertTokenizer,
        ModernBertTokenizer,
        MPNetTokenizer,
        WordPieceTokenizer,
        XLMRobertaTokenizer,
        XLNetTokenizer,
    )

__all__ = [
    "AlbertConfig",
    "AlbertEncoder",
    "AlbertTokenizer",
    "BertConfig",
    "BertEncoder",
    "BigBirdConfig",
    "BigBirdEncoder",
    "BigBirdTokenizer",
    "BytePairTokenizer",
    "DebertaConfig",
    "DebertaEncoder",
    "DebertaTokenizer",
    "DebertaV2Config",
    "DebertaV2Encoder",
    "DebertaV2Tokenizer",
    "DistilBertConfig",
    "DistilBertEncoder",
    "ElectraConfig",
    "ElectraEncoder",
    "ElectraPretrainer",
    "ErnieConfig",
    "ErnieEncoder",
    "FeatureTagger",
    "LongformerConfig",
    "LongformerEncoder",
    "MPNetConfig",
    "MPNetEncoder",
    "MPNetTokenizer",
    "MaskedLM",
    "MaskedLMDistiller",
    "MmBertTokenizer",
    "ModernBertConfig",
    "ModernBertEncoder",
    "ModernBertTokenizer",
    "MultipleChoice",
    "NextSentencePredictor",
    "Pretrainer",
    "QuestionAnswerer",
    "RelationDistiller",
    "ReplacedTokenDetector",
    "Reranker",
    "RobertaConfig",
    "RobertaEncoder",
    "TextClassifier",
    "TextEmbedder",
    "TextRegressor",
    "TokenClassifier",
    "WordPieceTokenizer",
    "XLMRobertaConfig",
    "XLMRobertaEncoder",
    "XLMRobertaTokenizer",
    "XLNetConfig",
    "XLNetEncoder",
    "XLNetTokenizer",
    "__version__",
    "callbacks",
    "checkpoints",
    "corpora",
    "embedding_losses",
    "embedding_metrics",
    "encoder_from_pretrained",
    "export",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimization",
    "plots",
    "push_to_hub",
    "tokenizers",
]


def __getattr__(name):
    """`plots` is imported when it is asked for: matplotlib and scikit-learn take a second that most programs need not
    wait."""
    if name == "plots":
        return importlib.import_module("keras_bert_impl.plots")
    raise AttributeError(f"module 'keras_bert_impl' has no attribute {name!r}")


def __dir__():
    """The public names: without it, dir() also lists each folder that an import has passed through."""
    return __all__
