"""The preprocessors: the same rows of lists and in the graphs of tf.data, and what `fit` of KerasHub's guide needs."""

import copy
import pickle

import keras
import numpy as np
import pandas
import pytest
from conftest import QUICK_STEPS
from tiers import every_backend, full_on, on

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing import (
    ChoicePreprocessor,
    MaskedLMPreprocessor,
    Masking,
    QuestionPreprocessor,
    TextPreprocessor,
    WordsPreprocessor,
)
from keras_bert_impl.preprocessing.fit_inputs import rows_of

TEXTS = ["the cats ran in the rain on a mat", "a", "", "\u0130stanbul \u03a3\u0391\u03a3 the\u200d cat"]
PAIRS = (TEXTS, ["red rain", "red blue rain in the rain on a red mat", "cat", ""])
WORDS = [["the", "cats", "\u200d", "ran"], ["a"], ["red", "rain", "cats", "cats", "in"]]
TAGS = [["O", "B", "I", "O"], ["I"], ["O", "O", "B", "I", "I"]]
CONTEXT = "the cats ran in the r\u00e4in on a mat . red blue cats sat on a mat"
ANSWER = {"text": ["cats sat"], "answer_start": [CONTEXT.index("cats sat")]}


def assert_equal(found, expected):
    found, expected = (keras.tree.flatten(each) for each in (found, expected))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def dataset(*parts):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])


def one_element(element):
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(element)


def stacked(elements):
    return keras.tree.map_structure(lambda *parts: np.stack(parts), *elements)


@on("tensorflow")
@pytest.mark.parametrize("truncate", ["longest_first", "waterfall", "head_and_tail"])
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
def test_a_graph_gives_the_rows_of_lists_before_and_after_batch(texts, truncate, small_tokenizer):
    of_lists, of_graph = (TextPreprocessor(small_tokenizer, 8, truncate, class_names="no yes".split()) for _ in "ab")
    names, weights = ["yes", "no", "no", "yes"], [1.0, 2.0, 3.0, 4.0]
    expected = of_lists(texts, names, weights)
    assert expected[1].tolist() == [1, 0, 0, 1]
    data = dataset(texts, names, weights)
    assert_equal(next(iter(data.batch(4).map(of_graph, num_parallel_calls=2))), expected)
    assert of_graph.num_cut == of_lists.num_cut > 0
    assert_equal(stacked(data.map(of_graph).as_numpy_iterator()), expected)
    alone = dataset((texts,)) if isinstance(texts, tuple) else dataset(texts)
    assert_equal(next(iter(alone.batch(4).map(of_graph))), expected[0])
    assert [spec.shape for spec in data.batch(2, True).map(of_graph).element_spec[0].values()] == [(2, 8)] * 3
    columns = ({"text": texts} if isinstance(texts, list) else dict(zip(("text", "text_pair"), texts, strict=True))) | {
        "label": names
    }
    assert_equal(next(iter(dataset(columns).batch(4).map(of_graph))), expected[:2])


@on("tensorflow")
def test_a_label_that_names_no_class_and_a_second_text_in_its_place_are_errors(small_tokenizer):
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match="not among the class_names"):
        next(iter(dataset(["a"], ["maybe"]).map(TextPreprocessor(small_tokenizer, 8, class_names=["no", "yes"]))))
    for data in (dataset(["a"], ["b"]).map, lambda preprocessor: preprocessor(["a"], ["b"])):
        with pytest.raises(ValueError, match="no class_names"):
            data(TextPreprocessor(small_tokenizer, 8))
    for text in ("a", tf.constant("a")):
        with pytest.raises(ValueError, match="no room"):
            TextPreprocessor(small_tokenizer, 2)(text)
    with pytest.raises(ValueError, match="first text of pair 1 alone"):
        TextPreprocessor(small_tokenizer, 8, "only_second")((["a", TEXTS[0]], ["the", "cat"]))
    with pytest.raises(ValueError, match="maybe"):
        TextPreprocessor(small_tokenizer, 8, class_names=["no", "yes"])("a", "maybe")


@on("tensorflow")
def test_classes_named_by_numbers_are_found_by_them_in_a_graph_too(small_tokenizer):
    import tensorflow as tf

    preprocessor = TextPreprocessor(small_tokenizer, 8, class_names=["3", "1"])
    labels = [1, 3, 3]
    assert preprocessor(["a"] * 3, labels)[1].tolist() == [1, 0, 0]
    for found in (
        next(iter(dataset(["a"] * 3, labels).batch(3).map(preprocessor))),
        preprocessor(tf.constant(["a"] * 3), labels),
        preprocessor(tf.constant(["a"] * 3), ["1", "3", "3"]),
    ):
        assert found[1].numpy().tolist() == [1, 0, 0]


