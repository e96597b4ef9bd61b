"""What the pictures of `kbi.plots` show: the numbers in them, and what their titles say."""

import json

import keras
import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import revealing_config
from keras import ops
from tiers import every_backend, full_on, once, three_in_full

import keras_bert_impl as kbi

TEXT = "the cat sat on a mat"


@pytest.fixture
def classifier(small_tokenizer):
    keras.utils.set_random_seed(3)
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=16, initializer_range=0.5))
    return kbi.TextClassifier(encoder, 2, tokenizer=small_tokenizer, class_names=["bad", "good"])


def lines_of(axis):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines}


@once
def test_figures_are_returned_and_not_shown():
    figure = kbi.plots.by_length({"BERT": {512: 1.0, 1024: 4.0}, "Longformer": {512: 1.5, 1024: 3.0}})
    assert plt.get_fignums() == []
    (axis,) = figure.axes
    assert lines_of(axis) == {"BERT": ([512, 1024], [1.0, 4.0]), "Longformer": ([512, 1024], [1.5, 3.0])}
    assert axis.get_title() == "At 1,024 tokens Longformer takes least"


@once
def test_curves_of_a_history_of_keras_and_of_runs_side_by_side(tmp_path):
    history = keras.callbacks.History()
    history.history = {"loss": [3.0, 1.0], "val_loss": [2.5, 2.75], "accuracy": [0.5, 0.75]}
    loss, accuracy = kbi.plots.curves(history).axes
    assert lines_of(loss) == {"training": ([1, 2], [3.0, 1.0]), "validation": ([1, 2], [2.5, 2.75])}
    assert lines_of(accuracy) == {"training": ([1, 2], [0.5, 0.75])}
    assert (loss.get_title(), accuracy.get_title()) == ("loss: 2.5", "accuracy: 0.75")
    rows = [{"step": 10, "loss": 2.0, "val_loss": 3.0}, {"step": 20, "loss": 1.0, "val_loss": 1.5}]
    (tmp_path / "history.json").write_text(json.dumps(rows))
    (axis,) = kbi.plots.curves({"Keras": history, "run": tmp_path}, ["loss"]).axes
    assert lines_of(axis)["run validation"] == ([10, 20], [3.0, 1.5])
    assert axis.get_title() == "loss: 1.5, run"
    epochs = [{"loss": 0.7, "value": 0.6, "seconds": 3.0}, {"loss": 0.5, "value": 0.8, "seconds": 4.0}]
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "metrics.json").write_text(json.dumps({"main_metric": "f1", "history": epochs}))
    loss, f1 = kbi.plots.curves(tmp_path / "tuned").axes
    assert lines_of(loss) == {"training": ([1, 2], [0.7, 0.5])} and f1.get_title() == "f1: 0.8"
    assert lines_of(f1) == {"validation": ([1, 2], [0.6, 0.8])}


@once
def test_confusions_are_counted_by_label_and_prediction():
    figure = kbi.plots.confusion(["a", "a", "b", "c"], ["a", "b", "b", "a"])
    (axis,) = figure.axes
    assert axis.images[0].get_array().tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]  # rows are labels
    assert axis.get_title() == "4 examples, 50.0% right"


@once
def test_the_error_of_calibration_is_the_mean_distance_of_shares_from_probabilities():
    """Ten predictions of 0.6, of which five are right, and ten of 0.9, all right: distances of 0.1 each."""
    sure = np.array([0.6] * 10 + [0.9] * 10)
    labels = np.array([1, 0] * 5 + [1] * 10)
    (axis,) = kbi.plots.reliability(labels, sure, bins=2).axes
    assert lines_of(axis)["20 examples"] == (pytest.approx([0.6, 0.9]), [0.5, 1.0])
    assert axis.get_title().startswith("Probabilities are off by 10.0%")
    both = kbi.plots.reliability(labels, np.stack([1 - sure, sure], axis=1), bins=2).axes[0]
    assert lines_of(both)["20 examples"] == lines_of(axis)["20 examples"]
    for wrong in (np.array([[2.0, -1.0]] * 20), np.full(20, np.nan)):  # logits, and what is no number
        with pytest.raises(ValueError):
            kbi.plots.reliability(labels, wrong)
    names, named = ["good", "bad"], np.array(["good", "bad"])[labels]  # not in the order of the alphabet
    assert kbi.plots.reliability(named, sure, bins=2, names=names).axes[0].get_title() == axis.get_title()
    # Three of four are right where 0.6 was said.
    (axis,) = kbi.plots.reliability(np.array([1, 1, 1, 0]), np.array([0.6] * 4), bins=1).axes
    assert axis.get_title() == "Probabilities are off by 15.0%, not sure enough"


