"""What only Longformer does: windows with global tokens, which follow from the head, in memory linear in the length."""

import numpy as np
import pytest
from families import SIZES
from reference_models import outputs_of, random_model
from tiers import every_backend, on

import keras_bert_impl as kbi

pytestmark = on("torch")

CONFIG = kbi.LongformerConfig(
    **{**SIZES, "max_length": 64, "num_layers": 3},
    attention_window=(4, 8, 4),
    global_tokens="given",
    max_global_tokens=5,
)


def rows_of(length, hidden=(), global_places=(), config=CONFIG):
    """Two rows of ids, of which the second lacks the tokens at `hidden`; both have global tokens at these places."""
    random = np.random.default_rng(length)
    mask = np.ones((2, length), "int32")
    mask[1, list(hidden)] = 0
    ids = np.where(mask == 1, random.integers(5, 53, mask.shape), config.pad_id).astype("int32")
    global_mask = np.zeros_like(mask)
    global_mask[:, list(global_places)] = 1
    global_mask[0, : length // 3] = 0  # rows with different numbers of them
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": mask,
        "global_mask": global_mask,
    }


def outputs_there(model, rows):
    return outputs_of(model, rows, global_attention_mask=rows["global_mask"])


# (length, places of padding in the second row, places of global tokens). Windows reach 2, 4 and 2 tokens to each side:
# rows of 8 and of 16 tokens and more are computed by blocks.
ROWS = [
    (1, (), ()),
    (1, (), (0,)),
    (2, (), (1,)),
    (4, (3,), (0, 2)),
    (5, (0,), (4,)),
    (7, range(4, 7), (0, 6)),  # the last token of the first row, padding in the second
    (8, (2, 5), (1, 2)),
    (16, range(5), (5, 6, 15)),
    (17, range(13, 17), (0, 1, 2, 8, 16)),
    (37, (0, 1, 11, 12, 13, 14, 15, 16, 17, 36), (3, 10, 22, 23, 36)),
    (37, range(37), (0, 22, 36)),  # a row of padding alone
    (41, range(39, 41), ()),
]


@every_backend
@pytest.mark.parametrize(("length", "hidden", "places"), ROWS)
def test_every_state_is_that_of_transformers(length, hidden, places, tmp_path):
    """Of padding, too: it sees nothing in both."""
    rows = rows_of(length, hidden, places)
    theirs = random_model("LongformerModel", CONFIG, tmp_path, output_hidden_states=True)
    ours = kbi.LongformerEncoder.from_pretrained(tmp_path, return_hidden_states=True).predict_on_batch(rows)
    expected = np.stack(outputs_there(theirs, rows)["hidden_states"], axis=1)
    np.testing.assert_allclose(ours["hidden_states"], expected, atol=1e-5)


LONG = 4096


def check_sizes(shapes):
    """No array is of length x length, or has as many numbers."""
    shapes = [tuple(shape) for shape in shapes]
    assert any(LONG in shape for shape in shapes)
    largest = max(shapes, key=np.prod)
    assert np.prod(largest) < LONG * LONG / 8, largest
    assert all(shape.count(LONG) < 2 for shape in shapes)


@pytest.fixture
def long_encoder():
    """Blocks of 32 queries with 96 keys and 8 global ones, in two heads: 1/20 of what a row's whole square would be."""
    sizes = {**SIZES, "hidden_size": 6, "num_heads": 2, "num_layers": 1, "max_length": LONG}
    config = kbi.LongformerConfig(**sizes, attention_window=64, max_global_tokens=8)
    return kbi.LongformerEncoder(config, task="question")


def long_rows():
    rows = rows_of(LONG)
    rows["token_ids"][:, 5] = CONFIG.sep_id
    return {name: rows[name][:1] for name in ("token_ids", "segment_ids", "padding_mask")}


@on("jax")
def test_a_step_in_jax_has_no_array_that_grows_with_the_square_of_the_length(long_encoder):
    import jax.extend

    weights = [
        [weight.value for weight in group]
        for group in (long_encoder.trainable_variables, long_encoder.non_trainable_variables)
    ]

    def loss(trainable, others, rows):
        outputs, _ = long_encoder.stateless_call(trainable, others, rows, training=True)
        return outputs["sequence_output"].sum()

    def shapes(jaxpr):
        for equation in jaxpr.eqns:
            yield from (variable.aval.shape for variable in equation.outvars)
            for inner in jax.extend.core.jaxprs_in_params(equation.params):
                yield from shapes(inner)

    check_sizes(shapes(jax.make_jaxpr(jax.grad(loss))(*weights, long_rows()).jaxpr))


@on("tensorflow")
def test_a_step_in_tensorflow_has_no_array_that_grows_with_the_square_of_the_length(long_encoder):
    import tensorflow as tf

    @tf.function
    def gradients(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(long_encoder(rows, training=True)["sequence_output"])
        return tape.gradient(loss, [weight.value for weight in long_encoder.trainable_variables])

    rows = {name: tf.constant(array) for name, array in long_rows().items()}
    graph = gradients.get_concrete_function(rows).graph
    outputs = [output for operation in graph.get_operations() for output in operation.outputs]
    assert not [output for output in outputs if output.shape.rank is None and output.dtype.is_floating]
    check_sizes([axis or 1 for axis in output.shape] for output in outputs if output.shape.rank is not None)


@on("torch")
def test_a_step_in_torch_has_no_array_that_grows_with_the_square_of_the_length(long_encoder):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    shapes = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            found = function(*arguments, **(options or {}))
            tensors = found if isinstance(found, tuple | list) else [found]
            shapes.extend(tensor.shape for tensor in tensors if isinstance(tensor, torch.Tensor))
            return found

    with Seen():
        long_encoder(long_rows(), training=True)["sequence_output"].sum().backward()
    check_sizes(shapes)
