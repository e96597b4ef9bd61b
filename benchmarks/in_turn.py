"""Measures our code and its peers in turn.

In every round each setting runs once, in a process of its own, so that a busy minute of the machine does not slow down
one side only. A benchmark defines a `Case` and calls `main(CASE, __file__)`. It prints each figure when it is measured
and writes, under `--output`, NAME.json, NAME.md (a table with ratios, and shares of the machine's matrix-product
ceiling) and NAME.png.
"""

import argparse
import collections.abc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import typing

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


class Setting(typing.NamedTuple):
    """What is measured: whose code, and how it runs."""

    side: str  # OURS or a peer's name
    backend: str = "tensorflow"
    precision: str = "float32"
    compiled: bool = False
    variant: str = ""

    def __str__(self):
        words = [self.backend, self.precision.removeprefix("mixed_"), "compiled" if self.compiled else "", self.variant]
        return f"{self.side}: {' '.join(word for word in words if word)}"


class Target(typing.NamedTuple):
    """How many times as fast as the peer's best setting our best setting should be."""

    peer: str
    at_least: float
    where: dict | None = None  # fields of the peer's setting, such as {"backend": "jax"}; None: any setting
    ours: dict | None = None  # the same for our setting


class Case(typing.NamedTuple):
    """What a benchmark measures. `measure(setting)` returns units per second; more is better."""

    title: str
    unit: str
    settings: list
    targets: list
    measure: collections.abc.Callable
    flops_per_unit: collections.abc.Callable | None = None  # function of a setting


OURS = "keras_bert_impl"


def median_seconds(run, warm, repeats):
    """The median time of `repeats` calls, after `warm` calls that compile and fill caches."""
    seconds = []
    for _ in range(warm + repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[warm:])


def main(case, script):
    """The command line of a benchmark."""
    from conditions import Conditions  # not needed by those who take our settings or steps from here

    parser = argparse.ArgumentParser(description=case.title)
    parser.add_argument("--output", default="runs/benchmarks", help="directory for the results")
    parser.add_argument("--rounds", type=int, default=3, help="how often each setting is measured; the median counts")
    parser.add_argument("--only", default="", help="only settings whose names hold these words; | between alternatives")
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.setting:
        print(json.dumps(case.measure(Setting(*json.loads(arguments.setting)))))
        return
    choices = [choice.split() for choice in arguments.only.split("|")]
    settings = [s for s in case.settings if any(all(word in str(s) for word in choice) for choice in choices)]
    rates, errors = {setting: [] for setting in settings}, {}
    conditions = Conditions()
    for number in range(arguments.rounds):
        for setting in settings:
            if setting in errors:
                continue
            try:
                rates[setting].append(measure_apart(script, setting))
                what = f"{rates[setting][-1]:,.1f} {case.unit}/s"
            except RuntimeError as error:
                errors[setting] = what = str(error)
            print(f"round {number + 1}: {setting}: {what}", flush=True)
    output, name = pathlib.Path(arguments.output), pathlib.Path(script).stem
    output.mkdir(parents=True, exist_ok=True)
    medians = {setting: statistics.median(found) for setting, found in rates.items() if found}
    lines = table(case, medians, errors, ceilings() if case.flops_per_unit else {})
    (output / f"{name}.md").write_text("\n".join(lines) + "\n")
    content = {"title": case.title, "unit": case.unit, "ratios": ratios(case, medians)}
    content["conditions"] = conditions.found(arguments.rounds)
    content["rates"] = {str(setting): found for setting, found in rates.items()}
    (output / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    plot(case, medians, output / f"{name}.png")
    print("\n".join(lines))


def measure_apart(script, setting):
    """`measure` in a process of its own. Raises RuntimeError with the last line of its stderr if it fails."""
    environment = {**os.environ, "KERAS_BACKEND": setting.backend}
    command = [sys.executable, script, "--setting", json.dumps(setting)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["failed"])[-1][:160])
    return json.loads(done.stdout.splitlines()[-1])


def ceilings():
    """FLOP/s of the machine's fastest matrix product, by type, over the installed backends."""
    code = (
        "from keras_bert_impl.callbacks.flops import matrix_product_ceiling as c; import json;"
        "print(json.dumps({d: c(d) for d in ('float32', 'bfloat16')}))"
    )
    found = []
    for backend in ("tensorflow", "jax", "torch"):
        environment = {**os.environ, "KERAS_BACKEND": backend}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return {dtype: max(one[dtype] for one in found) for dtype in ("float32", "bfloat16")}


def table(case, medians, errors, top):
    """Lines of Markdown: the settings, fastest first, then those that failed, then the ratios."""
    lines = [f"{case.title}", ""]
    if top:
        products = ", ".join(f"{flops / 1e9:,.0f} GFLOP/s in {dtype}" for dtype, flops in top.items())
        lines += [f"The machine's matrix products: {products}.", ""]
    columns = ["setting", f"{case.unit}/s", *(["share of the ceiling of its type"] if top else [])]
    rows = [columns]
    for setting in sorted(medians, key=medians.get, reverse=True):
        cells = [str(setting), f"{medians[setting]:,.1f}"]
        if top:
            dtype = "bfloat16" if "bfloat16" in setting.precision else "float32"
            cells.append(f"{medians[setting] * case.flops_per_unit(setting) / top[dtype]:.0%}")
        rows.append(cells)
    rows += [[str(setting), error, *([""] if top else [])] for setting, error in errors.items()]
    lines += [*markdown(rows), ""]
    for ratio in ratios(case, medians):
        lines.append(f"- {ratio['ratio']:.2f} times {ratio['against']} (target {ratio['at_least']:g}): {ratio['ours']}")
    return lines


def markdown(rows):
    """Lines of a table; the first row is its head."""
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return [head, f"|{' --- |' * len(rows[0])}", *body]


def ratios(case, medians):
    """Our best setting compared with the peer's best, for each target whose settings were measured."""

    def best(side, values):
        found = [s for s in medians if s.side == side and all(getattr(s, n) == v for n, v in (values or {}).items())]
        return max(found, key=medians.get, default=None)

    found = []
    for target in case.targets:
        here, there = best(OURS, target.ours), best(target.peer, target.where)
        if here and there:
            ratio = medians[here] / medians[there]
            found.append({"ours": str(here), "against": str(there), "ratio": ratio, "at_least": target.at_least})
    return found


def plot(case, medians, path):
    """Draws a bar for each setting, ours in blue; does nothing if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ranked = sorted(medians, key=medians.get)
    sides = sorted({setting.side for setting in ranked} - {OURS})
    colors = {OURS: "tab:blue", **dict(zip(sides, ("tab:orange", "tab:gray", "tab:green"), strict=False))}
    figure, axis = plt.subplots(figsize=(9, 0.35 * len(ranked) + 1.2), layout="constrained")
    bars = axis.barh([str(s) for s in ranked], [medians[s] for s in ranked], color=[colors[s.side] for s in ranked])
    axis.bar_label(bars, fmt="{:,.1f}", padding=3)
    axis.margins(x=0.12)
    axis.set(xlabel=f"{case.unit} per second")
    figure.suptitle(case.title, fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
