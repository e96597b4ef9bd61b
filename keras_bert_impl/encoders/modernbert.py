"""ModernBERT: configuration, encoder, and the names of its tensors in Hugging Face's format."""

import dataclasses
import typing

import keras

from keras_bert_impl.configurations.encoder_config import EncoderConfig, check_setting
from keras_bert_impl.configurations.family import COMMON_TASKS, SAME, Family, dense_rows, kernel_row, scale_row
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.encoders.encoder import FamilyEncoder, mean_of_tokens
from keras_bert_impl.layers import PredictionHead, RotaryPositions
from keras_bert_impl.suggestions import one_of

# Of the names of sizes, those of Ettin (Weller et al. 2025, table 1) and mmBERT (Marone et al. 2025, table 2) are the
# same architecture.
MULTILINGUAL = {"vocabulary_size": 256000, "pad_id": 0, "local_theta": 160_000.0}


@dataclasses.dataclass(frozen=True)
class ModernBertConfig(EncoderConfig):
    """Configuration of a ModernBERT model. The defaults are ModernBERT-base (Warner et al. 2024, table 4).

    Arguments and errors are those of BertConfig, without num_segments and direction, with a vocabulary_size of 50368,
    22 layers, layer_norm_epsilon 1e-5, pad_id 50283, no dropout, and:

    Args:
        hidden_size (int, optional): width of every layer: num_heads times an even number. Default: 768.
        intermediate_size (int, optional): width of the feed-forward layer after its gate. Default: 3/2 * hidden_size,
            as in ModernBERT-base.
        activation (str, optional): only "gelu", with which transformers computes the heads. Default: "gelu".
        max_length (int, optional): largest number of tokens. There are no position embeddings. Default: 8192.
        initializer_range (float, optional): standard deviation of the truncated normal that weights start from, divided
            by sqrt(2 * num_layers) for the last kernels of attention and feed-forward and the kernel before a head.
            Default: 0.02.
        global_every (int, optional): one of this many layers, the first one included, has full attention, the others a
            window. Default: 3.
        local_attention (int, optional): number of tokens in a window besides the token itself, half of them on each
            side: 128 is 64 before and 64 after. Default: 128.
        global_theta, local_theta (float, optional): base of the rotary positions in layers with full attention and with
            a window. Defaults: 160,000 and 10,000.
        classifier_pooling (str, optional): vector of a text for a classifier: "cls", that of the first token, or
            "mean", the mean over tokens. Default: "cls".
    """

    vocabulary_size: int = 50368
    num_layers: int = 22
    hidden_dropout_rate: float = 0.0
    attention_dropout_rate: float = 0.0
    max_length: int = 8192
    layer_norm_epsilon: float = 1e-5
    pad_id: int = 50283
    global_every: int = 3
    local_attention: int = 128
    global_theta: float = 160_000.0
    local_theta: float = 10_000.0
    classifier_pooling: str = "cls"

    model_type: typing.ClassVar = "modernbert"
    family: typing.ClassVar = "ModernBERT"
    heads_have_gelu: typing.ClassVar = True
    named_sizes: typing.ClassVar = {
        # Of the shapes of bert_tiny and bert_small; no model of these sizes was published.
        "modernbert_tiny": (2, 128, 2),
        "modernbert_small": (4, 512, 8),
        "modernbert_base": (22, 768, 12),
        "modernbert_large": (28, 1024, 16),
        "ettin_17m": (7, 256, 4),
        "ettin_32m": (10, 384, 6),
        "ettin_68m": (19, 512, 8),
        "ettin_150m": (22, 768, 12),
        "ettin_400m": (28, 1024, 16),
        "ettin_1b": (28, 1792, 28),
        "mmbert_small": (22, 384, 6),
        "mmbert_base": (22, 768, 12),
    }
    named_fields: typing.ClassVar = {
        "modernbert_large": {"intermediate_size": 2624},
        "ettin_400m": {"intermediate_size": 2624},
        "ettin_1b": {"intermediate_size": 3840},
        "mmbert_small": {**MULTILINGUAL, "intermediate_size": 1152},
        "mmbert_base": MULTILINGUAL,
    }
    huggingface_keys: typing.ClassVar = (
        ("vocabulary_size", "vocab_size"),
        ("hidden_size", "hidden_size"),
        ("num_layers", "num_hidden_layers"),
        ("num_heads", "num_attention_heads"),
        ("intermediate_size", "intermediate_size"),
        ("hidden_dropout_rate", "embedding_dropout"),
        ("hidden_dropout_rate", "mlp_dropout"),
        ("attention_dropout_rate", "attention_dropout"),
        ("max_length", "max_position_embeddings"),
        ("initializer_range", "initializer_range"),
        ("layer_norm_epsilon", "norm_eps"),
        # The keys of the published files. transformers 5 reads them, and writes `layer_types` and `rope_parameters`.
        ("global_every", "global_attn_every_n_layers"),
        ("local_attention", "local_attention"),
        ("global_theta", "global_rope_theta"),
        ("local_theta", "local_rope_theta"),
        ("classifier_pooling", "classifier_pooling"),
    )
    activation_key: typing.ClassVar = "hidden_activation"
    optional_keys: typing.ClassVar = (("pad_id", "pad_token_id"),)
    fixed_values: typing.ClassVar = {
        "norm_bias": False,
        "attention_bias": False,
        "mlp_bias": False,
        "decoder_bias": True,
        "classifier_bias": False,
        "classifier_activation": "gelu",
        "rope_scaling": None,
    }
    pair_tasks: typing.ClassVar = ()
    use_bias: typing.ClassVar = False
    has_position_table: typing.ClassVar = False
    classifier_dropout_rate: typing.ClassVar[float] = 0.0  # whatever that of the blocks is

    def __post_init__(self):
        if self.intermediate_size is None:
            object.__setattr__(self, "intermediate_size", 3 * self.hidden_size // 2)
        super().__post_init__()
        one_of("classifier_pooling", self.classifier_pooling, ("cls", "mean"))

    @property
    def last_kernel_scale(self):
        return (2 * self.num_layers) ** -0.5

    @property
    def windows(self):
        """For each layer, the largest distance between a token and one that it attends to; None for any."""
        return [self.local_attention // 2 if layer % self.global_every else None for layer in range(self.num_layers)]

    @classmethod
    def from_content(cls, path, found):
        """Also reads the keys that transformers 5 writes, `layer_types` and `rope_parameters`.

        Raises: ValueError also for unpublished orders of layers and kinds of rotary positions.
        """
        config = super().from_content(path, found)
        dropouts = {found.get(key, 0.0) for key in ("embedding_dropout", "mlp_dropout")}
        if len(dropouts) > 1:
            raise ValueError(f"{path}: embedding_dropout and mlp_dropout differ, but must be the same.")
        newer = {}
        for name, kind in (("global_theta", "full_attention"), ("local_theta", "sliding_attention")):
            rotary = (found.get("rope_parameters") or {}).get(kind) or {}
            check_setting(path, "rope_type", rotary.get("rope_type", "default"), "default")
            if "rope_theta" in rotary:
                newer[name] = rotary["rope_theta"]
        types = found.get("layer_types")
        if types:
            is_global = [layer for layer, kind in enumerate(types) if kind == "full_attention"]
            newer["global_every"] = is_global[1] if len(is_global) > 1 else max(1, len(types))
        config = dataclasses.replace(config, **newer)
        if types:
            kinds = ["full_attention" if size is None else "sliding_attention" for size in config.windows]
            check_setting(path, "layer_types", list(types), kinds)
        return config


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ModernBertEncoder(FamilyEncoder):
    """Turns token IDs into vectors with ModernBERT (Warner et al. 2024), as a functional Keras model.

    Differences from BERT: rotary positions; in two of three layers a token attends to a window only; norms before
    attention and feed-forward, and one at the end; a gated feed-forward layer; no biases, no segments, no pooler.
    Arguments and errors are those of BertEncoder.

    Input:  dict of `token_ids`, `segment_ids` (ignored), `padding_mask`, each int32 (batch, length).
    Output: dict of `sequence_output` (batch, length, hidden_size), and the optional outputs of BertEncoder.
    """

    config_class = ModernBertConfig

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden = parts.token_embedding(config.hidden_size)(inputs["token_ids"])  # (batch, length, hidden_size)
        hidden = parts.dropout("embeddings_dropout")(parts.norm("embeddings_norm")(hidden))
        width = config.hidden_size // config.num_heads
        positions = [
            RotaryPositions(width, theta, dtype=parts.policy, name=name)
            for theta, name in ((config.global_theta, "global_positions"), (config.local_theta, "local_positions"))
        ]
        last = kernel_initializer(config, scale=config.last_kernel_scale)

        def block(number):
            # The embeddings are normalized already.
            return parts.block(
                number, norm_first=True, gated=True, normalizes_attention=number > 0, output_initializer=last.clone()
            )

        connected = parts.apply_layers(hidden, parts.turning_contexts(inputs, *positions), block)
        *hidden_states, final = connected.hidden_states
        return connected._replace(hidden_states=[*hidden_states, parts.norm("final_norm")(final)])

    def pooled(self, outputs, rows):
        vectors = outputs["sequence_output"]
        if self.config.classifier_pooling == "cls":
            return self.pool(vectors[:, 0])
        return self.pool(mean_of_tokens(vectors, rows))

    def token_vectors(self, outputs):
        return self.pool(outputs["sequence_output"])

    def pool(self, vectors):
        return PredictionHead(
            self.config.activation,
            self.config.layer_norm_epsilon,
            kernel_initializer(self.config, scale=self.config.last_kernel_scale),
            use_bias=self.config.use_bias,
            dtype=self.dtype_policy,
            name="pooler",
        )(vectors)


FAMILY = Family(
    encoder_class=ModernBertEncoder,
    prefix="model.",
    bare_beginnings=("embeddings.", "layers.", "final_norm."),
    embedding_rows=(
        ("token_embedding/embeddings", ("model.embeddings.tok_embeddings.weight",), SAME),
        scale_row("embeddings_norm", "model.embeddings.norm"),
        scale_row("final_norm", "model.final_norm"),
    ),
    block="model.layers.{}.",
    block_rows=(
        kernel_row("attention/query_key_value", "attn.Wqkv"),  # one kernel there, too
        kernel_row("attention/output", "attn.Wo"),
        scale_row("attention_norm", "attn_norm"),
        kernel_row("intermediate", "mlp.Wi"),
        kernel_row("output", "mlp.Wo"),
        scale_row("output_norm", "mlp_norm"),
    ),
    head_rows=(
        kernel_row("pooler/transform", "head.dense"),
        scale_row("pooler/norm", "head.norm"),
        kernel_row("masked_lm_head/transform", "head.dense"),
        scale_row("masked_lm_head/norm", "head.norm"),
        ("masked_lm_head/output_bias", ("decoder.bias",), SAME),
        *dense_rows("classifier", "classifier"),
        *dense_rows("span_head", "classifier"),
    ),
    redundant=("decoder.weight",),
    tasks=COMMON_TASKS,
    dropout_key="classifier_dropout",
)
