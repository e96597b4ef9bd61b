"""Prints size, speed and score of exports of one checkpoint, side by side.

    keras-bert compare-exports --exports [served/float32,served/int8] --task sst-2 --data glue/SST-2

Each export is measured several times in turn with the others, each time in a process of its own, so that a busy minute
of the machine does not slow down one of them only. A text's time runs from the string to the outputs.
"""

import dataclasses
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import types

import numpy as np

from keras_bert_impl.batching import Rows, SortedBatches, predict_rows
from keras_bert_impl.console import say
from keras_bert_impl.export.formats import FORMATS
from keras_bert_impl.export.opened import ALONE, description_of, open_texts
from keras_bert_impl.export.precisions import size_of
from keras_bert_impl.json_files import read_json
from keras_bert_impl.text.tokenizers import WordPieceTokenizer, open_tokenizer
from keras_bert_impl.text.tokenizers.tokenizer_json_reader import VocabularyFiles
from keras_bert_training.finetuning_task import TASKS
from keras_bert_training.options.compare_exports import CompareConfig
from keras_bert_training.tasks.tables import BadRows

BATCH_SIZES = (1, 8, 64)
SENTENCES = ["The cat sat on the mat and looked at the rain.", "It slept.", "Nobody had told the dog that trains stop."]
SPEED, LATENCY = "texts/s", "p50 / p99 ms"


def run(config):
    """Prints the table and returns it: for each export a dict of figures."""
    rows = {directory: figures_of(config, directory) for directory in config.exports}
    found = {directory: [] for directory in config.exports}
    for _ in range(config.rounds):
        for directory in config.exports:
            found[directory].append(measured_apart(config, directory))
    rows = {directory: {**row, **medians(found[directory])} for directory, row in rows.items()}
    print_table(rows)
    return rows


def measured_apart(config, directory):
    """`measure` in a process of its own. Raises RuntimeError with its error messages if it fails."""
    command = [sys.executable, "-m", __name__, json.dumps(dataclasses.asdict(config)), directory]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{directory} could not be measured:\n{done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(config, directory):
    """Seconds of each batch, by batch size."""
    texts, answer = texts_of(config), open_texts(directory, config.threads or os.cpu_count())
    found = {}
    for size in BATCH_SIZES:
        seconds, place, end = [], 0, None
        while end is None or time.perf_counter() < end or len(seconds) < 5:
            batch = [texts[(place + number) % len(texts)] for number in range(size)]
            place += size
            begun = time.perf_counter()
            answer(batch)
            seconds.append(time.perf_counter() - begun)
            if end is None and len(seconds) == 3:  # after these, caches are filled
                seconds, end = [], time.perf_counter() + config.seconds
        found[str(size)] = seconds
    return found


def medians(runs):
    """Texts a second, and percentiles of the seconds of a batch: the median over the rounds of each."""
    figures = {}
    for size in map(str, BATCH_SIZES):
        rates = [int(size) * len(run[size]) / sum(run[size]) for run in runs]
        shares = [[1e3 * np.percentile(run[size], share) for run in runs] for share in (50, 99)]
        figures[f"{SPEED} at {size}"] = statistics.median(rates)
        figures[f"{LATENCY} at {size}"] = [statistics.median(share) for share in shares]
    return figures


def figures_of(config, directory):
    """Format, precision, megabytes and score of an export."""
    export = description_of(directory)
    figures = {"format": export["format"], "precision": export["precision"], "MB": size_of(directory) / 1e6}
    is_scored = config.task is not None and export["format"] != "saved_model"
    return {**figures, "score": score(config, directory) if is_scored else None}


def score(config, directory):
    """The task's main figure on its dev set."""
    task, tokenizer = TASKS[config.task], tokenizer_of(directory)
    content = read_json(pathlib.Path(directory, "config.json"))
    export, names = content["export"], list(content.get("id2label", {}).values()) or None
    run = FORMATS[export["format"]].open(directory, config.threads, export["precision"])
    examples, length = task.read(config.data, task.dev[0], BadRows("skip")), export["sequence_length"]
    outputs_of = functools.partial(outputs_in, (1, 1) if (export["format"], export["precision"]) in ALONE else (32, 8))
    if export["model"] == "TextEmbedder":
        rows = (Rows.from_texts(tokenizer, texts, None, length) for texts in (examples.texts, examples.pairs))
        first, second = (np.array(outputs_of(run, tokenizer, one, length)) for one in rows)
        cosines = (first * second).sum(-1) / np.linalg.norm(first, axis=-1) / np.linalg.norm(second, axis=-1)
        return task.score(examples, None, cosines, names)["spearman"]
    rows = task.featurize(tokenizer, examples, names, length)
    outputs = outputs_of(run, tokenizer, rows, length)
    return task.score(examples, rows, outputs, names)[task.main_metric]


def outputs_in(sizes, run, tokenizer, rows, length):
    """The outputs of an export for Rows, one for each; `sizes` are the rows of a batch and what its length is a
    multiple of."""

    def predict_on_batch(rows):
        outputs = run(rows)
        if "start_logits" in outputs:
            return np.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1)
        return next(outputs[name] for name in ("logits", "value", "vector") if name in outputs)

    batch_size, multiple = sizes
    model = types.SimpleNamespace(predict_on_batch=predict_on_batch)  # all of a Keras model that this needs
    return predict_rows(model, SortedBatches(tokenizer, rows, batch_size, length, multiple=multiple))


