"""The certificate: it is written where everything agrees, tells what does not, and can be repeated."""

import json

import numpy as np
import pytest
from conftest import revealing_config

import keras_bert_impl as kbi
from keras_bert_impl.commands import certified_outputs, certify
from keras_bert_impl.commands.certificate_texts import TEXTS
from keras_bert_impl.options.certify import CertifyConfig

MODELS = {
    "classify": lambda encoder, tokenizer: kbi.TextClassifier(encoder, 2, tokenizer, class_names=["bad", "good"]),
    "regress": kbi.TextRegressor,
    "label_words": lambda encoder, tokenizer: kbi.TokenClassifier(encoder, 2, tokenizer, class_names=["O", "A"]),
    "answer": kbi.QuestionAnswerer,
    "choose": kbi.MultipleChoice,
    "next_sentence": kbi.NextSentencePredictor,
    "fill_mask": kbi.MaskedLM,
    "vector": lambda encoder, tokenizer: kbi.TextEmbedder(encoder, tokenizer, normalize=True),
    "embed": lambda encoder, tokenizer: encoder,
}


@pytest.fixture
def saved(tmp_path, small_tokenizer):
    """Function from a task to the directory of a checkpoint."""

    def save(task="classify"):
        encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=128))
        MODELS[task](encoder, small_tokenizer).save_pretrained(tmp_path)
        small_tokenizer.save_pretrained(tmp_path, 128)
        return tmp_path

    return save


@pytest.fixture
def quick(monkeypatch):
    """All backends compute in this process, and hence the same; returns the function that does it, to be damaged."""
    monkeypatch.setattr(certify, "of_backend", lambda name, directory: certified_outputs.computed(directory))


def certified(directory, **options):
    return certify.run(CertifyConfig(str(directory), **{"exports": False, **options}))


def test_the_texts_are_fifty_and_never_change():
    assert len(set(TEXTS)) == 50
    content = certified_outputs.hash_of_ids(list(TEXTS))
    assert content == "f57a149fda05fc551b8379df92343af6908523a137c9b0d971c0728e553e0ab4"


@pytest.mark.parametrize("task", MODELS)
def test_each_text_has_ids_and_an_output_without_padding(saved, task):
    found = certified_outputs.computed(saved(task))
    assert len(found.ids) == len(found.outputs) == 50 and found.gradient_norm > 1e-6
    assert all(np.isfinite(array).all() for array in found.outputs)
    assert found.is_cut[-1] and not found.is_cut[2]
    if task in ("label_words", "answer"):
        assert [len(array) for array in found.outputs] == [len(ids) for ids in found.ids]


def test_the_gradient_is_that_of_the_loss_as_it_is_defined():
    weights = np.array([[[1.0], [0.0]]], "float32")
    outputs = np.array([[[2.0, 0.5], [9.0, 9.0]]], "float32")
    expected = ((2 - 1) ** 2 + (0.5 - np.cos(1)) ** 2) / 2
    assert float(certified_outputs.mean_squared_difference(weights, outputs)) == pytest.approx(expected)


def test_the_hash_of_the_weights_sees_each_of_them(saved):
    directory = saved()
    checkpoint = kbi.checkpoints.open_checkpoint(directory)
    before = certified_outputs.hash_of_weights(kbi.TextClassifier.from_pretrained(directory), checkpoint)
    model = kbi.TextClassifier.from_pretrained(directory)
    assert certified_outputs.hash_of_weights(model, checkpoint) == before
    weight = model.encoder.weights[3]
    changed = np.array(weight)
    changed.flat[0] += 1e-6
    weight.assign(changed)
    assert certified_outputs.hash_of_weights(model, checkpoint) != before


def test_what_is_new_in_a_model_is_no_part_of_the_hash(saved):
    """A masked LM is saved without a pooler, which its encoder draws anew each time."""
    directory = saved("fill_mask")
    first, second = (certified_outputs.computed(directory) for _ in range(2))
    assert first.weights_sha256 == second.weights_sha256


def test_a_certificate_is_in_the_card_and_beside_the_weights(saved, quick):
    directory = saved()
    content = certified(directory)
    card = (directory / "README.md").read_text(encoding="utf-8")
    assert f"SHA-256 of the weights: `{content['weights_sha256']}`" in card and "| jax |" in card
    assert json.loads((directory / "certificate.json").read_text()) == content
    assert [run["status"] for run in content["runs"].values()] == ["passed"] * 3


def test_the_same_command_repeats_a_certificate_and_writes_nothing(saved, quick, capsys):
    directory = saved()
    certified(directory)
    before = (directory / "certificate.json").stat().st_mtime_ns
    certified(directory)
    assert "certificate.json is repeated" in capsys.readouterr().out
    assert (directory / "certificate.json").stat().st_mtime_ns == before


def test_a_repetition_tells_what_differs(saved, quick):
    directory = saved()
    content = certified(directory)
    content["weights_sha256"] = "0" * 64
    content["texts"][5]["ids"][1] += 1
    content["texts"][7]["outputs"][1] += 2e-4
    content["gradient_norm"] *= 1.001
    (directory / "certificate.json").write_text(json.dumps(content))
    wanted = (
        r"the weights are others; the ids of 1 texts are others: 6; the outputs of text 8 differ by 0.0002; the norm"
    )
    with pytest.raises(ValueError, match=wanted):
        certified(directory)
    certified(directory, overwrite=True)
    certified(directory)


@pytest.mark.parametrize("damage", [2e-4, float("nan")])
def test_an_output_that_differs_is_an_error_that_names_the_text(saved, monkeypatch, damage):
    def of_backend(name, directory):
        found = certified_outputs.computed(directory)
        if name == "jax":
            found.outputs[11][1] += damage
        return found

    monkeypatch.setattr(certify, "of_backend", of_backend)
    with pytest.raises(ValueError, match="Not the same everywhere: jax: the outputs of text 12 differ by"):
        certified(saved())


