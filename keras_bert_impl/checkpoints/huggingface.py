"""Checkpoint directories in Hugging Face's layout: config.json, model.safetensors, vocab.txt, tokenizer_config.json.

One table says which of our weights is which of their tensors; it is read in one direction to load and in the other
to save. Nothing in a checkpoint is executed.
"""

import json
import os
import pathlib
import typing
import warnings

import keras
import numpy as np
import safetensors
import safetensors.numpy

from keras_bert_impl.config import BertConfig


class Transform(typing.NamedTuple):
    """How the tensors of one row become our weight, and back."""

    load: typing.Callable  # list of their arrays -> our array
    save: typing.Callable  # our array -> list of their arrays


SAME = Transform(lambda theirs: theirs[0], lambda ours: [ours])
# torch keeps a dense kernel as (out, in), Keras as (in, out).
DENSE = Transform(lambda theirs: theirs[0].T, lambda ours: [ours.T])
# Query, key and value are one kernel here, (in, 3 * out), and one bias.
FUSED_KERNEL = Transform(
    lambda theirs: np.concatenate([kernel.T for kernel in theirs], axis=1),
    lambda ours: [kernel.T for kernel in np.split(ours, 3, axis=1)],
)
FUSED_BIAS = Transform(np.concatenate, lambda ours: np.split(ours, 3))

EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("bert.embeddings.word_embeddings.weight",), SAME),
    ("position_embedding/embeddings", ("bert.embeddings.position_embeddings.weight",), SAME),
    ("segment_embedding/embeddings", ("bert.embeddings.token_type_embeddings.weight",), SAME),
    ("embeddings_norm/gamma", ("bert.embeddings.LayerNorm.weight",), SAME),
    ("embeddings_norm/beta", ("bert.embeddings.LayerNorm.bias",), SAME),
)
_QUERY_KEY_VALUE = ("query", "key", "value")
BLOCK_ROWS = (
    ("attention/query_key_value/kernel", tuple(f"attention.self.{n}.weight" for n in _QUERY_KEY_VALUE), FUSED_KERNEL),
    ("attention/query_key_value/bias", tuple(f"attention.self.{n}.bias" for n in _QUERY_KEY_VALUE), FUSED_BIAS),
    ("attention/output/kernel", ("attention.output.dense.weight",), DENSE),
    ("attention/output/bias", ("attention.output.dense.bias",), SAME),
    ("attention_norm/gamma", ("attention.output.LayerNorm.weight",), SAME),
    ("attention_norm/beta", ("attention.output.LayerNorm.bias",), SAME),
    ("intermediate/kernel", ("intermediate.dense.weight",), DENSE),
    ("intermediate/bias", ("intermediate.dense.bias",), SAME),
    ("output/kernel", ("output.dense.weight",), DENSE),
    ("output/bias", ("output.dense.bias",), SAME),
    ("output_norm/gamma", ("output.LayerNorm.weight",), SAME),
    ("output_norm/beta", ("output.LayerNorm.bias",), SAME),
)
HEAD_ROWS = (
    ("pooler/kernel", ("bert.pooler.dense.weight",), DENSE),
    ("pooler/bias", ("bert.pooler.dense.bias",), SAME),
    ("masked_lm_head/transform/kernel", ("cls.predictions.transform.dense.weight",), DENSE),
    ("masked_lm_head/transform/bias", ("cls.predictions.transform.dense.bias",), SAME),
    ("masked_lm_head/norm/gamma", ("cls.predictions.transform.LayerNorm.weight",), SAME),
    ("masked_lm_head/norm/beta", ("cls.predictions.transform.LayerNorm.bias",), SAME),
    ("masked_lm_head/output_bias", ("cls.predictions.bias",), SAME),
    ("next_sentence_head/kernel", ("cls.seq_relationship.weight",), DENSE),
    ("next_sentence_head/bias", ("cls.seq_relationship.bias",), SAME),
    ("classifier/kernel", ("classifier.weight",), DENSE),
    ("classifier/bias", ("classifier.bias",), SAME),
)
ARCHITECTURES = {
    "BertEncoder": "BertModel",
    "BertPretrainer": "BertForPreTraining",
    "BertMaskedLM": "BertForMaskedLM",
    "BertTextClassifier": "BertForSequenceClassification",
}


def table(num_layers):
    """Rows (path of our weight, names of their tensors, Transform) for every weight a BERT of this depth can have."""
    blocks = [
        (f"block_{index}/{ours}", tuple(f"bert.encoder.layer.{index}.{name}" for name in theirs), transform)
        for index in range(num_layers)
        for ours, theirs, transform in BLOCK_ROWS
    ]
    return [*EMBEDDING_ROWS, *blocks, *HEAD_ROWS]


