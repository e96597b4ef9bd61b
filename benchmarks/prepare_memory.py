"""Peak memory and speed of training/prepare_data.py for corpora of several sizes.

    python benchmarks/prepare_memory.py --text DIR --vocab vocab.txt --output DIR [--megabytes 60 250 1000]

A corpus consists of links to the files of `--text`, repeated until it has the size asked for. Memory is the sum of the
proportional set sizes (PSS) of all processes, sampled ten times a second. Writes memory.png and memory.json.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time

import matplotlib
import psutil

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SCRIPT = pathlib.Path(__file__).parent.parent / "training" / "prepare_data.py"


def make_corpus(text, directory, megabytes):
    """Links the files of `text` into folders 0, 1, ... until these hold `megabytes`; returns their size in MB."""
    files = sorted(path for path in pathlib.Path(text).rglob("*") if path.is_file())
    size, copy = 0, 0
    while size < megabytes * 1e6:
        (directory / str(copy)).mkdir(parents=True)
        for file in files:
            if size >= megabytes * 1e6:
                break
            (directory / str(copy) / file.name).symlink_to(file.resolve())
            size += file.stat().st_size
        copy += 1
    return size / 1e6


def tree_bytes(process):
    """Memory of a process and its descendants; shared pages count once."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def measure(arguments, megabytes):
    """Megabytes, seconds and peak bytes of one preparation."""
    home = pathlib.Path(arguments.output) / f"{megabytes}"
    shutil.rmtree(home, ignore_errors=True)
    size = make_corpus(arguments.text, home / "text", megabytes)
    command = [sys.executable, str(SCRIPT), "--input", str(home / "text"), "--vocab", arguments.vocab]
    command += ["--output", str(home / "data"), *arguments.options]
    start, peak = time.perf_counter(), 0
    process = psutil.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, tree_bytes(process))
        time.sleep(0.1)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    shutil.rmtree(home)
    found = {"megabytes": size, "seconds": seconds, "peak_megabytes": peak / 1e6}
    print(
        f"{size:8.0f} MB of text: {seconds:6.1f} s, {size / seconds:5.1f} MB/s, peak {peak / 1e6:6.0f} MB", flush=True
    )
    return found


def plot(results, path):
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    sizes = [result["megabytes"] for result in results]
    axes.plot(sizes, [result["peak_megabytes"] for result in results], "o-", label="prepare_data.py")
    axes.plot(sizes, sizes, ":", color="grey", label="the text itself")
    axes.set(xlabel="corpus, MB", ylabel="peak memory, MB", title="Memory of data preparation", ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[60, 250, 500, 1000])
    parser.add_argument("--options", nargs="*", default=[], help="further options of prepare_data.py, without --")
    arguments = parser.parse_args()
    arguments.options = [f"--{option}" for option in arguments.options]
    results = [measure(arguments, megabytes) for megabytes in arguments.megabytes]
    output = pathlib.Path(arguments.output)
    (output / "memory.json").write_text(json.dumps(results, indent=2) + "\n")
    plot(results, output / "memory.png")


if __name__ == "__main__":
    main()
