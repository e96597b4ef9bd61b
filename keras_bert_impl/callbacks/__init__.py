"""Callbacks for `fit`: exact resumption, figures, profiles, the best weights, what to do when training goes wrong."""

from keras_bert_impl.callbacks.best_weights import BestWeights
from keras_bert_impl.callbacks.exact_resume import ExactResume
from keras_bert_impl.callbacks.profile_steps import ProfileSteps
from keras_bert_impl.callbacks.retrieval_scores import RetrievalScores
from keras_bert_impl.callbacks.save_on_signal import SaveOnSignal
from keras_bert_impl.callbacks.stop_on_bad_loss import StopOnBadLoss
from keras_bert_impl.callbacks.training_figures import TrainingFigures

__all__ = [
    "BestWeights",
    "ExactResume",
    "ProfileSteps",
    "RetrievalScores",
    "SaveOnSignal",
    "StopOnBadLoss",
    "TrainingFigures",
]
