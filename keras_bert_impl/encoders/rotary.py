"""EuroBERT, UltraBERT, NomicBERT and GTE: encoders of rotary positions and gated feed-forward layers, with their
configurations and the names of their tensors in Hugging Face's format."""

import dataclasses
import functools
import itertools
import typing

import keras
import numpy as np

from keras_bert_impl.configurations.encoder_config import EncoderConfig, check_setting
from keras_bert_impl.configurations.family import (
    COMMON_HEAD_ROWS,
    SAME,
    Family,
    Transform,
    dense_rows,
    joined_kernels,
    kernel_row,
    masked_lm_rows,
    norm_rows,
    scale_row,
)
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.encoders.encoder import FamilyEncoder, mean_of_tokens
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.layers import Dense, MaskedLMHead, RotaryPositions
from keras_bert_impl.suggestions import one_of

BLOCK_KEYS = (
    ("vocabulary_size", "vocab_size"),
    ("hidden_size", "hidden_size"),
    ("num_layers", "num_hidden_layers"),
    ("num_heads", "num_attention_heads"),
    ("intermediate_size", "intermediate_size"),
    ("max_length", "max_position_embeddings"),
    ("initializer_range", "initializer_range"),
)
LLAMA_KEYS = (
    *BLOCK_KEYS,
    ("num_key_value_heads", "num_key_value_heads"),
    ("attention_dropout_rate", "attention_dropout"),
    ("layer_norm_epsilon", "rms_norm_eps"),
    ("classifier_pooling", "classifier_pooling"),
)
POST_NORM_KEYS = (
    *BLOCK_KEYS,
    ("hidden_dropout_rate", "hidden_dropout_prob"),
    ("attention_dropout_rate", "attention_probs_dropout_prob"),
    ("num_segments", "type_vocab_size"),
)


@dataclasses.dataclass(frozen=True)
class RotaryConfig(EncoderConfig):
    """The fields that the configurations of this file share, in addition to those of BertConfig; see EuroBertConfig."""

    rotary_theta: float = 10_000.0
    rotary_factor: float = 1.0
    trained_length: int | None = None

    block_options: typing.ClassVar[dict] = {}  # of a TransformerEncoderBlock
    fixed_values: typing.ClassVar = {}
    pair_tasks: typing.ClassVar = ()
    has_position_table: typing.ClassVar = False

    def __post_init__(self):
        super().__post_init__()
        if self.hidden_size // self.num_heads % 2:
            raise ValueError(
                f"hidden_size {self.hidden_size} gives num_heads {self.num_heads} heads of an odd width, but rotary "
                "positions need an even one."
            )

    @classmethod
    def from_content(cls, path, found):
        """Also reads the older keys `rope_theta` and `rope_scaling`. Raises: ValueError for other kinds of scaling."""
        rotary = {"rope_theta": found.get("rope_theta"), **(found.get("rope_scaling") or {})}
        rotary = {**rotary, **(found.get("rope_parameters") or {})}
        config = super().from_content(path, found)
        check_setting(path, "head_dim", found.get("head_dim") or config.head_width, config.head_width)
        check_setting(path, "partial_rotary_factor", rotary.get("partial_rotary_factor", 1.0), 1.0)
        kind, factor = rotary.get("rope_type", rotary.get("type", "default")), rotary.get("factor", 1.0)
        fields = {"rotary_theta": rotary["rope_theta"] or cls.rotary_theta}
        if kind == "ntk":  # of GTE's authors: a larger base, and every angle divided
            check_setting(path, "mixed_b", rotary.get("mixed_b"), None)
            fields = {"rotary_theta": fields["rotary_theta"] * factor}
            kind, factor = "linear", factor ** (2 / config.head_width)
        if kind == "dynamic":
            longest = found.get("max_sequence_length", int(config.max_length * factor))  # the key is our own
            fields |= {"trained_length": config.max_length, "max_length": longest}
        elif kind not in ("default", "linear"):
            check_setting(path, "rope_type", kind, "default")
        return dataclasses.replace(config, **fields, rotary_factor=1.0 if kind == "default" else factor)

    def to_huggingface(self):
        found, rotary = super().to_huggingface(), {"rope_type": "default", "rope_theta": self.rotary_theta}
        if self.trained_length is not None:
            found |= {"max_position_embeddings": self.trained_length, "max_sequence_length": self.max_length}
            rotary |= {"rope_type": "dynamic", "factor": self.rotary_factor}
        elif self.rotary_factor != 1:
            rotary |= {"rope_type": "linear", "factor": self.rotary_factor}
        return {**found, "rope_parameters": rotary}

    @property
    def head_width(self):
        return self.hidden_size // self.num_heads


