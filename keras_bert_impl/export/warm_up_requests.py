"""Requests that TensorFlow Serving answers when it loads a SavedModel, before it takes requests of users.

The file `assets.extra/tf_serving_warmup_requests` holds records of tensorflow_serving.apis.PredictionLog. Its message
types are declared here, with the field numbers of tensorflow/serving's apis/*.proto, because the package that has them,
tensorflow-serving-api, requires a TensorFlow of the same version.
"""

import pathlib

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2

from keras_bert_impl import models
from keras_bert_impl.export.row_graphs import kind_of

FILE = pathlib.PurePath("assets.extra", "tf_serving_warmup_requests")
BATCH_SIZES = (1, 8)
SENTENCE = "The cat sat on the mat. " * 6
SENTENCES = {"text": [SENTENCE]}
PAIRS = {"text": [SENTENCE], "text_pair": [SENTENCE]}
# For each kind of model the inputs of each of its signatures, as `text_signatures` has them; not of `attention`, which
# a person asks for now and then.
REQUESTS = {
    models.TextClassifier: {"serving_default": SENTENCES, "pairs": PAIRS},
    models.TextRegressor: {"serving_default": SENTENCES, "pairs": PAIRS},
    models.MultipleChoice: {"serving_default": {"text": [SENTENCE], "endings": [["It slept.", "It was a dog."]]}},
    models.QuestionAnswerer: {"serving_default": {"question": ["Where did it sit?"], "context": [SENTENCE]}},
    models.NextSentencePredictor: {"serving_default": PAIRS},
    models.MaskedLM: {"serving_default": {"text": ["The [MASK] sat on the [MASK]."]}},
}


def write(model, directory):
    """Writes requests of one text and of several for each signature of the SavedModel in a directory."""
    path = pathlib.Path(directory) / FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as file:
        for signature, inputs in REQUESTS.get(kind_of(model), {"serving_default": SENTENCES}).items():
            for size in BATCH_SIZES:
                file.write(prediction_log(signature, {name: texts * size for name, texts in inputs.items()}))


def prediction_log(signature, inputs):
    """A serialized PredictionLog that asks a signature about texts, lists of str by the names of the inputs."""
    log = message_factory.GetMessageClass(_message_types().FindMessageTypeByName("tensorflow.serving.PredictionLog"))()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    for name, texts in inputs.items():
        # As bytes: for the library, TensorFlow's TensorProto and that of the pool below are two types.
        request.inputs[name].MergeFromString(tf.make_tensor_proto(texts, dtype=tf.string).SerializeToString())
    return log.SerializeToString()


def _message_types():
    """A pool with the message types that a request needs, each with the fields that are set here."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="keras_bert_impl/prediction_log.proto",
        package="tensorflow.serving",
        syntax="proto3",
        dependency=[tensor_pb2.DESCRIPTOR.name],
    )

    def declare(parent, name, *fields):
        message = parent.add(name=name)
        for field_name, number, kind in fields:
            type_name = {} if kind == "string" else {"type_name": f".tensorflow.{kind}"}
            message.field.add(
                name=field_name,
                number=number,
                label=field.LABEL_OPTIONAL,
                type=field.TYPE_STRING if kind == "string" else field.TYPE_MESSAGE,
                **type_name,
            )
        return message

    declare(file.message_type, "ModelSpec", ("name", 1, "string"), ("signature_name", 3, "string"))
    request = declare(file.message_type, "PredictRequest", ("model_spec", 1, "serving.ModelSpec"))
    entry = declare(request.nested_type, "InputsEntry", ("key", 1, "string"), ("value", 2, "TensorProto"))
    entry.options.map_entry = True
    request.field.add(
        name="inputs",
        number=2,
        label=field.LABEL_REPEATED,
        type=field.TYPE_MESSAGE,
        type_name=".tensorflow.serving.PredictRequest.InputsEntry",
    )
    declare(file.message_type, "PredictLog", ("request", 1, "serving.PredictRequest"))
    declare(file.message_type, "PredictionLog", ("predict_log", 6, "serving.PredictLog"))
    pool = descriptor_pool.DescriptorPool()
    for dependency in _with_dependencies(tensor_pb2.DESCRIPTOR):
        pool.AddSerializedFile(dependency.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _with_dependencies(file):
    """A file of message types after those that it imports, each once."""
    found = {}
    for dependency in file.dependencies:
        found |= {one.name: one for one in _with_dependencies(dependency)}
    return list({**found, file.name: file}.values())
