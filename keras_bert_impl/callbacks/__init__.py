"""Callbacks for `fit`: exact resumption, figures, the best weights, and what to do when training goes wrong."""

from keras_bert_impl.callbacks.best_weights import BestWeights
from keras_bert_impl.callbacks.exact_resume import ExactResume
from keras_bert_impl.callbacks.save_on_signal import SaveOnSignal
from keras_bert_impl.callbacks.stop_on_bad_loss import StopOnBadLoss
from keras_bert_impl.callbacks.training_figures import TrainingFigures

__all__ = ["BestWeights", "ExactResume", "SaveOnSignal", "StopOnBadLoss", "TrainingFigures"]
