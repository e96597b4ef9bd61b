"""Exports read texts that are longer than a row as the model does."""

import json

import keras
import numpy as np
import pytest
from made_exports import ask_graph, make
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import open_checkpoint
from keras_bert_impl.export import export_onnx, export_saved_model, open_export
from keras_bert_impl.preprocessing import long_texts as in_memory
from keras_bert_impl.text.rows import numpy_arrays
from keras_bert_impl.text.tokenizers.rows import best_windows
from keras_bert_serving.row_servable import RowServable
from keras_bert_serving.servable import SessionOptions
from keras_bert_training.commands.convert import model_of

# Of 9 tokens that fit into a row: none, one, as many as fit, one more, two windows and a half, more than are computed
# at once.
LENGTHS = (0, 1, 9, 10, 23, 300)
TEXTS = [" ".join("the cat sat on a mat in rain and ran".split()[n % 10] for n in range(count)) for count in LENGTHS]
MODELS = {
    "classifier": ("TextClassifier", {}),
    "several labels": ("TextClassifier", {"multi_label": True}),
    "regressor": ("TextRegressor", {}),
    "embedder": ("TextEmbedder", {}),
    "embedder of length 1": ("TextEmbedder", {"normalize": True}),
}
OF_ROWS = [*((name, "windows") for name in MODELS), ("several labels", "head_and_tail")]


def check(served, model):
    """Asserts that named outputs for TEXTS are the model's."""
    expected = model.predict(TEXTS, verbose=0)
    if isinstance(model, kbi.TextEmbedder):
        found = served["vector"]
    elif isinstance(model, kbi.TextRegressor):
        found = served["value"][:, None]
    else:
        found = served["logits"]
        shares = keras.ops.sigmoid if model.multi_label else keras.ops.softmax
        np.testing.assert_allclose(served["probabilities"], shares(expected), atol=1e-5)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    cut = make(type(model).__name__, **{**model_arguments(model), "long_texts": "cut"})
    assert np.abs(cut.predict(TEXTS, verbose=0) - expected)[3:].max(axis=1).min() > 1e-3  # it matters


def model_arguments(model):
    return {name: getattr(model, name) for name in ("multi_label", "normalize") if name in model.head_arguments}


@on("tensorflow")
@pytest.mark.parametrize(
    "name, long_texts",
    full_but(
        [(name, long_texts) for name in MODELS for long_texts in ("windows", "head_and_tail")],
        ("several labels", "windows"),
        ("classifier", "head_and_tail"),
    ),
)
def test_a_saved_model_reads_long_texts_as_the_model_does_and_cuts_pairs(name, long_texts):
    kind, arguments = MODELS[name]
    model = make(kind, **arguments, long_texts=long_texts)
    check(ask_graph(model, text=TEXTS), model)
    if (name, long_texts) == ("classifier", "windows"):
        assert ask_graph(model, text=[])["logits"].shape == (0, 3)
        found = ask_graph(model, "pairs", text=TEXTS, text_pair=TEXTS[::-1])
        np.testing.assert_allclose(found["logits"], model.predict((TEXTS, TEXTS[::-1]), verbose=0), atol=1e-5)


@on("tensorflow")
@pytest.mark.full
def test_an_export_says_how_it_reads_long_texts(tmp_path):
    model = make("TextClassifier", long_texts="windows")
    export_saved_model(model, tmp_path / "served")
    check(open_export(tmp_path / "served")(TEXTS), model)
    assert json.loads((tmp_path / "served/config.json").read_text())["export"]["long_texts"] == "windows"


@on("tensorflow")
def test_a_saved_model_labels_every_word_of_a_text_as_tag_does():
    model = make("TokenClassifier")
    bias = model.get_layer("classifier").bias
    bias.assign(bias - model.predict(TEXTS[2:3], verbose=0).mean(axis=(0, 1)))  # so that words get different labels
    spaces = "the\xa0cat\x1csat\x85on\u2003a\u3000mat\u2028in \u1680rain\t\x1f"
    texts = [*TEXTS[1:], "dogs " * 40, "the dogs", "", "rain dogs cat \u200d " * 9, spaces]
    served = ask_graph(model, text=texts)
    for text, *found in zip(texts, served["words"], served["labels"], served["probabilities"], strict=True):
        labels = model.tag([text.split()])[0] if text else []
        count = len(text.split())
        assert [word.decode() for word in found[0][:count]] == text.split() and not any(found[0][count:])
        assert [label.decode() for label in found[1][:count]] == [label.label for label in labels]
        np.testing.assert_allclose(found[2][:count], [label.probability for label in labels], atol=1e-5)
    assert len(set(served["labels"][4][:300])) > 1


@on("tensorflow")
@pytest.mark.parametrize("room", [1, 2, 5, 9])
def test_windows_in_a_graph_are_those_in_memory(room):
    import tensorflow as tf

    from keras_bert_impl.preprocessing.graphs import tensorflow_arrays
    from keras_bert_impl.preprocessing.graphs.long_texts import windows_of

    texts = [list(range(count)) for count in range(23)]
    begins, expected = in_memory.windows_of(texts, room)
    found, counts = windows_of(tf.ragged.constant(texts, tf.int32, row_splits_dtype="int64"), room)
    assert found.to_list() == expected and counts.numpy().tolist() == list(map(len, begins))
    for ids, of_text in zip(texts[1:], begins[1:], strict=True):
        number, place = best_windows(tf.range(len(ids)), len(ids), room, tensorflow_arrays)
        assert number.numpy().tolist() == best_windows(np.arange(len(ids)), len(ids), room, numpy_arrays)[0].tolist()
        assert (place.numpy() + np.array(of_text)[number.numpy()]).tolist() == ids


@on("torch")
@pytest.mark.parametrize(("name", "long_texts"), full_but(OF_ROWS, ("several labels", "windows")))
def test_rows_of_a_runtime_hold_what_the_model_reads_of_long_texts(name, long_texts, tmp_path):
    pytest.importorskip("onnxruntime")
    kind, arguments = MODELS[name]
    model = make(kind, **arguments, long_texts=long_texts)
    export_onnx(model, tmp_path / "served")
    check(open_export(tmp_path / "served")(TEXTS), model)
    served = RowServable("one", 1, tmp_path / "served", SessionOptions())
    texts = np.array([text.encode() for text in TEXTS], object)
    check(served.run("serving_default", {"text": texts}), model)
    if kind == "TextClassifier":
        pair = np.array([b"it slept"] * len(TEXTS), object)
        found = served.run("pairs", {"text": texts, "text_pair": pair})["logits"]
        np.testing.assert_allclose(found, model.predict((TEXTS, ["it slept"] * len(TEXTS)), verbose=0), atol=1e-5)


@pytest.mark.parametrize("name", ["classifier", "regressor", "embedder"])
def test_a_checkpoint_is_exported_as_it_reads_long_texts(name, tmp_path):
    kind, arguments = MODELS[name]
    make(kind, **arguments, long_texts="windows").save_pretrained(tmp_path / "checkpoint")
    found = model_of(open_checkpoint(tmp_path / "checkpoint"), encoder_only=False)
    assert type(found).__name__ == kind and found.long_texts == "windows"
