"""Classifies every token by the vectors of a frozen encoder: the feature-based approach."""

import pathlib

import keras
from keras import ops

from keras_bert_impl.distribution import is_chief
from keras_bert_impl.layers import Dense
from keras_bert_impl.models.pretrained import checked_class_names
from keras_bert_impl.models.task_model import check_has_four_layers
from keras_bert_impl.models.word_labels import WordLabelsModel

# The rows of Devlin et al. 2019, table 7: layers, counted from 0 (embeddings) or from the end, and their combination.
FEATURES = {
    "embeddings": ([0], "concatenate"),
    "second_to_last": ([-2], "concatenate"),
    "last": ([-1], "concatenate"),
    "weighted_sum_last_four": ([-4, -3, -2, -1], "weigh"),
    "concat_last_four": ([-4, -3, -2, -1], "concatenate"),
    "weighted_sum_all": (None, "weigh"),
}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FeatureTagger(WordLabelsModel):
    """Labels words with a BiLSTM over a frozen encoder, without fine-tuning it (Devlin et al. 2019, section 5.3).

    Two BiLSTM layers and a classifier are trained on the encoder's vectors. Call `compile` first, since there is no
    usual optimizer and loss; then train and use it as a `TokenClassifier`.

    Args:
        encoder (keras.Model): encoder of any family; it is frozen, and its dropout is off.
        num_classes (int): number of classes.
        features (str, optional): layers that the vectors come from: "embeddings", "second_to_last", "last",
            "weighted_sum_last_four", "concat_last_four" or "weighted_sum_all". The weights of a sum are trained, as in
            ELMo, and start equal. Default: "concat_last_four".
        units (int, optional): width of each direction of each LSTM. Default: 768, as in the paper.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        class_names (list of str, optional): names of the classes. Default: their numbers, as str.

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, length, num_classes), float32.
    Labels: as in TokenClassifier.
    Raises: KeyError for unknown features; ValueError as in TokenClassifier.

    Example:
        >>> encoder = kbi.encoder_from_pretrained("small_english")
        >>> tokenizer = kbi.checkpoints.open_checkpoint("small_english").tokenizer
        >>> model = kbi.FeatureTagger(encoder, 2, units=8, tokenizer=tokenizer, class_names=["O", "LOC"])
        >>> model.compile(kbi.optimization.BertAdamW(1e-3), "sparse_categorical_crossentropy")
        >>> history = model.fit([["in", "London"]], [["O", "LOC"]], verbose=0)
        >>> model.predict(["Ada lives in London"], verbose=0).shape
        (1, 32, 2)
    """

    head_arguments = ("num_classes", "features", "units", "class_names")

    def __init__(
        self,
        encoder,
        num_classes,
        features="concat_last_four",
        units=768,
        tokenizer=None,
        sequence_length=None,
        class_names=None,
        name="bert_feature_tagger",
    ):
        class_names = checked_class_names(class_names, num_classes)
        num_classes = len(class_names)
        encoder.trainable = False
        layers, how = FEATURES[features]
        if features.endswith("last_four"):
            check_has_four_layers(encoder)
        states = FrozenStates(encoder, name="frozen_states")(encoder.input)
        chosen = states[1:] if layers is None else [states[layer] for layer in layers]
        if how == "weigh":
            hidden = LayerWeights(dtype="float32", name="layer_weights")(chosen)
        else:
            hidden = (
                keras.layers.Concatenate(dtype="float32", name="features")(chosen) if len(chosen) > 1 else chosen[0]
            )
        is_token = ops.not_equal(encoder.input["padding_mask"], 0)  # at other positions LSTMs keep their state
        for number in range(2):
            lstm = keras.layers.LSTM(units, return_sequences=True, dtype="float32", name="lstm")
            hidden = keras.layers.Bidirectional(lstm, dtype="float32", name=f"bilstm_{number}")(hidden, mask=is_token)
        logits = Dense(num_classes, dtype="float32", name="tagger")(hidden)
        arguments = {"num_classes": num_classes, "features": features, "units": units, "class_names": class_names}
        super().__init__(encoder, tokenizer, sequence_length, logits, name, **arguments)

    def save_pretrained(self, directory):
        """Saves model.keras and the tokenizer, for `from_pretrained`; other libraries do not have this model.

        Args:
            directory (str or pathlib.Path): created if it does not exist. Only one of several processes writes.
        """
        if not is_chief():
            return
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.save(directory / "model.keras")
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(directory, self.sequence_length)

    @classmethod
    def from_pretrained(cls, path):
        """Opens the model that `save_pretrained` wrote.

        Args:
            path (str or pathlib.Path): the directory.

        Returns: the model, not compiled.
        """
        return keras.saving.load_model(pathlib.Path(path) / "model.keras", compile=False)


class FrozenStates(keras.layers.Layer):
    """Outputs of an encoder's embeddings and of each block, without dropout even while the layers above are trained.

    Input:  dict of the encoder's inputs.
    Output: list of (batch, length, hidden_size), layers + 1 of them.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(trainable=False, dtype=encoder.dtype_policy, **kwargs)
        self.states = keras.Model(encoder.input, encoder.hidden_states())

    def call(self, inputs):
        return self.states(inputs, training=False)

    def compute_output_spec(self, inputs):
        shape = (*inputs["token_ids"].shape, self.states.outputs[0].shape[-1])
        return [keras.KerasTensor(shape, dtype=self.compute_dtype) for _ in self.states.outputs]


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LayerWeights(keras.layers.Layer):
    """A weighted sum of layers, softmax over learnt scores (Peters et al. 2018, equation 1).

    Input:  list of (batch, length, width).
    Output: (batch, length, width).
    """

    def build(self, shapes):
        self.scores = self.add_weight(name="scores", shape=(len(shapes),), initializer="zeros")

    def call(self, layers):
        weights = ops.softmax(self.scores)
        return sum(weights[place] * layer for place, layer in enumerate(layers))

    def compute_output_shape(self, shapes):
        return tuple(shapes[0])
