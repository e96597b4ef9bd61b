"""Scores a file of predictions as the official scripts do; prints one JSON object, in percent.

    keras-bert evaluate squad --dataset dev-v2.0.json --predictions predictions.json --null-odds null_odds.json

The dataset's layout decides between SQuAD 1.1 and 2.0. Questions without a prediction count as wrong and are listed on
stderr.
"""

import json
import sys

from keras_bert_impl.console import say
from keras_bert_impl.json_files import read_json
from keras_bert_training.options.evaluate import EvaluateConfig as EvaluateConfig
from keras_bert_training.tasks import squad_metrics


def run(config):
    """Prints the figures; returns them."""
    dataset, predictions = (read_json(path, largest=None) for path in (config.dataset, config.predictions))
    null_odds = None if config.null_odds is None else read_json(config.null_odds, largest=None)
    figures = squad_metrics.evaluate(dataset, predictions, null_odds, config.null_threshold)
    missing = figures.pop("missing")
    if missing:
        print(f"{len(missing)} questions have no prediction and count as wrong: {', '.join(missing)}", file=sys.stderr)
    say(json.dumps(figures, indent=2))
    return figures
