"""Preset directories of KerasHub's BertBackbone: config.json, model.weights.h5, tokenizer.json, assets/.

KerasHub stores no pre-training heads, so only encoders are read and written. It computes GELU by the tanh
approximation: the configuration of an encoder read here is set to it, and an encoder with exact GELU is not written.
"""

import json
import pathlib

import h5py
import numpy as np

from keras_bert_impl.checkpoints import completeness, tensor_tables
from keras_bert_impl.checkpoints.atomic_directory import replaced_together
from keras_bert_impl.configurations.family import SAME, Transform, in_blocks, layer_rows
from keras_bert_impl.configurations.known_families import families_by_model_type
from keras_bert_impl.text.tokenizers import WordPieceTokenizer
from keras_bert_impl.text.tokenizers.vocabulary import write_vocabulary

FORM = "A preset of KerasHub's BertBackbone"
WEIGHTS = "model.weights.h5"
VOCABULARY = "assets/tokenizer/vocabulary.txt"

# Our field, theirs.
CONFIG_KEYS = (
    ("vocabulary_size", "vocabulary_size"),
    ("hidden_size", "hidden_dim"),
    ("num_layers", "num_layers"),
    ("num_heads", "num_heads"),
    ("intermediate_size", "intermediate_dim"),
    ("hidden_dropout_rate", "dropout"),
    ("attention_dropout_rate", "dropout"),
    ("max_length", "max_sequence_length"),
    ("num_segments", "num_segments"),
)
DENSE, NORM = (("kernel", "vars/0"), ("bias", "vars/1")), (("gamma", "vars/0"), ("beta", "vars/1"))
EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("layers/reversible_embedding/vars/0",), SAME),
    ("position_embedding/embeddings", ("layers/position_embedding/vars/0",), SAME),
    ("segment_embedding/embeddings", ("layers/embedding/vars/0",), SAME),
    *layer_rows("embeddings_norm", "layers/layer_normalization", NORM),
    *layer_rows("pooler", "layers/dense", DENSE),
)


def block_rows(num_heads):
    """The rows of a block; KerasHub splits attention kernels into heads, (width, heads, width of a head)."""
    split = Transform(
        lambda theirs: np.concatenate([array.reshape(*array.shape[:-2], -1) for array in theirs], axis=-1),
        lambda ours: [array.reshape(*array.shape[:-1], num_heads, -1) for array in np.split(ours, 3, axis=-1)],
    )
    joined = Transform(
        lambda theirs: theirs[0].reshape(-1, theirs[0].shape[-1]),
        lambda ours: [ours.reshape(num_heads, -1, ours.shape[-1])],
    )
    attention = "_self_attention_layer"
    return (
        ("attention/query_key_value/kernel", tuple(f"{attention}/{n}_dense/vars/0" for n in _QUERY_KEY_VALUE), split),
        ("attention/query_key_value/bias", tuple(f"{attention}/{n}_dense/vars/1" for n in _QUERY_KEY_VALUE), split),
        ("attention/output/kernel", (f"{attention}/output_dense/vars/0",), joined),
        ("attention/output/bias", (f"{attention}/output_dense/vars/1",), SAME),
        *layer_rows("attention_norm", "_self_attention_layer_norm", NORM),
        *layer_rows("intermediate", "_feedforward_intermediate_dense", DENSE),
        *layer_rows("output", "_feedforward_output_dense", DENSE),
        *layer_rows("output_norm", "_feedforward_layer_norm", NORM),
    )


_QUERY_KEY_VALUE = ("query", "key", "value")


def table(config):
    """Rows (path of our weight, names in their file, Transform) for every weight of their backbone."""
    rows = list(EMBEDDING_ROWS)
    for index in range(config.num_layers):
        # Keras numbers layers of one class from the second on.
        theirs = "layers/transformer_encoder" + (f"_{index}" if index else "") + "/"
        rows += in_blocks(block_rows(config.num_heads), [()], f"block_{index}/", theirs)
    return rows


def is_here(directory):
    """Whether a directory holds a KerasHub preset rather than Hugging Face's config.json."""
    return (directory / WEIGHTS).is_file() and (directory / "config.json").is_file()


