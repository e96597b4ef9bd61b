"""With the same batches and seeds, several devices give the losses of 16 steps, metrics and weights of one device."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import keras
import numpy as np
import pytest
from tiers import every_backend, on

from keras_bert_impl import BertConfig, BertEncoder, distribution
from keras_bert_impl.distribution.processes import _place_in_cluster
from keras_bert_impl.models import Pretrainer

BACKEND = keras.backend.backend()
PROGRAM = pathlib.Path(__file__).with_name("distributed_training.py")
EMBEDDING = pathlib.Path(__file__).with_name("distributed_embedding.py")
ON = {
    "tensorflow": [
        {"distribution": "mirrored", "devices": 2},
        pytest.param({"distribution": "mirrored", "devices": 4}, marks=pytest.mark.full),
    ],
    "jax": [
        {"distribution": "data_parallel", "devices": 4, "shard_optimizer": True},
        pytest.param({"distribution": "data_parallel", "devices": 8}, marks=pytest.mark.full),
        pytest.param({"distribution": "model_parallel", "devices": 8, "model_devices": 4}, marks=pytest.mark.full),
        pytest.param(
            {"distribution": "model_parallel", "devices": 4, "model_devices": 4, "key_value_heads": 1},
            marks=pytest.mark.full,
        ),
    ],
}
only_distributed = on(*ON)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("localhost", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def environments(processes, with_chief=False):
    """The environment of each of several processes of one training; TensorFlow may call the first one the chief."""
    ports = free_ports(processes)
    workers = [f"localhost:{port}" for port in ports]
    for index in range(processes):
        cluster, task = {"worker": workers}, {"type": "worker", "index": index}
        if with_chief:
            cluster = {"chief": workers[:1], "worker": workers[1:]}
            task = {"type": "worker", "index": index - 1} if index else {"type": "chief", "index": 0}
        task = {"cluster": cluster, "task": task}
        of_backend = {
            "tensorflow": {"TF_CONFIG": json.dumps(task)},
            "jax": {
                "KERAS_DISTRIBUTION_JOB_ADDRESSES": workers[0],
                "KERAS_DISTRIBUTION_NUM_PROCESSES": str(processes),
                "KERAS_DISTRIBUTION_PROCESS_ID": str(index),
            },
        }[BACKEND]
        yield {**os.environ, "KERAS_BACKEND": BACKEND, **(of_backend if processes > 1 else {})}


def train(options, path, processes=1, program=PROGRAM):
    """What tests/distributed_training.py, or another program, writes with these options."""
    command = [sys.executable, str(program), json.dumps(options), str(path)]
    running = [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=PROGRAM.parents[1])
        for environment in environments(processes)
    ]
    complaints = [process.communicate(timeout=300)[1] for process in running]
    assert all(process.returncode == 0 for process in running), complaints
    return json.loads(path.read_text())


def assert_same(found, expected, replicas):
    assert found["replicas"] == replicas
    assert len(found["losses"]) == 16 and found["losses"][-1] < found["losses"][0] - 0.3
    for name in ("losses", "masked_lm_losses", "kernel", "gradient_norm"):
        np.testing.assert_allclose(found[name], expected[name], atol=2e-5, err_msg=name)
    for name, value in expected["evaluation"].items():
        assert found["evaluation"][name] == pytest.approx(value, abs=2e-5), name


@only_distributed
@pytest.mark.parametrize("options", ON.get(BACKEND, []), ids=str)
def test_several_devices_learn_what_one_learns(options, tmp_path):
    shape = {name: options[name] for name in options if name == "key_value_heads"}
    found, alone = train([options, shape], tmp_path / "found.json")
    assert_same(found, alone, options["devices"] // options.get("model_devices", 1))
    if options.get("shard_optimizer"):
        assert found["share_of_state"] == 1 / options["devices"]
    elif options["distribution"] == "data_parallel":
        assert found["share_of_state"] == 1


def test_state_is_divided_along_the_first_axis_that_can_be():
    assert distribution.axes_of_state((30522, 768), 4) == (None, "batch")
    assert distribution.axes_of_state((768, 3072), 4) == ("batch", None)
    assert distribution.axes_of_state((5, 7), 4) == (None, None)
    assert distribution.axes_of_state((768,), 4) == (None,)


def test_layers_split_kernels_by_columns_then_by_rows_and_vocabularies_by_words():
    config = BertConfig(vocabulary_size=30, hidden_size=12, num_layers=2, num_heads=3, max_length=8)
    model = Pretrainer(BertEncoder(config, name="encoder"))
    found = {}
    for weight in model.weights:
        axes = distribution.axes_of_weight(weight, 2)
        assert len(axes) == len(weight.shape)
        if any(axes):
            found[re.sub(r"block_\d", "block", weight.path)] = axes
    columns, rows = {"kernel": (None, "model"), "bias": ("model",)}, {"kernel": ("model", None)}
    layers = {
        "attention/query_key_value": columns, "attention/output": rows, "intermediate": columns, "output": rows
    }  # fmt: skip
    expected = {f"block/{layer}/{name}": axes for layer, of_layer in layers.items() for name, axes in of_layer.items()}
    words = {"token_embedding/embeddings": ("model", None), "masked_lm_head/output_bias": ("model",)}
    assert found == {**expected, **words}
    # 30 words cannot be split by 4.
    assert distribution.axes_of_weight(model.encoder.token_embedding.embeddings, 4) == (None, None)


@pytest.mark.full
@only_distributed
def test_negatives_of_a_batch_come_from_all_devices(tmp_path):
    options = {"tensorflow": {"distribution": "mirrored", "devices": 2}}
    options["jax"] = {"distribution": "data_parallel", "devices": 4}
    found, alone = train([options[BACKEND], {}], tmp_path / "found.json", program=EMBEDDING)
    assert found["replicas"] == options[BACKEND]["devices"]
    for loss in ("ranking", "cosent"):
        assert alone[loss]["losses"][-1] < 0.9 * alone[loss]["losses"][0]
        for name, value in alone[loss].items():
            np.testing.assert_allclose(found[loss][name], value, atol=1e-4, err_msg=f"{loss} {name}")


# Each process may hold one copy of the model on its two devices; between the processes gradients are summed.
OF_PROCESSES = {
    "tensorflow": [{"distribution": "multi_worker"}],
    "jax": [{"distribution": "data_parallel"}, {"distribution": "model_parallel", "model_devices": 2}],
}


@pytest.mark.full
@only_distributed
@pytest.mark.parametrize("options", OF_PROCESSES.get(BACKEND, []), ids=str)
def test_two_processes_learn_what_one_learns(options, tmp_path, monkeypatch):
    (alone,) = train([{}], tmp_path / "alone.json")
    if "model_devices" in options:
        monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "2")
        monkeypatch.setenv("JAX_CPU_ENABLE_ASYNC_DISPATCH", "false")
        monkeypatch.setenv("NPROC", "8")  # threads: a sum over devices blocks one of each
    (found,) = train([options], tmp_path / "found.json", processes=2)
    assert_same(found, alone, 2)


COMPILED = """
import keras
import numpy as np
from keras_bert_impl import distribution