@pytest.mark.parametrize(
    ("field", "change", "why"),
    [
        ("ids", lambda ids: [*ids[:3], [1, 2, 3], *ids[4:]], "text 4 has other ids"),
        ("gradient_norm", lambda norm: norm * 1.001, "the norm of the gradient is"),
        ("weights_sha256", lambda sha256: "0" * 64, "it has read other weights"),
    ],
)
def test_other_ids_weights_and_gradients_are_errors(saved, monkeypatch, field, change, why):
    def of_backend(name, directory):
        found = certified_outputs.computed(directory)
        return found._replace(**{field: change(getattr(found, field))}) if name == "torch" else found

    monkeypatch.setattr(certify, "of_backend", of_backend)
    with pytest.raises(ValueError, match=f"torch: {why}"):
        certified(saved())


def test_a_backend_that_is_not_installed_is_not_said_to_have_passed(saved, monkeypatch):
    monkeypatch.setattr(certify, "of_backend", lambda name, directory: certified_outputs.computed(directory))
    monkeypatch.setattr(certify, "why_not", lambda name, task: "jax is not installed" if name == "jax" else None)
    directory = saved()
    assert certified(directory)["runs"]["jax"]["status"] == "not run"
    assert "| not run: jax is not installed |" in (directory / "README.md").read_text()


def test_what_is_missing_is_seen_without_starting_anything_and_is_no_part_of_the_progress(saved, quick, monkeypatch):
    counted = []
    monkeypatch.setattr(certify, "progress", lambda jobs, what: counted.append(list(jobs)) or jobs)
    directory = saved("label_words")
    monkeypatch.setattr(certify, "of_export", lambda name, *rest: certify.of_backend(name, directory))
    monkeypatch.setattr(certify.importlib.util, "find_spec", lambda name: None if name in ("jax", "openvino") else "")
    content = certified(directory, exports=True)
    assert counted == [["tensorflow", "torch", "onnx", "litert"]]
    assert list(content["runs"]) == [*certify.BACKENDS, *certify.EXPORTS]
    missing = {name: run["why"] for name, run in content["runs"].items() if run["status"] == "not run"}
    assert missing["jax"].startswith("jax is not installed") and missing["saved_model"] == certify.WORDS_ALONE
    assert set(missing) == {"jax", "openvino", "saved_model"}


def test_without_a_backend_nothing_is_certified(saved, quick, monkeypatch):
    monkeypatch.setattr(certify, "why_not", lambda name, task: "it is missing" if name in certify.BACKENDS else None)
    with pytest.raises(ValueError, match="No backend computed the texts: tensorflow: it is missing; jax: it"):
        certified(saved(), exports=True)


def test_a_readme_of_somebody_else_stays_and_the_certificate_lies_beside_it(saved, quick):
    directory = saved()
    (directory / "README.md").write_text("My own.")
    certified(directory)
    assert (directory / "README.md").read_text() == "My own." and (directory / "certificate.json").is_file()


def test_a_checkpoint_without_a_vocabulary_is_refused(tmp_path, small_config):
    kbi.BertEncoder(small_config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has no vocabulary: a certificate is about texts"):
        certified_outputs.computed(tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("task", ["classify", "fill_mask"])
def test_an_export_that_is_damaged_is_found(saved, quick, monkeypatch, task):
    """ONNX, of a model with other weights than the checkpoint's, with which the file is compared."""
    pytest.importorskip("onnxruntime")
    export = certify.EXPORTS["onnx"][0]

    def damaged(model, *arguments):
        other = type(model).from_config(model.get_config())
        other.set_weights([1.5 * weight for weight in model.get_weights()])
        export(other, *arguments)

    monkeypatch.setattr(certify, "EXPORTS", {"onnx": (damaged, "onnxruntime")})
    directory = saved(task)
    with pytest.raises(ValueError, match="Not the same everywhere: onnx: the outputs of text"):
        certified(directory, exports=True)
    monkeypatch.setattr(certify, "EXPORTS", {"onnx": (export, "onnxruntime")})
    assert certified(directory, exports=True, overwrite=True)["runs"]["onnx"]["ids"] is True


@pytest.mark.full
@pytest.mark.parametrize("task", MODELS)
def test_every_backend_and_export_gives_the_same(saved, task):
    for package in ("tensorflow_text", "jax", "onnxruntime", "openvino", "ai_edge_litert"):
        pytest.importorskip(package)
    runs = certified(saved(task), exports=True)["runs"]
    in_words = ["saved_model"] if task in ("label_words", "answer") else []
    assert [name for name, one in runs.items() if one["status"] != "passed"] == in_words
    assert all(one["difference"] < 1e-5 for name, one in runs.items() if name not in in_words)


def test_texts_that_an_export_is_known_to_cut_otherwise_are_left_out_and_counted(saved):
    directory = saved("next_sentence")
    reference = certified_outputs.computed(directory)
    found = reference._replace(weights_sha256=None, gradient_norm=None, outputs=[a.copy() for a in reference.outputs])
    found.outputs[48] += 1.0
    assert reference.is_cut[48]
    run = certify.compared("onnx", "next_sentence", found, reference)
    assert run.status == "passed" and run.left_out == sum(reference.is_cut)
    assert f"without {run.left_out} cut texts" in certify.described(run)
    strict = certify.compared("onnx", "next_sentence", found._replace(is_cut=[False] * 50), reference)
    assert strict.status == "failed" and strict.text == 49
