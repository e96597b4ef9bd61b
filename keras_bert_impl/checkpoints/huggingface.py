"""Checkpoint directories in Hugging Face's layout: config.json, model.safetensors, vocab.txt, tokenizer_config.json.

One table says which of our weights is which of their tensors; it is read in one direction to load and in the other
to save. Nothing in a checkpoint is executed.
"""

import contextlib
import json
import os
import pathlib
import tempfile

import safetensors
import safetensors.numpy

from keras_bert_impl.checkpoints import tables
from keras_bert_impl.checkpoints.tables import FUSED, FUSED_TRANSPOSED, SAME, TRANSPOSED
from keras_bert_impl.checkpoints.torch_pickle import open_torch_file
from keras_bert_impl.config import BertConfig
from keras_bert_impl.tokenizers import WordPieceTokenizer

EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("bert.embeddings.word_embeddings.weight",), SAME),
    ("position_embedding/embeddings", ("bert.embeddings.position_embeddings.weight",), SAME),
    ("segment_embedding/embeddings", ("bert.embeddings.token_type_embeddings.weight",), SAME),
    ("embeddings_norm/gamma", ("bert.embeddings.LayerNorm.weight",), SAME),
    ("embeddings_norm/beta", ("bert.embeddings.LayerNorm.bias",), SAME),
)
_QUERY_KEY_VALUE = ("query", "key", "value")
BLOCK_ROWS = (
    (
        "attention/query_key_value/kernel",
        tuple(f"attention.self.{n}.weight" for n in _QUERY_KEY_VALUE),
        FUSED_TRANSPOSED,
    ),
    ("attention/query_key_value/bias", tuple(f"attention.self.{n}.bias" for n in _QUERY_KEY_VALUE), FUSED),
    ("attention/output/kernel", ("attention.output.dense.weight",), TRANSPOSED),
    ("attention/output/bias", ("attention.output.dense.bias",), SAME),
    ("attention_norm/gamma", ("attention.output.LayerNorm.weight",), SAME),
    ("attention_norm/beta", ("attention.output.LayerNorm.bias",), SAME),
    ("intermediate/kernel", ("intermediate.dense.weight",), TRANSPOSED),
    ("intermediate/bias", ("intermediate.dense.bias",), SAME),
    ("output/kernel", ("output.dense.weight",), TRANSPOSED),
    ("output/bias", ("output.dense.bias",), SAME),
    ("output_norm/gamma", ("output.LayerNorm.weight",), SAME),
    ("output_norm/beta", ("output.LayerNorm.bias",), SAME),
)
HEAD_ROWS = (
    ("pooler/kernel", ("bert.pooler.dense.weight",), TRANSPOSED),
    ("pooler/bias", ("bert.pooler.dense.bias",), SAME),
    ("masked_lm_head/transform/kernel", ("cls.predictions.transform.dense.weight",), TRANSPOSED),
    ("masked_lm_head/transform/bias", ("cls.predictions.transform.dense.bias",), SAME),
    ("masked_lm_head/norm/gamma", ("cls.predictions.transform.LayerNorm.weight",), SAME),
    ("masked_lm_head/norm/beta", ("cls.predictions.transform.LayerNorm.bias",), SAME),
    ("masked_lm_head/output_bias", ("cls.predictions.bias",), SAME),
    ("next_sentence_head/kernel", ("cls.seq_relationship.weight",), TRANSPOSED),
    ("next_sentence_head/bias", ("cls.seq_relationship.bias",), SAME),
    ("classifier/kernel", ("classifier.weight",), TRANSPOSED),
    ("classifier/bias", ("classifier.bias",), SAME),
    ("span_head/kernel", ("qa_outputs.weight",), TRANSPOSED),
    ("span_head/bias", ("qa_outputs.bias",), SAME),
)
ARCHITECTURES = {
    "BertEncoder": "BertModel",
    "BertPretrainer": "BertForPreTraining",
    "BertMaskedLM": "BertForMaskedLM",
    "BertNextSentencePredictor": "BertForNextSentencePrediction",
    "BertTextClassifier": "BertForSequenceClassification",
    "BertTextRegressor": "BertForSequenceClassification",
    "BertTokenClassifier": "BertForTokenClassification",
    "BertQuestionAnswerer": "BertForQuestionAnswering",
    "BertMultipleChoice": "BertForMultipleChoice",
    "BertTextEmbedder": "BertModel",
}
# Tensors that say nothing of their own: copies of tied weights, and positions 0, 1, 2, ...
REDUNDANT = (
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "bert.embeddings.position_ids",
    "bert.embeddings.token_type_ids",
)