@dataclasses.dataclass(frozen=True)
class EuroBertConfig(RotaryConfig):
    """Configuration of a EuroBERT model. The defaults are EuroBERT-210m (Boizard et al. 2025, table 1), except for
    rotary_theta.

    Args:
        rotary_theta (float, optional): base of the rotary angles. `from_name` sets the published 250,000.
            Default: 10,000, as in transformers.
        rotary_factor (float, optional): divides positions ("linear" in config.json), or with a `trained_length` makes
            the base grow with the length ("dynamic"); see `RotaryPositions`. Default: 1.0.
        trained_length (int, optional): largest length without that growth. Default: None, no growth.
        num_key_value_heads (int, optional): number of heads of keys and values, a divisor of num_heads. Default:
            num_heads.
        classifier_pooling (str, optional): vector of a text for a classifier: "bos", that of the first token; "mean";
            or "late", the mean after the classifier's dense layer. Default: "late".
        tie_word_embeddings (bool, optional): whether a masked-LM head scores words by the token embedding.
            Default: False.

    Other arguments are those of `BertConfig`, without num_segments and direction, with the defaults in the signature.
    """

    vocabulary_size: int = 128256
    activation: str = "silu"
    hidden_dropout_rate: float = 0.0
    attention_dropout_rate: float = 0.0
    max_length: int = 8192
    layer_norm_epsilon: float = 1e-5
    pad_id: int = 128001
    tie_word_embeddings: bool = False
    num_key_value_heads: int | None = None
    classifier_pooling: str = "late"

    model_type: typing.ClassVar = "eurobert"
    family: typing.ClassVar = "EuroBERT"
    # The small one has the shape of BERT-small (Turc et al. 2019).
    named_sizes: typing.ClassVar = {
        "eurobert_small": (4, 512, 8),
        "eurobert_210m": (12, 768, 12),
        "eurobert_610m": (26, 1152, 18),
        "eurobert_2b": (32, 2304, 18),
    }
    named_fields: typing.ClassVar = {
        "eurobert_210m": {"rotary_theta": 250_000.0},
        "eurobert_610m": {"rotary_theta": 250_000.0, "num_key_value_heads": 6, "intermediate_size": 4096},
        "eurobert_2b": {"rotary_theta": 250_000.0, "num_key_value_heads": 6, "intermediate_size": 6144},
    }
    huggingface_keys: typing.ClassVar = LLAMA_KEYS
    # transformers has no dropout of hidden states here, and ignores the second key.
    optional_keys: typing.ClassVar = (("pad_id", "pad_token_id"), ("hidden_dropout_rate", "hidden_dropout_prob"))
    left_out: typing.ClassVar = {"hidden_act": "silu"}
    fixed_values: typing.ClassVar = {"attention_bias": False, "mlp_bias": False}
    poolings: typing.ClassVar = ("bos", "mean", "late")
    use_bias: typing.ClassVar = False
    rms_norm: typing.ClassVar = True
    head_has_transform: typing.ClassVar = False
    head_has_output_bias: typing.ClassVar = False
    classifier_dropout_rate: typing.ClassVar[float] = 0.0

    def __post_init__(self):
        if self.num_key_value_heads is None:
            object.__setattr__(self, "num_key_value_heads", self.num_heads)
        super().__post_init__()
        one_of("classifier_pooling", self.classifier_pooling, self.poolings)
        if self.num_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_heads {self.num_heads} is not a multiple of num_key_value_heads {self.num_key_value_heads}."
            )

    @property
    def block_options(self):
        return {"norm_first": True, "num_key_value_heads": self.num_key_value_heads}


