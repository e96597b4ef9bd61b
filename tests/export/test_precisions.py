"""Exports in fewer bits: each is smaller, and its outputs are close to the model's, but not equal."""

import shutil

import keras
import numpy as np
import pytest
from conftest import WORDS
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.export import (
    export_litert,
    export_onnx,
    export_openvino,
    formats,
    handover,
    opened,
    precisions,
    row_samples,
    runtimes,
)

BACKEND = keras.backend.backend()
TEXTS = ["the cat sat on a mat", "a dog ran in rain .", "it is good", "red blue , bad"] * 4


@pytest.fixture(scope="module")
def model():
    """A classifier wide enough for the errors of rounding to average out, and for its weights to fill its file."""
    tokenizer = kbi.WordPieceTokenizer([*WORDS, *(f"word{number}" for number in range(200))])
    config = kbi.BertConfig(
        tokenizer.vocabulary_size, hidden_size=64, num_layers=1, num_heads=2, intermediate_size=256, max_length=16
    )
    model = kbi.TextClassifier(kbi.BertEncoder(config), 3, tokenizer)
    random = np.random.default_rng(5)
    for weight in model.weights:
        if weight.path.endswith(("kernel", "embeddings")):
            weight.assign(random.normal(size=weight.shape, scale=0.1))
    return model


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    """A directory with the model in float32, in the formats that this backend writes, and the samples."""
    folder = tmp_path_factory.mktemp("precisions") / "float32"
    form = formats.FORMATS[{"torch": "onnx", "tensorflow": "litert"}[BACKEND]]
    handover.write_on(*form.writer, model, model.tokenizer, 16, folder)
    if BACKEND == "torch":
        formats.convert_to_openvino(folder)
    return folder


def reduced(written, target, format_name, precision, model):
    """Reduces a copy of the model; returns its size as a share of that in float32, and its largest difference."""
    shutil.copytree(written, target)
    form, rows = formats.FORMATS[format_name], None
    path = target / form.main_file
    if format_name == "openvino":
        # With padding, pairs and [CLS], as in the samples: the ranges of activations are those of these rows.
        rows = [row_samples.rows_of(model, (8, length, 1), 16, seed=length) for length in (5, 7, 9, 12, 16)]
        for batch in rows:
            batch["input_ids"][:, 0] = model.tokenizer.cls_id
    form.reduce(path, precision, rows)
    path = path.with_suffix(".bin") if format_name == "openvino" else path
    run = form.open(target, None, precision)
    difference = row_samples.largest_difference(run, row_samples.read(written))
    return path.stat().st_size / (written / path.relative_to(target)).stat().st_size, difference


# OpenVINO stores bfloat16 as float16; whether it computes in bfloat16 depends on the processor.
CASES = {
    "torch": [
        pytest.param("onnx", "float16", 0.7, marks=pytest.mark.full),
        ("onnx", "int8_weights", 0.6),
        ("onnx", "int8", 0.6),
        ("openvino", "float16", 0.6),
        ("openvino", "bfloat16", 0.6),
        ("openvino", "int8_weights", 0.4),
        ("openvino", "int8", 0.5),
    ],
    "tensorflow": [("litert", "int8_weights", 0.6), ("litert", "int8", 0.6)],
}


@pytest.mark.parametrize(("format_name", "precision", "share"), CASES.get(BACKEND, []))
def test_fewer_bits_make_a_smaller_model_of_nearly_the_same_outputs(
    format_name, precision, share, written, model, tmp_path
):
    for package in formats.FORMATS[format_name].tools:
        pytest.importorskip(package)
    size, difference = reduced(written, tmp_path / "copy", format_name, precision, model)
    assert size < share
    assert 1e-6 < difference < 0.05


@on("torch")  # OpenVINO
def test_ranges_of_activations_are_those_of_all_rows_whatever_their_batches(written, model, tmp_path):
    pytest.importorskip("nncf")
    batches = [row_samples.rows_of(model, (8, length, 1), 16, seed=length) for length in (5, 9, 16)]
    alone = [{name: array[[row]] for name, array in batch.items()} for batch in batches for row in range(8)]
    found = []
    for name, rows in (("batches", batches), ("alone", alone)):
        shutil.copytree(written, tmp_path / name)
        precisions.reduce_openvino(tmp_path / name / "openvino/openvino_model.xml", "int8", rows)
        found.append(runtimes.open_openvino(tmp_path / name)(batches[1])["logits"])
    exact = runtimes.open_openvino(written)(batches[1])["logits"]
    np.testing.assert_allclose(found[0], found[1], atol=np.abs(found[0] - exact).max() / 3)


FORMATS = {"torch": full_but(["onnx", "openvino"], "onnx"), "tensorflow": ["litert"]}


@pytest.mark.parametrize("format_name", FORMATS.get(BACKEND, []))
def test_a_text_in_int8_gets_the_same_answer_whatever_texts_run_with_it(format_name, model, tmp_path):
    for package in formats.FORMATS[format_name].tools:
        pytest.importorskip(package)
    texts = ["the cat sat on a mat in rain and ran", "word7", "it is good word19 word3 , bad", "red word100 !"]
    calibration = {"calibration_texts": texts} if format_name == "openvino" else {}
    write = {"onnx": export_onnx, "openvino": export_openvino, "litert": export_litert}[format_name]
    write(model, tmp_path / "served", precision="int8", **calibration)
    answer = opened.open_export(tmp_path / "served")
    alone = np.concatenate([answer([text])["logits"] for text in texts])
    np.testing.assert_allclose(answer(texts)["logits"], alone, atol=1e-6)


def test_a_precision_that_a_format_lacks_is_refused_before_anything_is_written(model, tmp_path):
    for export, precision, message in (
        (export_onnx, "bfloat16", "format openvino"),
        (export_litert, "float16", "int8_weights"),
        (export_openvino, "int4", "it can be float32"),
        (export_openvino, "int8", "calibration_texts"),
    ):
        with pytest.raises(ValueError, match=message):
            export(model, tmp_path / "served", precision=precision)
    assert list(tmp_path.iterdir()) == []


def test_calibration_rows_hold_every_text_once_without_needless_padding(model):
    batches = precisions.calibration_rows(model, (TEXTS, TEXTS[::-1]), model.tokenizer, 16)
    assert sum(len(rows["input_ids"]) for rows in batches) == len(TEXTS)
    assert all(rows["attention_mask"][:, -1].any() and rows["token_type_ids"].any() for rows in batches)


def test_small_tables_stay_exact_for_segments_that_no_text_of_calibration_has():
    openvino = pytest.importorskip("openvino")
    ops = openvino.opset8
    rows = ops.parameter([-1, 2], np.float32)
    segments = ops.matmul(rows, ops.constant(np.ones((2, 64), np.float32)), False, False, name="segments")
    dense = ops.matmul(segments, ops.constant(np.ones((64, 64), np.float32)), False, False, name="dense")
    assert precisions.narrow_products(openvino.Model([dense], [rows])) == ["segments"]
