"""Texts that are longer than a row: cut, without their middle, in windows."""

import keras
import numpy as np
import pytest
from conftest import revealing_config
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.fit_inputs import rows_of
from keras_bert_impl.preprocessing.long_texts import head_and_tail
from keras_bert_impl.preprocessing.splits_and_weights import with_class_weights

SHORT = "the cat sat"
LONG = "the cat sat on a mat in rain . a red dog ran . it is"  # 16 tokens
ROOM = 8  # rows of 10


@pytest.fixture
def build(small_tokenizer):
    """Function from a model's class to a model with weights so large that texts differ; rows are of ten tokens."""

    def of_kind(kind, *arguments, **more):
        keras.utils.set_random_seed(3)
        config = revealing_config(small_tokenizer, max_length=10, initializer_range=0.5)
        return kind(kbi.BertEncoder(config), *arguments, tokenizer=small_tokenizer, **more)

    return of_kind


def windows_of(words):
    """The texts of the windows: eight words from every fourth, the last one to the end."""
    return [" ".join(words[begin : begin + ROOM]) for begin in (0, 4, 8)]


def test_a_quarter_comes_from_the_beginning_and_the_rest_from_the_end():
    assert head_and_tail(list(range(20)), 8) == [0, 1, *range(14, 20)]
    assert head_and_tail([1, 2, 3], 3) == [1, 2, 3]
    assert head_and_tail([1, 2, 3, 4], 3) == [2, 3, 4]


def test_a_text_without_its_middle_is_computed_as_such(build):
    model = build(kbi.TextClassifier, 3, long_texts="head_and_tail")
    words = LONG.split()
    with pytest.warns(UserWarning, match="1 of 2 texts have more than 10 tokens"):
        found = model.predict([LONG, SHORT], verbose=0)
    expected = model.predict([" ".join([*words[:2], *words[-6:]]), SHORT], verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "kind, arguments", [(kbi.TextClassifier, (3,)), (kbi.TextRegressor, ()), (kbi.TextEmbedder, ())]
)
def test_the_outputs_of_windows_are_averaged(build, kind, arguments):
    model = build(kind, *arguments, long_texts="windows")
    parts = model.predict(windows_of(LONG.split()), verbose=0)
    expected = np.stack([model.predict([SHORT], verbose=0)[0], parts.mean(axis=0)])
    np.testing.assert_allclose(model.predict([SHORT, LONG], verbose=0), expected, atol=1e-5)
    assert np.abs(parts - parts.mean(axis=0)).max() > 1e-3


def test_vectors_of_windows_have_length_1_if_vectors_do(build):
    model = build(kbi.TextEmbedder, long_texts="windows", normalize=True)
    np.testing.assert_allclose(np.linalg.norm(model.embed([LONG, SHORT]), axis=1), 1, atol=1e-5)


