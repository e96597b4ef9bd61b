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
    """A dense layer over every token, as for CoNLL-2003 (Devlin et al. 2019, section 5.3). Compiled by default with
    AdamW at 5e-5, the mean cross-entropy over labelled tokens, accuracy, and, if the classes mark entities, their F1
    (`entities.EntityF1`).

    `fit(words, labels)` takes lists of words with a label each, a number or a name; `fit(texts, spans)` takes strings
    with a list of (start, end, type) for each, in characters. `tag` finds entities in texts, or labels words.

    Labels of rows of ids are (batch, length), int; -1 or -100 for tokens without a label: special tokens, padding, all
    pieces of a word but the first. For texts they may also be a list of lists, with a label for each token of a row,
    including [CLS] and [SEP]. Sample weights are shaped like the labels, or (batch,), one for each row.

    Args:
        encoder: a BertEncoder, or another family's.
        num_classes: columns of the output.
        tokenizer: a Tokenizer; with it the model takes texts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.
        dropout_rate: on the tokens' vectors; None means the encoder's, 0.1 in the paper.
        class_names: names of the classes, such as O, B-PER, I-PER; kept in checkpoints and exports. None means
            "0", "1", ...

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, length, num_classes), float32.
    Raises: ValueError if class_names are not num_classes names, the vocabulary is not the encoder's, or
            sequence_length is above its max_length.
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
