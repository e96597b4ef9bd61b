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


# The owner, the private name, and what goes wrong without it.
USED = (
    (
        lambda: keras.Sequential([keras.layers.Dense(1)]),
        "_flatten_metrics_in_order",
        "evaluate of answers and of long texts cannot return a list as Keras does",
    ),
    (
        lambda: keras.Sequential([keras.layers.Dense(1)]),
        "_loss_tracker",
        "the loss of an epoch depends on how its rows are divided into batches",
    ),
    (
        lambda: keras.optimizers.AdamW(),
        "_clip_gradients",
        "BertAdamW and BertLamb no longer clip nor sum over replicas",
    ),
    (  # torch's own, of the same name as one of its modules and so of Keras' layers
        lambda: pytest.importorskip("torch").ones(1),
        "_version",
        "flex attention keeps the blocks of a mask that was changed in place",
    ),
    (lambda: keras.optimizers.AdamW(), "_apply_weight_decay", "BertAdamW decays weights a second time"),
    (lambda: keras.optimizers.AdamW(), "_use_weight_decay", "BertAdamW and BertLamb cannot tell what decays"),
    (lambda: keras.optimizers.AdamW(), "_backend_update_step", "BertAdamW calls torch once for each weight"),
    *(
        (lambda: built(keras.optimizers.AdamW(gradient_accumulation_steps=2)), name, "gradients do not accumulate")
        for name in (
            "_backend_apply_gradients",
            "_backend_increment_gradient_accumulators",
            "_backend_reset_gradient_accumulators",
            "_accumulated_gradients",
            "_iterations",
            "_trainable_variables",
            "_update_model_variables_moving_average",
        )
    ),
    (lambda: keras.optimizers.AdamW(), "_learning_rate", "the pace of a moved schedule is not found, nor saved"),
    (lambda: keras.optimizers.AdamW(), "_track_variable", "the pace of a moved schedule is not saved"),
    (lambda: keras.optimizers.AdamW(), "_get_variable_index", "BertAdamW and BertLamb do not find their moments"),
    (
        lambda: built(keras.optimizers.AdamW(use_ema=True)),
        "_model_variables_moving_average",
        "a second fit trains from the average of the weights",
    ),
    (lambda: built(keras.layers.Dense(3)), "_kernel", "merge_lora and layer_records do not find the weight below LoRA"),
    (lambda: keras.layers.Dense(3), "_get_kernel_with_merged_lora", "merge_lora has nothing to merge"),
    (lambda: keras.layers.Embedding(3, 2), "_get_embeddings_with_merged_lora", "merge_lora has nothing to merge"),
    (lambda: keras.layers.Dense(3), "_flatten_layers", "LoRA, layer_records and check_not_quantized see no sublayers"),
    (lambda: keras.layers.Dense(3), "_get_call_context", "a loss of float16 that is not scaled is not reported"),
    (lambda: keras.layers.Dropout(0.1), "seed_generator", "Dropout and rematerialized blocks draw other masks"),
    (lambda: keras.random.SeedGenerator(), "_initial_seed", "Dropout cannot tell on torch whether a seed was given"),
    (lambda: keras.metrics.F1Score(), "_direction", "EarlyStopping asks for its mode beside val_f1_score"),
    (
        lambda: keras.Model(*2 * [keras.Input((2,))]),
        "_run_through_graph",
        "clone_model gives a plain keras.Model, which takes arrays by position",
    ),
    (lambda: keras.Model, "_symbolic_build", "plan-tpu makes no metrics, and fit traces its first step twice"),
)
# Names of the TensorFlow backend only, whose module cannot be imported on the other backends.
USED_OF_JAX = ("_jax_state", "_jax_state_synced", "_purge_model_variables")
USED_OF_TENSORFLOW = (
    ("_all_reduce_sum_gradients", "gradients are summed over replicas twice"),
    ("_maybe_symbolic_build", "fit of several processes fails on its first batch"),
    ("_distribute_strategy", "fit of several processes fails on its first batch"),
    ("reduce_per_replica", "fit of several processes fails on its metrics"),
)


@pytest.mark.parametrize(("owner", "name", "consequence"), USED, ids=[f"{name}-{what}" for _, name, what in USED])
def test_keras_still_has_the_private_name(owner, name, consequence):
    assert hasattr(owner(), name), f"Keras {keras.__version__} has no {name}, so that {consequence}."


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
@pytest.mark.parametrize(("name", "consequence"), USED_OF_TENSORFLOW)
def test_keras_still_has_the_private_name_of_its_tensorflow_backend(name, consequence):
    from keras.src.backend.tensorflow import trainer

    owners = (keras.optimizers.AdamW(), keras.Sequential([keras.Input((2,))]), trainer)
    message = f"Keras {keras.__version__} has no {name} in its TensorFlow backend, so that {consequence}."
    assert any(hasattr(owner, name) for owner in owners), message


@on("jax")  # about Keras' JAX backend
@pytest.mark.parametrize("name", USED_OF_JAX)
def test_keras_still_has_the_private_name_of_its_jax_backend(name):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.predict_on_batch(np.ones((1, 2)))
    assert hasattr(model, name), f"Keras {keras.__version__} has no {name}: an error or Ctrl-C loses the weights."


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
    held = {name for _, name, _ in USED} | {name for name, _ in USED_OF_TENSORFLOW} | {*USED_OF_JAX}
    missing = {name: str(used[name]) for name in of_keras & used.keys() - held}
    assert not missing, f"these names are Keras' own: {missing}"
