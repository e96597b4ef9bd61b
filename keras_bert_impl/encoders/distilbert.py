"""DistilBERT: configuration, encoder, and the names of its tensors in Hugging Face's format."""

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


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """Configuration of a DistilBERT model. The defaults are distilbert-base-uncased (Sanh et al. 2019, section 3).

    Arguments and errors are those of BertConfig, with 6 layers by default, and without num_segments, direction and
    layer_norm_epsilon, which is always 1e-12.
    """

    num_layers: int = 6

    layer_norm_epsilon: typing.ClassVar[float] = 1e-12
    model_type: typing.ClassVar = "distilbert"
    family: typing.ClassVar = "DistilBERT"
    named_sizes: typing.ClassVar = {"distilbert_base": (6, 768, 12)}  # (layers, width, heads)
    huggingface_keys: typing.ClassVar = (
        ("vocabulary_size", "vocab_size"),
        ("hidden_size", "dim"),
        ("num_layers", "n_layers"),
        ("num_heads", "n_heads"),
        ("intermediate_size", "hidden_dim"),
        ("hidden_dropout_rate", "dropout"),
        ("attention_dropout_rate", "attention_dropout"),
        ("max_length", "max_position_embeddings"),
        ("initializer_range", "initializer_range"),
    )
    activation_key: typing.ClassVar = "activation"
    optional_keys: typing.ClassVar = (("pad_id", "pad_token_id"),)
    fixed_values: typing.ClassVar = {"sinusoidal_pos_embds": False}
    pair_tasks: typing.ClassVar = ()
    classifier_dropout_rate: typing.ClassVar[float] = 0.2  # seq_classif_dropout of transformers

    @property
    def token_classifier_dropout_rate(self):
        """The encoder's, as in transformers: seq_classif_dropout is for classifiers of texts alone."""
        return self.hidden_dropout_rate


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class DistilBertEncoder(FamilyEncoder):
    """Turns token IDs into vectors with DistilBERT (Sanh et al. 2019, section 3), as a functional Keras model.

    Differences from BERT: half as many layers; no segments, so that only [SEP] separates the texts of a pair; no
    pooler, and classifiers have a dense ReLU layer of their own (Hugging Face's `pre_classifier`), with a dropout of
    0.2 (`seq_classif_dropout` in config.json). Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids` (ignored), `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size), and the optional outputs of BertEncoder.
    """

    config_class = DistilBertConfig
    pooler_activation = "relu"

    @staticmethod
    def connect(inputs, parts):
        hidden = parts.token_embedding(parts.config.hidden_size)(inputs["token_ids"])  # (batch, length, hidden_size)
        hidden = hidden + parts.position_embedding()(hidden, position_ids=inputs.get("position_ids"))
        return parts.apply_layers(parts.normalized(hidden), parts.context(inputs))


EMBEDDING_ROWS = (
    ("token_embedding/embeddings", ("distilbert.embeddings.word_embeddings.weight",), SAME),
    ("position_embedding/embeddings", ("distilbert.embeddings.position_embeddings.weight",), SAME),
    *norm_rows("embeddings_norm", "distilbert.embeddings.LayerNorm"),
)
BLOCK_ROWS = (
    *attention_rows([f"attention.{n}" for n in ("q_lin", "k_lin", "v_lin")], "attention.out_lin"),
    *norm_rows("attention_norm", "sa_layer_norm"),
    *dense_rows("intermediate", "ffn.lin1"),
    *dense_rows("output", "ffn.lin2"),
    *norm_rows("output_norm", "output_layer_norm"),
)
HEAD_ROWS = (
    *dense_rows("pooler", "pre_classifier"),
    *masked_lm_rows("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    *COMMON_HEAD_ROWS,
)
FAMILY = Family(
    encoder_class=DistilBertEncoder,
    prefix="distilbert.",
    bare_beginnings=("embeddings.", "transformer."),
    embedding_rows=EMBEDDING_ROWS,
    block="distilbert.transformer.layer.{}.",
    block_rows=BLOCK_ROWS,
    head_rows=HEAD_ROWS,
    redundant=("vocab_projector.weight", "distilbert.embeddings.position_ids"),
    tasks=COMMON_TASKS,
    dropout_key="seq_classif_dropout",
    token_dropout_key="token_classif_dropout",  # a field of our own: transformers has no other than the encoder's
)
