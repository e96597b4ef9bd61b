"""What a run writes for people: the model card of its checkpoint, and the report of its directory."""

import math

from keras_bert_impl import plots
from keras_bert_impl.checkpoints import (
    CardFacts,
    Figure,
    is_packaged,
    open_checkpoint,
    published_repository,
    write_card,
)
from keras_bert_impl.checkpoints.model_card import deviation_of_share
from keras_bert_impl.distribution import is_chief
from keras_bert_impl.tasks import hub_datasets
from keras_bert_impl.training import run_page
from keras_bert_impl.training.run_page import Page, Table

SHARES = ("accuracy", "exact_match", "masked_lm_accuracy")  # of single examples, which a deviation follows from


def write_finetuning(directory, config, task, figures):
    """Writes the report of a fine-tuning run, and the card of its checkpoint, if it has one: a FeatureTagger has no
    counterpart in transformers.

    Args:
        directory: the run directory, which holds everything else.
        config: a FinetuneConfig.
        task: the task.
        figures: the content of metrics.json.
    """
    if not is_chief():
        return
    base, dataset = published_repository(config.model), hub_datasets.repository_of(config.data)
    epochs = f"Best of {len(figures['history'])} epochs by {task.main_metric} on {task.dev[0]}."
    start = "Training started from random weights." if config.from_scratch else None
    unknown = None if base or start else started_from(config.model)
    trials = figures.get("trials", {})
    tried = f"Best of {len(trials)} trials: {figures['best_trial']}." if trials else None
    data = [("training rows", figures["training_rows"])]
    data += [
        (f"examples, {split}", found["examples"]) for split, found in figures["splits"].items() if "examples" in found
    ]
    found = [figure for split in figures["splits"] for figure in figures_of_split(task, split, figures)]
    if has_checkpoint := (directory / "model" / "config.json").is_file():
        notes = [note for note in (start, unknown, epochs, tried) if note]
        base = None if config.from_scratch else base
        datasets = [dataset] if dataset else []
        facts = CardFacts(None, (), base, datasets, task.name, data, notes, found)
        write_card(directory / "model", facts)
    tables = [run_page.counts_table("Data", data), run_page.figures_table(found)]
    if trials:
        head, rows = ["trial", task.main_metric], [[name, f"{value:.4f}"] for name, value in trials.items()]
        note = f"Mean {figures['mean']:.4f}, standard deviation {figures['deviation']:.4f}, on {task.dev[0]}."
        tables.append(Table("Trials", head, rows, note))
    if task.paper:
        rows = [[f"{name}, {metric.replace('_', ' ')}", f"{value} %"] for name, row in task.paper.items()
                for metric, value in row.items()]  # fmt: skip
        tables.append(Table("In the paper", ["", "figure"], rows))
    origin = "random weights" if config.from_scratch else config.model
    page = Page(
        f"Fine-tuning: {task.name}",
        "Finished.",
        tuple(line for line in (f"Trained on {config.data} from {origin}.", epochs, tried) if line),
        tuple(tables),
        commands=run_page.commands_for(directory / "model") if has_checkpoint else (),
        drawn=drawn_curves(directory),
    )
    run_page.write(directory, page)


def started_from(model):
    """The sentence of a card about a checkpoint that is not on the hub, from which training started."""
    return f"Training started from {named(model, 'a checkpoint')}."


def named(model, kind):
    """What a card calls a checkpoint that is not on the hub, whose path nobody else has."""
    return f"{model}, the model in keras_bert_impl" if is_packaged(model) else f"{kind} that is not on the hub"


def drawn_curves(directory):
    """The curves of a run's metrics.json over its epochs; nothing if there was a single one."""
    history = plots.history_of(directory)
    if len(next(iter(history.values()), ())) < 2:
        return ()
    return (run_page.drawn(plots.curves(directory), "Figures of training and validation over the epochs"),)


def figures_of_split(task, split, figures):
    """The `Figure` of each figure of a split, the main one first."""
    found = figures["splits"][split]
    names = [name for name, value in found.items() if isinstance(value, float) and math.isfinite(value)]
    for name in sorted(names, key=lambda name: name != task.main_metric):
        deviation, over, baselines = None, "", ()
        if "trials" in figures and (split, name) == (task.dev[0], task.main_metric):
            deviation, over = figures["deviation"], f"{len(figures['trials'])} trials, mean {figures['mean']:.4f}"
        elif name in SHARES and found.get("examples"):
            deviation, over = deviation_of_share(found[name], found["examples"]), f"{found['examples']:,} examples"
        if name == "accuracy" and "confusion" in found:
            rows = [sum(row) for row in found["confusion"]]
            baselines = (("always the most frequent class", max(rows) / sum(rows)),)
        yield Figure(name, found[name], split, deviation, over, baselines, class_of(name, found))


def class_of(name, figures):
    """The class that a figure of `tasks.scores.classification_scores` is of; "" for one of all classes, or of entities
    or answers."""
    return figures["class_names"][1] if name == "f1" and "class_names" in figures else ""


