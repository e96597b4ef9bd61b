"""Which layers of its teacher a student begins with."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_bert_impl as kbi
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.models.student import copy_layers, evenly_spaced, student_config


@pytest.fixture
def teacher(small_config):
    keras.utils.set_random_seed(5)
    config = dataclasses.replace(small_config, num_layers=5, initializer_range=0.3)
    return kbi.MaskedLM(kbi.BertEncoder(config))


def as_arrays(model):
    return {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.weights}


@pytest.mark.parametrize(
    ("layers", "count", "expected"),
    [
        (12, 6, [0, 2, 4, 7, 9, 11]),  # as in DistilBERT's extract_distilbert.py
        (12, 12, list(range(12))),
        (6, 3, [0, 2, 5]),
        (6, 2, [0, 5]),
        (5, 1, [0]),
    ],
)
def test_layers_are_spaced_evenly_from_the_first_to_the_last(layers, count, expected):
    assert evenly_spaced(layers, count) == expected


def test_a_student_has_half_of_the_layers_and_the_other_sizes_of_its_teacher(small_config):
    config = student_config(dataclasses.replace(small_config, num_layers=5))
    assert (config.model_type, config.num_layers) == ("distilbert", 2)
    for name in ("vocabulary_size", "hidden_size", "num_heads", "intermediate_size", "max_length"):
        assert getattr(config, name) == getattr(small_config, name)


@pytest.mark.parametrize("family", ["distilbert", "bert"])
def test_every_weight_of_the_student_is_that_of_its_layer_in_the_teacher(teacher, family):
    config = student_config(teacher.encoder.config, family, num_layers=3)
    student = kbi.MaskedLM(build_encoder(config))
    assert copy_layers(student, teacher) == [0, 2, 4]
    ours, theirs = as_arrays(student), as_arrays(teacher)
    for path, array in ours.items():
        source = path.replace("block_2/", "block_4/").replace("block_1/", "block_2/")
        expected = theirs[source]
        if path == "position_embedding/embeddings" and family == "distilbert":
            expected = expected + theirs["segment_embedding/embeddings"][0]
        np.testing.assert_array_equal(array, expected, err_msg=path)


def test_a_distilbert_of_all_layers_computes_what_its_teacher_computes(teacher, small_batch):
    """Its positions hold the teacher's first segment."""
    student = kbi.MaskedLM(kbi.DistilBertEncoder(student_config(teacher.encoder.config, num_layers=5)))
    rows = {**small_batch, "segment_ids": np.zeros_like(small_batch["segment_ids"])}
    assert np.abs(student.predict_on_batch(rows) - teacher.predict_on_batch(rows)).max() > 1e-2
    copy_layers(student, teacher)
    np.testing.assert_allclose(student.predict_on_batch(rows), teacher.predict_on_batch(rows), atol=1e-5)
