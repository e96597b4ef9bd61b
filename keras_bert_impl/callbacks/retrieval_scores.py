"""`RetrievalScores`: how well an embedder finds what is relevant, after each epoch."""

import keras

from keras_bert_impl.retrieval import retrieval_scores


class RetrievalScores(keras.callbacks.Callback):
    """Adds metrics of a search to the logs of each epoch, for the `fit` of a TextEmbedder.

    The metrics are those of `retrieval.retrieval_scores`, such as `val_ndcg@10` and `val_mrr@10`.

    Args:
        queries (list of str): queries.
        corpus (list of str): texts to search in.
        relevant (list): for each query the numbers of its relevant texts in the corpus, or a dict from number to
            relevance, a whole number.
        at (int, optional): number of results that count for each query. Default: 10.
        batch_size (int, optional): number of texts in a batch. Default: 32.

    Raises: (in `fit`) as `retrieval_scores`.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> questions, answers = ["When do you open?", "How do I pay?"], ["At nine.", "By card."]
        >>> scores = kbi.callbacks.RetrievalScores(questions, answers, relevant=[[0], [1]], at=1)
        >>> history = model.fit((questions, answers), callbacks=[scores], verbose=0)
        >>> "val_ndcg@1" in history.history
        True
    """

    def __init__(self, queries, corpus, relevant, at=10, batch_size=32):
        super().__init__()
        self.queries, self.corpus, self.relevant, self.at, self.batch_size = queries, corpus, relevant, at, batch_size

    def on_epoch_end(self, epoch, logs=None):
        found = self.model.search(self.queries, self.corpus, self.at, self.batch_size)
        scores = retrieval_scores(found, self.relevant, self.at)
        del scores["queries"]  # the same in every epoch
        logs.update({f"val_{name}": score for name, score in scores.items()})