def test_windows_are_trained_as_rows_that_share_the_weight_of_their_text(build):
    model = build(kbi.TextClassifier, 3, long_texts="windows")
    rows = rows_of(model, model.make_preprocessor(), [SHORT, LONG], [2, 1], [0.5, 3.0])
    assert rows.labels.tolist() == [2, 1, 1, 1]
    np.testing.assert_allclose(rows.weights, [1, 2, 2, 2])  # of two texts and four rows
    assert rows_of(model, model.make_preprocessor(), [SHORT, SHORT], [2, 1], None).weights is None
    model.optimizer.learning_rate = 1e-2
    losses = model.fit([SHORT, LONG] * 4, [2, 1] * 4, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.3 * losses[0]
    assert [labels[0].label for labels in model.classify([SHORT, LONG])] == ["2", "1"]


def figures_of_texts(model, texts, labels, weights=None):
    """Loss and accuracy, or error, of whole texts by hand."""
    outputs = model.predict(texts, verbose=0)
    weights = np.ones(len(texts)) if weights is None else np.array(weights)
    if isinstance(model, kbi.TextRegressor):
        errors = (outputs[:, 0] - labels) ** 2
        return (weights * errors).sum() / len(texts), np.abs(outputs[:, 0] - labels).mean()
    logs = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
    losses = -logs[np.arange(len(texts)), labels]
    return (weights * losses).sum() / len(texts), (outputs.argmax(axis=1) == labels).mean()


TEXTS = [LONG, SHORT, "a red dog", f"{LONG} {LONG}", "it is good"]


@pytest.mark.parametrize(
    ("kind", "arguments", "labels", "weights"),
    [
        (kbi.TextClassifier, (3,), [0, 1, 2, 1, 0], None),
        (kbi.TextRegressor, (), [0.5, -1.0, 2.0, 0.0, 1.0], [1.0, 2.0, 0.5, 3.0, 0.0]),
    ],
)
def test_evaluation_and_validation_are_of_texts_and_not_of_windows(build, kind, arguments, labels, weights):
    model = build(kind, *arguments, long_texts="windows")
    labels = np.array(labels)
    expected = figures_of_texts(model, TEXTS, labels, weights)
    given = None if weights is None else np.array(weights)
    named = model.evaluate(TEXTS, labels, sample_weight=given, batch_size=2, verbose=0, return_dict=True)
    np.testing.assert_allclose([named.pop("loss"), *named.values()], expected, rtol=1e-5)
    validation = (TEXTS, labels) if weights is None else (TEXTS, labels, given)
    model.optimizer.learning_rate = 0.0
    history = model.fit(TEXTS, labels, validation_data=validation, verbose=0).history
    found = {name: values[0] for name, values in history.items() if name.startswith("val_")}
    np.testing.assert_allclose([found.pop("val_loss"), *found.values()], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "arguments", "labels", "weights"),
    [
        (kbi.TextClassifier, (3,), [0, 1, 2, 1], [1.0, 2.0, 0.5, 3.0]),
        (kbi.TextRegressor, (), [0.5, -1.0, 2.0, 0.0], None),
    ],
)
def test_the_loss_of_training_is_of_texts_too(build, kind, arguments, labels, weights):
    """Of texts whose windows are all the same, so that the mean of their losses is the loss of their mean."""
    model = build(kind, *arguments, long_texts="windows", dropout_rate=0.0)
    texts, labels = ["the cat sat on " * count for count in (2, 9, 3)] + [SHORT], np.array(labels)
    weights = None if weights is None else np.array(weights)
    expected, _ = figures_of_texts(model, texts, labels, weights)
    model.optimizer.learning_rate = 0.0
    history = model.fit(texts, labels, sample_weight=weights, batch_size=4, verbose=0).history
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-5)


def test_classes_have_weights_also_where_texts_have_windows(build):
    model = build(kbi.TextClassifier, 3, long_texts="windows", dropout_rate=0.0)
    model.optimizer.learning_rate = 0.0
    labels, by_class = np.array([0, 1, 2, 1, 0]), np.array([0.5, 2.0, 0.0])
    found = model.fit(TEXTS, labels, class_weight=dict(enumerate(by_class)), batch_size=99, verbose=0).history["loss"]
    rows = rows_of(model, model.make_preprocessor(), TEXTS, labels, by_class[labels])
    expected = model.fit(TEXTS, labels, sample_weight=by_class[labels], batch_size=99, verbose=0).history["loss"]
    assert len(rows) > len(TEXTS) and found == pytest.approx(expected, rel=1e-5)
    rows = rows_of(model, model.make_preprocessor(), TEXTS, labels, None)
    weights = with_class_weights("balanced", rows)  # of five texts two, two and one have a class
    sums = np.array([weights[rows.labels == label].sum() for label in range(3)])
    np.testing.assert_allclose(sums * len(TEXTS) / len(rows), 5 / 3, rtol=1e-5)


def test_several_labels_of_a_text_are_those_of_each_of_its_windows(build):
    model = build(kbi.TextClassifier, 3, long_texts="windows", multi_label=True)
    assert rows_of(model, model.make_preprocessor(), [LONG], [[0, 2]], None).labels.tolist() == [[1, 0, 1]] * 3


def test_how_long_texts_are_read_is_kept(build, tmp_path):
    model = build(kbi.TextClassifier, 3, long_texts="windows")
    expected = model.predict([LONG], verbose=0)
    model.save_pretrained(tmp_path / "checkpoint")
    model.save(tmp_path / "model.keras")
    for again in (
        kbi.TextClassifier.from_pretrained(tmp_path / "checkpoint"),
        keras.saving.load_model(tmp_path / "model.keras"),
    ):
        np.testing.assert_allclose(again.predict([LONG], verbose=0), expected, atol=1e-5)


def test_an_unknown_way_with_long_texts_is_refused(build):
    with pytest.raises(ValueError, match="long_texts 'split' is unknown; known are cut, head_and_tail, windows"):
        build(kbi.TextClassifier, 3, long_texts="split")


def test_pairs_are_cut(build):
    model, cut = build(kbi.TextClassifier, 3, long_texts="windows"), build(kbi.TextClassifier, 3)
    with pytest.warns(UserWarning, match="1 of 1 texts"):
        found = model.predict(([LONG], [SHORT]), verbose=0)
    np.testing.assert_allclose(found, cut.predict(([LONG], [SHORT]), verbose=0), atol=1e-6)


