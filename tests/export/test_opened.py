"""An opened export answers any number of texts in their order, whatever their lengths."""

import concurrent.futures

import keras
import numpy as np
import pytest
from made_exports import make
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.export import opened, runtimes

TEXTS = ["the mat " * 5, "It slept.", "the cat sat on the mat", "", "the"]
BACKEND = keras.backend.backend()
writes = {"torch": kbi.export.export_onnx, "tensorflow": kbi.export.export_litert}
written_here = on(*writes)


@pytest.fixture(scope="module")
def model():
    return make("TextClassifier")


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    directory = tmp_path_factory.mktemp("opened") / "served"
    writes[BACKEND](model, directory)
    return directory


@written_here
def test_texts_and_pairs_get_their_own_answers_whatever_batch_they_are_in(model, written):
    answer = kbi.export.open_export(written, batch_size=2)
    pairs = [(text, "It slept.") for text in TEXTS]
    np.testing.assert_allclose(answer(TEXTS)["logits"], model.predict(TEXTS, verbose=0), atol=1e-4)
    np.testing.assert_allclose(answer(pairs)["logits"], model.predict(pairs, verbose=0), atol=1e-4)


@pytest.mark.full
@written_here
def test_tokens_of_each_text_get_its_own_answers(tmp_path):
    model = make("TokenClassifier")
    writes[BACKEND](model, tmp_path / "served")
    answer = kbi.export.open_export(tmp_path / "served", batch_size=2)
    found, expected = answer(TEXTS)["logits"], model.predict(TEXTS, verbose=0)
    for text, row, wanted in zip(TEXTS, found, expected, strict=True):
        length = min(len(model.tokenizer.encode(text).ids), model.sequence_length)
        np.testing.assert_allclose(row[:length], wanted[:length], atol=1e-4)


CHOICES = [(text, ["It slept.", "the mat " * number]) for number, text in enumerate(TEXTS, start=1)]
PAIRS = [(text, "the cat sat on the mat") for text in TEXTS]


@pytest.mark.full
@written_here
@pytest.mark.parametrize("alone", [False, True])
def test_choices_get_the_answers_of_their_text(alone, tmp_path, monkeypatch):
    model = make("MultipleChoice")
    writes[BACKEND](model, tmp_path / "served")
    if alone:
        monkeypatch.setattr(opened, "ALONE", {(writes[BACKEND].__name__.removeprefix("export_"), "float32")})
    answer = kbi.export.open_export(tmp_path / "served", batch_size=2)
    expected = model.predict(tuple(map(list, zip(*CHOICES, strict=True))), verbose=0)
    np.testing.assert_allclose(answer(CHOICES)["logits"], expected, atol=1e-4)
    with pytest.raises(ValueError, match="different numbers of choices"):
        answer([*CHOICES, ("the", ["mat"])])


@pytest.mark.full
@on("tensorflow")
@pytest.mark.parametrize(("kind", "pairs"), [("MultipleChoice", CHOICES), ("NextSentencePredictor", PAIRS)])
def test_a_saved_model_whose_only_signature_takes_pairs_is_opened(kind, pairs, tmp_path):
    model = make(kind)
    kbi.export.export_saved_model(model, tmp_path / "served")
    found = kbi.export.open_export(tmp_path / "served", batch_size=2)(pairs)["logits"]
    expected = model.predict(tuple(map(list, zip(*pairs, strict=True))), verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.full
@on("tensorflow")
def test_a_saved_model_answers_questions_in_their_order(tmp_path):
    model = make("QuestionAnswerer")
    kbi.export.export_saved_model(model, tmp_path / "served")
    found = kbi.export.open_export(tmp_path / "served", batch_size=2)(PAIRS)
    for (question, context), answer, score in zip(PAIRS, found["answer"], found["score"], strict=True):
        (expected,) = model.answer(question, context)
        assert answer.decode() == expected.text and score == pytest.approx(expected.score, abs=1e-4)


@pytest.mark.parametrize("texts", ["one string", []])
def test_what_is_no_list_of_texts_is_refused(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(opened, "open_texts", lambda directory, threads: None)
    with pytest.raises(ValueError, match="Expected a list of texts"):
        kbi.export.open_export(tmp_path)(texts)


def test_outputs_of_other_widths_are_filled_up():
    numbers = opened.joined([np.ones((1, 2, 3), "float32"), np.full((2, 1, 3), 2, "float32")])
    assert numbers[:, :, 0].tolist() == [[1, 1], [2, 0], [2, 0]]
    words = opened.joined([np.array([[b"a"]], object), np.array([[b"b", b"c"]], object)])
    assert words.tolist() == [[b"a", b""], [b"b", b"c"]]


@written_here
def test_several_threads_may_ask(model, written):
    answer, expected = kbi.export.open_export(written), model.predict(TEXTS, verbose=0)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        starts = [number % len(TEXTS) for number in range(200)]  # so that the lengths change, too
        for start, found in zip(starts, threads.map(lambda start: answer(TEXTS[start:]), starts), strict=True):
            np.testing.assert_allclose(found["logits"], expected[start:], atol=1e-4)


@on("torch")
@pytest.mark.full
def test_weights_that_are_overwritten_in_place_do_not_end_the_process(model, tmp_path):
    pytest.importorskip("openvino")
    kbi.export.export_openvino(model, tmp_path / "served")
    answer = kbi.export.open_export(tmp_path / "served", threads=1)
    expected = answer(TEXTS)["logits"]
    (tmp_path / "served" / "openvino_model.bin").write_bytes(b"")  # of a mapped file, the next page would be a SIGBUS
    np.testing.assert_allclose(answer(TEXTS)["logits"], expected)


@pytest.mark.parametrize(("bits", "is_wrong"), [({}, True), ({"weight_bits": 8}, True), ({"weight_bits": 7}, False)])
def test_weights_whose_products_overflow_here_are_reported(bits, is_wrong, monkeypatch, recwarn):
    monkeypatch.setattr(runtimes, "saturates", lambda: True)
    runtimes.warn_of_overflow("served", {"precision": "int8", "format": "onnx", **bits})
    assert any("overflow on this processor" in str(one.message) for one in recwarn) is is_wrong
