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
    """Classifies texts, or pairs of texts: sentiment, topics, intents, entailment.

    Open a checkpoint with `from_pretrained`, train with `fit`, and use `classify` for class names and probabilities.
    The head is a dense layer over the pooled first token (Devlin et al. 2019, section 4.1). The model is compiled with
    AdamW at 5e-5, cross-entropy on logits and accuracy; with `multi_label`, with binary cross-entropy on logits and
    `losses.MultiLabelF1`.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        num_classes (int): number of classes.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        dropout_rate (float, optional): dropout on the pooled vector. Default: the encoder's, 0.1 in the paper.
        class_names (list of str, optional): names of the classes, kept in checkpoints and exports. Default: their
            numbers, as str.
        multi_label (bool, optional): whether a text can have several classes, or none. Each class then has a
            probability of its own, the sigmoid of its logit, and "accuracy" raises ValueError. Default: False.
        long_texts (str, optional): how to read texts above `sequence_length`. "cut" truncates them, "head_and_tail"
            keeps their beginning and end, "windows" averages over the whole text. Pairs are always truncated.
            Default: "cut".

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, num_classes), float32.
    Labels: (batch,), numbers or names of classes. With multi_label, a list of numbers or names for each text, or an
            array (batch, num_classes) of 0 and 1.
    Raises: ValueError if class_names are not num_classes different names, num_classes is 1 without multi_label, the
        tokenizer does not fit the encoder, or sequence_length is above its max_length.

    Example:
        >>> classes = ["negative", "positive"]
        >>> model = kbi.TextClassifier.from_pretrained("small_english", class_names=classes)
        >>> texts = ["A wonderful film.", "A waste of time."]
        >>> history = model.fit(texts, ["positive", "negative"], epochs=20, verbose=0)
        >>> model.classify("A wonderful film.")
        [Label(label='positive', probability=0...)]
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
                "With num_classes=1 the probability would always be 1: use 2, or multi_label=True for texts that "
                "may or may not have the class."
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
        """Returns the most probable classes of texts, with their probabilities.

        Args:
            texts (str or list): a text, several texts, or pairs of texts in any form that `predict` takes.
            top_k (int, optional): number of classes for each text; None for all. Default: "auto", the best class. With
                multi_label or a threshold, "auto" means all classes above the threshold, perhaps none.
            batch_size (int, optional): number of texts in a batch. Default: 32.
            threshold (float, optional): only classes with a probability above it are returned. Default: None, no
                threshold; with multi_label and top_k "auto", 0.5.

        Returns: a list of `Label` (`label`, `probability`) for one text, the most probable first; a list of such lists
            for several texts. The probabilities of a text add up to 1, except with multi_label.

        Example:
            >>> classes = ["negative", "positive"]
            >>> model = kbi.TextClassifier.from_pretrained("small_english", class_names=classes)
            >>> for answer in model.classify(["I loved it.", "Far too long."], top_k=None):
            ...     print(sorted(label.label for label in answer))
            ['negative', 'positive']
            ['negative', 'positive']
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
