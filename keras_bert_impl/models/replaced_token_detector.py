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
    """A token of a text, as `ReplacedTokenDetector.find_replaced` returns it.

    Fields:
        token (str): the token.
        start (int): position of its first character in the text.
        end (int): position after its last character.
        probability (float): probability that it was replaced.
    """

    token: str
    start: int
    end: int
    probability: float


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ReplacedTokenDetector(TaskModel):
    """Finds replaced tokens in texts: ELECTRA's discriminator (Clark et al. 2020, section 3.1).

    Open a checkpoint with `from_pretrained`, and use `find_replaced`. `ElectraPretrainer` trains it; it has no loss of
    its own. The head is a dense layer and one output for each token.

    Args:
        encoder (keras.Model): an `ElectraEncoder`, or an encoder of another family.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.

    Input:  dict of the encoder's inputs, or texts.
    Output: logits (batch, length), float32; above 0 for a token that was probably replaced.
    Raises: ValueError if the tokenizer does not fit the encoder, or sequence_length is above its max_length.

    Example:
        >>> model = kbi.ReplacedTokenDetector.from_pretrained("small_english")
        >>> [doubt.token for doubt in model.find_replaced("The cat ate the sky.")]
        ['the', 'cat', 'ate', 'the', 'sky', '.']
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
        """Returns the probability of each token that it was replaced.

        Args:
            texts (str or list): a text, or several, which are truncated to `sequence_length`.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a list of `TokenDoubt` (`token`, `start`, `end`, `probability`) for one text, without special tokens; a
            list of such lists for several.
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