def write_pretraining(directory, config, data, report, masks=()):
    """Writes the report of a pre-training, and the card of its encoder.

    Args:
        directory: the run directory.
        config: a PretrainConfig, or the DistillConfig of a student.
        data: its PretrainingData.
        report: the content of evaluation.json.
        masks: held-out rows with their masks filled in; see `run_page.Page`.
    """
    teacher = getattr(config, "teacher", None)
    start = teacher or config.init
    base = start and published_repository(start)
    length = (
        f"{report['steps']:,} steps of {config.batch_size:,} rows of {data.sequence_length:,} tokens, in "
        f"{report['minutes']:.1f} minutes; pairs: {data.pairs.replace('_', ' ')}."
    )
    notes = [length]
    if teacher:
        notes.append(f"A student of {base or named(start, 'a teacher')}.")
    elif start and not base:
        notes.append(started_from(start))
    of_lengths, encoder = [], open_checkpoint(directory / "encoder").config
    if not start and encoder.has_position_table and encoder.max_length > data.sequence_length:
        of_lengths = [
            f"Positions from {data.sequence_length:,} on have learnt nothing: before longer texts, train on longer "
            "rows (--init, --sequence_length)."
        ]
    notes += of_lengths
    corpus = data.corpus.get("train", {})
    counts = [(f"{name} of training text", corpus[name]) for name in ("documents", "words", "bytes") if name in corpus]
    counts += [(f"rows, {split}", number) for split, number in data.num_examples.items()]
    found = list(pretraining_figures(report))
    facts = CardFacts(languages=data.languages, base_model=base, data=counts, notes=notes, figures=found)
    write_card(directory / "encoder", facts)
    origin = f"a student of {teacher}" if teacher else f"from {start}" if start else "from random weights"
    lines = [f"Trained on {data.directory}, {origin}.", length, *of_lengths]
    if data.languages:
        lines.append(f"Languages: {', '.join(data.languages)}.")
    has_words = "masked_lm_accuracy" in report and not teacher
    task = "fill_mask" if has_words else "embed"
    page = Page(
        "Distillation" if teacher else f"Pre-training: {config.size}",
        "Finished.",
        tuple(lines),
        (run_page.counts_table("Data", counts), run_page.figures_table(found)),
        tuple(masks),
        run_page.commands_for(directory / "encoder", task),
    )
    run_page.write(directory, page)


def write_pretraining_so_far(directory, config, history, step, total_steps, picture=None, is_running=True):
    """Writes the report of a pre-training that has not ended: its curves.

    Args:
        directory: the run directory.
        config: a PretrainConfig.
        history: the content of history.json; empty before the end of the first round.
        step: the last one.
        total_steps: as they are planned now.
        picture: the curves, a matplotlib figure; None before the end of the first round.
        is_running: False for a run that was interrupted.
    """
    name = "pretrain" if config.size else "distill"
    state = "Training" if is_running else "Interrupted; the command below resumes it"
    last = history[-1] if history else {}
    rows = [[key.removeprefix("val_").replace("_", " "), f"{last[key]:.4f}"] for key in last if key.startswith("val_")]
    note = f"At step {last['step']:,}, after {last['minutes']:.1f} minutes." if last else ""
    page = Page(
        f"Pre-training: {config.size}" if config.size else "Distillation",
        f"{state}: step {step:,} of {total_steps:,}.",
        tables=(Table("Figures of validation", ["figure", "last round"], rows, note),) if rows else (),
        commands=(run_page.command_of(config, name),),
        drawn=(run_page.drawn(picture, "Figures of training and validation over the steps"),) if picture else (),
    )
    run_page.write(directory, page)


def pretraining_figures(report):
    """The `Figure` of each held-out figure of a pre-training, beside its baselines."""
    titles = ("most frequent word", "most frequent word after its left neighbour")
    for name in ("masked_lm_accuracy", "masked_lm_perplexity"):
        if name in report:
            baselines = tuple(
                (title, report[f"{prefix}_{name}"]) for title, prefix in zip(titles, ("unigram", "bigram"), strict=True)
            )
            count = report.get("test_predictions") if name in SHARES else None
            deviation = deviation_of_share(report[name], count) if count else None
            yield Figure(name, report[name], "test", deviation, f"{count:,} words" if count else "", baselines)
    if report.get("next_sentence_accuracy") is not None:
        majority = (("always the same", report["next_sentence_majority"]),)
        yield Figure(f"{report['pairs']}_accuracy", report["next_sentence_accuracy"], "test", baselines=majority)
    others = ("detection_accuracy", "replaced_precision", "replaced_recall", "span_boundary_accuracy")
    losses = ("soft_target_loss", "cosine_loss", "attention_relation_loss", "value_relation_loss")
    for name in (*others, *losses):
        if name in report:
            yield Figure(name, report[name], "test")
