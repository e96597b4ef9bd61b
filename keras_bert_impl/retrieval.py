"""How good a search is, and the negatives that make it better."""

import numbers

import numpy as np

from keras_bert_impl.preprocessing.texts import to_strings
from keras_bert_impl.user_warnings import warn_user

__all__ = ["mine_hard_negatives", "retrieval_scores"]


def retrieval_scores(found, relevant, at=10):
    """How high relevant texts stand, as means over queries, by the library ir-measures, which asks trec_eval.

    Args:
        found: for each query what `TextEmbedder.search` or `Reranker.rank` returned, at least `at` texts if there are
            as many; or numbers of texts, the best first.
        relevant: for each query the numbers of its relevant texts; or a dict from a number to the relevance of the
            text, a whole number, of which NDCG takes account.
        at: how many places of each ranking are looked at.

    Returns: dict of `queries`, their number, and, with at=10, `accuracy@10`, the share of queries for which a relevant
        text was found; `precision@10` and `recall@10`; `mrr@10`, one over the place of the first relevant text;
        `ndcg@10`, the discounted gain over that of the best order; and `map@10`, the precision at each relevant text.
        A query without a relevant text counts as 0, as in trec_eval. sentence-transformers has the same figures, but
        divides the precisions in `map` by at most `at`.
    Raises: ValueError if there are not as many rankings as queries, or for what is no number of a text; ImportError
        without ir-measures, which the extra `ranking` installs.
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
                f"query {query}: expected the numbers of texts, each once, and whole numbers as grades; "
                f"got {str(of_query)[:80]} for what was found as {str(places)[:80]}."
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
    """Texts that an embedder takes for the positive of an anchor, and that are none, to train on, under the name that
    sentence-transformers gave it.

        columns = mine_hard_negatives(embedder, questions, answers, num_negatives=2)
        embedder.fit(columns)  # (anchors, positives, first negatives, second negatives)

    Args:
        embedder: a TextEmbedder.
        anchors: texts; one may stand in several rows.
        positives: a text for each.
        corpus: texts to choose from; None for the positives.
        num_negatives: for each row.
        range_min: how many of the most similar texts are passed over, which may be positives that nobody has marked.
        relative_margin: a negative is at least by this share less similar to the anchor than its positive, since nearer
            ones are often positives, too (Moreira et al. 2024, "NV-Retriever", section 3: 0.05); None for no limit.
        batch_size: how many texts are computed at once.

    Returns: tuple of columns, lists of texts: anchors, positives and negatives, the nearest first. Rows with fewer
        negatives than asked for are left out, and a warning says how many.
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
            f"{len(anchors) - len(rows)} of {len(anchors)} rows have fewer than {num_negatives} negatives and are left "
            "out: give a larger corpus, or a smaller relative_margin."
        )
    return tuple(map(list, zip(*rows, strict=True))) if rows else ([],) * (2 + num_negatives)


def products(queries, corpus, at_once=256):
    """The products of each query's vector with those of a corpus, (texts,), one query after the other; (queries, width)
    and (texts, width). Those of `at_once` queries are in memory."""
    for start in range(0, len(queries), at_once):
        yield from queries[start : start + at_once] @ corpus.T
