"""Longformer: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras
from keras import ops

from keras_bert_impl.configurations.encoder_config import BERT_KEYS
from keras_bert_impl.configurations.family import dense_rows
from keras_bert_impl.distribution import BY_COLUMNS
from keras_bert_impl.encoders import bert, roberta
from keras_bert_impl.encoders.encoder import FamilyEncoder
from keras_bert_impl.kernels import attention
from keras_bert_impl.layers import Dropout, GlobalTokens, MultiHeadSelfAttention
from keras_bert_impl.layers.dropout import dropped_as
from keras_bert_impl.layers.self_attention import split_dense
from keras_bert_impl.suggestions import one_of

# Which tokens are global where the configuration leaves it to the head, as in transformers: for texts the first token,
# for questions all before the first separator, for choices all after the separators between the texts. Heads for masked
# words and token labels have none.
OF_TASKS = {"text": "first", "question": "first_text", "choice": "second_text"}
GLOBAL_TOKENS = ("none", "first", "first_text", "second_text", "given")
GLOBAL_MASK = "global_mask"  # the input of "given"


@dataclasses.dataclass(frozen=True)
class LongformerConfig(roberta.RobertaConfig):
    """Configuration of a Longformer model. The defaults are longformer-base-4096 (Beltagy et al. 2020, section 5).

    Arguments and errors are those of RobertaConfig, with the defaults in the signature, and:

    Args:
        attention_window (int or list of int, optional): number of tokens in a window besides the token itself, half of
            them on each side: 512 is 256 before and 256 after. An even number for all layers, or one for each.
            Default: 512.
        sep_id (int, optional): ID of the separator token, which divides the texts of a pair. Default: 2.
        global_tokens (str, optional): which tokens attend to all others and are attended to by all: "none"; "first",
            the first token; "first_text", all before the first separator; "second_text", all after the two separators
            between the texts; "given", those where the input `global_mask` is 1. transformers does not have this field:
            pass it such tokens as `global_attention_mask`. Default: None, which leaves it to the head.
        max_global_tokens (int, optional): largest number of global tokens in a sequence, so that graphs have fixed
            shapes; "first" needs only one. Texts with more raise ValueError; for token IDs with more, all outputs are
            NaN. transformers does not have this field. Default: 128.
    """

    max_length: int = 4096
    attention_window: int | tuple = 512
    sep_id: int = 2
    global_tokens: str | None = None
    max_global_tokens: int = 128

    model_type: typing.ClassVar = "longformer"
    family: typing.ClassVar = "Longformer"
    # (layers, width, heads). The first has the shape of bert_tiny; no model of its size was published.
    named_sizes: typing.ClassVar = {
        "longformer_tiny": (2, 128, 2),
        "longformer_base": (12, 768, 12),
        "longformer_large": (24, 1024, 16),
    }
    left_out: typing.ClassVar = {
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
        "max_position_embeddings": 512,
    }
    huggingface_keys: typing.ClassVar = (*BERT_KEYS, ("attention_window", "attention_window"))
    optional_keys: typing.ClassVar = (
        *roberta.RobertaConfig.optional_keys,
        ("sep_id", "sep_token_id"),
        ("global_tokens", "global_tokens"),
        ("max_global_tokens", "max_global_tokens"),
    )

    def __post_init__(self):
        super().__post_init__()
        several = isinstance(self.attention_window, list | tuple)
        windows = tuple(self.attention_window) if several else (self.attention_window,) * self.num_layers
        if len(windows) != self.num_layers or any(window % 2 or window < 1 for window in windows):
            raise ValueError(
                f"attention_window must be an even number of at least 2, or one for each of the {self.num_layers} "
                f"layers, not {self.attention_window}."
            )
        # transformers writes a list even where all are equal.
        object.__setattr__(self, "attention_window", windows[0] if len(set(windows)) == 1 else windows)
        one_of("global_tokens", self.global_tokens, (None, *GLOBAL_TOKENS))

    @property
    def windows(self):
        several = isinstance(self.attention_window, tuple)
        each = self.attention_window if several else (self.attention_window,) * self.num_layers
        return [window // 2 for window in each]

    def to_huggingface(self):
        unset = [
            name for name in ("global_tokens", "max_global_tokens") if getattr(self, name) == getattr(type(self), name)
        ]
        found = {name: value for name, value in super().to_huggingface().items() if name not in unset}
        return {**found, "attention_window": self.to_dict()["attention_window"]}

    def to_dict(self):
        window = self.attention_window
        # JSON has no tuples.
        return {**super().to_dict(), "attention_window": list(window) if isinstance(window, tuple) else window}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LongformerAttention(MultiHeadSelfAttention):
    """Self-attention within a window, and of global tokens with the whole sequence (Beltagy et al. 2020, section 3.1).

    All tokens attend to those in their window and to the global ones, by the same keys and values, each once. The
    output of a global token is computed by a second set of projections from the whole sequence, and replaces that of
    the first set.

    Args: those of MultiHeadSelfAttention.

    Input:  as for MultiHeadSelfAttention, where a mask is the same for all queries of a sequence unless there are
            `sequence_ids`; and without these optionally `global_places`, int32 (batch, count), -1 for none.
    Output: as for MultiHeadSelfAttention; padded queries attend to nothing, as in transformers, and get the bias of the
            last kernel.
    """

    def __init__(self, num_heads, dropout_rate=0.0, initializer="glorot_uniform", **kwargs):
        super().__init__(num_heads, dropout_rate, initializer, **kwargs)
        self.global_dropout = Dropout(dropout_rate, seed=self.seed, dtype=self.dtype_policy, name="global_dropout")

    @property
    def dropouts(self):
        return [*super().dropouts, self.global_dropout]

    def build(self, inputs_shape):
        super().build(inputs_shape)
        self.global_query, self.global_key, self.global_value = (
            split_dense(self, inputs_shape, inputs_shape[-1], f"global_{name}", BY_COLUMNS, self.initializer)
            for name in ("query", "key", "value")
        )
        self.global_dropout.build(inputs_shape)

    def call(
        self,
        inputs,
        attention_mask=None,
        sequence_ids=None,
        attention_bias=None,
        window=None,
        positions=None,
        query_states=None,
        global_places=None,
        training=False,
        return_probabilities=False,
    ):
        computed = attention.with_probabilities if return_probabilities else _without_probabilities
        local = attention.of_fused(
            self.contents(inputs, query_states),
            self.num_heads,
            mask=attention_mask,
            bias=attention_bias,
            window=window,
            sequence_ids=sequence_ids,
            global_places=global_places,
            **dropped_as(self.dropout, training),
        )
        is_token = ops.expand_dims(ops.greater(attention.numbers_of(local), 0), -1)  # (batch, length, 1)
        mixed, probabilities = computed(local)
        mixed = ops.where(is_token, mixed, 0)
        if return_probabilities:
            probabilities = ops.where(ops.expand_dims(is_token, 1), probabilities, 0)
        if global_places is not None:
            queried = attention.at_places(inputs, global_places)  # (batch, count, width)
            of_row = attention.AttentionInputs(
                self.global_query(queried),
                self.global_key(inputs),
                self.global_value(inputs),
                self.num_heads,
                mask=attention_mask,
                **dropped_as(self.global_dropout, training),
            )
            # No fused form takes more keys than queries; these probabilities are linear in the length.
            of_global, global_probabilities = attention.with_probabilities(of_row)
            mixed = attention.with_global_rows(mixed, of_global, global_places)
            if return_probabilities:
                probabilities = attention.with_global_queries(probabilities, global_probabilities, global_places)
        mixed = self.output_projection(mixed)
        return (mixed, probabilities) if return_probabilities else mixed

    def train_global(self, are_used):
        """Trains the projections of global tokens, or freezes them where there are no such tokens: without a gradient,
        weight decay alone would change them."""
        for layer in (self.global_query, self.global_key, self.global_value):
            if layer.trainable != are_used:
                layer.trainable = are_used


def _without_probabilities(inputs):
    return attention.attend(inputs), None


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LongformerEncoder(FamilyEncoder):
    """Turns token IDs of long texts into vectors with Longformer (Beltagy et al. 2020), with memory linear in length.

    Differences from RoBERTa: a token attends to a window around it and to global tokens, which attend to the whole
    sequence by projections of their own. Which tokens are global depends on the head, as in transformers: the first
    token for a TextClassifier, the question for a QuestionAnswerer, the choice for MultipleChoice, none for the others.

    Arguments and errors are those of BertEncoder, and:

    Args:
        global_tokens (str, optional): replaces the configuration's; "given" adds an input `global_mask`. Default: None.
        max_global_tokens (int, optional): replaces the configuration's. Default: None.
        task (str, optional): task of the head, which decides about global tokens if the configuration does not: "text",
            "question" or "choice". Default: None.
        layers_of (LongformerEncoder, optional): encoder of the same configuration whose layers are shared.
            Default: None.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length); with "given" also
            `global_mask`, 1 for global tokens. With one segment, `segment_ids` are ignored.
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size), and the
            optional outputs of BertEncoder. Sequences with more global tokens than max_global_tokens are NaN.
    Raises: ValueError also for packed=True with global tokens.
    """

    config_class = LongformerConfig

    def __init__(
        self,
        config,
        *,
        task=None,
        global_tokens=None,
        max_global_tokens=None,
        layers_of=None,
        packed=False,
        **arguments,
    ):
        given = {"global_tokens": global_tokens, "max_global_tokens": max_global_tokens}
        config = dataclasses.replace(config, **{name: value for name, value in given.items() if value is not None})
        rule = config.global_tokens or (OF_TASKS[task] if task else "none")
        if packed and rule != "none":
            raise ValueError(
                f"global_tokens {rule!r}: packed rows have no global tokens. Build the encoder without packed, or with "
                "global_tokens='none'."
            )
        super().__init__(config, packed=packed, rule=rule, layers_of=layers_of, **arguments)
        self.task, self.rule = task, rule
        for number in config.schedule:
            block = self.get_layer(f"block_{number}")  # which may be frozen, if it was made for another encoder
            block.attention.train_global(rule != "none" and block.trainable)

    @classmethod
    def inputs_of_rows(cls, packed, rule, layers_of):
        if layers_of is not None:
            return layers_of.input
        return super().inputs_of_rows(packed, [GLOBAL_MASK] if rule == "given" else [])

    @staticmethod
    def connect(inputs, parts, rule, layers_of):
        config = parts.config

        def block(number):
            if layers_of is not None:
                return layers_of.get_layer(f"block_{number}")
            return parts.block_with(number, LongformerAttention)

        is_first = layers_of is None
        embeddings = roberta.embedded(inputs, parts) if is_first else layers_of.hidden_states()[0]
        hidden, places = embeddings, None
        if rule != "none":
            # Room for one, the first token, which cannot be too many.
            most = 1 if rule == "first" else config.max_global_tokens
            found = GlobalTokens(rule, most, config.sep_id, name="global_tokens")(
                inputs["token_ids"], inputs["padding_mask"], global_mask=inputs.get(GLOBAL_MASK)
            )
            places = found["places"]
            # A graph cannot raise an error: better no output than one that leaves global tokens out.
            hidden = ops.where(ops.expand_dims(found["too_many"], (1, 2)), float("nan"), embeddings)
        context = parts.context(inputs)
        contexts = [{**context, "window": window, "global_places": places} for window in config.windows]
        connected = parts.apply_layers(hidden, contexts, block)
        hidden_states = [embeddings, *connected.hidden_states[1:]]
        pooler = parts.pooler if is_first else layers_of.get_layer("pooler")
        return connected._replace(hidden_states=hidden_states, pooled_output=pooler(hidden_states[-1][:, 0]))

    @property
    def unused_weights(self):
        if self.rule != "none":
            return frozenset()
        return frozenset(weight.path for weight in self.weights if "/attention/global_" in weight.path)

    def for_task(self, task):
        if self.config.global_tokens is not None or OF_TASKS[task] == self.rule:
            return self
        return self.connected_for(task)

    def check_texts(self, first, second, template):
        """Raises ValueError for a text with more global tokens than max_global_tokens."""
        is_first, most = self.rule == "first_text", self.config.max_global_tokens
        if not is_first and (self.rule != "second_text" or second is None):
            return
        control = len(template.before if is_first else template.after)
        for number, ids in enumerate(first if is_first else second):
            if len(ids) + control > most:
                which = "first" if is_first else "second"
                raise ValueError(
                    f"The {which} text of example {number} has {len(ids)} tokens, which with {control} control tokens "
                    f"are more global tokens than the encoder's max_global_tokens {most}. Shorten the text, or build "
                    f"the encoder with max_global_tokens={len(ids) + control}, also a field of config.json."
                )

    def get_config(self):
        return {**super().get_config(), "task": self.task}


FAMILY = roberta.FAMILY.renamed(
    "longformer.",
    encoder_class=LongformerEncoder,
    block_rows=(
        *bert.BLOCK_ROWS,
        *(
            row
            for name in ("query", "key", "value")
            for row in dense_rows(f"attention/global_{name}", f"attention.self.{name}_global")
        ),
    ),
)
