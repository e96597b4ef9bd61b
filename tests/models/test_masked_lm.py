import dataclasses

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, revealing_config
from reference_models import open_in_transformers, outputs_of, random_model

from keras_bert_impl import BertEncoder, MaskedLM, Pretrainer
from keras_bert_impl.batching import Rows
from keras_bert_impl.preprocessing import masked_texts
from keras_bert_impl.preprocessing.fit_inputs import evaluation
from keras_bert_impl.preprocessing.masked_texts import MaskedTexts

TEXTS = ["the cat sat on a mat", "the dog ran in rain", "a red cat is good", "blue rain is bad", "the mat"]
MASKED = ["the [MASK] sat on a [MASK]", "red [MASK] is good"]


@pytest.fixture
def config(small_tokenizer):
    return dataclasses.replace(
        revealing_config(small_tokenizer, max_length=11, initializer_range=0.5), vocabulary_size=29
    )


@pytest.fixture
def model(config, small_tokenizer):
    model = MaskedLM(BertEncoder(config), tokenizer=small_tokenizer)
    model.compile(optimizer=model.optimizer, loss=model.loss, weighted_metrics=["accuracy"], **QUICK_STEPS)
    return model


@pytest.mark.parametrize("metrics", [["accuracy"], {"masked_lm_head": [keras.metrics.SparseCategoricalAccuracy()]}])
def test_the_accuracy_counts_no_prediction_that_fills_a_row_up(model, metrics):
    texts = ["rain", "the cat sat on a mat in red rain"]
    model.compile("sgd", model.loss, metrics=metrics, **QUICK_STEPS)
    inputs, ids, weights = evaluation(model, texts, None, None, 32, None)
    assert weights.min() == 0
    right = (model.predict(inputs, verbose=0).argmax(-1) == ids)[weights > 0]
    [name] = model.evaluate(texts, verbose=0, return_dict=True).keys() - {"loss"}
    assert model.evaluate(texts, verbose=0, return_dict=True)[name] == pytest.approx(right.mean())
    model.get_layer("masked_lm_head").output_bias.assign(
        np.eye(1, 29)[0] * 99
    )  # every guess is [PAD], as what fills up
    assert model.evaluate(texts, verbose=0, return_dict=True)[name] == 0


def test_filled_masks_have_the_probabilities_of_transformers(config, small_tokenizer, tmp_path):
    theirs = random_model("BertForMaskedLM", config, tmp_path)
    small_tokenizer.save_pretrained(tmp_path)
    ours = MaskedLM.from_pretrained(tmp_path)
    rows = ours.rows(MASKED[:1])
    logits = outputs_of(theirs, rows)["logits"][0, [2, 6]]
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for guesses, expected in zip(ours.fill_mask(MASKED[0], top_k=3), probabilities, strict=True):
        best = np.argsort(-expected[: small_tokenizer.vocabulary_size])[:3]
        assert [guess.id for guess in guesses] == best.tolist()
        assert [guess.token for guess in guesses] == [small_tokenizer.vocabulary[index] for index in best]
        np.testing.assert_allclose([guess.probability for guess in guesses], expected[best], atol=1e-5)


def test_rows_of_the_embedding_that_are_no_words_are_no_guesses(model):
    # 29 rows, 24 words: the five others hold half of the probability.
    model.set_weights([np.zeros(weight.shape) for weight in model.weights])
    model.get_layer("masked_lm_head").output_bias.assign(np.log(np.where(np.arange(29) < 24, 1 / 48, 1 / 10)))
    [guesses] = model.fill_mask("red [MASK]", top_k=24)
    assert sorted(guess.token for guess in guesses) == sorted(model.tokenizer.vocabulary)
    np.testing.assert_allclose([guess.probability for guess in guesses], 1 / 48, rtol=1e-5)


def test_a_text_without_a_mask_and_one_that_is_too_long_are_refused(model):
    with pytest.raises(ValueError, match=r"no \[MASK\] in the text 'red rain'"):
        model.fill_mask("red rain")
    with pytest.raises(ValueError, match="has 12 tokens, but the model takes 11"):
        model.fill_mask("[MASK] " + "the " * 9)


def test_the_text_of_a_mask_is_the_token_and_that_of_others_is_not(model):
    ids = model.rows(["[MASK] [SEP] cat"])["token_ids"][0].tolist()
    tokenizer = model.tokenizer
    assert ids.count(tokenizer.mask_id) == 1
    assert ids.count(tokenizer.sep_id) == 1


def test_fit_learns_from_texts(config, small_tokenizer):
    model = MaskedLM(BertEncoder(config), tokenizer=small_tokenizer)
    model.optimizer.learning_rate = 3e-2  # the masks of five texts are too noisy to see 5e-5 at work
    history = model.fit(TEXTS * 6, batch_size=10, epochs=6, verbose=0).history
    assert np.mean(history["loss"][-2:]) < 0.8 * history["loss"][0]


