import json

import numpy as np
import pytest
import safetensors.numpy
from families import CONFIGS, rows_for
from reference_models import random_model

import keras_bert_impl as kbi

WITH_TASKS = CONFIGS["Ernie, with tasks and gelu"]


def test_the_vectors_of_other_tasks_are_kept_and_only_that_of_task_0_is_added(small_batch, tmp_path):
    rows = rows_for(WITH_TASKS, small_batch)
    random_model("ErnieModel", WITH_TASKS, tmp_path)
    before = kbi.ErnieEncoder.from_pretrained(tmp_path)
    before.save_pretrained(tmp_path / "again")
    name = "embeddings.task_type_embeddings.weight"
    tensors, again = (
        safetensors.numpy.load_file(path / "model.safetensors") for path in (tmp_path, tmp_path / "again")
    )
    np.testing.assert_array_equal(again[name], tensors[name])
    changes = []
    for task in (0, 4):
        changed = {**tensors, name: tensors[name] + np.eye(5, dtype="float32")[task][:, None] * np.arange(15.0)}
        safetensors.numpy.save_file(
            {key: np.float32(array) for key, array in changed.items()}, tmp_path / "model.safetensors"
        )
        after = kbi.ErnieEncoder.from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
        changes.append(np.abs(after - before.predict_on_batch(rows)["sequence_output"]).max())
    assert changes[0] > 0.1 and changes[1] == 0


def test_a_checkpoint_without_its_table_of_tasks_is_refused(tmp_path):
    kbi.ErnieEncoder(CONFIGS["Ernie"]).save_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, "use_task_id": True}))
    with pytest.raises(ValueError, match=r"has no tensor ernie\.embeddings\.task_type_embeddings\.weight"):
        kbi.encoder_from_pretrained(tmp_path)
