"""Where the time of a masked-LM training step goes: the shares of its operations, of `pretraining_step`'s model.

    python benchmarks/step_shares.py                    each backend in its best setting
    python benchmarks/step_shares.py --only tensorflow

A share is that of the time that threads spent in an operation, by the profiler of each backend; what two threads do at
once counts twice. TensorFlow's operations have the names of the layers that they belong to. JAX's are fusions of XLA,
of which only the products can be told from the rest. `jax.profiler` reads TensorFlow's profiles, too, so JAX has to be
installed.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pretraining_step
from conditions import Conditions
from in_turn import markdown

# The settings in which a step is fastest on two cores.
SETTINGS = {"tensorflow": ("mixed_bfloat16", False), "jax": ("float32", True), "torch": ("mixed_bfloat16", False)}
WARM, STEPS = 4, 6
PRODUCTS, FUSED = "products with weights and of attention", "the rest, fused"
# An operation belongs to the first part whose pattern its name holds. Each part has the names of all backends.
PARTS = {
    PRODUCTS: r"matmul|einsum|::(add|b)?mm\b|^dot|ynn_fusion|onednn",
    "optimizer and clipping": r"adam|optimizer|clip|vector_norm|foreach|l2loss|global_norm",
    "loss": r"crossentropy|log_softmax|nll|argmax|in_top_k",
    "attention but its products": r"softmax|attention",
    "dropout": r"dropout|random|selectv2|::where|::ge\b",
    "GELU": r"gelu|erf|/(intermediate|transform)_",
    "norms": r"norm|rsqrt",
    "words and positions": r"gather|scatter|embedding|index|segmentsum",
    "casts and copies": r"cast|copy|transpose|clone|::cat\b|concat|::fill_",
    "sums, biases and other products of elements": r"bias|add|sum|reduce|mul",
}
THREADS = ("tf_Compute", "tf_XLAEigen")


def part_of(name, backend):
    part = next((part for part, pattern in PARTS.items() if re.search(pattern, name, re.IGNORECASE)), "other")
    return FUSED if backend == "jax" and part != PRODUCTS else part


def seconds_by_name(backend):
    """{operation: seconds} of some steps of our model."""
    step = pretraining_step.our_step(*SETTINGS[backend])
    for _ in range(WARM):
        step()
    if backend == "torch":
        import torch

        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            for _ in range(STEPS):
                step()
        return {event.key: event.self_cpu_time_total / 1e6 for event in profile.key_averages()}
    from keras_bert_impl.distribution import hardware

    with tempfile.TemporaryDirectory() as folder:
        with hardware.traced(folder):
            for _ in range(STEPS):
                step()
        return seconds_in_trace(next(pathlib.Path(folder).rglob("*.xplane.pb")))


def seconds_in_trace(path):
    """{operation: seconds} of the threads that compute, without what only holds other events or waits."""
    from jax.profiler import ProfileData

    seconds = collections.Counter()
    for plane in ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            if line.name.startswith(THREADS):
                for event in line.events:
                    if "::" not in event.name and event.name != "ParallelFor":
                        seconds[event.name] += event.duration_ns / 1e9
    return dict(seconds)


def shares(seconds, backend):
    """{part: its share}."""
    total, found = sum(seconds.values()), collections.Counter()
    for name, value in seconds.items():
        found[part_of(name, backend)] += value / total
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=SETTINGS, nargs="*", default=list(SETTINGS), help="backends")
    parser.add_argument("--names", type=int, default=0, help="print so many operations of each backend, too")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(seconds_by_name(arguments.measure)))
        return
    conditions, found = Conditions(), {}
    for backend in arguments.only:
        # JAX_PLATFORMS: with libtpu installed, a profile of JAX would ask it, which ends the process.
        environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, __file__, "--measure", backend]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        seconds = json.loads(done.stdout.splitlines()[-1])
        found[backend] = shares(seconds, backend)
        for name in sorted(seconds, key=seconds.get, reverse=True)[: arguments.names]:
            print(f"{backend}: {seconds[name]:8.3f} s  {part_of(name, backend):44} {name[:110]}")
    print(json.dumps(conditions.found(1)))
    head = ["share of the threads' time", *(f"{name}, {SETTINGS[name][0]}" for name in found)]
    rows = [
        [part, *(f"{column[part]:.0%}" if part in column else "" for column in found.values())]
        for part in [*PARTS, "other", FUSED]
    ]
    print("\n".join(markdown([head, *rows])))


if __name__ == "__main__":
    main()
