import dataclasses
import warnings

import keras
import numpy as np
import pandas
import pytest
from conftest import QUICK_STEPS, revealing_config
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.embedding_losses import (
    CoSENTLoss,
    CosineSimilarityLoss,
    EmbedDistillLoss,
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
    TripletLoss,
)
from keras_bert_impl.optimization import BertAdamW
from keras_bert_impl.preprocessing.column_rows import text_numbers

FIRST = ["the cat", "a dog ran", "red mat", "good rain", "the dog sat"]
SECOND = ["a cat", "dog", "blue mat", "bad rain is bad", "a cat sat on"]
THIRD = ["bad", "rain on a mat", "is", "the cat", "red"]
SIMILARITY = [0.9, 0.8, 0.5, 0.2, 0.4]


@pytest.fixture
def make(small_tokenizer):
    """Builds an embedder, compiled with a loss if there is one."""

    def build(loss=None, learning_rate=1e-2, rematerialize=False, **arguments):
        keras.utils.set_random_seed(3)
        config = revealing_config(small_tokenizer, max_length=11, initializer_range=0.5)
        encoder = kbi.BertEncoder(config, rematerialize=rematerialize)
        model = kbi.TextEmbedder(encoder, small_tokenizer, **arguments)
        if loss is not None:
            model.compile(optimizer=BertAdamW(learning_rate), loss=loss, **QUICK_STEPS)
        return model

    return build


@pytest.mark.parametrize("kind", [CosineSimilarityLoss, CoSENTLoss, MultipleNegativesRankingLoss, TripletLoss])
def test_the_loss_of_fit_is_that_of_the_vectors_of_single_texts(kind, make):
    model = make(kind())
    columns = (FIRST, SECOND, THIRD)[: kind.columns[0]]
    vectors = np.stack([model.embed(list(column)) for column in columns], axis=1)
    labels = SIMILARITY if kind.takes_similarities else np.arange(vectors.shape[0] * vectors.shape[1])
    weights = np.array([1, 2, 0, 1, 3], "float32")
    given = np.array(labels) if kind.takes_similarities else labels.reshape(vectors.shape[:2])
    expected = float(kind()(given, vectors, weights))
    found = model.evaluate(columns, labels if kind.takes_similarities else None, sample_weight=weights, verbose=0)
    assert expected > 0.01 and float(found) == pytest.approx(expected, abs=1e-5)
    before = model.get_weights()
    history = model.fit(columns, labels if kind.takes_similarities else None, sample_weight=weights, verbose=0).history
    assert history["loss"][0] == pytest.approx(expected, abs=1e-5)
    assert any(np.abs(old - new).max() > 1e-4 for old, new in zip(before, model.get_weights(), strict=True))


@pytest.mark.parametrize(
    "rows",
    [
        (FIRST, SECOND),
        (tuple(FIRST), np.array(SECOND)),
        list(zip(FIRST, SECOND, strict=True)),
        np.array([FIRST, SECOND]).T,
        pandas.DataFrame({"a": FIRST, "b": SECOND}),
    ],
    ids=["columns", "other columns", "list of pairs", "array", "table"],
)
def test_pairs_may_come_in_any_form(rows, make):
    model = make(CosineSimilarityLoss())
    expected = model.evaluate(model.rows((FIRST, SECOND)), np.array(SIMILARITY), verbose=0)
    assert model.evaluate(rows, SIMILARITY, verbose=0) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("labelled", full_but([True, False], False))
def test_a_dataset_of_columns_trains_as_the_columns_do(labelled, make):
    tf = pytest.importorskip("tensorflow")
    # The similarities of the ranking loss are multiplied by 20, and with them the rounding in a gradient.
    loss, rate = (CosineSimilarityLoss, 0.1) if labelled else (MultipleNegativesRankingLoss, 0.005)
    by_dataset, by_list = make(), make()
    for model in (by_dataset, by_list):
        # AdamW would make a step of the rounding in a gradient of 0, which differs with the padding.
        model.compile(optimizer=keras.optimizers.SGD(rate), loss=loss(), **QUICK_STEPS)
    before = by_list.get_weights()
    columns = (FIRST, SECOND)
    labels = SIMILARITY if labelled else None
    dataset = tf.data.Dataset.from_tensor_slices((columns, SIMILARITY) if labelled else columns).batch(2)
    by_dataset.fit(dataset, epochs=2, verbose=0, validation_data=dataset)
    by_list.fit(columns, labels, batch_size=2, epochs=2, shuffle=False, verbose=0)
    for weight, other in zip(by_dataset.get_weights(), by_list.get_weights(), strict=True):
        np.testing.assert_allclose(weight, other, atol=1e-6)
    assert max(np.abs(a - b).max() for a, b in zip(by_list.get_weights(), before, strict=True)) > 1e-3


