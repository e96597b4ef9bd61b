"""Models for serving. Importing this needs no runtime; writing a format does."""

from keras_bert_impl.export.opened import open_export
from keras_bert_impl.export.row_formats import export_litert, export_onnx, export_openvino
from keras_bert_impl.export.saved_model import export_saved_model

__all__ = ["export_litert", "export_onnx", "export_openvino", "export_saved_model", "open_export"]