@on("tensorflow")
def test_several_classes_of_a_text_are_0_and_1_in_a_graph_as_of_lists(small_tokenizer):
    import tensorflow as tf

    preprocessor = TextPreprocessor(small_tokenizer, 8, class_names=["a", "b", "c"], multi_label=True)
    sets = [["c"], [], ["b", "a"]]
    expected = preprocessor(["a"] * 3, sets)
    assert expected[1].tolist() == [[0, 0, 1], [0, 0, 0], [1, 1, 0]]
    data = dataset(["a"] * 3, tf.ragged.constant(sets))
    assert_equal(next(iter(data.batch(3).map(preprocessor))), expected)
    assert_equal(stacked(data.map(preprocessor).as_numpy_iterator()), expected)
    for names in ("abc", "210"):
        dense = TextPreprocessor(small_tokenizer, 8, class_names=list(names), multi_label=True)
        assert_equal(next(iter(dataset(["a"] * 3, expected[1]).batch(3).map(dense))), expected)


@on("tensorflow")
def test_labels_of_words_stand_at_their_first_pieces_in_a_graph_as_of_lists(small_tokenizer):
    import tensorflow as tf

    preprocessor = WordsPreprocessor(small_tokenizer, 7, class_names=["O", "B", "I"])
    weights = [[0.5, 1.0, 2.0, 3.0], [4.0], [5.0, 6.0, 7.0, 8.0, 9.0]]
    expected = preprocessor(WORDS, TAGS, weights)
    # [CLS] the cat ##s [UNK] ran [SEP]: the third row loses its last two words.
    assert expected[1].tolist() == [[-1, 0, 1, -1, 2, 0, -1], [-1, 2] + [-1] * 5, [-1, 0, 0, 2 - 1, -1, -1, -1]]
    assert expected[2][0].tolist() == [0, 0.5, 1, 0, 2, 3, 0]
    assert preprocessor.num_cut == 1
    data = dataset(*map(tf.ragged.constant, (WORDS, TAGS, weights)))
    assert_equal(next(iter(data.batch(3).map(preprocessor))), expected)
    assert_equal(stacked(data.map(preprocessor).as_numpy_iterator()), expected)
    assert_equal(next(iter(data.map(lambda *parts: parts).padded_batch(3).map(preprocessor))), expected)


@on("tensorflow")
def test_choices_and_questions_in_a_graph_are_those_of_lists(small_tokenizer):
    choices = ChoicePreprocessor(small_tokenizer, 8)
    x, y = (["the cat", "a"], [["ran", "sat on a mat in the rain"], ["red", "blue"]]), [0, 1]
    expected = choices(x, y)
    assert expected[0]["token_ids"].shape == (2, 2, 8)
    assert_equal(next(iter(dataset(x, y).batch(2).map(choices))), expected)
    questions = QuestionPreprocessor(small_tokenizer, 12, stride=3)
    for answer in (ANSWER, {"text": [], "answer_start": []}):
        rows, positions = questions(("the cat", CONTEXT), answer, 2.0)[:2]
        found = [
            row[first : last + 1].tolist() for row, (first, last) in zip(rows["token_ids"], positions, strict=True)
        ]
        cat_sat = [small_tokenizer.vocabulary.index(token) for token in ("cat", "##s", "sat")]
        assert (cat_sat in found) == bool(answer["text"])
        arrays = {"text": np.array(answer["text"], "U"), "answer_start": np.array(answer["answer_start"], "int32")}
        data = one_element((("the cat", CONTEXT), arrays, 2.0))
        assert_equal(next(iter(data.map(questions))), (rows, positions, np.full(len(positions), 2.0)))
    for count, call in enumerate((questions, lambda x: next(iter(one_element((x,)).map(questions)))), start=1):
        call(("the cat ran on a mat", CONTEXT))
        assert questions.num_cut == count


@on("tensorflow")
@pytest.mark.parametrize("unit", ["token", "whole_word", "span"])
def test_each_pass_has_other_masks_and_a_graph_those_of_lists(unit, small_tokenizer):
    keras.utils.set_random_seed(1)  # by which seeded operations of a map would begin again in each pass
    of_lists, of_graph = (MaskedLMPreprocessor(small_tokenizer, 12, seed=3, unit=unit) for _ in "ab")
    data = dataset(TEXTS).batch(4).map(of_graph)
    passes = [of_lists(TEXTS) for _ in range(3)]
    for expected in passes:
        assert_equal(next(iter(data)), expected)
    assert any((one != passes[0][0]["token_ids"]).any() for one in (two[0]["token_ids"] for two in passes[1:]))
    inputs, mask_ids, mask_weights = passes[0]
    restored = inputs["token_ids"].copy()
    for row, place, token, weight in zip(restored, inputs["mask_positions"], mask_ids, mask_weights, strict=True):
        row[place[weight > 0]] = token[weight > 0]
    assert_equal(restored, TextPreprocessor(small_tokenizer, 12)(TEXTS)["token_ids"])


