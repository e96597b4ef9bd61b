"""Runs on pre-training rows that are interrupted, and what they leave."""

import pathlib

import numpy as np
import pytest
from saved_arrays import read_last

from keras_bert_training import data_preparation, pretraining

SENTENCES = ("The cat sat on the mat.", "A dog ran in the rain.", "It was a good day, red and blue.", "The mat is wet.")


def prepare(directory, **options):
    """Prepares rows of a small corpus with a vocabulary of 60 words; returns their directory."""
    (directory / "text.txt").write_text("\n\n".join("\n".join(SENTENCES[n % 4 :] + SENTENCES) for n in range(80)))
    vocabulary = {} if "vocab" in options else {"vocabulary_size": 60}
    config = {**vocabulary, "predictions_per_sequence": 2, "pairs": "doc_sentences", **options}
    data_preparation.run(data_preparation.PrepareConfig(str(directory / "data"), str(directory / "text.txt"), **config))
    return directory / "data"


def interrupted(run, config, patch, at_step):
    """Calls `run(config)` until it is interrupted after this step."""

    class Interrupt(pretraining.Rounds):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            if self.step == at_step:
                raise KeyboardInterrupt

    patch.setattr(pretraining, "Rounds", Interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(config)


def last_state(output):
    return read_last(pathlib.Path(output) / "training_state")


def assert_equal_states(one, other):
    assert one[0] == other[0] and one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name], err_msg=name)
