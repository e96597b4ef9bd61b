"""ELECTRA: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras

from keras_bert_impl.configurations.encoder_config import BERT_KEYS, EncoderConfig
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
class ElectraConfig(EncoderConfig):
    """Configuration of an ELECTRA model. The defaults are ELECTRA-Small's discriminator (Clark et al. 2020, table 6).

    Arguments and errors are those of BertConfig, without direction, with the defaults in the signature, and:

    Args:
        embedding_size (int, optional): width of the embeddings; unless it is hidden_size, a dense layer projects them
            to that width. Default: 128.
        activation (str, optional): only "gelu", with which transformers computes the heads. Default: "gelu".
    """

    hidden_size: int = 256
    num_heads: int = 4
    num_segments: int = 2
    embedding_size: int = 128

    model_type: typing.ClassVar = "electra"
    family: typing.ClassVar = "ELECTRA"
    heads_have_gelu: typing.ClassVar = True
    # (layers, width, heads). The discriminators are those of table 6; the generators those of the published
    # checkpoints, of which the small one is as wide as its discriminator, unlike the paper's.
    named_sizes: typing.ClassVar = {
        "electra_small": (12, 256, 4),
        "electra_base": (12, 768, 12),
        "electra_large": (24, 1024, 16),
        "electra_small_generator": (12, 256, 4),
        "electra_base_generator": (12, 256, 4),
        "electra_large_generator": (24, 256, 4),
    }
    named_fields: typing.ClassVar = {
        f"electra_{size}{part}": {"embedding_size": width}
        for size, width in (("small", 128), ("base", 768), ("large", 1024))
        for part in ("", "_generator")
    }
    huggingface_keys: typing.ClassVar = (
        *BERT_KEYS[:5],
        ("embedding_size", "embedding_size"),
        *BERT_KEYS[5:],
    )
    # How the multiple-choice head summarizes a row.
    fixed_values: typing.ClassVar = {
        "position_embedding_type": "absolute",
        "summary_type": "first",
        "summary_use_proj": True,
        "summary_activation": "gelu",
    }
    pair_tasks: typing.ClassVar = ()

    def generator(self, share):
        """Returns the configuration of a generator whose width, feed-forward layer and heads are this share of the
        discriminator's (section 3.2: a quarter to a half), with as many layers and the same embeddings.

        Raises: ValueError if the share does not give whole heads.
        """
        return dataclasses.replace(
            self,
            hidden_size=round(share * self.hidden_size),
            num_heads=max(1, round(share * self.num_heads)),
            intermediate_size=max(1, round(share * self.intermediate_size)),
        )


# What generator and discriminator share; the fields of their configurations must agree in these sizes.
EMBEDDING_LAYERS = ("token_embedding", "position_embedding", "segment_embedding", "embeddings_norm")
EMBEDDING_SIZES = ("vocabulary_size", "embedding_size", "max_length", "num_segments", "layer_norm_epsilon")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ElectraEncoder(FamilyEncoder):
    """Turns token IDs into vectors with ELECTRA (Clark et al. 2020), as a functional Keras model.

    Differences from BERT: pre-training detects, at every token, whether a small generator has replaced it
    (`ElectraPretrainer`); a dense layer projects embeddings of another width than the blocks; generator and
    discriminator share the embeddings; there is no pooler and no next-sentence head, and classifiers have a dense GELU
    layer of their own. Arguments and errors are those of BertEncoder, and:

    Args:
        embeddings_of (ElectraEncoder, optional): encoder whose embedding layers this one shares, norm included (section
            3.2). A copy made from the configuration has embeddings of its own. Default: None.

    Input:  dict of `token_ids`, `segment_ids`, `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size), and the optional outputs of BertEncoder.
    Raises: ValueError also if the embeddings of `embeddings_of` have other sizes.
    """

    config_class = ElectraConfig
    pooler_activation = "gelu"
    usual_generator_size = 0.25  # of the width and the heads

    @staticmethod
    def connect(inputs, parts, embeddings_of=None):
        config = parts.config
        embeddings = embedding_layers(parts) if embeddings_of is None else shared(embeddings_of, config)
        hidden = embeddings["token_embedding"](inputs["token_ids"])  # (batch, length, embedding_size)
        position_rows = embeddings["position_embedding"](hidden, position_ids=inputs.get("position_ids"))
        hidden = parts.sum_of(hidden, embeddings["segment_embedding"](inputs["segment_ids"]), position_rows)
        hidden = parts.dropout("embeddings_dropout")(embeddings["embeddings_norm"](hidden))
        if config.embedding_size != config.hidden_size:
            hidden = parts.dense(config.hidden_size, "embeddings_projection")(hidden)  # (batch, length, hidden_size)
        return parts.apply_layers(hidden, parts.context(inputs))

    def generator(self, share):
        """Returns a generator for `ElectraPretrainer`, with this share of the width and heads; it shares the
        embeddings."""
        return ElectraEncoder(
            self.config.generator(share),
            packed=self.packed,
            rematerialize=self.rematerialize,
            dtype=self.dtype_policy,
            name="electra_generator",
            embeddings_of=self,
        )


def embedding_layers(parts):
    """New embedding layers by name."""
    width = parts.config.embedding_size
    layers = (
        parts.token_embedding(width),
        parts.position_embedding(),
        parts.segment_embedding(width),
        parts.norm("embeddings_norm"),
    )
    return dict(zip(EMBEDDING_LAYERS, layers, strict=True))


def shared(encoder, config):
    """Returns the embedding layers of another encoder by name. Raises ValueError if they do not fit the
    configuration."""
    for name in EMBEDDING_SIZES:
        theirs, ours = getattr(encoder.config, name), getattr(config, name)
        if theirs != ours:
            raise ValueError(f"Encoders that share embeddings need the same {name}, not {theirs} and {ours}.")
    return {name: encoder.get_layer(name) for name in EMBEDDING_LAYERS}


PREFIX = "electra."
EMBEDDING_ROWS = (
    *with_prefix(bert.EMBEDDING_ROWS, PREFIX),
    *dense_rows("embeddings_projection", "electra.embeddings_project"),
)
HEAD_ROWS = (
    *dense_rows("pooler", "sequence_summary.summary"),
    *masked_lm_rows("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
    *dense_rows("replaced_token_transform", "discriminator_predictions.dense"),
    *dense_rows("replaced_token_head", "discriminator_predictions.dense_prediction"),
    *COMMON_HEAD_ROWS,
)
FAMILY = Family(
    encoder_class=ElectraEncoder,
    prefix=PREFIX,
    bare_beginnings=("embeddings.", "embeddings_project.", "encoder."),
    embedding_rows=EMBEDDING_ROWS,
    block="electra.encoder.layer.{}.",
    block_rows=bert.BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=("generator_lm_head.weight", "electra.embeddings.position_ids", "electra.embeddings.token_type_ids"),
    tasks=(*COMMON_TASKS, "ForPreTraining"),
    dropout_key="classifier_dropout",
    # The dense layer before a classifier has another name in a multiple-choice model than in a text classifier.
    names_by_task=dense_classifier("sequence_summary.summary."),
)
