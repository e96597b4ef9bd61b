import functools

import numpy as np
import tensorflow as tf
from tiers import on

from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
from keras_bert_impl.text.rows import numpy_arrays, randomness
from keras_bert_impl.text.rows.randomness import Stream

pytestmark = on("tensorflow")

# The tests below are of the graph; the last but one holds NumPy's draws equal to it.
random_keys = functools.partial(randomness.random_keys, arrays=tensorflow_arrays)
uniforms = functools.partial(randomness.uniforms, arrays=tensorflow_arrays)
uniform_integers = functools.partial(randomness.uniform_integers, arrays=tensorflow_arrays)
STREAM = Stream.MASK_POSITION


def splitmix64(state, num_draws):
    """Vigna's reference implementation (prng.di.unimi.it/splitmix64.c) in Python integers."""
    draws, wrap = [], 2**64 - 1
    for _ in range(num_draws):
        state = (state + 0x9E3779B97F4A7C15) & wrap
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & wrap
        draws.append(z ^ (z >> 31))
    return draws


def test_draws_are_the_published_splitmix64_sequence():
    # First outputs of the reference implementation for seed 1234567.
    assert splitmix64(1234567, 2) == [6457827717110365317, 3203168211198807973]
    keys = tf.constant([1234567], tf.uint64)
    expected = np.array([draw >> 40 for draw in splitmix64(1234567, 5)]) / 2**24
    np.testing.assert_array_equal(uniforms(keys, tf.range(5)).numpy(), expected.astype(np.float32))


def test_a_key_is_one_step_of_splitmix64_for_each_counter():
    after_seed = splitmix64(int(STREAM) ^ 5, 1)[0]
    assert int(random_keys(STREAM, 5, 7)) == splitmix64(after_seed ^ 7, 1)[0]


def test_order_of_counters_matters():
    assert random_keys(STREAM, 1, 2, 3).numpy() != random_keys(STREAM, 1, 3, 2).numpy()
    assert random_keys(STREAM, 1, 2, 3).numpy() != random_keys(STREAM, 2, 1, 3).numpy()


def test_integers_stay_below_their_bound_and_are_equally_likely():
    keys = random_keys(STREAM, 1, 0, tf.range(100_000))
    draws = uniform_integers(keys, 0, 7).numpy()
    counts = np.bincount(draws, minlength=7)
    assert counts.shape == (7,)
    # Five standard deviations of a binomial with 100000 draws.
    assert np.abs(counts - 1e5 / 7).max() < 5 * np.sqrt(1e5 * 1 / 7 * 6 / 7)
    np.testing.assert_array_equal(uniform_integers(keys, 0, 1).numpy(), 0)
    assert uniform_integers(keys, 0, 2**31).numpy().max() > 0.999 * 2**31


def test_negative_and_large_seeds_are_accepted_and_differ():
    seeds = [-1, 0, 1, 2**31, 2**32, 2**63 - 1]
    assert len({int(random_keys(STREAM, seed, 0)) for seed in seeds}) == len(seeds)


def test_draws_in_numpy_are_the_same_bits():
    index, positions = np.array([0, 7, -3, 2**40, 2**63 - 1]), np.arange(9)
    for seed in (-1, 0, 2**62):
        ours, theirs = (
            [
                randomness.uniforms(keys[:, np.newaxis], positions, arrays),
                randomness.uniform_integers(keys[:, np.newaxis], positions, 30_522, arrays),
                randomness.uniform_integers(randomness.random_keys(STREAM, seed, arrays=arrays), 0, 2**31, arrays),
            ]
            for arrays in (numpy_arrays, tensorflow_arrays)
            for keys in [randomness.random_keys(STREAM, seed, 3, index, arrays=arrays)]
        )
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_every_use_of_draws_has_its_own_number():
    assert len(set(map(int, Stream.__members__.values()))) == len(Stream.__members__)
