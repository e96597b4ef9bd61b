"""Rows a second that the tf.data graph reads, shuffles, masks and batches, of the default corpus, for one core.

    taskset --cpu-list 0 python benchmarks/input_pipeline.py

What a host of accelerators needs is rows a step over seconds a step; tpu/README.md compares.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HOME = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME / "training"))

import pretrain
from pretraining_data import PretrainingData

BATCH, STEPS = 256, 60


def rows_a_second(directory, length, packed):
    command = [sys.executable, str(HOME / "training" / "prepare_data.py"), "--output", str(directory)]
    command += ["--sequence_length", str(length), *(["--packed"] if packed else [])]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    data = PretrainingData(pretrain.PretrainConfig(data=str(directory), output="", batch_size=BATCH))
    batches = data.batches("train", repeat=True).as_numpy_iterator()
    for _ in range(20):  # fills the shuffle buffer
        next(batches)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(STEPS):
            next(batches)
        seconds.append(time.perf_counter() - start)
    return STEPS * BATCH / statistics.median(seconds)


def main():
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as directory:
        for length in (128, 512):
            for packed in (False, True):
                path = pathlib.Path(directory) / f"{length}_{packed}"
                rows = rows_a_second(path, length, packed)
                what = "packed" if packed else "a pair a row"
                print(f"rows of {length}, {what}: {rows:,.0f} a second on {cores} core{'s' * (cores > 1)}", flush=True)


if __name__ == "__main__":
    main()
