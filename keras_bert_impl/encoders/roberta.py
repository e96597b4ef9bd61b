"""RoBERTa and XLM-RoBERTa: configurations, encoders, and the names of their tensors."""

import dataclasses
import typing

import keras

from keras_bert_impl.configurations.encoder_config import EncoderConfig
from keras_bert_impl.configurations.family import (
    COMMON_HEAD_ROWS,
    COMMON_TASKS,
    Family,
    dense_classifier,
    dense_rows,
    masked_lm_rows,
    with_prefix,
)
from keras_bert_impl.encoders import bert
from keras_bert_impl.encoders.encoder import FamilyEncoder


@dataclasses.dataclass(frozen=True)
class RobertaConfig(EncoderConfig):
    """Configuration of a RoBERTa model. The defaults are roberta-base (Liu et al. 2019, section 3.1 and table 9).

    Arguments and errors are those of BertConfig, without direction, with the defaults in the signature, and:

    Args:
        max_length (int, optional): largest number of tokens. There are pad_id + 1 more position embeddings, and
            `config.json` gives their number: 514 for 512. Default: 512.
        num_segments (int, optional): number of segment embeddings. Default: 1, which all tokens share.
        activation (str, optional): only "gelu", with which transformers computes the heads. Default: "gelu".
        pad_id (int, optional): ID of the padding token; positions are counted from pad_id + 1. Default: 1.
    """

    vocabulary_size: int = 50265
    num_segments: int = 1
    layer_norm_epsilon: float = 1e-5
    pad_id: int = 1

    model_type: typing.ClassVar = "roberta"
    family: typing.ClassVar = "RoBERTa"
    other_model_types: typing.ClassVar = ("camembert",)
    heads_have_gelu: typing.ClassVar = True
    # (layers, width, heads). Published are base, large and, by Sanh et al. 2019, the distilled one; the small one has
    # the shape of BERT-small (Turc et al. 2019).
    named_sizes: typing.ClassVar = {
        "roberta_small": (4, 512, 8),
        "distilroberta_base": (6, 768, 12),
        "roberta_base": (12, 768, 12),
        "roberta_large": (24, 1024, 16),
    }
    left_out: typing.ClassVar = {"layer_norm_eps": 1e-12, "type_vocab_size": 2}
    pair_tasks: typing.ClassVar = ()

    @property
    def num_positions(self):
        return self.max_length + self.pad_id + 1

    @classmethod
    def from_content(cls, path, found):
        config = super().from_content(path, found)  # whose max_length is still the number of rows
        return dataclasses.replace(config, max_length=config.max_length - config.pad_id - 1)

    def to_huggingface(self):
        return {**super().to_huggingface(), "max_position_embeddings": self.num_positions}


@dataclasses.dataclass(frozen=True)
class XLMRobertaConfig(RobertaConfig):
    """Configuration of an XLM-RoBERTa model. The defaults are xlm-roberta-base (Conneau et al. 2020, section 3).

    Arguments and errors are those of RobertaConfig.
    """

    vocabulary_size: int = 250002

    model_type: typing.ClassVar = "xlm-roberta"
    family: typing.ClassVar = "XLM-RoBERTa"
    named_sizes: typing.ClassVar = {"xlm_roberta_base": (12, 768, 12), "xlm_roberta_large": (24, 1024, 16)}


def embedded(inputs, parts):
    """The normalized sum of the embeddings (batch, length, hidden_size), with positions counted over the tokens."""
    width = parts.config.hidden_size
    hidden = parts.token_embedding(width)(inputs["token_ids"])
    positions = parts.padding_aware_positions(width)
    position_rows = positions(inputs["padding_mask"], position_ids=inputs.get("position_ids"))
    return parts.normalized(parts.sum_of(hidden, parts.segment_embedding(width)(inputs["segment_ids"]), position_rows))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RobertaEncoder(FamilyEncoder):
    """Turns token IDs into vectors with RoBERTa (Liu et al. 2019), as a functional Keras model.

    Differences from BERT: pre-training predicts masked words only, in full sentences, masked anew in every epoch; the
    tokenizer is byte-level BPE; positions are counted over the tokens that are not padding, from pad_id + 1 on; there
    is one segment, so that only separators divide the texts of a pair; and the epsilon of norms is 1e-5. Classifiers
    have a dense tanh layer of their own, which is the pooler here. Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length). With one segment,
            `segment_ids` are ignored.
    Output: dict of `sequence_output` (batch, length, hidden_size) and `pooled_output` (batch, hidden_size), and the
            optional outputs of BertEncoder.
    """

    config_class = RobertaConfig

    @staticmethod
    def connect(inputs, parts):
        return parts.with_pooled(parts.apply_layers(embedded(inputs, parts), parts.context(inputs)))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class XLMRobertaEncoder(RobertaEncoder):
    """Turns token IDs into vectors with XLM-RoBERTa (Conneau et al. 2020): RoBERTa with a multilingual vocabulary.

    Arguments, inputs, outputs and errors are those of RobertaEncoder.
    """

    config_class = XLMRobertaConfig


PREFIX = "roberta."
EMBEDDING_ROWS = with_prefix(bert.EMBEDDING_ROWS, PREFIX)
HEAD_ROWS = (
    *dense_rows("pooler", "roberta.pooler.dense"),
    *masked_lm_rows("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    *COMMON_HEAD_ROWS,
)
FAMILY = Family(
    encoder_class=RobertaEncoder,
    prefix=PREFIX,
    bare_beginnings=("embeddings.", "encoder.", "pooler."),
    embedding_rows=EMBEDDING_ROWS,
    block="roberta.encoder.layer.{}.",
    block_rows=bert.BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=(
        "lm_head.decoder.weight",
        "lm_head.decoder.bias",
        "roberta.embeddings.position_ids",
        "roberta.embeddings.token_type_ids",
    ),
    tasks=COMMON_TASKS,
    dropout_key="classifier_dropout",
    names_by_task=dense_classifier("roberta.pooler.dense."),
)
XLM_FAMILY = FAMILY._replace(encoder_class=XLMRobertaEncoder)
