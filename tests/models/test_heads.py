"""The heads for fine-tuning over the encoder of each family, compared with transformers, loading and saving."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS, without
from families import CONFIGS, FAMILIES, encoder_of, of_tokens, rows_for
from reference_models import open_in_transformers, outputs_of, random_model
from tiers import full_but

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import huggingface
from keras_bert_impl.encoders import family_of

SPANS = np.array([[1, 3], [0, 0]])
TOKEN_LABELS = np.array([[-1, 2, 0, 1, -1, 3, -1], [-1, 0, 0, 2, -1, -1, -1]])
# The end of the name of the class in transformers, our class, further fields of its configuration, labels.
HEADS = {
    "text_classifier": ("ForSequenceClassification", kbi.TextClassifier, {"num_labels": 3}, np.array([2, 0])),
    "token_classifier": ("ForTokenClassification", kbi.TokenClassifier, {"num_labels": 4}, TOKEN_LABELS),
    "question_answerer": ("ForQuestionAnswering", kbi.QuestionAnswerer, {}, SPANS),
    "next_sentence": ("ForNextSentencePrediction", kbi.NextSentencePredictor, {}, np.array([1, 0])),
    "text_regressor": (
        "ForSequenceClassification",
        kbi.TextRegressor,
        {"num_labels": 1, "problem_type": "regression"},
        np.array([0.5, 3.0], "float32"),
    ),
    "multiple_choice": ("ForMultipleChoice", kbi.MultipleChoice, {}, np.array([1, 0])),
}
head = pytest.mark.parametrize("kind", HEADS)
HEADS_OF_FAMILIES = [
    (family, kind)
    for family in FAMILIES
    for kind, (task, *_) in HEADS.items()
    if task in family_of(CONFIGS[family]).tasks
]
# transformers has a next-sentence head only for BERT and ERNIE, and not all others for every family.
OWN_HEADS = [("Deberta", "multiple_choice"), ("Gte", "question_answerer"), ("EuroBert", "multiple_choice")]
# Heads and families do not depend on each other: every head on BERT, and on every family the one of its own.
PAIRWISE = [(family, kind) for family, kind in HEADS_OF_FAMILIES if family == "Bert" or kind == "text_classifier"]
head_of_family = pytest.mark.parametrize(("family", "kind"), full_but(HEADS_OF_FAMILIES, *PAIRWISE))


@pytest.fixture
def config(family):
    return CONFIGS[family]


@pytest.fixture
def rows(small_batch):
    return without(small_batch, "mask_positions")


def inputs_of(kind, rows):
    """The rows, for multiple choice as two texts of three choices."""
    if kind != "multiple_choice":
        return rows
    return {name: np.stack([array, array[::-1], array], axis=1) for name, array in rows.items()}  # (2, 3, 7)


def logits_of(kind, theirs, inputs):
    """The logits of a transformers model in our shape."""
    outputs = outputs_of(theirs, inputs)
    if kind == "question_answerer":
        return np.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1)
    return outputs["logits"]


def compared(kind, logits, inputs):
    """The logits without those of padding: answers have none there, and transformers' depend on its attention."""
    return of_tokens(inputs, logits) if kind in ("token_classifier", "question_answerer") else logits


def their_labels(kind, labels):
    """The labels as keywords of a transformers model."""
    if kind == "question_answerer":
        return {"start_positions": labels[:, 0], "end_positions": labels[:, 1]}
    return {"labels": np.where(labels == -1, -100, labels)}


@head_of_family
def test_logits_loss_and_checkpoint_are_those_of_transformers(family, kind, config, small_batch, tmp_path):
    """There and back: a checkpoint of transformers is opened here, computes the same, and what is saved opens there."""
    task, ours, fields, labels = HEADS[kind]
    theirs = random_model(family + task, config, tmp_path / "theirs", **fields)
    model, inputs = ours.from_pretrained(tmp_path / "theirs"), inputs_of(kind, rows_for(config, small_batch))
    found, expected = model.predict_on_batch(inputs), logits_of(kind, theirs, inputs)
    assert np.std(expected) > 0.01
    np.testing.assert_allclose(compared(kind, found, inputs), compared(kind, expected, inputs), atol=1e-5)

    model.compile(optimizer=model.optimizer, loss=model.loss, **QUICK_STEPS)
    rows = inputs
    if kind == "text_regressor":
        wanted, labels = np.mean((expected[:, 0] - labels) ** 2), labels[:, None]
    else:
        if kind == "question_answerer":  # whose loss there is also over padding, which the first row has not
            rows, labels = {name: array[:1] for name, array in inputs.items()}, labels[:1]
        wanted = outputs_of(theirs, rows, **their_labels(kind, labels))["loss"]
    np.testing.assert_allclose(np.ravel(model.evaluate(rows, labels, verbose=0))[0], wanted, atol=1e-5)

    model.save_pretrained(tmp_path / "ours")
    again = open_in_transformers(family + task, tmp_path / "ours")
    expected = logits_of(kind, again, inputs)
    np.testing.assert_allclose(compared(kind, found, inputs), compared(kind, expected, inputs), atol=1e-5)