def tokenizer_of(directory):
    """The tokenizer whose vocabulary an export's tokenizer.json holds."""
    if VocabularyFiles(directory).algorithm == "BPE":
        return open_tokenizer(directory)
    content = json.loads(pathlib.Path(directory, "tokenizer.json").read_text(encoding="utf-8"))
    ids = content["model"]["vocab"]
    lowercase = any(step["type"] == "Lowercase" for step in content["normalizer"]["normalizers"])
    return WordPieceTokenizer(sorted(ids, key=ids.get), lowercase)


def texts_of(config):
    """The texts, or pairs, to measure speed with."""
    if config.texts is not None:
        return [line for line in pathlib.Path(config.texts).read_text(encoding="utf-8").splitlines() if line.strip()]
    if config.task is None:
        return SENTENCES
    examples = TASKS[config.task].read(config.data, TASKS[config.task].dev[0], BadRows("skip"))
    is_single = examples.pairs is None or description_of(config.exports[0])["model"] == "TextEmbedder"
    return list(examples.texts if is_single else zip(examples.texts, examples.pairs, strict=True))


def print_table(rows):
    """Prints a line for each export; in brackets its speed and score compared with those of the first."""
    first, width = next(iter(rows.values())), max(len("export"), *map(len, rows)) + 2
    header = f"{'export':<{width}}{'precision':<14}{'MB':>7}{'score':>19}"
    say(header + "".join(f"{f'batch {n}':>38}" for n in BATCH_SIZES))
    say(" " * len(header) + "".join(f"{'texts/s':>20}{LATENCY:>18}" for _ in BATCH_SIZES))
    for directory, row in rows.items():
        score = "-" if row["score"] is None else f"{row['score']:.4f}"
        if row["score"] is not None and first["score"] is not None:
            score += f" ({row['score'] - first['score']:+.4f})"
        text = f"{directory:<{width}}{row['precision']:<14}{row['MB']:>7.1f}{score:>19}"
        for size in BATCH_SIZES:
            rate, base = (figures[f"{SPEED} at {size}"] for figures in (row, first))
            p50, p99 = row[f"{LATENCY} at {size}"]
            text += f"{f'{rate:,.1f} ({rate / base:.2f})':>20}{f'{p50:.1f} / {p99:.1f}':>18}"
        say(text)


if __name__ == "__main__":
    print(json.dumps(measure(CompareConfig(**json.loads(sys.argv[1])), sys.argv[2])))
