"""The JSON of classify and regress requests of TensorFlow Serving's REST interface.

Source: https://www.tensorflow.org/tfx/serving/api_rest.
"""

import json

import numpy as np

from keras_bert_impl.serving.errors import invalid
from keras_bert_impl.serving.json_tensors import (
    is_bytes,
    number_of,
    read_object,
    read_signature_name,
    shortened,
    text_of,
)
from keras_bert_impl.serving.tensorflow_runtime import tf


def read_examples(body):
    """The signature name and the serialized tf.train.Example of each example of a classify or regress request.

    Raises: ServingError.
    """
    content = read_object(body)
    examples, context = content.get("examples"), content.get("context", {})
    if not isinstance(examples, list) or not examples:
        raise invalid("A classify or regress request needs a list 'examples' that is not empty.")
    if not isinstance(context, dict):
        raise invalid(f"'context' must be a JSON object, got {shortened(context)}.")
    return read_signature_name(content), [serialized_example(example, context) for example in examples]


def serialized_example(content, context):
    """A tf.train.Example with the features of one JSON object and those of the context. Raises ServingError."""
    if not isinstance(content, dict):
        raise invalid(f"Example must be JSON object but got {shortened(content)}.")
    if twice := sorted(set(content) & set(context)):
        raise invalid(f"Features {shortened(twice)} are both in an example and in the context.")
    example = tf.train.Example()
    for name, value in {**context, **content}.items():
        example.features.feature[name].CopyFrom(feature_of(name, value if isinstance(value, list) else [value]))
    return example.SerializeToString()


def feature_of(name, values):
    """A tf.train.Feature of strings, of whole numbers or of decimals. Raises ServingError."""
    if all(isinstance(value, str) or is_bytes(value) for value in values):
        texts = [text_of(name, value, object) for value in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=texts))
    if all(isinstance(value, int) for value in values):
        if any(not -(2**63) <= value < 2**63 for value in values):
            raise invalid(f"Feature: {shortened(name)} has a number outside the range of int64.")
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if all(type(value) is float for value in values):
        numbers = [number_of(name, value, np.dtype(np.float32)) for value in values]
        return tf.train.Feature(float_list=tf.train.FloatList(value=numbers))
    raise invalid(
        f"Feature: {shortened(name)} has {shortened(values)}: expecting strings, whole numbers or decimals, all alike."
    )


def examples_answer(results):
    """The bytes of the answer to a classify or regress request."""
    return json.dumps({"results": results}, ensure_ascii=False).encode("utf-8", "replace")
