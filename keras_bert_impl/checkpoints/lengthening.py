"""Makes a Longformer of a checkpoint that reads 512 tokens."""

import dataclasses
import re
import typing

import numpy as np

from keras_bert_impl.checkpoints.growing import repeated_rows
from keras_bert_impl.checkpoints.huggingface import table
from keras_bert_impl.checkpoints.tensor_tables import Source, check_open
from keras_bert_impl.configurations.known_families import families_by_model_type

# The families whose blocks are Longformer's, but for its windows, with the heads that it computes otherwise: that of
# DistilBERT's classifiers has a ReLU.
LENGTHENED = {"bert": (), "roberta": (), "xlm-roberta": (), "distilbert": ("pooler/",)}
POSITIONS, SEGMENTS = "position_embedding/embeddings", "segment_embedding/embeddings"


class Weights(typing.NamedTuple):
    """Our weights by their paths, of which a checkpoint's tensors are made."""

    shapes: dict
    read: typing.Callable


def lengthen(checkpoint, max_length=4096, attention_window=512, sep_id=None):
    """Makes a Longformer of a BERT, RoBERTa, XLM-RoBERTa or DistilBERT, for any `from_pretrained`, as Beltagy et al.
    2020, section 5, do; prints what changes.

        checkpoint = kbi.checkpoints.lengthen(kbi.checkpoints.open_checkpoint(path))
        encoder = kbi.LongformerEncoder.from_pretrained(checkpoint)

    Positions are repeated from the first on, global tokens begin with the projections of the others, and all else is
    copied, heads included: rows of up to attention_window / 2 + 1 tokens get the same outputs as before. Longer ones,
    and most of all those of more tokens than before, gain from more training.

    Args:
        checkpoint: the result of `open_checkpoint`.
        max_length: tokens of the longest row.
        attention_window: tokens that each sees beside itself, half of them on each side.
        sep_id: the id of [SEP]; None is that of the checkpoint's tokenizer.

    Returns: a Checkpoint; the file itself is not changed.
    Raises: ValueError for another family, for fewer positions than before, and without sep_id for a checkpoint that has
        no vocabulary; TypeError for a path in place of an open checkpoint.
    """
    check_open(checkpoint)
    old, path = checkpoint.config, checkpoint.source.path
    if old.model_type not in LENGTHENED:
        raise ValueError(
            f"{path} is a {old.family}, whose blocks are not Longformer's: expected one of {', '.join(LENGTHENED)}."
        )
    for name, value in {"max_length": max_length, "attention_window": attention_window}.items():
        if not isinstance(value, int):
            raise ValueError(f"{name} is {value!r}, expected a number of tokens.")
    if max_length < old.max_length:
        raise ValueError(f"max_length {max_length} is below the {old.max_length} positions of {path}.")
    if sep_id is None:
        tokenizer = checkpoint.tokenizer  # which is read from files each time
        if tokenizer is None:
            raise ValueError(f"{path} has no vocabulary that tells the id of [SEP]: pass sep_id.")
        sep_id = tokenizer.sep_id
    kind = families_by_model_type()["longformer"].config_class
    known = {field.name for field in dataclasses.fields(kind)}
    config = kind(
        **{name: value for name, value in old.to_dict().items() if name in known and name != "max_length"},
        **({} if hasattr(old, "num_segments") else {"num_segments": 1}),
        **({} if "layer_norm_epsilon" in old.to_dict() else {"layer_norm_epsilon": old.layer_norm_epsilon}),
        max_length=max_length,
        attention_window=attention_window,
        sep_id=sep_id,
    )
    weights, rows = _weights(checkpoint, config), table(config)
    kept = {row[0] for row in rows if row[0] in weights.shapes}
    heads = {row[0] for row in checkpoint.rows if _is_stored(checkpoint, row)} - kept
    for line in _changes(old, config, {head.split("/")[0] for head in heads}):
        print(f"{path}: {line}")
    return checkpoint._replace(
        config=config,
        rows=rows,
        source=_source(path, [row for row in rows if row[0] in kept], weights),
        sequence_length=max_length,
        architecture=checkpoint.task and config.class_prefix() + checkpoint.task,
        read_pooling=lambda: {**checkpoint.read_pooling(), "sequence_length": max_length},
    )


def _changes(old, new, left_out):
    if new.max_length > old.max_length:
        yield f"positions {old.max_length} to {new.max_length - 1} repeat those from 0 on; they need training."
    side = new.windows[0]
    yield f"tokens see {side} to either side and global tokens, which begin with the projections of the others."
    if left_out:
        yield f"{', '.join(sorted(left_out))} is left out: Longformer has no such head."


def _is_stored(checkpoint, row):
    return all(name in checkpoint.source.shapes for name in row[1])


def _weights(checkpoint, config):
    """The Weights of the Longformer that a checkpoint has values for."""
    old, source = checkpoint.config, checkpoint.source
    shapes, made = {}, {}
    for row in checkpoint.rows:
        if _is_stored(checkpoint, row) and not row[0].startswith(LENGTHENED[old.model_type]):
            path, names, transform = row
            # Arrays that take no memory tell the shape that a weight will have.
            shapes[path] = transform.load([np.broadcast_to(False, source.shapes[name]) for name in names]).shape
    unused = [table.num_positions - table.max_length for table in (old, config)]
    shapes[POSITIONS] = (config.num_positions, *shapes[POSITIONS][1:])
    made[POSITIONS] = lambda: _positions(checkpoint.read(POSITIONS), *unused, config.num_positions)
    if SEGMENTS not in shapes:
        shapes[SEGMENTS] = (1, config.hidden_size)
        made[SEGMENTS] = lambda: np.zeros(shapes[SEGMENTS], "float32")
    for path, shape in list(shapes.items()):
        if found := re.fullmatch(r"(block_\d+/attention)/query_key_value/(kernel|bias)", path):
            for number, name in enumerate(("query", "key", "value")):
                new = f"{found[1]}/global_{name}/{found[2]}"
                shapes[new] = (*shape[:-1], shape[-1] // 3)
                made[new] = lambda path=path, number=number: np.split(checkpoint.read(path), 3, axis=-1)[number]
    return Weights(shapes, lambda path: made[path]() if path in made else checkpoint.read(path))


def _positions(trained, unused, unused_of_new, size):
    """A position table: rows before the first position, which no token has, and repeated ones."""
    before = np.zeros((unused_of_new, trained.shape[1]), "float32")
    return np.concatenate([before, repeated_rows(trained[unused:], size - unused_of_new)])


def _source(path, rows, weights):
    """The Source of a format's tensors, computed from our weights."""
    shapes, places = {}, {}
    for ours, names, transform in rows:
        for number, (name, array) in enumerate(
            zip(names, transform.save(np.broadcast_to(False, weights.shapes[ours])), strict=True)
        ):
            shapes[name], places[name] = array.shape, (ours, transform, number)

    def read(name):
        ours, transform, number = places[name]
        return transform.save(weights.read(ours))[number]

    return Source(path, shapes, read)
