"""Which of several endings fits a text."""

import keras
from keras import ops

from keras_bert_impl.encoders.asked import SENTENCE, Asked
from keras_bert_impl.models.answers import Choice, named_classes, softmax
from keras_bert_impl.models.task_model import TaskModel, text_scores
from keras_bert_impl.preprocessing import ChoicePreprocessor
from keras_bert_impl.preprocessing.labels import LabelRule
from keras_bert_impl.preprocessing.texts import in_memory, is_empty


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MultipleChoice(TaskModel):
    """Chooses which of several endings or answers fits a text, as in SWAG.

    Open a checkpoint with `from_pretrained`, train with `fit((texts, choices), numbers)`, and use `choose` for the best
    choice. Each choice is scored by a dense layer over the pooled first token of text and choice (Devlin et al. 2019,
    section 4.4). The model is compiled with AdamW at 5e-5, cross-entropy over the choices, and accuracy.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in a text with one choice. Default: the encoder's
            `max_length`.
        dropout_rate (float, optional): dropout on the pooled vector. Default: the encoder's, 0.1 in the paper.

    Input:  (texts, choices), where choices has a list for each text, all equally long; or dict of the encoder's inputs,
            each (batch, choices, length).
    Output: logits (batch, choices), float32.
    Labels: int (batch,), the number of the right choice, from 0.
    Raises: ValueError if the tokenizer does not fit the encoder, or sequence_length is above its max_length.

    Example:
        >>> model = kbi.MultipleChoice.from_pretrained("small_english")
        >>> texts = ["She opened the umbrella because", "He was hungry, so"]
        >>> choices = [["it was raining.", "it was blue."], ["he slept.", "he ate an apple."]]
        >>> history = model.fit((texts, choices), [0, 1], epochs=20, verbose=0)
        >>> model.choose(texts[0], choices[0])
        Choice(number=0, probabilities=[0..., 0...])
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
        """Returns the most probable choice for a text.

        Args:
            text (str or list): a text, or several.
            endings (list): its choices; for several texts, a list of equally long lists.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a `Choice` (`number`, `probabilities`); a list of them for several texts.
        """
        is_one = isinstance(text, str)
        if is_empty(text):
            return []
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