@dataclasses.dataclass(frozen=True)
class UltrabertConfig(EuroBertConfig):
    """Configuration of an UltraBERT model: EuroBERT's block, with windows in most layers.

    Args:
        layer_types (list of str, optional): "sliding_attention" or "full_attention" for each layer. Default: full
            attention in every third layer.
        sliding_window (int, optional): largest distance between a token and one that it attends to. Default: 128.
        rotary_theta (float, optional): base of the rotary angles in layers of full attention. Default: 2,560,000.
        local_theta (float, optional): the same in layers with a window. Default: 10,000.
        prediction_head_size (int, optional): width between the two dense layers of the masked-LM head. Default: 768.
        classifier_pooling (str, optional): vector of a text for a classifier: "cls" or "mean". Default: "cls".

    Other arguments are those of `EuroBertConfig`, without rotary_factor and trained_length.
    """

    vocabulary_size: int = 32000
    max_length: int = 32768
    layer_norm_epsilon: float = 1e-6
    pad_id: int = 0
    classifier_pooling: str = "cls"
    rotary_theta: float = 2_560_000.0
    local_theta: float = 10_000.0
    layer_types: tuple | None = None
    sliding_window: int = 128
    prediction_head_size: int = 768

    model_type: typing.ClassVar = "ultrabert"
    family: typing.ClassVar = "UltraBERT"
    named_sizes: typing.ClassVar = {"ultrabert_small": (4, 512, 8), "ultrabert_base": (22, 768, 12)}
    named_fields: typing.ClassVar = {}
    huggingface_keys: typing.ClassVar = (
        *LLAMA_KEYS,
        ("sliding_window", "sliding_window"),
        ("prediction_head_size", "prediction_head_size"),
        ("layer_types", "layer_types"),
    )
    poolings: typing.ClassVar = ("cls", "mean")

    def __post_init__(self):
        kinds = ("sliding_attention", "full_attention")
        types = self.layer_types or [kinds[layer % 3 == 2] for layer in range(self.num_layers)]
        object.__setattr__(self, "layer_types", tuple(types))
        super().__post_init__()
        for kind in types:
            one_of("layer_types", kind, kinds)
        if len(types) != self.num_layers or self.rotary_factor != 1 or self.trained_length:
            raise ValueError(
                f"An UltraBERT needs {self.num_layers} layer_types, rotary_factor 1 and trained_length None, not "
                f"{len(types)}, {self.rotary_factor} and {self.trained_length}."
            )

    @property
    def windows(self):
        return [None if kind == "full_attention" else self.sliding_window for kind in self.layer_types]

    @classmethod
    def from_content(cls, path, found):
        """Also reads the authors' keys `attention_windows` and a `rope_theta` for each layer."""
        windows, thetas, of_kinds = (found.get(key) for key in ("attention_windows", "rope_theta", "rope_parameters"))
        if windows:
            sizes = {window for window in windows if window} or {cls.sliding_window}
            check_setting(path, "attention_windows", sorted(sizes), [min(sizes)])
            kinds = ["sliding_attention" if window else "full_attention" for window in windows]
            found = {**found, "layer_types": found.get("layer_types") or kinds, "sliding_window": sizes.pop()}
        config = super().from_content(path, {**found, "rope_parameters": None, "rope_theta": None})
        of_layers = zip(config.layer_types, thetas, strict=True) if isinstance(thetas, list) else ()
        of_kinds, fields = {kind: {"rope_theta": theta} for kind, theta in of_layers} | (of_kinds or {}), {}
        for name, kind in (("rotary_theta", "full_attention"), ("local_theta", "sliding_attention")):
            check_setting(path, "rope_type", of_kinds.get(kind, {}).get("rope_type", "default"), "default")
            fields[name] = of_kinds.get(kind, {}).get("rope_theta", getattr(cls, name))
        return dataclasses.replace(config, **fields)

    def to_huggingface(self):
        thetas = {"full_attention": self.rotary_theta, "sliding_attention": self.local_theta}
        rotary = {kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in thetas.items()}
        return {**super().to_huggingface(), "layer_types": list(self.layer_types), "rope_parameters": rotary}


