import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy
from families import CONFIGS, rows_for
from reference_models import open_in_transformers, outputs_of, random_model

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints.hub import PUBLISHED
from keras_bert_impl.encoders import count_parameters

WITH_TASKS = CONFIGS["Ernie, with tasks and gelu"]


def test_the_published_size_has_the_parameters_of_its_tables_and_blocks():
    config = kbi.ErnieConfig.from_name("ernie_base")
    # (18000 words + 513 positions + 2 segments + 2 vectors of the norm) * 768, 12 blocks and a pooler
    assert count_parameters(config) == 14_221_056 + 12 * 7_087_872 + 590_592
    assert [one.num_parameters for one in PUBLISHED if one.name == "ernie-1.0-base-zh"] == [99_866_112]
    assert count_parameters(dataclasses.replace(config, has_task_embedding=True)) == 99_866_112 + 3 * 768


def test_both_objectives_of_pre_training_are_scored_as_by_transformers(small_batch, tmp_path):
    rows, positions = rows_for(WITH_TASKS, small_batch), small_batch["mask_positions"]
    theirs = outputs_of(random_model("ErnieForPreTraining", WITH_TASKS, tmp_path / "theirs"), rows)
    model = kbi.Pretrainer.from_pretrained(tmp_path / "theirs")
    found = model.predict_on_batch({**rows, "mask_positions": positions})
    at_masks = np.take_along_axis(theirs["prediction_logits"], positions[..., None], axis=1)
    np.testing.assert_allclose(found["masked_lm_logits"], at_masks, atol=1e-5)
    np.testing.assert_allclose(found["next_sentence_logits"], theirs["seq_relationship_logits"], atol=1e-5)
    model.save_pretrained(tmp_path / "ours")
    again = outputs_of(open_in_transformers("ErnieForPreTraining", tmp_path / "ours"), rows)
    np.testing.assert_allclose(again["prediction_logits"], theirs["prediction_logits"], atol=1e-6)


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
