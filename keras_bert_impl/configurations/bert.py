"""The shape of a BERT, and its two published JSON spellings."""

import dataclasses

from keras_bert_impl.json_files import read_json

# Published sizes: base and large from table 1's text in Devlin et al. 2019, section 3; the others from
# Turc et al. 2019 ("Well-Read Students Learn Better"), table 1. (layers, width, heads)
NAMED_SIZES = {
    "bert_tiny": (2, 128, 2),
    "bert_mini": (4, 256, 4),
    "bert_small": (4, 512, 8),
    "bert_medium": (8, 512, 8),
    "bert_base": (12, 768, 12),
    "bert_large": (24, 1024, 16),
}

# Our field, the key shared by Google's bert_config.json and Hugging Face's config.json.
JSON_KEYS = (
    ("vocabulary_size", "vocab_size"),
    ("hidden_size", "hidden_size"),
    ("num_layers", "num_hidden_layers"),
    ("num_heads", "num_attention_heads"),
    ("intermediate_size", "intermediate_size"),
    ("hidden_dropout_rate", "hidden_dropout_prob"),
    ("attention_dropout_rate", "attention_probs_dropout_prob"),
    ("max_length", "max_position_embeddings"),
    ("num_segments", "type_vocab_size"),
    ("initializer_range", "initializer_range"),
)

# "gelu" means the tanh approximation in Google's code and the exact function in Hugging Face's:
# the activations of one checkpoint differ by about 1e-3 between the two.
GOOGLE_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}
# Hugging Face has several names for either function, by how it is computed; the first of each is the one written.
HUGGINGFACE_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "relu": "relu",
}
ACTIVATION_NAMES = ("gelu", "gelu_tanh", "relu")
# No BERT is larger in any direction: a damaged or hostile file ends here, before anything of
# its size is made.
LARGEST_SIZE = 2**24


