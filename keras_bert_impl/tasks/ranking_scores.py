"""Official figures of rankings, by the library ir-measures, which asks trec_eval."""

import numpy as np

MOST = 10  # as in the tables of MS MARCO and BEIR


def ranking_scores(scores, relevance, at=MOST):
    """How high relevant texts stand, as a mean over queries.

    Args:
        scores: for each query the scores of its texts, such as `Reranker.scores` gives; the highest stands first.
        relevance: likewise the relevance of its texts, whole numbers from 0, for irrelevant ones; grades above 1 count
            for NDCG alone.
        at: how many places of each ranking are looked at.

    Returns: dict of `queries`, their number, and `mrr@10` and `ndcg@10`, or of another `at`: one over the place of the
        first relevant text, and the discounted gain over that of the best order. A query without a relevant text counts
        as 0, as in trec_eval; of texts of equal score the first stands first, as in `Reranker.rank`.
    Raises: ImportError without ir-measures; ValueError if scores and relevance do not belong together, naming the
        query, or a relevance is not a whole number from 0.
    """
    try:
        import ir_measures
    except ImportError as error:
        raise ImportError("ranking_scores needs ir-measures: pip install 'keras_bert_impl[ranking]'.") from error
    if len(scores) != len(relevance) or not len(scores):
        raise ValueError(f"{len(scores):,} queries with scores, {len(relevance):,} with relevance: expected as many.")
    if not isinstance(at, int) or at < 1:
        raise ValueError(f"at is {at!r}, expected a whole number of places of at least 1.")
    judged, found = [], []
    for number, (of_texts, grades) in enumerate(zip(scores, relevance, strict=True)):
        of_texts, grades = np.asarray(of_texts, "float64"), np.asarray(grades)
        if of_texts.shape != grades.shape or of_texts.ndim != 1:
            raise ValueError(
                f"query {number} has scores of shape {of_texts.shape}, but relevance of shape {grades.shape}: each "
                "text needs both."
            )
        if not np.isfinite(of_texts).all():
            raise ValueError(f"query {number} has a score that is not finite: a diverged model ranks nothing.")
        if len(grades) and ((grades < 0) | (grades != np.round(grades))).any():
            raise ValueError(f"query {number} has a relevance that is not a whole number from 0: {grades.tolist()}.")
        judged += [ir_measures.Qrel(str(number), str(text), int(grade)) for text, grade in enumerate(grades)]
        # By places, since the library's measures order equal scores in different ways.
        order = np.argsort(-of_texts, kind="stable").tolist()
        found += [ir_measures.ScoredDoc(str(number), str(text), float(-place)) for place, text in enumerate(order)]
    measures = {f"mrr@{at}": ir_measures.RR @ at, f"ndcg@{at}": ir_measures.nDCG @ at}
    sums = dict.fromkeys(measures.values(), 0.0)
    for figure in ir_measures.iter_calc(list(measures.values()), judged, found):
        sums[figure.measure] += figure.value
    return {"queries": len(scores), **{name: sums[measure] / len(scores) for name, measure in measures.items()}}
