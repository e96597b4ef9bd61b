"""Writes tests/golden/embedding_losses.json: the losses that sentence-transformers computes for fixed vectors.

    pip install sentence-transformers
    python tests/golden/make_embedding_losses.py

Written with sentence-transformers 6.2.0 and the arrays of `embedding_losses_input`, which the test makes, too.
"""

import json
import pathlib

import numpy as np

MATRYOSHKA, DIMS, WEIGHTS = ("CoSENTLoss", "MultipleNegativesRankingLoss"), (5, 3, 2), (1.0, 0.5, 2.0)


def embedding_losses_input():
    """Vectors (7, 4, 5): anchors, positives and two columns of negatives; and a similarity for each row, with ties."""
    random = np.random.default_rng(11)
    vectors = random.normal(size=(7, 4, 5)).astype("float32")
    vectors[:, 1] += vectors[:, 0]  # positives are nearer than negatives
    return vectors, np.array([0.2, 0.8, 0.2, 1.0, 0.0, 0.6, 0.8], "float32")


def main():
    import torch
    from sentence_transformers.sentence_transformer import losses

    vectors, similarities = (torch.from_numpy(array) for array in embedding_losses_input())
    ranking = losses.MultipleNegativesRankingLoss(model=torch.nn.Identity())
    cases = {
        "CosineSimilarityLoss": (losses.CosineSimilarityLoss(model=torch.nn.Identity()), 2),
        "CoSENTLoss": (losses.CoSENTLoss(model=torch.nn.Identity()), 2),
        "MultipleNegativesRankingLoss": (ranking, 2),
        "MultipleNegativesRankingLoss with two negatives": (ranking, 4),
        "TripletLoss": (losses.TripletLoss(model=torch.nn.Identity(), triplet_margin=1.0), 3),
        "AnglELoss": (losses.AnglELoss(model=torch.nn.Identity()), 2),
        "ContrastiveLoss": (losses.ContrastiveLoss(model=torch.nn.Identity()), 2),
        "MarginMSELoss": (losses.MarginMSELoss(model=torch.nn.Identity()), 3),
    }
    found = {}
    for metric in ("cosine", "mse", "l2"):  # the last column is the teacher's
        loss = losses.EmbedDistillLoss(model=torch.nn.Identity(), distance_metric=metric)
        value = loss.compute_loss_from_embeddings(list(vectors[:, :2].unbind(1)), 2 * [vectors[:, 3]])
        found[f"EmbedDistillLoss {metric}"] = {"columns": 2, "loss": value.item()}
    for name, (loss, columns) in cases.items():
        value = loss.compute_loss_from_embeddings(list(vectors[:, :columns].unbind(1)), similarities)
        found[name] = {"columns": columns, "loss": value.item()}
        if name in MATRYOSHKA:  # as its MatryoshkaLoss shrinks them
            shrunk = [torch.nn.functional.normalize(vectors[:, :columns, :width], dim=-1) for width in DIMS]
            values = [loss.compute_loss_from_embeddings(list(each.unbind(1)), similarities) for each in shrunk]
            weighted = sum(weight * each.item() for weight, each in zip(WEIGHTS, values, strict=True))
            found[f"MatryoshkaLoss of {name}"] = {"columns": columns, "loss": weighted}
    path = pathlib.Path(__file__).with_name("embedding_losses.json")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
