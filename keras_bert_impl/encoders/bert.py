"""BERT: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras

from keras_bert_impl.configurations.encoder_config import EncoderConfig
from keras_bert_impl.configurations.family import (
    COMMON_HEAD_ROWS,
    COMMON_TASKS,
    SAME,
    Family,
    attention_rows,
    dense_rows,
    masked_lm_rows,
    norm_rows,
)
from keras_bert_impl.encoders.encoder import FamilyEncoder
from keras_bert_impl.features import DIRECTIONS
from keras_bert_impl.json_files import read_json
from keras_bert_impl.layers import LastToken
from keras_bert_impl.suggestions import one_of

# "gelu" means the tanh approximation in Google's code and the exact function in Hugging Face's:
# the activations of one checkpoint differ by about 1e-3 between the two.
GOOGLE_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}


RIGHT_TO_LEFT = "bert_right_to_left"  # the model_type of a BERT that reads from right to left


@dataclasses.dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The shape of a BERT encoder; the defaults are BERT-base, uncased (Devlin et al. 2019, section 3).

    Args:
        vocabulary_size: rows of the token embedding.
        hidden_size: width H of every layer; a multiple of `num_heads`.
        num_layers: transformer blocks L.
        num_heads: attention heads A.
        intermediate_size: width of the feed-forward layer; None means 4 * hidden_size, as in the paper.
        activation: "gelu" (exact, the default as in Hugging Face), "gelu_tanh" (the approximation that
            Google's code computes) or "relu".
        hidden_dropout_rate, attention_dropout_rate: 0.1 in the paper (appendix A.2).
        max_length: rows of the position table, hence the longest row in tokens.
        num_segments: rows of the segment table. With one, both texts of a pair have it.
        initializer_range: standard deviation of the truncated normal that weights start from.
        layer_norm_epsilon: 1e-12 in Google's code.
        pad_id: the id of [PAD], written to Hugging Face's config.json.
        direction: which tokens a token attends to: "both" sides as in BERT, "left_to_right" itself and those before it,
            as in GPT (section 5.1; Hugging Face's `is_decoder`), or "right_to_left" itself and those after it, which
            transformers does not have: its model_type is then one that transformers refuses.

    Raises: ValueError for a shape that no BERT can have, naming field and value.
    """

    num_segments: int = 2
    direction: str = "both"

    model_type: typing.ClassVar = "bert"
    family: typing.ClassVar = "BERT"
    # Base and large from table 1's text in Devlin et al. 2019, section 3; the others from Turc et al. 2019
    # ("Well-Read Students Learn Better"), table 1. (layers, width, heads)
    named_sizes: typing.ClassVar = {
        "bert_tiny": (2, 128, 2),
        "bert_mini": (4, 256, 4),
        "bert_small": (4, 512, 8),
        "bert_medium": (8, 512, 8),
        "bert_base": (12, 768, 12),
        "bert_large": (24, 1024, 16),
    }
    may_be_causal: typing.ClassVar = True
    other_model_types: typing.ClassVar = (RIGHT_TO_LEFT,)

    def __post_init__(self):
        super().__post_init__()
        one_of("direction", self.direction, DIRECTIONS)

    @classmethod
    def from_content(cls, path, found):
        config = super().from_content(path, found)
        if found.get("model_type") == RIGHT_TO_LEFT:
            return dataclasses.replace(config, direction="right_to_left")
        return dataclasses.replace(config, direction="left_to_right") if found.get("is_decoder") else config

    def to_huggingface(self):
        of_direction = {"left_to_right": {"is_decoder": True}, "right_to_left": {"model_type": RIGHT_TO_LEFT}}
        return {**super().to_huggingface(), **of_direction.get(self.direction, {})}

    @classmethod
    def from_google(cls, path):
        """Reads google-research/bert's `bert_config.json`; its "gelu" is the tanh approximation."""
        return cls.from_keys(path, read_json(path), GOOGLE_ACTIVATIONS)

    def to_google(self):
        """The dict of a `bert_config.json`. Raises ValueError for exact GELU, which Google's code does not have."""
        activations = {ours: theirs for theirs, ours in GOOGLE_ACTIVATIONS.items()}
        if self.activation not in activations:
            raise ValueError(
                f"Google's code cannot compute activation {self.activation!r}: its 'gelu' is the tanh approximation. "
                "Set activation='gelu_tanh' to accept the difference, which is about 1e-3 for exact GELU."
            )
        return {
            **{theirs: getattr(self, ours) for ours, theirs in self.huggingface_keys},
            self.activation_key: activations[self.activation],
        }


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEncoder(FamilyEncoder):
    """The transformer encoder of Devlin et al. 2019, as a functional model.

    Args:
        config: a BertConfig.
        packed: whether rows may hold several sequences; adds the inputs `position_ids` and `sequence_ids`.
        return_hidden_states: adds the output `hidden_states`, (batch, layers + 1, length, hidden_size), the
            embeddings first.
        return_attention: adds the output `attention_probabilities`, (batch, layers, heads, length, length).
        rematerialize: whether training computes each block a second time for its gradients, instead of keeping its
            activations in memory (gradient checkpointing).
        dtype: dtype policy of all layers, for example "mixed_bfloat16"; default is Keras' global policy.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size):
            a dense tanh layer over the first token, as in Google's code; over the last one of a row that is read from
            left to right, whose first token sees no other.
    Raises: ValueError for a row longer than `config.max_length`, and for both `rematerialize` and `return_attention`.
    """

    config_class = BertConfig

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden = parts.normalized(parts.summed_embeddings(inputs, config.hidden_size))
        connected = parts.apply_layers(hidden, parts.context(inputs, config.direction))
        # Of a row that is read from left to right, only the last token sees all others.
        hidden, is_causal = connected.hidden_states[-1], config.direction == "left_to_right"
        last = LastToken(dtype=parts.policy, name="last_token")
        whole = last(hidden, inputs["padding_mask"]) if is_causal else hidden[:, 0]
        return connected._replace(pooled_output=parts.pooler(whole))


EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("bert.embeddings.word_embeddings.weight",), SAME),
    ("position_embedding/embeddings", ("bert.embeddings.position_embeddings.weight",), SAME),
    ("segment_embedding/embeddings", ("bert.embeddings.token_type_embeddings.weight",), SAME),
    *norm_rows("embeddings_norm", "bert.embeddings.LayerNorm"),
)
BLOCK_ROWS = (
    *attention_rows([f"attention.self.{n}" for n in ("query", "key", "value")], "attention.output.dense"),
    *norm_rows("attention_norm", "attention.output.LayerNorm"),
    *dense_rows("intermediate", "intermediate.dense"),
    *dense_rows("output", "output.dense"),
    *norm_rows("output_norm", "output.LayerNorm"),
)
MASKED_LM_ROWS = masked_lm_rows(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
)
HEAD_ROWS = (
    *dense_rows("pooler", "bert.pooler.dense"),
    *MASKED_LM_ROWS,
    *dense_rows("next_sentence_head", "cls.seq_relationship"),
    *COMMON_HEAD_ROWS,
)
# SpanBERT's second head, which transformers does not have: it reports these tensors as unexpected, and leaves them out.
SPAN_BOUNDARY_ROWS = (
    ("span_boundary_head/positions", ("span_boundary_head.positions.weight",), SAME),
    *(
        row
        for number in (1, 2)
        for row in (
            *dense_rows(f"span_boundary_head/transform_{number}", f"span_boundary_head.{number}"),
            *norm_rows(f"span_boundary_head/norm_{number}", f"span_boundary_head.{number}.LayerNorm"),
        )
    ),
    ("span_boundary_head/output_bias", ("span_boundary_head.bias",), SAME),
)
FAMILY = Family(
    encoder_class=BertEncoder,
    prefix="bert.",
    bare_beginnings=("embeddings.", "encoder.", "pooler."),
    embedding_rows=EMBEDDING_ROWS,
    block="bert.encoder.layer.{}.",
    block_rows=BLOCK_ROWS,
    head_rows=HEAD_ROWS + SPAN_BOUNDARY_ROWS,
    # Copies of tied weights, and positions 0, 1, 2, ...
    redundant=(
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
        "bert.embeddings.position_ids",
        "bert.embeddings.token_type_ids",
    ),
    tasks=(*COMMON_TASKS, "ForPreTraining", "ForNextSentencePrediction"),
    dropout_key="classifier_dropout",
)
