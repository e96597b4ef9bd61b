"""Question answerers fitted on answers in words, and asked."""

import random

import keras
import numpy as np
import pytest
import transformers
from conftest import WORDS, revealing_config

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.fit_inputs import inputs, rows_of
from keras_bert_impl.preprocessing.question_windows import question_rows, questions_of
from keras_bert_impl.preprocessing.texts import BatchSource
from keras_bert_training.tasks import squad_metrics

CONTEXT = "the cat sat on a mat in rain . the red dog ran ."
LONG = f"{CONTEXT} {CONTEXT.replace('cat', 'mat')} a bad dog is on it ! {CONTEXT.replace('red', 'good')}"
QUESTIONS = ["the dog is ?", "is it bad"]
ANSWERS = [("red", CONTEXT.index("red")), None]


@pytest.fixture
def model(small_tokenizer):
    """Weights so large that spans have different scores."""
    return make(small_tokenizer)


def make(tokenizer):
    config = revealing_config(tokenizer, max_length=24, initializer_range=0.7)
    return kbi.QuestionAnswerer(kbi.BertEncoder(config), tokenizer)


def trained(model, *data, epochs=60, **arguments):
    model.optimizer.learning_rate = 1e-2
    return model.fit(*data, epochs=epochs, verbose=0, **arguments).history["loss"]


@pytest.fixture(scope="module")
def learnt():
    """A model that answers the first question about LONG with "good dog", and the second with nothing."""
    keras.utils.set_random_seed(7)
    model = make(kbi.WordPieceTokenizer(WORDS))
    assert trained(model, (QUESTIONS, [LONG] * 2), [("good dog", LONG.index("good dog")), None])[-1] < 0.1
    return model


def test_what_was_learnt_is_answered_in_words(learnt):
    model, learnt.null_threshold = learnt, 0.0
    (found,), (none,) = model.answer(QUESTIONS, [LONG] * 2)
    assert (found.text, found.start) == ("good dog", LONG.index("good")) and LONG[found.start : found.end] == "good dog"
    assert (none.text, none.start, none.end) == ("", 0, 0) and none.score == none.null_score
    model.null_threshold = None
    assert model.answer(QUESTIONS[1], LONG)[0].text != ""


def test_an_answer_keeps_the_accents_that_the_tokenizer_drops(model):
    context = LONG.replace("good", "good\u0301")
    found = model.answer(QUESTIONS[0], context, top_k=400, n_best=400)
    assert any("good\u0301" in answer.text for answer in found)
    assert all(context[answer.start : answer.end] == answer.text for answer in found)


def test_a_text_that_stands_alone_belongs_to_each_of_the_others(model):
    assert model.answer(QUESTIONS, CONTEXT) == model.answer(QUESTIONS, [CONTEXT] * 2)
    assert model.answer(QUESTIONS[0], [CONTEXT, LONG]) == model.answer([QUESTIONS[0]] * 2, [CONTEXT, LONG])


def test_questions_and_contexts_that_are_not_a_tuple_are_told_to_be_one(model):
    with pytest.raises(ValueError, match=r"got single texts: pass a tuple of two columns, \(questions, contexts\)"):
        model.fit(QUESTIONS, [CONTEXT] * 2, ANSWERS)


def test_the_threshold_decides_and_the_other_candidates_follow(model):
    model.null_threshold = -np.inf
    ranked = model.answer(QUESTIONS[0], LONG, top_k=5)
    assert ranked[0].text == "" and len(ranked) == 5
    scores = [found.score for found in ranked[1:]]
    assert scores == sorted(scores, reverse=True)
    odds = ranked[0].null_score - ranked[1].score
    model.null_threshold = odds + 1e-6
    assert model.answer(QUESTIONS[0], LONG)[0] == ranked[1]
    model.null_threshold = odds - 1e-6
    assert model.answer(QUESTIONS[0], LONG)[0] == ranked[0]