@dataclasses.dataclass(frozen=True)
class BertConfig:
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
        num_segments: rows of the segment table.
        initializer_range: standard deviation of the truncated normal that weights start from.
        layer_norm_epsilon: 1e-12 in Google's code.
        pad_id: the id of [PAD], written to Hugging Face's config.json.

    Raises: ValueError for a shape that no BERT can have, naming field and value.
    """

    vocabulary_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int | None = None
    activation: str = "gelu"
    hidden_dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    max_length: int = 512
    num_segments: int = 2
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-12
    pad_id: int = 0

    def __post_init__(self):
        if self.intermediate_size is None:
            object.__setattr__(self, "intermediate_size", 4 * self.hidden_size)
        sizes = ("vocabulary_size", "hidden_size", "num_layers", "num_heads", "intermediate_size", "max_length")
        for name in (*sizes, "num_segments"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, not {value!r}.")
            if value > LARGEST_SIZE:
                raise ValueError(f"{name} is {value}, above {LARGEST_SIZE:,}: no BERT is so large.")
        for name in ("hidden_dropout_rate", "attention_dropout_rate", "initializer_range", "layer_norm_epsilon"):
            if not isinstance(getattr(self, name), int | float):
                raise ValueError(f"{name} must be a number, not {getattr(self, name)!r}.")
        for name in ("hidden_dropout_rate", "attention_dropout_rate"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, not {getattr(self, name)!r}.")
        for name in ("initializer_range", "layer_norm_epsilon"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}.")
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_heads {self.num_heads}: "
                "every head needs the same whole number of columns."
            )
        if self.activation not in ACTIVATION_NAMES:
            raise ValueError(f"activation {self.activation!r} is unknown; known are {', '.join(ACTIVATION_NAMES)}.")
        if not isinstance(self.pad_id, int) or not 0 <= self.pad_id < self.vocabulary_size:
            raise ValueError(f"pad_id {self.pad_id!r} is outside the vocabulary of {self.vocabulary_size}.")

    @classmethod
    def from_name(cls, name, **overrides):
        """The published size `name` ("bert_tiny" ... "bert_large"), with any field replaced by keyword."""
        if name not in NAMED_SIZES:
            raise ValueError(f"There is no BERT size {name!r}; known are {', '.join(NAMED_SIZES)}.")
        num_layers, hidden_size, num_heads = NAMED_SIZES[name]
        return cls(**{"num_layers": num_layers, "hidden_size": hidden_size, "num_heads": num_heads, **overrides})

    @classmethod
    def from_dict(cls, fields):
        """The configuration that `to_dict` wrote."""
        unknown = sorted(set(fields) - {field.name for field in dataclasses.fields(cls)})
        if unknown:
            raise ValueError(f"BertConfig has no field {', '.join(unknown)}.")
        return cls(**fields)

    def to_dict(self):
        """Every field by its name: plain numbers and strings."""
        return dataclasses.asdict(self)

    @classmethod
    def from_google(cls, path):
        """Reads google-research/bert's `bert_config.json`; its "gelu" is the tanh approximation."""
        return cls._from_json(path, GOOGLE_ACTIVATIONS)

    @classmethod
    def from_huggingface(cls, path):
        """Reads a Hugging Face `config.json` of model_type "bert".

        Raises: ValueError if the model is of another type, or uses what this library does not compute
            (relative positions, a decoder).
        """
        found = read_json(path)
        if found.get("model_type", "bert") != "bert":
            raise ValueError(f"{path}: model_type is {found['model_type']!r}, expected 'bert'.")
        if found.get("position_embedding_type", "absolute") != "absolute":
            raise ValueError(
                f"{path}: position_embedding_type {found['position_embedding_type']!r} is not supported; "
                "BERT's own is 'absolute'."
            )
        if found.get("is_decoder"):
            raise ValueError(f"{path}: is_decoder is true; this library holds encoders only.")
        return cls._from_json(path, HUGGINGFACE_ACTIVATIONS)

    def to_google(self):
        """The dict of a `bert_config.json`. Raises ValueError for exact GELU, which Google's code has not."""
        activations = {ours: theirs for theirs, ours in GOOGLE_ACTIVATIONS.items()}
        if self.activation not in activations:
            raise ValueError(
                f"Google's code cannot compute activation {self.activation!r}: its 'gelu' is the tanh approximation. "
                "Set activation='gelu_tanh' to accept the difference of about 1e-3."
            )
        return {
            **{theirs: getattr(self, ours) for ours, theirs in JSON_KEYS},
            "hidden_act": activations[self.activation],
        }

    def to_huggingface(self):
        """The dict of a Hugging Face `config.json`, without the keys that belong to a head."""
        activation = next(theirs for theirs, ours in HUGGINGFACE_ACTIVATIONS.items() if ours == self.activation)
        return {
            "model_type": "bert",
            **{theirs: getattr(self, ours) for ours, theirs in JSON_KEYS},
            "hidden_act": activation,
            "layer_norm_eps": self.layer_norm_epsilon,
            "pad_token_id": self.pad_id,
        }

    @classmethod
    def _from_json(cls, path, activations):
        found = read_json(path)
        missing = [theirs for _, theirs in JSON_KEYS[:5] if theirs not in found]
        if missing:
            raise ValueError(f"{path}: {', '.join(missing)} missing; this is not the configuration of a BERT.")
        fields = {ours: found[theirs] for ours, theirs in JSON_KEYS if theirs in found}
        activation = found.get("hidden_act", "gelu")
        if not isinstance(activation, str) or activation not in activations:
            raise ValueError(f"{path}: hidden_act {activation!r} is unknown; known are {', '.join(activations)}.")
        optional = {"layer_norm_epsilon": "layer_norm_eps", "pad_id": "pad_token_id"}
        fields |= {ours: found[theirs] for ours, theirs in optional.items() if found.get(theirs) is not None}
        try:
            return cls(activation=activations[activation], **fields)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def count_parameters(self):
        """Weights of the encoder with its pooler: 109,482,240 for bert-base-uncased."""
        width, inner = self.hidden_size, self.intermediate_size
        embeddings = (self.vocabulary_size + self.max_length + self.num_segments) * width + 2 * width
        attention = 4 * (width * width + width) + 2 * width
        feed_forward = width * inner + inner + inner * width + width + 2 * width
        pooler = width * width + width
        return embeddings + self.num_layers * (attention + feed_forward) + pooler