@once
def test_lengths_count_control_tokens(classifier):
    texts = ["the cat", "the cat sat on a mat in rain . a red dog ran . it is"]  # 4 and 18 tokens
    (axis,) = kbi.plots.lengths(classifier, texts).axes
    assert axis.lines[0].get_xdata()[0] == 16
    # A batch of both is as long as the cut one: 20 of 32 places are tokens.
    assert axis.get_title().startswith("50.0% of 2 texts have more than 16 tokens; padding 38%")


@once
def test_vectors_are_placed_by_their_directions_of_most_variance():
    random = np.random.default_rng(0)
    found = random.normal(size=(50, 4)) * [9.0, 0.1, 3.0, 0.0]
    (axis,) = kbi.plots.vectors(found, ["x", "y"] * 25).axes
    assert [points.get_label() for points in axis.collections] == ["x", "y"]
    across = axis.collections[0].get_offsets()[:, 0]
    assert abs(np.corrcoef(across, found[::2, 0])[0, 1]) > 0.99
    assert axis.get_title() == "50 vectors; the map shows 100% of how they differ"


@three_in_full
def test_attention_is_that_of_the_model_and_its_tokens_are_named(classifier):
    figure = kbi.plots.attention(classifier, TEXT, layer=0, head=2)
    (axis,) = figure.axes
    tokens = [label.get_text() for label in axis.get_yticklabels()]
    assert tokens == ["[CLS]", *TEXT.split(), "[SEP]"]
    encoder = kbi.BertEncoder(classifier.encoder.config, return_attention=True)
    encoder.set_weights(classifier.encoder.get_weights())
    expected = ops.convert_to_numpy(encoder(classifier.rows([TEXT]))["attention_probabilities"])[0, 0, 2, :8, :8]
    np.testing.assert_allclose(axis.images[0].get_array(), expected, atol=1e-6)
    np.testing.assert_allclose(expected.sum(axis=1), 1, atol=1e-5)
    assert len(kbi.plots.attention(classifier, TEXT).axes) == 3


@every_backend
@full_on("jax", "tensorflow")
def test_contributions_are_the_slopes_along_each_token(classifier, monkeypatch):
    """Gradient x input is how an output changes as the token's vector is stretched."""
    values, tokens, name = kbi.plots.contributions_of(classifier, TEXT)
    assert tokens == ["[CLS]", *TEXT.split(), "[SEP]"] and name == classifier.classify(TEXT)[0].label
    place = ["bad", "good"].index(name)
    embedding = classifier.encoder.token_embedding
    table, before = ops.convert_to_numpy(embedding.embeddings), classifier.predict([TEXT], verbose=0)[0, place]
    step = 1e-3
    for number, token in enumerate(tokens):
        stretched = table.copy()
        stretched[classifier.tokenizer.token_to_id(token)] *= 1 + step
        embedding.embeddings.assign(stretched)
        slope = float(classifier.predict([TEXT], verbose=0)[0, place] - before) / step
        assert values[number] == pytest.approx(slope, abs=2e-3 + 0.02 * abs(slope)), token
    embedding.embeddings.assign(table)
    assert np.abs(values).max() > 0.1
    other = {"bad": "good", "good": "bad"}[name]
    assert kbi.plots.contributions_of(classifier, TEXT, other)[2] == other
    (axis,) = kbi.plots.contributions(classifier, TEXT).axes
    assert axis.get_title() == f"Most for {name}: {tokens[int(np.argmax(values))]}"
    monkeypatch.setattr(kbi.plots, "TOKENS_OF_LINE", 5)
    in_lines = kbi.plots.contributions(classifier, TEXT).axes
    assert [label.get_text() for axis in in_lines for label in axis.get_xticklabels()] == tokens and len(in_lines) == 2
    heights = [bar.get_height() for axis in in_lines for bar in axis.patches]
    np.testing.assert_allclose(heights, values / np.abs(values).max(), atol=1e-5)
