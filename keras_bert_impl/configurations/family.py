"""A family of encoders: its classes, and the table of its tensors' names in Hugging Face's format, which is applied in
one direction to load and in the other to save."""

import types
import typing
from collections.abc import Callable, Mapping

import numpy as np


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


def joined_kernels(*widths):
    """The Transform of several dense kernels, of these widths, that are one kernel here, (in, sum of widths)."""
    ends = np.cumsum(widths)[:-1]
    return Transform(FUSED_TRANSPOSED.load, lambda ours: [kernel.T for kernel in np.split(ours, ends, axis=-1)])


def layer_rows(ours, theirs, names):
    """The rows of a layer whose arrays have the same form; `names` are pairs of our name and the end of theirs."""
    return tuple((f"{ours}/{name}", (f"{theirs}/{end}",), SAME) for name, end in names)


def dense_rows(ours, theirs):
    """The rows of a dense layer."""
    return ((f"{ours}/kernel", (f"{theirs}.weight",), TRANSPOSED), (f"{ours}/bias", (f"{theirs}.bias",), SAME))


def kernel_row(ours, *theirs, transform=TRANSPOSED):
    """The row of a dense layer without bias, or of several that are one here."""
    return (f"{ours}/kernel", tuple(f"{name}.weight" for name in theirs), transform)


def scale_row(ours, theirs, name="gamma"):
    """The row of a norm without centre."""
    return (f"{ours}/{name}", (f"{theirs}.weight",), SAME)


def norm_rows(ours, theirs):
    """The rows of a layer norm."""
    return ((f"{ours}/gamma", (f"{theirs}.weight",), SAME), (f"{ours}/beta", (f"{theirs}.bias",), SAME))


def attention_rows(queries_keys_values, output):
    """The rows of self-attention, from the names of its three input layers and of its output layer."""
    kernels, biases = (tuple(f"{name}.{kind}" for name in queries_keys_values) for kind in ("weight", "bias"))
    return (
        ("attention/query_key_value/kernel", kernels, FUSED_TRANSPOSED),
        ("attention/query_key_value/bias", biases, FUSED),
        *dense_rows("attention/output", output),
    )


def masked_lm_rows(dense, norm, bias):
    """The rows of a masked-LM head, whose table of words is the embedding's own."""
    return (
        *dense_rows("masked_lm_head/transform", dense),
        *norm_rows("masked_lm_head/norm", norm),
        ("masked_lm_head/output_bias", (bias,), SAME),
    )


def dense_classifier(theirs):
    """The `names_by_task` of a family whose text classifier has a dense layer of its own in place of the pooler;
    `theirs` begins that layer's names in the rows."""
    return {"ForSequenceClassification": ((theirs, "classifier.dense."), ("classifier.", "classifier.out_proj."))}


# The rows of the heads that have the same names in every family.
COMMON_HEAD_ROWS = (*dense_rows("classifier", "classifier"), *dense_rows("span_head", "qa_outputs"))
# Ends of the names of classes that transformers has for every family.
COMMON_TASKS = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)


