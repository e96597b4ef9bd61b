"""Losses of sentence embeddings, under the names that sentence-transformers gave them, in float32.

The vectors of a batch are (batch, columns, width): the texts of a row are a pair, an anchor with its positive, or both
with negatives. The second argument of a loss is the similarity of each pair, (batch,), a teacher's vectors, or the
numbers of the texts, (batch, columns), int, which are equal for equal texts; `TextEmbedder` makes these numbers.

As in `losses`, each loss is a replica's share, and the shares add up to the loss of the whole batch. Losses that
compare rows with each other compare all rows of the batch, also those of other replicas, so that several devices learn
the same as one.
"""

import operator

import keras
from keras import ops

from keras_bert_impl.distribution import gathered_from_replicas, sum_over_replicas
from keras_bert_impl.losses import WeightedLoss, weighted_mean, weights_of_rows
from keras_bert_impl.suggestions import one_of

__all__ = [
    "AnglELoss",
    "CoSENTLoss",
    "ContrastiveLoss",
    "CosineSimilarityLoss",
    "EmbedDistillLoss",
    "MarginMSELoss",
    "MatryoshkaLoss",
    "MultipleNegativesRankingLoss",
    "TripletLoss",
]

MASKED = -1e9  # a logit whose exponential is 0 in float32


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class CosineSimilarityLoss(WeightedLoss):
    """Loss for pairs with a similarity: mean squared difference between the cosine of the pair and its similarity.

    It is the regression objective of Reimers & Gurevych 2019, section 3.

    Input:  vectors (batch, 2, width).
    Labels: similarities (batch,), from -1 to 1.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> optimizer = kbi.optimization.BertAdamW(2e-5)
        >>> model.compile(optimizer, kbi.embedding_losses.CosineSimilarityLoss())
        >>> pairs = ["A cat sleeps.", "It rains."], ["A cat rests.", "Stocks fell."]
        >>> history = model.fit(pairs, [0.9, 0.0], verbose=0)
    """

    columns, takes_similarities, label_range = (2, 2), True, (-1.0, 1.0)

    def __init__(self, name="cosine_similarity_loss"):
        super().__init__(name)

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        cosines = cosines_of_pairs(y_pred)
        return weighted_mean((cosines - similarities(self, y_true)) ** 2, weights_of_rows(sample_weight, y_pred))

    def get_config(self):
        return {"name": self.name}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class CoSENTLoss(keras.losses.Loss):
    """Loss for pairs with a similarity on any scale: trains the order of the cosines (Su 2022,
    https://kexue.fm/archives/8847).

    It is log(1 + sum of exp(scale * (cosine of pair j - cosine of pair i))) over all i, j of the batch where the label
    of pair i is above that of pair j. Spearman's correlation measures the same order. A pair of weight 2 counts like
    two equal pairs.

    Args:
        scale (float, optional): inverse of the temperature. Default: 20.0, as in sentence-transformers.

    Input:  vectors (batch, 2, width).
    Labels: similarities (batch,), on any scale.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> loss = kbi.embedding_losses.CoSENTLoss()
        >>> spearman = kbi.embedding_metrics.SpearmanCorrelation(label_range=(0, 5))
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), loss, metrics=[spearman])
        >>> pairs = ["A cat sleeps.", "It rains."], ["A cat rests.", "Stocks fell."]
        >>> history = model.fit(pairs, [4.5, 0.5], verbose=0)
    """

    columns, takes_similarities, label_range = (2, 2), True, None

    def __init__(self, scale=20.0, name="cosent_loss"):
        super().__init__(name=name, reduction="sum", dtype="float32")
        self.scale = scale

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        scores, labels, weights = (
            gathered_from_replicas(array)
            for array in (
                self.scale * self.scores(y_pred),
                similarities(self, y_true),
                weights_of_rows(sample_weight, y_pred),
            )
        )
        differences = scores[None, :] - scores[:, None]  # (batch, batch): [i, j] is j minus i
        counts = ops.where(labels[:, None] > labels[None, :], weights[:, None] * weights[None, :], 0.0)
        terms = ops.where(counts > 0, differences + ops.log(ops.where(counts > 0, counts, 1.0)), MASKED)
        # The zero is the 1 of log(1 + ...). Every replica computes the loss of the whole batch.
        terms = ops.concatenate([ops.zeros((1,), "float32"), ops.reshape(terms, (-1,))])
        return ops.logsumexp(terms) / sum_over_replicas(ops.ones((), "float32"))

    def scores(self, vectors):
        """What is compared with the order of the labels, (batch,)."""
        return cosines_of_pairs(vectors)

    def get_config(self):
        return {"scale": self.scale, "name": self.name}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class AnglELoss(CoSENTLoss):
    """CoSENTLoss with an angle score instead of the cosine (Li & Li 2024, "AnglE-optimized text embeddings").

    The halves of a vector are the real and imaginary parts of complex numbers. The score is the absolute value of the
    sum of both parts of the vectors' quotient. It has a gradient where that of cosines near 1 or -1 almost vanishes.

    Args:
        scale (float, optional): inverse of the temperature. Default: 20.0, as in sentence-transformers.

    Input:  vectors (batch, 2, width).
    Labels: similarities (batch,), on any scale.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), kbi.embedding_losses.AnglELoss())
    """

    def __init__(self, scale=20.0, name="angle_loss"):
        super().__init__(scale, name)

    def scores(self, vectors):
        directions = unit_vectors(vectors)
        if directions.shape[-1] % 2:
            directions = ops.concatenate([directions, ops.zeros_like(directions[..., :1])], axis=-1)
        first, last = ops.split(directions, 2, axis=-1)
        cosines = ops.sum(directions[:, 0] * directions[:, 1], axis=-1)
        sines = ops.sum(last[:, 0] * first[:, 1] - first[:, 0] * last[:, 1], axis=-1)
        return ops.abs(cosines + sines)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ContrastiveLoss(WeightedLoss):
    """Loss for similar and dissimilar pairs (Hadsell et al. 2006, equation 4).

    It is half the squared cosine distance for similar pairs, and half the square of max(0, margin - distance) for
    others, averaged over the batch.

    Args:
        margin (float, optional): distance that dissimilar pairs should have. Default: 0.5, as in sentence-transformers.

    Input:  vectors (batch, 2, width).
    Labels: (batch,), 1 for similar pairs, 0 for others.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), kbi.embedding_losses.ContrastiveLoss())
        >>> pairs = ["A cat sleeps.", "It rains."], ["A cat rests.", "Stocks fell."]
        >>> history = model.fit(pairs, [1, 0], verbose=0)
    """

    columns, takes_similarities, label_range = (2, 2), True, (0.0, 1.0)

    def __init__(self, margin=0.5, name="contrastive_loss"):
        super().__init__(name)
        self.margin = margin

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        labels, distances = similarities(self, y_true), 1 - cosines_of_pairs(y_pred)
        losses = (labels * distances**2 + (1 - labels) * ops.relu(self.margin - distances) ** 2) / 2
        return weighted_mean(losses, weights_of_rows(sample_weight, y_pred))

    def get_config(self):
        return {"margin": self.margin, "name": self.name}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class EmbedDistillLoss(WeightedLoss):
    """Loss for texts with a teacher's vectors: the distance of each vector from the teacher's.

    It is the mean over the columns and the batch. Vectors of another width have to be mapped to the student's first,
    for example by `sklearn.decomposition.TruncatedSVD`.

    Args:
        distance_metric (str, optional): "cosine", 1 - the cosine; "mse", the mean squared difference, as in Reimers &
            Gurevych 2020, "Making monolingual sentence embeddings multilingual"; or "l2", the Euclidean distance.
            Default: "cosine".

    Input:  vectors (batch, width) or (batch, columns, width).
    Labels: the teacher's vectors: (batch, width), one for all texts of an example, as for a sentence with its
            translation; or (batch, columns, width).
    Raises: ValueError for another distance_metric, or for vectors of another width.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), kbi.embedding_losses.EmbedDistillLoss("mse"))
        >>> taught = np.random.default_rng(0).normal(size=(2, 256))  # by the teacher's embed(texts)
        >>> history = model.fit(["A cat sleeps.", "It rains."], taught, verbose=0)
    """

    columns, takes_similarities, takes_vectors = (1, None), True, True

    def __init__(self, distance_metric="cosine", name="embed_distill_loss"):
        super().__init__(name)
        self.distance_metric = one_of("distance_metric", distance_metric, ("cosine", "mse", "l2"))

    def __call__(self, y_true, y_pred, sample_weight=None):
        vectors, taught = (ops.cast(array, "float32") for array in (y_pred, y_true))
        if taught.shape[-1] != vectors.shape[-1] or len(taught.shape) > len(vectors.shape):
            raise ValueError(
                f"The teacher's vectors have shape {taught.shape}, but the model's {vectors.shape}: they need the same "
                "width."
            )
        if len(vectors.shape) == 3 and len(taught.shape) == 2:
            taught = taught[:, None]
        if self.distance_metric == "cosine":
            distances = 1 - ops.sum(unit_vectors(vectors) * unit_vectors(taught), axis=-1)
        elif self.distance_metric == "mse":
            distances = ops.mean((vectors - taught) ** 2, axis=-1)
        else:  # with a finite gradient where both are equal
            distances = ops.sqrt(ops.maximum(ops.sum((vectors - taught) ** 2, axis=-1), 1e-24))
        of_rows = ops.mean(distances, axis=-1) if len(distances.shape) == 2 else distances
        return weighted_mean(of_rows, weights_of_rows(sample_weight, y_pred))

    def get_config(self):
        return {"distance_metric": self.distance_metric, "name": self.name}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MarginMSELoss(WeightedLoss):
    """Loss for triplets with a teacher's scores: the mean squared difference of the margins (Hofstätter et al. 2021,
    3.2).

    The margin of a triplet is the dot product of anchor and positive minus that of anchor and negative.

    Input:  vectors (batch, 3, width): anchor, positive, negative.
    Labels: the teacher's margins, (batch,).

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), kbi.embedding_losses.MarginMSELoss())
        >>> history = model.fit((["capital of France"], ["Paris"], ["Bananas"]), [3.7], verbose=0)
    """

    columns, takes_similarities, label_range = (3, 3), True, None

    def __init__(self, name="margin_mse_loss"):
        super().__init__(name)

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        vectors = ops.cast(y_pred, "float32")
        margins = ops.sum(vectors[:, 0] * (vectors[:, 1] - vectors[:, 2]), axis=-1)
        return weighted_mean((margins - similarities(self, y_true)) ** 2, weights_of_rows(sample_weight, y_pred))

    def get_config(self):
        return {"name": self.name}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MatryoshkaLoss(keras.losses.Loss):
    """Trains vectors that can be truncated: the sum of a loss over several widths (Kusupati et al. 2022, equation 1).

    For each width, the leading dimensions of each vector are normalized to length 1.

    Args:
        loss (keras.losses.Loss): a loss of `embedding_losses`, other than EmbedDistillLoss.
        dims (list of int): the widths, such as (384, 128, 64), including the full one.
        weights (list of float, optional): weights of the widths. Default: 1 each.

    Input:  vectors, as for the loss.
    Labels: those of the loss.
    Raises: ValueError for a width that vectors do not have, another number of weights, and EmbedDistillLoss.

    Example:
        >>> pairs = kbi.embedding_losses.MultipleNegativesRankingLoss()
        >>> loss = kbi.embedding_losses.MatryoshkaLoss(pairs, dims=(256, 64))
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), loss)
    """

    def __init__(self, loss, dims, weights=None, name="matryoshka_loss"):
        super().__init__(name=name, reduction="sum", dtype="float32")
        if getattr(loss, "takes_vectors", False):
            raise ValueError(
                f"{type(loss).__name__} compares whole vectors with a teacher's: it cannot be used in MatryoshkaLoss."
            )
        self.loss, self.dims, self.weights = loss, tuple(dims), tuple(weights or [1.0] * len(dims))
        if len(self.weights) != len(self.dims):
            raise ValueError(f"There are {len(self.weights)} weights for {len(self.dims)} dims: give as many of both.")
        # What `TextEmbedder` asks of a loss.
        self.columns, self.takes_similarities = loss.columns, loss.takes_similarities
        self.label_range = getattr(loss, "label_range", None)
        self.mini_batch_size = getattr(loss, "mini_batch_size", None)

    def __call__(self, y_true, y_pred, sample_weight=None):
        if not all(1 <= width <= y_pred.shape[-1] for width in self.dims):
            raise ValueError(f"dims are {self.dims}, but must be between 1 and the vectors' width, {y_pred.shape[-1]}.")
        parts = [unit_vectors(y_pred[..., :width]) for width in self.dims]
        losses = [self.loss(y_true, part, sample_weight) for part in parts]
        return sum(weight * loss for weight, loss in zip(self.weights, losses, strict=True))

    def get_config(self):
        loss = keras.losses.serialize(self.loss)
        return {"loss": loss, "dims": self.dims, "weights": self.weights, "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "loss": keras.losses.deserialize(config["loss"])})


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MultipleNegativesRankingLoss(WeightedLoss):
    """Loss for pairs that belong together, such as questions and answers: the other texts of a batch are the negatives.

    It is the cross-entropy of finding an anchor's positive among all positives and negatives of the batch, with scale *
    cosine as logits (Henderson et al. 2017, section 4.4). Larger batches are harder. Texts equal to the anchor or its
    positive, and the positives of equal anchors, are not used as negatives.

    Args:
        scale (float, optional): inverse of the temperature. Default: 20.0, as in sentence-transformers.
        mini_batch_size (int, optional): number of texts whose vectors `fit` computes at a time. A batch of thousands
            then needs the memory of a mini-batch, for a third more time (GradCache; CachedMultipleNegativesRankingLoss
            in sentence-transformers). Default: None, all at once.

    Input:  vectors (batch, columns, width): anchors, positives and, in further columns, hard negatives.
    Labels: numbers of the texts (batch, columns), equal for equal texts; `fit` makes them.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> loss = kbi.embedding_losses.MultipleNegativesRankingLoss(mini_batch_size=2)
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), loss)
        >>> questions = ["When do you open?", "How do I pay?", "Do you ship?"]
        >>> answers = ["At nine.", "By card.", "To all of Europe."]
        >>> history = model.fit((questions, answers), verbose=0)
    """

    columns, takes_similarities = (2, None), False

    def __init__(self, scale=20.0, mini_batch_size=None, name="multiple_negatives_ranking_loss"):
        super().__init__(name)
        if mini_batch_size is not None and operator.index(mini_batch_size) < 1:
            raise ValueError(f"mini_batch_size is {mini_batch_size}: give at least 1, or None.")
        self.scale, self.mini_batch_size = scale, mini_batch_size

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        own, others = candidate_cosines(y_true, y_pred)
        logits = ops.concatenate([self.scale * own[:, None], ops.maximum(self.scale * others, MASKED)], axis=-1)
        losses = ops.logsumexp(logits, axis=-1) - logits[:, 0]
        return weighted_mean(losses, weights_of_rows(sample_weight, y_pred))

    def get_config(self):
        return {"scale": self.scale, "mini_batch_size": self.mini_batch_size, "name": self.name}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TripletLoss(WeightedLoss):
    """Loss for triplets: an anchor should be nearer to its positive than to its negative, by a margin.

    It is max(0, |anchor - positive| - |anchor - negative| + margin) with Euclidean distances, averaged over the batch
    (Reimers & Gurevych 2019, section 3, "triplet objective").

    Args:
        margin (float, optional): the margin. sentence-transformers has 5, which vectors of length 1 cannot reach.
            Default: 1.0, as in the paper.

    Input:  vectors (batch, 3, width): anchor, positive, negative.
    Labels: not used.

    Example:
        >>> model = kbi.TextEmbedder.from_pretrained("small_english")
        >>> model.compile(kbi.optimization.BertAdamW(2e-5), kbi.embedding_losses.TripletLoss(margin=0.5))
        >>> history = model.fit((["capital of France"], ["Paris"], ["Bananas"]), verbose=0)
    """

    columns, takes_similarities = (3, 3), False

    def __init__(self, margin=1.0, name="triplet_loss"):
        super().__init__(name)
        self.margin = margin

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_columns(self, columns_of(y_pred))
        to_positive, to_negative = distances_of_triplets(y_pred)
        losses = ops.relu(to_positive - to_negative + self.margin)
        return weighted_mean(losses, weights_of_rows(sample_weight, y_pred))

    def get_config(self):
        return {"margin": self.margin, "name": self.name}


def check_columns(of, columns):
    """Raises ValueError if the loss or metric `of` takes no rows of so many texts; None is an unknown number."""
    least, most = of.columns
    if columns is not None and not (least <= columns and (most is None or columns <= most)):
        wanted = least if least == most else f"{least} or more"
        raise ValueError(f"{type(of).__name__} needs {wanted} texts in each example, but found {columns}.")


def columns_of(vectors):
    """The number of texts in a row of vectors, (batch, columns, width); None while the shape is unknown."""
    return vectors.shape[1] if len(vectors.shape) == 3 else 1


def similarities(of, labels):
    """The similarities of pairs, (batch,), float32. Raises ValueError for labels of another shape."""
    if len(labels.shape) == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if len(labels.shape) != 1:
        raise ValueError(
            f"{type(of).__name__} needs one similarity for each pair, (batch,), but labels have shape {labels.shape}."
        )
    return ops.cast(labels, "float32")


def unit_vectors(vectors):
    """The vectors, (..., width), divided by their length; float32."""
    vectors = ops.cast(vectors, "float32")
    # Not ops.normalize, whose gradient is NaN for a vector of zeros, which a row of padding has.
    return vectors / ops.sqrt(ops.maximum(ops.sum(vectors**2, axis=-1, keepdims=True), 1e-24))


def cosines_of_pairs(vectors):
    """The cosine of the first two vectors of each row, (batch,), float32."""
    directions = unit_vectors(vectors)
    return ops.sum(directions[:, 0] * directions[:, 1], axis=-1)


def candidate_cosines(numbers, vectors):
    """The cosines of each anchor with its own positive, (batch,), and with all other candidates, (batch, candidates).

    Candidates are the positives and negatives of all rows of all replicas; those that are known to be no negatives have
    -1e9 instead of a cosine, among them the anchor's own positive.

    Args:
        numbers: (batch, columns), int, equal for equal texts.
        vectors: (batch, columns, width).
    """
    directions = unit_vectors(vectors)
    numbers = ops.cast(numbers, "int32")
    anchors = directions[:, 0]
    all_numbers = gathered_from_replicas(numbers)
    candidates = gathered_from_replicas(directions[:, 1:])  # (rows, columns - 1, width)
    cosines = ops.einsum("aw,rcw->arc", anchors, candidates)  # (batch, rows, columns - 1)
    others = all_numbers[None, :, 1:]
    is_equal = ops.logical_or(others == numbers[:, 0, None, None], others == numbers[:, 1, None, None])
    has_equal_anchor = all_numbers[None, :, 0] == numbers[:, 0, None]  # (batch, rows)
    is_own = ops.logical_or(is_equal[:, :, 0], has_equal_anchor)
    is_known = ops.concatenate([is_own[:, :, None], is_equal[:, :, 1:]], axis=-1)
    cosines = ops.where(is_known, MASKED, cosines)
    rows, columns = ops.shape(cosines)[1:]
    return ops.sum(anchors * directions[:, 1], axis=-1), ops.reshape(cosines, (-1, rows * columns))


def distances_of_triplets(vectors):
    """The Euclidean distances of each anchor to its positive and to its negative, (batch,) each, float32."""
    vectors = ops.cast(vectors, "float32")
    anchor, positive, negative = vectors[:, 0], vectors[:, 1], vectors[:, 2]
    # The 1e-6 is torch's: the square root of 0 has no finite gradient.
    return tuple(ops.sqrt(ops.sum((anchor - other + 1e-6) ** 2, axis=-1)) for other in (positive, negative))