@on("tensorflow")
def test_a_strategy_gets_its_masks_from_rows_that_are_mapped_in_its_scope(small_tokenizer):
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    rows = TextPreprocessor(small_tokenizer, 12)(TEXTS)
    with strategy.scope():
        masking = Masking(small_tokenizer, seed=5)
        data = strategy.distribute_datasets_from_function(lambda _: dataset(rows).repeat().batch(4).map(masking))
    found = iter(data)
    for epoch in range(2):
        assert_equal(
            keras.tree.map_structure(np.asarray, next(found)), Masking(small_tokenizer, seed=5)(rows, epoch=epoch)
        )


def test_examples_of_a_loader_and_of_datasets_are_collated(small_tokenizer):
    torch = pytest.importorskip("torch")
    preprocessor = TextPreprocessor(small_tokenizer, 8, class_names=["no", "yes"])
    expected = preprocessor(TEXTS, ["yes", "no", "no", "yes"])
    names = ["yes", "no", "no", "yes"]
    loader = torch.utils.data.DataLoader(list(zip(TEXTS, names, strict=True)), 4, collate_fn=preprocessor)
    assert_equal(next(iter(loader)), expected)
    assert_equal(
        preprocessor([{"text": text, "label": name} for text, name in zip(TEXTS, names, strict=True)]), expected
    )
    pairs = list(zip(zip(*PAIRS, strict=True), [1, 0, 0, 1], strict=True))
    assert_equal(preprocessor(pairs), preprocessor(PAIRS, [1, 0, 0, 1]))
    assert_equal(
        preprocessor(("the cat", "red"), 1),
        keras.tree.map_structure(lambda part: part[0], preprocessor((["the cat"], ["red"]), [1])),
    )
    table = pandas.DataFrame({"text": TEXTS, "label": names})
    assert_equal(preprocessor(table), expected)
    assert_equal(preprocessor(table["text"], table["label"]), expected)
    with pytest.raises(ValueError, match="sentence"):
        preprocessor({"sentence": TEXTS})
    choices, x = ChoicePreprocessor(small_tokenizer, 8), (["the", "a"], [["cat", "mat"], ["red", "blue"]])
    assert_equal(choices(list(zip(zip(*x, strict=True), [0, 1], strict=True))), choices(x, [0, 1]))
    questions, x = QuestionPreprocessor(small_tokenizer, 32), (["the cat", "a"], [CONTEXT] * 2)
    dicts = [{"text": ["cats ran"], "answer_start": [4]}, {"text": [], "answer_start": []}]
    assert_equal(questions(x, [("cats ran", 4), None]), questions(x, dicts))


def test_preprocessors_are_copied_and_described(small_tokenizer):
    for preprocessor in (
        TextPreprocessor(small_tokenizer, 8, "waterfall", ["a", "b"]),
        WordsPreprocessor(small_tokenizer, 8, ["O", "B"]),
        ChoicePreprocessor(small_tokenizer, 8),
        QuestionPreprocessor(small_tokenizer, 12, 3),
        MaskedLMPreprocessor(small_tokenizer, 12, unit="span", mask_token_rate=1.0, random_token_rate=0.0),
        Masking(small_tokenizer, 3, 7, unit="whole_word"),
    ):
        opened = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(preprocessor))
        for other in (opened, pickle.loads(pickle.dumps(preprocessor)), copy.deepcopy(preprocessor)):
            assert type(other) is type(preprocessor)
            assert other.get_config() == preprocessor.get_config()


NAMES = {"num_classes": 2, "class_names": ["no", "yes"]}


