"""TensorFlow and the operations of the tokenizers, imported without start-up messages; an error names the extra."""

import importlib.util

from keras_bert_impl.startup import without_native_output

PACKAGES = (
    "grpc",
    "httptools",
    "orjson",
    "prometheus_client",
    "starlette",
    "tensorflow",
    "tensorflow_serving",
    "tensorflow_text",
    "uvicorn",
    "uvloop",
)


def check_packages():
    """Raises ImportError that names the missing packages and the command that installs them."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"The server needs {', '.join(missing)}: pip install 'keras_bert_impl[tensorflow,serving]' "
            "(tensorflow-text does not exist for Windows: serve under WSL or Linux)."
        )


check_packages()
with without_native_output():
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the tokenizers

    HAS_GPU = bool(tf.config.list_physical_devices("GPU"))

tf.get_logger().setLevel("ERROR")  # loading into a session is said to be deprecated; it is what TensorFlow Serving does

__all__ = ["HAS_GPU", "tf"]
