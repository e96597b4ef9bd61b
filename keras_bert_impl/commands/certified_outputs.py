"""What a certificate is about: ids, outputs, the norm of a gradient and hashes, of one checkpoint on one backend.

    KERAS_BACKEND=jax python -m keras_bert_impl.commands.certified_outputs CHECKPOINT RESULT.npz

`keras-bert certify` starts this once for each backend.
"""

import dataclasses
import hashlib
import json
import sys
import typing
import warnings

import keras
import numpy as np
from keras import ops

from keras_bert_impl import checkpoints
from keras_bert_impl.commands.certificate_texts import TEXTS
from keras_bert_impl.commands.export import LOADERS, choose_task
from keras_bert_impl.distribution import to_numpy
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.tokenizers.rows import ids_from_texts, pack_rows

SHORT = 64  # rows of up to so many tokens are computed together; others have the length of the longest row
QUESTION, ENDINGS = "Where is it?", ("It slept.", "It was a dog.")
# Not of the squares alone: those of a vector of length 1 have no gradient.
LOSS = (
    "the mean squared difference of the outputs, without those of padding, to cos 0, cos 1, ... along their last axis"
)


class Outputs(typing.NamedTuple):
    """What was computed of the fifty texts.

    Fields:
        ids: of each text the ids of its row; of multiple choice, of the rows of all endings one after the other.
        outputs: of each text a float array: logits, a number or a vector; of tokens, a row for each.
        is_cut: of each text whether it was longer than a row; of an export only if it cuts such texts otherwise: they
            are not compared then.
        gradient_norm: of `LOSS` over the texts of up to SHORT tokens, by all weights together, without dropout; None of
            an export.
        weights_sha256: see `hash_of_weights`; None of an export.
    """

    ids: list
    outputs: list
    is_cut: list
    gradient_norm: float | None = None
    weights_sha256: str | None = None


def computed(directory):
    """The Outputs of a checkpoint on the backend of this process."""
    task, model = open_model(directory)
    tokenizer = model_tokenizer(model, directory)
    rows, counts, is_cut = rows_of(task, tokenizer, longest_row(model))
    part = keras.Model(model.input, answered(task, model))
    groups = [[place for place, row in enumerate(rows) if (row["token_ids"].shape[-1] <= SHORT) is short]
              for short in (True, False)]  # fmt: skip
    outputs = [None] * len(rows)
    for group in filter(None, groups):
        batch = {name: np.concatenate([rows[place][name] for place in group]) for name in part.input}
        found = np.asarray(part.predict_on_batch(batch), "float32")
        for place, array in zip(group, found, strict=True):
            outputs[place] = of_text(task, array, counts[place])
    short = {name: np.concatenate([rows[place][name] for place in groups[0]]) for name in part.input}
    return Outputs(
        [ids_in(row) for row in rows],
        outputs,
        is_cut,
        gradient_norm(task, part, short),
        hash_of_weights(model, checkpoints.open_checkpoint(directory)),
    )


def open_model(directory):
    """(task, model) of a checkpoint, the model without dropout, in float32."""
    task = choose_task(directory)
    checkpoint = checkpoints.open_checkpoint(directory)
    rates = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0}
    checkpoint = checkpoint._replace(config=dataclasses.replace(checkpoint.config, **rates))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a small vocabulary
        loader = LOADERS[task]
        of_head = getattr(getattr(loader, "__self__", None), "head_arguments", ())
        model = loader(checkpoint, **({"dropout_rate": 0.0} if "dropout_rate" in of_head else {}))
    return task, model


def model_tokenizer(model, directory):
    """The tokenizer of a model. Raises ValueError if the checkpoint has none."""
    tokenizer = getattr(model, "tokenizer", None) or checkpoints.open_checkpoint(directory).tokenizer
    if tokenizer is None:
        raise ValueError(f"{directory} has no vocabulary: a certificate is about texts. Save it with its tokenizer.")
    return tokenizer


def longest_row(model):
    """The number of tokens that texts are cut to."""
    return getattr(model, "sequence_length", getattr(model, "encoder", model).config.max_length)


def texts_for(task, mask):
    """(first texts, second texts or None) of the rows of a task: one row for each of TEXTS, of multiple choice two.

    Args:
        task: a key of `LOADERS`.
        mask: what stands for the mask token in a text.
    """
    if task == "fill_mask":
        return [f"{mask} {text}" for text in TEXTS], None
    if task == "answer":
        return [QUESTION] * len(TEXTS), list(TEXTS)
    if task == "next_sentence":
        return list(TEXTS), [*TEXTS[1:], TEXTS[0]]
    if task == "choose":
        return [text for text in TEXTS for _ in ENDINGS], list(ENDINGS) * len(TEXTS)
    return list(TEXTS), None


