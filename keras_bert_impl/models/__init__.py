"""BERT models, all functional, one file each."""

from keras_bert_impl.models.distiller import Distiller
from keras_bert_impl.models.electra_pretrainer import ElectraPretrainer
from keras_bert_impl.models.feature_tagger import FeatureTagger
from keras_bert_impl.models.masked_lm import MaskedLM
from keras_bert_impl.models.multiple_choice import MultipleChoice
from keras_bert_impl.models.next_sentence_predictor import NextSentencePredictor
from keras_bert_impl.models.pretrainer import Pretrainer
from keras_bert_impl.models.question_answerer import QuestionAnswerer
from keras_bert_impl.models.replaced_token_detector import ReplacedTokenDetector
from keras_bert_impl.models.reranker import Reranker
from keras_bert_impl.models.text_classifier import TextClassifier
from keras_bert_impl.models.text_embedder import TextEmbedder
from keras_bert_impl.models.text_regressor import TextRegressor
from keras_bert_impl.models.token_classifier import TokenClassifier

__all__ = [
    "Distiller",
    "ElectraPretrainer",
    "FeatureTagger",
    "MaskedLM",
    "MultipleChoice",
    "NextSentencePredictor",
    "Pretrainer",
    "QuestionAnswerer",
    "ReplacedTokenDetector",
    "Reranker",
    "TextClassifier",
    "TextEmbedder",
    "TextRegressor",
    "TokenClassifier",
]
