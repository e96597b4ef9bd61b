"""Whether a text follows another."""

import keras
from keras import ops

from keras_bert_impl import checkpoints
from keras_bert_impl.encoders.asked import PAIR, Asked
from keras_bert_impl.models.answers import softmax
from keras_bert_impl.models.task_model import TaskModel, head_dense
from keras_bert_impl.preprocessing.labels import LabelRule


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class NextSentencePredictor(TaskModel):
    """Predicts whether one text follows another.

    Open a checkpoint with `from_pretrained`, and use `follows` for the probability. The head is that of BERT's
    pre-training (Devlin et al. 2019, section 3.1, task 2). The model is compiled with AdamW at 5e-5, cross-entropy and
    accuracy.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in a pair. Default: the encoder's `max_length`.

    Input:  dict of the encoder's inputs, or (first texts, second texts).
    Output: logits (batch, 2), float32.
    Labels: int (batch,): 0 if the second text follows, 1 for a random text, as in Google's code.
    Raises: ValueError if the tokenizer does not fit the encoder, or sequence_length is above its max_length.

    Example:
        >>> model = kbi.NextSentencePredictor.from_pretrained("small_english")
        >>> pairs = ["It rained.", "It rained."], ["We took umbrellas.", "Gold is a metal."]
        >>> history = model.fit(pairs, [0, 1], epochs=20, verbose=0)
        >>> model.follows("It rained.", "We took umbrellas.") > 0.5
        True
    """

    asked = Asked("next_sentence", {"serving_default": PAIR}, "probability")
    counterpart = "ForNextSentencePrediction"
    pair_columns = ("first_texts", "second_texts")

    def __init__(self, encoder, tokenizer=None, sequence_length=None, name="bert_next_sentence_predictor"):
        logits = head_dense(encoder, 2, "next_sentence_head")(encoder.pooled(encoder.output, encoder.input))
        super().__init__(encoder, tokenizer, sequence_length, logits, name)

    def usual_objective(self):
        return {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "metrics": ["accuracy"]}

    @classmethod
    def from_pretrained(cls, path, report=False, **arguments):  # noqa: D417, `with_entries` adds the others
        """Opens a checkpoint as a next-sentence predictor.

        A head that the checkpoint does not have starts from random weights, and a warning says so. An argument of the
        constructor that is left out has the checkpoint's value, if there is one.

        Args:
            arguments: those of every model's `from_pretrained`.

        Returns: the model, compiled for its usual loss.
        Raises: ValueError if the checkpoint is damaged or cannot be reached, or if its head was trained on another
            task, as ALBERT's was.
        """
        checkpoint = checkpoints.open_checkpoint(path)
        learns = checkpoint.config.pair_tasks
        if checkpoint.has("next_sentence_head/") and "next_sentence" not in learns:
            raise ValueError(
                f"{checkpoint.source.path} is a {checkpoint.config.family}, whose head for pairs was trained on "
                f"{' or '.join(learns)}, so it cannot say whether one text follows the other. Open it with a "
                "Pretrainer."
            )
        return super().from_pretrained(checkpoint, report=report, **arguments)

    def named_outputs(self, logits, rows=None):
        """`logits` (batch, 2), and `probability` (batch,) that the second text follows the first."""
        return {"logits": logits, "probability": ops.softmax(logits)[:, 0]}

    def follows(self, first, second, batch_size=32):
        """Returns the probability that the second text follows the first.

        Args:
            first (str or list): a text, or several.
            second (str or list): as many texts.
            batch_size (int, optional): number of pairs in a batch. Default: 32.

        Returns: a float for one pair, an array (pairs,) for several.
        """
        is_one = isinstance(first, str) and isinstance(second, str)
        columns = ([first], [second]) if is_one else (first, second)
        probabilities = softmax(self.predict(columns, batch_size=batch_size, verbose=0))[:, 0]  # 0 is IsNext
        return float(probabilities[0]) if is_one else probabilities

    def label_rule(self, sizes):
        return LabelRule(
            (len(sizes.tokens),), 2, "0 for a text that follows, 1 for a random one", are_booleans_clear=False
        )
