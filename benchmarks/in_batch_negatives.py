"""Memory and time of one training step with in-batch negatives, the whole batch at once and in mini-batches.

    KERAS_BACKEND=torch python benchmarks/in_batch_negatives.py --rows 4096 --mini_batch_size 64
    KERAS_BACKEND=torch python benchmarks/in_batch_negatives.py --rows 512
    KERAS_BACKEND=torch MALLOC_MMAP_THRESHOLD_=262144 python benchmarks/in_batch_negatives.py --rows 1024 ...

With torch on a CPU most of the memory of mini-batches is lost between small blocks of the C library; the last form
returns large blocks to the system.

Prints the seconds of a step, the median of `--steps` after one that is not counted, and by how much the largest memory
of the process exceeds that before. Pairs of texts of 24 to 32 tokens; small_english, or another checkpoint.
"""

import argparse
import os
import resource
import statistics
import time

import numpy as np

import keras_bert_impl as kbi
from keras_bert_impl.embedding_losses import MultipleNegativesRankingLoss

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default="small_english")
parser.add_argument("--rows", type=int, default=4096)
parser.add_argument("--mini_batch_size", type=int)
parser.add_argument("--steps", type=int, default=3)
options = parser.parse_args()

model = kbi.TextEmbedder.from_pretrained(options.model)
model.compile(
    optimizer=kbi.optimization.BertAdamW(1e-5),
    loss=MultipleNegativesRankingLoss(mini_batch_size=options.mini_batch_size),
    jit_compile=False,
)
random = np.random.default_rng(0)
ids = random.integers(1000, 7000, (options.rows, 2, 32)).astype("int32")
mask = (np.arange(32) < random.integers(24, 33, (options.rows, 2, 1))).astype("int32")
rows = {"token_ids": ids * mask, "segment_ids": 0 * ids, "padding_mask": mask}
numbers = np.arange(2 * options.rows, dtype="int32").reshape(-1, 2)
small = {name: array[:2] for name, array in rows.items()}
model.train_on_batch(small, numbers[:2])
before, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
for _ in range(options.steps + 1):
    start = time.perf_counter()
    loss = float(model.train_on_batch(rows, numbers))
    seconds.append(time.perf_counter() - start)
memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(
    f"{os.environ.get('KERAS_BACKEND')}, {options.rows:,} rows, mini_batch_size {options.mini_batch_size}: "
    f"{statistics.median(seconds[1:]):.1f} s a step, {memory:,.0f} MiB more than before, loss {loss:.4f}"
)