def test_masks_of_several_texts_are_filled_as_those_of_each(model):
    filled = model.fill_mask(MASKED, top_k=3)
    assert [len(guesses) for guesses in filled] == [2, 1]
    for found, text in zip(filled, MASKED, strict=True):
        expected = model.fill_mask(text, top_k=3)
        assert [[guess.id for guess in mask] for mask in found] == [[guess.id for guess in mask] for mask in expected]
        probabilities = [[[guess.probability for guess in mask] for mask in masks] for masks in (found, expected)]
        np.testing.assert_allclose(*probabilities, rtol=1e-5)


@pytest.mark.parametrize("shuffle", [True, False])
def test_texts_are_masked_in_the_order_given_where_asked(model, monkeypatch, shuffle):
    seen, packed = [], Rows.packed
    first_words = [model.tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS * 4]
    monkeypatch.setattr(
        Rows,
        "packed",
        lambda rows, *how: seen.append([rows.first[place] for place in how[-1]]) or packed(rows, *how),
    )
    model.fit(TEXTS * 4, batch_size=20, shuffle=shuffle, epochs=2, verbose=0)
    assert all((epoch == first_words) is not shuffle for epoch in seen) and len(seen) >= 2
    assert all(sorted(epoch) == sorted(first_words) for epoch in seen)


def test_masks_are_a_function_of_seed_epoch_and_batch(model):
    def batch(epoch, index, seed=3):
        rows = Rows([list(range(5, 14))] * 4)
        batches = MaskedTexts(model.tokenizer, rows, 2, model.sequence_length, shuffle=False, seed=seed)
        batches[0]
        batches.start_epoch(epoch)
        return batches[index][0]["token_ids"].tolist()

    assert batch(2, 1) == batch(2, 1)
    assert batch(2, 1) not in (batch(1, 1), batch(2, 0), batch(2, 1, seed=4))


def test_a_second_fit_masks_other_words(model, monkeypatch):
    """Although both begin with epoch 0."""
    seeds = []
    monkeypatch.setattr(
        masked_texts, "MaskedTexts", lambda *arguments: seeds.append(arguments[-1]) or MaskedTexts(*arguments)
    )
    for _ in range(2):
        model.fit(TEXTS, verbose=0)
    assert len(set(seeds)) == 2


def test_labels_of_no_token_have_no_weight(model):
    rows = model.rows(MASKED)
    weights = np.array([[1, 1], [1, 0]], "float32")
    expected = model.evaluate(rows, [[7, 8], [9, 0]], sample_weight=weights, verbose=0, return_dict=True)
    found = model.evaluate(rows, [[7, 8], [9, -100]], verbose=0, return_dict=True)
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-5)
    with pytest.raises(ValueError, match=r"labels\[0\]\[1\] is 29, out of range"):
        model.fit(rows, [[7, 29], [9, 0]], verbose=0)


def test_validation_texts_are_masked_as_evaluation_masks_them(model):
    history = model.fit(TEXTS, validation_data=TEXTS, verbose=0).history
    expected = model.evaluate(TEXTS, verbose=0, return_dict=True)
    np.testing.assert_allclose(history["val_loss"], [expected["loss"]], rtol=1e-5)


def test_the_loss_is_a_mean_over_predicted_tokens(model):
    model.set_weights([np.zeros(weight.shape) for weight in model.weights])
    # With every kernel 0 the logits are this bias: word 7 has probability 1/2, the 28 others 1/56 each.
    model.get_layer("masked_lm_head").output_bias.assign(np.log(np.where(np.arange(29) == 7, 1 / 2, 1 / 56)))
    rows = model.rows(MASKED)
    labels, weights = np.array([[7, 7], [9, 0]], "int32"), np.array([[1, 1], [1, 0]], "float32")
    found = model.evaluate(rows, labels, sample_weight=weights, verbose=0, return_dict=True)
    np.testing.assert_allclose(found["loss"], (2 * np.log(2) + np.log(56)) / 3, rtol=1e-5)
    np.testing.assert_allclose(found["accuracy"], 2 / 3, rtol=1e-5)


def test_save_pretrained_opens_in_transformers_with_equal_logits(model, tmp_path):
    model.save_pretrained(tmp_path)
    rows = model.rows(MASKED)
    theirs = outputs_of(open_in_transformers("BertForMaskedLM", tmp_path), rows)["logits"]
    expected = np.take_along_axis(theirs, rows["mask_positions"][:, :, None], 1)
    np.testing.assert_allclose(model.predict(rows, verbose=0), expected, atol=1e-5)


def test_a_pretraining_checkpoint_fills_masks(config, small_tokenizer, tmp_path):
    pretrainer = Pretrainer(BertEncoder(config))
    pretrainer.save_pretrained(tmp_path)
    small_tokenizer.save_pretrained(tmp_path)
    model = MaskedLM.from_pretrained(tmp_path)
    rows = model.rows(MASKED)
    expected = pretrainer.predict_on_batch(rows)["masked_lm_logits"]
    np.testing.assert_allclose(model.predict_on_batch(rows), expected, atol=1e-5)
