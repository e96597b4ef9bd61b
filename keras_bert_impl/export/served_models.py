"""The kinds of models that can be exported as a SavedModel."""

from keras_bert_impl import models
from keras_bert_impl.encoders.encoder import Encoder

MODELS = (
    models.QuestionAnswerer,
    models.TextClassifier,
    models.TextRegressor,
    models.TokenClassifier,
    models.MultipleChoice,
    models.NextSentencePredictor,
    models.MaskedLM,
    models.TextEmbedder,
    Encoder,
)


def kind_of(model):
    """The class among MODELS that a model belongs to, or inherits from."""
    return next(kind for kind in MODELS if isinstance(model, kind))