def rows_of(task, tokenizer, length):
    """For each of TEXTS a dict of arrays (1, ...), the number of its tokens, and whether it was cut."""
    first, second = texts_for(task, tokenizer.mask_texts[0])
    if task == "fill_mask":
        whole = [list(tokenizer.template.text_in(tokenizer.encode_with_masks(text).ids)) for text in first]
        room = length - tokenizer.template.num_control(False)
        ids, others = [of_text[:room] for of_text in whole], None
        is_cut = [len(of_text) > room for of_text in whole]
    else:
        ids, others, _ = ids_from_texts(tokenizer, first, second, length)
        counts = [len(one) for one in tokenizer.ids_batch(first)]
        if second is not None:
            counts = [a + len(b) for a, b in zip(counts, tokenizer.ids_batch(second), strict=True)]
        is_cut = [count > length - tokenizer.template.num_control(second is not None) for count in counts]
    step = len(ENDINGS) if task == "choose" else 1
    rows, counts, cut = [], [], []
    for place in range(0, len(ids), step):
        of_one = slice(place, place + step)
        pair = None if others is None else others[of_one]
        row = pack_rows(tokenizer, ids[of_one], pair, length)
        pad_to = SHORT if row["token_ids"].shape[1] <= min(SHORT, length) else length
        row = pack_rows(tokenizer, ids[of_one], pair, length, min(pad_to, length))
        rows.append(finished_row(task, row, tokenizer.mask_id))
        counts.append(int(row["padding_mask"][0].sum()))
        cut.append(any(is_cut[of_one]))
    return rows, counts, cut


def finished_row(task, row, mask_id):
    """A row with what the task needs beside ids: the place of the first mask, or an axis of choices."""
    if task == "fill_mask":
        return {**row, "mask_positions": (row["token_ids"] == mask_id).argmax(axis=1).astype("int32")[:, None]}
    return {name: array[None] for name, array in row.items()} if task == "choose" else row


def ids_in(row):
    """The ids of a row without padding, as a list."""
    return row["token_ids"][row["padding_mask"] > 0].tolist()


def answered(task, model):
    """The output of a model that a certificate is about."""
    return model.output["sequence_output"] if task == "embed" else model.output


def of_text(task, array, count):
    """The output of one text, without padding: of an encoder the mean over the tokens."""
    if task == "embed":
        return array[:count].mean(axis=0, dtype="float64").astype("float32")
    return array[:count] if task in ("label_words", "answer") else array


def gradient_norm(task, part, batch):
    """The norm of the gradient of `LOSS` by all trainable weights, in one step that changes none of them."""
    optimizer = BertAdamW(0.0, weight_decay=0.0, global_clipnorm=None)
    part.compile(optimizer=optimizer, loss=mean_squared_difference)
    shape = part.output.shape
    weights = np.ones((len(batch["token_ids"]), *([1] * (len(shape) - 1))), "float32")
    if task in ("embed", "label_words", "answer"):
        weights = batch["padding_mask"][:, :, None].astype("float32")
    part.train_on_batch(batch, weights)
    return float(ops.convert_to_numpy(ops.convert_to_tensor(optimizer.gradient_norm)))


def mean_squared_difference(weights, outputs):
    """LOSS: weights (batch, ..., 1) are 0 for padding."""
    targets = ops.convert_to_tensor(np.cos(np.arange(outputs.shape[-1])).astype("float32"))
    squares = ops.square(ops.cast(outputs, "float32") - targets) * weights
    return ops.sum(squares) / ops.sum(ops.broadcast_to(weights, ops.shape(squares)))


def hash_of_weights(model, checkpoint):
    """The SHA-256 of the weights that a model has from its checkpoint, without a pooler that no output uses and that is
    new: for each, in the order of their paths, the path, the shape as JSON, and the values as little-endian float32."""
    everything = {weight.path: weight for weight in [*getattr(model, "encoder", model).weights, *model.weights]}
    found = hashlib.sha256()
    for path, weight in sorted(item for item in everything.items() if checkpoint.has(item[0])):
        array = np.ascontiguousarray(to_numpy(weight), "<f4")
        found.update(f"{path} {json.dumps(list(array.shape))}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def hash_of_ids(ids):
    """The SHA-256 of lists of ids as JSON without spaces."""
    return hashlib.sha256(json.dumps(ids, separators=(",", ":")).encode()).hexdigest()


def write(outputs, path):
    """Writes Outputs as a NumPy file."""
    arrays = {f"output_{place}": array for place, array in enumerate(outputs.outputs)}
    described = {**outputs._asdict(), "outputs": None}
    np.savez(path, described=json.dumps(described), **arrays)


def read(path):
    """The Outputs that `write` wrote."""
    with np.load(path) as file:
        described = json.loads(str(file["described"]))
        outputs = [file[f"output_{place}"] for place in range(len(described["ids"]))]
    return Outputs(**{**described, "outputs": outputs})


if __name__ == "__main__":
    write(computed(sys.argv[1]), sys.argv[2])
