"""BERT in Keras 3: pre-training, fine-tuning and export on TensorFlow, JAX and PyTorch."""

import ast
import importlib
import sys
import typing

from keras_bert_impl import startup

__version__ = startup.VERSION

# The public names: type checkers and editors read them here, and so does `_places`. Each is imported when it is taken.
if typing.TYPE_CHECKING:
    from keras_bert_impl import (
        callbacks,
        checkpoints,
        embedding_losses,
        embedding_metrics,
        export,
        layers,
        losses,
        metrics,
        models,
        optimization,
        plots,
        preprocessing,
    )
    from keras_bert_impl.checkpoints import encoder_from_pretrained, push_to_hub
    from keras_bert_impl.encoders.albert import AlbertConfig, AlbertEncoder
    from keras_bert_impl.encoders.bert import BertConfig, BertEncoder
    from keras_bert_impl.encoders.bigbird import BigBirdConfig, BigBirdEncoder
    from keras_bert_impl.encoders.deberta import DebertaV2Config, DebertaV2Encoder
    from keras_bert_impl.encoders.deberta_v1 import DebertaConfig, DebertaEncoder
    from keras_bert_impl.encoders.distilbert import DistilBertConfig, DistilBertEncoder
    from keras_bert_impl.encoders.electra import ElectraConfig, ElectraEncoder
    from keras_bert_impl.encoders.ernie import ErnieConfig, ErnieEncoder
    from keras_bert_impl.encoders.longformer import LongformerConfig, LongformerEncoder
    from keras_bert_impl.encoders.modernbert import ModernBertConfig, ModernBertEncoder
    from keras_bert_impl.encoders.mpnet import MPNetConfig, MPNetEncoder
    from keras_bert_impl.encoders.roberta import RobertaConfig, RobertaEncoder, XLMRobertaConfig, XLMRobertaEncoder
    from keras_bert_impl.encoders.rotary import (
        EuroBertConfig,
        EuroBertEncoder,
        GteConfig,
        GteEncoder,
        NomicBertConfig,
        NomicBertEncoder,
        UltrabertConfig,
        UltrabertEncoder,
    )
    from keras_bert_impl.encoders.xlnet import XLNetConfig, XLNetEncoder
    from keras_bert_impl.models import (
        Distiller,
        ElectraPretrainer,
        FeatureTagger,
        MaskedLM,
        MultipleChoice,
        NextSentencePredictor,
        Pretrainer,
        QuestionAnswerer,
        ReplacedTokenDetector,
        Reranker,
        TextClassifier,
        TextEmbedder,
        TextRegressor,
        TokenClassifier,
    )
    from keras_bert_impl.text import (
        corpora,
        tokenizers,
    )
    from keras_bert_impl.text.tokenizers import (
        AlbertTokenizer,
        BigBirdTokenizer,
        BytePairTokenizer,
        CamembertTokenizer,
        DebertaTokenizer,
        DebertaV2Tokenizer,
        EuroBertTokenizer,
        MmBertTokenizer,
        ModernBertTokenizer,
        MPNetTokenizer,
        WordPieceTokenizer,
        XLMRobertaTokenizer,
        XLNetTokenizer,
    )


def _places():
    """{public name: the module that defines it, or that it is}."""
    block = next(node for node in ast.parse(__spec__.loader.get_source(__name__)).body if isinstance(node, ast.If))
    return {
        alias.name: f"{__name__}.{alias.name}" if statement.module == __name__ else statement.module
        for statement in block.body
        for alias in statement.names
    }


PLACES = _places()
__all__ = sorted([*PLACES, "__version__"])


def __getattr__(name):
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(PLACES[name])
    return module if PLACES[name] == f"{__name__}.{name}" else getattr(module, name)


def __dir__():
    """The public names: without it, dir() also lists each folder that an import has passed through."""
    return __all__


def _register_classes():
    """Imports all that Keras may look for in a `.keras` file."""
    for place in PLACES.values():
        if place != f"{__name__}.plots":  # matplotlib takes a second
            importlib.import_module(place)


if "keras" in sys.modules:
    _register_classes()
else:
    sys.meta_path.insert(0, startup.ImportsOfKeras(__name__, _register_classes))
