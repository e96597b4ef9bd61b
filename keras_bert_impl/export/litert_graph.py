"""Writes the graph of a model from rows of ids to named outputs as a LiteRT file.

Runs on Keras' TensorFlow backend, if need be in a process of its own; see `handover`. litert-torch, the other
converter, fixes batch and length.
"""

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from keras_bert_impl.export import handover, row_samples
from keras_bert_impl.startup import without_native_output

FILE = "model.tflite"


def write(model, tokenizer, sequence_length, target):
    """Writes model.tflite, and samples for comparison, to the new directory `target`."""
    target.mkdir()
    model = row_samples.float32_model(model)
    row_samples.write(model, tokenizer, sequence_length, target)
    (target / FILE).write_bytes(converted(model))


def converted(model):
    """The content of a LiteRT file whose signature takes and returns arrays by name."""
    axes, function = row_samples.arrays_of(model), row_samples.served(model)
    inputs = [tf.TensorSpec([None] * len(names), tf.int64, name=name) for name, names in axes.items()]
    of_arrays = tf.function(lambda *arrays: function(dict(zip(axes, arrays, strict=True))), input_signature=inputs)
    concrete = of_arrays.get_concrete_function()
    # The converter would leave Keras' variables as variables, which LiteRT's interpreter finds empty and reads as NaN.
    frozen = convert_variables_to_constants_v2(concrete)

    @tf.function(input_signature=inputs)
    def of_constants(*arrays):
        return tf.nest.pack_sequence_as(concrete.structured_outputs, frozen(*arrays))

    converter = tf.lite.TFLiteConverter.from_concrete_functions([of_constants.get_concrete_function()], tf.Module())
    with without_native_output():
        return converter.convert()


if __name__ == "__main__":
    handover.main(write)
