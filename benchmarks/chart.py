"""The ratios of all benchmarks that have been run, as a table and a picture.

    python benchmarks/chart.py --output runs/benchmarks --picture docs/speed.png

Reads the JSON files that the benchmarks left in `--output`.
"""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def read(directory):
    """(title, ratio) of every comparison, in the order of the files' names."""
    for path in sorted(pathlib.Path(directory).glob("*.json")):
        content = json.loads(path.read_text())
        seen = set()
        for ratio in content["ratios"]:
            if (ratio["ours"], ratio["against"]) not in seen:  # the best of one backend may be the best of all
                yield content["title"], ratio
            seen.add((ratio["ours"], ratio["against"]))


def lines(found):
    table = ["| what | ours | against | times as fast | target |", "| --- | --- | --- | --- | --- |"]
    for title, ratio in found:
        ours = ratio["ours"].split(": ")[1]
        table.append(f"| {title} | {ours} | {ratio['against']} | {ratio['ratio']:.2f} | {ratio['at_least']:g} |")
    return table


def draw(found, path):
    names = [f"{title}\nagainst {ratio['against']}" for title, ratio in found][::-1]
    ratios = [ratio["ratio"] for _, ratio in found][::-1]
    figure, axis = plt.subplots(figsize=(9, 0.6 * len(names) + 1), layout="constrained")
    colors = ["tab:blue" if ratio >= 1 else "tab:red" for ratio in ratios]
    bars = axis.barh(names, ratios, color=colors)
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.axvline(1, color="black", linewidth=1)
    axis.tick_params(axis="y", labelsize="small")
    axis.set(xlabel="times as fast as the peer's best setting (1: as fast)")
    axis.margins(x=0.1)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="runs/benchmarks", help="directory that the benchmarks wrote to")
    parser.add_argument("--picture", default="runs/benchmarks/speed.png")
    arguments = parser.parse_args()
    found = list(read(arguments.output))
    print("\n".join(lines(found)))
    draw(found, arguments.picture)


if __name__ == "__main__":
    main()
