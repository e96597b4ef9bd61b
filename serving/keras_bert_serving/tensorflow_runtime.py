"""TensorFlow and the operations of the tokenizers, imported without start-up messages."""

from keras_bert_impl.startup import without_native_output

with without_native_output():
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the tokenizers

    HAS_GPU = bool(tf.config.list_physical_devices("GPU"))

tf.get_logger().setLevel("ERROR")  # loading into a session is said to be deprecated; it is what TensorFlow Serving does

__all__ = ["HAS_GPU", "tf"]
