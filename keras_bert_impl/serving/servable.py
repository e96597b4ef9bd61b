"""One version of a model, loaded from a SavedModel and ready to answer.

The graph runs in a session, as TensorFlow Serving runs it: that gives the signatures exactly as they were written, and
closing the session frees the memory at once.
"""

import dataclasses
import pathlib

import numpy as np

from keras_bert_impl.json_files import read_json
from keras_bert_impl.serving.errors import invalid
from keras_bert_impl.serving.tensorflow_runtime import tf

tf1 = tf.compat.v1
DEFAULT_SIGNATURE = "serving_default"
INITIALIZER = "__saved_model_init_op"
# Outputs of our exports whose second dimension is the longest row of the batch. The output named here shows how long
# the rows of one request are: it is empty or 0 in what was only added for the others in the batch.
WIDTH_SHOWN_BY = {
    frozenset({"words", "labels", "probabilities"}): "words",
    frozenset({"tokens", "token_ids", "probabilities"}): "tokens",
    frozenset({"logits", "probabilities", "labels"}): "labels",
    frozenset({"mean_pooled", "sequence_output", "token_ids", "padding_mask"}): "padding_mask",
    frozenset({"pooled_output", "mean_pooled", "sequence_output", "token_ids", "padding_mask"}): "padding_mask",
}
# Outputs of our exports that are as wide as an input, (batch, choices): only requests of equal widths are merged.
AS_WIDE_AS_INPUTS = frozenset({"logits", "probabilities", "class_id"})


@dataclasses.dataclass(frozen=True)
class Array:
    """An input or output of a signature: its NumPy dtype (object for strings) and shape; None is any size or rank."""

    dtype: np.dtype
    shape: tuple[int | None, ...] | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a SavedModel can be asked under one name.

    Attributes:
        inputs, outputs: Array by name.
        method_name: as the SavedModel has it, such as tensorflow/serving/predict.
        mergeable: whether the rows of several requests may run as one batch, and each get what it would get alone.
        splittable: whether the rows of one request may run in several batches.
    """

    name: str
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    method_name: str

    @property
    def mergeable(self):
        return self._in_rows and (self._fixed_widths or frozenset(self.outputs) in WIDTH_SHOWN_BY)

    @property
    def splittable(self):
        return self._in_rows and self._fixed_widths

    @property
    def _in_rows(self):
        return all(array.shape and array.shape[0] is None for array in [*self.inputs.values(), *self.outputs.values()])

    @property
    def _fixed_widths(self):
        fixed = all(None not in array.shape[1:] for array in self.outputs.values())
        return fixed or frozenset(self.outputs) == AS_WIDE_AS_INPUTS

    def cut_to_own_width(self, outputs):
        """Of the rows of one request, taken out of a batch: the columns that they would have alone."""
        shown_by = WIDTH_SHOWN_BY.get(frozenset(self.outputs))
        if shown_by is None or self._fixed_widths:
            return outputs
        shown = outputs[shown_by]
        used = (shown != (b"" if shown.dtype == object else 0)).reshape(*shown.shape[:2], -1).any(axis=(0, 2))
        width = int(used.nonzero()[0].max(initial=-1)) + 1
        return {name: array[:, :width] if self._is_as_wide(name) else array for name, array in outputs.items()}

    def _is_as_wide(self, name):
        shape = self.outputs[name].shape
        return len(shape) > 1 and shape[1] is None


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

    def signature(self, name):
        """The Signature of a name; "" means the default. Raises ServingError."""
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise invalid(
                f'Serving signature name: "{name}" not found in signature def: model {self.name} has '
                f"{', '.join(sorted(self.signatures))}."
            )
        return self.signatures[name]

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
        {key: Array(dtype_of(tensor), shape_of(tensor)) for key, tensor in sorted(tensors.items())}
        for tensors in (definition.inputs, definition.outputs)
    )
    return Signature(name, inputs, outputs, definition.method_name)


def dtype_of(tensor):
    """The NumPy dtype of a TensorInfo message; object for strings."""
    return np.dtype(tf.dtypes.as_dtype(tensor.dtype).as_numpy_dtype)


def shape_of(tensor):
    """The shape of a TensorInfo message, with None for any size; None if even the rank is unknown."""
    shape = tf.TensorShape(tensor.tensor_shape)
    return None if shape.rank is None else tuple(shape.as_list())


def read_metadata(directory):
    """What config.json beside a SavedModel says about the model, such as its labels; {} if it says nothing readable."""
    try:
        return read_json(directory / "config.json")
    except (OSError, ValueError):
        return {}
