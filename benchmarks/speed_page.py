"""Measures our speed and that of other libraries, and writes the tables of the record, docs/speed.md and README.md.

    python benchmarks/speed_page.py --measure               every benchmark without a result of the code as it is
    python benchmarks/speed_page.py --measure tokenizing    this one, whether it has one or not
    python benchmarks/speed_page.py                         only the pages and the picture, from the results there are

A result is benchmarks/results/NAME.json. benchmarks/results/speed.md has all tables with their conditions, the
two pages only the ratios of quiet machines. A result names the commit whose code was measured, so code with changes
that no commit holds is refused. After each benchmark the pages are written again: an interrupted run loses one
benchmark, and the next run goes on with it.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

import matplotlib

from conditions import changed_since, commit_of_code
from in_turn import markdown

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BENCHMARKS = (
    "first_seconds",
    "tokenizing",
    "sentence_vectors",
    "exported_formats",
    "pretraining_step",
    "real_tokens",
    "examples_from_text",
    "deberta_step",
    "modernbert_step",
)
HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
README = HERE.parent / "README.md"
RECORD = RESULTS / "speed.md"
# From a share of the cores that other programs took, the page calls the machine busy.
BUSY = 0.1
TABLE = re.compile(r"<!-- table: ([\w ]+) -->\n.*?<!-- end -->", re.DOTALL)


def results(directory=RESULTS):
    """{name: content} of every result. Raises ValueError for one that is of no commit."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))}
    for name, result in found.items():
        if not re.fullmatch("[0-9a-f]{40}", result["conditions"]["commit"] or ""):
            raise ValueError(f"{name}.json names no commit: measure it again when all code is committed.")
    return found


def filled(text, found):
    """The record with every table written anew from the results."""
    names = TABLE.findall(text)
    if sorted(names) != sorted(BENCHMARKS):
        raise ValueError(f"The record has tables of {sorted(names)}, expected each of {sorted(BENCHMARKS)} once.")

    def written(match):
        name = match[1]
        lines = lines_of(name, found[name]) if name in found else [f"`make bench` has not measured {name} yet."]
        return "\n".join([f"<!-- table: {name} -->", *lines, "<!-- end -->"])

    return TABLE.sub(written, text)


def readme(text, found):
    """README with its table: of each benchmark the first comparison with another library, and each that we lose."""
    chosen = [
        (result, ratio)
        for result in quiet(found).values()
        for number, ratio in enumerate(with_others(result["ratios"]))
        if number == 0 or ratio["ratio"] < 1
    ]
    rows = []
    for result, ratio in chosen:
        what, ours, *others = row_of_readme(result, ratio)
        rows.append([what, f"{ours} ({ratio['ours'].partition(': ')[2].split()[0]})", *others])
    return with_table(text, "first ratios", ["", "ours", "peer"], rows)


def page(text, found):
    """docs/speed.md with its table: every comparison with another library."""
    rows = []
    for result in quiet(found).values():
        for number, ratio in enumerate(with_others(result["ratios"])):
            what, ours, theirs, times = row_of_readme(result, ratio)
            settings = [ratio[side].partition(": ")[2] for side in ("ours", "against")]
            rows.append(["" if number else what, settings[0], ours, f"{theirs} ({settings[1]})", times])
    return with_table(text, "all ratios", ["", "setting", "ours", "peer"], rows)


def with_table(text, name, columns, rows):
    """The text with its only table written anew."""
    lines = markdown([[*columns, "times as fast"], *rows])
    filled, count = TABLE.subn("\n".join([f"<!-- table: {name} -->", *lines, "<!-- end -->"]), text)
    if count != 1:
        raise ValueError(f"The page has {count} tables of speed, expected one.")
    return filled


def with_others(ratios):
    """Those that do not compare us with ourselves."""
    return [ratio for ratio in each_once(ratios) if not ratio["against"].startswith(("keras_bert_impl", "our "))]


def row_of_readme(result, ratio):
    """What, our figure, whose figure beside it, and the ratio."""
    peer = ratio["against"].partition(":")[0]
    if "seconds" in result:
        sides = ([list(one.values())[-1] for one in result["seconds"][ratio[side]]] for side in ("ours", "against"))
        ours, theirs = (f"{statistics.median(seconds):.1f} s" for seconds in sides)
    else:
        ours, theirs = (figure(statistics.median(result["rates"][ratio[side]])) for side in ("ours", "against"))
        ours += f" {result['unit']}/s"
    rounds = " (one round)" if result["conditions"]["rounds"] == 1 else ""
    return [result["title"] + rounds, ours, f"{peer} {theirs}", f"{ratio['ratio']:.2f}"]


def quiet(found):
    """Those of the results that were measured on a quiet machine."""
    return {name: found[name] for name in BENCHMARKS if name in found and is_quiet(found[name]["conditions"])}


def lines_of(name, result):
    rows = rows_of_seconds(result) if "seconds" in result else rows_of_rates(result)
    return [circumstances(name, result["conditions"]), "", *markdown(rows)]


def circumstances(name, conditions):
    """Where and when, in a paragraph."""
    machine, others = conditions["machine"], conditions["others_took"]
    state = "a quiet machine" if is_quiet(conditions) else "**a busy machine, whose ratios say little**"
    rounds = "one round" if conditions["rounds"] == 1 else f"medians of {conditions['rounds']} rounds"
    versions = ", ".join(f"{library} {version}" for library, version in conditions["versions"].items())
    return (
        f"`benchmarks/{name}.py`, {conditions['date']}, commit {conditions['commit'][:10]}, {rounds} on {state}, "
        f"{machine['cores']} cores of {machine['processor']}, of which other programs took {others:.0%}; {versions}."
    )


