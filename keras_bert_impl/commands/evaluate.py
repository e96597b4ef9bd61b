"""Scores a file of predictions as the official scripts do; prints one JSON object, in percent.

    keras-bert evaluate squad --dataset dev-v2.0.json --predictions predictions.json --null-odds null_odds.json

The dataset's layout decides between SQuAD 1.1 and 2.0. Questions without a prediction count as wrong and are listed on
stderr.
"""

import json
import pathlib
import sys

from keras_bert_impl.console import say
from keras_bert_impl.options.evaluate import EvaluateConfig as EvaluateConfig
from keras_bert_impl.tasks import squad_metrics


def run(config):
    """Prints the figures; returns them."""
    null_odds = None if config.null_odds is None else read_object(config.null_odds)
    figures = squad_metrics.evaluate(
        read_object(config.dataset), read_object(config.predictions), null_odds, config.null_threshold
    )
    missing = figures.pop("missing")
    if missing:
        print(f"{len(missing)} questions have no prediction and count as wrong: {', '.join(missing)}", file=sys.stderr)
    say(json.dumps(figures, indent=2))
    return figures


def read_object(path):
    """The JSON object in a file. Raises ValueError with the file's name if it does not hold an object."""
    try:
        found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} line {error.lineno}: not valid JSON ({error.msg}).") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(found).__name__}.")
    return found
