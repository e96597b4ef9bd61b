"""ONNX, OpenVINO and LiteRT files, each on the backend that writes it; one test crosses from one to another."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from conftest import WORDS, revealing_config
from every_model import MODELS
from families import CONFIGS, encoder_of
from made_exports import make, with_large_weights
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.export import array_names, export_litert, export_onnx, formats, opened, row_samples, runtimes

BACKEND = keras.backend.backend()
KINDS = [kind for kind in MODELS if kind not in ("Pretrainer", "FeatureTagger")]
TEXTS = ["The cat sat on the mat.", "It slept."]


def check_outputs(model, run):
    """Outputs of rows of other sizes than those that the export itself compares."""
    for size in ((1, 1, 1), (5, 13, 3), (2, 7, 2)):
        rows = row_samples.rows_of(model, size, 13, seed=9)
        expected = row_samples.served(model)({name: keras.ops.convert_to_tensor(array) for name, array in rows.items()})
        found = run(rows)
        assert set(found) == set(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], keras.ops.convert_to_numpy(array), atol=1e-5, err_msg=name)


def arrays_of_rows(rows):
    """The rows of a model as a file has them."""
    return {name: rows[ours] for name, ours in array_names.INPUTS.items()}


def check_example(directory):
    """Runs example.py in a process that finds nothing of this project."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "KERAS_BACKEND")}
    command = [sys.executable, "-I", directory / "example.py"]
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_outputs_are_those_that_predict_gives():
    model = make("TextClassifier", multi_label=True)
    named = row_samples.served(model)(arrays_of_rows(model.rows(TEXTS)))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(named["logits"]), model.predict(TEXTS, verbose=0), atol=1e-6)
    expected = {label.label: label.probability for label in model.classify(TEXTS, top_k=None)[1]}
    found = keras.ops.convert_to_numpy(named["probabilities"])[1]
    assert dict(zip(model.class_names, found.tolist(), strict=True)) == pytest.approx(expected, abs=1e-6)


class Doubled:
    """Mixin of a model that computes twice what its kind does."""

    def call(self, inputs, training=None, mask=None):
        return 2 * super().call(inputs, training=training, mask=mask)


@pytest.mark.parametrize(("kind", "output"), [("TextClassifier", "logits"), ("TextEmbedder", "sentence_embedding")])
def test_what_a_subclass_computes_is_exported(kind, output):
    model = make(kind)
    subclass = type(kind, (Doubled, type(model)), {})
    doubled = subclass.from_config(model.get_config())
    doubled.set_weights(model.get_weights())
    arrays = arrays_of_rows(model.rows(TEXTS))
    found, expected = (keras.ops.convert_to_numpy(row_samples.served(one)(arrays)[output]) for one in (doubled, model))
    np.testing.assert_allclose(found, 2 * expected, atol=1e-5)


def test_mean_of_an_encoder_leaves_padding_out():
    model, rows = make("BertEncoder"), make("TextEmbedder").rows(TEXTS)
    found = row_samples.served(model)(arrays_of_rows(rows))
    outputs = {name: keras.ops.convert_to_numpy(array) for name, array in found.items()}
    tokens = rows["padding_mask"][1].sum()
    np.testing.assert_allclose(outputs["mean_pooled"][1], outputs["last_hidden_state"][1, :tokens].mean(0), atol=1e-6)


