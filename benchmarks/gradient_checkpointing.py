"""Peak memory and time of a training step with and without gradient checkpointing, 12 layers of width 256.

    KERAS_BACKEND=torch python benchmarks/gradient_checkpointing.py

Each case runs in a process of its own. The memory that the process held before its first step, for weights and
libraries, is subtracted. (On JAX there is no difference on a CPU: XLA's CPU compiler computes nothing twice.)
"""

import json
import os
import resource
import subprocess
import sys

import pretraining_step
from in_turn import median_seconds

ROWS, LENGTH, PREDICTIONS, STEPS = 8, 512, 77, 3


def measure(checkpointing):
    """(MB that the steps take, seconds per step)."""
    from keras_bert_impl import BertConfig

    config = BertConfig(8192, hidden_size=256, num_layers=12, num_heads=4, intermediate_size=1024)
    compiled = os.environ.get("KERAS_BACKEND") == "jax"
    model = pretraining_step.our_model(config, "float32", compiled, rematerialize=checkpointing)
    inputs, labels = pretraining_step.batch(ROWS, LENGTH, PREDICTIONS, vocabulary=8192)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = median_seconds(lambda: model.train_on_batch(inputs, labels), warm=1, repeats=STEPS)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000, seconds


def main():
    if len(sys.argv) > 1:
        print(json.dumps(measure(json.loads(sys.argv[1]))))
        return
    for checkpointing in (False, True):
        command = [sys.executable, __file__, json.dumps(checkpointing)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        megabytes, seconds = json.loads(done.stdout.splitlines()[-1])
        what = "with" if checkpointing else "without"
        print(f"{what} gradient checkpointing: {megabytes:,.0f} MB, {seconds:.2f} s a step", flush=True)


if __name__ == "__main__":
    main()
