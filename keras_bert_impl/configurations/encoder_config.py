"""What the configurations of all families share: checks, and reading and writing Hugging Face's config.json."""

import dataclasses
import numbers
import typing

from keras_bert_impl.json_files import read_json

# Hugging Face has several names for each function, by how it is computed; the first name of each is the one we write.
HUGGINGFACE_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu2": "relu2",
    # Keras has the same functions by the same names.
    **{name: name for name in ("relu", "relu6", "silu", "mish", "tanh", "sigmoid", "linear")},
    "swish": "silu",
}
SIZES = (
    *("vocabulary_size", "hidden_size", "num_layers", "num_heads", "intermediate_size", "embedding_size", "max_length"),
    *("num_segments", "num_groups", "layers_per_group", "num_tasks"),
    *("local_attention", "global_every", "max_global_tokens"),
    *("num_key_value_heads", "sliding_window", "prediction_head_size"),
)
# Pairs of a field and its key in config.json; the first five are required. BERT's, which Google's bert_config.json has,
# too, and which other families extend.
BERT_KEYS = (
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
# No encoder is larger in any dimension: a damaged or hostile file is refused before memory of its size is allocated.
LARGEST_SIZE = 2**24


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """Base class of the families' configurations: the fields that all have, with the defaults of BERT-base.

    Attributes:
        tie_word_embeddings: whether a masked-LM head scores words by the token embedding's own table.
        model_type: its value in Hugging Face's config.json.
        family: the family's name in messages.
        named_sizes: published names to (layers, width, heads).
        named_fields: published names to their further fields that are not the defaults.
        huggingface_keys: pairs of a field and its key in config.json; the first five are required.
        activation_key: the key of `activation`.
        optional_keys: like huggingface_keys, for keys that may be missing or null.
        fixed_values: keys of config.json with the only supported value, which is also their default.
        pair_tasks: tasks that it can learn from text pairs, of `text.rows.pretraining_rows.PAIRS`.
        left_out: transformers' defaults for missing keys of config.json, where they differ from the defaults here.
        heads_have_gelu: whether transformers computes the heads with exact GELU, whatever the activation is.
        may_be_causal: whether left-to-right attention is supported (`is_decoder` in config.json).
        other_model_types: further values of model_type in config.json for this family.
        use_bias: whether blocks, norms and the dense layers of heads have biases.
        rms_norm: whether norms are RMS norms.
        head_has_transform: whether a masked-LM head transforms and normalizes vectors before it scores words.
        head_has_output_bias: whether it adds a bias to each word's score.
        smallest_sizes: smallest value of a size, where it is not 1.
        has_position_table: whether there are position embeddings, `max_length` of them.
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
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-12
    pad_id: int = 0
    tie_word_embeddings: bool = True

    model_type: typing.ClassVar[str]
    family: typing.ClassVar[str]
    named_sizes: typing.ClassVar[dict]
    named_fields: typing.ClassVar[dict] = {}
    huggingface_keys: typing.ClassVar[tuple] = BERT_KEYS
    activation_key: typing.ClassVar[str] = "hidden_act"
    optional_keys: typing.ClassVar[tuple] = (("layer_norm_epsilon", "layer_norm_eps"), ("pad_id", "pad_token_id"))
    fixed_values: typing.ClassVar[dict] = {"position_embedding_type": "absolute"}
    left_out: typing.ClassVar[dict] = {}
    pair_tasks: typing.ClassVar[tuple] = ("next_sentence", "sentence_order")
    heads_have_gelu: typing.ClassVar[bool] = False
    may_be_causal: typing.ClassVar[bool] = False
    other_model_types: typing.ClassVar[tuple] = ()
    use_bias: typing.ClassVar[bool] = True
    rms_norm: typing.ClassVar[bool] = False
    head_has_transform: typing.ClassVar[bool] = True
    head_has_output_bias: typing.ClassVar[bool] = True
    smallest_sizes: typing.ClassVar[dict] = {}
    has_position_table: typing.ClassVar[bool] = True

    def __post_init__(self):
        if self.intermediate_size is None:
            object.__setattr__(self, "intermediate_size", 4 * self.hidden_size)
        for name in (name for name in SIZES if hasattr(self, name)):
            value, least = getattr(self, name), self.smallest_sizes.get(name, 1)
            if not isinstance(value, numbers.Integral) or not least <= value <= LARGEST_SIZE:
                raise ValueError(f"{name} must be a whole number from {least} to {LARGEST_SIZE:,}, not {value!r}.")
            object.__setattr__(self, name, int(value))  # NumPy's integers are not written to JSON
        if self.hidden_size % self.num_heads:
            raise ValueError(f"hidden_size {self.hidden_size} is not a multiple of num_heads {self.num_heads}.")
        for name in (name for name in ("pad_id", "sep_id") if hasattr(self, name)):
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < self.vocabulary_size:
                raise ValueError(
                    f"{name} {value!r} is outside the vocabulary of {self.vocabulary_size} tokens. Pass your "
                    f"tokenizer's, {name}=tokenizer.{name}."
                )
        if self.heads_have_gelu and self.activation != "gelu":
            raise ValueError(
                f"activation {self.activation!r}: transformers computes the heads of {self.family} with exact GELU "
                "whatever the encoder's activation is. Set activation='gelu'."
            )

    @property
    def num_positions(self):
        """The number of rows in the position table."""
        return self.max_length

    @property
    def schedule(self):
        """The numbers of the blocks that a token passes through, in order."""
        return list(range(self.num_layers))

    @property
    def depth(self):
        """The number of blocks that a token passes through."""
        return len(self.schedule)

    @property
    def windows(self):
        """For each layer that a token passes through, the largest distance between it and one that it attends to; None
        for any."""
        return [None] * self.depth

    def keys_seen(self, length):
        """For each layer that a token passes through, the average number of keys for a query in a sequence of this
        length."""
        return [length if window is None else min(length, 2 * window + 1) for window in self.windows]

    # Products of each layer's queries or keys with a vector for each of the 2 * length - 1 distances.
    distance_products: typing.ClassVar[int] = 0

    @property
    def last_kernel_scale(self):
        """Factor of `initializer_range` for kernels whose output is added to hidden states, and for those before
        heads."""
        return 1.0

    @property
    def num_blocks(self):
        """The number of blocks with weights of their own."""
        return self.num_layers

    @property
    def classifier_dropout_rate(self):
        """The dropout before a text classifier, unless the head is given another."""
        return self.hidden_dropout_rate

    @property
    def token_classifier_dropout_rate(self):
        """The dropout before a token classifier, unless the head is given another."""
        return self.classifier_dropout_rate

    @classmethod
    def class_prefix(cls):
        """Returns the first part of this family's class names, here and in transformers: "Bert" for BertConfig."""
        return cls.__name__.removesuffix("Config")

    @classmethod
    def from_name(cls, name, **overrides):
        """Returns the configuration of a published size.

        Args:
            name (str): name of the size, a key of `named_sizes`.
            overrides: fields that replace those of the size, such as `vocabulary_size`.

        Raises: KeyError for another name.
        """
        num_layers, hidden_size, num_heads = cls.named_sizes[name]
        fields = {"num_layers": num_layers, "hidden_size": hidden_size, "num_heads": num_heads}
        fields |= cls.named_fields.get(name, {})
        if "hidden_size" in overrides:  # the default follows the width
            fields.pop("intermediate_size", None)
        return cls(**{**fields, **overrides})

    @classmethod
    def from_dict(cls, fields):
        """Returns the configuration of a dict of all fields, as `to_dict` returns it."""
        return cls(**fields)

    def to_dict(self):
        """Returns all fields by name, plain numbers and strings."""
        return dataclasses.asdict(self)

    @classmethod
    def from_huggingface(cls, path):
        """Reads a Hugging Face `config.json`.

        Args:
            path (str or pathlib.Path): the file.

        Returns: the configuration.
        Raises: ValueError if the model is of another type, or uses an unsupported feature, such as a decoder.
        """
        return cls.from_content(path, read_json(path))

    @classmethod
    def from_content(cls, path, found):
        """Reads a dict, the content of the `config.json` at `path`; errors as `from_huggingface`."""
        kind, wanted = found.get("model_type", cls.model_type), {**cls.fixed_values, "model_type": cls.model_type}
        if kind in cls.other_model_types:
            wanted.pop("model_type")
        if not cls.may_be_causal:
            wanted["is_decoder"] = False
        for key, value in wanted.items():
            check_setting(path, key, found.get(key, value), value)
        return cls.from_keys(path, found, HUGGINGFACE_ACTIVATIONS)

    def to_huggingface(self):
        """Returns the content of a Hugging Face `config.json`, a dict, without the keys of a head."""
        activation = next(theirs for theirs, ours in HUGGINGFACE_ACTIVATIONS.items() if ours == self.activation)
        keys, usual = (*self.huggingface_keys, *self.optional_keys), type(self).tie_word_embeddings
        return {
            "model_type": self.model_type,
            **{theirs: getattr(self, ours) for ours, theirs in keys},
            self.activation_key: activation,
            **({"tie_word_embeddings": self.tie_word_embeddings} if self.tie_word_embeddings != usual else {}),
        }

    @classmethod
    def from_keys(cls, path, found, activations):
        """Reads a dict with the keys of this family; `activations` maps its names of activations to ours."""
        found = found | {key: value for key, value in cls.left_out.items() if found.get(key) is None}
        missing = [theirs for _, theirs in cls.huggingface_keys[:5] if theirs not in found]
        if missing:
            raise ValueError(f"{path} lacks {', '.join(missing)}: it is not the configuration of a {cls.family} model.")
        fields = {ours: found[theirs] for ours, theirs in cls.huggingface_keys if theirs in found}
        activation = activations[found.get(cls.activation_key, "gelu")]
        fields |= {ours: found[theirs] for ours, theirs in cls.optional_keys if found.get(theirs) is not None}
        is_tied = cls.tie_word_embeddings if (tied := found.get("tie_word_embeddings")) is None else tied
        return cls(activation=activation, tie_word_embeddings=is_tied, **fields)


def check_setting(path, key, value, expected):
    """Raises ValueError unless a value in a configuration file is the expected one."""
    if value != expected:
        raise ValueError(f"{path}: {key} {value!r} is not supported; expected {expected!r}.")
