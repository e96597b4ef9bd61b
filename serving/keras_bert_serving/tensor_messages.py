"""TensorProto messages to arrays and back, from clients that are not trusted."""

import math

import numpy as np

from keras_bert_serving.errors import invalid
from keras_bert_serving.request_inputs import DESCRIBED, check_names, check_shape
from keras_bert_serving.tensorflow_runtime import tf

# Clients read answers from these fields, in which TensorFlow Serving writes them; tf.make_tensor_proto would write
# tensor_content instead.
FIELDS = {
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.int32: "int_val",
    tf.int16: "int_val",
    tf.int8: "int_val",
    tf.uint8: "int_val",
    tf.uint16: "int_val",
    tf.int64: "int64_val",
    tf.bool: "bool_val",
    tf.string: "string_val",
    tf.uint32: "uint32_val",
    tf.uint64: "uint64_val",
}


def arrays_of_messages(messages, signature, limits):
    """The arrays in TensorProto messages, by name.

    Args:
        messages: TensorProto by name, with the names that the signature takes.
        signature: the Signature asked for.
        limits: the server's Limits: a message of a few bytes can describe arrays of any size.

    Raises: ServingError, before anything is allocated.
    """
    check_names(messages, signature)
    size = sum(described_bytes(name, message) for name, message in messages.items())
    limits.check("max_body_bytes", size, DESCRIBED)
    for name, message in messages.items():
        check_shape(name, [side.size for side in message.tensor_shape.dim], signature.inputs[name], limits)
    return {name: array_of_message(name, message) for name, message in messages.items()}


def described_bytes(name, message):
    """The bytes of the array that a TensorProto describes. Raises ServingError."""
    shape = [dimension.size for dimension in message.tensor_shape.dim]
    try:
        size = tf.dtypes.as_dtype(message.dtype).size or 8
    except TypeError:
        size = None
    if size is None or message.tensor_shape.unknown_rank or min(shape, default=0) < 0:
        raise invalid(f"Input {name}, of type {message.dtype} and shape {shape[:9]}, describes no array.")
    return math.prod(shape) * size


def array_of_message(name, message):
    """The array in a TensorProto, whose size was checked. Raises ServingError if it holds another than it describes."""
    shape = [dimension.size for dimension in message.tensor_shape.dim]
    try:
        return tf.make_ndarray(message)
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise invalid(f"Input {name} is no valid tensor of shape {shape}: {str(error)[:200]}.") from None


def message_of_array(array):
    """The TensorProto of an array, in the fields that TensorFlow Serving uses."""
    dtype = tf.string if array.dtype == object else tf.dtypes.as_dtype(array.dtype)
    if dtype not in FIELDS:
        return tf.make_tensor_proto(array)
    message = tf.make_tensor_proto(0, tf.int32)
    message.Clear()
    message.dtype = dtype.as_datatype_enum
    for size in array.shape:
        message.tensor_shape.dim.add(size=size)
    getattr(message, FIELDS[dtype]).extend(np.ravel(array).tolist())
    return message
