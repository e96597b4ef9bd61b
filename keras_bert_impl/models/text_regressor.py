"""A number for a text or a pair of texts."""

import keras

from keras_bert_impl.encoders.asked import PAIR, TEXT, Asked
from keras_bert_impl.models.task_model import TaskModel, text_scores
from keras_bert_impl.preprocessing.labels import LabelRule
from keras_bert_impl.preprocessing.long_texts import checked_long_texts


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TextRegressor(TaskModel):
    """A dense layer of one column over the pooled first token, as for STS-B (Devlin et al. 2019, appendix B.1).
    Compiled by default with AdamW at 5e-5 and the mean squared error.

    Args:
        encoder: a BertEncoder, or another family's.
        tokenizer: a Tokenizer; with it `fit`, `evaluate` and `predict` take texts or pairs of them.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.
        long_texts: what is done with longer ones: "cut", "head_and_tail" or "windows"; see `preprocessing.long_texts`.
        dropout_rate: on the pooled vector; None means the encoder's, 0.1 in the paper.

    Input:  dict of the encoder's inputs, or texts.
    Output: (batch, 1), float32, in the units of the labels, which are (batch,) or (batch, 1).
    Raises: ValueError if the vocabulary is not the encoder's, or sequence_length is above its max_length.
    """

    asked = Asked("regress", {"serving_default": TEXT, "pairs": PAIR}, "value")
    head_arguments = ("dropout_rate", "long_texts")
    counterpart = "ForSequenceClassification"
    label_kind = "number"

    def __init__(
        self,
        encoder,
        tokenizer=None,
        sequence_length=None,
        dropout_rate=None,
        long_texts="cut",
        name="bert_text_regressor",
    ):
        encoder = encoder.for_task("text")
        value, dropout_rate = text_scores(encoder, 1, dropout_rate)
        arguments = {"dropout_rate": dropout_rate, "long_texts": checked_long_texts(long_texts)}
        super().__init__(encoder, tokenizer, sequence_length, value, name, **arguments)

    def usual_objective(self):
        return {"loss": "mean_squared_error", "metrics": ["mean_absolute_error"]}

    def named_outputs(self, outputs, rows=None):
        """`value`, (batch,)."""
        return {"value": outputs[:, 0]}

    def label_rule(self, sizes):
        return LabelRule((len(sizes.tokens),), None, "a finite number, the value of its row")
