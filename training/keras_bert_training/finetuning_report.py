"""Writes the results of fine-tuning: figures, predictions, pictures, the checkpoint and its card, submissions."""

import math

from keras_bert_impl import plots
from keras_bert_impl.batching import predict_rows
from keras_bert_impl.checkpoints import CardFacts, Figure, write_card
from keras_bert_impl.checkpoints.hub import origin_of
from keras_bert_impl.checkpoints.model_card import deviation_of_share
from keras_bert_impl.console import say
from keras_bert_impl.distribution import is_chief
from keras_bert_impl.json_files import write_json
from keras_bert_training import report
from keras_bert_training.tasks import hub_datasets


def write_report(config, task, examples, rows, batches, model, class_names, history, directory):
    """Scores the trained model on every labelled split but train and writes all results.

    Returns the figures of the first test split with labels, or else of the first dev split, with those of all splits
    in "splits".
    """
    model.save_pretrained(directory / "model")
    outputs = {split: predict_rows(model, batches[split]) for split in examples if split != "train"}
    if hasattr(task, "tuned_on_dev"):
        dev = task.dev[0]
        task = task.tuned_on_dev(examples[dev], rows[dev], outputs[dev])
        task.pass_on(model)
        model.save_pretrained(directory / "model")
    labelled = [split for split in outputs if examples[split].labels is not None]
    splits = {split: task.score(examples[split], rows[split], outputs[split], class_names) for split in labelled}
    reported = next((split for split in task.test if split in labelled), task.dev[0])
    if is_chief():
        write_outputs(task, examples, rows, outputs, reported, class_names, directory)
        if "confusion" in splits[reported]:
            picture = plots.confusion_of_counts(splits[reported]["confusion"], splits[reported]["class_names"])
            picture.savefig(directory / "confusion.png")
        elif splits[reported].get("by_type"):
            draw_f1_by_label(splits[reported]["by_type"]).savefig(directory / "f1_by_label.png")
    figures = {
        **splits[reported],
        "task": task.name,
        "main_metric": task.main_metric,
        "split": reported,
        "splits": splits,
        "training_rows": len(rows["train"]),
        "padding_share": float(batches["train"].padding_share()),
        "seconds_per_epoch": [round(row["seconds"], 2) for row in history],
        "history": history,
    }
    write_json(directory / "metrics.json", figures)
    write_finetuning(directory, config, task, figures)
    for split in labelled:
        say(f"  {split}: {shown(splits[split])}")
    return figures


def write_finetuning(directory, config, task, figures):
    """Writes the card of a fine-tuned checkpoint, if it is one (a FeatureTagger has no counterpart in transformers),
    and the report of the run. `figures` is the content of metrics.json."""
    if not is_chief():
        return
    base, origin = (None, "random weights") if config.from_scratch else origin_of(config.model)
    notes = [] if base else [f"Training started from {origin}."]
    notes.append(f"Best of {len(figures['history'])} epochs by {task.main_metric} on {task.dev[0]}.")
    if "trials" in figures:
        notes.append(f"Best of {len(figures['trials'])} trials: {figures['best_trial']}.")
    dataset = hub_datasets.repository_of(config.data)
    facts = CardFacts(
        base_model=base,
        datasets=[dataset] if dataset else [],
        task=task.name,
        data=[
            ("training examples", figures["training_rows"]),
            *((f"examples, {split}", one["examples"]) for split, one in figures["splits"].items() if "examples" in one),
        ],
        notes=notes,
        figures=[figure for split in figures["splits"] for figure in figures_of_split(task, split, figures)],
    )
    if has_checkpoint := (directory / "model" / "config.json").is_file():
        write_card(directory / "model", facts)
    if len(figures["history"]) > 1:
        plots.curves(directory).savefig(directory / "curves.png")
    report.write(directory, "finetuning", facts, paper=task.paper, has_checkpoint=has_checkpoint)


def figures_of_split(task, split, figures):
    """The `Figure` of each figure of a split, the main one first."""
    found = figures["splits"][split]
    names = [name for name, value in found.items() if isinstance(value, float) and math.isfinite(value)]
    for name in sorted(names, key=lambda name: name != task.main_metric):
        deviation, over, baselines = None, "", ()
        if "trials" in figures and (split, name) == (task.dev[0], task.main_metric):
            deviation, over = figures["deviation"], f"{len(figures['trials'])} trials, mean {figures['mean']:.4f}"
        elif name in ("accuracy", "exact_match") and found.get("examples"):  # shares of single examples
            deviation, over = deviation_of_share(found[name], found["examples"]), f"{found['examples']:,} examples"
        if name == "accuracy" and "confusion" in found:
            rows = [sum(row) for row in found["confusion"]]
            baselines = (("always the most frequent class", max(rows) / sum(rows)),)
        yield Figure(name, found[name], split, deviation, over, baselines, class_of(name, found))


def class_of(name, figures):
    """The class that a figure of `tasks.scores.classification_scores` is of; "" for one of all classes, or of entities
    or answers."""
    return figures["class_names"][1] if name == "f1" and "class_names" in figures else ""


def write_outputs(task, examples, rows, outputs, reported, class_names, directory):
    """Writes the predictions for each split, those for the reported one without a suffix, and GLUE's submissions."""
    for split, found in outputs.items():
        suffix = "" if split == reported else f"_{split}"
        task.write_predictions(directory, suffix, examples[split], rows[split], found, class_names)
        if split in task.submissions:
            task.write_submission(directory, split, found, class_names)


def shown(figures):
    """The figures of a split in one line, shares in percent."""
    parts = []
    for name, value in figures.items():
        if isinstance(value, float):
            form = ".3f" if "error" in name or "thresh" in name else ".1%"
            title = Figure(name, value, "", class_name=class_of(name, figures)).title
            parts.append(f"{title} {value:{form}}")
        elif isinstance(value, int):
            parts.append(f"{value:,} {name.replace('_', ' ')}")
    return ", ".join(parts)


def draw_f1_by_label(by_type):
    """A bar for each label, with the number of its entities or words."""
    names = sorted(by_type, key=lambda name: by_type[name]["f1"])
    figure, ((axis,),) = plots.panels(width=6, height=1 + 0.45 * len(names))
    counts = [by_type[name].get("entities", by_type[name].get("words")) for name in names]
    labels = [f"{name} ({count:,})" for name, count in zip(names, counts, strict=True)]
    bars = axis.barh(labels, [by_type[name]["f1"] for name in names])
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.set(xlim=(0, 1.1), xlabel="F1")
    return figure
