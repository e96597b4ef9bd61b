"""Which of several endings fits a text."""

import keras
from keras import ops

from keras_bert_impl.features import ENCODER_INPUTS
from keras_bert_impl.models.pretrained import (
    PretrainedMixin,
    check_vocabulary,
    checked_sequence_length,
    head_dense,
    head_dropout,
)
from keras_bert_impl.models.raw_text import RawTextMixin, to_strings
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.tokenizers.rows import rows_from_texts


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertMultipleChoice(RawTextMixin, PretrainedMixin, keras.Model):
    """A score for each choice, one vector over the pooled first token of text and choice, as for SWAG (Devlin et al.
    2019, section 4.4). Compiled as it comes, with AdamW at 5e-5, cross-entropy over the choices, and accuracy.

    Args:
        encoder: a BertEncoder.
        tokenizer: a WordPieceTokenizer; with it `rows` takes texts and their choices.
        sequence_length: text and choice are cut to this many tokens; None means the encoder's `max_length`.
        dropout_rate: on the pooled vector; None means the encoder's, 0.1 in the paper.

    Input:  dict of the encoder's inputs, each (batch, choices, length).
    Output: logits (batch, choices), float32; labels are (batch,), int.
    Raises: ValueError if the vocabulary is not the encoder's, or sequence_length is above its max_length.
    """

    head_arguments = ("dropout_rate",)

    def __init__(self, encoder, tokenizer=None, sequence_length=None, dropout_rate=None, name="bert_multiple_choice"):
        check_vocabulary(tokenizer, encoder)
        inputs = {name: keras.Input((None, None), dtype="int32", name=name) for name in ENCODER_INPUTS}
        rows = {name: FlattenChoices(name=f"flatten_{name}")(array) for name, array in inputs.items()}
        dropout = head_dropout(encoder, dropout_rate, "pooled_dropout")
        scores = head_dense(encoder, 1, "classifier")(dropout(encoder(rows)["pooled_output"]))  # (batch * choices, 1)
        logits = UnflattenChoices(name="unflatten")(scores, inputs["token_ids"])
        super().__init__(inputs=inputs, outputs=logits, name=name)
        self.dtype_policy = encoder.dtype_policy
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.sequence_length = checked_sequence_length(sequence_length, encoder.config)
        self.dropout_rate = dropout.rate
        self.compile(
            optimizer=BertAdamW(5e-5),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )

    def rows(self, texts):
        """The input arrays, (batch, choices, length), of a pair: texts, and for each the list of its choices.

        Raises: ValueError if the texts do not all have equally many choices, naming the first that has not.
        """
        first, choices = texts
        for index, endings in enumerate(choices):
            if len(endings) != len(choices[0]):
                raise ValueError(f"text {index} has {len(endings)} choices, text 0 has {len(choices[0])}.")
        repeated = [text for text, endings in zip(first, choices, strict=True) for _ in endings]
        flat = [ending for endings in choices for ending in endings]
        rows = rows_from_texts(self._require_tokenizer(), to_strings(repeated), to_strings(flat), self.sequence_length)
        return {name: array.reshape(len(first), -1, array.shape[-1]) for name, array in rows.items()}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FlattenChoices(keras.layers.Layer):
    """(batch, choices, length) to (batch * choices, length)."""

    def call(self, array):
        return ops.reshape(array, (-1, ops.shape(array)[2]))

    def compute_output_shape(self, input_shape):
        return (None, input_shape[2])


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class UnflattenChoices(keras.layers.Layer):
    """(batch * choices, 1) to (batch, choices), the choices of the second input."""

    def call(self, scores, array):
        return ops.reshape(scores, (-1, ops.shape(array)[1]))

    def compute_output_shape(self, scores_shape, array_shape):
        return (array_shape[0], array_shape[1])
