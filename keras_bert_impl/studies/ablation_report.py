"""The table and the picture of an ablation study."""

import statistics

from keras_bert_impl import plots
from keras_bert_impl.json_files import write_json
from keras_bert_impl.training.run_documents import write_study

COLUMNS = ("steps", "perplexity")


def mean_and_deviation(values):
    """(mean, sample standard deviation) of the seeds' values; the deviation of a single value is None."""
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None


def write(study, tasks, results, about, directory):
    """Writes table.json, table.md, table.png and report.html.

    Args:
        study: a Study.
        tasks: the TaskData.
        results: {row's name: {"pretraining": figures, "tasks": {task: {"metric": name, "values": list}}}}, of the rows
            and tasks that are finished.
        about: text that says what all rows have in common.
        directory: where the files go.
    """
    rows = []
    for row in study.rows:
        found = results.get(row.name, {"pretraining": {}, "tasks": {}})
        figures = {}
        for task, of_task in found["tasks"].items():
            mean, deviation = mean_and_deviation(of_task["values"])
            figures[task] = {**of_task, "mean": mean, "deviation": deviation}
        rows.append({"name": row.name, "pretraining": found["pretraining"], "tasks": figures, "paper": row.paper})
    content = {"title": study.title, "about": about, "paper": study.paper, "rows": rows}
    write_json(directory / "table.json", content)
    (directory / "table.md").write_text(markdown(study, tasks, rows, about), encoding="utf-8")
    if any(row["tasks"] for row in rows):
        draw(study, tasks, rows, directory / "table.png")
    write_study(directory, content)


def markdown(study, tasks, rows, about):
    """The table in Markdown: measured figures in percent with deviations, then the paper's."""
    metrics = {task: found["metric"] for row in rows for task, found in row["tasks"].items()}
    papers = list(dict.fromkeys(name for row in rows for name in row["paper"]))
    measured = [f"{task.name} ({metrics.get(task.name, '')})" for task in tasks]
    head = ["", "steps", "predicted words, perplexity", *measured, *(f"paper: {name}" for name in papers)]
    lines = [f"# {study.title}", "", about, "", f"Paper: {study.paper}", ""]
    lines += [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for row in rows:
        pretraining = row["pretraining"]
        steps = f"{pretraining['steps']:,}" if pretraining else ""
        perplexity = shown(pretraining.get("perplexities"), unit=1)
        cells = [row["name"], steps, perplexity]
        cells += [shown(row["tasks"].get(task.name, {}).get("values")) for task in tasks]
        cells += [str(row["paper"].get(name, "")) for name in papers]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def shown(values, unit=0.01):
    """The mean of values in a unit, by default in percent, and their deviation if there are several; empty for what is
    not finished."""
    if not values:
        return ""
    mean, deviation = mean_and_deviation(values)
    return f"{mean / unit:.1f}" if deviation is None else f"{mean / unit:.1f} ± {deviation / unit:.1f}"


def draw(study, tasks, rows, path):
    """Draws a panel for each task: the rows' means with their deviations, or curves over the steps of series."""
    is_curve = any(row.series for row in study.rows)
    figure, axes = plots.panels(
        *(len(tasks), 1, 3.2 + 1.8 / len(tasks), 1.4 + (2.6 if is_curve else 0.36 * len(rows))), sharey=not is_curve
    )
    for axis, task in zip(axes[0], tasks, strict=True):
        metric = next((row["tasks"][task.name]["metric"] for row in rows if task.name in row["tasks"]), "")
        axis.set_title(f"{task.name}: {metric.replace('_', ' ')}, %")
        (draw_curves if is_curve else draw_points)(axis, study, task, rows)
    figure.suptitle(study.title)
    figure.savefig(path)


def draw_points(axis, study, task, rows):
    """A point with a bar of one deviation to each side for each row, the first row on top."""
    for place, row in enumerate(rows):
        figures = row["tasks"].get(task.name)
        if figures is not None:
            bar = 100 * (figures["deviation"] or 0.0)
            axis.errorbar(100 * figures["mean"], place, xerr=bar, fmt="o", color="tab:blue", capsize=3)
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)


def draw_curves(axis, study, task, rows):
    """A line over the steps for each series."""
    for series in dict.fromkeys(row.series for row in study.rows):
        points = [
            (found["pretraining"]["steps"], found["tasks"][task.name])
            for row, found in zip(study.rows, rows, strict=True)
            if row.series == series and task.name in found["tasks"]
        ]
        if points:
            bars = [100 * (figures["deviation"] or 0.0) for _, figures in points]
            means = [100 * figures["mean"] for _, figures in points]
            axis.errorbar([step for step, _ in points], means, yerr=bars, marker="o", capsize=3, label=series)
    axis.set_xlabel("steps")
    axis.legend()
