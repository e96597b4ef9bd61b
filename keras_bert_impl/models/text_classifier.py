"""Classification of a text or a pair of texts."""

import keras

from keras_bert_impl.models.answers import Label, best, checked_top_k, softmax
from keras_bert_impl.models.labels import LabelRule
from keras_bert_impl.models.pretrained import (
    ClassesMixin,
    check_vocabulary,
    checked_class_names,
    checked_sequence_length,
    head_dense,
    head_dropout,
)
from keras_bert_impl.models.raw_text import RawTextMixin
from keras_bert_impl.optimization import BertAdamW


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TextClassifier(RawTextMixin, ClassesMixin, keras.Model):
    """A dense layer over the pooled first token (Devlin et al. 2019, section 4.1). Compiled by default with AdamW at
    5e-5, cross-entropy on logits and accuracy.

    Args:
        encoder: a BertEncoder, or another family's.
        num_classes: columns of the output.
        tokenizer: a WordPieceTokenizer; with it `fit`, `evaluate` and `predict` take texts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.
        dropout_rate: on the pooled vector; None means the encoder's, 0.1 in the paper.
        class_names: names of the classes, kept in checkpoints and exports; None means "0", "1", ...

    `classify` answers in words.

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, num_classes), float32; labels are (batch,), numbers or names of classes.
    Raises: ValueError if class_names are not num_classes names, the vocabulary is not the encoder's, or
            sequence_length is above its max_length.
    """

    head_arguments = ("num_classes", "dropout_rate", "class_names")

    def __init__(
        self,
        encoder,
        num_classes,
        tokenizer=None,
        sequence_length=None,
        dropout_rate=None,
        class_names=None,
        name="bert_text_classifier",
    ):
        class_names = checked_class_names(class_names, num_classes)
        check_vocabulary(tokenizer, encoder)
        dropout = head_dropout(encoder, dropout_rate, "pooled_dropout")
        logits = head_dense(encoder, num_classes, "classifier")(dropout(encoder.pooled(encoder.output)))
        super().__init__(inputs=encoder.input, outputs=logits, name=name)
        self.dtype_policy = encoder.dtype_policy
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.num_classes = num_classes
        self.sequence_length = checked_sequence_length(sequence_length, encoder.config)
        self.dropout_rate = dropout.rate
        self.class_names = class_names
        self.compile(
            optimizer=BertAdamW(5e-5),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )

    def classify(self, texts, top_k=1, batch_size=32):
        """The most probable classes of texts.

        Args:
            texts: a text, or texts or pairs as `predict` takes them.
            top_k: how many classes of each text; None means all.
            batch_size: how many texts are computed at once.

        Returns: for one text a list of top_k Label, the most probable first; for several a list of such lists.
        Raises: ValueError if top_k is not from 1 to the number of classes.
        """
        top_k = checked_top_k(top_k, self.num_classes, "classes")
        probabilities = softmax(self.predict(texts, batch_size=batch_size, verbose=0))
        labels = [
            [Label(self.class_names[place], float(row[place])) for place in places]
            for row, places in zip(probabilities, best(probabilities, top_k), strict=True)
        ]
        return labels[0] if isinstance(texts, str) else labels

    def label_rule(self, sizes):
        meaning = "the number or the name of the class of its row"
        return LabelRule((len(sizes.tokens),), self.num_classes, meaning, names=tuple(self.class_names))
