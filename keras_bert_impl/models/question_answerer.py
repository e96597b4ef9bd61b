"""Finds the answer to a question in a context."""

import keras
from keras import ops

from keras_bert_impl.losses import cross_entropy
from keras_bert_impl.models.labels import LabelRule
from keras_bert_impl.models.pretrained import PretrainedMixin, check_vocabulary, checked_sequence_length, head_dense
from keras_bert_impl.models.raw_text import RawTextMixin
from keras_bert_impl.optimization import BertAdamW


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class QuestionAnswerer(RawTextMixin, PretrainedMixin, keras.Model):
    """A start and an end vector over the tokens (Devlin et al. 2019, section 4.2). Compiled by default with AdamW at
    5e-5 and the mean of the two cross-entropies.

    Labels are (batch, 2), int: the positions of the answer's first and last token; 0 and 0, [CLS], for no answer.

    Args:
        encoder: a BertEncoder, or another family's.
        tokenizer: a WordPieceTokenizer; with it `predict` takes a pair of lists: questions and contexts.
        sequence_length: texts are cut to this many tokens; None means the encoder's `max_length`.

    Input:  dict of the encoder's inputs, or (questions, contexts).
    Output: logits (batch, length, 2), float32: of a start and of an end at each token. As in the paper's code, padding
            is a position like any other; decoding has to consider the context only.
    Raises: ValueError if the vocabulary is not the encoder's, or sequence_length is above its max_length.
    """

    pair_columns = ("questions", "contexts")

    def __init__(self, encoder, tokenizer=None, sequence_length=None, name="bert_question_answerer"):
        check_vocabulary(tokenizer, encoder)
        logits = head_dense(encoder, 2, "span_head")(encoder.output["sequence_output"])
        super().__init__(inputs=encoder.input, outputs=logits, name=name)
        self.dtype_policy = encoder.dtype_policy
        # Not tracked as a layer, so that the pooler, which no output here uses, is not among this model's weights.
        object.__setattr__(self, "encoder", encoder)
        self.tokenizer = tokenizer
        self.sequence_length = checked_sequence_length(sequence_length, encoder.config)
        self.compile(optimizer=BertAdamW(5e-5), loss=span_loss)

    def label_rule(self, sizes):
        meaning = "the position in its row of the answer's first or last token; both are 0 if there is no answer"
        return LabelRule((len(sizes.tokens), 2), sizes.tokens[:, None], meaning)

    def _takes_class_numbers(self, loss):
        return loss is span_loss


@keras.saving.register_keras_serializable(package="keras_bert_impl")
def span_loss(positions, logits):
    """Mean cross-entropy of start and end over the length; positions (batch, 2), logits (batch, length, 2)."""
    return ops.mean(cross_entropy(positions, ops.transpose(logits, (0, 2, 1))), axis=-1)
