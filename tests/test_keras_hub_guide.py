"""KerasHub's guides of text classification and of pre-training, line by line, with the names of this library."""

import keras
import numpy as np
import pytest
from tiers import three_in_full

import keras_bert_impl as kbi

tf = pytest.importorskip("tensorflow")

pytestmark = [three_in_full, pytest.mark.full]
TEXTS = ["an unrelenting bore", "a wonderful film, and a moving one"] * 8


@pytest.fixture(scope="module")
def reviews():
    """(train, test), datasets of batches of strings with their labels."""
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1] * 8)).batch(8)
    return dataset, dataset


def test_the_classifier_takes_strings(reviews):
    train, test = reviews
    classifier = kbi.TextClassifier.from_pretrained("small_english", num_classes=2)
    figures = classifier.fit(train, validation_data=test, epochs=2, verbose=0).history
    assert figures["val_accuracy"][-1] == 1.0
    assert classifier.predict(["I love modular workflows!"], verbose=0).shape == (1, 2)


def test_preprocessing_is_controlled_by_the_user(reviews):
    preprocessor = kbi.TextClassifier.from_pretrained("small_english", num_classes=2, sequence_length=16).preprocessor
    train, test = (data.map(preprocessor, tf.data.AUTOTUNE).cache().prefetch(tf.data.AUTOTUNE) for data in reviews)
    classifier = kbi.TextClassifier.from_pretrained("small_english", tokenizer=None, num_classes=2)
    figures = classifier.fit(train, validation_data=test, epochs=2, verbose=0).history
    assert figures["val_accuracy"][-1] == 1.0


def test_a_model_of_ones_own_stands_on_a_frozen_encoder(reviews):
    tokenizer = kbi.MaskedLM.from_pretrained("small_english").tokenizer
    preprocessor = kbi.preprocessing.TextPreprocessor(tokenizer, sequence_length=16)
    encoder = kbi.BertEncoder.from_pretrained("small_english")
    encoder.trainable = False
    inputs = encoder.input
    sequence = encoder(inputs)["sequence_output"]
    mask = kbi.layers.AttentionMask()(inputs["padding_mask"])
    sequence = kbi.layers.TransformerEncoderBlock(num_heads=2, intermediate_size=64)(sequence, mask)
    model = keras.Model(inputs, keras.layers.Dense(2)(sequence[:, 0]))
    model.compile(keras.optimizers.AdamW(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = keras.tree.map_structure(np.array, encoder.get_weights())
    data = reviews[0].map(preprocessor, tf.data.AUTOTUNE)
    assert model.fit(data, epochs=4, verbose=0).history["loss"][-1] < 0.5
    assert all((one == other).all() for one, other in zip(before, encoder.get_weights(), strict=True))


def test_an_encoder_is_trained_on_masked_words_from_scratch(reviews):
    tokenizer = kbi.MaskedLM.from_pretrained("small_english").tokenizer
    preprocessor = kbi.preprocessing.MaskedLMPreprocessor(tokenizer, sequence_length=16, masking_rate=0.25)
    data = reviews[0].map(lambda text, label: preprocessor(text), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    config = kbi.BertConfig(
        tokenizer.vocabulary_size, hidden_size=32, num_layers=1, num_heads=2, intermediate_size=64, max_length=16
    )
    encoder = kbi.BertEncoder(config)
    model = kbi.MaskedLM(encoder)
    model.compile(keras.optimizers.AdamW(5e-3), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    losses = model.fit(data, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    classifier = kbi.TextClassifier(encoder, num_classes=2, tokenizer=tokenizer)
    assert classifier.predict(TEXTS[:2], verbose=0).shape == (2, 2)
