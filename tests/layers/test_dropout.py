import keras
import numpy as np
import pytest
from tiers import every_backend

from keras_bert_impl.layers import Dropout


def masks(layer, shape, count=1):
    """Which units were kept in each of `count` calls, bool (count, *shape)."""
    found = [keras.ops.convert_to_numpy(layer(keras.ops.ones(shape), training=True)) for _ in range(count)]
    return np.stack(found) > 0


@every_backend
@pytest.mark.parametrize(("rate", "seed"), [(0.1, None), (0.5, 3)])
def test_the_share_of_dropped_units_is_the_rate(rate, seed):
    kept = masks(Dropout(rate, seed=seed), (7, 300, 101))
    # Three standard deviations of 212,100 draws.
    assert abs(1 - kept.mean() - rate) < 3 * (rate * (1 - rate) / kept.size) ** 0.5


def test_neighbours_and_calls_are_independent():
    kept = masks(Dropout(0.5), (40_000,), count=2).astype("float64")
    for distance in range(1, 9):  # two or four neighbours come from one random word
        assert abs(np.corrcoef(kept[0, :-distance], kept[0, distance:])[0, 1]) < 0.025
    assert abs(np.corrcoef(kept[0], kept[1])[0, 1]) < 0.025


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3, 5), (0, 4)])
def test_any_shape_keeps_its_size_and_type(shape):
    found = Dropout(0.25, dtype="mixed_bfloat16")(keras.ops.ones(shape, "bfloat16"), training=True)
    assert tuple(found.shape) == shape and keras.backend.standardize_dtype(found.dtype) == "bfloat16"


@every_backend
def test_what_is_kept_is_scaled_and_evaluation_drops_nothing():
    inputs = np.linspace(1, 2, 1000, dtype="float32")
    found = keras.ops.convert_to_numpy(Dropout(0.2)(inputs, training=True))
    np.testing.assert_allclose(found[found > 0], inputs[found > 0] / 0.8, rtol=1e-6)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(Dropout(0.2)(inputs)), inputs)


@every_backend
def test_the_same_seed_drops_the_same_units():
    np.testing.assert_array_equal(masks(Dropout(0.5, seed=3), (99,), 2), masks(Dropout(0.5, seed=3), (99,), 2))
    found = []
    for _ in range(2):
        keras.utils.set_random_seed(4)
        found.append(masks(Dropout(0.5), (99,)))
    np.testing.assert_array_equal(*found)


def test_units_that_share_a_place_in_the_noise_are_dropped_together():
    kept = masks(Dropout(0.5, noise_shape=(7, 1, 11)), (7, 5, 11))[0]
    np.testing.assert_array_equal(kept, np.broadcast_to(kept[:, :1], (7, 5, 11)))
    assert 0.2 < kept.mean() < 0.8


def test_the_noise_shape_survives_the_configuration():
    layer = Dropout.from_config(Dropout(0.5, noise_shape=(None, 1, 3)).get_config())
    assert layer.noise_shape == (None, 1, 3)
    assert masks(layer, (2, 5, 3)).shape == (1, 2, 5, 3)
