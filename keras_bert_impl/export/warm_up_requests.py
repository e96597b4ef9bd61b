"""Requests that TensorFlow Serving answers when it loads a SavedModel, before it takes requests of users.

The file `assets.extra/tf_serving_warmup_requests` holds records of tensorflow_serving.apis.PredictionLog. They are
encoded here, with the field numbers of tensorflow/serving's apis/*.proto, because the package that has these messages,
tensorflow-serving-api, requires a TensorFlow of the same version.
"""

import pathlib

import tensorflow as tf

FILE = pathlib.PurePath("assets.extra", "tf_serving_warmup_requests")
BATCH_SIZES = (1, 8)


def write(model, directory):
    """Writes requests of one text and of several for each signature of the SavedModel in a directory."""
    path = pathlib.Path(directory) / FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as file:
        # Not for `attention`, which a person asks for now and then.
        for signature, inputs in model.asked.signatures.items():
            for size in BATCH_SIZES:
                file.write(prediction_log(signature, {name: texts * size for name, texts in inputs.items()}))


def prediction_log(signature, inputs):
    """A serialized PredictionLog that asks a signature about texts, lists of str by the names of the inputs."""
    request = _field(1, _field(3, signature.encode()))  # ModelSpec.signature_name
    for name, texts in inputs.items():
        tensor = tf.make_tensor_proto(texts, dtype=tf.string).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, tensor))
    return _field(6, _field(1, request))


def _field(number, content):
    """A field of bytes as protobuf writes it: its number and kind, its length in groups of 7 bits, its content."""
    length = len(content)
    groups = [length >> shift & 0x7F for shift in range(0, max(1, length.bit_length()), 7)]
    return bytes([number << 3 | 2, *(group | 0x80 for group in groups[:-1]), groups[-1]]) + content
