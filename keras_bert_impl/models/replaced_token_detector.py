"""Which tokens of a text were replaced: ELECTRA's discriminator."""

import typing

import keras

from keras_bert_impl.configurations.initialization import kernel_initializer
from keras_bert_impl.kernels.gelu import activation_function
from keras_bert_impl.layers import Dense
from keras_bert_impl.models.answers import sigmoid
from keras_bert_impl.models.task_model import TaskModel, head_dense
from keras_bert_impl.preprocessing.texts import to_strings


class TokenDoubt(typing.NamedTuple):
    """A token of a text, its first character and the one after its last, and the probability that it was replaced."""

    token: str
    start: int
    end: int
    probability: float


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ReplacedTokenDetector(TaskModel):
    """Scores for each token whether it was replaced by another (Clark et al. 2020, section 3.1): a dense layer and one
    output. `ElectraPretrainer` trains it; it has no loss of its own.

    Args:
        encoder: an ElectraEncoder, or another family's.
        tokenizer: a Tokenizer; with it `predict` and `find_replaced` take texts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, length), float32; above 0 for a token that was probably replaced.
    Raises: ValueError if the vocabulary is not the encoder's, or sequence_length is above its max_length.
    """

    counterpart = "ForPreTraining"

    def __init__(self, encoder, tokenizer=None, sequence_length=None, name="bert_replaced_token_detector"):
        hidden = Dense(
            encoder.config.hidden_size,
            activation=activation_function(encoder.config.activation),
            kernel_initializer=kernel_initializer(encoder.config),
            dtype=encoder.dtype_policy,
            name="replaced_token_transform",
        )(encoder.detection_vectors(encoder.output, encoder.input))
        logits = head_dense(encoder, 1, "replaced_token_head")(hidden)[..., 0]
        super().__init__(encoder, tokenizer, sequence_length, logits, name)

    def find_replaced(self, texts, batch_size=32):
        """The probability of each token that it was replaced.

        Args:
            texts: a text, or a list of texts.
            batch_size: how many texts are computed at once.

        Returns: for one text a list of a TokenDoubt for each token, without special tokens; for several a list of such
            lists. Texts are cut to `sequence_length`.
        """
        tokenizer, is_one = self.tokenizer, isinstance(texts, str)
        texts = [texts] if is_one else to_strings(texts)
        probabilities = sigmoid(self.predict(texts, batch_size=batch_size, verbose=0))
        found = []
        for text, row in zip(texts, probabilities, strict=True):
            encoded = tokenizer.encode(text, add_special_tokens=False)
            tokens = zip(encoded.tokens, encoded.offsets, strict=True)
            of_tokens = tokenizer.template.text_in(row[: self.sequence_length])  # of a short text, padding follows
            found.append(
                [TokenDoubt(token, *offsets, float(p)) for (token, offsets), p in zip(tokens, of_tokens, strict=False)]
            )
        return found[0] if is_one else found
