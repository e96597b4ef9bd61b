"""Datasets of texts: how many batches they have, and which of their texts were truncated."""

import itertools
import warnings

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from tiers import every_backend, full_on, three_in_full

import keras_bert_impl as kbi
from keras_bert_impl.batching import padded_length
from keras_bert_impl.preprocessing import text_batches
from keras_bert_impl.preprocessing.text_batches import TextBatches
from keras_bert_impl.preprocessing.texts import source_of_dataset

tf = pytest.importorskip("tensorflow")

SIGNATURE = (tf.TensorSpec((None,), tf.string), tf.TensorSpec((None,), tf.int32))
BATCH = (["the cat is good", "the dog is bad on a mat in the rain ."], [1, 0])


def endless():
    return tf.data.Dataset.from_generator(lambda: itertools.repeat(BATCH), output_signature=SIGNATURE)


def generated(count):
    """Batches whose labels are all their own number, 0 to count - 1."""
    batches = [(BATCH[0], [number, number]) for number in range(count)]
    return tf.data.Dataset.from_generator(lambda: batches, output_signature=SIGNATURE)


def classifier(tokenizer, num_classes, max_length):
    config = kbi.BertConfig(29, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=max_length)
    model = kbi.TextClassifier(kbi.BertEncoder(config), num_classes, tokenizer=tokenizer)
    model.compile(optimizer="sgd", loss=model.loss, **QUICK_STEPS)
    return model


@pytest.fixture
def model(small_tokenizer):
    return classifier(small_tokenizer, 7, max_length=11)


def test_an_endless_generator_trains_for_the_steps_asked_for(model):
    model.fit(endless(), steps_per_epoch=3, epochs=2, validation_data=endless(), validation_steps=2, verbose=0)
    assert int(model.optimizer.iterations) == 6
    assert np.isfinite(model.evaluate(endless(), steps=2, verbose=0)).all()
    assert model.predict(endless().map(lambda texts, labels: texts), steps=2, verbose=0).shape == (4, 7)


def batches_of(dataset, steps=None):
    return TextBatches(source_of_dataset(dataset), lambda batch, random, pad_to: (batch[1][0], (1, 2)), 11, steps)


def test_a_generator_of_unknown_size_is_counted_where_no_steps_are_given_and_ends_before_too_many():
    assert batches_of(generated(5), steps=7).num_batches == 5
    batches = batches_of(generated(5))
    assert batches.num_batches == 5 and [batches[index] for index in range(5)] == list(range(5))


def test_what_is_drawn_for_a_batch_depends_on_seed_epoch_and_index():
    source = source_of_dataset(generated(3))

    def drawn(epoch, index, seed=3):
        batches = TextBatches(source, lambda batch, random, pad_to: (random.random(), (1, 2)), 11, None, seed)
        batches.start_epoch(epoch)
        return batches[index]

    assert drawn(2, 1) == drawn(2, 1) and drawn(2, 1) not in (drawn(1, 1), drawn(2, 0), drawn(2, 1, seed=4))


def test_a_generator_that_has_the_steps_goes_on_and_begins_anew():
    batches = batches_of(generated(5), steps=3)
    assert batches.num_batches is None
    assert [batches[index] for index in range(7)] == [0, 1, 2, 3, 4, 0, 1]


def test_counting_without_end_is_said(monkeypatch):
    monkeypatch.setattr(text_batches, "LONG_COUNT", 4)
    with pytest.warns(UserWarning, match="4 so far. If it is endless, .* pass steps_per_epoch"):
        batches_of(generated(5))


@pytest.mark.full
def test_texts_that_were_cut_are_said_once_for_all_batches_and_epochs(model):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(generated(5), epochs=2, verbose=0)
    messages = [str(warning.message) for warning in caught]
    assert [message for message in messages if "truncated" in message] == [
        "5 of 10 texts have more than 11 tokens and were truncated to that length: a model with a larger "
        "sequence_length reads more of them."
    ]


LENGTHS = {
    "long": "the dog is bad on a mat in the rain . " * 12,
    "short": "the cat",
}


def texts_like(*kinds):
    """A dataset of a batch of two texts for each kind, and the texts."""
    texts = [LENGTHS[kind] for kind in kinds for _ in range(2)]
    labels = [number % 2 for number in range(len(texts))]
    return tf.data.Dataset.from_tensor_slices((texts, labels)).batch(2), texts


@pytest.fixture
def long_model(small_tokenizer):
    return classifier(small_tokenizer, 2, max_length=120)


@three_in_full
def test_batches_of_a_dataset_are_as_long_as_their_texts(long_model, monkeypatch):
    seen, call = [], type(long_model).call
    monkeypatch.setattr(
        type(long_model),
        "call",
        lambda self, x, **more: (seen.append(x["token_ids"].shape[1]), call(self, x, **more))[1],
    )
    dataset, texts = texts_like("short", "long", "short")
    long_model.fit(dataset, validation_data=dataset, verbose=0)
    assert int(long_model.optimizer.iterations) == 3
    found = long_model.predict(dataset.map(lambda texts, labels: texts), verbose=0)
    lengths = [length for length in seen if length]  # compiled, each length is seen once, or none
    np.testing.assert_allclose(found, long_model.predict(texts, verbose=0), atol=1e-6)
    assert set(lengths) <= {32, 120}
    if keras.backend.backend() == "torch":
        assert lengths.count(32) >= 2 * 2


@every_backend
@full_on("tensorflow", "jax")
def test_a_shuffled_dataset_may_begin_with_any_length(long_model):
    dataset, _ = texts_like("long", "short", "long", "short")
    dataset = dataset.shuffle(4, seed=2)  # in another order each time it is read
    long_model.fit(dataset, epochs=4, verbose=0)
    assert int(long_model.optimizer.iterations) == 16


def test_the_lengths_of_batches_are_few():
    assert [padded_length(longest, 120) for longest in (1, 32, 33, 48, 49, 64, 65, 96, 97, 120)] == [
        32, 32, 48, 48, 64, 64, 96, 96, 120, 120
    ]  # fmt: skip
    assert len({padded_length(longest, 512) for longest in range(1, 513)}) == 9


@three_in_full
@pytest.mark.full
def test_a_dataset_without_a_batch_is_refused_and_leaves_the_model_whole(model):
    dataset = generated(3).unbatch().filter(lambda text, label: False).batch(2)
    with pytest.raises(ValueError, match="The dataset yields no batch"):
        model.fit(dataset, verbose=0)
    with pytest.raises(ValueError, match="The dataset yields no batch"):
        model.predict(dataset.map(lambda text, label: text), verbose=0)
    model.fit(*BATCH, verbose=0)


def test_an_endless_dataset_without_steps_is_refused_where_nothing_would_end(model):
    repeated = generated(1).repeat()
    for call in (
        lambda: model.predict(repeated.map(lambda texts, labels: texts)),
        lambda: model.evaluate(repeated),
        lambda: model.fit(*BATCH, validation_data=repeated),
    ):
        with pytest.raises(ValueError, match="The dataset is endless"):
            call()
