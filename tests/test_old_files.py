"""Files of version 0.1.0, written by tests/golden/make_old_files.py: what later versions change, these still open."""

import json
import tarfile

import keras
import numpy as np
import pytest
from golden.make_old_files import ARCHIVE, TEXTS, pretraining_config
from tiers import once

import keras_bert_impl as kbi
from keras_bert_training import pretraining

pytestmark = once


@pytest.fixture
def expected(tmp_path, monkeypatch):
    """Unpacks the files into the current directory; returns what their writer saw."""
    monkeypatch.chdir(tmp_path)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(filter="data")
    return json.loads((tmp_path / "expected.json").read_text())


def test_a_keras_file_with_lora_predicts_and_trains_on(expected):
    classifier = keras.saving.load_model("classifier.keras")
    np.testing.assert_allclose(classifier.predict(TEXTS, verbose=0), expected["logits"], rtol=1e-5, atol=1e-6)
    assert len(classifier.trainable_weights) == expected["trainable_weights"]
    assert int(classifier.optimizer.iterations) == expected["steps_of_the_optimizer"]
    classifier.fit(TEXTS, [0, 1, 1, 0], verbose=0)


def test_a_keras_file_answers_from_the_checkpoint_that_it_was_made_of(expected):
    opened, made = keras.saving.load_model("answerer.keras"), kbi.BertEncoder.from_pretrained("checkpoint")
    for old, new in zip(made.weights, opened.encoder.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(old), keras.ops.convert_to_numpy(new))
    assert opened.answer("who sat on the mat", "the cat sat on the mat")


def test_a_run_that_was_stopped_ends_as_one_that_was_not(expected):
    pretraining.run(pretraining_config())
    rows = json.loads(open("run/history.json").read())
    for row, of_old in zip(rows, expected["history"], strict=True):
        known = {name: value for name, value in of_old.items() if name == "step" or name.endswith(("loss", "accuracy"))}
        assert {name: row[name] for name in known} == pytest.approx(known, rel=1e-4)