def loader(*columns, batch_size=2):
    """A DataLoader over tuples of a text, its label, ..., or over texts alone."""
    from torch.utils.data import DataLoader

    return DataLoader(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)), batch_size)


def dataset(*columns, batch_size=2):
    tf = pytest.importorskip("tensorflow")
    columns = columns[0] if len(columns) == 1 else columns
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


LABELS = [0, 1, 2, 1, 0]


@pytest.mark.parametrize("make", full_but([loader, dataset], loader))
def test_texts_of_a_dataset_are_evaluated_and_predicted_as_those_in_memory(build, make):
    model = build(kbi.TextClassifier, 3, long_texts="windows")
    expected = model.predict(TEXTS, verbose=0)
    for batches in (make(TEXTS), make(TEXTS, LABELS)):
        np.testing.assert_allclose(model.predict(batches, verbose=0), expected, atol=1e-5)
    np.testing.assert_allclose(model.predict(make(TEXTS), steps=1, verbose=0), expected[:2], atol=1e-5)
    figures = model.evaluate(TEXTS, np.array(LABELS), verbose=0)
    np.testing.assert_allclose(model.evaluate(make(TEXTS, LABELS), verbose=0), figures, rtol=1e-5)
    weights = np.array([1.0, 2.0, 0.5, 3.0, 0.0], "float32")
    expected = model.evaluate(TEXTS, np.array(LABELS), sample_weight=weights, verbose=0)
    np.testing.assert_allclose(model.evaluate(make(TEXTS, LABELS, weights), verbose=0), expected, rtol=1e-5)
    model.optimizer.learning_rate = 0.0
    history = model.fit(make(TEXTS, LABELS), validation_data=make(TEXTS, LABELS), verbose=0).history
    np.testing.assert_allclose([history["val_loss"][0], history["val_accuracy"][0]], figures, rtol=1e-5)


@pytest.mark.parametrize("make", full_but([loader, dataset], loader))
def test_a_dataset_is_trained_on_as_a_stream_of_windows(build, make):
    """A step has as many windows as the batches have texts, and the loss of each batch is that of its texts in memory;
    each counts as its windows."""
    model = build(kbi.TextClassifier, 3, long_texts="windows", dropout_rate=0.0)
    model.optimizer.learning_rate = 0.0
    parts = [(TEXTS[begin : begin + 2], LABELS[begin : begin + 2]) for begin in (0, 2, 4)]
    windows = [len(rows_of(model, model.make_preprocessor(), *part, None)) for part in parts]
    assert windows == [4, 8, 1]
    sizes = []
    count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: sizes.append(batch))
    for by_class in (None, {0: 0.5, 1: 2.0, 2: 0.0}):
        memory = {"batch_size": 99, "class_weight": by_class, "verbose": 0}
        losses = [model.fit(*part, **memory).history["loss"][0] for part in parts]
        expected = np.average(losses, weights=windows)
        sizes.clear()
        batches = make(TEXTS, LABELS)
        [found] = model.fit(batches, class_weight=by_class, callbacks=[count], verbose=0).history["loss"]
        assert len(sizes) == 7 and found == pytest.approx(expected, rel=1e-5)


@pytest.mark.full
def test_windows_of_an_endless_dataset_are_trained_on_step_by_step(build):
    model = build(kbi.TextClassifier, 3, long_texts="windows")
    endless = dataset(TEXTS, LABELS).repeat()
    history = model.fit(endless, steps_per_epoch=4, epochs=2, validation_data=endless, validation_steps=2, verbose=0)
    assert len(history.history["val_loss"]) == 2
    assert len(model.predict(endless.map(lambda text, label: text), steps=3, verbose=0)) == 5


def test_vectors_of_a_dataset_are_those_of_its_texts(build):
    model = build(kbi.TextEmbedder, long_texts="windows", normalize=True)
    np.testing.assert_allclose(model.predict(loader(TEXTS), verbose=0), model.embed(TEXTS), atol=1e-5)


class Seen(keras.callbacks.Callback):
    """Notes what it is told of an evaluation."""

    def on_test_end(self, logs=None):
        self.figures, self.judged = logs, self.model


def test_callbacks_are_told_what_texts_in_windows_are_judged_at(build):
    model, seen = build(kbi.TextClassifier, 2, long_texts="windows"), Seen()
    data = ([LONG, SHORT], [0, 1])
    figures = model.evaluate(*data, verbose=0, callbacks=[seen], return_dict=True)
    assert seen.figures["loss"] == figures["loss"] and seen.judged is model
    history = model.fit(*data, validation_data=data, callbacks=[seen], verbose=0).history
    assert seen.figures["loss"] == history["val_loss"][0]
