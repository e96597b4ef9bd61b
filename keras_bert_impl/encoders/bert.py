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
    """Configuration of a BERT model. The defaults are BERT-base, uncased (Devlin et al. 2019, section 3).

    `BertConfig.from_name` has the published sizes: bert_tiny, bert_mini, bert_small, bert_medium (Turc et al. 2019),
    bert_base and bert_large.

    Args:
        vocabulary_size (int, optional): number of tokens in the vocabulary. Default: 30522.
        hidden_size (int, optional): width of every layer, a multiple of num_heads. Default: 768.
        num_layers (int, optional): number of transformer blocks. Default: 12.
        num_heads (int, optional): number of attention heads. Default: 12.
        intermediate_size (int, optional): width of the feed-forward layer. Default: 4 * hidden_size, as in the paper.
        activation (str, optional): "gelu", the exact function, as in Hugging Face; "gelu_tanh", the approximation in
            Google's code; or a name of Keras, such as "relu". Default: "gelu".
        hidden_dropout_rate (float, optional): dropout of hidden states. Default: 0.1, as in the paper (appendix A.2).
        attention_dropout_rate (float, optional): dropout of attention. Default: 0.1, as in the paper.
        max_length (int, optional): number of positions, hence the largest number of tokens. Default: 512.
        num_segments (int, optional): number of segment embeddings. With 1, both texts of a pair share it. Default: 2.
        initializer_range (float, optional): standard deviation of the truncated normal that weights start from.
            Default: 0.02.
        layer_norm_epsilon (float, optional): epsilon of layer norms. Default: 1e-12, as in Google's code.
        pad_id (int, optional): ID of [PAD]. Default: 0.
        tie_word_embeddings (bool, optional): whether a masked-LM head scores words by the token embedding.
            Default: True.
        direction (str, optional): which tokens a token attends to: "both" sides, as in BERT; "left_to_right", itself
            and earlier ones, as in GPT (section 5.1; Hugging Face's `is_decoder`); or "right_to_left", itself and later
            ones, which transformers does not have. Default: "both".

    Raises: ValueError that names the field, for an invalid size, token ID or direction.

    Example:
        >>> config = kbi.BertConfig.from_name("bert_tiny", vocabulary_size=8000)
        >>> config.num_layers, config.hidden_size, config.max_length
        (2, 128, 512)
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
        """Reads google-research/bert's `bert_config.json`, whose "gelu" is the tanh approximation.

        Args:
            path (str or pathlib.Path): the file.

        Returns: a `BertConfig`.
        Raises: ValueError if the file is not the configuration of a BERT model.
        """
        return cls.from_keys(path, read_json(path), GOOGLE_ACTIVATIONS)

    def to_google(self):
        """Returns the content of a `bert_config.json`, a dict. It has no key for fields that Google's code does not
        have, such as direction.

        Raises: ValueError for exact GELU, which Google's code does not have.
        """
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
    """Turns token IDs into vectors: the transformer encoder of Devlin et al. 2019, as a functional Keras model.

    `BertEncoder.from_pretrained` opens a checkpoint; the constructor makes random weights, for pre-training. To train a
    task, put the encoder into a model such as `TextClassifier`, or build layers on its outputs.

    Args:
        config (BertConfig): configuration.
        packed (bool, optional): whether an example may hold several sequences; adds the inputs `position_ids` and
            `sequence_ids`. Default: False.
        return_hidden_states (bool, optional): adds the output `hidden_states`, (batch, layers + 1, length,
            hidden_size), the embeddings first. Default: False.
        return_attention (bool, optional): adds the output `attention_probabilities`, (batch, layers, heads, length,
            length). Default: False.
        rematerialize (bool, optional): whether training computes each block twice to save memory (gradient
            checkpointing). Default: False.
        dtype (str, optional): dtype policy of all layers, such as "mixed_bfloat16". Default: Keras' global policy.
        name (str, optional): name of the model. Default: "bert_encoder".
        trainable (bool, optional): whether the weights are trained. Default: True.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size), and `pooled_output` (batch, hidden_size), a dense
            tanh layer over the first token, or with direction "left_to_right" over the last one.
    Raises: ValueError for inputs longer than `config.max_length`, and for rematerialize with return_attention.

    Example:
        >>> encoder = kbi.BertEncoder.from_pretrained("small_english")
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> outputs = encoder(tokenizer(["A cat sleeps.", "A dog rests."]))
        >>> {name: tuple(array.shape) for name, array in sorted(outputs.items())}
        {'pooled_output': (2, 256), 'sequence_output': (2, 32, 256)}
        >>> score = keras.layers.Dense(1)(encoder.output["pooled_output"])
        >>> model = keras.Model(encoder.input, score)  # a head of your own
    """

    config_class = BertConfig

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden = parts.normalized(parts.summed_embeddings(inputs, config.hidden_size))
        connected = parts.apply_layers(hidden, parts.context(inputs, config.direction))
        # With left-to-right attention, only the last token sees all others.
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
