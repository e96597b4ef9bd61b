"""Prints size, speed and score of exports of one checkpoint, compared with those of the first.

    python benchmarks/compare_exports.py served/float32 served/int8 --task sst-2 --data glue/SST-2

The exports are measured in turn, each time in a process of its own, so that a busy minute of the machine does not slow
down one of them only. A text's time runs from the string to the outputs. Scores are for tasks of texts and pairs, such
as GLUE's; exports of vectors are scored by the cosines of the pairs of sts-b.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

from keras_bert_impl.export import open_export
from keras_bert_impl.export.opened import description_of, open_texts
from keras_bert_impl.export.precisions import size_of
from keras_bert_impl.json_files import read_json
from keras_bert_training.finetuning_task import TASKS
from keras_bert_training.tasks.scores import classification_scores, regression_scores
from keras_bert_training.tasks.tables import BadRows

BATCH_SIZES = (1, 8, 64)
SENTENCES = ["The cat sat on the mat and looked at the rain.", "It slept.", "Nobody had told the dog that trains stop."]


def texts_of(options, directory):
    """The texts, or pairs, that an export answers, and the examples that they are from, None without a task."""
    if options.task is None:
        return SENTENCES, None
    examples = TASKS[options.task].read(options.data, TASKS[options.task].dev[0], BadRows("skip"))
    if examples.pairs is None or description_of(directory)["model"] == "TextEmbedder":
        return list(examples.texts), examples
    return list(zip(examples.texts, examples.pairs, strict=True)), examples


def seconds_of_batches(options, directory):
    """{size of a batch: seconds of each}, after three batches that fill caches."""
    texts, _ = texts_of(options, directory)
    answer, found = open_texts(directory, options.threads), {}
    for size in BATCH_SIZES:
        places, seconds = itertools.cycle(range(len(texts))), []
        while len(seconds) < 8 or sum(seconds[3:]) < options.seconds:
            batch = [texts[place] for place in itertools.islice(places, size)]
            begun = time.perf_counter()
            answer(batch)
            seconds.append(time.perf_counter() - begun)
        found[size] = seconds[3:]
    return found


def score(options, directory):
    """The task's main figure on its dev set."""
    texts, examples = texts_of(options, directory)
    answer = open_export(directory, options.threads)
    outputs = answer(texts)
    if "logits" in outputs:
        names = list(read_json(pathlib.Path(directory, "config.json"))["id2label"].values())
        predicted = np.argmax(outputs["logits"], axis=-1)
        return classification_scores(examples.class_ids(names), predicted, names)[TASKS[options.task].main_metric]
    values = outputs.get("value")
    if values is None:
        first, second = (found / np.linalg.norm(found, axis=-1, keepdims=True)
                         for found in (outputs["vector"], answer(list(examples.pairs))["vector"]))  # fmt: skip
        values = (first * second).sum(-1)
    return regression_scores(np.array(examples.labels), np.reshape(values, -1))["spearman"]


def measured_apart(directory):
    """`seconds_of_batches` in a process of its own."""
    command = [sys.executable, __file__, *sys.argv[1:], "--only", directory]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def line_of(directory, runs, scored):
    """Format, precision, megabytes and score; for each size of a batch texts a second, and the median and the 99th
    percentile of a batch's milliseconds: of each the median over the runs."""
    export = description_of(directory)
    cells = [directory, export["format"], export["precision"], f"{size_of(directory) / 1e6:.1f}", scored]
    for size in map(str, BATCH_SIZES):
        rate = statistics.median(int(size) * len(run[size]) / sum(run[size]) for run in runs)
        p50, p99 = np.median([1e3 * np.percentile(run[size], (50, 99)) for run in runs], axis=0)
        cells.append(f"{rate:,.1f} ({p50:.1f} / {p99:.1f})")
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exports", nargs="+", help="directories of exports")
    parser.add_argument("--task", choices=sorted(TASKS), help="task of keras-bert finetune whose dev set is scored")
    parser.add_argument("--data", help="directory of the task's files")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each runtime")
    parser.add_argument("--rounds", type=int, default=3, help="how often each export is measured; medians count")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each size of a batch in a round")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(seconds_of_batches(options, options.only)))
        return
    scores = [f"{score(options, directory):.4f}" if options.task else "" for directory in options.exports]
    rounds = [[measured_apart(directory) for directory in options.exports] for _ in range(options.rounds)]
    header = ["export", "format", "precision", "MB", "score"]
    header += [f"texts/s at {size} (p50 / p99 ms)" for size in BATCH_SIZES]
    for cells in [header, *map(line_of, options.exports, zip(*rounds, strict=True), scores)]:
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