@dataclasses.dataclass(frozen=True)
class NomicBertConfig(RotaryConfig):
    """Configuration of a NomicBERT model. The defaults are nomic-bert-2048 (Nussbaum et al. 2024).

    Arguments are those of `BertConfig`, without direction, and rotary_theta, rotary_factor and trained_length of
    `EuroBertConfig`, with the defaults in the signature.
    """

    vocabulary_size: int = 30528
    activation: str = "silu"
    hidden_dropout_rate: float = 0.0
    attention_dropout_rate: float = 0.0
    max_length: int = 2048
    num_segments: int = 2
    rotary_theta: float = 1000.0

    model_type: typing.ClassVar = "nomic_bert"
    family: typing.ClassVar = "NomicBERT"
    named_sizes: typing.ClassVar = {"nomic_bert_small": (4, 512, 8), "nomic_bert_base": (12, 768, 12)}
    huggingface_keys: typing.ClassVar = POST_NORM_KEYS
    left_out: typing.ClassVar = {"hidden_act": "silu"}
    # Of the authors' code, whose files have keys of their own.
    fixed_values: typing.ClassVar = {
        "activation_function": "swiglu",
        **dict.fromkeys(("prenorm", "causal", "parallel_block", "rotary_emb_interleaved", "use_rms_norm"), False),
        **dict.fromkeys(("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"), False),
        "rotary_emb_fraction": 1.0,
        "rotary_emb_scale_base": None,
    }
    block_options: typing.ClassVar = {"without_bias": ("attention", "intermediate", "output")}

    @classmethod
    def from_content(cls, path, found):
        """Also reads the authors' keys, which are GPT-2's."""
        theirs = {
            **{"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"},
            **{"n_inner": "intermediate_size", "n_positions": "max_position_embeddings"},
            **{"layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta"},
            **{"resid_pdrop": "hidden_dropout_prob", "attn_pdrop": "attention_probs_dropout_prob"},
        }
        named = {new: found[old] for old, new in theirs.items() if found.get(old) is not None}
        if found.get("rotary_scaling_factor"):
            named["rope_scaling"] = {"rope_type": "dynamic", "factor": found["rotary_scaling_factor"]}
            named["max_sequence_length"] = named.get("max_position_embeddings", cls.max_length)
            named["max_position_embeddings"] = found.get("max_trained_positions", 2048)
        return super().from_content(path, {**named, **found})


ENGLISH = {"vocabulary_size": 30528, "num_segments": 0, "pad_id": 0, "rotary_theta": 500_000.0}


