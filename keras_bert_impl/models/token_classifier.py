"""A class for every token: named entities, parts of speech."""

import keras

from keras_bert_impl.encoders.asked import TEXT, Asked
from keras_bert_impl.losses import NO_LABEL, WeightedCrossEntropy
from keras_bert_impl.models.answers import named_classes
from keras_bert_impl.models.pretrained import checked_class_names
from keras_bert_impl.models.task_model import head_dense, head_dropout
from keras_bert_impl.models.word_labels import WordLabelsModel
from keras_bert_impl.preprocessing.entities import metrics_of_words


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TokenClassifier(WordLabelsModel):
    """Labels words and finds entities: named-entity recognition (NER), part-of-speech tagging.

    Open a checkpoint with `from_pretrained`, train with `fit`, and use `tag` for entities or labels. The head is a
    dense layer over every token, as for CoNLL-2003 (Devlin et al. 2019, section 5.3). The model is compiled with AdamW
    at 5e-5, the mean cross-entropy over labelled tokens, and accuracy. If the classes mark entities (BIO, IOBES,
    BILOU), their F1 (`entities.EntityF1`) is a further metric.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        num_classes (int): number of classes.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        dropout_rate (float, optional): dropout on the tokens' vectors. Default: the encoder's, 0.1 in the paper.
        class_names (list of str, optional): names of the classes, such as "O", "B-PER", "I-PER"; kept in checkpoints
            and exports. Default: their numbers, as str.

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, length, num_classes), float32.
    Labels: with `fit(words, labels)`, a name or number for each word of lists of words; with `fit(texts, spans)`, a
            list of (start, end, type) for each string, in characters; for token IDs, int (batch, length), where -1 or
            -100 is a token without a label. Sample weights are (batch,), or shaped like the labels.
    Raises: ValueError if class_names are not num_classes different names, the tokenizer does not fit the encoder, or
        sequence_length is above its max_length.

    Example:
        >>> classes = ["O", "B-PER", "I-PER", "B-LOC"]
        >>> model = kbi.TokenClassifier.from_pretrained("small_english", class_names=classes)
        >>> words = [["Ada", "Lovelace", "lived", "in", "London"]]
        >>> labels = [["B-PER", "I-PER", "O", "O", "B-LOC"]]
        >>> history = model.fit(words, labels, epochs=30, verbose=0)
        >>> model.tag("Ada Lovelace lived in London")[0]
        Entity(text='Ada Lovelace', label='PER', score=0..., start=0, end=12)
    """

    asked = Asked("label_words", {"serving_default": TEXT}, "labels")
    head_arguments = ("num_classes", "dropout_rate", "class_names")
    counterpart = "ForTokenClassification"
    scores_tokens = True

    def __init__(
        self,
        encoder,
        num_classes,
        tokenizer=None,
        sequence_length=None,
        dropout_rate=None,
        class_names=None,
        name="bert_token_classifier",
    ):
        class_names = checked_class_names(class_names, num_classes)
        num_classes = len(class_names)
        if dropout_rate is None:
            dropout_rate = encoder.config.token_classifier_dropout_rate
        dropout = head_dropout(encoder, dropout_rate, "token_dropout")
        logits = head_dense(encoder, num_classes, "classifier")(dropout(encoder.token_vectors(encoder.output)))
        arguments = {"num_classes": num_classes, "dropout_rate": dropout.rate, "class_names": class_names}
        super().__init__(encoder, tokenizer, sequence_length, logits, name, **arguments)

    def usual_objective(self):
        # The mean over the batch's tokens that have a label; Keras' default would count the padding, too.
        loss = WeightedCrossEntropy(ignore_class=NO_LABEL)
        return {"loss": loss, "metrics": metrics_of_words(self.class_names)}

    def named_outputs(self, logits, rows=None):
        """`logits` and `probabilities`, (batch, length, num_classes)."""
        return named_classes(logits)