@pytest.mark.parametrize("kind", full_but(KINDS, "MaskedLM"))
@on("torch")  # it writes ONNX files
def test_onnx_and_openvino_give_the_models_outputs_for_rows_of_any_size(kind, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    model = make(kind)
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    export_onnx(model, tmp_path / "onnx", tokenizer)
    check_outputs(model, runtimes.open_onnx(tmp_path / "onnx"))
    formats.convert_to_openvino(tmp_path / "onnx")
    check_outputs(model, runtimes.open_openvino(tmp_path / "onnx"))
    if kind != "MaskedLM":
        check_example(tmp_path / "onnx")


@pytest.mark.parametrize("kind", full_but(KINDS, "MultipleChoice"))
@on("tensorflow")  # it writes LiteRT files
def test_litert_gives_the_models_outputs_for_rows_of_any_size(kind, tmp_path):
    pytest.importorskip("ai_edge_litert")
    model = make(kind)
    export_litert(model, tmp_path / "litert", kbi.WordPieceTokenizer(WORDS))
    check_outputs(model, runtimes.open_litert(tmp_path / "litert"))
    if kind != "MultipleChoice":
        check_example(tmp_path / "litert")


OTHERS = ("DistilBert", "Electra", "Roberta", "Albert", "Ernie", "bfloat16")


@pytest.mark.full
@pytest.mark.parametrize("family", OTHERS)
@on("tensorflow", "torch")  # written by the others
def test_other_encoders_are_exported_in_float32(family, tmp_path):
    export = export_onnx if BACKEND == "torch" else export_litert
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    config = CONFIGS.get(family, CONFIGS["Bert"])
    fields = {"vocabulary_size": len(WORDS), "max_length": 13, "pad_id": tokenizer.pad_id}
    config = config.__class__(**{**vars(config), **fields})
    encoder = encoder_of(config)(config, dtype="bfloat16" if family == "bfloat16" else None)
    model = with_large_weights(kbi.TextClassifier(encoder, 3, tokenizer))
    export(model, tmp_path / "served")
    assert opened.description_of(tmp_path / "served")["largest_difference"] < 1e-5
    answers = opened.open_texts(tmp_path / "served")(TEXTS)
    # Against the model itself in float32: bfloat16 keeps two or three digits.
    np.testing.assert_allclose(
        answers["logits"], model.predict(TEXTS, verbose=0), atol=1e-5 if family != "bfloat16" else 0.1
    )


@pytest.mark.full
def test_another_backend_writes_what_this_one_trained(tmp_path):
    export = export_litert if BACKEND == "torch" else export_onnx
    pytest.importorskip("ai_edge_litert" if BACKEND == "torch" else "onnxruntime")
    model = make("TextClassifier")
    export(model, tmp_path / "served", figures={"accuracy": 0.5})
    answers = opened.open_texts(tmp_path / "served")(TEXTS)
    np.testing.assert_allclose(answers["logits"], model.predict(TEXTS, verbose=0), atol=1e-5)
    export = opened.description_of(tmp_path / "served")
    main_file = tmp_path / "served" / formats.FORMATS[export["format"]].main_file
    main_file.unlink()
    with pytest.raises(ValueError, match=f"lacks {main_file.name}|lacks onnx/{main_file.name}: export the model again"):
        opened.open_texts(tmp_path / "served")
    assert (export["figures"], export["model"], export["sequence_length"]) == ({"accuracy": 0.5}, "TextClassifier", 11)
    assert export["inputs"]["input_ids"] == ["batch", "length"] and export["outputs"]["logits"] == ["batch", 3]


def test_differing_outputs_are_an_error():
    samples = [({"input_ids": np.ones((2, 3))}, {"value": np.array([0.5, 200.0])})]
    assert row_samples.check_equal(lambda rows: {"value": np.array([0.5, 200.01])}, samples) == pytest.approx(5e-5)
    with pytest.raises(RuntimeError, match=r"differ from the model's by up to 0\.0005"):
        row_samples.check_equal(lambda rows: {"value": np.array([0.5, 200.1])}, samples)
    for wrong in ([0.5, np.nan], [0.5, 200.0, 1.0]):
        with pytest.raises(RuntimeError, match="values that are not finite for rows of shape"):
            row_samples.check_equal(lambda rows, wrong=wrong: {"value": np.array(wrong)}, samples)


def test_low_scores_of_padding_and_of_a_question_do_not_hide_a_difference():
    samples = [({"input_ids": np.ones((1, 3))}, {"start_logits": np.array([[0.5, -1e4, -1e6]])})]
    assert row_samples.check_equal(lambda rows: {"start_logits": np.array([[0.5, -1e4, -1e6 + 0.06]])}, samples) < 1e-7
    with pytest.raises(RuntimeError, match=r"differ from the model's by up to 0\.1"):
        row_samples.check_equal(lambda rows: {"start_logits": np.array([[0.6, -1e4, -1e6]])}, samples)


def test_what_cannot_be_exported_is_refused_before_anything_is_written(tmp_path):
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    packed = kbi.BertEncoder(revealing_config(tokenizer, max_length=13), packed=True)
    quantized = make("TextClassifier")
    quantized.quantize("int8")
    for export in (export_onnx, export_litert):
        for model, message in ((packed, "position_ids"), (quantized, "before quantize")):
            with pytest.raises(ValueError, match=message):
                export(model, tmp_path / "served", tokenizer)
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_one_line_with_the_remedy(tmp_path, monkeypatch):
    model = make("TextClassifier")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"keras_bert_impl\[onnx\]"):
        export_onnx(model, tmp_path / "served")


@on("torch")  # it writes ONNX files
def test_transformers_tokenizer_and_names_give_the_models_outputs(tmp_path, monkeypatch):
    transformers, onnxruntime = pytest.importorskip("transformers"), pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    texts = ["The cat sat.", "It slept in [MASK] ."]

    def outputs(kind, **arguments):
        model = make(kind, **arguments)
        export_onnx(model, kind)
        rows = transformers.AutoTokenizer.from_pretrained(kind)(texts, padding=True, return_tensors="np")
        session = onnxruntime.InferenceSession(f"{kind}/onnx/model.onnx")
        assert {one.type for one in session.get_inputs()} == {"tensor(int64)"}
        arrays = {one.name: rows.get(one.name, np.zeros_like(rows["input_ids"])) for one in session.get_inputs()}
        names = [one.name for one in session.get_outputs()]
        return model, rows, dict(zip(names, session.run(None, arrays), strict=True))

    model, rows, found = outputs("TextEmbedder", pooling="mean", normalize=True)
    mask = rows["attention_mask"][..., None]
    means = (found["last_hidden_state"] * mask).sum(1) / mask.sum(1)  # as sentence-transformers makes them
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(found["sentence_embedding"], means, atol=1e-6)
    vectors = [model.embed(text) for text in texts[:1]]
    np.testing.assert_allclose(found["sentence_embedding"][:1], vectors, atol=1e-5)
    assert (tmp_path / "TextEmbedder/modules.json").is_file() and (tmp_path / "TextEmbedder/1_Pooling").is_dir()

    model, _, found = outputs("TextRegressor")
    np.testing.assert_allclose(found["logits"][:1, 0], model.predict(texts[:1], verbose=0)[:, 0], atol=1e-5)

    model, rows, found = outputs("MaskedLM")
    place = rows["input_ids"][1].tolist().index(model.tokenizer.mask_id)
    expected = model.predict(texts[1:], verbose=0)[0, 0]
    np.testing.assert_allclose(found["logits"][1, place], expected, atol=1e-5)
    # JavaScript, in which transformers.js reads the steps, has another sign for what is not replaced.
    assert "\\K" not in (tmp_path / "MaskedLM/tokenizer.json").read_text()
