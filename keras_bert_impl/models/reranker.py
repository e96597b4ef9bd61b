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
    """Scores how relevant texts are to a query, to order the results of a faster search.

    Open a checkpoint of this library or a CrossEncoder of sentence-transformers with `from_pretrained`, and use `rank`
    on texts that `TextEmbedder.search` found. Query and text are read together, which is slower and more accurate than
    comparing vectors (Nogueira & Cho 2019, "Passage Re-ranking with BERT"). The model is compiled with AdamW at 2e-5,
    binary cross-entropy on logits, and the AUC, where a relevance above 0.5 is positive.

    Args:
        encoder (keras.Model): encoder of any family, such as a `BertEncoder`.
        tokenizer (Tokenizer, optional): tokenizer, needed for texts. Default: None, for token IDs only.
        sequence_length (int, optional): largest number of tokens in an input. Default: the encoder's `max_length`.
        dropout_rate (float, optional): dropout on the pooled vector. Default: the encoder's, 0.1 in the paper.
        score_activation (str, optional): scale of the scores of `rank` and `scores`: "sigmoid", from 0 to 1, or
            "linear", the logits. Default: "sigmoid".

    `fit` takes one of these forms, as do `evaluate` and `validation_data`:

    | call                                     | meaning                                                        |
    | ---                                      | ---                                                            |
    | `fit((queries, texts), relevance)`       | relevance of each text, from 0 to 1                            |
    | `fit((queries, positives, negatives))`   | relevance 1 and 0; more columns are more negatives; sample     |
    |                                          | weights belong to the queries                                  |

    Input:  dict of the encoder's inputs, or (queries, texts).
    Output: logits (batch, 1), float32.
    Raises: ValueError for another score_activation, if the tokenizer does not fit the encoder, or if sequence_length is
        above its max_length.

    Example:
        >>> model = kbi.Reranker.from_pretrained("small_english")
        >>> query, texts = "capital of France", ["Bananas are yellow.", "It is Paris."]
        >>> history = model.fit(([query, query], texts), [0.0, 1.0], epochs=30, verbose=0)
        >>> model.rank(query, texts, top_k=1)
        [Match(number=1, text='It is Paris.', score=0...)]
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
        """Returns the relevance of texts to a query.

        Args:
            query (str or list): a query, or several.
            texts (list): texts; for several queries, a list of such lists.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a float64 array (texts,); for several queries, a list of them.
        Raises: ValueError if `texts` is a single text.
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
        """Returns texts in the order of their relevance to a query.

        Args:
            query (str or list): a query, or several.
            texts (list): texts; for several queries, a list of such lists.
            top_k (int, optional): number of texts to return. Default: None, all.
            batch_size (int, optional): number of texts in a batch. Default: 32.

        Returns: a list of `Match` (`number`, `text`, `score`), the most relevant first; ties keep their order. For
            several queries, a list of such lists.
        Raises: ValueError if `texts` is a single text.
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