class Family(typing.NamedTuple):
    """A family of encoders, and its format in Hugging Face's checkpoints.

    Fields:
        encoder_class: its encoder, whose `config_class` is that of its configuration.
        prefix: what the names of the encoder's tensors begin with in a model with a head: "bert.".
        bare_beginnings: what they begin with in a model without a head.
        other_prefixes: what they begin with in files of other programs, instead of `prefix`.
        embedding_rows, head_rows: (path of our weight, names of their tensors, Transform); the pooler counts as a head.
        block: what the names of a block's tensors begin with, {} being its number, or several of them those of
            `block_numbers`; block_rows: rows without that, or a function of the configuration that gives them.
        redundant: tensors that hold no information of their own, unless `decoder` is not tied.
        tasks: ends of the names of the family's classes.
        dropout_key: the key in config.json of the dropout before a classifier.
        token_dropout_key: the same for a classifier of tokens; None means the same key.
        names_by_task: for tasks whose tensors have other names than in the rows, pairs of the beginning of a name in
            the rows and in a model for that task.
        block_numbers: function from a configuration to the numbers in the names of each block with weights of its own,
            a tuple each; default is 0, 1, 2, ... for the layers.
        tasks_with_pooler: tasks whose classes in transformers hold the encoder's pooler without using it.
        class_ends: for tasks whose classes in transformers have other names, the ends of these.
    """

    encoder_class: type
    prefix: str
    bare_beginnings: tuple
    embedding_rows: tuple
    block: str
    block_rows: tuple | Callable
    head_rows: tuple
    redundant: tuple
    tasks: tuple
    dropout_key: str
    names_by_task: Mapping[str, tuple] = types.MappingProxyType({})
    token_dropout_key: str | None = None
    class_ends: Mapping[str, str] = types.MappingProxyType({})
    tasks_with_pooler: tuple = ()
    other_prefixes: tuple = ()
    block_numbers: Callable = lambda config: [(index,) for index in range(config.num_layers)]

    def class_name(self, task):
        """The name of the family's class for a task in transformers."""
        return self.config_class.class_prefix() + self.class_ends.get(task, task)

    @property
    def config_class(self):
        return self.encoder_class.config_class

    @property
    def decoder(self):
        """The names of the table that scores words, tied unless the configuration says otherwise, and of its bias where
        this is another tensor than the head's."""
        return [name for name in self.redundant if ".embeddings." not in name]

    def renamed(self, prefix, **fields):
        """The format of a family with the same tensors, whose names begin with another prefix; `fields` replace its
        fields."""

        def named(name):
            return prefix + name.removeprefix(self.prefix) if name.startswith(self.prefix) else name

        by_task = {
            task: tuple((named(ours), theirs) for ours, theirs in pairs) for task, pairs in self.names_by_task.items()
        }
        found = self._replace(
            prefix=prefix,
            embedding_rows=with_prefix(self.embedding_rows, prefix, self.prefix),
            block=named(self.block),
            head_rows=with_prefix(self.head_rows, prefix, self.prefix),
            redundant=tuple(map(named, self.redundant)),
            names_by_task=by_task,
        )
        return found._replace(**fields)

    def rows(self, config):
        """The rows of every weight that an encoder of this configuration and its heads can have."""
        of_block = self.block_rows(config) if callable(self.block_rows) else self.block_rows
        blocks = in_blocks(of_block, self.block_numbers(config), "block_{}/", self.block)
        return [*self.embedding_rows, *blocks, *self.rows_of_heads(config)]

    def rows_of_heads(self, config):
        """`head_rows`, with those of a table of words that is not tied."""
        if config.tie_word_embeddings:
            return self.head_rows
        table, *bias = self.decoder
        # Of two biases, transformers 5 adds the decoder's; in those of version 4 both are one.
        of_bias = Transform(lambda theirs: theirs[-1], lambda ours: [ours] * (1 + len(bias)))
        heads = {path: (names, transform) for path, names, transform in self.head_rows}
        if config.head_has_output_bias:
            heads["masked_lm_head/output_bias"] = ((*heads["masked_lm_head/output_bias"][0], *bias), of_bias)
        heads["masked_lm_head/decoder/embeddings"] = ((table,), SAME)
        return [(path, *row) for path, row in heads.items()]


def with_prefix(rows, theirs, old="bert."):
    """Rows in which the names of tensors begin with `theirs` where they began with `old`."""
    return tuple(
        (path, tuple(theirs + name.removeprefix(old) if name.startswith(old) else name for name in names), transform)
        for path, names, transform in rows
    )


def in_blocks(rows, numbers, ours, theirs):
    """The rows of a block for every block of an encoder; `ours` and `theirs` are patterns such as "block_{}/".

    `numbers` are a tuple for each block, which `theirs` is filled with; `ours` always counts them from 0.
    """
    return [
        (ours.format(index) + path, tuple(theirs.format(*of_block) + name for name in names), transform)
        for index, of_block in enumerate(numbers)
        for path, names, transform in rows
    ]
