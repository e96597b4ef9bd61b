"""Generator and discriminator, trained together."""

import dataclasses

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from every_model import LABELS, WITHOUT_DROPOUT, as_arrays
from reference_models import open_in_transformers, outputs_of
from tiers import every_backend, full_on

import keras_bert_impl as kbi
from keras_bert_impl.losses import replaced_token_loss
from keras_bert_impl.optimization import BertAdamW
from keras_bert_training.commands.export import choose_task


@pytest.fixture
def config(small_tokenizer):
    sizes = {"hidden_size": 12, "num_layers": 1, "num_heads": 2, "intermediate_size": 14, "max_length": 11}
    return kbi.ElectraConfig(small_tokenizer.vocabulary_size, **sizes, **WITHOUT_DROPOUT, embedding_size=7)


@pytest.fixture
def batch(small_batch):
    """Rows whose ids are in the small vocabulary."""
    return {**small_batch, "token_ids": 5 + small_batch["token_ids"] % 19}


def build(config, tokenizer, learning_rate=1e-2, **arguments):
    keras.utils.set_random_seed(3)
    model = kbi.ElectraPretrainer(kbi.ElectraEncoder(config), tokenizer, generator_size=0.5, **arguments)
    model.compile(optimizer=BertAdamW(learning_rate), **QUICK_STEPS)
    return model


def always_guess(model, token):
    """Lets the generator guess one token everywhere, whatever the row."""
    head = model.masked_lm.get_layer("masked_lm_head")
    head.output_bias.assign(np.where(np.arange(head.output_bias.shape[0]) == token, 1e3, 0.0))


def say_of_every_token(model, logit):
    """Lets the discriminator give one logit to every token."""
    head = model.detector.get_layer("replaced_token_head")
    head.kernel.assign(np.zeros(head.kernel.shape))
    head.bias.assign([logit])


@every_backend
@full_on("jax")
def test_the_loss_is_that_of_both_models_computed_by_hand(config, small_tokenizer, batch):
    model = build(config, small_tokenizer)
    always_guess(model, 5)  # of five masked tokens one is a 5: four are replaced, of twelve tokens
    say_of_every_token(model, np.log(3.0))  # probability 3/4 that a token was replaced
    found = model.test_on_batch(batch, LABELS, return_dict=True)
    detection = (4 * np.log(4 / 3) + 8 * np.log(4)) / 12
    np.testing.assert_allclose(found["detection_loss"], detection, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], found["masked_lm_loss"] + 50 * detection, rtol=1e-5)
    assert found["masked_lm_accuracy"] == pytest.approx(1 / 5)


def test_a_discriminator_that_suspects_everything_has_full_recall_and_little_precision(config, small_tokenizer, batch):
    model = build(config, small_tokenizer)
    always_guess(model, 5)
    for logit, expected in ((1.0, (4 / 12, 4 / 12, 1.0)), (-1.0, (8 / 12, 0.0, 0.0))):
        say_of_every_token(model, logit)
        found = model.test_on_batch(batch, LABELS, return_dict=True)
        figures = [found[name] for name in ("detection_accuracy", "replaced_precision", "replaced_recall")]
        np.testing.assert_allclose(figures, expected, rtol=1e-5)