def test_every_form_of_an_answer_means_the_same():
    text, start = ANSWERS[0]
    forms = [(text, float(start)), text, {"text": text, "answer_start": start}]
    forms.append({"text": [text, "ran"], "answer_start": [start, 43]})
    nothing = [None, "", (), [], {"text": [], "answer_start": []}, {"text": "", "answer_start": 0}]
    found = questions_of(["q"] * 10, [CONTEXT] * 10, [*forms, *nothing])
    assert [question.answers for question in found] == [[(text, start)]] * 3 + [[(text, start), ("ran", 43)]] + [[]] * 6


def test_an_answer_without_its_position_has_no_second_place_that_overlaps_the_first():
    with pytest.raises(ValueError, match="which occurs 2 times in the context"):
        questions_of(["q"], ["a banana"], ["ana"])


@pytest.mark.parametrize(
    "answers, message",
    [
        ([("red", 3), None], r"answers\[0\] is 'red' at character 3, where the context has ' ca'"),
        ([("red", -48), None], r"answers\[0\] is 'red' at character -48"),
        (["a", "the"], r"answers\[0\] is 'a', which occurs \d+ times in the context"),
    ],
)
def test_answers_that_do_not_stand_in_their_context_are_refused_with_the_row(model, answers, message):
    with pytest.raises(ValueError, match=message):
        model.fit((QUESTIONS, [CONTEXT] * 2), answers, verbose=0)


def test_a_question_weighs_what_it_is_given_in_each_of_its_windows(model):
    rows = rows_of(model, model.make_preprocessor(), (QUESTIONS, [LONG, "the cat"]), [None, None], [0.5, 2])
    assert rows.weights.tolist() == [0.5] * (len(rows) - 1) + [2.0] and len(rows) > 4
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), expected \(2,\), one for each example"):
        model.fit((QUESTIONS, [LONG] * 2), [None] * 2, sample_weight=[1, 2, 3], verbose=0)


def test_questions_that_are_cut_are_counted(model):
    with pytest.warns(UserWarning, match="1 of 2 questions have more than 6 tokens and were truncated"):
        model.fit((["the cat " * 9, "is it"], [CONTEXT] * 2), [None] * 2, verbose=0)


def test_the_threshold_is_kept_in_every_kind_of_file(model, tmp_path):
    model.null_threshold = -1.25
    model.save_pretrained(tmp_path / "checkpoint")
    assert kbi.QuestionAnswerer.from_pretrained(tmp_path / "checkpoint").null_threshold == -1.25
    transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path / "checkpoint")
    model.save(tmp_path / "model.keras")
    assert keras.saving.load_model(tmp_path / "model.keras").null_threshold == -1.25


def test_batches_of_a_loader_have_the_windows_of_lists(model):
    answers = [("good", LONG.index("good")), None]
    data = [((QUESTIONS, [LONG] * 2), answers, [1.0, 2.0])] * 2
    batches = inputs(model, model.make_preprocessor(), BatchSource(lambda: iter(data), 2), with_labels=True)
    batches.on_epoch_begin()
    arrays, labels, weights = batches[0]
    rows = rows_of(model, model.make_preprocessor(), (QUESTIONS, [LONG] * 2), answers, [1.0, 2.0])
    assert arrays["token_ids"].shape == (len(rows), 24) and len(rows) > 4
    assert (batches.num_cut, batches.num_texts) == (0, len(rows))
    np.testing.assert_array_equal(labels, rows.labels)
    np.testing.assert_array_equal(weights, rows.weights)
    assert labels.any()


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_answers_are_evaluated_by_exact_match_and_f1(learnt, threshold):
    model, learnt.null_threshold = learnt, threshold
    questions, contexts = [*QUESTIONS[:1] * 4, *QUESTIONS[1:] * 2], [LONG] * 6
    told = [found[0].text for found in model.answer(questions, contexts)]
    assert told[:4] == ["good dog"] * 4 and (told[4] == "") is (threshold is not None)
    answers = [  # right, half of it, wrong, the second of several, none, none
        {"text": ["good dog"], "answer_start": [LONG.index("good dog")]},
        ("good dog ran", LONG.index("good dog")),
        ("cat", LONG.index("cat")),
        {"text": ["cat", "good dog"], "answer_start": [LONG.index("cat"), LONG.index("good dog")]},
        None,
        "",
    ]
    accepted = [["good dog"], ["good dog ran"], ["cat"], ["cat", "good dog"], [], []]
    paragraphs = [
        {"qas": [{"id": str(row), "question": "", "is_impossible": not texts, "answers": [{"text": t} for t in texts]}]}
        for row, texts in enumerate(accepted)
    ]
    official = squad_metrics.evaluate(
        {"data": [{"paragraphs": paragraphs}]}, {str(row): text for row, text in enumerate(told)}
    )
    figures = model.evaluate((questions, contexts), answers, batch_size=2, verbose=0, return_dict=True)
    assert figures["exact"] == pytest.approx(official["exact"] / 100)
    assert figures["f1"] == pytest.approx(official["f1"] / 100)
    assert 0 < figures["exact"] < figures["f1"] < 1
    assert model.evaluate((questions, contexts), answers, batch_size=2, verbose=0) == [
        figures["loss"], figures["exact"], figures["f1"]
    ]  # fmt: skip