def is_quiet(conditions):
    return conditions["others_took"] < BUSY


def rows_of_rates(result):
    unit = f"{result['unit']}/s"
    rows = [["ours", unit, "beside", unit, "times as fast", "in single rounds"]]
    for ratio in each_once(result["ratios"]):
        ours, theirs = (result["rates"][ratio[side]] for side in ("ours", "against"))
        rounds = [one / other for one, other in zip(ours, theirs, strict=True)]
        rows.append(
            [
                ratio["ours"].partition(": ")[2] or "the only setting",
                figure(statistics.median(ours)),
                ratio["against"].removesuffix(": "),
                figure(statistics.median(theirs)),
                f"{ratio['ratio']:.2f}",
                f"{min(rounds):.2f} to {max(rounds):.2f}",
            ]
        )
    return rows


def rows_of_seconds(result):
    """Seconds to the end of each step; the ratios are those of the last step."""
    ratios = {ratio["against"]: ratio for ratio in result["ratios"]}
    steps = list(next(iter(result["seconds"].values()))[0])
    rows = [["seconds to the end of", *steps, "ours is as many times as soon", "in single rounds"]]
    for setting, rounds in result["seconds"].items():
        cells = [f"{statistics.median(one[step] for one in rounds):.1f}" for step in steps]
        compared = ["", ""]
        if setting in ratios:
            ours = result["seconds"][ratios[setting]["ours"]]
            single = [one[steps[-1]] / other[steps[-1]] for one, other in zip(rounds, ours, strict=True)]
            compared = [f"{ratios[setting]['ratio']:.2f}", f"{min(single):.2f} to {max(single):.2f}"]
        rows.append([setting.replace("keras_bert_impl", "ours"), *cells, *compared])
    return rows


def each_once(ratios):
    """Without repetitions: the best setting of one backend may be the best of all."""
    return list({(ratio["ours"], ratio["against"]): ratio for ratio in ratios}.values())


def figure(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw(found, path):
    """A bar for every comparison with another library, to the right of 1 where we are faster."""
    bars = [(f"{found[name]['title']}\nagainst {ratio['against'].removesuffix(': ')}", ratio["ratio"])
            for name in found for ratio in with_others(found[name]["ratios"])][::-1]  # fmt: skip
    names, ratios = zip(*bars, strict=True)
    figure, axis = plt.subplots(figsize=(9, 0.6 * len(names) + 1), layout="constrained")
    colors = ["tab:blue" if ratio >= 1 else "tab:red" for ratio in ratios]
    bars = axis.barh(names, [ratio - 1 for ratio in ratios], left=1, color=colors)
    axis.bar_label(bars, [f"{ratio:.2f}" for ratio in ratios], padding=3)
    axis.axvline(1, color="black", linewidth=1)
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.tick_params(axis="y", labelsize="small")
    axis.set(xlabel="times as fast as the peer's best setting (1: as fast)")
    axis.margins(x=0.2, y=0.01)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


# What writes the tables of each page.
PAGES = {RECORD: filled, DOCS / "speed.md": page, README: readme}


def write_pages():
    found = results()
    for path, written in PAGES.items():
        path.write_text(written(path.read_text(encoding="utf-8"), found), encoding="utf-8")
    if quiet(found):
        draw(quiet(found), DOCS / "speed.png")


def is_measured(name):
    """Whether there is a result of the code as it is."""
    path = RESULTS / f"{name}.json"
    return path.exists() and not changed_since(json.loads(path.read_text())["conditions"]["commit"])


def measure(name, rounds, output):
    """Runs a benchmark and keeps its result, if `check` finds nothing against it."""
    # `make bench` makes the environment that exports for sentence-transformers need.
    python = HERE.parent / ".venv/exports/bin/python" if name == "exported_formats" else sys.executable
    options = ["--output", output, *(["--rounds", str(rounds)] if rounds else [])]
    subprocess.run([python, HERE / f"{name}.py", *options], check=True)
    content = (pathlib.Path(output) / f"{name}.json").read_text()
    check(name, json.loads(content))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(content)


def check(name, result):
    """Raises SystemExit if a result is not to be kept: it is of no commit, or a side failed in some round."""
    if result["conditions"]["commit"] is None:
        raise SystemExit(f"{name}: the code was changed while it was measured; the result is not kept.")
    rounds = result["conditions"]["rounds"]
    found = result.get("rates") or result["seconds"]
    for side in {ratio[side] for ratio in result["ratios"] for side in ("ours", "against")}:
        if len(found[side]) != rounds:
            raise SystemExit(f"{name}: {side} gave {len(found[side])} of {rounds} figures; the result is not kept.")
    if not result["ratios"]:
        raise SystemExit(f"{name}: no other library could be measured; the result is not kept.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs="*", choices=BENCHMARKS, metavar="NAME", help="all if none is named")
    parser.add_argument("--rounds", type=int, help="of each benchmark; default: its own")
    parser.add_argument("--output", default="runs/benchmarks", help="directory for what a benchmark writes besides")
    arguments = parser.parse_args()
    if arguments.measure is None:
        write_pages()
        return
    if commit_of_code() is None:
        raise SystemExit("keras_bert_impl/ or benchmarks/ holds changes without a commit: commit them, then measure.")
    try:
        for name in arguments.measure or [name for name in BENCHMARKS if not is_measured(name)]:
            print(f"== {name}", flush=True)
            measure(name, arguments.rounds, arguments.output)
            write_pages()
    except KeyboardInterrupt:
        raise SystemExit("interrupted") from None
    finally:
        left = [name for name in BENCHMARKS if not is_measured(name)]
        print(f"not measured with this code: {', '.join(left) or 'none'}", flush=True)


if __name__ == "__main__":
    main()