def test_the_discriminator_reads_the_guesses_and_the_generator_the_rows(config, small_tokenizer, batch):
    model = build(config, small_tokenizer)
    found = model.predict_on_batch(batch)
    rows = batch["token_ids"].copy()
    for row, column in zip(*np.nonzero(LABELS["mask_weights"]), strict=True):
        rows[row, batch["mask_positions"][row, column]] = found["sampled_ids"][row, column]
    inputs = {name: batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    alone = model.detector.predict_on_batch({**inputs, "token_ids": rows})
    np.testing.assert_allclose(found["detection_logits"], alone, atol=1e-5)
    alone = model.masked_lm.predict_on_batch(batch)
    np.testing.assert_allclose(found["masked_lm_logits"], alone, atol=1e-5)


def test_the_discriminator_sends_no_gradient_to_the_generator(config, small_tokenizer, batch):
    model = build(config, small_tokenizer, detection_weight=1e3)
    generators = {id(weight) for weight in model.masked_lm.trainable_weights}
    shared = generators & {id(weight) for weight in model.detector.trainable_weights}
    own = [weight for weight in model.masked_lm.trainable_weights if id(weight) not in shared]
    model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
    before = as_arrays(own)
    # Without a prediction there is no generator's loss, and every token is an original one.
    model.train_on_batch(batch, {**LABELS, "mask_weights": np.zeros((2, 3), "float32")})
    for weight, old in zip(own, before, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), old, err_msg=weight.path)


def test_gradients_reach_every_weight_of_both_models(config, small_tokenizer, batch):
    model = build(config, small_tokenizer)
    model.compile(optimizer=keras.optimizers.SGD(1.0), **QUICK_STEPS)
    before = as_arrays(model.trainable_weights)
    model.train_on_batch(batch, LABELS)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert not np.array_equal(keras.ops.convert_to_numpy(weight), old), weight.path


