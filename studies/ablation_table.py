"""The table and the picture of an ablation study."""

import statistics

from keras_bert_impl import plots
from keras_bert_impl.json_files import write_json


def write(study, series, rows, about, directory):
    """Writes table.json, table.md and table.png; returns the content of table.json.

    Args:
        study: content of the study's file.
        series: of each row the curve it belongs to, or None.
        rows: of each row {"name", "pretraining": figures, "tasks": {task: {"metric": name, "values": list}}, "paper"},
            as far as it is finished.
        about: text that says what all rows have in common.
        directory: where the files go.
    """
    for row in rows:
        for figures in row["tasks"].values():
            values = figures["values"]
            figures["mean"] = statistics.mean(values)
            figures["deviation"] = statistics.stdev(values) if len(values) > 1 else None
    content = {"title": study["title"], "about": about, "paper": study["paper"], "rows": rows}
    write_json(directory / "table.json", content)
    metrics = {task: found["metric"] for row in rows for task, found in row["tasks"].items()}
    (directory / "table.md").write_text(markdown(content, metrics), encoding="utf-8")
    if metrics:
        draw(content, metrics, series, directory / "table.png")
    return content


def markdown(content, metrics):
    """The table in Markdown: measured figures in percent with deviations, then the paper's."""
    papers = list(dict.fromkeys(name for row in content["rows"] for name in row["paper"]))
    head = ["", "steps", "predicted words, perplexity", *(f"{task} ({metric})" for task, metric in metrics.items())]
    head += [f"paper: {name}" for name in papers]
    lines = [f"# {content['title']}", "", content["about"], "", f"Paper: {content['paper']}", ""]
    lines += [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for row in content["rows"]:
        cells = [row["name"], str(row["pretraining"].get("steps", ""))]
        cells.append(shown(row["pretraining"].get("perplexities"), unit=1))
        cells += [shown(row["tasks"].get(task, {}).get("values")) for task in metrics]
        cells += [str(row["paper"].get(name, "")) for name in papers]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def shown(values, unit=0.01):
    """The mean of values in a unit, by default in percent, and their deviation if there are several; empty for what is
    not finished."""
    if not values:
        return ""
    deviation = f" ± {statistics.stdev(values) / unit:.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values) / unit:.1f}{deviation}"


def draw(content, metrics, series, path):
    """Draws a panel for each task: the rows' means with their deviations, or curves over the steps of series."""
    is_curve, rows = any(series), content["rows"]
    height = 1.4 + (2.6 if is_curve else 0.36 * len(rows))
    figure, axes = plots.panels(len(metrics), 1, 3.2 + 1.8 / len(metrics), height, sharey=not is_curve)
    for axis, (task, metric) in zip(axes[0], metrics.items(), strict=True):
        axis.set_title(f"{task}: {metric.replace('_', ' ')}, %")
        for one in dict.fromkeys(series):
            found = [place for place, row in enumerate(rows) if series[place] == one and task in row["tasks"]]
            means = [100 * rows[place]["tasks"][task]["mean"] for place in found]
            bars = [100 * (rows[place]["tasks"][task]["deviation"] or 0.0) for place in found]
            if is_curve:
                steps = [rows[place]["pretraining"]["steps"] for place in found]
                axis.errorbar(steps, means, yerr=bars, marker="o", capsize=3, label=one)
            else:  # the first row on top
                axis.errorbar(means, found, xerr=bars, fmt="o", color="tab:blue", capsize=3)
        if is_curve:
            axis.set_xlabel("steps")
            axis.legend()
        else:
            axis.set_yticks(range(len(rows)), [row["name"] for row in rows])
            axis.set_ylim(len(rows) - 0.5, -0.5)
    figure.suptitle(content["title"])
    figure.savefig(path)
