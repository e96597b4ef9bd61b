"""Keras' own `export`."""

import dataclasses

import numpy as np
import pytest
from conftest import without
from tiers import on

import keras_bert_impl as kbi


@on("tensorflow")  # what Keras can export there
def test_keras_exports_a_graph_of_token_ids(small_config, small_batch, tmp_path):
    tf = pytest.importorskip("tensorflow")
    encoder = kbi.BertEncoder(dataclasses.replace(small_config, num_layers=1))
    model, rows = kbi.TextClassifier(encoder, 3), without(small_batch, "mask_positions")
    model.export(tmp_path / "served", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "served"))
    served = loaded.serve({name: tf.constant(array) for name, array in rows.items()})
    np.testing.assert_allclose(served, model.predict_on_batch(rows), atol=1e-5)
