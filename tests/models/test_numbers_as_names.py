"""Classes named by numbers, as `Series.unique()` gives them: a label is the name of its class, wherever that stands."""

import warnings

import numpy as np
import pandas
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints.untrained_heads import untrained_heads
from keras_bert_impl.preprocessing.fit_inputs import rows_of
from keras_bert_impl.preprocessing.labels import named_by_numbers, numbers_of_names

TEXTS = ["the cat sat", "a bad dog ran on a mat", "it is good", "red rain"]


def classifier(tokenizer, names, kind=kbi.TextClassifier, **options):
    config = revealing_config(tokenizer, max_length=12, initializer_range=0.5)
    model = kind(kbi.BertEncoder(config), len(names), tokenizer=tokenizer, class_names=names, **options)
    metrics = None if options.get("multi_label") else ["accuracy"]
    model.compile(kbi.optimization.BertAdamW(1e-2), model.loss, metrics=metrics, **QUICK_STEPS)
    return model


def answers_of(model):
    return [labels[0].label for labels in model.classify(TEXTS)]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([1, 0, 1, 0], np.array([1, 0])),
        (pandas.Series([1, 0, 1, 0]), pandas.Series([1, 0, 1, 0]).unique()),
        ([3, 2, 3, 1], [1, 2, 3]),
        (np.array([True, False, True, True]), np.array([True, False])),
        ([2.0, 0.5, 2.0, 0.5], [2.0, 0.5]),
        ([-1, 1, -1, 1], [1, -1]),
        (["1", "0", "1", "0"], ["1", "0"]),
    ],
    ids=str,
)
def test_a_label_is_the_number_of_the_class_that_it_names(labels, names, small_tokenizer):
    model = classifier(small_tokenizer, names)
    found = rows_of(model, model.make_preprocessor(), TEXTS, labels, None).labels
    assert [model.class_names[number] for number in found] == [str(label) for label in labels]


@pytest.mark.parametrize("form", full_but(["texts", "ids"], "texts"))
def test_a_classifier_answers_what_it_was_trained_on(form, small_tokenizer):
    model, labels = classifier(small_tokenizer, [1, 2, 0]), [1, 0, 1, 2]
    x = TEXTS if form == "texts" else model.rows(TEXTS)
    model.fit(x, labels, epochs=25, verbose=0)
    assert answers_of(model) == [str(label) for label in labels]
    assert model.evaluate(x, labels, verbose=0, return_dict=True)["accuracy"] == 1


def test_batches_of_a_dataset_have_the_same_names(small_tokenizer):
    data = pytest.importorskip("torch.utils.data")
    model = classifier(small_tokenizer, [1, 0])
    loader = data.DataLoader(list(zip(TEXTS, [1, 0, 1, 0], strict=True)), batch_size=2)
    expected = model.evaluate(TEXTS, [1, 0, 1, 0], verbose=0, return_dict=True)["accuracy"]
    assert model.evaluate(loader, verbose=0, return_dict=True)["accuracy"] == expected
    strings = data.DataLoader(list(zip(TEXTS, ["1", "0", "1", "0"], strict=True)), batch_size=2)
    assert model.evaluate(strings, verbose=0, return_dict=True)["accuracy"] == expected


def test_a_dataset_of_ids_whose_numbers_keras_would_take_for_positions_is_refused(small_tokenizer):
    model = classifier(small_tokenizer, [1, 0])
    rows = model.rows(TEXTS)
    with pytest.raises(ValueError, match=r"classes are named by numbers \(1, 0\).*positions"):
        model.fit(iter([(rows, np.array([1, 0, 1, 0]))]), steps_per_epoch=1, verbose=0)


def test_words_have_the_numbers_of_their_classes(small_tokenizer):
    words, labels = [["the", "cat"], ["rain"]], [[2, 1], [2]]
    model = classifier(small_tokenizer, [2, 1], kbi.TokenClassifier)
    rows = rows_of(model, model.make_preprocessor(), words, labels, None)
    assert rows.labels[:, :3].tolist() == [[-1, 0, 1], [-1, 0, -1]]


