"""Texts, labels and weights in the columns of other libraries."""

import numpy as np
import pytest
from conftest import QUICK_STEPS, WORDS
from made_fits import as_new, loss_of

import keras_bert_impl as kbi
from keras_bert_impl.preprocessing.texts import in_memory, received

TEXTS = ["the cat is good", "the dog is bad", "a good mat"]
SECOND = ["sat", "ran on", "is blue"]
NAMES = ["good", "bad", "good"]
NUMBERS = [1, 0, 1]
WEIGHTS = [1.0, 2.0, 0.5]


def pandas_column(dtype):
    def column(values):
        pandas = pytest.importorskip("pandas")
        return pandas.Series(values, dtype=dtype if isinstance(values[0], str) else None, index=[7, 3, 5])

    return column


def pandas_arrow(values):
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    return pandas.Series(values, dtype=pandas.ArrowDtype(pyarrow.array(values).type))


def pandas_nullable(values):
    return pytest.importorskip("pandas").Series(values).convert_dtypes()


def arrow(values):
    return pytest.importorskip("pyarrow").chunked_array([values[:1], values[1:]])


def dataset_column(format):
    def column(values):
        datasets = pytest.importorskip("datasets")
        return datasets.Dataset.from_dict({"column": values}).with_format(format)["column"]

    return column


def polars(values):
    return pytest.importorskip("polars").Series(values)


COLUMNS = {
    "numpy": np.array,
    "numpy string": lambda values: np.array(values, np.dtypes.StringDType() if isinstance(values[0], str) else None),
    **{f"pandas {dtype}": pandas_column(dtype) for dtype in ("str", "object", "string", "category", "string[pyarrow]")},
    "pandas arrow": pandas_arrow,
    "pandas nullable": pandas_nullable,
    "arrow": arrow,
    "datasets": dataset_column(None),
    "datasets as numpy": dataset_column("numpy"),
    "datasets as pandas": dataset_column("pandas"),
    "polars": polars,
}


def make_classifier():
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=16)
    tokenizer = kbi.WordPieceTokenizer(WORDS)
    model = kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer, class_names=["bad", "good"])
    model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    return model


@pytest.fixture
def model():
    return make_classifier()


@pytest.fixture(scope="module")
def compiled():
    """A model that JAX compiles once for all kinds of columns, and its weights."""
    model = make_classifier()
    return model, model.get_weights()


@pytest.fixture
def classifier(compiled):
    return as_new(*compiled)


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_a_column_of_any_library_is_read(make):
    for values in (TEXTS, NUMBERS, WEIGHTS):
        found = in_memory(make(values))
        assert isinstance(found, (list, np.ndarray)) and list(found) == values
    first, second = received((make(TEXTS), make(SECOND)))
    assert list(first) == TEXTS and list(second) == SECOND


@pytest.mark.parametrize("make", [COLUMNS["pandas category"], COLUMNS["datasets"]])
def test_columns_train_evaluate_and_predict_as_lists_do(make, classifier):
    expected = loss_of(classifier, TEXTS, NUMBERS, sample_weight=WEIGHTS)
    found = loss_of(classifier, make(TEXTS), make(NUMBERS), sample_weight=make(WEIGHTS))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    pairs = (make(TEXTS), make(SECOND))
    np.testing.assert_allclose(
        classifier.predict(pairs, verbose=0), classifier.predict((TEXTS, SECOND), verbose=0), atol=1e-6
    )
    validation = (make(TEXTS), make(NAMES), make(WEIGHTS))
    history = classifier.fit(make(TEXTS), make(NAMES), validation_data=validation, verbose=0).history
    np.testing.assert_allclose(
        history["val_loss"], loss_of(classifier, *validation[:2], sample_weight=WEIGHTS), rtol=1e-5
    )


def test_a_masked_lm_trains_on_a_column(small_tokenizer):
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=16)
    model = kbi.MaskedLM(kbi.BertEncoder(config), small_tokenizer)
    model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    column = dataset_column(None)(TEXTS)
    history = model.fit(column, validation_data=column, verbose=0).history
    assert np.isfinite([*history["loss"], *history["val_loss"]]).all()


def test_a_missing_value_of_a_column_is_named(model):
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(["the cat", None, "a dog"], dtype="string")
    with pytest.raises(ValueError, match="text 1 is <NA>, not a string"):
        model.predict(texts, verbose=0)
    with pytest.raises(ValueError, match=r"labels\[1\] is 'ugly', which is not one of the classes bad, good"):
        model.fit(TEXTS, pandas.Series(["good", "ugly", "bad"]), verbose=0)


def test_names_of_classes_may_stand_in_a_table_of_one_column(model):
    """`data[["label"]]` and `data[["label"]].values`, (rows, 1); numbers of classes may, too."""
    pandas = pytest.importorskip("pandas")
    wanted = model.evaluate(TEXTS, NAMES, verbose=0)
    for table in (pandas.DataFrame({"label": NAMES}), pandas.DataFrame({"label": NUMBERS})):
        assert model.evaluate(TEXTS, table, verbose=0) == wanted
        assert model.evaluate(TEXTS, table.values, verbose=0) == wanted
    with pytest.raises(ValueError, match=r"labels\[1\]\[0\] is 'ugly', which is not one of the classes bad, good"):
        model.evaluate(TEXTS, pandas.DataFrame({"label": ["good", "ugly", "bad"]}), verbose=0)


def pairs_of(library):
    columns = {"sentence1": TEXTS, "sentence2": SECOND}
    if library == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns, index=[7, 3, 5])
    if library == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    if library == "datasets":
        return pytest.importorskip("datasets").Dataset.from_dict(columns)
    return pytest.importorskip("pyarrow").table(columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets", "pyarrow"])
def test_a_table_of_two_columns_of_texts_beside_labels_is_a_pair(library, model):
    table, pair = pairs_of(library), (TEXTS, SECOND)
    expected = model.evaluate(pair, NAMES, verbose=0)
    assert model.evaluate(table, NAMES, verbose=0) == expected


@pytest.mark.parametrize("kind", [kbi.Reranker, kbi.QuestionAnswerer])
def test_every_head_that_takes_pairs_takes_them_in_a_table(kind, model):
    head, table = kind(model.encoder, model.tokenizer), pairs_of("pandas")
    labels = [("sat", 0), None, ("blue", 3)] if kind is kbi.QuestionAnswerer else NUMBERS
    expected = head.evaluate((TEXTS, SECOND), labels, verbose=0)
    assert head.evaluate(table, labels, verbose=0) == expected
    if head.pair_columns:
        np.testing.assert_array_equal(head.predict(table, verbose=0), head.predict((TEXTS, SECOND), verbose=0))
