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
    Raises: ValueError naming the first query whose scores and relevance do not belong together.
    """
    import ir_measures

    judged, found = [], []
    for number, (of_texts, grades) in enumerate(zip(scores, relevance, strict=True)):
        of_texts, grades = np.asarray(of_texts, "float64"), np.asarray(grades)
        are_grades = grades.shape == of_texts.shape and np.equal(np.abs(np.round(grades)), grades).all()
        if not (are_grades and np.isfinite(of_texts).all()):
            raise ValueError(
                f"query {number}: expected a finite score and a relevance from 0, a whole number, for each text, got "
                f"{of_texts.tolist()} and {grades.tolist()}."
            )
        judged += [ir_measures.Qrel(str(number), str(text), int(grade)) for text, grade in enumerate(grades)]
        # By places, since the library's measures order equal scores in different ways.
        order = np.argsort(-of_texts, kind="stable").tolist()
        found += [ir_measures.ScoredDoc(str(number), str(text), float(-place)) for place, text in enumerate(order)]
    measures = {f"mrr@{at}": ir_measures.RR @ at, f"ndcg@{at}": ir_measures.nDCG @ at}
    sums = dict.fromkeys(measures.values(), 0.0)
    for figure in ir_measures.iter_calc(list(measures.values()), judged, found):
        sums[figure.measure] += figure.value
    return {"queries": len(scores), **{name: sums[measure] / len(scores) for name, measure in measures.items()}}
