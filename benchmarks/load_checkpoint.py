"""Seconds and peak memory to load a base-size checkpoint, ours against transformers.

    KERAS_BACKEND=jax python benchmarks/load_checkpoint.py [--repeats 5]

Writes a random BERT-base once, then loads it in a process of its own for each measurement, in turn. Memory is what the
process holds at its peak beyond what it held after the imports, as a multiple of the weights' size.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

MEASURE = """
import json, resource, sys, time
{imports}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
{load}
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{"seconds": seconds, "kilobytes": peak - before}}))
"""
CASES = {
    "keras_bert_impl": ("import keras_bert_impl as kbi", "model = kbi.BertEncoder.from_pretrained(sys.argv[1])"),
    "transformers": (
        "import torch, transformers; from transformers import BertModel",
        "model = BertModel.from_pretrained(sys.argv[1])",
    ),
}


def measure(name, directory):
    """Loads in a new process; returns seconds and kilobytes."""
    imports, load = CASES[name]
    code = MEASURE.format(imports=imports, load=load)
    output = subprocess.run([sys.executable, "-c", code, directory], check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--repeats", type=int, default=5)
    repeats = arguments.parse_args().repeats
    with tempfile.TemporaryDirectory() as directory:
        write = "import sys, keras_bert_impl as kbi\n"
        write += "kbi.BertEncoder(kbi.BertConfig.from_name('bert_base')).save_pretrained(sys.argv[1])"
        subprocess.run([sys.executable, "-c", write, directory], check=True, capture_output=True)
        size = pathlib.Path(directory, "model.safetensors").stat().st_size / 1024
        found = {name: [] for name in CASES}
        for _ in range(repeats):
            for name in CASES:
                found[name].append(measure(name, directory))
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    print(f"BERT-base, {size / 1024:.0f} MiB, backend {backend}, medians of {repeats}")
    print("| | seconds | peak memory / weights |\n| --- | --- | --- |")
    for name, runs in found.items():
        seconds = statistics.median(run["seconds"] for run in runs)
        memory = statistics.median(run["kilobytes"] for run in runs) / size
        print(f"| {name} | {seconds:.2f} | {memory:.2f} |")


if __name__ == "__main__":
    main()
