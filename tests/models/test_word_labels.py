"""Token classifiers fitted on words and on marked characters, and asked for entities."""

import keras
import numpy as np
import pytest
import transformers
from conftest import QUICK_STEPS, revealing_config
from conftest import WORDS as VOCABULARY
from tiers import full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.fit_inputs import inputs, rows_of
from keras_bert_impl.preprocessing.texts import BatchSource

CLASSES = ["O", "B-A", "I-A", "B-B", "I-B"]
WORDS = [["the", "cats", "sat"], ["red", "dogs", "ran", "on"], ["rain"]]
LABELS = [["O", "B-A", "I-A"], ["B-B", "I-B", "O", "O"], ["B-A"]]
TEXTS = ["the cats sat", "red dogs ran on", "rain"]
SPANS = [[(4, 12, "A")], [(0, 8, "B")], [(0, 4, "A")]]
LONG = "the cats sat on a mat, red dogs ran in rain. is it bad? yes, the mats sat on it! a dog is good, cats ran."


@pytest.fixture
def model(small_tokenizer):
    """Weights so large that words have different labels."""
    return make(small_tokenizer)


def make(tokenizer):
    keras.utils.set_random_seed(4)
    config = revealing_config(tokenizer, max_length=20, initializer_range=0.7)
    return kbi.TokenClassifier(kbi.BertEncoder(config), len(CLASSES), tokenizer, class_names=CLASSES)


@pytest.fixture(scope="module")
def trained():
    model = make(kbi.WordPieceTokenizer(VOCABULARY))
    model.optimizer.learning_rate = 1e-2
    assert model.fit(TEXTS, SPANS, epochs=40, verbose=0).history["loss"][-1] < 0.1
    return model


