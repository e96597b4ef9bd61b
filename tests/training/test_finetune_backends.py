"""The parts of fine-tuning that depend most on the backend: saved states, weights in the loss, rates by layer."""

import functools
import json

import keras
import numpy as np
import pytest
from conftest import WORDS
from made_runs import arrays_of, config_of, write_checkpoint
from made_tasks import write_codah, write_cola, write_mrpc, write_ner, write_squad
from tiers import every_backend, full_but, three_in_full

import keras_bert_impl as kbi
from keras_bert_impl.callbacks import ExactResume
from keras_bert_training import finetuning, finetuning_trial

pytestmark = pytest.mark.usefixtures("quick_steps")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@three_in_full
def test_an_interrupted_run_ends_as_an_uninterrupted_one(checkpoint, tmp_path, monkeypatch):
    write_mrpc(tmp_path / "data", count=8)
    whole = finetuning.run(config_of(checkpoint, tmp_path, "mrpc", output="whole"))

    def interrupted_at(place):
        class Interrupt(finetuning_trial.DevScores):
            def on_train_batch_begin(self, batch, logs=None):
                if (len(self.history), batch) == place:
                    raise KeyboardInterrupt

        return Interrupt

    for place in ((0, 1), (1, 0)):  # (epoch, batch)
        with monkeypatch.context() as patch:
            patch.setattr(finetuning_trial, "DevScores", interrupted_at(place))
            patch.setattr(finetuning_trial, "ExactResume", functools.partial(ExactResume, every_steps=1))
            with pytest.raises(KeyboardInterrupt):
                finetuning.run(config_of(checkpoint, tmp_path, "mrpc", output="broken"))
    broken = finetuning.run(config_of(checkpoint, tmp_path, "mrpc", output="broken"))
    assert [row["loss"] for row in broken["history"]] == [row["loss"] for row in whole["history"]]
    models = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert models[0] == models[1]


def loss_of(checkpoint, tmp_path, name, **options):
    """The loss of one step over all sentences, from the same weights, at a learning rate that changes nothing."""
    usual = {"epochs": 1, "batch_size": 10, "learning_rate": 1e-12, "dropout_rate": 0.0, "output": name}
    figures = finetuning.run(config_of(checkpoint, tmp_path, "ner", **usual, **options))
    return figures["history"][0]["loss"]


@three_in_full
def test_a_class_weighs_in_the_loss_what_is_asked(checkpoint, tmp_path):
    write_ner(tmp_path / "data")
    others = loss_of(checkpoint, tmp_path, "others", class_weights={"B-ANIMAL": 0.0})
    animals = loss_of(checkpoint, tmp_path, "animals", class_weights={"O": 0.0})
    assert abs(others - animals) > 0.01
    balanced = loss_of(checkpoint, tmp_path, "balanced", class_weights="balanced")
    # Each class has half of the weight, although 34 of the 42 words are not entities.
    assert balanced == pytest.approx((others + animals) / 2, abs=1e-5)


def test_a_lower_block_learns_less_where_the_rate_decays(checkpoint, tmp_path):
    write_cola(tmp_path / "data")
    finetuning.run(config_of(checkpoint, tmp_path, "cola", epochs=1, learning_rate=1e-2, layer_decay=1e-3))
    before, after = arrays_of(checkpoint), arrays_of(tmp_path / "run" / "model")
    moved = [np.abs(after[name] - before[name]).max() for name in ("block_0/output/kernel", "block_1/output/kernel")]
    assert 0 < moved[0] < moved[1] / 100
    assert moved[1] > 1e-3


ARCHITECTURES = {
    "mrpc": "ElectraForSequenceClassification",
    "ner": "ElectraForTokenClassification",
    "squad1.1": "ElectraForQuestionAnswering",
    "codah": "ElectraForMultipleChoice",
}


@pytest.fixture(scope="module")
def electra(tmp_path_factory):
    """A small ELECTRA's two checkpoints."""
    keras.utils.set_random_seed(7)
    config = kbi.ElectraConfig(
        len(WORDS), hidden_size=12, num_layers=2, num_heads=2, intermediate_size=21, embedding_size=7, max_length=64
    )
    model = kbi.ElectraPretrainer(kbi.ElectraEncoder(config), kbi.WordPieceTokenizer(WORDS), generator_size=0.5)
    directory = tmp_path_factory.mktemp("electra")
    model.save_pretrained(directory)
    return directory


@pytest.mark.parametrize(
    ("task", "architecture"),
    full_but(ARCHITECTURES.items(), ("mrpc", "ElectraForSequenceClassification")),
)
def test_every_task_starts_from_an_electra_s_discriminator(task, architecture, electra, tmp_path):
    {"mrpc": write_mrpc, "ner": write_ner, "codah": write_codah}.get(task, write_squad)(tmp_path / "data")
    options = {"learning_rate": 1e-12, "epochs": 1, "layer_decay": 0.8}
    finetuning.run(config_of(electra, tmp_path, task, **options))
    before, after = (
        {weight.path: keras.ops.convert_to_numpy(weight) for weight in kbi.encoder_from_pretrained(path).weights}
        for path in (electra, tmp_path / "run" / "model")
    )
    for path, array in after.items():
        np.testing.assert_allclose(array, before[path], atol=1e-6, err_msg=path)
    written = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert written["architectures"] == [architecture]


def test_layer_rates_fall_from_the_top_block_to_the_embeddings():
    paths = ["token_embedding/embeddings", "block_0/output/kernel", "block_1/output/bias", "pooler/kernel", "x/kernel"]
    assert kbi.optimization.layer_rates(paths, 0.5) == [0.25, 0.5, 1.0, 1.0, 1.0]


@every_backend
def test_a_lower_layer_takes_smaller_steps():
    inputs = keras.Input((1,))
    layers = [keras.layers.Dense(1, kernel_initializer="zeros", name=name) for name in ("block_0", "block_1")]
    model = keras.Model(inputs, layers[0](inputs) + layers[1](inputs))
    optimizer = kbi.optimization.BertAdamW(0.1, weight_decay=0.0, layer_decay=0.25)
    model.compile(optimizer=optimizer, loss="mse")
    model.fit(np.ones((4, 1)), np.ones((4, 1)), verbose=0)
    kernels = [float(keras.ops.convert_to_numpy(layer.kernel)[0, 0]) for layer in layers]
    assert kernels == pytest.approx([0.025, 0.1], rel=1e-3)
