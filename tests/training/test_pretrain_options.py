"""Pre-training other than the quickstart's: how its data are read, steps executed together, and what is masked."""

import itertools
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl import Pretrainer
from keras_bert_impl.distribution import hardware
from keras_bert_impl.text.rows import shards
from keras_bert_training import (
    data_preparation,
    pretraining,
    pretraining_plan,
    pretraining_report,
)
from keras_bert_training.runs import locked

pytestmark = pytest.mark.usefixtures("without_reports")


def train(data, output, **options):
    defaults = {"size": "bert_tiny", "steps": 4, "batch_size": 4, "steps_per_round": 2, "validation_batches": 1}
    if "init" not in options:
        defaults["hidden_size"] = 24
    return pretraining.run(
        pretraining.PretrainConfig(str(data), str(output), jit_compile="off", **{**defaults, **options})
    )


def test_validation_has_rows_of_all_files_and_is_the_same_each_time(text_folder, tmp_path, monkeypatch):
    """There is a file of examples for each thousand tokens or more; each file has more rows than are taken."""
    monkeypatch.setattr(shards, "SHARD_TOKENS", 200)
    monkeypatch.setattr(data_preparation, "BLOCK_BYTES", 1000)
    data = tmp_path / "data"
    options = {"vocabulary_size": 500, "sequence_length": 32, "workers": 1}
    data_preparation.run(data_preparation.PrepareConfig(str(data), str(text_folder), **options))
    config = pretraining.PretrainConfig(str(data), str(tmp_path / "run"), batch_size=2, validation_batches=3)
    data = pretraining.open_data(config)
    rows_of_files = [shard["examples"] for shard in data.shards if "/validation/" in shard["path"]]
    assert len(rows_of_files) > 1 and rows_of_files[0] > 6, "the first batches would all be of the first file"
    every, taken, again = (
        [row.tobytes() for inputs, _ in batches for row in inputs["token_ids"]]
        for batches in (data.arrays("validation"), data.validation(), data.validation())
    )
    starts = np.cumsum([0, *rows_of_files])
    file_of_row = {row: np.searchsorted(starts, place, "right") - 1 for place, row in enumerate(every)}
    assert len(taken) == 6 and {file_of_row[row] for row in taken} == set(range(len(rows_of_files)))
    assert again == taken


@pytest.mark.full
@on("tensorflow", "jax")  # Keras has no steps_per_execution on torch
def test_steps_that_are_executed_together_learn_the_same(prepared_data, tmp_path):
    data = prepared_data()
    train(data, tmp_path / "one", steps=6, steps_per_round=3, dropout_rate=0.0)
    train(data, tmp_path / "two", steps=7, steps_per_round=3, steps_per_execution=2, dropout_rate=0.0)
    assert [row["step"] for row in json.loads((tmp_path / "two" / "history.json").read_text())] == [4, 6]
    weights = [Pretrainer.from_pretrained(tmp_path / name / "encoder").get_weights() for name in ("one", "two")]
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "steps", "expected"),
    [("TPU v4", 900_000, 20), ("TPU v4", 14_063, 41), ("TPU v4", 7, 7), ("TPU v4", None, 20), ("cpu", None, 1)],
)
def test_an_accelerator_executes_twenty_steps_or_more_together(kind, steps, expected, monkeypatch):
    monkeypatch.setattr(hardware, "device_kind", lambda: kind)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")  # torch executes each step alone
    assert pretraining_plan.usual_steps_per_execution(steps) == expected


@on("tensorflow")
@pytest.mark.full
def test_options_for_watching_may_change_and_wrong_ones_are_refused(prepared_data, tmp_path):
    data = prepared_data()
    with pytest.raises(ValueError, match="--profile_steps 9 is not of the form 100:110"):
        train(data, tmp_path / "run", profile_steps="9")
    train(data, tmp_path / "run", profile_steps="2:3")
    assert list((tmp_path / "run" / "profile").rglob("*.xplane.pb"))
    train(data, tmp_path / "run")  # finished: no other configuration


def first_batches(directory, tmp_path):
    data = pretraining.open_data(pretraining.PretrainConfig(str(directory), str(tmp_path), batch_size=4))
    return list(data.batches("train").take(3).as_numpy_iterator())


@on("tensorflow")
@pytest.mark.full
def test_data_may_be_where_tensorflow_alone_reads(prepared_copy, tmp_path):
    """Uses TensorFlow's file system in memory, whose names look like those of a bucket."""
    near = prepared_copy()
    for path in [path for path in near.rglob("*") if path.is_file() and "work" not in path.parts]:
        tf.io.gfile.makedirs(f"ram://data/{path.relative_to(near).parent}")
        tf.io.gfile.copy(str(path), f"ram://data/{path.relative_to(near)}", overwrite=True)
    assert train("ram://data", tmp_path / "run")["steps"] == 4
    for batches in zip(*(first_batches(data, tmp_path) for data in ("ram://data", near)), strict=True):
        keras.tree.map_structure(np.testing.assert_array_equal, *batches)
    first = next(path for path in tf.io.gfile.glob("ram://data/pretraining/32/train/*"))
    tf.io.gfile.remove(first)
    with pytest.raises(ValueError, match=f"{first} is missing or damaged"):
        train("ram://data", tmp_path / "again")


