"""Attention by blocks is the plain form within a window: values and gradients, at every length, with every mask."""

import functools

import numpy as np
import pytest
from gradients import outputs_and_gradient
from keras import ops
from tiers import every_backend, full_but, full_on, on, once

from keras_bert_impl.kernels.attention import attend, form_for
from keras_bert_impl.kernels.attention.plain import AttentionInputs, by_ops
from keras_bert_impl.kernels.attention.windows import by_blocks, suits

MASKINGS = ["none", "keys", "sequences", "none, global keys", "keys, global keys", "sequences, global keys"]


def inputs_of(length, window, masking):
    masking, _, has_global = masking.partition(", ")
    inputs, real = local_inputs(length, window, masking)
    if not has_global:
        return inputs, real
    # The first and the last token, one in the middle of blocks, and a second row with fewer, of which one is padding.
    first, second = sorted({0, length // 2, length - 1}), [min(5, length - 1), length - 1]
    places = np.full((2, 4), -1, "int32")
    places[0, : len(first)], places[1, :2] = first, second if length > 6 else [0, -1]
    return inputs._replace(global_places=ops.convert_to_tensor(places)), real


def local_inputs(length, window, masking):
    random = np.random.default_rng(length)
    arrays = [ops.convert_to_tensor(random.normal(size=(2, length, 12)).astype("float32")) for _ in range(3)]
    real = np.arange(length) < np.array([[length], [max(1, 2 * length // 3)]])
    # Sequences of five tokens; a number 0 of tokens is another than that of padding.
    ids = np.where(real, np.arange(length) // 5, 0)
    if masking == "none":
        return AttentionInputs(*arrays, 3, window=window), np.ones_like(real)
    if masking == "keys":
        return AttentionInputs(*arrays, 3, ops.convert_to_tensor(real[:, None, None]), window=window), real
    mask = (ids[:, :, None] == ids[:, None]) & real[:, None] & real[:, :, None]
    ids = ops.convert_to_tensor(ids.astype("int32"))
    return AttentionInputs(*arrays, 3, ops.convert_to_tensor(mask[:, None]), window=window, sequence_ids=ids), real


SIZES = [(1, 3), (3, 3), (12, 3), (13, 3), (29, 3), (29, 1), (7, 64)]


@every_backend
@pytest.mark.parametrize("masking", full_but(MASKINGS, MASKINGS[1], MASKINGS[5], on=("tensorflow", "jax")))
@pytest.mark.parametrize(("length", "window"), full_but(SIZES, (13, 3), on=("tensorflow", "jax")))
def test_values_are_those_of_the_plain_form(length, window, masking):
    """Of padding, too, of which some sees no token."""
    inputs, _ = inputs_of(length, window, masking)
    np.testing.assert_allclose(*(ops.convert_to_numpy(form(inputs)) for form in (by_blocks, by_ops)), atol=1e-5)


@pytest.mark.parametrize("masking", MASKINGS)
def test_each_key_is_seen_once_and_global_ones_at_any_distance(masking):
    """Values that are one-hot in a width of the length show the probabilities; equal keys have equal shares."""
    inputs, real = inputs_of(29, 3, masking)
    keys, query = np.zeros((2, 29, 87), "float32"), np.zeros((2, 29, 87), "float32")
    values = np.tile(np.eye(29, dtype="float32"), (2, 1, 3))
    inputs = inputs._replace(query=ops.convert_to_tensor(query), key=ops.convert_to_tensor(keys))
    inputs = inputs._replace(value=ops.convert_to_tensor(values))
    shares = ops.convert_to_numpy(by_blocks(inputs))[..., :29]
    places = np.arange(29)
    seen = np.broadcast_to(abs(places[:, None] - places) <= 3, (2, 29, 29)).copy()
    if inputs.global_places is not None:
        for row, of_row in enumerate(ops.convert_to_numpy(inputs.global_places)):
            seen[row][:, of_row[of_row >= 0]] = True
    if inputs.mask is not None:
        seen &= np.broadcast_to(ops.convert_to_numpy(inputs.mask)[:, 0], seen.shape)
    expected = seen / np.maximum(1, seen.sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(shares[real], expected[real], atol=1e-6)


@every_backend
@full_on("jax")
@pytest.mark.parametrize("masking", full_but(MASKINGS, MASKINGS[5], on=("tensorflow", "jax")))
def test_gradients_are_those_of_the_plain_form(masking):
    """Of padding, too, of which some sees no token."""
    inputs, _ = inputs_of(29, 3, masking)
    fused = np.concatenate([ops.convert_to_numpy(one) for one in inputs[:3]], axis=-1)

    def gradient(form):
        def attended(fused):
            query, key, value = ops.split(fused, 3, axis=-1)
            return form(inputs._replace(query=query, key=key, value=value))

        return outputs_and_gradient(attended, fused)[1]

    found, expected = map(gradient, (functools.partial(by_blocks, attend=attend), by_ops))
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-5)


@once
def test_short_rows_biases_and_other_masks_are_left_to_the_other_forms():
    inputs, _ = inputs_of(29, 3, "keys")
    form = form_for(inputs)
    assert suits(inputs) and getattr(form, "func", form) is by_blocks
    assert not suits(inputs_of(11, 3, "keys")[0])
    assert not suits(inputs._replace(bias=ops.zeros((1, 3, 29, 29))))
    causal = np.tril(np.ones((29, 29), bool))[None, None]
    assert not suits(inputs._replace(mask=ops.convert_to_tensor(causal)))
    assert not suits(inputs._replace(window=None))


@on("tensorflow")
@pytest.mark.parametrize(
    ("compiled", "masking"),
    full_but(
        [(compiled, masking) for compiled in (False, True) for masking in MASKINGS],
        (False, "keys, global keys"),
    ),
)  # fmt: skip
def test_a_graph_of_any_length_computes_short_and_long_rows(masking, compiled):
    """Also that rows too short for blocks are not filled up: the scores of one block are length x length."""
    import tensorflow as tf

    names = ("query", "key", "value", "mask", "sequence_ids", "global_places")
    seen = []

    def by_plain(inputs):
        seen.append(tf.shape(inputs.key)[1])
        return by_ops(inputs)

    def attended(*arrays):
        given = dict(zip(given_names, arrays, strict=True))
        mixed = by_blocks(AttentionInputs(num_heads=3, window=3, **given), attend=by_plain)
        return mixed, seen[-1]

    few, _ = inputs_of(1, 3, masking)
    given_names = [name for name in names if getattr(few, name) is not None]
    shapes = dict.fromkeys(names[:3], (None, None, 12))
    shapes |= {"mask": (None, 1, 1 if masking.startswith("keys") else None, None)}
    shapes |= {"sequence_ids": (None, None), "global_places": (None, 4)}
    signature = [tf.TensorSpec(shapes[name], getattr(few, name).dtype) for name in given_names]
    graph = tf.function(attended, input_signature=signature, jit_compile=compiled)
    for length in (1, 11, 12, 29):
        inputs, real = inputs_of(length, 3, masking)
        found, keys = graph(*(getattr(inputs, name) for name in given_names))
        np.testing.assert_allclose(found.numpy()[real], ops.convert_to_numpy(by_ops(inputs))[real], atol=1e-5)
        assert keys == (length if length < 12 else 9) + (4 if "global_places" in given_names else 0)
