"""What the checkpoint formats share: tables of names, applied in both directions, and the ledger of what was loaded."""

import types
import typing
from collections.abc import Callable, Mapping

import keras
import numpy as np

from keras_bert_impl.checkpoints.untrained_heads import remember
from keras_bert_impl.configurations.encoder_config import EncoderConfig
from keras_bert_impl.configurations.initialization import filling
from keras_bert_impl.configurations.known_families import family_of, weight_shapes
from keras_bert_impl.distribution import assign_whole, to_numpy
from keras_bert_impl.text.tokenizers import Tokenizer
from keras_bert_impl.user_warnings import warn_user

# The types that weights may be stored in, as safetensors names them.
FLOATS = ("F32", "F16", "BF16", "F64")


class Source(typing.NamedTuple):
    """A checkpoint opened for reading: its names and shapes have been read, its tensors not yet.

    Fields:
        path: the file, for messages.
        shapes: the shape of every tensor by the name that the format's table uses.
        read: function from a name to its array, float32.
        kinds: the type of every tensor as the file names it, where the format has several.
    """

    path: str
    shapes: Mapping[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]
    kinds: Mapping[str, str] = types.MappingProxyType({})


class Checkpoint(typing.NamedTuple):
    """An open checkpoint of any format, as `open_checkpoint` returns it. Its weights are read when they are needed.

    The properties `tokenizer` (a Tokenizer, or None) and `task` (such as "ForMaskedLM") are most often used.

    Fields:
        config (EncoderConfig): configuration of its family, checked against the tensors' shapes.
        rows (list): table of the format: (path of our weight, names of its tensors, Transform).
        source (Source): names, shapes and types of the tensors, and a function that reads them.
        read_tokenizer (function): returns the tokenizer; None if there is no vocabulary.
        sequence_length (int): number of tokens that texts are truncated to; None if it is not given.
        class_names (list of str): names of its classes; None without a classifier, and for a regressor.
        architecture (str): Hugging Face's name of the model, such as "BertForMaskedLM"; None if it is not given.
        head_arguments (dict): arguments of the model: dropout_rate, multi_label, null_threshold, long_texts; and
            token_dropout_rate, the dropout_rate of a model that scores tokens.
        read_pooling (function): returns how texts become vectors: pooling, normalize, sequence_length. Raises
            ValueError if no model here would compute the same vectors.
        read_ranking (function): returns how pairs are scored: score_activation, sequence_length.
        untrained (tuple of str): names of heads that had random values when it was saved.
    """

    config: EncoderConfig
    rows: list
    source: Source
    read_tokenizer: Callable[[], Tokenizer | None] = lambda: None
    sequence_length: int | None = None
    class_names: list[str] | None = None
    architecture: str | None = None
    head_arguments: Mapping[str, object] = types.MappingProxyType({})
    read_pooling: Callable[[], Mapping[str, object]] = dict
    read_ranking: Callable[[], Mapping[str, object]] = dict
    untrained: tuple[str, ...] = ()

    @property
    def task(self):
        """The end of `architecture`, whatever the family: "ForMaskedLM", "Model"; None if nothing says."""
        return task_in(self.architecture, self.config)

    @property
    def tokenizer(self):
        """Its tokenizer, read only when needed, since ids can do without; None if it has no vocabulary."""
        return self.read_tokenizer()

    def arguments_of(self, kind, given=()):
        """The arguments that it specifies of a class of models, by the names in its `head_arguments`. Settings of
        sentence-transformers, which may be none that a model here has, are not read if `given` names all of them."""
        rate = self.head_arguments.get("token_dropout_rate" if kind.scores_tokens else "dropout_rate")
        found = {**self.head_arguments, "dropout_rate": rate}
        found["enhanced_decoder"] = (self.has("masked_lm_head/") and self.has("decoder_positions/")) or None
        found = {name: found[name] for name in kind.head_arguments if found.get(name) is not None}
        for names, read in ((("pooling", "normalize"), self.read_pooling), (("score_activation",), self.read_ranking)):
            if set(names) <= set(kind.head_arguments) and not {*names, "sequence_length"} <= set(given):
                found |= read()
        return found

    def has(self, beginning):
        """Whether it has values for all our weights whose paths start with `beginning`."""
        rows = [names for path, names, _ in self.rows if path.startswith(beginning)]
        return bool(rows) and all(name in self.source.shapes for names in rows for name in names)

    def read(self, path):
        """Its values for our weight with this path, float32."""
        names, transform = next(row[1:] for row in self.rows if row[0] == path)
        return transform.load([self.source.read(name) for name in names])


