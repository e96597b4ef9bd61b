"""Which of several endings fits a text."""

import keras
from keras import ops

from keras_bert_impl.encoders.asked import SENTENCE, Asked
from keras_bert_impl.models.answers import Choice, named_classes, softmax
from keras_bert_impl.models.task_model import TaskModel, text_scores
from keras_bert_impl.preprocessing import ChoicePreprocessor
from keras_bert_impl.preprocessing.labels import LabelRule
from keras_bert_impl.preprocessing.texts import in_memory


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MultipleChoice(TaskModel):
    """A score for each choice, by a dense layer over the pooled first token of text and choice, as for SWAG (Devlin et
    al. 2019, section 4.4). Compiled by default with AdamW at 5e-5, cross-entropy over the choices, and accuracy.

    Args:
        encoder: a BertEncoder, or another family's.
        tokenizer: a Tokenizer; with it `fit`, `evaluate`, `predict` and `rows` take a pair: texts, and for
            each the list of its choices, the same number for all.
        sequence_length: text and choice are cut to this many tokens; None means the encoder's `max_length`.
        dropout_rate: on the pooled vector; None means the encoder's, 0.1 in the paper.

    Input:  dict of the encoder's inputs, each (batch, choices, length); or (texts, choices).
    Output: logits (batch, choices), float32; labels are (batch,), int.
    Raises: ValueError if the vocabulary is not the encoder's, or sequence_length is above its max_length.
    """

    preprocessor_class = ChoicePreprocessor
    asked = Asked(
        "choose", {"serving_default": {"text": [SENTENCE], "endings": [["It slept.", "It was a dog."]]}}, "class_id"
    )
    head_arguments = ("dropout_rate",)
    counterpart = "ForMultipleChoice"

    def __init__(self, encoder, tokenizer=None, sequence_length=None, dropout_rate=None, name="bert_multiple_choice"):
        encoder = encoder.for_task("choice")
        inputs = {name: keras.Input((None, None), dtype="int32", name=name) for name in encoder.input}
        rows = {name: FlattenChoices(name=f"flatten_{name}")(array) for name, array in inputs.items()}
        scores, dropout_rate = text_scores(encoder, 1, dropout_rate, encoder(rows), rows)  # (batch * choices, 1)
        logits = UnflattenChoices(name="unflatten")(scores, inputs["token_ids"])
        super().__init__(encoder, tokenizer, sequence_length, logits, name, inputs, dropout_rate=dropout_rate)

    def usual_objective(self):
        return {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "metrics": ["accuracy"]}

    def named_outputs(self, logits, rows=None):
        """`logits` and `probabilities`, (batch, choices)."""
        return named_classes(logits)

    def choose(self, text, endings, batch_size=32):
        """The most probable ending of a text.

        Args:
            text: a text, or several.
            endings: its endings, or for each of several texts a list of equally many endings.
            batch_size: how many texts are computed at once.

        Returns: a Choice; for several texts a list of them.
        """
        is_one = isinstance(text, str)
        pair = ([text], [endings]) if is_one else in_memory((text, endings))
        probabilities = softmax(self.predict(pair, batch_size=batch_size, verbose=0))
        choices = [Choice(int(row.argmax()), row.tolist()) for row in probabilities]
        return choices[0] if is_one else choices

    def label_rule(self, sizes):
        return LabelRule((len(sizes.tokens),), sizes.choices, "the number of the right choice")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FlattenChoices(keras.layers.Layer):
    """(batch, choices, length) to (batch * choices, length)."""

    def call(self, array):
        return ops.reshape(array, (-1, ops.shape(array)[2]))

    def compute_output_shape(self, input_shape):
        return (None, input_shape[2])


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class UnflattenChoices(keras.layers.Layer):
    """(batch * choices, 1) to (batch, choices); the second input gives the number of choices."""

    def call(self, scores, array):
        return ops.reshape(scores, (-1, ops.shape(array)[1]))

    def compute_output_shape(self, scores_shape, array_shape):
        return (array_shape[0], array_shape[1])
