"""The scripts of docs/devices.md run as they stand there, on two devices of a CPU."""

import concurrent.futures
import os
import subprocess
import sys

import pytest
from documentation import indented_blocks, python_blocks
from made_runs import write_checkpoint
from test_distribution import free_ports
from tiers import on

PAGE = "docs/devices.md"
# Two devices of the CPU stand in for GPUs, and a strategy over them for that of a TPU.
TWO_DEVICES = """
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
class Mirrored(tf.distribute.MirroredStrategy):
    def __init__(self, resolver=None):
        super().__init__(["CPU:0", "CPU:1"])
tf.distribute.cluster_resolver.TPUClusterResolver = lambda tpu: tpu
tf.config.experimental_connect_to_cluster = tf.tpu.experimental.initialize_tpu_system = lambda resolver: None
"""


@pytest.fixture
def folder(tmp_path):
    write_checkpoint(tmp_path / "bert-base-uncased")
    return tmp_path


def run(code, folder, backend):
    environment = {**os.environ, "KERAS_BACKEND": backend, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.full
@on("tensorflow")
@pytest.mark.parametrize(
    ("script", "strategy", "trained"),
    [(0, "MirroredStrategy(", "classifier"), (1, "TPUStrategy(", "embedder")],
    ids=["gpus", "tpu"],
)
def test_a_script_with_a_strategy_runs(script, strategy, trained, folder):
    imports, code = python_blocks(PAGE)[0].split("\n\n")[0] + "\n", python_blocks(PAGE)[script]
    assert code.count(f"tf.distribute.{strategy}") == 1
    code = code.replace(f"tf.distribute.{strategy}", "Mirrored(")
    end = f"assert strategy.num_replicas_in_sync == 2 and {trained}.optimizer.iterations.numpy() > 0\n"
    printed = run(TWO_DEVICES + imports + code + end, folder, "tensorflow")
    assert script or ("'accuracy': " in printed and "[Label(label=" in printed)


MODEL = """
import keras_bert_impl as kbi
from keras_bert_impl import distribution
model = kbi.TextClassifier.from_pretrained('bert-base-uncased', num_classes=2)
model.fit(['the cat sat', 'a dog ran on a mat'] * 4, [0, 1] * 4, batch_size=4)
print(distribution.num_replicas(), 'replicas')
"""


def blocks_for_jax():
    return [block for block in indented_blocks(PAGE) if "DataParallel" in block]


@pytest.mark.full
@on("jax")
def test_the_lines_for_jax_divide_the_batch(folder):
    lines, _ = blocks_for_jax()
    assert "2 replicas" in run(f"{lines}\n{MODEL}", folder, "jax")


@pytest.mark.full
@on("jax")
def test_the_lines_for_several_jax_processes_join_them(folder):
    _, lines = blocks_for_jax()
    lines = lines.replace("host1:1234", f"localhost:{free_ports(1)[0]}")
    assert "process_id=0" in lines
    codes = [lines.replace("process_id=0", f"process_id={number}") + f"\n{MODEL}" for number in range(2)]
    with concurrent.futures.ThreadPoolExecutor() as threads:
        # Two devices in each of two processes.
        assert all("4 replicas" in printed for printed in threads.map(lambda code: run(code, folder, "jax"), codes))
