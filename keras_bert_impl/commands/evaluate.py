"""Scores a file of predictions as the official scripts do; prints one JSON object, in percent.

    keras-bert evaluate squad --dataset dev-v2.0.json --predictions predictions.json --null-odds null_odds.json

The dataset's layout decides between SQuAD 1.1 and 2.0. Questions without a prediction count as wrong and are listed on
stderr.
"""

import json
import math
import pathlib
import sys

from keras_bert_impl.console import say
from keras_bert_impl.options.evaluate import EvaluateConfig as EvaluateConfig
from keras_bert_impl.tasks import squad_metrics


def run(config):
    """Prints the figures; returns them."""
    null_odds = None if config.null_odds is None else read_object(config.null_odds)
    dataset, predictions = read_object(config.dataset), read_object(config.predictions)
    if null_odds is not None:
        check_null_odds(config, dataset, null_odds)
    figures = squad_metrics.evaluate(dataset, predictions, null_odds, config.null_threshold)
    missing = figures.pop("missing")
    if missing:
        print(f"{len(missing)} questions have no prediction and count as wrong: {', '.join(missing)}", file=sys.stderr)
    say(json.dumps(figures, indent=2))
    return figures


def check_null_odds(config, dataset, null_odds):
    """Raises ValueError for null odds that are no numbers, or of questions that all have an answer, as SQuAD 1.1's."""
    if squad_metrics.read_answers(dataset) and not squad_metrics.has_impossible_questions(dataset):
        raise ValueError(
            f"--null_odds {config.null_odds} is for SQuAD 2.0, but {config.dataset} has the layout of SQuAD 1.1, "
            "where every question has an answer: leave it out."
        )
    for key, odds in null_odds.items():
        if isinstance(odds, bool) or not isinstance(odds, int | float) or not math.isfinite(odds):
            raise ValueError(f"{config.null_odds}: question {key} has {odds!r:.60}, expected a finite number.")


def read_object(path):
    """The JSON object in a file. Raises ValueError with the file's name if it does not hold an object."""
    try:
        found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} line {error.lineno}: not valid JSON ({error.msg}).") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(found).__name__}.")
    return found