@dataclasses.dataclass(frozen=True)
class GteConfig(RotaryConfig):
    """Configuration of a GTE model. The defaults are gte-multilingual-base (Zhang et al. 2024, section 3).

    Args:
        num_segments (int, optional): number of segment embeddings; 0 for none, as in the English models. Default: 1.

    Other arguments are those of `BertConfig`, without direction, and rotary_theta, rotary_factor and trained_length of
    `EuroBertConfig`, with the defaults in the signature. `activation` can only be "gelu".
    """

    vocabulary_size: int = 250048
    attention_dropout_rate: float = 0.0
    max_length: int = 8192
    pad_id: int = 1
    num_segments: int = 1
    rotary_theta: float = 160_000.0

    model_type: typing.ClassVar = "gte"
    family: typing.ClassVar = "GTE"
    other_model_types: typing.ClassVar = ("new",)  # of the authors' files
    named_sizes: typing.ClassVar = {
        "gte_small": (4, 512, 8),
        "gte_base_en": (12, 768, 12),
        "gte_large_en": (24, 1024, 16),
        "gte_multilingual_base": (12, 768, 12),
    }
    named_fields: typing.ClassVar = {"gte_base_en": ENGLISH, "gte_large_en": ENGLISH}
    huggingface_keys: typing.ClassVar = POST_NORM_KEYS
    fixed_values: typing.ClassVar = {
        "position_embedding_type": "rope",
        "layer_norm_type": "layer_norm",
        "logn_attention_scale": False,
        "pack_qkv": True,
    }
    heads_have_gelu: typing.ClassVar = True
    smallest_sizes: typing.ClassVar = {"num_segments": 0}
    block_options: typing.ClassVar = {"without_bias": ("intermediate",)}


class RotaryEncoder(FamilyEncoder):
    """Base class of the encoders of this file. Arguments, inputs, outputs and errors are those of BertEncoder, without
    `pooled_output`. `segment_ids` are ignored unless the configuration has segments."""

    @staticmethod
    def connect(inputs, parts):
        config = parts.config
        hidden = parts.token_embedding(config.hidden_size)(inputs["token_ids"])  # (batch, length, hidden_size)
        if getattr(config, "num_segments", 0):
            rows = parts.segment_embedding(config.hidden_size)(inputs["segment_ids"])
            hidden = keras.layers.Add(dtype=parts.policy, name="embeddings")([hidden, rows])
        if not config.rms_norm:
            hidden = parts.normalized(hidden)
        scaling = {"factor": config.rotary_factor, "trained_length": config.trained_length}
        angles = functools.partial(RotaryPositions, config.head_width, dtype=parts.policy)
        positions = [angles(config.rotary_theta, **scaling, name="positions")]
        if any(config.windows):
            positions.append(angles(config.local_theta, name="local_positions"))

        block = functools.partial(parts.block, gated=True, **config.block_options)
        connected = parts.apply_layers(hidden, parts.turning_contexts(inputs, *positions), block)
        if not config.rms_norm:
            return connected
        *hidden_states, final = connected.hidden_states
        return connected._replace(hidden_states=[*hidden_states, parts.norm("final_norm")(final)])


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class EuroBertEncoder(RotaryEncoder):
    """Turns token IDs into vectors with EuroBERT, as a functional Keras model.

    Its blocks are Llama's without a causal mask: RMS norms before attention and feed-forward, SwiGLU, grouped heads, no
    biases; and there is a norm at the end. The tokenizer is an `EuroBertTokenizer`. Arguments, inputs, outputs and
    errors are those of BertEncoder, without `pooled_output`; `segment_ids` are ignored.

    Source: Boizard et al. 2025, "EuroBERT: scaling multilingual encoders for European languages".
    """

    config_class = EuroBertConfig
    pooler_activation = "gelu"

    def pooled(self, outputs, rows):
        vectors, kind = outputs["sequence_output"], self.config.classifier_pooling
        if kind == "late":
            return mean_of_tokens(self.pool(vectors), rows)
        return self.pool(vectors[:, 0] if kind == "bos" else mean_of_tokens(vectors, rows))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TwoLayerHead(MaskedLMHead):
    """A MaskedLMHead whose transform is two dense layers without biases, each with the activation.

    Args: those of MaskedLMHead, and:
        inner_size: width between the two layers.
    """

    def __init__(self, token_embedding, inner_size, **kwargs):
        super().__init__(token_embedding, **kwargs)
        self.inner_size = int(inner_size)

    def build_transform(self, sequence_output_shape):
        *others, width = sequence_output_shape
        sizes = [width, self.inner_size, self.token_embedding.output_dim]
        self.transforms = []
        for number, (before, behind) in enumerate(itertools.pairwise(sizes), start=1):
            arguments = {"kernel_initializer": self.initializer.clone(), "dtype": self.dtype_policy}
            dense = Dense(behind, activation_function(self.activation), False, name=f"transform_{number}", **arguments)
            dense.build((*others, before))
            self.transforms.append(dense)

    def transformed(self, hidden):
        first, second = self.transforms
        return second(first(hidden))


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class UltrabertEncoder(RotaryEncoder):
    """Turns token IDs into vectors with UltraBERT, as transformers defines it: EuroBERT's block, with windows.

    Two of three layers attend to a window only. Arguments, inputs, outputs and errors are those of EuroBertEncoder.
    """

    config_class = UltrabertConfig

    def pooled(self, outputs, rows):
        vectors = outputs["sequence_output"]
        return vectors[:, 0] if self.config.classifier_pooling == "cls" else mean_of_tokens(vectors, rows)

    def masked_lm_head(self):
        return TwoLayerHead(
            self.token_embedding,
            self.config.prediction_head_size,
            activation="gelu_tanh",
            initializer=kernel_initializer(self.config),
            is_tied=self.config.tie_word_embeddings,
            has_output_bias=False,
            dtype=self.dtype_policy,
            name="masked_lm_head",
        )


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class NomicBertEncoder(RotaryEncoder):
    """Turns token IDs into vectors with NomicBERT, as a functional Keras model.

    Differences from BERT: rotary positions, SwiGLU, no pooler, and biases only in norms. Arguments, inputs, outputs and
    errors are those of BertEncoder, without `pooled_output`.

    Source: Nussbaum et al. 2024, "Nomic Embed: training a reproducible long context text embedder".
    """

    config_class = NomicBertConfig
    pooler_activation = "tanh"


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class GteEncoder(RotaryEncoder):
    """Turns token IDs into vectors with GTE, as a functional Keras model.

    Differences from BERT: rotary positions, GeGLU and no pooler. Unlike the authors' code, it applies no dropout inside
    the feed-forward layer. Arguments, inputs, outputs and errors are those of BertEncoder, without `pooled_output`.

    Source: Zhang et al. 2024, "mGTE: generalized long-context text representation and reranking models".
    """

    config_class = GteConfig
    pooler_activation = "tanh"