def table(num_layers):
    """Rows (path of our weight, names of their tensors, Transform) for every weight a BERT of this depth can have."""
    blocks = tables.in_blocks(BLOCK_ROWS, num_layers, "block_{}/", "bert.encoder.layer.{}.")
    return [*EMBEDDING_ROWS, *blocks, *HEAD_ROWS]


def save(model, directory):
    """Writes `model` to `directory` so that Hugging Face transformers opens it.

    Args:
        model: a BertEncoder or one of the models over it; its tokenizer goes along where it has one.
        directory: made if missing. The checkpoint's files are replaced together, when all are written; others stay.
    """
    encoder = getattr(model, "encoder", model)
    architecture = ARCHITECTURES[type(model).__name__]
    prefix = "" if architecture == "BertModel" else "bert."  # a bare BertModel has no prefix
    tensors = {
        name.replace("bert.", prefix): array
        for name, array in tables.tensors(model, table(encoder.config.num_layers)).items()
    }
    config = {"architectures": [architecture], **encoder.config.to_huggingface(), **_head_config(model)}
    with _replaced_together(directory) as target:
        safetensors.numpy.save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
        (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        if getattr(model, "tokenizer", None) is not None:
            model.tokenizer.save_pretrained(target, model.sequence_length)


def open_checkpoint(directory):
    """Opens a checkpoint directory; see `tables.Checkpoint`.

    Raises: ValueError if a file is missing or damaged, or weights, configuration and vocabulary do not agree, naming
        file and tensor with both shapes.
    """
    directory = pathlib.Path(directory)
    path = directory / "config.json"
    if not path.is_file():
        raise ValueError(f"{path} not found: a checkpoint directory holds config.json and model.safetensors.")
    config = BertConfig.from_huggingface(path)
    source = open_source(directory)
    _check_agreement(source, config)
    tokenizer = None
    if any((directory / name).is_file() for name in ("vocab.txt", "tokenizer.json")):
        tokenizer = WordPieceTokenizer.from_pretrained(directory)
        tables.check_vocabulary(tokenizer, config, source)
    return tables.Checkpoint(
        config,
        table(config.num_layers),
        source,
        tokenizer,
        _sequence_length(directory, config),
        _class_names(path, source.shapes),
        next(iter(json.loads(path.read_text(encoding="utf-8")).get("architectures") or []), None),
    )


def _check_agreement(source, config):
    width = config.hidden_size
    expected = {
        "bert.embeddings.word_embeddings.weight": (config.vocabulary_size, width),
        "bert.embeddings.position_embeddings.weight": (config.max_length, width),
        "bert.embeddings.token_type_embeddings.weight": (config.num_segments, width),
    }
    tables.check_shapes(source, expected, "config.json")
    blocks = {int(name.split(".")[3]) for name in source.shapes if name.startswith("bert.encoder.layer.")}
    if len(blocks) != config.num_layers:
        raise ValueError(f"{source.path} has {len(blocks)} layers, config.json asks for {config.num_layers}.")


def _class_names(path, shapes):
    """The class names of a classifier in order; None if there is no classifier."""
    if "classifier.weight" not in shapes:
        return None
    labels = json.loads(path.read_text(encoding="utf-8")).get("id2label") or {}
    return [labels.get(str(index), str(index)) for index in range(shapes["classifier.weight"][0])]


def _sequence_length(directory, config):
    path = directory / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    length = content.get("model_max_length")
    # Hugging Face writes a number of thirty digits for "no limit".
    return length if length is not None and length <= config.max_length else None


def open_source(directory):
    """The tensors of a checkpoint as a `tables.Source`, by the names of today's BertForPreTraining.

    Reads model.safetensors, its shards by their index, or pytorch_model.bin, in that order.

    Raises: ValueError if none is there, or one is damaged or holds a tensor that is not of floats.
    """
    directory = pathlib.Path(directory)
    for name, open_files in (
        ("model.safetensors", lambda path: [_open_safetensors(path)]),
        ("model.safetensors.index.json", lambda path: [_open_safetensors(shard) for shard in _shards(path)]),
        ("pytorch_model.bin", lambda path: [open_torch_file(path)]),
        ("pytorch_model.bin.index.json", lambda path: [open_torch_file(shard) for shard in _shards(path)]),
    ):
        if (directory / name).is_file():
            return _merge(directory / name, open_files(directory / name))
    raise ValueError(
        f"{directory / 'model.safetensors'} not found: a checkpoint directory holds config.json and "
        "model.safetensors, or pytorch_model.bin."
    )


def standard_name(name):
    """Their tensor name with prefix and LayerNorm spelling as in today's BertForPreTraining."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return f"bert.{name}" if name.startswith(("embeddings.", "encoder.", "pooler.")) else name


def _merge(path, sources):
    """Several files as one Source of standard names; `path` is what messages name."""
    shapes, readers = {}, {}
    for source in sources:
        for name, shape in source.shapes.items():
            if standard_name(name) not in REDUNDANT:
                shapes[standard_name(name)] = shape
                readers[standard_name(name)] = (source.read, name)

    def read(name):
        read_from, stored = readers[name]
        return read_from(stored)

    return tables.Source(str(path), shapes, read)


def _open_safetensors(path):
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}
            shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
            kinds = {name: part.get_dtype() for name, part in slices.items()}
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is damaged or not a safetensors file: {error}.") from error
    for name, kind in kinds.items():
        if kind not in ("F64", "F32", "F16", "BF16") and standard_name(name) not in REDUNDANT:
            raise ValueError(f"{path}: {name} is of type {kind}, expected floats: F32, F16 or BF16.")

    def read(name):
        with safetensors.safe_open(path, framework="numpy") as file:
            return file.get_tensor(name)

    return tables.Source(str(path), shapes, read)


def _shards(index):
    """The paths of the files that an index.json names. Raises ValueError if one is missing or lies elsewhere."""
    names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    for name in names:
        # An index is untrusted input: it must not lead out of its directory.
        if pathlib.PurePath(name).name != name or not (index.parent / name).is_file():
            raise ValueError(f"{index} names the shard {name!r}, which is not beside it.")
    return [index.parent / name for name in names]


def _head_config(model):
    names = getattr(model, "class_names", None)
    if type(model).__name__ == "BertTextRegressor":
        return {"problem_type": "regression", "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    if names is None:
        return {}
    return {
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }


@contextlib.contextmanager
def _replaced_together(directory):
    """Yields a directory to write to; its files then take their places in `directory`, unless an exception comes.

    A crash while writing leaves the old files whole. The renames at the end take a millisecond, the weights last: what
    a crash between them leaves is refused when it is read, since weights and configuration are compared.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    # Within the directory, hence on the same disk: a rename is all or nothing only there.
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=directory) as writing:
        yield pathlib.Path(writing)
        for path in sorted(pathlib.Path(writing).iterdir(), key=lambda path: path.name == "model.safetensors"):
            os.replace(path, directory / path.name)
