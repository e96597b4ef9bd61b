"""Files of prepared data, on this machine or in a bucket, such as gs://bucket/folder, which TensorFlow reads."""

import pathlib


def is_remote(path):
    """Whether only TensorFlow can open a path."""
    return "://" in str(path)


def open_file(path):
    """Opens a file for reading bytes. Raises: FileNotFoundError; ImportError for a bucket without TensorFlow."""
    if not is_remote(path):
        return open(path, "rb")
    if not gfile().exists(str(path)):
        raise FileNotFoundError(path)
    return gfile().GFile(str(path), "rb")


def size_of(path):
    """The size of a file in bytes, or None if there is none."""
    if not is_remote(path):
        return pathlib.Path(path).stat().st_size if pathlib.Path(path).is_file() else None
    return gfile().stat(str(path)).length if gfile().exists(str(path)) else None


def gfile():
    """TensorFlow's files, local ones and those of buckets; imported only where a path is remote."""
    from keras_bert_impl.quiet_tensorflow import tf

    return tf.io.gfile
