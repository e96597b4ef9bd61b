"""What the checkpoint formats share: tables of names, applied in both directions, and the ledger of a read."""

import typing
import warnings
from collections.abc import Callable, Mapping

import keras
import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.tokenizers import WordPieceTokenizer


class Transform(typing.NamedTuple):
    """How the tensors of one row become our weight, and back."""

    load: Callable  # list of their arrays -> our array
    save: Callable  # our array -> list of their arrays


SAME = Transform(lambda theirs: theirs[0], lambda ours: [ours])
# torch keeps a dense kernel as (out, in), Keras as (in, out).
TRANSPOSED = Transform(lambda theirs: theirs[0].T, lambda ours: [ours.T])
# Query, key and value are one kernel here, (in, 3 * out), and one bias, (3 * out,).
FUSED = Transform(lambda theirs: np.concatenate(theirs, axis=-1), lambda ours: np.split(ours, 3, axis=-1))
FUSED_TRANSPOSED = Transform(
    lambda theirs: np.concatenate([kernel.T for kernel in theirs], axis=-1),
    lambda ours: [kernel.T for kernel in np.split(ours, 3, axis=-1)],
)


class Source(typing.NamedTuple):
    """A checkpoint opened for reading, of which nothing but names and shapes has been read.

    Fields:
        path: the file, for messages.
        shapes: the shape of every tensor by the name that the format's table uses.
        read: function from a name to its array, float32.
    """

    path: str
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]


class Checkpoint(typing.NamedTuple):
    """A checkpoint of any format, opened: small things read, weights not yet.

    Fields:
        config: the BertConfig, found to agree with the tensors' shapes.
        rows: the format's table: (path of our weight, names of their tensors, Transform).
        source: the tensors.
        tokenizer: a WordPieceTokenizer; None if there is no vocabulary.
        sequence_length: tokens that texts are cut to; None if nothing says.
        class_names: of its classifier; None if it has none.
        architecture: Hugging Face's name of the model; None if nothing says.
    """

    config: BertConfig
    rows: list
    source: Source
    tokenizer: WordPieceTokenizer | None = None
    sequence_length: int | None = None
    class_names: list[str] | None = None
    architecture: str | None = None

    def has(self, beginning):
        """Whether it has values for all our weights whose paths begin so."""
        rows = [names for path, names, _ in self.rows if path.startswith(beginning)]
        return bool(rows) and all(name in self.source.shapes for names in rows for name in names)


class Ledger(typing.NamedTuple):
    """What became of a checkpoint: names of tensors used and left over, and of our weights that stayed new."""

    used: list[str]
    left_over: list[str]
    new: list[str]

    def __str__(self):
        lines = [f"{len(self.used)} tensors used"]
        for title, names in (("left over", self.left_over), ("newly initialised", self.new)):
            lines.append(f"{len(names)} {title}{':' if names else ''}")
            lines += [f"    {name}" for name in names]
        return "\n".join(lines)


def load(model, checkpoint, except_for=(), report=False):
    """Copies the tensors of a checkpoint into the weights of `model`, one at a time.

    Weights the checkpoint does not have, and those whose path starts with one of `except_for`, keep their fresh values
    and are named in one warning. All shapes are compared before a tensor is read.

    Args:
        model: a BertEncoder or one of the models over it.
        checkpoint: a Checkpoint.
        except_for: beginnings of paths of our weights.
        report: print the ledger rather than warn.

    Returns: the Ledger.
    Raises: ValueError naming file, tensor, expected and found shape.
    """
    ours = {weight.path: weight for weight in model.weights}
    source = checkpoint.source
    wanted = [row for row in checkpoint.rows if row[0] in ours]
    found = [
        row
        for row in wanted
        if all(name in source.shapes for name in row[1]) and not row[0].startswith(tuple(except_for))
    ]
    for path, names, transform in found:
        _check_shapes(source, names, ours[path], transform)
    for path, names, transform in found:
        ours[path].assign(transform.load([source.read(name) for name in names]))
    used = [name for _, names, _ in found for name in names]
    paths = {path for path, _, _ in found}
    ledger = Ledger(used, sorted(set(source.shapes) - set(used)), [path for path, _, _ in wanted if path not in paths])
    if report:
        print(f"{source.path}: {ledger}")
    elif ledger.new:
        warnings.warn(
            f"{source.path} has no values for {', '.join(ledger.new)}: newly initialised, to be trained.", stacklevel=4
        )
    return ledger


def check_shapes(source, expected, config_name):
    """Compares names and shapes that a configuration asks for with the tensors, before memory is taken for a model.

    Raises: ValueError naming file and tensor with both shapes.
    """
    for name, shape in expected.items():
        if name not in source.shapes:
            raise ValueError(f"{source.path} has no tensor {name}: it is not a BERT.")
        if source.shapes[name] != shape:
            raise ValueError(f"{source.path}: {name} has shape {source.shapes[name]}, {config_name} asks for {shape}.")


def check_vocabulary(tokenizer, config, source):
    """Raises ValueError if the vocabulary has more words than the embedding has rows."""
    if tokenizer is not None and tokenizer.vocabulary_size > config.vocabulary_size:
        raise ValueError(
            f"{source.path}: the token embedding has {config.vocabulary_size} rows, the vocabulary beside it "
            f"{tokenizer.vocabulary_size} words: they do not belong together."
        )


def tensors(model, rows):
    """The weights of `model` as the format's tensors: a dict of arrays by name."""
    ours = {weight.path: weight for weight in model.weights}
    found = {}
    for path, names, transform in rows:
        if path in ours:
            arrays = transform.save(keras.ops.convert_to_numpy(ours[path]))
            found |= {name: np.ascontiguousarray(array) for name, array in zip(names, arrays, strict=True)}
    return found


def in_blocks(rows, num_layers, ours, theirs):
    """The rows of a block for every block of an encoder; `ours` and `theirs` are patterns such as "block_{}/"."""
    return [
        (ours.format(index) + path, tuple(theirs.format(index) + name for name in names), transform)
        for index in range(num_layers)
        for path, names, transform in rows
    ]


def _check_shapes(source, names, weight, transform):
    for name, array in zip(names, transform.save(np.broadcast_to(False, weight.shape)), strict=True):
        if source.shapes[name] != array.shape:
            raise ValueError(
                f"{source.path}: {name} has shape {source.shapes[name]}, the configuration asks for {array.shape}."
            )