def open_checkpoint(directory):
    """Opens a preset directory; see `tensor_tables.Checkpoint`.

    Raises: ValueError if it is not a BertBackbone, is damaged, or weights and configuration do not agree.
    """
    directory = pathlib.Path(directory)
    content = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    if content.get("class_name") != "BertBackbone":
        raise ValueError(f"{directory / 'config.json'} describes a {content.get('class_name')}, not a BertBackbone.")
    found = content["config"]
    bert = families_by_model_type()["bert"].config_class
    config = bert(activation="gelu_tanh", **{ours: found[theirs] for ours, theirs in CONFIG_KEYS})
    source = open_source(directory / WEIGHTS)
    blocks = {name.split("/")[1] for name in source.shapes if name.startswith("layers/transformer_encoder")}
    tensor_tables.check_depth(source, config, blocks, "config.json")
    tokenizer = _read_tokenizer(directory, config, source)
    found = tensor_tables.Checkpoint(config, table(config), source, lambda: tokenizer)
    tensor_tables.check_encoder(found, "config.json")
    return found


def open_source(path):
    """The arrays of a model.weights.h5 as a `tensor_tables.Source`. Raises OSError if the file is damaged."""
    shapes, file = {}, h5py.File(path)
    file.visititems(lambda name, found: shapes.update({name: found.shape} if hasattr(found, "shape") else {}))
    return tensor_tables.Source(str(path), shapes, lambda name: np.asarray(file[name], "float32"))


def save(model, directory, tokenizer=None):
    """Writes an encoder as a preset that `keras_hub.models.BertBackbone.from_preset` opens.

    The tokenizer is by default the model's, if it has one.

    Raises: ValueError naming what would be lost, since KerasHub's backbone has no head, one dropout rate for both
        places, one fixed epsilon of norms, and no exact GELU; or if the directory is not empty.
    """
    encoder = getattr(model, "encoder", model)
    completeness.check_is_bert(encoder, FORM)
    config = encoder.config
    if config.activation != "gelu_tanh":
        raise ValueError(
            f"KerasHub's BERT supports only 'gelu_tanh', but this encoder has {config.activation!r}. Set "
            "activation='gelu_tanh' to accept the difference, which is about 1e-3 for exact GELU."
        )
    directory = pathlib.Path(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ValueError(f"{directory} exists: a preset is written to a new or empty directory.")
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    completeness.check_weights(model, table(config), FORM)
    with replaced_together(directory, lambda new: ()) as target:
        _write(encoder, tokenizer, target)
        completeness.check_settings(model, tokenizer, lambda: open_checkpoint(target), FORM)


def _write(encoder, tokenizer, directory):
    config = encoder.config
    (directory / VOCABULARY).parent.mkdir(parents=True)
    with h5py.File(directory / WEIGHTS, "w") as file:
        for name, array in tensor_tables.tensors(encoder.weights, table(config)).items():
            file.create_dataset(name, data=array)
    fields = {theirs: getattr(config, ours) for ours, theirs in CONFIG_KEYS}
    _write_object(directory / "config.json", "bert_backbone", "BertBackbone", fields)
    metadata = {"keras_version": "3", "parameter_count": encoder.count_params(), "tasks": []}
    (directory / "metadata.json").write_text(json.dumps(metadata, indent=4) + "\n", encoding="utf-8")
    if tokenizer is not None:
        write_vocabulary(directory / VOCABULARY, tokenizer.vocabulary)
        # Google strips accents whenever it lower-cases; KerasHub keeps them by default.
        fields = {"vocabulary": None, "lowercase": tokenizer.lowercase, "strip_accents": tokenizer.lowercase}
        _write_object(directory / "tokenizer.json", "bert_tokenizer", "BertTokenizer", fields)


def _write_object(path, module, class_name, fields):
    content = {
        "module": f"keras_hub.src.models.bert.{module}",
        "class_name": class_name,
        "config": {"name": module, "trainable": True, **fields},
        "registered_name": f"keras_hub>{class_name}",
    }
    path.write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")


def _read_tokenizer(directory, config, source):
    if not (directory / VOCABULARY).is_file():
        return None
    path = directory / "tokenizer.json"
    found = json.loads(path.read_text(encoding="utf-8"))["config"] if path.is_file() else {}
    tokenizer = WordPieceTokenizer(directory / VOCABULARY, lowercase=found.get("lowercase", True))
    tensor_tables.check_tokenizer_rows(tokenizer, config, source)
    return tokenizer
