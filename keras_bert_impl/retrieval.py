"""How good a search is, and the negatives that make it better."""

import numbers

import numpy as np

from keras_bert_impl.preprocessing.texts import to_strings
from keras_bert_impl.user_warnings import warn_user

__all__ = ["mine_hard_negatives", "retrieval_scores"]


def retrieval_scores(found, relevant, at=10):
    """Computes metrics of a search: how high relevant texts are ranked, as means over queries.

    They are those of trec_eval, computed by ir-measures.

    Args:
        found (list): for each query the result of `TextEmbedder.search` or `Reranker.rank`, with at least `at` texts if
            the corpus has as many; or numbers of texts, the best first.
        relevant (list): for each query the numbers of its relevant texts; or a dict from number to relevance, a whole
            number, which NDCG uses.
        at (int, optional): number of results that count for each query. Default: 10.

    Returns: dict of `queries`, their number, and, with at=10, `accuracy@10`, the fraction of queries with a relevant
        text; `precision@10` and `recall@10`; `mrr@10`, one over the rank of the first relevant text; `ndcg@10`, the
        discounted gain over that of the best order; and `map@10`, the sum of the precisions at each relevant text over
        the number of relevant texts (sentence-transformers divides by at most `at`). A query without a relevant text
        counts as 0.
    Raises: ValueError for `at` below 1, if there are not as many rankings as queries, or for a value that is no number
        of a text; ImportError without ir-measures, which the extra `ranking` installs.

    Example:
        >>> from keras_bert_impl.retrieval import retrieval_scores
        >>> found, relevant = [[2, 0, 1], [1, 2, 0]], [[0], [1]]  # numbers of texts, for two queries
        >>> scores = retrieval_scores(found, relevant, at=2)
        >>> scores["mrr@2"], scores["precision@2"]
        (0.75, 0.5)
    """
    import ir_measures

    if at < 1:
        raise ValueError(f"at is {at}: give at least 1.")
    judged, ranked = [], []
    for query, (texts, of_query) in enumerate(zip(found, relevant, strict=True)):
        grades = of_query if isinstance(of_query, dict) else dict.fromkeys(of_query, 1)
        places = [getattr(text, "number", text) for text in texts]
        if not all(map(is_number, [*grades, *grades.values(), *places])) or len(grades) < len(of_query):
            raise ValueError(
                f"query {query}: expected the numbers of texts, each once, with whole numbers as grades. The relevant "
                f"texts are {str(of_query)[:80]}, the found texts {str(places)[:80]}."
            )
        judged += [ir_measures.Qrel(str(query), str(number), int(grade)) for number, grade in grades.items()]
        # By places, since the library's measures order equal scores in different ways.
        ranked += [ir_measures.ScoredDoc(str(query), str(number), -place) for place, number in enumerate(places)]
    measures = {"accuracy": ir_measures.Success, "precision": ir_measures.P, "recall": ir_measures.R}
    measures |= {"mrr": ir_measures.RR, "ndcg": ir_measures.nDCG, "map": ir_measures.AP}
    measures = {f"{name}@{at}": measure @ at for name, measure in measures.items()}
    sums = dict.fromkeys(measures.values(), 0.0)
    for figure in ir_measures.iter_calc(list(measures.values()), judged, ranked):
        sums[figure.measure] += figure.value
    return {"queries": len(found), **{name: sums[measure] / len(found) for name, measure in measures.items()}}


def is_number(value):
    """Whether a value is a whole number; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def mine_hard_negatives(
    embedder, anchors, positives, corpus=None, num_negatives=1, range_min=0, relative_margin=0.05, batch_size=32
):
    """Finds hard negatives for training an embedder: texts similar to an anchor that are not its positive.

    Args:
        embedder (TextEmbedder): the model that compares texts.
        anchors (list of str): anchors, such as questions; one may occur several times.
        positives (list of str): the positive of each.
        corpus (list of str, optional): texts to choose negatives from. Default: the positives.
        num_negatives (int, optional): number of negatives for each anchor. Default: 1.
        range_min (int, optional): number of most similar texts to skip, which may be unmarked positives. Default: 0.
        relative_margin (float, optional): how much less similar a negative must be, as a fraction of the similarity of
            the positive (Moreira et al. 2024, "NV-Retriever", section 3); None for no limit. Default: 0.05.
        batch_size (int, optional): number of texts in a batch. Default: 32.

    Returns: tuple of columns, lists of texts: anchors, positives and negatives, the nearest first. Anchors with too few
        negatives are left out, and a warning says how many.

    Example:
        >>> from keras_bert_impl.retrieval import mine_hard_negatives
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> questions = ["When do you open?", "How can I pay?"]
        >>> answers = ["We open at nine.", "You can pay by card."]
        >>> columns = mine_hard_negatives(model, questions, answers)
        >>> len(columns)  # anchors, positives, negatives
        3
        >>> history = model.fit(columns, verbose=0)
    """
    anchors, positives = to_strings(anchors), to_strings(positives)
    corpus = list(dict.fromkeys(positives if corpus is None else to_strings(corpus)))
    places = {text: place for place, text in enumerate(corpus)}
    known = {anchor: {anchor} for anchor in anchors}
    for anchor, positive in zip(anchors, positives, strict=True):
        known[anchor].add(positive)
    of_anchors = embedder.embed_queries(anchors, batch_size)
    of_positives, of_corpus = (embedder.embed_documents(texts, batch_size) for texts in (positives, corpus))
    limits = np.full(len(anchors), np.inf)
    if relative_margin is not None:
        of_pairs = np.sum(of_anchors * of_positives, axis=-1)
        limits = of_pairs - relative_margin * np.abs(of_pairs)
    rows = []
    all_scores = products(of_anchors, of_corpus)
    for anchor, positive, limit, scores in zip(anchors, positives, limits, all_scores, strict=True):
        right = [places[text] for text in known[anchor] if text in places]
        scores[right] = -np.inf
        order = np.argsort(-scores, kind="stable")
        order = order[np.isfinite(scores[order])][range_min:]
        negatives = order[scores[order] <= limit][:num_negatives]
        if len(negatives) == num_negatives:
            rows.append((anchor, positive, *(corpus[number] for number in negatives)))
    if len(rows) < len(anchors):
        warn_user(
            f"{len(anchors) - len(rows)} of {len(anchors)} pairs have fewer than {num_negatives} negatives and are "
            "left out: give a larger corpus, or a smaller relative_margin."
        )
    return tuple(map(list, zip(*rows, strict=True))) if rows else ([],) * (2 + num_negatives)


def products(queries, corpus, at_once=256):
    """The products of each query's vector with those of a corpus, (texts,), one query after the other; (queries, width)
    and (texts, width). Those of `at_once` queries are in memory."""
    for start in range(0, len(queries), at_once):
        yield from queries[start : start + at_once] @ corpus.T
