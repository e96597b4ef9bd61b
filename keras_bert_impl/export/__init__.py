"""Models for serving. Importing this needs no TensorFlow; writing a SavedModel does."""

from keras_bert_impl.export.saved_model import export_saved_model

__all__ = ["export_saved_model"]
