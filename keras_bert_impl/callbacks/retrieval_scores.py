"""`RetrievalScores`: how well an embedder finds what is relevant, after each epoch."""

import keras

from keras_bert_impl.retrieval import retrieval_scores


class RetrievalScores(keras.callbacks.Callback):
    """Adds the figures of `retrieval.retrieval_scores` to the logs of each epoch, as `val_ndcg@10` and so on.

        scores = kbi.callbacks.RetrievalScores(queries, corpus, relevant)
        embedder.fit(columns, callbacks=[scores, kbi.callbacks.BestWeights("val_ndcg@10")])

    Args:
        queries, corpus: texts.
        relevant: for each query the numbers of its relevant texts in the corpus, or their grades by their numbers.
        at: how many places of each ranking are looked at.
        batch_size: how many texts are computed at once.
    """

    def __init__(self, queries, corpus, relevant, at=10, batch_size=32):
        super().__init__()
        self.queries, self.corpus, self.relevant, self.at, self.batch_size = queries, corpus, relevant, at, batch_size

    def on_epoch_end(self, epoch, logs=None):
        found = self.model.search(self.queries, self.corpus, self.at, self.batch_size)
        scores = retrieval_scores(found, self.relevant, self.at)
        del scores["queries"]  # the same in every epoch
        logs.update({f"val_{name}": score for name, score in scores.items()})
