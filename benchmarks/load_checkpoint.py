"""Seconds and peak memory to load a base-size checkpoint, ours against transformers.

    KERAS_BACKEND=jax python benchmarks/load_checkpoint.py [--repeats 5]

Writes a random BERT-base once. Each measurement loads it in a process of its own, ours and transformers in turn, and
encodes one row, since transformers maps the file and reads a weight only when it is first used. Memory is the peak of
the process after that row, less what it held after the imports and a first tiny model, as a multiple of the weights'
size.
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
import numpy as np
{imports}
ids = np.arange(8, dtype="int32")[None]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
{load}
loaded = time.perf_counter() - start
{encode}
encoded = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{"loaded": loaded, "encoded": encoded, "kilobytes": peak - before}}))
"""
CASES = {
    "keras_bert_impl": {
        "imports": "import keras_bert_impl as kbi\n"
        "kbi.BertEncoder(kbi.BertConfig.from_name('bert_tiny', vocabulary_size=99))",
        "load": "model = kbi.BertEncoder.from_pretrained(sys.argv[1])",
        "encode": "model(dict(token_ids=ids, segment_ids=0 * ids, padding_mask=0 * ids + 1))",
    },
    "transformers": {
        "imports": "import torch; from transformers import BertConfig, BertModel; "
        "BertModel(BertConfig(vocab_size=99, hidden_size=128, num_hidden_layers=2, num_attention_heads=2))",
        "load": "model = BertModel.from_pretrained(sys.argv[1])",
        "encode": "model(torch.from_numpy(ids).long())",
    },
}


def measure(name, directory):
    """Loads in a new process; returns seconds to load, seconds to the first output, kilobytes."""
    code = MEASURE.format(**CASES[name])
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
    print("| | seconds to load | to load and encode a row | peak memory / weights |\n| --- | --- | --- | --- |")
    for name, runs in found.items():
        loaded, encoded, memory = (statistics.median(run[key] for run in runs) for key in runs[0])
        print(f"| {name} | {loaded:.2f} | {encoded:.2f} | {memory / size:.2f} |")


if __name__ == "__main__":
    main()
