import keras
import numpy as np
from tiers import every_backend

from keras_bert_impl.layers import ReplaceTokens, SampleTokens


def test_only_masked_positions_are_replaced_and_position_0_is_padding():
    ids = np.array([[2, 6, 7, 8, 3], [2, 9, 10, 11, 3]], "int32")
    places, new = np.array([[1, 3], [2, 0]], "int32"), np.array([[0, 21], [22, 23]], "int32")
    found = keras.ops.convert_to_numpy(ReplaceTokens()(ids, places, new))
    np.testing.assert_array_equal(found, [[2, 0, 7, 21, 3], [2, 9, 22, 11, 3]])
    assert found.dtype == np.int32


@every_backend
def test_tokens_are_drawn_as_often_as_their_probabilities_say():
    probabilities = np.array([0.5, 0.3, 0.2], "float32")
    logits = np.broadcast_to(np.log(probabilities), (2, 10_000, 3))
    drawn = keras.ops.convert_to_numpy(SampleTokens(seed=3)(logits, training=True))
    assert drawn.shape == (2, 10_000) and drawn.dtype == np.int32
    np.testing.assert_allclose(np.bincount(drawn.ravel()) / drawn.size, probabilities, atol=0.015)
    assert (drawn[0] != drawn[1]).any()


def test_a_layer_that_draws_is_rebuilt_from_its_configuration():
    first, second = SampleTokens(seed=3), SampleTokens.from_config(SampleTokens(seed=3).get_config())
    logits = np.zeros((2, 50, 7), "float32")
    one, other = (keras.ops.convert_to_numpy(layer(logits, training=True)) for layer in (first, second))
    np.testing.assert_array_equal(one, other)
