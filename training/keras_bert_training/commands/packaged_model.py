"""The model in the package, which commands ask that are given none."""

import dataclasses
import sys

from keras_bert_impl.checkpoints.hub import PACKAGED, PACKAGED_DIRECTORY


def with_model(config):
    """The configuration of a command with the model in the package, if it names none.

    A folder that happens to have the model's name is not meant. The note goes to standard error: piped answers stay one
    for each line.
    """
    if config.model:
        return config
    print(f"{PACKAGED}, the model in the package; --model for another", file=sys.stderr, flush=True)
    path = str(PACKAGED_DIRECTORY)
    return dataclasses.replace(config, model=[f"{PACKAGED}={path}"] if isinstance(config.model, list) else path)