with distribution.distributed(distribution.Distribution(distribution="mirrored", devices=2)):
    assert not distribution.can_compile()
    try:
        distribution.check_can_compile()
    except ValueError as error:
        print(error)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])
    model.compile("adam", "mse", jit_compile=True)
    model.fit(np.ones((8, 5)), np.ones((8, 1)), verbose=0)
"""


@on("tensorflow")  # JAX's meshes are compiled
@pytest.mark.full
def test_compiled_steps_of_replicas_are_refused_as_long_as_keras_cannot_run_them():
    """When Keras can, `can_compile` has to allow it."""
    done = subprocess.run([sys.executable, "-c", COMPILED], env=next(environments(1)), capture_output=True, text=True)
    assert "cannot compile steps for 2 replicas" in done.stdout
    assert done.returncode and "Trying to access resource" in done.stderr, "Keras compiles the steps of replicas now."


MISFITS = {
    "tensorflow": [
        ("data_parallel", "needs KERAS_BACKEND=jax"),
        ("mirrored", "found no GPU"),
        ("multi_worker", "needs the environment variable TF_CONFIG"),
    ],
    "jax": [("mirrored", "needs KERAS_BACKEND=tensorflow"), ("model_parallel", "--model_devices 1")],
    "torch": [("data_parallel", "needs KERAS_BACKEND=jax")],
}


def enter(kind="single"):
    distribution.distributed(distribution.Distribution(distribution=kind)).__enter__()


@every_backend
@pytest.mark.parametrize(("kind", "message"), MISFITS[BACKEND])
def test_a_kind_that_does_not_fit_says_what_would(kind, message, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match=message):
        enter(kind)


def tf_config(kind=None, index=0, **cluster):
    """TF_CONFIG of the process `kind` `index` in a cluster of so many processes of each kind."""
    addresses = {name: [f"{name}{number}:1" for number in range(count)] for name, count in cluster.items()}
    return json.dumps({"cluster": addresses, "task": {"type": kind, "index": index} if kind else {}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KERAS_DISTRIBUTION_NUM_PROCESSES", "2"),
        ("WORLD_SIZE", "2"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("TF_CONFIG", tf_config(worker=2)),
        ("TF_CONFIG", tf_config("worker", chief=1, worker=1)),
        ("TF_CONFIG", tf_config("evaluator", worker=1, evaluator=1)),
    ],
)
@pytest.mark.parametrize("kind", ["single", "data_parallel"])
def test_processes_that_would_each_train_alone_are_refused(name, value, kind, monkeypatch):
    if name not in ("TF_CONFIG", "WORLD_SIZE") and kind == "data_parallel":
        pytest.skip("JAX joins these processes")
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} names 2 processes, each of which would train alone"):
        enter(kind)


@on("torch")  # torch counts its GPUs without one
def test_several_gpus_of_which_one_is_used_are_mentioned(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.warns(UserWarning, match="4 accelerators are visible, but only one is used"):
        enter()


@pytest.mark.parametrize("value", ["", " ", "{}", '{"cluster": {}}', tf_config("chief", chief=1)])
def test_an_environment_that_names_no_other_process_changes_nothing(value, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", value)
    monkeypatch.setenv("KERAS_DISTRIBUTION_NUM_PROCESSES", "")
    with distribution.distributed(distribution.Distribution()):
        assert (distribution.num_replicas(), distribution.num_processes(), distribution.is_chief()) == (1, 1, True)
        assert distribution.sum_over_replicas(3) == 3 and distribution.replica_number() == 0


@on("tensorflow")  # TF_CONFIG is TensorFlow's
@pytest.mark.parametrize(
    ("cluster", "places"),
    [
        ({"chief": 1, "worker": 2}, {("chief", 0): 0, ("worker", 0): 1, ("worker", 1): 2}),
        ({"worker": 3}, {("worker", 0): 0, ("worker", 1): 1, ("worker", 2): 2}),
        ({"chief": 1, "worker": 1, "ps": 1, "evaluator": 1}, {("chief", 0): 0, ("worker", 0): 1}),
        ({"chief": 1}, {("chief", 0): 0}),
    ],
)
def test_processes_are_numbered_as_tensorflow_numbers_them(cluster, places, monkeypatch):
    import tensorflow as tf
    from tensorflow.python.distribute import multi_worker_util

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    for (kind, index), number in places.items():
        monkeypatch.setenv("TF_CONFIG", tf_config(kind, index, **cluster))
        assert _place_in_cluster(resolver) == (number, len(places))
        assert number == multi_worker_util.id_in_cluster(resolver.cluster_spec(), kind, index)


@on("tensorflow")  # TF_CONFIG is TensorFlow's
def test_a_process_that_does_not_train_is_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", tf_config("evaluator", chief=1, worker=1, evaluator=1))
    with pytest.raises(ValueError, match="names this process 'evaluator'"):
        enter("multi_worker")
