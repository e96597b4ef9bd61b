"""Keras' own `export`."""

import numpy as np
import pytest
from conftest import without
from tiers import on

import keras_bert_impl as kbi


@on("tensorflow")  # what Keras can export there
def test_keras_exports_a_graph_of_token_ids(small_config, small_batch, tmp_path):
    tf = pytest.importorskip("tensorflow")
    model, rows = kbi.TextClassifier(kbi.BertEncoder(small_config), 3), without(small_batch, "mask_positions")
    model.export(tmp_path / "served", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "served"))
    served = loaded.serve({name: tf.constant(array) for name, array in rows.items()})
    np.testing.assert_allclose(served, model.predict_on_batch(rows), atol=1e-5)


@on("jax", "torch")  # what Keras cannot export there
@pytest.mark.parametrize("kind", ["BertEncoder", "Pretrainer", "TextClassifier"])
def test_where_keras_cannot_export_the_message_says_what_can(kind, small_config, tmp_path):
    pytest.importorskip("tensorflow")
    encoder = kbi.BertEncoder(small_config)
    model = {"BertEncoder": encoder}.get(kind) or getattr(kbi, kind)(encoder, *([3] if "Text" in kind else []))
    with pytest.raises(
        ValueError, match=rf"Keras cannot export {kind} .*export_saved_model\(model, directory\) writes"
    ):
        model.export(tmp_path / "served")


@on("jax")  # which Keras exports to a SavedModel alone
def test_the_function_for_a_format_is_named(small_config, tmp_path):
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 3)
    with pytest.raises(ValueError, match=r"as 'onnx' here .*keras_bert_impl.export.export_onnx\(model, path\) writes"):
        model.export(tmp_path / "model.onnx", format="onnx")


def test_an_unknown_format_is_named(small_config, tmp_path):
    with pytest.raises(ValueError, match="as 'coreml' here"):
        kbi.BertEncoder(small_config).export(tmp_path / "served", format="coreml")
