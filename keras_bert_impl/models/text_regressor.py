"""A number for a text or a pair of texts."""

import keras

from keras_bert_impl.encoders.asked import PAIR, TEXT, Asked
from keras_bert_impl.models.task_model import TaskModel, text_scores
from keras_bert_impl.preprocessing.labels import LabelRule
from keras_bert_impl.preprocessing.long_texts import checked_long_texts


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TextRegressor(TaskModel):
    """Predicts a number for a text, or for a pair of texts: ratings, similarity as in STS-B.

    Open a checkpoint with `from_pretrained`, train with `fit`, and use `predict` for numbers. The head is a dense layer
    with one output over the pooled first token (Devlin et al. 2019, appendix B.1). The model is compiled with AdamW at
    5e-5, the mean squared error, and the mean absolute error.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        dropout_rate (float, optional): dropout on the pooled vector. Default: the encoder's, 0.1 in the paper.
        long_texts (str, optional): how to read texts above `sequence_length`. "cut" truncates them, "head_and_tail"
            keeps their beginning and end, "windows" averages over the whole text. Pairs are always truncated.
            Default: "cut".

    Input:  dict of the encoder's inputs, or texts.
    Output: (batch, 1), float32, on the scale of the labels.
    Labels: numbers, (batch,) or (batch, 1).
    Raises: ValueError if the tokenizer does not fit the encoder, or sequence_length is above its max_length.

    Example:
        >>> model = kbi.TextRegressor.from_pretrained("small_english")
        >>> history = model.fit(["A wonderful film.", "Dull."], [5.0, 1.0], verbose=0)
        >>> model.predict(["Dull."], verbose=0).shape
        (1, 1)
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
