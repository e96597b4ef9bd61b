"""The configuration of a DistilBERT."""

import dataclasses
import typing

from keras_bert_impl.configurations.encoder_config import EncoderConfig


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """The shape of a DistilBERT encoder; the defaults are distilbert-base-uncased (Sanh et al. 2019, section 3).

    Arguments and errors are those of BertConfig, without num_segments and layer_norm_epsilon, which is always 1e-12.
    """

    vocabulary_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 6
    num_heads: int = 12
    intermediate_size: int | None = None
    activation: str = "gelu"
    hidden_dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    max_length: int = 512
    initializer_range: float = 0.02
    pad_id: int = 0

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
    fixed_values: typing.ClassVar = {"sinusoidal_pos_embds": False}
    pair_tasks: typing.ClassVar = ()
    classifier_dropout_rate: typing.ClassVar[float] = 0.2  # seq_classif_dropout of transformers

    @property
    def token_classifier_dropout_rate(self):
        """The encoder's, as in transformers: seq_classif_dropout is for classifiers of texts alone."""
        return self.hidden_dropout_rate