@pytest.mark.parametrize(
    ("columns", "labels", "loss", "metric"),
    [
        ((FIRST, SECOND), SIMILARITY, CosineSimilarityLoss, "spearman"),
        ((FIRST, SECOND), None, MultipleNegativesRankingLoss, "ranking_accuracy"),
        ((FIRST, SECOND, THIRD), None, TripletLoss, "triplet_accuracy"),
        ((FIRST, SECOND, THIRD, SECOND), None, MultipleNegativesRankingLoss, "ranking_accuracy"),
    ],
)
def test_an_embedder_that_is_not_compiled_compiles_for_its_data(columns, labels, loss, metric, make):
    model = make()
    found = model.evaluate(columns, labels, verbose=0, return_dict=True)
    assert type(model.loss) is loss and set(found) == {"loss", metric}


def test_a_dataset_says_what_to_compile_for(make):
    tf = pytest.importorskip("tensorflow")
    model = make()
    model.evaluate(tf.data.Dataset.from_tensor_slices(((FIRST, SECOND), SIMILARITY)).batch(2), verbose=0)
    assert type(model.loss) is CosineSimilarityLoss
    model = make()
    model.evaluate(tf.data.Dataset.from_tensor_slices((FIRST, SECOND, THIRD)).batch(2), verbose=0)
    assert type(model.loss) is TripletLoss


@pytest.mark.parametrize(
    ("validation", "labels"), [((FIRST, SECOND), None), (((FIRST, SECOND), SIMILARITY), SIMILARITY)]
)
def test_validation_data_have_the_form_of_the_training_data(validation, labels, make):
    model = make(MultipleNegativesRankingLoss() if labels is None else CosineSimilarityLoss(), learning_rate=0.0)
    history = model.fit((FIRST, SECOND), labels, validation_data=validation, verbose=0).history
    assert history["val_loss"][0] == pytest.approx(history["loss"][0], abs=1e-5)


def test_evaluation_puts_the_same_rows_into_a_batch_each_time(make):
    model = make(MultipleNegativesRankingLoss())
    losses = {round(float(model.evaluate((FIRST, SECOND), batch_size=2, verbose=0)), 6) for _ in range(4)}
    assert len(losses) == 1


def test_equal_texts_are_no_negatives_of_each_other(make):
    twice = make(MultipleNegativesRankingLoss()).evaluate((FIRST[:1] * 2, SECOND[:1] * 2), verbose=0)
    assert float(twice) == pytest.approx(0, abs=1e-6)


def test_fit_brings_positives_nearer(make):
    model = make(MultipleNegativesRankingLoss())
    before = model.evaluate((FIRST, SECOND), verbose=0)
    model.fit((FIRST, SECOND), epochs=20, verbose=0)
    assert model.evaluate((FIRST, SECOND), verbose=0) < 0.2 * before
    assert [model.search(text, SECOND)[0].text for text in FIRST] == SECOND


def test_a_row_of_padding_does_not_spoil_the_weights(make):
    model = make(MultipleNegativesRankingLoss(), normalize=True)
    rows = model.rows((FIRST, SECOND))
    rows["padding_mask"][2] = 0
    model.fit(rows, sample_weight=np.array([1, 1, 0, 1, 1]), verbose=0)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_the_pooler_is_left_as_it_was_and_saved(make, tmp_path):
    model = make(CosineSimilarityLoss())
    kernel = model.encoder.get_layer("pooler").kernel
    before = keras.ops.convert_to_numpy(kernel).copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Keras warns of weights without a gradient
        model.fit((FIRST, SECOND), SIMILARITY, epochs=3, verbose=0)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(kernel), before)
    model.save_pretrained(tmp_path)
    np.testing.assert_array_equal(kbi.checkpoints.open_checkpoint(tmp_path).read("pooler/kernel"), before)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((FIRST, SECOND[:4]), "zip"),
        ([["the cat", "a dog"], ["rain", "mat"]], r"element 0 is \['the cat', 'a dog'\].*list of tuples"),
        ((FIRST, SECOND, THIRD), "CosineSimilarityLoss needs 2 texts in each example, but found 3"),
    ],
)
def test_wrong_rows_are_named(columns, message, make):
    with pytest.raises(ValueError, match=message):
        make(CosineSimilarityLoss()).fit(columns, SIMILARITY[: len(columns[0])], verbose=0)


