"""Models for serving. Importing this needs no runtime; writing a format does."""

from keras_bert_impl.export.exports import export_litert, export_onnx, export_openvino, export_saved_model
from keras_bert_impl.export.opened import open_export

__all__ = ["export_litert", "export_onnx", "export_openvino", "export_saved_model", "open_export"]
