"""Classification of a text or a pair of texts."""

import keras

from keras_bert_impl.checkpoints import huggingface
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.raw_text import (
    RawTextMixin,
    checked_sequence_length,
    tokenizer_from_config,
    tokenizer_to_config,
)
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.tokenizers import WordPieceTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertTextClassifier(RawTextMixin, keras.Model):
    """A dense layer over the pooled first token (Devlin et al. 2019, section 4.1). Compiled as it comes,
    with AdamW at 5e-5, cross-entropy on logits and accuracy.

    Args:
        encoder: a BertEncoder.
        num_classes: columns of the output.
        tokenizer: a WordPieceTokenizer; with it `fit`, `evaluate` and `predict` take texts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.
        dropout_rate: on the pooled vector; None means the encoder's, 0.1 in the paper.
        class_names: names of the classes, kept in checkpoints and exports; None means "0", "1", ...

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, num_classes), float32.
    Raises: ValueError if class_names are not num_classes names, the vocabulary is not the encoder's, or
            sequence_length is above its max_length.
    """

    def __init__(
        self,
        encoder,
        num_classes,
        tokenizer=None,
        sequence_length=None,
        dropout_rate=None,
        class_names=None,
        **kwargs,
    ):
        if class_names is not None and len(class_names) != num_classes:
            raise ValueError(f"{len(class_names)} class_names for num_classes {num_classes}.")
        check_vocabulary(tokenizer, encoder)
        config, policy = encoder.config, encoder.dtype_policy
        rate = config.hidden_dropout_rate if dropout_rate is None else dropout_rate
        pooled = keras.layers.Dropout(rate, dtype=policy, name="pooled_dropout")(encoder.output["pooled_output"])
        logits = keras.layers.Dense(
            num_classes,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=config.initializer_range),
            dtype="float32",
            name="classifier",
        )(pooled)
        super().__init__(inputs=encoder.input, outputs=logits, **{"name": "bert_text_classifier", **kwargs})
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.num_classes = num_classes
        self.sequence_length = checked_sequence_length(sequence_length, config)
        self.dropout_rate = rate
        self.class_names = list(class_names or map(str, range(num_classes)))
        self.compile(
            optimizer=BertAdamW(5e-5),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )

    def get_config(self):
        return {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
            "tokenizer": tokenizer_to_config(self.tokenizer),
            "sequence_length": self.sequence_length,
            "dropout_rate": self.dropout_rate,
            "class_names": self.class_names,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder, "tokenizer": tokenizer_from_config(config["tokenizer"])})

    @classmethod
    def from_pretrained(cls, path, num_classes=None, **arguments):
        """The classifier of the checkpoint directory `path`, or a new head of `num_classes` over its encoder.

        Raises: ValueError if the checkpoint has no classifier and `num_classes` is missing.
        """
        names = huggingface.read_class_names(path)
        if names is None and num_classes is None:
            raise ValueError(f"{path} holds no classifier: say how many classes, for example num_classes=2.")
        reuse_head = names is not None and num_classes in (None, len(names))
        if reuse_head:
            num_classes, arguments = len(names), {"class_names": names, **arguments}
        arguments = {
            "tokenizer": WordPieceTokenizer.from_pretrained(path),
            "sequence_length": huggingface.read_sequence_length(path),
            **arguments,
        }
        model = cls(BertEncoder(huggingface.read_config(path)), num_classes, **arguments)
        huggingface.load_weights(model, path, except_for=() if reuse_head else ("classifier/",))
        return model

    def save_pretrained(self, directory):
        """Writes `config.json`, `model.safetensors` and the tokenizer as Hugging Face names them."""
        huggingface.save(self, directory)


def check_vocabulary(tokenizer, encoder):
    """Raises ValueError if the tokenizer can give ids that the encoder's embedding does not have."""
    if tokenizer is not None and tokenizer.vocabulary_size > encoder.config.vocabulary_size:
        raise ValueError(
            f"The tokenizer has {tokenizer.vocabulary_size} words, the encoder's embedding "
            f"{encoder.config.vocabulary_size}: they do not belong together."
        )
