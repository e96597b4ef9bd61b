"""Rows of the default corpus read, shuffled, parsed and masked per second: by tf.data, and without TensorFlow.

    python benchmarks/input_pipeline.py
    taskset --cpu-list 0 python benchmarks/input_pipeline.py

Both read the same files in turn, and the batches are compared byte for byte before. The figure "for one of 64
processes" counts the rows of whole batches, of which the process parses and masks only a 64th: it is the limit that
reading and shuffling set. A host with accelerators needs its rows per step divided by the seconds per step;
tpu/README.md compares the two.
"""

import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import itertools
import statistics
import time

import numpy as np

from prepared import prepared

BATCH, ROUNDS = 256, 5
STEPS = {1: 256, 64: 1024}  # by the number of processes: more than a reader reads ahead in the other's turn


def readers():
    from keras_bert_impl.preprocessing.graphs.tf_data import read_training_data

    def batches(data, part):
        return data.opened("train", repeat=True, part=part)

    return {
        "tf.data": lambda data, part: read_training_data(batches(data, part)).as_numpy_iterator(),
        "NumPy": lambda data, part: iter(batches(data, part)),
    }


def check_equal(data, steps=50):
    """Raises AssertionError if the readers give different batches."""
    found = [itertools.islice(reader(data, (0, 1)), steps) for reader in readers().values()]
    for batches in zip(*found, strict=True):
        for one, other in zip(*batches, strict=True):
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])


def rows_a_second(data, parts):
    """Medians of the rounds, in which the readers take turns, by reader."""
    batches = {name: reader(data, (0, parts)) for name, reader in readers().items()}
    seconds = {name: [] for name in batches}
    for _ in range(ROUNDS):
        for name, each in batches.items():
            read(each, STEPS[parts])  # what was read ahead does not count
            start = time.perf_counter()
            read(each, STEPS[parts])
            seconds[name].append(time.perf_counter() - start)
    return {name: STEPS[parts] * BATCH / statistics.median(taken) for name, taken in seconds.items()}


def read(batches, count):
    for _ in range(count):
        next(batches)


def main():
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as directory:
        for length in (128, 512):
            for packed in (False, True):
                data = prepared(pathlib.Path(directory) / f"{length}_{packed}", length, packed, BATCH)
                check_equal(data)
                what = f"rows of {length}, {'packed' if packed else 'a pair a row'}, on {cores} core{'s' * (cores > 1)}"
                for parts in STEPS:
                    found = rows_a_second(data, parts)
                    figures = ", ".join(f"{name} {rows:,.0f}" for name, rows in found.items())
                    ratio = found["NumPy"] / found["tf.data"]
                    print(f"{what}, one of {parts} processes: {figures} per second, ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