def test_a_damaged_file_is_named(prepared_copy, tmp_path):
    data = prepared_copy()
    path = next((tmp_path / "data").rglob("train/*.tfrecord"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"examples-00000\.tfrecord is missing or damaged"):
        train(data, tmp_path / "run", steps=200, steps_per_round=200)
    path.write_bytes(content[:-7])
    with pytest.raises(ValueError, match=r"examples-00000\.tfrecord is missing or damaged"):
        train(data, tmp_path / "other")


class Vocabulary:
    pad_id = 0

    @staticmethod
    def piece_text(index):
        return ["[PAD]", "[MASK]", "the", "cat", "dog"][index]


def test_filled_rows_show_guess_and_truth():
    inputs = {"token_ids": np.array([[2, 1, 1, 0]]), "mask_positions": np.array([[1, 2, 0]])}
    labels = {"mask_ids": np.array([[3, 4, 0]]), "mask_weights": np.array([[1.0, 1.0, 0.0]])}
    (row,) = pretraining_report.rows_with_guesses(Vocabulary, inputs, labels, np.array([[3, 3, 2]]))
    assert [(piece["truth"], piece["guess"]) for piece in row] == [("the", None), ("cat", "cat"), ("dog", "cat")]


@pytest.mark.parametrize(
    ("size", "asked", "expected"),
    [
        ("bert_tiny", {}, (0.8, 0.1)),
        ("electra_small", {}, (0.85, 0.15)),  # Google's code for ELECTRA: no random tokens
        ("electra_small", {"mask_token_rate": 1.0}, (1.0, 0.0)),
        ("electra_small", {"objective": "replaced_tokens"}, (0.85, 0.15)),
        ("deberta_v3_small", {"objective": "replaced_tokens"}, (1.0, 0.0)),  # Microsoft's code masks all
    ],
)
def test_what_the_chosen_tokens_become_belongs_to_the_family(size, asked, expected, prepared_data):
    directory, shown = str(prepared_data(pairs="full_sentences", packed=False)), []
    for seed in range(8):
        config = pretraining.PretrainConfig(directory, "", size=size, masking_rate=0.5, seed=seed, **asked)
        data = pretraining.open_data(config)
        for inputs, labels in data.arrays("train"):
            row, column = np.nonzero(labels["mask_weights"])
            now = inputs["token_ids"][row, inputs["mask_positions"][row, column]]
            shown.append(np.stack([now == data.tokenizer.mask_id, now == labels["mask_ids"][row, column]]))
    shares = np.concatenate(shown, axis=1).mean(axis=1)
    np.testing.assert_allclose(shares, expected, atol=0.01)
    assert not (asked or size == "electra_small") or shares.sum() == 1  # nothing is random


@pytest.mark.parametrize("packed", [False, True])
def test_as_many_tokens_are_masked_as_the_rate_says(packed, prepared_data):
    data = prepared_data(packed=packed, long_sequence_length=64)
    for rate, predictions in ((0.15, 5), (0.4, 13)):  # of 32 tokens, rounded up
        found = pretraining.open_data(
            pretraining.PretrainConfig(str(data), "", masking_rate=rate, batch_size=16, sequence_length=32)
        )
        assert found.predictions_per_sequence == predictions
        for inputs, labels in itertools.islice(found.arrays("train"), 3):
            assert labels["mask_ids"].shape == (16, predictions)
            wanted = np.maximum(1, np.round(inputs["padding_mask"].sum(axis=1) * rate))
            np.testing.assert_array_equal(labels["mask_weights"].sum(axis=1), wanted)


def test_no_gradients_are_left_over_at_the_end(prepared_data, tmp_path, capsys):
    train(prepared_data(), tmp_path / "run", steps=7, gradient_accumulation_steps=3)
    printed = capsys.readouterr().out
    assert "7 steps are rounded down to 6" in printed
    assert json.loads((tmp_path / "run" / "plan.json").read_text())["steps"] == 6
    with pytest.raises(ValueError, match="steps 2 is below 3"):
        train(prepared_data(), tmp_path / "short", steps=2, gradient_accumulation_steps=3)
    assert not (tmp_path / "short").exists()


def test_a_run_does_not_go_on_with_data_that_was_prepared_again(prepared_data, tmp_path, monkeypatch):
    first, second = prepared_data(), prepared_data(vocabulary_size=480)
    data = tmp_path / "data"
    shutil.copytree(first, data)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pretraining, "fit", interrupt)
        train(data, tmp_path / "run")
    data.rename(tmp_path / "moved")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # which the same data elsewhere reaches
        patch.setattr(pretraining, "fit", interrupt)
        train(tmp_path / "moved", tmp_path / "run")
    shutil.copytree(second, data)
    with pytest.raises(ValueError, match=r"started on other data: .* was prepared again"):
        train(data, tmp_path / "run")
    shutil.rmtree(data)
    shutil.copytree(first, data)
    assert train(data, tmp_path / "run")["steps"] == 4


def test_two_pre_training_runs_in_one_directory_are_refused(prepared_data, tmp_path):
    with locked(tmp_path / "run"), pytest.raises(ValueError, match="run is in use by process"):
        train(prepared_data(), tmp_path / "run")
