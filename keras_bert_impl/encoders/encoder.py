"""What the encoders of all families share: configuration, loading, saving, and what heads need from them."""

import keras
from keras import ops

from keras_bert_impl import checkpoints, features
from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.encoders.asked import TEXT, Asked
from keras_bert_impl.encoders.keras_methods import AdaptedModel
from keras_bert_impl.encoders.layer_records import layer_records, restore_layer_records, without_layer_records
from keras_bert_impl.encoders.parts import Parts
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.layers import Dense, MaskedLMHead

# Arguments of every family's constructor that are attributes as they were given.
PLAIN_OPTIONS = ("packed", "return_hidden_states", "return_attention", "rematerialize", "name", "trainable")


class FamilyEncoder(AdaptedModel):
    """Base class of the families' encoders. A family has a `config_class`, and connects its layers in `connect`.

    Layers that every family has, by name: `token_embedding`, `block_0`, `block_1`, ...

    Args: those of `BertEncoder`, which become attributes; `of_family` are passed to `connect`.

    Attributes:
        cls_is_last: whether the control token whose vector stands for a sequence is the last token instead of the
            first.
        unused_weights: paths of weights that checkpoints hold and the graph does not use.
        connected: the `Connected` that `connect` returned.
        pooler_activation: activation of the dense layer that each text classifier has of its own, a name in
            `kernels.gelu`; None if the encoder has a pooler.
        tokens_of_predictions: number of tokens added to a sequence for each prediction of a masked and of a permuted
            word.
        permuted_arguments: names of the further arguments of `permuted_states`.
        generator_has_decoder: whether an `ElectraPretrainer`'s generator has the enhanced mask decoder.
    """

    asked = Asked("embed", {"serving_default": TEXT}, "mean_pooled")
    counterpart = "Model"  # as of TaskModel
    config_class = None
    cls_is_last = False
    unused_weights = frozenset()
    pooler_activation = None
    tokens_of_predictions = (0, 0)
    permuted_arguments = ()
    generator_has_decoder = False

    def __init__(
        self,
        config,
        packed=False,
        return_hidden_states=False,
        return_attention=False,
        rematerialize=False,
        dtype=None,
        name=None,
        trainable=True,
        **of_family,
    ):
        if rematerialize and return_attention:
            raise ValueError("return_attention needs the probabilities that rematerialize does not keep. Set only one.")
        policy = keras.dtype_policies.get(dtype)
        inputs = self.inputs_of_rows(packed, **of_family)
        parts = Parts(config, policy, kernel_initializer(config), rematerialize, return_attention)
        connected = self.connect(inputs, parts, **of_family)
        outputs = {"sequence_output": connected.hidden_states[-1]}
        if connected.pooled_output is not None:
            outputs["pooled_output"] = connected.pooled_output
        if return_hidden_states:
            outputs["hidden_states"] = keras.ops.stack(connected.hidden_states, axis=1)
        if return_attention:
            outputs["attention_probabilities"] = keras.ops.stack(connected.attention, axis=1)
        name = name or f"{config.model_type.replace('-', '_')}_encoder"
        super().__init__(inputs=inputs, outputs=outputs, name=name, trainable=trainable)
        self.config, self.dtype_policy, self.packed, self.rematerialize = config, policy, packed, rematerialize
        self.return_hidden_states, self.return_attention = return_hidden_states, return_attention
        # Not tracked by Keras, which would take tensors for a part of the model. A layer that is called several times
        # has no single output.
        object.__setattr__(self, "connected", connected)

    @classmethod
    def inputs_of_rows(cls, packed, more=(), **of_family):
        """Returns the input tensors by name, int32 (batch, length) each. A family may add names, depending on the
        arguments of `connect`."""
        names = (*features.ENCODER_INPUTS, *(features.PACKED_INPUTS if packed else ()), *more)
        return {name: keras.Input((None,), dtype="int32", name=name) for name in names}

    @staticmethod
    def connect(inputs, parts):
        """Connects the layers of a configuration.

        Args:
            inputs: tensors by name, int32 (batch, length) each: `features.ENCODER_INPUTS` and, for packed rows,
                `features.PACKED_INPUTS`.
            parts: `Parts`, which makes the layers.

        Returns: `Connected`.
        """

    def pool(self, vectors):
        """Returns the vectors for a text classifier from those of first tokens, (..., hidden_size) both."""
        if self.pooler_activation is None:
            return self.get_layer("pooler")(vectors)
        # transformers also drops units of ELECTRA's before this layer; Google's code, and all heads here, after it.
        return Dense(
            self.config.hidden_size,
            activation=activation_function(self.pooler_activation),
            kernel_initializer=kernel_initializer(self.config),
            dtype=self.dtype_policy,
            name="pooler",
        )(vectors)

    def connected_for(self, task):
        """Returns another encoder of the same layers, connected for a task; for families with `task` and
        `layers_of`."""
        options = {name: getattr(self, name) for name in PLAIN_OPTIONS}
        return type(self)(self.config, task=task, layers_of=self, dtype=self.dtype_policy, **options)

    def hidden_states(self):
        """Returns the embeddings and each layer's output: a list of symbolic tensors (batch, length, hidden_size)."""
        return list(self.connected.hidden_states)

    def last_context(self):
        """The last block's further arguments besides the hidden states: a dict of the graph's tensors by name."""
        return dict(self.connected.last_context)

    @property
    def token_embedding(self):
        """The `TokenEmbedding` layer, which a masked-LM head shares."""
        return self.get_layer("token_embedding")

    def pooled(self, outputs, rows):
        """Returns the vectors for a text classifier, (batch, hidden_size), from this encoder's outputs for `rows`."""
        if "pooled_output" in outputs:
            return outputs["pooled_output"]
        return self.pool(outputs["sequence_output"][:, 0])

    def for_task(self, task):
        """Returns this encoder as a head needs it: "text" for one vector of a text, "question" for answers in a text,
        "choice" for texts to choose from. In a family whose attention depends on the task, it is another encoder of the
        same layers."""
        return self

    def check_texts(self, first, second, template):
        """Raises ValueError if the family cannot encode texts of these IDs, lists of lists, in rows of this template;
        `second` is None for single texts."""

    def masked_states(self, rows, mask_positions):
        """Returns states for masked words, (batch, tokens, hidden_size), and their positions in these, (batch,
        predictions)."""
        return self.output["sequence_output"], mask_positions

    def masked_lm_head(self):
        """Returns a new masked-LM head, which shares the token embedding unless the configuration unties it."""
        config = self.config
        return MaskedLMHead(
            self.token_embedding,
            activation=config.activation,
            layer_norm_epsilon=config.layer_norm_epsilon,
            initializer=kernel_initializer(config, scale=config.last_kernel_scale),
            use_bias=config.use_bias,
            has_transform=config.head_has_transform,
            is_tied=config.tie_word_embeddings,
            has_output_bias=config.head_has_output_bias,
            dtype=self.dtype_policy,
            name="masked_lm_head",
        )

    def detection_vectors(self, outputs, rows):
        """Returns the vectors that replaced tokens are detected from, (batch, length, hidden_size)."""
        return outputs["sequence_output"]

    def token_vectors(self, outputs):
        """Returns the vectors for a token classifier, (batch, length, hidden_size)."""
        return outputs["sequence_output"]

    def answer_vectors(self, outputs):
        """Returns the vectors that starts and ends of answers are scored from, (batch, length, hidden_size)."""
        return self.token_vectors(outputs)

    def answer_penalty(self, rows):
        """Returns a penalty on the scores of starts and ends, (batch, length, 1), for tokens that cannot be in an
        answer, or None."""
        return None

    def named_outputs(self, outputs, rows):
        """Returns the outputs in float32, since NumPy has no bfloat16, and `mean_pooled` (batch, hidden_size), the mean
        over tokens."""
        outputs = {name: ops.cast(array, "float32") for name, array in outputs.items()}
        return {**outputs, "mean_pooled": mean_of_tokens(outputs["sequence_output"], rows)}

    def get_config(self):
        """Returns the constructor's arguments as a dict, for `from_config`."""
        return {
            "config": self.config.to_dict(),
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **{name: getattr(self, name) for name in PLAIN_OPTIONS},
            **layer_records(self),
        }

    @classmethod
    def from_config(cls, config):
        """Builds an encoder with new weights from the dict that `get_config` returns."""
        arguments = {**without_layer_records(config), "config": cls.config_class.from_dict(config["config"])}
        return restore_layer_records(cls(**arguments), config)

    @classmethod
    def from_pretrained(cls, path, report=False, **arguments):
        """Loads the encoder of a checkpoint.

        Args:
            path (str or pathlib.Path): a checkpoint directory, "hf://owner/name", or a name that `list_pretrained`
                prints.
            report (bool, optional): whether to print the tensors loaded, ignored and newly initialised. Default: False.
            arguments: further arguments of the constructor, such as `dtype`.

        Returns: the encoder.
        Raises: ValueError if the checkpoint is damaged, unreachable or from another family.
        """
        return checkpoints.encoder_from_pretrained(path, report, encoder_class=cls, **arguments)


def mean_of_tokens(vectors, rows):
    """Returns the mean (batch, width) of vectors (batch, length, width) over the tokens that are not padding."""
    weights = ops.cast(ops.expand_dims(rows["padding_mask"], -1), vectors.dtype)  # (batch, length, 1)
    # A row of padding only, which a server may add to fill a batch, gives zeros and not NaN.
    return ops.sum(vectors * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1)