@pytest.mark.parametrize(
    ("kind", "options", "x", "y"),
    [
        ("TextClassifier", NAMES, TEXTS, ["no", "yes"] * 2),
        ("TextClassifier", {"num_classes": 2, "long_texts": "head_and_tail"}, TEXTS, [0, 1, 1, 0]),
        ("TextClassifier", {"num_classes": 2, "long_texts": "windows"}, TEXTS, [0, 1, 1, 0]),
        ("TextClassifier", {**NAMES, "multi_label": True}, TEXTS, [["no"], [], ["yes", "no"], ["yes"]]),
        ("TextRegressor", {}, PAIRS, [0.5, 1.0, 2.0, 3.0]),
        ("TokenClassifier", {"num_classes": 3, "class_names": ["O", "B", "I"]}, WORDS, TAGS),
        ("QuestionAnswerer", {}, (["the cat", "a"], [CONTEXT] * 2), [ANSWER, None]),
        ("MultipleChoice", {}, (["a", "the"], [["cat", "cat ran"], ["red", "rain"]]), [0, 1]),
    ],
)
def test_the_preprocessor_of_a_model_makes_what_fit_trains_on(kind, options, x, y, small_config, small_tokenizer):
    encoder = kbi.BertEncoder(small_config)
    model = getattr(kbi, kind)(encoder, tokenizer=small_tokenizer, sequence_length=11, **options)
    rows = rows_of(model, model.make_preprocessor(), x, y, None)
    inputs, labels = model.preprocessor(x, y)[:2]
    assert_equal(inputs, model.make_preprocessor().packed(rows, 11)[0])
    np.testing.assert_array_equal(labels, rows.labels)


def test_a_model_without_a_tokenizer_or_of_columns_has_no_preprocessor(small_config, small_tokenizer):
    encoder = kbi.BertEncoder(small_config)
    assert kbi.TextClassifier(encoder, 2).preprocessor is None
    assert kbi.TextEmbedder(encoder, tokenizer=small_tokenizer).preprocessor is None


@every_backend
@full_on("jax", "tensorflow")
def test_a_model_without_a_tokenizer_is_trained_on_mapped_rows(small_config, small_tokenizer):
    """As KerasHub's guide of text classification does it."""
    preprocessor = TextPreprocessor(small_tokenizer, 11, class_names=["no", "yes"])
    model = kbi.TextClassifier(kbi.BertEncoder(small_config), 2)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], **QUICK_STEPS)
    model.optimizer.learning_rate = 0.01
    data = dataset(["the cat", "red rain"] * 4, ["yes", "no"] * 4).map(preprocessor).batch(4).cache().prefetch(1)
    figures = model.fit(data, epochs=12, verbose=0, validation_data=data).history
    assert figures["val_accuracy"][-1] == 1.0
    of_lists = model.predict(preprocessor(["the cat", "red rain"]), verbose=0)
    np.testing.assert_allclose(of_lists, model.predict(data, verbose=0)[:2], atol=1e-5)


@pytest.mark.parametrize("labels", [["good", float("nan")], [1, 2], [0, 1.5], [-1, 0]])
def test_numbers_that_are_no_class_are_refused(labels, small_tokenizer):
    preprocessor = kbi.preprocessing.TextPreprocessor(small_tokenizer, 8, class_names=["bad", "good"])
    with pytest.raises(ValueError, match=r"labels\[\d\] is .*, not the number of a class, 0 to 1"):
        preprocessor(["the cat", "a dog"], labels)


@pytest.mark.parametrize(
    ("labels", "multi_label"), [([0, 2], False), ([0.0, 1.5], False), ([[0, 7], [1]], True), ([[-1], [1]], True)]
)
def test_numbers_that_are_no_class_are_refused_in_a_graph(labels, multi_label, small_tokenizer):
    tf = pytest.importorskip("tensorflow")
    options = {"class_names": ["bad", "good"], "multi_label": multi_label}
    preprocessor = kbi.preprocessing.TextPreprocessor(small_tokenizer, 8, **options)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not numbers of the 2 classes"):
        preprocessor(
            tf.constant(["the cat", "a dog"]), tf.ragged.constant(labels) if multi_label else tf.constant(labels)
        )
    if multi_label:
        with pytest.raises(ValueError, match=r"labels\[0\] is .*: give different classes"):
            preprocessor(["the cat", "a dog"], labels)


def test_different_numbers_of_choices_are_refused_in_a_graph(small_tokenizer):
    tf = pytest.importorskip("tensorflow")
    preprocessor = kbi.preprocessing.ChoicePreprocessor(small_tokenizer, 8)
    texts = tf.constant(["the cat", "a dog"])
    same = preprocessor((texts, tf.ragged.constant([["sat", "ran"], ["is", "on"]])))
    assert same["token_ids"].shape == (2, 2, 8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="different numbers of choices"):
        preprocessor((texts, tf.ragged.constant([["sat", "ran"], ["is"]])))


def test_class_numbers_of_any_type_pass_a_graph(small_tokenizer):
    tf = pytest.importorskip("tensorflow")
    preprocessor = kbi.preprocessing.TextPreprocessor(small_tokenizer, 8, class_names=["bad", "good"])
    for dtype in ("uint8", "int64", "float32"):
        _, labels = preprocessor(tf.constant(["the cat", "a dog"]), tf.constant([1, 0], dtype))
        assert labels.numpy().tolist() == [1, 0]
