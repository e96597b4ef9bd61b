"""BERT models, functional, one a file."""

from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.feature_tagger import BertFeatureTagger
from keras_bert_impl.models.masked_lm import BertMaskedLM
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.next_sentence_predictor import BertNextSentencePredictor
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.question_answerer import BertQuestionAnswerer
from keras_bert_impl.models.text_classifier import BertTextClassifier
from keras_bert_impl.models.text_embedder import BertTextEmbedder
from keras_bert_impl.models.text_regressor import BertTextRegressor
from keras_bert_impl.models.token_classifier import BertTokenClassifier

__all__ = [
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
]