def test_validation_on_answers_in_words_has_their_figures(model):
    data = (QUESTIONS * 2, [LONG, CONTEXT] * 2), [("good", LONG.index("good")), None] * 2
    model.null_threshold = 0.0
    history = model.fit(*data, validation_data=data, epochs=2, batch_size=3, verbose=0).history
    figures = model.evaluate(*data, batch_size=3, verbose=0, return_dict=True)
    for name in ("loss", "exact", "f1"):
        assert history[f"val_{name}"][-1] == pytest.approx(figures[name], abs=1e-5)


def test_the_loss_of_answers_is_that_of_their_rows(model):
    """Although they are compared without the padding of their batches."""
    answers = [("good", LONG.index("good")), None]
    rows = question_rows(model.tokenizer, questions_of(QUESTIONS, [LONG] * 2, answers), model.sequence_length)
    arrays = model.make_preprocessor().packed(rows, 24)[0]
    expected = keras.Model(model.inputs, model.outputs)
    expected.compile(loss=model.loss)
    figures = model.evaluate((QUESTIONS, [LONG] * 2), answers, batch_size=32, verbose=0)
    assert figures[0] == pytest.approx(expected.evaluate(arrays, rows.labels, verbose=0), abs=1e-5)


def test_questions_without_an_answer_are_told_where_each_is_answered(model):
    with pytest.warns(UserWarning, match="2 of 3 questions have no answer, but with null_threshold=None"):
        model.evaluate(([*QUESTIONS, "is it"], [CONTEXT] * 3), [*ANSWERS, ""], verbose=0)
    assert model.null_threshold is None


def test_a_model_learns_which_questions_have_no_answer(model):
    data, answers = (QUESTIONS, [CONTEXT] * 2), ANSWERS
    torch_data = pytest.importorskip("torch.utils.data")
    loader = torch_data.DataLoader([(data, answers)], batch_size=1, collate_fn=lambda batches: batches[0])
    loss = trained(model, loader, epochs=40)
    assert loss[-1] < 0.1 and model.null_threshold == 0
    assert [found[0].text for found in model.answer(*data)] == ["red", ""]
    assert model.evaluate(data, answers, verbose=0, return_dict=True)["exact"] == 1


def test_a_model_that_was_shown_answers_alone_answers_every_question(model):
    model.fit((QUESTIONS[:1], [CONTEXT]), ANSWERS[:1], verbose=0)
    assert model.null_threshold is None


def test_asking_draws_nothing(model, small_tokenizer):
    """What is trained afterwards is the same, whether the model was asked before or not."""
    tagger = kbi.TokenClassifier(model.encoder, 2, tokenizer=small_tokenizer)
    before = random.getstate()
    model.answer(QUESTIONS[0], CONTEXT)
    tagger.tag(CONTEXT)
    assert random.getstate() == before