def save(model, directory):
    """Writes `model` to `directory` so that Hugging Face transformers opens it.

    Args:
        model: a BertEncoder or one of the models over it; its tokenizer goes along where it has one.
        directory: made if missing; each file is replaced whole or not at all.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    encoder = getattr(model, "encoder", model)
    prefix = "" if encoder is model else "bert."  # a bare BertModel has no prefix
    architecture = ARCHITECTURES[type(model).__name__]
    ours = {weight.path: weight for weight in model.weights}
    tensors = {}
    for path, names, transform in table(encoder.config.num_layers):
        if path in ours:
            arrays = transform.save(keras.ops.convert_to_numpy(ours[path]))
            tensors |= {
                name.replace("bert.", prefix): np.ascontiguousarray(array)
                for name, array in zip(names, arrays, strict=True)
            }
    _replace(directory / "model.safetensors", safetensors.numpy.save(tensors, metadata={"format": "pt"}))
    config = {
        "architectures": [architecture],
        **encoder.config.to_huggingface(),
        **_label_names(model),
    }
    _replace(directory / "config.json", (json.dumps(config, indent=2) + "\n").encode())
    if getattr(model, "tokenizer", None) is not None:
        model.tokenizer.save_pretrained(directory, model.sequence_length)


def read_config(directory):
    """The BertConfig of the checkpoint `directory`. Raises ValueError if there is none."""
    path = pathlib.Path(directory) / "config.json"
    if not path.is_file():
        raise ValueError(f"{path} not found: a checkpoint directory holds config.json and model.safetensors.")
    return BertConfig.from_huggingface(path)


def read_class_names(directory):
    """The class names of a checkpoint's classifier in order; None if it has no classifier."""
    if "classifier.weight" not in tensor_shapes(directory):
        return None
    config = json.loads((pathlib.Path(directory) / "config.json").read_text(encoding="utf-8"))
    num_classes = tensor_shapes(directory)["classifier.weight"][0]
    labels = config.get("id2label", {})
    return [labels.get(str(index), str(index)) for index in range(num_classes)]


def read_sequence_length(directory):
    """The length that a checkpoint's texts are cut to; None if nothing says, or more than its positions."""
    path = pathlib.Path(directory) / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    length = content.get("model_max_length")
    # Hugging Face writes a number of thirty digits for "no limit".
    return length if length is not None and length <= read_config(directory).max_length else None


def load_weights(model, directory, except_for=()):
    """Copies the checkpoint's tensors into the weights of `model`.

    Weights the checkpoint does not have, and those whose path starts with one of `except_for`, keep their fresh values
    and are named in one warning. Shapes are compared before a tensor is read.

    Raises: ValueError naming file, tensor, expected and found shape.
    """
    path = pathlib.Path(directory) / "model.safetensors"
    shapes = tensor_shapes(directory)
    encoder = getattr(model, "encoder", model)
    ours = {weight.path: weight for weight in model.weights}
    new = []
    with safetensors.safe_open(path, framework="numpy") as file:
        stored = {standard_name(name): name for name in file.keys()}
        for weight_path, names, transform in table(encoder.config.num_layers):
            weight = ours.get(weight_path)
            if weight is None:
                continue
            if any(name not in shapes for name in names) or weight_path.startswith(tuple(except_for)):
                new.append(weight_path)
                continue
            _check_shapes(path, names, shapes, weight, transform)
            weight.assign(transform.load([file.get_tensor(stored[name]) for name in names]))
    if new:
        warnings.warn(f"{path} has no values for {', '.join(new)}: newly initialised, to be trained.", stacklevel=3)


def tensor_shapes(directory):
    """The shape of every tensor of a checkpoint by its standard name; only the file's header is read.

    Raises: ValueError if the file is missing, truncated or not a safetensors file.
    """
    path = pathlib.Path(directory) / "model.safetensors"
    if not path.is_file():
        raise ValueError(f"{path} not found: a checkpoint directory holds config.json and model.safetensors.")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            return {standard_name(name): tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is damaged or not a safetensors file: {error}.") from error


def standard_name(name):
    """Their tensor name with prefix and LayerNorm spelling as in today's BertForPreTraining."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return f"bert.{name}" if name.startswith(("embeddings.", "encoder.", "pooler.")) else name


def _check_shapes(path, names, shapes, weight, transform):
    for name, array in zip(names, transform.save(np.empty(weight.shape, "bool")), strict=True):
        if shapes[name] != array.shape:
            raise ValueError(f"{path}: {name} has shape {shapes[name]}, config.json asks for {array.shape}.")


def _label_names(model):
    names = getattr(model, "class_names", None)
    if names is None:
        return {}
    return {
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }


def _replace(path, content):
    temporary = path.with_name(path.name + ".writing")
    temporary.write_bytes(content)
    os.replace(temporary, path)
