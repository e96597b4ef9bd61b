"""One version of a model, loaded from a SavedModel and ready to answer.

The graph runs in a session, as TensorFlow Serving runs it: that gives the signatures exactly as they were written, and
closing the session frees the memory at once.
"""

import dataclasses
import pathlib

import numpy as np

from keras_bert_impl.json_files import read_json
from keras_bert_serving.signatures import Array, Signature
from keras_bert_serving.tensorflow_runtime import tf
from keras_bert_serving.text_checks import TextChecks

tf1 = tf.compat.v1
INITIALIZER = "__saved_model_init_op"


class Servable:
    """A loaded SavedModel.

    Args:
        name, version: under which it is served; the version is a number.
        directory: of the SavedModel.
        options: SessionOptions.

    Attributes:
        signatures: Signature by name.
        signature_defs: the messages themselves, for TensorFlow Serving's metadata.
        metadata: the object in config.json beside the SavedModel, or {}.
        text_checks: TextChecks for the texts that it is asked.

    Raises: OSError or an error of TensorFlow if the SavedModel is damaged or needs unknown operations.
    """

    def __init__(self, name, version, directory, options):
        self.name, self.version, self.directory = name, version, pathlib.Path(directory)
        self._graph = tf.Graph()
        self._session = tf1.Session(graph=self._graph, config=options.config())
        try:
            with self._graph.as_default():
                loaded = tf1.saved_model.load(self._session, [tf.saved_model.SERVING], str(directory))
            self.signature_defs = {key: value for key, value in loaded.signature_def.items() if key != INITIALIZER}
            self.signatures = {key: signature_of(key, value) for key, value in self.signature_defs.items()}
            self._callables = {key: self._callable(value) for key, value in self.signature_defs.items()}
            self.metadata = read_metadata(self.directory)
            self.text_checks = TextChecks(self.directory, self.metadata)
        except BaseException:
            self._session.close()
            raise

    def _callable(self, definition):
        # The maps of a message have no order; Signature has the names sorted.
        feeds, fetches = (
            [self._graph.get_tensor_by_name(tensor.name) for _, tensor in sorted(tensors.items())]
            for tensors in (definition.inputs, definition.outputs)
        )
        return self._session.make_callable(fetches, feed_list=feeds)

    def run(self, name, inputs):
        """Outputs by name, as NumPy arrays, for the inputs by name; called from a worker thread."""
        signature = self.signatures[name]
        values = self._callables[name](*(inputs[key] for key in signature.inputs))
        return dict(zip(signature.outputs, values, strict=True))

    def close(self):
        """Frees the memory."""
        self._session.close()


@dataclasses.dataclass(frozen=True)
class SessionOptions:
    """How sessions compute.

    Args:
        threads: threads that share one operation; None means as many as the machine has cores.
        bfloat16: whether matrix products are computed in bfloat16; on processors with instructions for it.
    """

    threads: int | None = None
    bfloat16: bool = False

    def config(self):
        """The tf.compat.v1.ConfigProto."""
        config = tf1.ConfigProto(intra_op_parallelism_threads=self.threads or 0)
        # Several versions share one GPU while one replaces another: none may take all memory at once.
        config.gpu_options.allow_growth = True
        if self.bfloat16:
            config.graph_options.rewrite_options.auto_mixed_precision_onednn_bfloat16 = 1
        return config


def signature_of(name, definition):
    """The Signature of a SignatureDef message."""
    inputs, outputs = (
        {key: array_of(tensor) for key, tensor in sorted(tensors.items())}
        for tensors in (definition.inputs, definition.outputs)
    )
    return Signature(name, inputs, outputs, definition.method_name)


def array_of(tensor):
    """The Array of a TensorInfo message."""
    dtype, shape = tf.dtypes.as_dtype(tensor.dtype).as_numpy_dtype, tf.TensorShape(tensor.tensor_shape)
    return Array(np.dtype(dtype), None if shape.rank is None else tuple(shape.as_list()))


def read_metadata(directory):
    """What config.json beside a SavedModel says about the model, such as its labels; {} if it says nothing readable."""
    try:
        return read_json(directory / "config.json")
    except (OSError, ValueError):
        return {}