@pytest.mark.parametrize("argument", full_but(["metrics", "weighted_metrics"], "metrics"))
@pytest.mark.parametrize(
    "given",
    [
        {"classifier": ["accuracy"]},
        [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        [keras.metrics.sparse_categorical_accuracy],
    ],
    ids=["name", "object", "function"],
)
def test_accuracy_counts_only_labelled_tokens(model, argument, given):
    expected = model.evaluate(WORDS, LABELS, verbose=0, return_dict=True)["accuracy"]
    model.compile(optimizer="adam", loss=model.loss, **{argument: given})
    found = model.evaluate(WORDS, LABELS, verbose=0, return_dict=True)
    [name] = found.keys() - {"loss"}
    assert found[name] == expected == pytest.approx(round(expected * 8) / 8)  # of eight words


def test_a_metric_that_counts_padding_is_refused(model):
    for metric in (keras.metrics.SparseTopKCategoricalAccuracy(2), keras.metrics.MeanIoU(5, sparse_y_pred=False)):
        with pytest.raises(ValueError, match="counts the tokens without a label, padding too, which the loss ignores"):
            model.compile(optimizer="adam", loss=model.loss, metrics=[metric])
    iou = keras.metrics.MeanIoU(5, sparse_y_pred=False, ignore_class=-1)
    model.compile(optimizer="adam", loss=model.loss, metrics=[iou])


def test_a_label_for_each_word_of_a_string_is_refused_with_the_remedy(model):
    with pytest.raises(ValueError, match="pass lists of words and one number for each word"):
        model.fit(TEXTS, LABELS, verbose=0)


def test_what_was_learnt_is_told_in_words(trained):
    assert [[(found.text, found.label) for found in entities] for entities in trained.tag(TEXTS)] == [
        [("cats sat", "A")],
        [("red dogs", "B")],
        [("rain", "A")],
    ]
    assert [[label.label for label in labels] for labels in trained.tag(WORDS)] == LABELS
    assert trained.tag(TEXTS[0])[0].text == "cats sat"


def test_words_and_spans_give_the_same_rows(model):
    preprocessor = model.make_preprocessor()
    words, spans = (rows_of(model, preprocessor, *data, None) for data in ((WORDS, LABELS), (TEXTS, SPANS)))
    np.testing.assert_array_equal(words.labels, spans.labels)
    assert words.first == spans.first


def test_a_label_of_none_and_a_weight_of_0_teach_nothing(model):
    fresh = model.get_weights()
    model.optimizer.learning_rate = 1e-2
    model.fit(WORDS[:1], [["O", "B-A", "O"]], sample_weight=[[1, 0, 1]], epochs=3, verbose=0)
    by_weight = model.get_weights()
    model.set_weights(fresh)
    model.compile(kbi.optimization.BertAdamW(1e-2), loss=model.loss)
    model.fit(WORDS[:1], [["O", -100, "O"]], epochs=3, verbose=0)
    for one, other in zip(by_weight, model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert not np.allclose(fresh[-2], other[-2])


@pytest.mark.parametrize("aggregation", ["first", "average", "max"])
def test_entities_are_those_of_transformers(model, aggregation, tmp_path):
    model.save_pretrained(tmp_path)
    theirs = transformers.pipeline("token-classification", str(tmp_path), aggregation_strategy=aggregation)
    texts = [LONG[:22], "cats dogs mats", "unknownword cats", *TEXTS]
    found = model.tag(texts, aggregation)
    assert sum(map(len, found)) > 5
    for text, entities in zip(texts, found, strict=True):
        expected = theirs(text)
        assert [(one.label, one.start, one.end) for one in entities] == [
            (one["entity_group"], one["start"], one["end"]) for one in expected
        ]
        assert all(one.text == text[one.start : one.end] for one in entities)
        np.testing.assert_allclose([one.score for one in entities], [one["score"] for one in expected], atol=1e-5)


def test_long_texts_are_tagged_to_their_end_by_windows(model):
    """Attention is off, so that a piece's logits do not depend on what else its window shows; positions are all 0."""
    for weight in model.encoder.weights:
        if "position_embedding" in weight.path or "/attention/" in weight.path:
            weight.assign(np.zeros(weight.shape))
    kernel = model.get_layer("classifier").kernel
    kernel.assign(np.random.default_rng(1).normal(size=kernel.shape, scale=2.0))
    assert len(model.tokenizer.encode(LONG, add_special_tokens=False).ids) > 2 * 18  # three windows
    alone = [model.tag([[word]])[0][0].label for word in LONG.split()]
    found = [label.label for label in model.tag([LONG.split()])[0]]
    assert found == alone and len(set(found)) > 1


@pytest.mark.parametrize("mark", ["\u0301", "\u0301\u0327"])
def test_an_entity_keeps_the_accents_that_the_tokenizer_drops(trained, mark):
    [found] = trained.tag(f"the cats sat{mark}")
    assert found.text == f"cats sat{mark}" and found.end == len(f"the cats sat{mark}")


def test_nothing_is_found_in_nothing(model):
    assert model.tag("") == [] and model.tag(["", " \u200b"]) == [[], []] and model.tag([[], ["a"]])[0] == []


@pytest.mark.parametrize(
    "data, message",
    [
        ((WORDS, LABELS[:2]), "zip"),
        ((WORDS, [["O", "B-A"], *LABELS[1:]]), r"labels\[0\] has 2 values, but text 0 has 3 words"),
        ((WORDS, [*LABELS[:2], ["B-C"]]), r"labels\[2\]\[0\] is 'B-C', which is not one of the classes O, B-A"),
        ((WORDS, [*LABELS[:2], [5]]), r"labels\[2\]\[0\] is 5, out of range"),
        ((["the cats", ["sat"]], [["O"], ["O"]]), "text 0 is 'the cats', but other texts are lists of words"),
        ((TEXTS, SPANS[:2]), "zip"),
    ],
)
def test_words_and_labels_that_do_not_fit_are_refused_with_the_row(model, data, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*data, verbose=0)


@pytest.mark.parametrize("data", [(WORDS, LABELS), (TEXTS, SPANS)], ids=["words", "spans"])
def test_batches_of_a_loader_have_the_labels_of_lists(model, data):
    source = BatchSource(lambda: iter([data, (*data, [1.0, 2.0, 3.0])]), 2)
    batches = inputs(model, model.make_preprocessor(), source, with_labels=True)
    batches.on_epoch_begin()
    arrays, labels = batches[0]
    rows = rows_of(model, model.make_preprocessor(), *data, None)
    width = rows.labels.shape[1]
    np.testing.assert_array_equal(labels[:, :width], rows.labels)
    assert labels.shape == arrays["token_ids"].shape == (3, 20) and (labels[:, width:] == -1).all()
    assert (batches.num_cut, batches.num_texts) == (0, 3)
    np.testing.assert_array_equal(batches[1][2], [1.0, 2.0, 3.0])


def test_accuracy_does_not_depend_on_the_batches(model):
    """A token counts once, whatever the length of the batch it is in."""
    words, labels = [["the"] * 12, ["rain"], ["red", "dogs"]] * 2, [["O"] * 12, ["B-A"], ["B-B", "I-B"]] * 2
    tagged = [label.label for row in model.tag(words) for label in row]
    right = np.mean(
        [one == other for one, other in zip([label for row in labels for label in row], tagged, strict=True)]
    )
    for size in (1, 2, 6):
        found = model.evaluate(words, labels, batch_size=size, verbose=0, return_dict=True)["accuracy"]
        assert found == pytest.approx(right, abs=1e-6)


def test_spans_may_stand_in_spacy_s_dicts(model):
    dicts = [{"entities": spans} for spans in SPANS]
    assert model.evaluate(TEXTS, dicts, verbose=0) == model.evaluate(TEXTS, SPANS, verbose=0)


@on("tensorflow")
@pytest.mark.parametrize("form", full_but(["ragged", "padded"], "padded"))
def test_a_dataset_of_words_and_names_of_labels_is_read_as_lists_are(model, form):
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(WORDS), tf.ragged.constant(LABELS)))
    if form == "ragged":
        dataset = rows.batch(2)
    else:
        dataset = rows.map(lambda *row: tuple(part.to_tensor() if hasattr(part, "to_tensor") else part for part in row))
        dataset = dataset.padded_batch(2, padded_shapes=([None], [None]))
    model.compile("sgd", model.loss, metrics=["accuracy"], **QUICK_STEPS)
    expected = model.evaluate(WORDS, LABELS, verbose=0, return_dict=True)
    found = model.evaluate(dataset, verbose=0, return_dict=True)
    assert found == pytest.approx(expected, rel=1e-5)
    model.fit(dataset, verbose=0)


def test_an_empty_word_has_no_label_and_would_shift_the_others(model):
    assert [len(labels) for labels in model.tag([["the", "cats", ""], [""]])] == [2, 0]  # padding
    with pytest.raises(ValueError, match="text 1 has an empty word"):
        model.tag([["the"], ["the", "", "cats"]])
