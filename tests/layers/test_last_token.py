import numpy as np
from check_layer import check_layer
from keras import ops

from keras_bert_impl.layers import LastToken

HIDDEN = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
PADDING = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]], "int32")


def test_the_last_token_is_the_one_before_the_padding():
    found = ops.convert_to_numpy(LastToken()(HIDDEN, PADDING))
    np.testing.assert_array_equal(found, [HIDDEN[0, 4], HIDDEN[1, 1], HIDDEN[2, 0]])


def test_the_last_token_has_the_routine_properties():
    check_layer(lambda dtype: LastToken(dtype=dtype), HIDDEN, PADDING)
