"""`RetrievalScores`: how well an embedder finds what is relevant, after each epoch."""

import keras

from keras_bert_impl.retrieval import retrieval_scores


class RetrievalScores(keras.callbacks.Callback):
    """Adds metrics of a search to the logs of each epoch: `val_ndcg@10`, `val_mrr@10` and the others of
    `retrieval_scores`.

        scores = kbi.callbacks.RetrievalScores(queries, corpus, relevant)
        embedder.fit(columns, callbacks=[scores, kbi.callbacks.BestWeights("val_ndcg@10")])

    Args:
        queries (list of str): queries.
        corpus (list of str): texts to search in.
        relevant (list): for each query the numbers of its relevant texts in the corpus, or a dict from numbers to
            grades.
        at (int, optional): number of results that count for each query. Default: 10.
        batch_size (int, optional): number of texts in a batch. Default: 32.
    """

    def __init__(self, queries, corpus, relevant, at=10, batch_size=32):
        super().__init__()
        self.queries, self.corpus, self.relevant, self.at, self.batch_size = queries, corpus, relevant, at, batch_size

    def on_epoch_end(self, epoch, logs=None):
        found = self.model.search(self.queries, self.corpus, self.at, self.batch_size)
        scores = retrieval_scores(found, self.relevant, self.at)
        del scores["queries"]  # the same in every epoch
        logs.update({f"val_{name}": score for name, score in scores.items()})