def test_training_draws_anew_and_evaluation_always_the_same(config, small_tokenizer, batch):
    model = build(config, small_tokenizer)
    first, second = (np.array(model(batch, training=True)["sampled_ids"]) for _ in range(2))
    assert (first != second).any()
    first, second = (model.predict_on_batch(batch)["sampled_ids"] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_evaluating_does_not_change_what_training_draws(config, small_tokenizer, batch):
    losses = []
    for evaluations in (0, 3):
        model = build(config, small_tokenizer)
        for _ in range(evaluations):
            model.test_on_batch(batch, LABELS)
        losses.append([float(model.train_on_batch(batch, LABELS, return_dict=True)["loss"]) for _ in range(2)])
    assert losses[0] == losses[1]


def test_replaced_tokens_are_found_after_training(config, small_tokenizer, batch):
    model = build(config, small_tokenizer)
    always_guess(model, 5)  # four of twelve tokens are replaced, and one 5 is the original
    for _ in range(25):
        model.train_on_batch(batch, LABELS)
    found = model.test_on_batch(batch, LABELS, return_dict=True)
    assert [found[f"replaced_{name}"] for name in ("recall", "precision")] == [1.0, 1.0], found


def test_both_models_open_in_transformers_and_here(config, small_tokenizer, batch, tmp_path):
    model = build(config, small_tokenizer)
    model.train_on_batch(batch, LABELS)
    model.save_pretrained(tmp_path)
    theirs = outputs_of(open_in_transformers("ElectraForPreTraining", tmp_path), batch)["logits"]
    rows = {name: batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    np.testing.assert_allclose(model.detector.predict_on_batch(rows), theirs, atol=1e-5)
    theirs = outputs_of(open_in_transformers("ElectraForMaskedLM", tmp_path / "generator"), batch)["logits"]
    expected = np.take_along_axis(theirs, batch["mask_positions"][..., None], axis=1)
    np.testing.assert_allclose(model.masked_lm.predict_on_batch(batch), expected, atol=1e-5)
    other = build(config, small_tokenizer)
    other.load_pretrained(tmp_path)
    for weight, expected in zip(other.weights, model.weights, strict=True):
        np.testing.assert_array_equal(*as_arrays([weight, expected]), err_msg=weight.path)
    assert kbi.MaskedLM.from_pretrained(tmp_path / "generator").tokenizer == small_tokenizer


def test_the_discriminator_is_exported_as_an_encoder_and_fills_no_masks(config, small_tokenizer, tmp_path):
    build(config, small_tokenizer).save_pretrained(tmp_path)
    assert choose_task(tmp_path) == "embed" and choose_task(tmp_path / "generator") == "fill_mask"
    with pytest.raises(ValueError, match="is a ElectraForPreTraining, which is for embed, not for fill_mask"):
        choose_task(tmp_path, "fill_mask")


def test_doubts_have_the_places_of_the_tokens(config, small_tokenizer):
    model = kbi.ReplacedTokenDetector(kbi.ElectraEncoder(config), small_tokenizer, sequence_length=5)
    one = model.find_replaced("the dogs")
    assert [(doubt.token, doubt.start, doubt.end) for doubt in one] == [("the", 0, 3), ("dog", 4, 7), ("##s", 7, 8)]
    with pytest.warns(UserWarning, match="1 of 2 texts have more than 5 tokens"):
        first, second = model.find_replaced(["the dogs", "a cat sat on a mat"])
    np.testing.assert_allclose([d.probability for d in first], [d.probability for d in one], atol=1e-6)
    assert [doubt.token for doubt in second] == ["a", "cat", "sat"]


def test_the_arithmetic_of_a_step_is_that_of_both_models(config, small_tokenizer):
    config = dataclasses.replace(config, intermediate_size=14, vocabulary_size=53)
    model = kbi.ElectraPretrainer(kbi.ElectraEncoder(config), small_tokenizer, generator_size=0.5)

    def block(width, inner):  # five tokens: attention's four products and two with the length, the feed-forward's two
        return 5 * (4 * width**2 + 2 * width * inner) + 2 * 25 * width

    heads = 3 * (6 * 7 + 7 * 53) + 6**2 + 5 * 12**2 + 12**2
    assert model.training_flops(2, 5, 3) == 3 * 2 * 2 * (block(12, 14) + block(6, 7) + heads)


def test_a_keras_file_of_the_pretrainer_is_refused(config, small_tokenizer, tmp_path):
    with pytest.raises(ValueError, match="share their embeddings: save_pretrained writes both"):
        build(config, small_tokenizer).save(tmp_path / "model.keras")


def test_packed_rows_give_the_loss_of_their_sequences(config, small_tokenizer, batch):
    packed = kbi.ElectraPretrainer(kbi.ElectraEncoder(config, packed=True), small_tokenizer, generator_size=0.5)
    alone = build(config, small_tokenizer)
    packed.compile(**QUICK_STEPS)
    packed.set_weights(alone.get_weights())
    for model in (packed, alone):
        always_guess(model, 5)  # so that the draws are the same
    lengths = (3, 4)
    row = {name: batch[name][:1] for name in ("token_ids", "padding_mask")}
    row["segment_ids"] = np.zeros((1, 7), "int32")
    row["mask_positions"] = np.array([[1, 4, 6]], "int32")
    row["position_ids"] = np.concatenate([np.arange(length) for length in lengths])[None].astype("int32")
    row["sequence_ids"] = np.repeat([1, 2], lengths)[None].astype("int32")
    labels = {"mask_ids": np.array([[17, 5, 10]]), "mask_weights": np.ones((1, 3), "float32")}
    found = packed.test_on_batch(row, labels, return_dict=True)["detection_loss"]
    expected = 0
    for part, places, ids in ((slice(0, 3), [1], [17]), (slice(3, 7), [1, 3], [5, 10])):
        one = {name: row[name][:, part] for name in ("token_ids", "segment_ids", "padding_mask")}
        one["mask_positions"] = np.array([places], "int32")
        marks = {"mask_ids": np.array([ids]), "mask_weights": np.ones((1, len(ids)), "float32")}
        expected += one["token_ids"].shape[1] * alone.test_on_batch(one, marks, return_dict=True)["detection_loss"] / 7
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_detection_loss_forgets_padding_and_large_logits_stay_finite():
    arrays = (
        np.array([[1.0, 0.0, 1.0]], "float32"),
        np.array([[0.0, -2e4, 50.0]], "float32"),
        np.array([[1, 1, 0]], "float32"),
    )
    loss = replaced_token_loss(*map(keras.ops.convert_to_tensor, arrays))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(loss), np.log(2) / 2, rtol=1e-6)
