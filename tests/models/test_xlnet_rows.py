"""Heads over XLNet's rows, whose control tokens stand at the end: texts, questions without an answer, masks."""

import numpy as np
import pytest
from conftest import QUICK_STEPS
from made_tokenizers import SENTENCES, xlnet_tokenizer
from reference_models import open_in_transformers
from tiers import every_backend, full_on, once

import keras_bert_impl as kbi
from keras_bert_impl.models.span_answers import best_answers
from keras_bert_impl.preprocessing.question_windows import Question, question_rows

CONTEXT, QUESTION = SENTENCES[3], "What is it?"


@pytest.fixture(scope="module")
def tokenizer():
    return xlnet_tokenizer()


def model_of(kind, tokenizer, **arguments):
    """A model whose weights are so large that texts differ in the outputs."""
    sizes = {"hidden_size": 12, "num_layers": 2, "num_heads": 3, "intermediate_size": 17, "max_length": 48}
    config = kbi.XLNetConfig(tokenizer.vocabulary_size, **sizes, pad_id=tokenizer.pad_id)
    model = kind(kbi.XLNetEncoder(config), tokenizer=tokenizer, **arguments)
    random = np.random.default_rng(11)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.4))
    return model


@every_backend
@full_on("jax")
def test_texts_and_pairs_are_classified_as_by_transformers_and_its_tokenizer(tokenizer, tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model = model_of(kbi.TextClassifier, tokenizer, num_classes=3)
    model.compile(loss=model.loss, **QUICK_STEPS)
    model.save_pretrained(tmp_path)
    theirs = open_in_transformers("XLNetForSequenceClassification", tmp_path)
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts, pairs = ["The cat sat.", SENTENCES[0]], ["Paris", "a dog"]
    for given in ((texts,), (texts, pairs)):
        inputs = reader(*given, padding=True, return_tensors="pt")
        assert reader.padding_side == "left" and inputs["attention_mask"][0, 0] == 0
        with torch.no_grad():
            expected = theirs(**inputs).logits.numpy()
        np.testing.assert_allclose(model.predict(given if len(given) > 1 else texts, verbose=0), expected, atol=1e-5)


@once
def test_a_question_without_an_answer_has_the_place_of_cls_in_each_window(tokenizer):
    questions = [Question("q", QUESTION, CONTEXT, [])]
    rows = question_rows(tokenizer, questions, sequence_length=40, stride=7)
    windows = rows.source
    assert len(windows.first) > 1
    for row, (first, second) in enumerate(zip(windows.first, windows.second, strict=True)):
        whole = [*first, tokenizer.sep_id, *second, tokenizer.sep_id, tokenizer.cls_id]
        assert rows.labels[row].tolist() == [whole.index(tokenizer.cls_id)] * 2
    logits = [np.zeros((40, 2)) for _ in windows.first]
    for row, place in enumerate(windows.cls_place):
        logits[row][place] = 3.0
    answers, odds = best_answers(questions, windows, logits, with_impossible=True)
    assert (answers[0][0].text, answers[0][0].score, odds) == ("", 6.0, [6.0])


def test_a_mask_at_the_beginning_of_a_row_is_predicted_like_any_other(tokenizer):
    """0 is its place there, and what predictions are padded with."""
    model = model_of(kbi.MaskedLM, tokenizer)
    alone = model.fill_mask("<mask> is in Paris.", top_k=3)
    together = model.fill_mask(["<mask> is in Paris.", "<mask> of <mask> and <mask>."], top_k=3)
    assert [guess.id for guess in together[0][0]] == [guess.id for guess in alone[0]]
    np.testing.assert_allclose(
        [guess.probability for guess in together[0][0]], [guess.probability for guess in alone[0]], atol=1e-5
    )
