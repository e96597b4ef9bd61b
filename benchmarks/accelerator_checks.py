"""What has to be right on a device before its speed means anything: each kernel against its formula, on that device.

A check is a function that returns (largest difference, largest one allowed), and possibly what was chosen on this
device. A kernel that never ran on the device in question gets a row in CHECKS.
"""

import contextlib
import math

import numpy as np


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def matrix_product():
    """bfloat16 has 8 bits: a sum of 512 products with float32 accumulation is within a few thousandths."""
    from keras import ops

    left, right = normal(256, 512), normal(512, 256)
    narrow = [ops.cast(ops.convert_to_tensor(array), "bfloat16") for array in (left, right)]
    found = ops.convert_to_numpy(ops.cast(ops.matmul(*narrow), "float32"))
    return np.abs(found - left @ right).max() / np.abs(left @ right).max(), 1e-2


def gelu():
    from keras import ops

    from keras_bert_impl.kernels.gelu import activation_function

    x = normal(64, 128) * 3
    exact = np.vectorize(lambda value: value * 0.5 * (1 + math.erf(value / math.sqrt(2))))(x)
    found = activation_function("gelu")(ops.cast(ops.convert_to_tensor(x), "bfloat16"))
    return np.abs(ops.convert_to_numpy(ops.cast(found, "float32")) - exact).max(), 0.05


def dropout():
    """The share of units that are dropped, of 200,000: one standard deviation is 0.0007."""
    import keras
    from keras import ops

    from keras_bert_impl.kernels.dropout import drop

    found = ops.convert_to_numpy(drop(ops.ones((400, 500)), 0.1, keras.random.SeedGenerator(1)))
    return abs((found == 0).mean() - 0.1) + abs(found.max() - 1 / 0.9), 0.004


def packed_rows(length=128, **changes):
    """AttentionInputs of packed rows in bfloat16."""
    from keras_bert_impl.kernels.attention.device_check import random_inputs

    return random_inputs(4, length, 12, 64, "sequences", "bfloat16")[0]._replace(**changes)


def on_one_device():
    """Within this context, attention is computed as on one device of the mesh, by each process on its own."""
    import keras

    from keras_bert_impl.kernels import attention

    if keras.backend.backend() != "jax":
        return contextlib.nullcontext()
    return attention.placed(attention.placement()._replace(mesh=None, batch_axis=None, heads_axis=None))


def name_of(form):
    """The name of a form of attention, which is a function or a `functools.partial` of one."""
    return getattr(form, "func", form).__name__


def attention(**changes):
    """By the form that prediction chooses on this device, against the plain form in float32."""
    from keras import ops

    from keras_bert_impl.kernels import attention

    inputs = packed_rows(**changes)
    wide = {name: ops.cast(getattr(inputs, name), "float32") for name in ("query", "key", "value")}
    with on_one_device():
        form = attention.form_for(inputs)
        results = (form(inputs), attention.by_ops(inputs._replace(**wide)))
    is_token = ops.convert_to_numpy(inputs.sequence_ids) > 0  # what padding sees has no meaning
    found, expected = (ops.convert_to_numpy(ops.cast(values, "float32"))[is_token] for values in results)
    return np.abs(found - expected).max() / np.abs(expected).max(), 2e-2, name_of(form)


def attention_within_window():
    """As `attention`, of a window in long rows."""
    return attention(length=1280, window=64)


def attention_in_long_rows():
    """As `attention`, of packed rows of 1,280 tokens."""
    return attention(length=1280)


def attention_with_dropout():
    """By the form that training chooses. Where all values are 1, what is kept of a query's probabilities sums up to 1
    in the mean; a single sum has a standard deviation of about 0.07. (The form was compared with the plain one, its
    gradient included, before it was chosen.)"""
    import keras
    from keras import ops

    from keras_bert_impl.kernels import attention

    inputs = packed_rows(dropout_rate=0.1, seed=keras.random.SeedGenerator())
    ones = ops.ones_like(inputs.value)
    fused = ops.concatenate([inputs.query, inputs.key, ones], axis=-1)
    inputs = inputs._replace(value=ones, fused=fused)
    with on_one_device():
        form = attention.form_for(inputs)
        values = ops.convert_to_numpy(ops.cast(form(inputs), "float32"))
    sums = values[ops.convert_to_numpy(inputs.sequence_ids) > 0]
    return abs(sums.mean() - 1), 1e-2, name_of(form)


def loss_in_bfloat16():
    """A small model's loss in mixed_bfloat16 against float32, with the same rows and the same, large weights."""
    import keras

    import pretraining_step
    from keras_bert_impl import BertConfig

    config = BertConfig(1100, hidden_size=128, num_layers=2, num_heads=2, intermediate_size=512, initializer_range=0.2)
    inputs, labels = pretraining_step.batch(8, 128, 20, vocabulary=1100)
    losses, weights = [], None
    for precision in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        model = pretraining_step.our_model(config, precision, keras.backend.backend() == "jax")
        weights = weights or model.get_weights()
        model.set_weights(weights)
        losses.append(model.evaluate(inputs, labels, batch_size=8, verbose=0, return_dict=True)["loss"])
    return abs(losses[1] - losses[0]) / losses[0], 1e-2


CHECKS = {
    "matrix product": matrix_product,
    "gelu": gelu,
    "dropout": dropout,
    "attention": attention,
    "attention, dropout": attention_with_dropout,
    "attention, window": attention_within_window,
    "attention, long rows": attention_in_long_rows,
    "loss in bfloat16": loss_in_bfloat16,
}
