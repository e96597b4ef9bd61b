"""Classification of a text or a pair of texts."""

import keras

from keras_bert_impl.encoders.asked import PAIR, TEXT, Asked
from keras_bert_impl.losses import MultiLabelF1
from keras_bert_impl.models.answers import Label, best, named_classes, sigmoid, softmax
from keras_bert_impl.models.compile_arguments import takes_zeros_and_ones
from keras_bert_impl.models.pretrained import checked_class_names
from keras_bert_impl.models.task_model import ClassesModel, text_scores
from keras_bert_impl.preprocessing.labels import LabelRule
from keras_bert_impl.preprocessing.long_texts import checked_long_texts


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TextClassifier(ClassesModel):
    """A dense layer over the pooled first token (Devlin et al. 2019, section 4.1). Compiled by default with AdamW at
    5e-5, cross-entropy on logits and accuracy; with multi_label, binary cross-entropy on logits and
    `losses.MultiLabelF1`.

    Args:
        encoder: a BertEncoder, or another family's.
        num_classes: columns of the output.
        tokenizer: a Tokenizer; with it `fit`, `evaluate` and `predict` take texts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.
        long_texts: what is done with longer ones: "cut", "head_and_tail" or "windows"; see `preprocessing.long_texts`.
        dropout_rate: on the pooled vector; None means the encoder's, 0.1 in the paper.
        class_names: names of the classes, kept in checkpoints and exports; None means "0", "1", ...
        multi_label: whether a text may have several classes, or none: each class is decided for itself, and its
            probability is the sigmoid of its logit. Metrics of the largest logit of each text are refused, such as
            "accuracy".

    `classify` answers in words.

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, num_classes), float32; labels are (batch,), numbers or names of classes. With multi_label
            they are for each text a list of numbers or names of classes, or (batch, num_classes) of 0 and 1.
    Raises: ValueError if class_names are not num_classes names, num_classes is 1 without multi_label, the vocabulary is
            not the encoder's, or sequence_length is above its max_length.
    """

    asked = Asked("classify", {"serving_default": TEXT, "pairs": PAIR}, "probabilities")
    head_arguments = ("num_classes", "dropout_rate", "class_names", "multi_label", "long_texts")
    counterpart = "ForSequenceClassification"

    def __init__(
        self,
        encoder,
        num_classes,
        tokenizer=None,
        sequence_length=None,
        dropout_rate=None,
        class_names=None,
        multi_label=False,
        long_texts="cut",
        name="bert_text_classifier",
    ):
        class_names = checked_class_names(class_names, num_classes)
        num_classes = len(class_names)
        if num_classes == 1 and not multi_label:  # transformers refuses such a checkpoint, too
            raise ValueError(
                "num_classes is 1, and one class has the probability 1: give two, or multi_label=True for texts with "
                "the class or without."
            )
        encoder = encoder.for_task("text")
        logits, dropout_rate = text_scores(encoder, num_classes, dropout_rate)
        arguments = {"num_classes": num_classes, "dropout_rate": dropout_rate, "class_names": class_names}
        arguments |= {"multi_label": multi_label, "long_texts": checked_long_texts(long_texts)}
        super().__init__(encoder, tokenizer, sequence_length, logits, name, **arguments)

    def usual_objective(self):
        if self.multi_label:
            return {"loss": keras.losses.BinaryCrossentropy(from_logits=True), "metrics": [MultiLabelF1()]}
        return {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "metrics": ["accuracy"]}

    def named_outputs(self, logits, rows=None):
        """`logits` and `probabilities`, (batch, num_classes)."""
        return named_classes(logits, self.multi_label)

    def classify(self, texts, top_k="auto", batch_size=32, threshold=None):
        """The most probable classes of texts.

        Args:
            texts: a text, or texts or pairs as `predict` takes them.
            top_k: how many classes of each text; None means all. "auto" is 1, and with multi_label or a threshold all
                those whose probability is above it, perhaps none.
            batch_size: how many texts are computed at once.
            threshold: only classes whose probability is above this; None for "auto" with multi_label is 0.5.

        Returns: for one text a list of Label (`label`, `probability`), the most probable first; for several a
            list of such lists. The probabilities of a text add up to 1, but with multi_label each class has its own.
        """
        if top_k == "auto":
            threshold = 0.5 if threshold is None and self.multi_label else threshold
            top_k = 1 if threshold is None else None
        logits = self.predict(texts, batch_size=batch_size, verbose=0)
        probabilities = sigmoid(logits) if self.multi_label else softmax(logits)
        labels = [
            [Label(self.class_names[place], float(row[place])) for place in places if row[place] > (threshold or -1)]
            for row, places in zip(probabilities, best(probabilities, top_k), strict=True)
        ]
        return labels[0] if isinstance(texts, str) else labels

    def label_rule(self, sizes):
        if self.multi_label:
            meaning = "1 if its row belongs to the class of its column, else 0"
            return LabelRule((len(sizes.tokens), self.num_classes), 2, meaning)
        meaning = "the number or the name of the class of its row"
        return LabelRule((len(sizes.tokens),), self.num_classes, meaning, names=tuple(self.class_names))

    def preprocessor_arguments(self):
        classes = {"class_names": self.class_names, "multi_label": self.multi_label}
        return {**super().preprocessor_arguments(), **classes}

    def takes_class_numbers(self, loss):
        return takes_zeros_and_ones(loss) if self.multi_label else super().takes_class_numbers(loss)
