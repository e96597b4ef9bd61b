"""SpanBERT's head, computed by hand."""

import keras
import numpy as np
from tiers import every_backend

from keras_bert_impl.layers import SpanBoundaryHead
from keras_bert_impl.layers.span_boundary_head import span_boundaries

# Spans 1-2, 4 and 6-8 of the first row, 3 of the second; 0 is padding.
POSITIONS = np.array([[1, 2, 4, 6, 7, 8], [3, 0, 0, 0, 0, 0]], "int32")


def test_the_tokens_beside_a_span_and_the_place_within_it():
    left, right, offset = (keras.ops.convert_to_numpy(found) for found in span_boundaries(POSITIONS))
    np.testing.assert_array_equal(left, [[0, 0, 3, 5, 5, 5], [2, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(right, [[3, 3, 5, 9, 9, 9], [4, 0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(offset, [[0, 1, 0, 0, 1, 2], [0, 0, 0, 0, 0, 0]])


def head(words=13, width=6, **arguments):
    embedding = keras.layers.ReversibleEmbedding(words, width, name="token_embedding")
    return SpanBoundaryHead(embedding, position_size=5, longest_span=2, initializer="normal", **arguments)


def test_words_are_scored_from_both_boundaries_and_the_position_as_the_paper_says():
    layer, vectors = head(), np.random.default_rng(1).normal(size=(2, 10, 6)).astype("float32")
    found = layer(vectors, POSITIONS)
    random = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    found = {name: keras.ops.convert_to_numpy(value) for name, value in layer(vectors, POSITIONS).items()}
    weights = {weight.path.split("/", 1)[-1]: keras.ops.convert_to_numpy(weight) for weight in layer.weights}
    table = keras.ops.convert_to_numpy(layer.token_embedding.embeddings)

    def gelu(x):
        return keras.ops.convert_to_numpy(keras.ops.gelu(x.astype("float32"), approximate=False))

    def scores(row, left, right, offset):
        hidden = np.concatenate([vectors[row, left], vectors[row, right], weights["positions"][offset]])
        for number in (1, 2):
            hidden = gelu(hidden @ weights[f"transform_{number}/kernel"] + weights[f"transform_{number}/bias"])
            hidden = (hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-12)
            hidden = hidden * weights[f"norm_{number}/gamma"] + weights[f"norm_{number}/beta"]
        return hidden @ table.T + weights["output_bias"]

    for row, place, (left, right, offset) in ((0, 1, (0, 3, 1)), (0, 2, (3, 5, 0)), (1, 0, (2, 4, 0))):
        np.testing.assert_allclose(found["logits"][row, place], scores(row, left, right, offset), rtol=1e-4, atol=1e-4)
    # Not scored: the third token of a span, where the table has two positions, and padding.
    np.testing.assert_array_equal(found["is_within"], [[1, 1, 1, 1, 1, 0], [1, 0, 0, 0, 0, 0]])


def test_the_masked_tokens_own_vectors_do_not_count():
    layer, vectors = head(), np.random.default_rng(1).normal(size=(2, 10, 6)).astype("float32")
    first = keras.ops.convert_to_numpy(layer(vectors, POSITIONS)["logits"])
    vectors[0, [1, 2, 4, 6, 7, 8]] += 1.0
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(layer(vectors, POSITIONS)["logits"])[0], first[0])
    vectors[0, 3] += 1.0  # beside two spans
    assert (keras.ops.convert_to_numpy(layer(vectors, POSITIONS)["logits"])[0] != first[0]).any(axis=1).tolist() == [
        *(True, True, True),
        *(False, False, False),
    ]


@every_backend
def test_in_bfloat16_a_place_learns_from_all_words_that_have_it():
    """4,000 words at each of two places: added one by one in bfloat16, most of them would be lost."""
    vectors = keras.Input((4, 6))
    places = keras.Input((2,), dtype="int32")
    changes = {}
    for policy in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        layer = head(dtype=keras.dtype_policies.get(policy))
        layer.token_embedding.build()
        model = keras.Model([vectors, places], layer(vectors, places)["logits"])
        layer.token_embedding.embeddings.assign(np.random.default_rng(0).normal(size=(13, 6)))
        model.compile(keras.optimizers.SGD(1.0), lambda expected, found: 1e4 * keras.ops.mean(found[..., 0]))
        before = keras.ops.convert_to_numpy(layer.positions)
        model.train_on_batch([np.ones((4000, 4, 6)), np.tile([1, 2], (4000, 1))], np.zeros((4000, 1)))
        changes[policy] = keras.ops.convert_to_numpy(layer.positions) - before
    assert np.abs(changes["float32"]).max() > 1
    np.testing.assert_allclose(
        changes["mixed_bfloat16"], changes["float32"], atol=0.05 * np.abs(changes["float32"]).max()
    )
