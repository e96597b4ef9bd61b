"""One version of a model, loaded from an OpenVINO or ONNX export: on a CPU these answer faster than a SavedModel.

Such an export takes rows of ids. Its tokenizer.json makes them from texts, outside the graph, and the outputs are named
as the SavedModel of the same model names them, so that clients need not know which of the two answers.
"""

import pathlib

import numpy as np

from keras_bert_impl import models
from keras_bert_impl.checkpoints.huggingface import MULTI_LABEL
from keras_bert_impl.export.formats import FORMATS
from keras_bert_impl.export.opened import TextReader, description_of
from keras_bert_impl.export.runtimes import warn_of_overflow
from keras_bert_serving.errors import invalid
from keras_bert_serving.servable import read_metadata
from keras_bert_serving.signatures import Array, Signature
from keras_bert_serving.tensorflow_runtime import tf
from keras_bert_serving.text_checks import TextChecks

SERVED = ("openvino", "onnx")
# Answers of other tasks are made of words and characters, which only the graph of a SavedModel finds in the text.
TASKS = ("classify", "regress", "vector", "next_sentence")
STRINGS = Array(np.dtype(object), (None,))
EXAMPLE = np.array([b"A text."], object)
PREDICT = "tensorflow/serving/predict"


class RowServable:
    """A loaded export that takes rows of ids.

    Args:
        name, version: under which it is served; the version is a number.
        directory: of the export.
        options: SessionOptions.

    Attributes: those of `servable.Servable`.
    Raises: ValueError if the export is in another format or of a kind of model that is served as a SavedModel only;
        OSError or an error of the runtime if it is damaged.
    """

    def __init__(self, name, version, directory, options):
        self.name, self.version, self.directory = name, version, pathlib.Path(directory)
        self.metadata = read_metadata(self.directory)
        self.text_checks = TextChecks(self.directory, self.metadata)
        export = description_of(self.directory)
        asked = check_served(self.directory, export)
        warn_of_overflow(self.directory, export)
        self._reader = TextReader(self.directory)
        precision = "bfloat16" if options.bfloat16 and export["precision"] == "float32" else export["precision"]
        self._run_rows = FORMATS[export["format"]].open(self.directory, options.threads, precision)
        is_multi_label = self.metadata.get("problem_type") == MULTI_LABEL  # each class has a probability of its own
        self._name_outputs = (multi_label if is_multi_label else one_class) if asked.task == "classify" else None
        self.signatures = {
            key: self._signature(key, dict.fromkeys(inputs, STRINGS)) for key, inputs in asked.signatures.items()
        }
        self.signature_defs = {key: definition_of(signature) for key, signature in self.signatures.items()}

    def _signature(self, name, inputs):
        outputs = self._answer(dict.fromkeys(inputs, EXAMPLE))
        # A width that differs between texts is that of the names above 0.5.
        shapes = {key: (None, None) if key == "labels" else (None, *array.shape[1:]) for key, array in outputs.items()}
        arrays = {key: Array(outputs[key].dtype, shapes[key]) for key in sorted(outputs)}
        return Signature(name, inputs, arrays, PREDICT)

    def run(self, name, inputs):
        """Outputs by name, as NumPy arrays, for the texts by name; called from a worker thread.

        Raises: ServingError if there are not equally many of both, UnicodeDecodeError if a text is no UTF-8.
        """
        return self._answer(inputs)

    def _answer(self, inputs):
        columns = [texts_of(array) for _, array in sorted(inputs.items())]  # text, text_pair
        if len({len(column) for column in columns}) > 1 or not columns[0]:
            raise invalid("text and text_pair must have equally many strings, at least one.")
        texts = list(zip(*columns, strict=True)) if columns[1:] else columns[0]
        outputs = self._reader.answer(self._run_rows, texts)
        return self._name_outputs(outputs, self.metadata) if self._name_outputs else outputs

    def close(self):
        """Frees the memory."""
        self._run_rows = None


def check_served(directory, export):
    """How the model of an export, as its config.json describes it, is asked. Raises ValueError unless it is in a format
    and for a task of those above."""
    asked = getattr(getattr(models, export["model"], None), "asked", None)
    if export["format"] not in SERVED or asked is None or asked.task not in TASKS:
        raise ValueError(
            f"{directory} holds a {export['model']} in the format {export['format']}: {' and '.join(SERVED)} are "
            f"served for {', '.join(TASKS)}. Export it with --format saved_model."
        )
    return asked


def texts_of(array):
    """The strings of an input."""
    return [text.decode() if isinstance(text, bytes) else text for text in array.tolist()]


def one_class(outputs, metadata):
    """As `export.text_signatures.with_labels` names them."""
    class_id = outputs["logits"].argmax(-1).astype("int32")
    return {**outputs, "class_id": class_id, "label": labels_of_classes(outputs, metadata)[class_id]}


def multi_label(outputs, metadata):
    """As `export.text_signatures.with_labels`: the names of the classes above 0.5, the likeliest first."""
    order = np.argsort(-outputs["logits"], axis=-1, kind="stable")  # (batch, classes)
    counts = (outputs["logits"] > 0).sum(-1)
    labels = labels_of_classes(outputs, metadata)[order][:, : counts.max(initial=0)]
    labels[np.arange(labels.shape[1]) >= counts[:, None]] = b""
    return {**outputs, "labels": labels}


def labels_of_classes(outputs, metadata):
    """The name of each class, as bytes, (classes,)."""
    names = metadata.get("id2label", {})
    count = outputs["logits"].shape[-1]
    return np.array([names.get(str(number), f"LABEL_{number}").encode() for number in range(count)], object)


def definition_of(signature):
    """The SignatureDef message of a Signature."""
    definition = tf.compat.v1.saved_model.signature_def_utils.build_signature_def(method_name=signature.method_name)
    for name, arrays in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        for key, array in arrays.items():
            info = getattr(definition, name)[key]
            info.name = key
            info.dtype = tf.dtypes.as_dtype(array.dtype).as_datatype_enum
            info.tensor_shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
    return definition