@pytest.mark.parametrize(
    ("loss", "labels", "message"),
    [
        (CosineSimilarityLoss(), [0, 0.5, 4.2, 1, 5], r"labels\[2\] is 4.2, .* takes labels from -1 to 1"),
        (CosineSimilarityLoss(), [0, 0.5, np.nan, 1, 1], r"labels\[2\] is nan, not a finite number"),
        (CosineSimilarityLoss(), None, "CosineSimilarityLoss takes the similarity of each pair"),
        (MultipleNegativesRankingLoss(), SIMILARITY, "MultipleNegativesRankingLoss takes no labels"),
    ],
)
def test_wrong_labels_are_named(loss, labels, message, make):
    tf = pytest.importorskip("tensorflow")
    model = make(loss)
    right = SIMILARITY if loss.takes_similarities else None
    for call in (
        lambda: model.fit((FIRST, SECOND), labels, verbose=0),
        lambda: model.fit((FIRST, SECOND), right, validation_data=((FIRST, SECOND), labels), verbose=0),
        lambda: model.evaluate(model.rows((FIRST, SECOND)), labels and np.array(labels), verbose=0),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    if labels is not None and len(labels) == 5:
        dataset = tf.data.Dataset.from_tensor_slices(((FIRST, SECOND), np.array(labels, "float32"))).batch(5)
        with pytest.raises(ValueError, match=message.replace("4.2", r"4\.\d+")):
            model.fit(dataset, verbose=0)


def test_a_dataset_of_ids_has_the_numbers_of_the_texts_as_labels(make):
    model = make(MultipleNegativesRankingLoss())
    rows = model.rows((FIRST, SECOND))

    class Batches(keras.utils.PyDataset):
        num_batches = 1

        def __getitem__(self, index):
            return rows, text_numbers(rows["token_ids"].reshape(10, -1).tolist()).reshape(5, 2)

    expected = model.evaluate((FIRST, SECOND), verbose=0)
    assert make(MultipleNegativesRankingLoss()).evaluate(Batches(), verbose=0) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("as_dataset", [False, True])
def test_texts_learn_the_vectors_of_a_teacher(as_dataset, make):
    model = make()
    taught = np.random.default_rng(0).normal(size=(5, model.output_shape[-1])).astype("float32")
    if as_dataset:
        tf = pytest.importorskip("tensorflow")
        model.compile(optimizer=BertAdamW(1e-2), loss=EmbedDistillLoss(), **QUICK_STEPS)
        first = model.evaluate(tf.data.Dataset.from_tensor_slices((FIRST, taught)).batch(2), verbose=0)
    else:
        model.fit(FIRST, taught, epochs=0, verbose=0)  # compiles for what it is given
        assert isinstance(model.loss, EmbedDistillLoss)
        first = model.evaluate(FIRST, taught, verbose=0)
    expected = EmbedDistillLoss()(taught, model.embed(FIRST))
    assert float(first) == pytest.approx(float(expected), abs=1e-5)
    model.compile(optimizer=BertAdamW(1e-2), loss=EmbedDistillLoss(), **QUICK_STEPS)
    losses = model.fit(FIRST, taught, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


def test_a_text_and_its_translation_learn_one_vector_of_a_teacher(make):
    model = make(EmbedDistillLoss("mse"))
    taught = np.random.default_rng(0).normal(size=(5, model.output_shape[-1])).astype("float32")
    vectors = np.stack([model.embed(FIRST), model.embed(SECOND)], axis=1)
    found = model.evaluate((FIRST, SECOND), taught, verbose=0)
    assert float(found) == pytest.approx(float(np.mean((vectors - taught[:, None]) ** 2)), rel=1e-5)
    each = np.stack([taught, taught], axis=1)
    assert float(model.evaluate((FIRST, SECOND), each, verbose=0)) == pytest.approx(float(found), rel=1e-6)
    for wrong in (taught[:4], each[:, :1], taught[:, :3]):
        with pytest.raises(ValueError, match="labels have shape"):
            model.fit((FIRST, SECOND), wrong, verbose=0)


def test_vectors_of_single_texts_have_one_shape_and_are_finite(make):
    model = make([EmbedDistillLoss()])
    taught = model.embed(FIRST)
    rows = {name: array for name, array in model.rows(FIRST).items()}
    assert float(model.evaluate(rows, taught, verbose=0)) == pytest.approx(0, abs=1e-5)
    with pytest.raises(ValueError, match="labels have shape"):
        model.evaluate(FIRST, taught[:, None], verbose=0)
    taught[2, 3] = np.nan
    with pytest.raises(ValueError, match=r"labels\[2\]\[3\] is nan, not a finite number"):
        model.fit(FIRST, taught, verbose=0)
    with pytest.raises(ValueError, match="need the same width"):
        EmbedDistillLoss()(taught[:, None], taught)


@pytest.mark.parametrize(
    ("size", "setting"),
    [
        (1, ""),
        (3, ""),
        (100, ""),
        (3, "in a list"),
        (3, "rematerialize"),
        (3, "frozen"),
        (3, "lora"),
        (3, "matryoshka"),
    ],
)
def test_a_batch_learns_the_same_in_mini_batches(size, setting, make):
    columns, found = (FIRST, SECOND, THIRD), []
    for loss in (MultipleNegativesRankingLoss(), MultipleNegativesRankingLoss(mini_batch_size=size)):
        model = make(rematerialize=setting == "rematerialize")
        for layer in model._flatten_layers():
            if setting == "frozen" and "embedding" in layer.name:
                layer.trainable = False
            if setting == "lora" and isinstance(layer, keras.layers.Dense):
                keras.utils.set_random_seed(4)
                layer.enable_lora(2)
        loss = MatryoshkaLoss(loss, [15, 4]) if setting == "matryoshka" else loss
        loss = [loss] if setting == "in a list" else loss
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, **QUICK_STEPS)
        history = model.fit(columns, batch_size=5, epochs=2, shuffle=False, verbose=0).history
        found.append((history["loss"], model.get_weights()))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
    before = make().get_weights() if setting == "rematerialize" else found[1][1]
    for whole, parts, old in zip(found[0][1], found[1][1], before, strict=True):
        np.testing.assert_allclose(parts, whole, atol=1e-5)
        assert setting != "rematerialize" or (parts != old).any()


def test_dropout_in_mini_batches_differs_between_them_and_is_the_same_for_vectors_and_gradients(small_tokenizer):
    config = revealing_config(small_tokenizer, max_length=11, initializer_range=0.5)
    config = dataclasses.replace(config, hidden_dropout_rate=0.3, attention_dropout_rate=0.3)
    model = kbi.TextEmbedder(kbi.BertEncoder(config), small_tokenizer)
    loss = MultipleNegativesRankingLoss(scale=1.0, mini_batch_size=2)
    model.compile(optimizer=keras.optimizers.SGD(1e-3), loss=loss, **QUICK_STEPS)
    rows, numbers = model.rows([*FIRST[:2], *SECOND[:2], *FIRST[:2]]), np.array([[0, 1], [2, 3], [0, 1]])
    rows = {name: array.reshape(3, 2, -1) for name, array in rows.items()}
    states = [layer.seed_generator.state for layer in model._flatten_layers() if hasattr(layer, "seed_generator")]
    before = [keras.ops.convert_to_numpy(state) for state in states]

    def vectors_now():
        keras.utils.set_random_seed(5)
        for state, value in zip(states, before, strict=True):
            state.assign(value)
        return model(rows, training=True)

    vectors = keras.ops.convert_to_numpy(vectors_now())
    assert np.abs(vectors[0] - vectors[2]).max() > 1e-3  # the same texts
    weights, losses = model.get_weights(), [float(loss(numbers, vectors_now()))]
    vectors_now()
    for state, value in zip(states, before, strict=True):
        state.assign(value)
    keras.utils.set_random_seed(5)
    model.train_on_batch(rows, numbers)
    changes = [new - old for new, old in zip(model.get_weights(), weights, strict=True) if new.dtype == "float32"]
    losses.append(float(loss(numbers, vectors_now())))
    expected = -sum(float(np.sum(change.astype("float64") ** 2)) for change in changes) / 1e-3
    assert expected < -1e-5 and losses[1] - losses[0] == pytest.approx(expected, rel=0.05)