def llama_rows(config):
    """The rows of a block like Llama's, where keys and values may have fewer heads."""
    keys = config.head_width * config.num_key_value_heads
    joined = joined_kernels(config.hidden_size, keys, keys)
    halves = joined_kernels(config.intermediate_size, config.intermediate_size)
    return (
        kernel_row("attention/query_key_value", *(f"self_attn.{n}_proj" for n in "qkv"), transform=joined),
        kernel_row("attention/output", "self_attn.o_proj"),
        scale_row("attention_norm", "input_layernorm", "scale"),
        kernel_row("intermediate", "mlp.gate_proj", "mlp.up_proj", transform=halves),
        kernel_row("output", "mlp.down_proj"),
        scale_row("output_norm", "post_attention_layernorm", "scale"),
    )


EUROBERT = Family(
    encoder_class=EuroBertEncoder,
    prefix="model.",
    bare_beginnings=("embed_tokens.", "layers.", "norm."),
    embedding_rows=(
        ("token_embedding/embeddings", ("model.embed_tokens.weight",), SAME),
        scale_row("final_norm", "model.norm", "scale"),
    ),
    block="model.layers.{}.",
    block_rows=llama_rows,
    head_rows=(*dense_rows("pooler", "dense"), *COMMON_HEAD_ROWS),
    redundant=("lm_head.weight",),
    tasks=("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"),
    dropout_key="classifier_dropout",
)
ULTRABERT = EUROBERT.renamed(
    "ultrabert.",
    encoder_class=UltrabertEncoder,
    head_rows=(
        kernel_row("masked_lm_head/transform_1", "head.linear1"),
        kernel_row("masked_lm_head/transform_2", "head.linear2"),
        *COMMON_HEAD_ROWS,
    ),
    redundant=("cls.weight",),
    tasks=(*EUROBERT.tasks, "ForQuestionAnswering"),
)
NOMIC_BERT = Family(
    encoder_class=NomicBertEncoder,
    prefix="nomic_bert.",
    other_prefixes=("bert.",),
    bare_beginnings=("embeddings.", "emb_ln.", "encoder.", "pooler."),
    embedding_rows=(
        ("token_embedding/embeddings", ("nomic_bert.embeddings.word_embeddings.weight",), SAME),
        ("segment_embedding/embeddings", ("nomic_bert.embeddings.token_type_embeddings.weight",), SAME),
        *norm_rows("embeddings_norm", "nomic_bert.emb_ln"),
    ),
    block="nomic_bert.encoder.layers.{}.",
    block_rows=lambda config: (
        kernel_row("attention/query_key_value", "attn.Wqkv"),
        kernel_row("attention/output", "attn.out_proj"),
        *norm_rows("attention_norm", "norm1"),
        # The second one is activated.
        kernel_row("intermediate", "mlp.fc12", "mlp.fc11", transform=joined_kernels(*[config.intermediate_size] * 2)),
        kernel_row("output", "mlp.fc2"),
        *norm_rows("output_norm", "norm2"),
    ),
    head_rows=(
        *dense_rows("pooler", "nomic_bert.pooler.dense"),
        *masked_lm_rows(
            *("cls.predictions.transform.dense", "cls.predictions.transform.layer_norm", "cls.predictions.bias")
        ),
        *COMMON_HEAD_ROWS,
    ),
    redundant=("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
    tasks=EUROBERT.tasks,
    dropout_key="classifier_dropout",
)


def with_halves_changed(kernel):
    """A kernel whose second half of columns is the first one."""
    return np.roll(kernel, kernel.shape[-1] // 2, axis=-1)


# The half that is activated is the second one there.
CHANGED = Transform(lambda theirs: with_halves_changed(theirs[0].T), lambda ours: [with_halves_changed(ours).T])
GTE = Family(
    encoder_class=GteEncoder,
    prefix="gte.",
    other_prefixes=("new.",),
    bare_beginnings=("embeddings.", "encoder.", "pooler."),
    embedding_rows=(
        ("token_embedding/embeddings", ("gte.embeddings.word_embeddings.weight",), SAME),
        ("segment_embedding/embeddings", ("gte.embeddings.token_type_embeddings.weight",), SAME),
        *norm_rows("embeddings_norm", "gte.embeddings.LayerNorm"),
    ),
    block="gte.encoder.layer.{}.",
    block_rows=(
        *dense_rows("attention/query_key_value", "attention.qkv_proj"),
        *dense_rows("attention/output", "attention.o_proj"),
        *norm_rows("attention_norm", "attn_ln"),
        kernel_row("intermediate", "mlp.up_gate_proj", transform=CHANGED),
        *dense_rows("output", "mlp.down_proj"),
        *norm_rows("output_norm", "mlp_ln"),
    ),
    head_rows=(
        *dense_rows("pooler", "gte.pooler.dense"),
        *masked_lm_rows("lm_head.dense", "lm_head.norm", "lm_head.decoder.bias"),
        *COMMON_HEAD_ROWS,
    ),
    redundant=("lm_head.decoder.weight",),
    tasks=EUROBERT.tasks,
    dropout_key="classifier_dropout",
)
ROTARY_FAMILIES = (EUROBERT, ULTRABERT, NOMIC_BERT, GTE)
