"""BigBird: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras
from keras import ops

from keras_bert_impl.configurations.encoder_config import EncoderConfig
from keras_bert_impl.configurations.family import COMMON_TASKS, dense_classifier, dense_rows, norm_rows
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.encoders import bert
from keras_bert_impl.encoders.encoder import FamilyEncoder
from keras_bert_impl.encoders.parts import Parts
from keras_bert_impl.kernels import attention
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.layers import MultiHeadSelfAttention
from keras_bert_impl.layers.dropout import dropped_as
from keras_bert_impl.suggestions import one_of

ATTENTION_TYPES = ("block_sparse", "original_full")
RANDOM_BLOCKS = ("seeded", "first_block")
NO_ANSWER = 1e6  # taken from the scores of a question's tokens, as in transformers


@dataclasses.dataclass(frozen=True)
class BigBirdConfig(EncoderConfig):
    """Configuration of a BigBird model. The defaults are bigbird-roberta-base (Zaheer et al. 2020, section 4, ITC).

    Arguments and errors are those of BertConfig, without direction, with the defaults in the signature, and:

    Args:
        sep_id (int, optional): ID of the separator token, by which a QuestionAnswerer finds the question. Default: 66.
        attention_type (str, optional): "block_sparse", or "original_full" for full attention. Default: "block_sparse".
        block_size (int, optional): number of tokens in a block. Default: 64.
        num_random_blocks (int, optional): number of random blocks that a block attends to. Sequences of at most
            (5 + 2 * num_random_blocks) * block_size tokens, 704 by default, have full attention. Default: 3.
        random_blocks (str, optional): which blocks these are, in training and inference. "seeded": those that
            google-research/bigbird draws by the layer's number, with which the published models were trained.
            "first_block": always the first block, as transformers computes at inference; that block then has
            1 + num_random_blocks times the weight. A config.json without this field, such as those of transformers,
            means "first_block". Default: "seeded".
        rescale_embeddings (bool, optional): whether token embeddings are multiplied by the square root of hidden_size.
            Default: False.
        query_bias (bool, optional): whether queries, keys and values have biases (`use_bias` in config.json).
            Default: True.
    """

    vocabulary_size: int = 50358
    activation: str = "gelu_tanh"
    max_length: int = 4096
    num_segments: int = 2
    sep_id: int = 66
    attention_type: str = "block_sparse"
    block_size: int = 64
    num_random_blocks: int = 3
    random_blocks: str = "seeded"
    rescale_embeddings: bool = False
    query_bias: bool = True

    model_type: typing.ClassVar = "big_bird"
    family: typing.ClassVar = "BigBird"
    # (layers, width, heads). The first has the shape of bert_tiny; no model of its size was published.
    named_sizes: typing.ClassVar = {
        "bigbird_tiny": (2, 128, 2),
        "bigbird_base": (12, 768, 12),
        "bigbird_large": (24, 1024, 16),
    }
    left_out: typing.ClassVar = {"hidden_act": "gelu_new", "random_blocks": "first_block"}
    optional_keys: typing.ClassVar = (
        *EncoderConfig.optional_keys,
        ("sep_id", "sep_token_id"),
        ("attention_type", "attention_type"),
        ("block_size", "block_size"),
        ("num_random_blocks", "num_random_blocks"),
        ("random_blocks", "random_blocks"),
        ("rescale_embeddings", "rescale_embeddings"),
        ("query_bias", "use_bias"),
    )
    fixed_values: typing.ClassVar = {"position_embedding_type": "absolute", "add_cross_attention": False}
    pair_tasks: typing.ClassVar = ("next_sentence",)

    def __post_init__(self):
        super().__post_init__()
        one_of("attention_type", self.attention_type, ATTENTION_TYPES)
        one_of("random_blocks", self.random_blocks, RANDOM_BLOCKS)

    def blocks_of(self, layer):
        """Returns the `SparseBlocks` of a layer, or None if it always has full attention."""
        if self.attention_type == "original_full":
            return None
        seed = layer if self.random_blocks == "seeded" else None
        return attention.SparseBlocks(self.block_size, self.num_random_blocks, seed, self.max_length)

    def keys_seen(self, length):
        layout = self.blocks_of(0)
        if layout is None or not layout.may_be_sparse(length):
            return super().keys_seen(length)
        blocks = -(-length // self.block_size)
        near = 5 + self.num_random_blocks * (self.random_blocks == "seeded")  # blocks
        return [(2 * length + (blocks - 2) * near * self.block_size) / blocks] * self.depth


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BigBirdAttention(MultiHeadSelfAttention):
    """Self-attention between blocks of tokens, or in a short sequence between all tokens (Zaheer et al. 2020, section
    2).

    Args: those of MultiHeadSelfAttention, `use_bias` being only for queries, keys and values, and:
        blocks: the fields of a `kernels.attention.SparseBlocks`; None for full attention at any length.

    Input:  as for MultiHeadSelfAttention, where a mask is the same for all queries of a sequence; with `sequence_ids`,
            attention is full within each packed sequence.
    Output: as for MultiHeadSelfAttention; with blocks, padded queries attend to nothing, and there is no dropout of
            probabilities, as in Google's code. A block that is attended to several times has the sum of its
            probabilities.
    """

    def __init__(self, num_heads, dropout_rate=0.0, initializer="glorot_uniform", blocks=None, use_bias=True, **kwargs):
        super().__init__(num_heads, dropout_rate, initializer, **kwargs)
        self.blocks = blocks and attention.SparseBlocks(*blocks)
        self._has_bias_of_inputs = bool(use_bias)

    @property
    def has_bias_of_inputs(self):
        return self._has_bias_of_inputs

    def call(self, inputs, attention_mask=None, sequence_ids=None, training=False, return_probabilities=False):
        length = inputs.shape[1]
        if self.blocks is None or sequence_ids is not None or not self.blocks.may_be_sparse(length):
            return super().call(
                inputs, attention_mask, sequence_ids, training=training, return_probabilities=return_probabilities
            )
        # In a graph of any length, a row may be so short that it is not sparse.
        dropping = dropped_as(self.dropout, training and not isinstance(length, int))
        attended = attention.of_fused(self.contents(inputs), self.num_heads, mask=attention_mask, **dropping)
        mixed = self.output_projection(attention.attend_sparsely(attended, self.blocks))
        if not return_probabilities:
            return mixed
        return mixed, attention.with_probabilities(attention.with_counts(attended, self.blocks))[1]

    def get_config(self):
        blocks = self.blocks and list(self.blocks)
        return {**super().get_config(), "blocks": blocks, "use_bias": self.has_bias_of_inputs}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BigBirdEncoder(FamilyEncoder):
    """Turns token IDs of long texts into vectors with BigBird (Zaheer et al. 2020), with memory linear in length.

    Differences from BERT: attention is between blocks of tokens. The first and the last block attend to all and are
    attended to by all; the others attend to their neighbours and to some random blocks. Dropout precedes the norm of
    the embeddings, and the tokenizer is SentencePiece. In place of the pooler, a TextClassifier has a dense layer with
    the encoder's activation. A QuestionAnswerer has a feed-forward layer in its head, and finds no answers in the
    question, as in transformers.

    Arguments and errors are those of BertEncoder, and:

    Args:
        random_blocks, attention_type (str, optional): replace those of the configuration. Default: None.
        task (str, optional): "text" for the encoder of a TextClassifier. Default: None.
        layers_of (BigBirdEncoder, optional): encoder of the same configuration whose layers are shared. Default: None.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size); `pooled_output` (batch, hidden_size), except for
            task "text"; and the optional outputs of BertEncoder.
    Raises: ValueError also for packed=True, if inputs may be too long for full attention.
    """

    config_class = BigBirdConfig

    def __init__(
        self, config, *, task=None, random_blocks=None, attention_type=None, layers_of=None, packed=False, **arguments
    ):
        given = {"random_blocks": random_blocks, "attention_type": attention_type}
        config = dataclasses.replace(config, **{name: value for name, value in given.items() if value is not None})
        layout = config.blocks_of(0)
        if packed and layout is not None and layout.may_be_sparse(config.max_length):
            raise ValueError(
                f"In packed rows of up to max_length {config.max_length} tokens, a block could hold several sequences. "
                f"Set max_length to at most {layout.longest_full}, for full attention, or "
                "attention_type='original_full', or prepare the data without --packed."
            )
        super().__init__(config, packed=packed, task=task, layers_of=layers_of, **arguments)
        self.task = task
        self.pooler_activation = config.activation if task == "text" else None

    @classmethod
    def inputs_of_rows(cls, packed, task, layers_of):
        return super().inputs_of_rows(packed) if layers_of is None else layers_of.input

    @staticmethod
    def connect(inputs, parts, task, layers_of):
        config = parts.config

        def block(number):
            return parts.block_with(number, BigBirdAttention, config.blocks_of(number), config.query_bias)

        if layers_of is None:
            scale = config.hidden_size**0.5 if config.rescale_embeddings else 1.0
            hidden = parts.summed_embeddings(inputs, config.hidden_size, scale)
            hidden = parts.norm("embeddings_norm")(parts.dropout("embeddings_dropout")(hidden))
            connected = parts.apply_layers(hidden, parts.context(inputs), block)
        else:
            connected = layers_of.connected._replace(pooled_output=None)
        return connected if task == "text" else parts.with_pooled(connected)

    def for_task(self, task):
        task = "text" if task == "text" else None
        return self if task == self.task else self.connected_for(task)

    def answer_vectors(self, outputs):
        config, vectors = self.config, outputs["sequence_output"]
        parts = Parts(config, self.dtype_policy, kernel_initializer(config), self.rematerialize, self.return_attention)
        activation = activation_function(config.activation)
        inner = parts.dropout("answer_dropout")(vectors)
        inner = parts.dense(config.intermediate_size, "answer_intermediate", activation)(inner)
        inner = parts.dropout("answer_output_dropout")(parts.dense(config.hidden_size, "answer_output")(inner))
        return parts.norm("answer_norm")(inner + vectors)

    def answer_penalty(self, rows):
        is_separator = ops.cast(ops.equal(rows["token_ids"], self.config.sep_id), "int32")
        before = ops.cumsum(is_separator, axis=1) - is_separator  # separators before each token
        has_question = ops.greater(ops.amax(is_separator, axis=1, keepdims=True), 0)
        is_question = ops.logical_and(ops.equal(before, 0), has_question)
        is_question = ops.cast(is_question, "float32") * NO_ANSWER
        # The first token stands for a question without an answer.
        return ops.expand_dims(ops.pad(is_question[:, 1:], [(0, 0), (1, 0)]), -1)

    def get_config(self):
        return {**super().get_config(), "task": self.task}


def block_rows(config):
    """The rows of a block, with or without a bias of queries, keys and values."""
    return tuple(row for row in bert.BLOCK_ROWS if config.query_bias or row[0] != "attention/query_key_value/bias")


FAMILY = bert.FAMILY._replace(
    encoder_class=BigBirdEncoder,
    block_rows=block_rows,
    head_rows=(
        *dense_rows("pooler", "bert.pooler"),
        *bert.MASKED_LM_ROWS,
        *dense_rows("next_sentence_head", "cls.seq_relationship"),
        *dense_rows("classifier", "classifier"),
        *dense_rows("answer_intermediate", "qa_classifier.intermediate.dense"),
        *dense_rows("answer_output", "qa_classifier.output.dense"),
        *norm_rows("answer_norm", "qa_classifier.output.LayerNorm"),
        *dense_rows("span_head", "qa_classifier.qa_outputs"),
    ),
    tasks=(*COMMON_TASKS, "ForPreTraining"),
    tasks_with_pooler=("ForMaskedLM", "ForTokenClassification"),
    names_by_task=dense_classifier("bert.pooler."),
)