def task_in(architecture, config):
    """The task of a class in transformers: "ForMaskedLM" of "BertForMaskedLM"; None of None."""
    end = architecture and architecture.removeprefix(config.class_prefix())
    return next((task for task, other in family_of(config).class_ends.items() if other == end), end)


class Ledger(typing.NamedTuple):
    """What was loaded: the names of tensors used and left over, and of our weights that were newly initialised."""

    used: list[str]
    left_over: list[str]
    new: list[str]

    def __str__(self):
        lines = [f"{len(self.used)} tensors used"]
        for title, names in (("left over", self.left_over), ("newly initialised", self.new)):
            lines.append(f"{len(names)} {title}{':' if names else ''}")
            lines += [f"    {name}" for name in names]
        return "\n".join(lines)


def load(model, checkpoint, except_for=(), report=False, filled=None):
    """Copies the tensors of a checkpoint into the weights of `model`, one at a time.

    Heads that the checkpoint does not have, and those whose path starts with one of `except_for`, are initialised at
    random and named in one warning. All shapes are compared before any tensor is read.

    Args:
        model: an encoder or one of the models over it.
        checkpoint: a Checkpoint.
        except_for: beginnings of paths of our weights, of whole heads.
        report: print the ledger instead of warning.
        filled: None for a model that was built with random weights; for one built with zeros, the paths of the weights
            that already have the checkpoint's values.

    Returns: the Ledger.
    Raises: ValueError naming file, tensor, expected and found shape.
    """
    encoder, source = getattr(model, "encoder", model), checkpoint.source
    # An encoder's pooler is not among the weights of a model whose head does not use it.
    ours = {weight.path: weight for weight in [*encoder.weights, *model.weights]}
    _check_depth(checkpoint, encoder)
    missing = _missing_groups(checkpoint, ours, {weight.path for weight in encoder.weights}, tuple(except_for))
    found = [row for row in checkpoint.rows if row[0] in ours and _group(row[0]) not in missing]
    for path, names, transform in found:
        _check_row(source, names, tuple(ours[path].shape), transform)
    for path, names, transform in found:
        if filled is None or path not in filled:
            assign_whole(ours[path], transform.load([source.read(name) for name in names]))
    used = [name for _, names, _ in found for name in names]
    stored, own = {path for path, _, _ in found}, {weight.path for weight in model.weights}
    new = [path for path in ours if path not in stored]
    if filled is not None:
        for path in new:
            if path.endswith(("/kernel", "/decoder/embeddings")):
                _draw(ours[path], checkpoint.config, path)
    ledger = Ledger(used, sorted(set(source.shapes) - set(used)), [path for path in new if path in own])
    used_groups, random = set(map(_group, own)), set(map(_group, stored)) & set(checkpoint.untrained)
    still = sorted(random & used_groups)
    random |= set(map(_group, new))
    remember(encoder, random - used_groups)  # a pooler that the head does not use, but that is saved with the encoder
    remember(model, random & used_groups)
    if still:
        warn_user(f"{source.path} was saved before {', '.join(still)} had been trained, so its values are random.")
    if report:
        print(f"{source.path}: {ledger}")
    elif ledger.new:
        warn_user(f"{source.path} has no values for {', '.join(ledger.new)}: newly initialised, they need training.")
    return ledger


def build_filled(build, checkpoint, except_for=(), report=False):
    """Builds a model with `build()` and fills it from a checkpoint; see `load`.

    It is built with zeros, since drawing a hundred million random numbers takes longer than reading them. Only the
    token embedding is read while the model is built: if it were in memory twice beside the other weights, memory would
    peak at 1.7 times their size.
    """
    filled = set()
    with filling(checkpoint, filled):
        model = build()
    load(model, checkpoint, except_for, report, filled)
    return model