def test_several_classes_of_a_text(small_tokenizer):
    model = classifier(small_tokenizer, [3, 2, 1], multi_label=True)
    found = rows_of(model, model.make_preprocessor(), TEXTS, [[1, 2], [3], [1], []], None).labels
    assert found.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_the_weight_of_a_class_is_that_of_its_number(small_tokenizer):
    model = classifier(small_tokenizer, [1, 0])
    model.fit(TEXTS[:2], [1, 0], class_weight={1: 1.0, "0": 0.0}, epochs=20, verbose=0)
    assert answers_of(model)[0] == "1"
    with pytest.raises(ValueError, match=r"class_weight is 2, which is not one of the classes 1, 0\."):
        model.fit(TEXTS, [1, 0, 1, 0], class_weight={2: 1.0})


def test_a_number_that_is_no_name_is_refused(small_tokenizer):
    model = classifier(small_tokenizer, [1, 2, 3])
    with pytest.raises(ValueError, match=r"labels\[3\] is 0, .* the classes 1, 2, 3"):
        model.fit(TEXTS, [1, 2, 3, 0], verbose=0)


def test_where_the_names_are_words_or_positions_a_number_is_a_position():
    assert named_by_numbers(["bad", "good"]) == named_by_numbers(["0", "1", "2"]) == {}
    assert named_by_numbers(["False", "True"]) == named_by_numbers(["0", "1", "other"]) == {}
    assert named_by_numbers(["True", "False"]) == {1: 0, 0: 1}
    assert numbers_of_names([1, 0], ["bad", "good"]) == [1, 0]
    assert numbers_of_names([1, 0], ["1", "0"]) == [0, 1]


def test_names_of_a_checkpoint_in_another_order_move_its_classes(small_tokenizer, tmp_path):
    model = classifier(small_tokenizer, ["NEG", "POS", "NEUTRAL"])
    model.save_pretrained(tmp_path)
    moved = kbi.TextClassifier.from_pretrained(tmp_path, class_names=["POS", "NEUTRAL", "NEG"])
    assert answers_of(moved) == answers_of(model)
    np.testing.assert_allclose(
        moved.predict(TEXTS, verbose=0), model.predict(TEXTS, verbose=0)[:, [1, 2, 0]], atol=1e-6
    )
    message = "class_names renames trained classes: 'NEG' is now 'bad', 'POS' is now 'good', 'NEUTRAL' is now 'neither'"
    with pytest.warns(UserWarning, match=message):
        renamed = kbi.TextClassifier.from_pretrained(tmp_path, class_names=["bad", "good", "neither"])
    np.testing.assert_allclose(renamed.predict(TEXTS, verbose=0), model.predict(TEXTS, verbose=0), atol=1e-6)
    with pytest.raises(ValueError, match="'POS' as class 0, but the checkpoint was trained with it as class 1 of NEG"):
        kbi.TextClassifier.from_pretrained(tmp_path, class_names=["POS", "NEG", "mixed"])


def test_numbered_classes_and_those_of_an_untrained_head_are_named_without_a_word(small_tokenizer, tmp_path):
    classifier(small_tokenizer, ["0", "LABEL_1", "2"]).save_pretrained(tmp_path / "numbered")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kbi.TextClassifier.from_pretrained(tmp_path / "numbered", class_names=["NEG", "POS", "NEUTRAL"])
    classifier(small_tokenizer, ["NEG", "POS"]).encoder.save_pretrained(tmp_path / "encoder")
    with pytest.warns(UserWarning, match="newly initialised"):
        new = kbi.TextClassifier.from_pretrained(tmp_path / "encoder", class_names=["NEG", "POS"])
    new.save_pretrained(tmp_path / "untrained")
    for names in (["bad", "good"], ["POS", "NEG"], ["POS", "other"]):
        with pytest.warns(UserWarning, match="values are random") as told:
            again = kbi.TextClassifier.from_pretrained(tmp_path / "untrained", class_names=names)
        assert not any("renames" in str(warning.message) for warning in told)
        assert again.class_names == names and untrained_heads(again, again.weights) == ["classifier"]
