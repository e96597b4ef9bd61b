"""An opened export answers any number of texts in their order, whatever their lengths."""

import keras
import numpy as np
import pytest
from made_exports import make
from tiers import on

import keras_bert_impl as kbi
from keras_bert_impl.export import opened

TEXTS = ["the mat " * 5, "It slept.", "the cat sat on the mat", "", "the"]
BACKEND = keras.backend.backend()
writes = {"torch": kbi.export.export_onnx, "tensorflow": kbi.export.export_litert}
written_here = on(*writes)


@written_here
@pytest.mark.parametrize("kind, output", [("TextClassifier", "logits"), ("TokenClassifier", "logits")])
def test_each_text_gets_its_own_answer_whatever_batch_it_is_in(kind, output, tmp_path):
    model = make(kind)
    writes[BACKEND](model, tmp_path / "served")
    answer = kbi.export.open_export(tmp_path / "served", batch_size=2)
    found, expected = answer(TEXTS)[output], model.predict(TEXTS, verbose=0)
    for text, row, wanted in zip(TEXTS, found, expected, strict=True):
        length = len(model.tokenizer.encode(text).ids)
        tokens = slice(0, min(length, model.sequence_length) if kind == "TokenClassifier" else None)
        np.testing.assert_allclose(row[tokens], wanted[tokens], atol=1e-4)


@written_here
def test_pairs_are_answered_in_their_order(tmp_path):
    model = make("NextSentencePredictor")
    writes[BACKEND](model, tmp_path / "served")
    pairs = [(text, "It slept.") for text in TEXTS]
    found = kbi.export.open_export(tmp_path / "served", batch_size=2)(pairs)["logits"]
    np.testing.assert_allclose(found, model.predict(pairs, verbose=0), atol=1e-4)


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