def _check_depth(checkpoint, encoder):
    held, wanted = checkpoint.config.num_blocks, encoder.config.num_blocks
    if held < wanted:
        raise ValueError(f"{checkpoint.source.path} has {held} layers, but the model has {wanted}.")


def _missing_groups(checkpoint, ours, of_encoder, except_for):
    """The heads, including the pooler, that have no values: a head may be missing as a whole, an encoder may not.

    `_check_row` reports a head of which only some tensors are missing.
    """
    stored = {
        _group(path)
        for path, names, _ in checkpoint.rows
        if not path.startswith(except_for or "/") and any(name in checkpoint.source.shapes for name in names)
    }
    heads = {_group(path) for path in ours if path.startswith("pooler/") or path not in of_encoder}
    return heads - stored


def _group(path):
    return path.split("/", 1)[0]


def _draw(kernel, config, path):
    """Gives a kernel of a head random values: `from_pretrained` builds models with zeros, which is much faster."""
    scale = config.last_kernel_scale if _group(path) in ("pooler", "masked_lm_head") else 1.0
    initializer = keras.initializers.TruncatedNormal(stddev=scale * config.initializer_range)
    kernel.assign(initializer(kernel.shape, kernel.dtype))


def check_depth(source, config, blocks, config_name):
    """Compares the number of blocks of a configuration and of its tensors, before a table is made for each block.

    Args:
        source: the tensors.
        config: the configuration.
        blocks: the names of the blocks that the tensors have, each once.
        config_name: the file of the configuration, for the message.

    Raises: ValueError naming both numbers.
    """
    if len(blocks) != config.num_blocks:
        raise ValueError(f"{source.path} has {len(blocks)} layers, but {config_name} asks for {config.num_blocks}.")


def check_encoder(checkpoint, config_name):
    """Compares every tensor of an encoder with the configuration, before memory is allocated for a model.

    Raises: ValueError naming file and tensor, with expected and found shape, if one is missing or of another shape.
        A pooler may be missing: half of the published models were saved without one.
    """
    shapes = weight_shapes(checkpoint.config)
    for path, names, transform in checkpoint.rows:
        if path in shapes and (_group(path) != "pooler" or checkpoint.has("pooler/")):
            _check_row(checkpoint.source, names, shapes[path], transform, config_name)


def check_tokenizer_rows(tokenizer, config, source):
    """Raises ValueError if the vocabulary has more words than the embedding has rows; warns if it has far fewer."""
    if tokenizer is None:
        return
    words, rows = tokenizer.vocabulary_size, config.vocabulary_size
    if words > rows:
        raise ValueError(
            f"{source.path}: the token embedding has {rows} rows, but the vocabulary next to it has {words} words: "
            "they do not belong together."
        )
    # Embeddings are rounded up to a multiple of 8 to 128, for speed. Otherwise words were lost: the other ids stay
    # right, but these words are split into pieces.
    if rows - words >= 128 or (rows > words and rows % 8):
        warn_user(
            f"{source.path}: the token embedding has {rows} rows, but the vocabulary next to it has only {words} "
            "words: check that it is the right one and complete."
        )


def tensors(weights, rows):
    """Weights as the format's tensors: a dict of arrays by name."""
    ours = {weight.path: weight for weight in weights}
    found = {}
    for path, names, transform in rows:
        if path in ours:
            arrays = transform.save(to_numpy(ours[path]))
            found |= {name: np.ascontiguousarray(array) for name, array in zip(names, arrays, strict=True)}
    return found


def _check_row(source, names, shape, transform, config_name="the configuration"):
    """Raises ValueError unless the tensors of a row exist and form a weight of `shape`."""
    # A broadcast array takes no memory, however large a shape a damaged configuration asks for.
    for name, array in zip(names, transform.save(np.broadcast_to(False, shape)), strict=True):
        if name not in source.shapes:
            raise ValueError(f"{source.path} has no tensor {name}, expected of shape {array.shape}.")
        if source.shapes[name] != array.shape:
            raise ValueError(
                f"{source.path}: {name} has shape {source.shapes[name]}, but {config_name} asks for {array.shape}."
            )
        if source.kinds.get(name, "F32") not in FLOATS:
            raise ValueError(f"{source.path}: {name} is of type {source.kinds[name]}, expected {', '.join(FLOATS)}.")
