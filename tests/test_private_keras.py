"""The private names of Keras that the library uses or overrides: if a version renames one, a test here names it."""

import ast
import pathlib

import keras
import numpy as np
import pytest
from tiers import on

from keras_bert_impl.distribution import keras_patches

ROOT = pathlib.Path(__file__).parents[1]


def built(layer_or_optimizer):
    """A layer or optimizer with its weights: it has all of its attributes only when it is built."""
    if isinstance(layer_or_optimizer, keras.Layer):
        layer_or_optimizer.build((None, 2))
    else:
        layer_or_optimizer.build([keras.Variable([1.0])])
    return layer_or_optimizer


def optimizer(**arguments):
    return built(keras.optimizers.AdamW(**arguments))


# The owner, and its private names; a search in the library finds what needs them.
USED = (
    (lambda: keras.Sequential([keras.layers.Dense(1)]), "_loss_tracker"),
    # torch's own, of the same name as one of its modules and so of Keras' layers
    (lambda: pytest.importorskip("torch").ones(1), "_version"),
    (optimizer, "_clip_gradients _apply_weight_decay _use_weight_decay _backend_update_step"),
    (optimizer, "_get_variable_index _trainable_variables"),
    (lambda: optimizer(gradient_accumulation_steps=2), "_backend_apply_gradients _accumulated_gradients"),
    (lambda: optimizer(use_ema=True), "_model_variables_moving_average _update_model_variables_moving_average"),
    (lambda: built(keras.layers.Dense(3)), "_flatten_layers _get_call_context"),
    (lambda: keras.layers.Dropout(0.1), "seed_generator"),
    (lambda: keras.random.SeedGenerator(), "_initial_seed"),
    (lambda: keras.metrics.F1Score(), "_direction"),
    (lambda: keras.Model, "_symbolic_build _resolve_auto_jit_compile"),
    (lambda: keras.Model(*[keras.Input((2,))] * 2), "_run_through_graph"),
)
# Names of one backend of Keras, whose module cannot be imported on the other backends.
USED_OF_JAX = ("_jax_state", "_purge_model_variables")
USED_OF_TENSORFLOW = ("_all_reduce_sum_gradients", "_maybe_symbolic_build", "reduce_per_replica")


@pytest.mark.parametrize(("owner", "names"), USED, ids=[names for _, names in USED])
def test_keras_still_has_the_private_names(owner, names):
    missing = [name for name in names.split() if not hasattr(owner(), name)]
    assert not missing, f"Keras {keras.__version__} has no {missing}"


def test_a_layer_still_finds_the_outermost_layer_of_its_call():
    found = []

    class AsksWhoCalled(keras.layers.Layer):
        def call(self, inputs):
            found.append(self._get_call_context().entry_layer)
            return inputs

    model = keras.Sequential([keras.Input((2,)), AsksWhoCalled()])
    model(keras.ops.ones((1, 2)))
    assert found[-1] is model, f"Keras {keras.__version__}: an unscaled loss of float16 is not reported."


@on("tensorflow")  # about Keras' TensorFlow backend
def test_keras_still_has_the_private_names_of_its_tensorflow_backend():
    from keras.src.backend.tensorflow import trainer

    owners = (keras.optimizers.AdamW(), keras.Sequential([keras.Input((2,))]), trainer)
    missing = [name for name in USED_OF_TENSORFLOW if not any(hasattr(owner, name) for owner in owners)]
    assert not missing, f"Keras {keras.__version__} has no {missing}"


@on("jax")  # about Keras' JAX backend
def test_keras_still_has_the_private_names_of_its_jax_backend():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.predict_on_batch(np.ones((1, 2)))
    missing = [name for name in USED_OF_JAX if not hasattr(model, name)]
    assert not missing, f"Keras {keras.__version__} has no {missing}: an error or Ctrl-C loses the weights."


@on("jax")  # about Keras' JAX backend
def test_batches_for_a_mesh_are_copied_one_ahead():
    from keras.src.backend.jax.trainer import JAXEpochIterator

    read = []

    class Batches(keras.utils.PyDataset):
        num_batches = 3

        def __getitem__(self, index):
            read.append(index)
            return (np.full((2, 1), index, "float32"),)

    def read_at_each_step():
        read.clear()
        iterator = JAXEpochIterator(x=Batches(), steps_per_execution=1)._get_distributed_iterator(mesh)
        return [(int(batch[0][0, 0]), len(read)) for batch in iterator]

    mesh = keras.distribution.DataParallel(auto_shard_dataset=False)
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(mesh)
    original = JAXEpochIterator._get_distributed_iterator
    try:
        keras_patches._take_whole_batches()
        assert read_at_each_step() == [(0, 2), (1, 3), (2, 3)]
    finally:
        JAXEpochIterator._get_distributed_iterator = original
        keras.distribution.set_distribution(before)


def test_a_keras_without_a_name_that_several_devices_need_is_named(monkeypatch):
    def fails():
        raise AttributeError("no attribute 'reduce_values'")

    for name in ("_build_from_a_share", "_take_whole_batches"):
        monkeypatch.setattr(keras_patches, name, fails)
    if keras.backend.backend() == "torch":
        keras_patches.take_any_batch.__wrapped__()
        return
    with pytest.raises(RuntimeError, match=r"lacks .*reduce_values.*install keras~=3.15"):
        keras_patches.take_any_batch.__wrapped__()


def private_names(path):
    """Private attributes that a file reads or sets, and private methods that it defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = getattr(node, "attr", None) or getattr(node, "name", None)
        if isinstance(node, ast.Attribute | ast.FunctionDef) and name.startswith("_") and not name.startswith("__"):
            yield name


def test_every_private_name_of_keras_that_is_used_is_held_above():
    of_keras = {
        *dir(keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dropout(0.1)])),
        *dir(built(keras.layers.Dense(3))),
        *dir(built(keras.optimizers.AdamW())),
        *dir(keras.random.SeedGenerator()),
        *dir(keras.utils.PyDataset()),
        *dir(keras.metrics.Mean()),
        *dir(keras.losses.MeanSquaredError()),
    }
    files = [path for path in (ROOT / "keras_bert_impl").rglob("*.py")]
    used = {name: path for path in files for name in private_names(path)}
    held = {name for _, names in USED for name in names.split()} | {*USED_OF_TENSORFLOW, *USED_OF_JAX}
    missing = {name: str(used[name]) for name in of_keras & used.keys() - held}
    assert not missing, f"these names are Keras' own: {missing}"
