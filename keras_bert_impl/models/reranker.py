"""How relevant texts are to a query."""

import keras
import numpy as np

from keras_bert_impl.models.answers import finite, matches, sigmoid
from keras_bert_impl.models.compile_arguments import AUC
from keras_bert_impl.models.text_regressor import TextRegressor
from keras_bert_impl.preprocessing.column_rows import RelevancePreprocessor
from keras_bert_impl.preprocessing.texts import to_strings
from keras_bert_impl.suggestions import one_of

ACTIVATIONS = {"sigmoid": sigmoid, "linear": finite}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Reranker(TextRegressor):
    """One logit for the relevance of a text to a query, both in one row (Nogueira & Cho 2019, "Passage Re-ranking with
    BERT"; sentence-transformers calls it a cross-encoder). It orders the texts that a faster search has found, such as
    `TextEmbedder.search`. Compiled by default with AdamW at 2e-5, binary cross-entropy on logits and the AUC, of the
    texts whose relevance is above a half.

    `fit` takes one of:

        reranker.fit((queries, texts), relevance)           # from 0 to 1
        reranker.fit((queries, positives, negatives))       # further columns are further negatives of the query

    Of the second kind each text is a row of its own with its query, of relevance 1 or 0, and `sample_weight` belongs to
    the queries. `evaluate` and `validation_data` take the same. `rank` orders texts by what a checkpoint of
    sentence-transformers shows: the sigmoid of the logit, or with score_activation "linear" the logit itself.
    `from_pretrained` opens its CrossEncoders, too.

    Args:
        encoder, tokenizer, sequence_length, dropout_rate: as of TextRegressor.
        score_activation: of the scores of `rank` and `scores`, "sigmoid" or "linear"; outputs are logits in any case.

    Input:  dict of the encoder's inputs, or (queries, texts).
    Output: logits (batch, 1), float32.
    Raises: ValueError for another score_activation, and as TextRegressor does.
    """

    preprocessor_class = RelevancePreprocessor
    pair_columns = ("queries", "texts")
    head_arguments = ("dropout_rate", "score_activation")
    label_kind = "relevance"
    learning_rate = 2e-5

    def __init__(
        self,
        encoder,
        tokenizer=None,
        sequence_length=None,
        dropout_rate=None,
        score_activation="sigmoid",
        name="bert_reranker",
    ):
        super().__init__(encoder, tokenizer, sequence_length, dropout_rate, name=name)
        self.score_activation = one_of("score_activation", score_activation, ACTIVATIONS)

    def usual_objective(self):
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        return {"loss": loss, "metrics": [AUC(from_logits=True, name="auc")]}

    def scores(self, query, texts, batch_size=32):
        """The relevance of texts to a query.

        Args:
            query: a text; or several.
            texts: a list of texts; for several queries, a list of such lists.
            batch_size: how many texts are computed at once.

        Returns: an array (texts,), float64; for several queries a list of them.
        """
        queries, lists = ([query], [list(texts)]) if isinstance(query, str) else (list(query), list(texts))
        if isinstance(texts, str) or any(isinstance(one, str) for one in lists):
            raise ValueError("Got one text instead of a list of texts; for several queries, pass a list of lists.")
        counts = [len(one) for one in lists]
        pairs = (
            [one for one, count in zip(queries, counts, strict=True) for _ in range(count)],
            to_strings([text for one in lists for text in one]),
        )
        scores = ACTIVATIONS[self.score_activation](self.predict(pairs, batch_size=batch_size, verbose=0)[:, 0])
        of_queries = np.split(scores, np.cumsum(counts)[:-1])
        return of_queries[0] if isinstance(query, str) else of_queries

    def rank(self, query, texts, top_k=None, batch_size=32):
        """The texts in order of their relevance to a query.

        Args:
            query: a text; or several.
            texts: a list of texts; for several queries, a list of such lists.
            top_k: how many of the texts; None means all. Fewer if there are fewer.
            batch_size: how many texts are computed at once.

        Returns: a list of Match (`number` in `texts`, `text`, `score`), the most relevant first, of equal ones the
            first; for several queries a list of such lists.
        """
        texts = texts if isinstance(texts, str) else list(texts)
        found = self.scores(query, texts, batch_size)
        if isinstance(query, str):
            return matches(found, list(texts), top_k)
        return [matches(scores, list(one), top_k) for scores, one in zip(found, texts, strict=True)]

    def label_rule(self, sizes):
        kinds = keras.losses.BinaryCrossentropy, keras.losses.BinaryFocalCrossentropy
        is_share = isinstance(getattr(self, "loss", None), kinds)
        scale = (0, 1, "but the cross-entropy takes a relevance from 0 to 1") if is_share else None
        return super().label_rule(sizes)._replace(meaning="the relevance of its text to its query", scale=scale)
