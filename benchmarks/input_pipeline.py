"""Rows of the default corpus that the tf.data graph reads, shuffles, parses and masks per second on one core.

    taskset --cpu-list 0 python benchmarks/input_pipeline.py

The figure "for one of 64 processes" counts the rows of whole batches, of which the process parses and masks only a
64th: it is the limit that reading and shuffling set. A host with accelerators needs its rows per step divided by the
seconds per step; tpu/README.md compares the two.
"""

import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from in_turn import median_seconds
from prepared import prepared

BATCH, STEPS = 256, 60
PARTS = 64


def rows_a_second(data, part):
    batches = data.batches("train", repeat=True, part=part).as_numpy_iterator()
    for _ in range(20):  # fills the shuffle buffer
        next(batches)
    return STEPS * BATCH / median_seconds(lambda: [next(batches) for _ in range(STEPS)], warm=0, repeats=5)


def main():
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as directory:
        for length in (128, 512):
            for packed in (False, True):
                data = prepared(pathlib.Path(directory) / f"{length}_{packed}", length, packed, BATCH)
                alone, of_many = (rows_a_second(data, (0, parts)) for parts in (1, PARTS))
                what = f"rows of {length}, {'packed' if packed else 'a pair a row'}, on {cores} core{'s' * (cores > 1)}"
                print(f"{what}: {alone:,.0f} per second, {of_many:,.0f} for one of {PARTS} processes", flush=True)


if __name__ == "__main__":
    main()
