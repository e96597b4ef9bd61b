"""The first requests of a model, sent before any client's: the first run of a graph takes several times as long."""

import contextlib

import numpy as np
from tensorflow_serving.apis import prediction_log_pb2

from keras_bert_impl.serving.signatures import find_signature
from keras_bert_impl.serving.tensor_messages import arrays_of_messages
from keras_bert_impl.serving.tensorflow_runtime import tf

# Where TensorFlow Serving, too, looks for the requests that come with a SavedModel.
REQUESTS = "assets.extra/tf_serving_warmup_requests"
MOST_REQUESTS = 1000  # TensorFlow Serving's limit
LARGEST_REQUEST = 2**26
TEXTS = (b"A short text.", b"A longer text, of some more words. " * 8)


def warm_up(servable):
    """Sends the SavedModel's own warm-up requests, or texts of two lengths if it has none.

    Returns: the number of requests sent.
    Raises: an error of TensorFlow if the model cannot answer its own requests: such a version must not be served.
    """
    path = servable.directory / REQUESTS
    if path.is_file():
        return send_recorded(servable, path)
    return sum(send_texts(servable, signature) for signature in servable.signatures.values())


def send_recorded(servable, path):
    """Sends the predict requests of a TFRecord of PredictionLog messages; returns their number."""
    sent = 0
    for record in tf.data.TFRecordDataset(str(path)).take(MOST_REQUESTS).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        if log.WhichOneof("log_type") != "predict_log":
            continue
        request = log.predict_log.request
        signature = find_signature(servable, request.model_spec.signature_name)
        inputs = arrays_of_messages(request.inputs, signature, LARGEST_REQUEST)
        servable.run(signature.name, inputs)
        sent += 1
    return sent


def send_texts(servable, signature):
    """Sends texts to a signature that takes nothing but texts; returns the number of requests."""
    arrays = signature.inputs.values()
    if not all(array.dtype == object and array.shape and None in array.shape for array in arrays):
        return 0
    for text in TEXTS:
        inputs = {
            name: np.full([2 if size is None else size for size in array.shape], text, object)
            for name, array in signature.inputs.items()
        }
        # Strings need not be texts: they may be serialized examples, which a model of others refuses here.
        with contextlib.suppress(tf.errors.OpError):
            servable.run(signature.name, inputs)
    return len(TEXTS)