@pytest.mark.parametrize(("family", "kind"), OWN_HEADS)
def test_a_head_that_transformers_does_not_have_opens_here_and_the_encoder_there(kind, config, small_batch, tmp_path):
    task, ours, *_ = HEADS[kind]
    model, inputs = ours(encoder_of(config)(config)), inputs_of(kind, rows_for(config, small_batch))
    with pytest.warns(UserWarning, match=f"transformers has no {config.class_prefix()}{task}"):
        model.save_pretrained(tmp_path)
    again = ours.from_pretrained(tmp_path)
    np.testing.assert_array_equal(again.predict_on_batch(inputs), model.predict_on_batch(inputs))
    transformers = pytest.importorskip("transformers")
    theirs = outputs_of(transformers.AutoModel.from_pretrained(tmp_path), rows_for(config, small_batch))
    states = model.encoder.predict_on_batch(rows_for(config, small_batch))["sequence_output"]
    rows = rows_for(config, small_batch)
    found = of_tokens(rows, theirs["last_hidden_state"])
    np.testing.assert_allclose(found, of_tokens(rows, states), atol=1e-5)


@head
def test_gradients_reach_every_weight_of_a_head(kind, small_config, rows):
    _, ours, fields, labels = HEADS[kind]
    classes = {"num_classes": fields["num_labels"]} if kind.endswith("classifier") else {}
    model = ours(kbi.BertEncoder(small_config), **classes)
    # Momentum and decay would move a weight without a gradient.
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
    before = [keras.ops.convert_to_numpy(weight).copy() for weight in model.trainable_weights]
    model.train_on_batch(inputs_of(kind, rows), labels)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        unmoved = np.array_equal(keras.ops.convert_to_numpy(weight), old)
        # A constant added to all scores of the choices does not change their softmax: the bias has no gradient.
        assert not unmoved or (kind, weight.path) == ("multiple_choice", "classifier/bias"), weight.path


def test_multiple_choice_takes_texts_and_their_choices(small_config, small_tokenizer):
    model = kbi.MultipleChoice(kbi.BertEncoder(small_config), tokenizer=small_tokenizer)
    rows = model.rows((["the cat", "a dog"], [["sat", "ran on", "is good"], ["is bad", "sat", "in rain"]]))
    assert rows["token_ids"].shape == (2, 3, 11)
    assert small_tokenizer.decode(rows["token_ids"][1, 2]) == "a dog in rain"
    with pytest.raises(ValueError, match="text 1 has 1 choices, but text 0 has 2"):
        model.rows((["the cat", "a dog"], [["sat", "ran"], ["sat"]]))


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "last_four"])
def test_pooling_is_the_formula_and_forgets_padding(pooling, small_config, rows):
    config = dataclasses.replace(small_config, num_layers=4)
    encoder = kbi.BertEncoder(config, return_hidden_states=True)
    states = encoder.predict_on_batch(rows)["hidden_states"]  # (batch, 5, 7, 15)
    real = rows["padding_mask"][..., None] == 1
    expected = {
        "cls": states[:, -1, 0],
        "mean": (states[:, -1] * real).sum(axis=1) / real.sum(axis=1),
        "max": np.where(real, states[:, -1], -np.inf).max(axis=1),
        "last_four": np.concatenate([states[:, layer, 0] for layer in (1, 2, 3, 4)], axis=-1),
    }[pooling]
    found = kbi.TextEmbedder(encoder, pooling=pooling).predict_on_batch(rows)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    normalized = kbi.TextEmbedder(encoder, pooling=pooling, normalize=True).predict_on_batch(rows)
    np.testing.assert_allclose(np.linalg.norm(normalized, axis=1), 1, atol=1e-5)


def test_an_embedder_comes_back_with_its_pooling_and_opens_in_transformers(small_config, rows, tmp_path):
    model = kbi.TextEmbedder(kbi.BertEncoder(small_config), pooling="max", normalize=True)
    model.save_pretrained(tmp_path)
    open_in_transformers("BertModel", tmp_path)
    model.save(tmp_path / "model.keras")
    for reloaded in kbi.TextEmbedder.from_pretrained(tmp_path), keras.saving.load_model(tmp_path / "model.keras"):
        assert (reloaded.pooling, reloaded.normalize) == ("max", True)
        np.testing.assert_allclose(reloaded.predict_on_batch(rows), model.predict_on_batch(rows), atol=1e-6)


