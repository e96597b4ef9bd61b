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
    """The next-sentence head of pre-training alone (Devlin et al. 2019, section 3.1, task 2). Compiled by default
    with AdamW at 5e-5, cross-entropy and accuracy.

    Args:
        encoder: a BertEncoder, or another family's.
        tokenizer: a Tokenizer; with it `fit`, `evaluate` and `predict` take a pair of lists of texts.
        sequence_length: pairs are cut to this many tokens; None means the encoder's `max_length`.

    Input:  dict of the encoder's inputs, or (first texts, second texts).
    Output: logits (batch, 2), float32; labels and columns are 0 for IsNext, 1 for a random text, as in Google's code.
    Raises: ValueError if the vocabulary is not the encoder's, or sequence_length is above its max_length.
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
    def from_pretrained(cls, path, report=False, **arguments):
        """The model of a checkpoint, see TaskModel. Raises ValueError also if its head learnt something else than
        next sentences, as ALBERT's does."""
        checkpoint = checkpoints.open_checkpoint(path)
        learns = checkpoint.config.pair_tasks
        if checkpoint.has("next_sentence_head/") and "next_sentence" not in learns:
            raise ValueError(
                f"{checkpoint.source.path} is a {checkpoint.config.family}, whose head for pairs learnt "
                f"{' or '.join(learns)}: its answer would not be whether one text follows the other. Read it with a "
                "Pretrainer."
            )
        return super().from_pretrained(checkpoint, report=report, **arguments)

    def named_outputs(self, logits, rows=None):
        """`logits` (batch, 2), and `probability` (batch,) that the second text follows the first."""
        return {"logits": logits, "probability": ops.softmax(logits)[:, 0]}

    def follows(self, first, second, batch_size=32):
        """The probability that the second text follows the first.

        Args:
            first: a text, or texts.
            second: as many.
            batch_size: how many texts are computed at once.

        Returns: a float for one text each, an array (texts,) for several.
        """
        is_one = isinstance(first, str) and isinstance(second, str)
        columns = ([first], [second]) if is_one else (first, second)
        probabilities = softmax(self.predict(columns, batch_size=batch_size, verbose=0))[:, 0]  # 0 is IsNext
        return float(probabilities[0]) if is_one else probabilities

    def label_rule(self, sizes):
        return LabelRule(
            (len(sizes.tokens),), 2, "0 for a text that follows, 1 for a random one", are_booleans_clear=False
        )