def test_a_checkpoint_opens_in_the_precision_asked_for(small_config, rows, tmp_path):
    model = kbi.TextEmbedder(kbi.BertEncoder(small_config))
    model.save_pretrained(tmp_path)
    rough = kbi.TextEmbedder.from_pretrained(tmp_path, dtype="mixed_bfloat16")
    assert rough.encoder.get_layer("block_0").compute_dtype == "bfloat16"
    difference = np.abs(rough.predict_on_batch(rows) - model.predict_on_batch(rows)).max()
    assert 1e-5 < difference < 0.05


def test_dropout_of_a_head_is_kept(small_config, tmp_path):
    kbi.TextClassifier(kbi.BertEncoder(small_config), 3, dropout_rate=0.37).save_pretrained(tmp_path)
    assert open_in_transformers("BertForSequenceClassification", tmp_path).dropout.p == 0.37
    assert kbi.TextClassifier.from_pretrained(tmp_path).dropout_rate == 0.37


@pytest.mark.parametrize("family", full_but(FAMILIES, "Bert", "DistilBert", "Electra", "XLNet", "DebertaV2"))
@pytest.mark.parametrize("kind", full_but([kbi.TextClassifier, kbi.TokenClassifier], kbi.TextClassifier))
def test_without_its_key_dropout_of_a_head_is_that_of_transformers(kind, config, tmp_path):
    config = dataclasses.replace(config, hidden_dropout_rate=0.23)
    name = config.class_prefix() + kind.counterpart
    random_model(name, config, tmp_path, num_labels=3)
    content = json.loads((tmp_path / "config.json").read_text())
    left_out = ("classifier_drop", "seq_classif_drop", "cls_drop")
    kept = {key: value for key, value in content.items() if not key.startswith(left_out)}
    (tmp_path / "config.json").write_text(json.dumps(kept))
    theirs = open_in_transformers(name, tmp_path)
    rates = [
        module.p
        for path, module in theirs.named_modules()
        if type(module).__name__ == "Dropout" and not path.startswith((f"{theirs.base_model_prefix}.", "pooler."))
    ]
    [rate] = rates or [0.0]  # XLNet has none before classes of tokens
    assert kind.from_pretrained(tmp_path).dropout_rate == rate
    assert kind(encoder_of(config)(config), 3).dropout_rate == rate


def test_distilberts_dropout_of_texts_is_not_that_of_tokens(tmp_path):
    config = dataclasses.replace(CONFIGS["DistilBert"], hidden_dropout_rate=0.23)
    theirs = random_model("DistilBertForTokenClassification", config, tmp_path, num_labels=3, seq_classif_dropout=0.4)
    assert kbi.TokenClassifier.from_pretrained(tmp_path).dropout_rate == theirs.dropout.p == 0.23
    with pytest.warns(UserWarning, match="newly initialised"):
        assert kbi.TextClassifier.from_pretrained(tmp_path, num_classes=2).dropout_rate == 0.4
    kbi.TokenClassifier(kbi.DistilBertEncoder(config), 3, dropout_rate=0.37).save_pretrained(tmp_path)
    assert kbi.TokenClassifier.from_pretrained(tmp_path).dropout_rate == 0.37
    with pytest.warns(UserWarning, match="newly initialised"):
        assert kbi.TextClassifier.from_pretrained(tmp_path, num_classes=2).dropout_rate == 0.2


@pytest.mark.parametrize(
    ("class_name", "fields", "ours", "arguments"),
    [
        ("BertForTokenClassification", {"num_labels": 3}, kbi.TextClassifier, {"num_classes": 3}),
        ("BertForSequenceClassification", {"num_labels": 3}, kbi.TextRegressor, {}),
        ("BertForSequenceClassification", {"num_labels": 1}, kbi.TextClassifier, {"num_classes": 2}),
        ("BertForMultipleChoice", {}, kbi.TextRegressor, {}),
    ],
)
def test_a_classifier_of_another_kind_is_not_taken_for_ones_own(
    class_name, fields, ours, arguments, small_config, tmp_path
):
    random_model(class_name, small_config, tmp_path, **fields)
    with pytest.warns(UserWarning, match="no values for .*classifier/kernel.*newly initialised"):
        ours.from_pretrained(tmp_path, **arguments)
    if arguments:
        with pytest.raises(ValueError, match=rf"no classifier for a {ours.__name__}.* num_classes=2"):
            ours.from_pretrained(tmp_path)


def test_a_model_without_a_counterpart_in_transformers_is_no_checkpoint(small_config, tmp_path):
    model = kbi.FeatureTagger(kbi.BertEncoder(small_config), 3, features="last")
    with pytest.raises(ValueError, match="FeatureTagger has no counterpart in transformers"):
        huggingface.save(model, tmp_path)
