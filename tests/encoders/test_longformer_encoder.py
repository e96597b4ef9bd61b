"""What only Longformer does: windows with global tokens, which follow from the head, in memory linear in the length."""

import dataclasses

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from families import SIZES, of_tokens
from made_exports import check_rows_of_export
from made_tokenizers import byte_pair_tokenizer
from reference_models import outputs_of, random_model, whole_attention
from shapes_of_a_step import check_step
from tiers import every_backend, full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.callbacks.flops import training_flops
from keras_bert_impl.export.attention_graph import with_attention
from keras_bert_impl.export.exports import check_model

pytestmark = on("torch")

CONFIG = kbi.LongformerConfig(
    **{**SIZES, "max_length": 64, "num_layers": 3},
    attention_window=(4, 8, 4),
    global_tokens="given",
    max_global_tokens=5,
)


def rows_of(length, hidden=(), global_places=(), config=CONFIG):
    """Two rows of ids, of which the second lacks the tokens at `hidden`; both have global tokens at these places."""
    random = np.random.default_rng(length)
    mask = np.ones((2, length), "int32")
    mask[1, list(hidden)] = 0
    ids = np.where(mask == 1, random.integers(5, 53, mask.shape), config.pad_id).astype("int32")
    global_mask = np.zeros_like(mask)
    global_mask[:, list(global_places)] = 1
    global_mask[0, : length // 3] = 0  # rows with different numbers of them
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": mask,
        "global_mask": global_mask,
    }


def outputs_there(model, rows):
    return outputs_of(model, rows, global_attention_mask=rows["global_mask"])


# (length, places of padding in the second row, places of global tokens). Windows reach 2, 4 and 2 tokens to each side:
# rows of 8 and of 16 tokens and more are computed by blocks.
ROWS = [
    (1, (), ()),
    (1, (), (0,)),
    (7, range(4, 7), (0, 6)),  # the last token of the first row, padding in the second
    (8, (2, 5), (1, 2)),
    (16, range(5), (5, 6, 15)),
    (37, (0, 1, 11, 12, 13, 14, 15, 16, 17, 36), (3, 10, 22, 23, 36)),
    (37, range(37), (0, 22, 36)),  # a row of padding alone
    (41, range(39, 41), ()),
]


@every_backend
@pytest.mark.parametrize(("length", "hidden", "places"), full_but(ROWS, ROWS[7], on=("tensorflow", "jax")))
def test_every_state_is_that_of_transformers(length, hidden, places, tmp_path):
    """Of padding, too: it sees nothing in both."""
    rows = rows_of(length, hidden, places)
    theirs = random_model("LongformerModel", CONFIG, tmp_path, output_hidden_states=True)
    ours = kbi.LongformerEncoder.from_pretrained(tmp_path, return_hidden_states=True).predict_on_batch(rows)
    expected = np.stack(outputs_there(theirs, rows)["hidden_states"], axis=1)
    np.testing.assert_allclose(ours["hidden_states"], expected, atol=1e-5)


def test_attention_of_local_and_global_queries_is_that_of_transformers(tmp_path):
    config = dataclasses.replace(CONFIG, attention_window=4)
    rows = rows_of(13, (11, 12), (0, 5, 12), config)
    theirs = random_model("LongformerModel", config, tmp_path, output_attentions=True)
    theirs = outputs_of(theirs, rows, global_attention_mask=rows["global_mask"])
    encoder = kbi.LongformerEncoder.from_pretrained(tmp_path, return_attention=True)
    ours = encoder.predict_on_batch(rows)["attention_probabilities"]
    assert ours.shape == (2, 3, 3, 13, 13)
    for row, of_row in enumerate(rows["global_mask"] * rows["padding_mask"]):
        (places,) = np.nonzero(of_row)
        for layer, (local, of_global) in enumerate(zip(theirs["attentions"], theirs["global_attentions"], strict=True)):
            expected = np.zeros((3, 13, 13), "float32")
            most = of_global.shape[-1]  # columns for global keys precede those of the window
            expected += whole_attention(local[row : row + 1, :, :13, most:])[0]
            for column, place in enumerate(places):
                expected[:, :, place] += local[row, :, :13, column]
            for column, place in enumerate(places):
                expected[:, place] = of_global[row, :, :13, column]
            np.testing.assert_allclose(ours[row, layer], expected, atol=1e-5)


# Of heads over two texts what transformers calls them; tests/models/test_heads.py has all.
HEADS = {"QuestionAnswerer": "ForQuestionAnswering", "MultipleChoice": "ForMultipleChoice"}


@pytest.fixture
def open_config():
    """The head decides which tokens are global."""
    return dataclasses.replace(CONFIG, global_tokens=None, max_global_tokens=33)


def pairs(length, config):
    """Three rows, two texts each of other lengths, of which one has padding."""
    rows = rows_of(length, range(length - 4, length), config=config)
    rows = {name: np.concatenate([array, array[:1]]) for name, array in rows.items() if name != "global_mask"}
    for row, (first, last) in enumerate([(3, length - 1), (20, length - 5), (8, length - 1)]):
        rows["token_ids"][row, [first, first + 1, last]] = config.sep_id
    return rows


@pytest.mark.parametrize("head", HEADS)
def test_a_head_and_its_keras_file_have_the_global_tokens_that_transformers_gives_it(head, open_config, tmp_path):
    rows = pairs(37, open_config)
    if head == "MultipleChoice":
        rows = {name: array[None] for name, array in rows.items()}
    theirs = random_model(f"Longformer{HEADS[head]}", open_config, tmp_path)
    model = getattr(kbi, head).from_pretrained(tmp_path)
    found = model.predict_on_batch(rows)
    model.save(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    assert reloaded.encoder.rule == model.encoder.rule
    np.testing.assert_allclose(reloaded.predict_on_batch(rows), found, atol=1e-6)
    theirs = outputs_of(theirs, rows)
    if "start_logits" in theirs:  # which padding has none of here
        spans = np.stack([theirs["start_logits"], theirs["end_logits"]], -1)
        found, theirs["logits"] = of_tokens(rows, found), of_tokens(rows, spans)
    np.testing.assert_allclose(found, theirs["logits"], atol=1e-5)


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        (kbi.TextRegressor, "first"),
        (kbi.QuestionAnswerer, "first_text"),
        (kbi.MultipleChoice, "second_text"),
        (kbi.MaskedLM, "none"),
        (kbi.TextEmbedder, "none"),
    ],
)
def test_a_head_chooses_global_tokens_and_a_configuration_that_says_so_comes_first(model, rule, open_config):
    encoder = kbi.LongformerEncoder(open_config)
    assert model(encoder).encoder.rule == rule and encoder.rule == "none"
    fixed = kbi.LongformerEncoder(open_config, global_tokens="second_text")
    assert model(fixed).encoder is fixed and fixed.rule == "second_text"


def test_heads_over_one_encoder_share_its_weights_and_leave_each_other_s_global_tokens(open_config):
    encoder = kbi.LongformerEncoder(open_config)
    rows = pairs(37, open_config)
    before = encoder.predict_on_batch(rows)["sequence_output"]
    classifier, answerer = kbi.TextClassifier(encoder, 2), kbi.QuestionAnswerer(encoder)
    answers = answerer.predict_on_batch(rows)
    alone = kbi.QuestionAnswerer(kbi.LongformerEncoder(open_config))
    alone.set_weights(answerer.get_weights())
    np.testing.assert_allclose(answers, alone.predict_on_batch(rows), atol=1e-6)
    np.testing.assert_array_equal(encoder.predict_on_batch(rows)["sequence_output"], before)
    assert {id(weight) for weight in classifier.encoder.weights} == {id(weight) for weight in encoder.weights}
    classifier.compile(optimizer=keras.optimizers.SGD(1.0), loss=classifier.loss, **QUICK_STEPS)
    classifier.train_on_batch(rows, np.array([0, 1, 1]))
    assert np.abs(answerer.predict_on_batch(rows) - answers).max() > 1e-4


def test_projections_of_global_tokens_are_trained_where_there_are_such_tokens(open_config):
    """Weight decay would move those that nothing uses, and Keras warn of their gradients."""
    masked_lm, classifier = (head(kbi.LongformerEncoder(open_config)) for head in (kbi.MaskedLM, kbi.TextRegressor))
    for model, are_trained in ((masked_lm, False), (classifier, True)):
        names = {weight.path for weight in model.trainable_weights if "/global_" in weight.path}
        assert len(names) == 18 * are_trained  # three kernels and biases in three layers
        assert len([weight for weight in model.weights if "/global_" in weight.path]) == 18


@pytest.mark.parametrize("task", full_but(["none", "given"], "given"))
def test_gradients_are_finite_in_rows_that_are_padding_alone(task):
    config = dataclasses.replace(CONFIG, global_tokens=task)
    rows = rows_of(37, range(37), (0, 22, 36))
    rows = rows if task == "given" else {name: array for name, array in rows.items() if name != "global_mask"}
    model = kbi.TextClassifier(kbi.LongformerEncoder(config), 2)
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
    assert np.isfinite(model.train_on_batch(rows, np.array([0, 1]))).all()
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_a_row_with_more_global_tokens_than_there_is_room_for_is_nan_and_the_others_are_not():
    rows = rows_of(37, (), (4, 20, 21, 22, 23))
    encoder = kbi.LongformerEncoder(CONFIG)
    assert np.isfinite(encoder.predict_on_batch(rows)["sequence_output"]).all()
    rows["global_mask"][1, 36] = 1
    found = encoder.predict_on_batch(rows)
    assert np.isfinite(found["sequence_output"][0]).all() and np.isnan(found["sequence_output"][1]).all()
    assert np.isnan(found["pooled_output"][1]).all()


@pytest.fixture
def tokenizer():
    return byte_pair_tokenizer()


def model_of(kind, tokenizer, most, **arguments):
    config = kbi.LongformerConfig(
        **{**SIZES, "max_length": 48, "num_layers": 1, "vocabulary_size": tokenizer.vocabulary_size},
        attention_window=4,
        max_global_tokens=most,
    )
    return kind(kbi.LongformerEncoder(config), tokenizer=tokenizer, sequence_length=40, **arguments)


def test_texts_with_more_global_tokens_than_there_is_room_for_are_refused_with_a_remedy(tokenizer):
    short, long = "the dog", "the dog ran home"
    count = len(tokenizer.encode(long, add_special_tokens=False).ids)
    answerer = model_of(kbi.QuestionAnswerer, tokenizer, count)
    answerer.predict(([short], [long]), verbose=0)
    rows = ([short, long], [long, long])
    for use in (
        lambda: answerer.predict(rows, verbose=0),
        lambda: answerer.fit(rows, [("dog", 4), ("dog", 4)], verbose=0),
        lambda: answerer.answer(*rows),
    ):
        with pytest.raises(ValueError, match=f"first text of example 1 has {count} tokens"):
            use()
    chooser = model_of(kbi.MultipleChoice, tokenizer, count)
    chooser.choose(long, [short, short])
    with pytest.raises(ValueError, match="second text of example 1"):
        chooser.choose(short, [short, long])
    fits = model_of(kbi.QuestionAnswerer, tokenizer, count + 1)
    assert np.isfinite(fits.predict(rows, verbose=0)).all()


def test_packed_rows_with_global_tokens_are_refused(open_config):
    packed = kbi.LongformerEncoder(open_config, packed=True)
    with pytest.raises(ValueError, match="global_tokens 'first': packed rows have no global tokens"):
        kbi.TextClassifier(packed, 2)


def test_the_attention_of_a_head_s_encoder_is_that_of_one_built_to_return_it(open_config):
    rows, encoder = pairs(37, open_config), kbi.QuestionAnswerer(kbi.LongformerEncoder(open_config)).encoder
    returning = kbi.LongformerEncoder(open_config, task="question", return_attention=True)
    returning.set_weights(encoder.get_weights())
    expected = returning.predict_on_batch(rows)["attention_probabilities"]
    np.testing.assert_allclose(with_attention(encoder).predict_on_batch(rows), expected, atol=1e-6)


def test_choices_of_the_configuration_are_kept_in_both_formats(tmp_path):
    rows, model = rows_of(13, (), (0, 5)), kbi.TextClassifier(kbi.LongformerEncoder(CONFIG), 2)
    expected = model.predict_on_batch(rows)
    model.save_pretrained(tmp_path / "checkpoint")
    model.save(tmp_path / "model.keras")
    again = kbi.TextClassifier.from_pretrained(tmp_path / "checkpoint")
    assert again.encoder.config == CONFIG
    np.testing.assert_allclose(again.predict_on_batch(rows), expected, atol=1e-6)
    reloaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(reloaded.predict_on_batch(rows), expected, atol=1e-6)
    assert not {"global_tokens", "max_global_tokens"} & set(kbi.LongformerConfig(**SIZES).to_huggingface())


def test_arithmetic_counts_no_projections_that_are_not_used(open_config):
    encoders = [kbi.LongformerEncoder(open_config, global_tokens=rule) for rule in ("none", "given")]
    without, with_them = (training_flops(encoder, 1, 16, 2) for encoder in encoders)
    assert with_them - without == 3 * 3 * 2 * 16 * 3 * 15**2  # forward and backward, layers, tokens, kernels


TEXTS = ["the dog ran home and " * 5, "red rain", ""]


@pytest.mark.full
@on("tensorflow")
def test_a_request_with_more_global_tokens_than_there_is_room_for_is_an_error(tokenizer, tmp_path):
    import tensorflow as tf

    from keras_bert_impl.export import export_saved_model

    model = model_of(kbi.MultipleChoice, tokenizer, 6)
    export_saved_model(model, tmp_path / "exported")
    choose = tf.saved_model.load(str(tmp_path / "exported")).signatures["serving_default"]
    text, endings = tf.constant(["the dog ran"]), [["home", "red rain"], ["home", "red rain the dog ran home"]]
    found = choose(text=text, endings=tf.constant(endings[:1]))["logits"]
    np.testing.assert_allclose(found, model.predict((["the dog ran"], endings[:1]), verbose=0), atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more global tokens than the model's max_global"):
        choose(text=text, endings=tf.constant(endings[1:]))


def test_global_tokens_that_are_given_are_not_exported():
    with pytest.raises(ValueError, match="takes global_mask, which the inputs of an export do not include"):
        check_model(kbi.TextClassifier(kbi.LongformerEncoder(CONFIG), 2))


@pytest.mark.full
@on("torch", "tensorflow")
@pytest.mark.parametrize("format_name", ["onnx", "openvino", "litert"])
@pytest.mark.parametrize("rule", ["none", "first_text"])
def test_an_export_of_rows_gives_the_vectors(format_name, rule, tokenizer, tmp_path):
    config = model_of(kbi.TextEmbedder, tokenizer, 48).encoder.config
    encoder = kbi.LongformerEncoder(config, global_tokens=rule)
    model = kbi.TextEmbedder(encoder, tokenizer=tokenizer, sequence_length=40)
    check_rows_of_export(format_name, model, TEXTS, tmp_path)


def test_a_step_has_no_array_that_grows_with_the_square_of_the_length():
    """Blocks of 32 queries with 96 keys and 8 global ones, in two heads: 1/20 of what a row's whole square would be."""
    sizes = {**SIZES, "hidden_size": 6, "num_heads": 2, "num_layers": 1, "max_length": 4096}
    config = kbi.LongformerConfig(**sizes, attention_window=64, max_global_tokens=8)
    rows = {name: array[:1] for name, array in rows_of(4096).items() if name != "global_mask"}
    rows["token_ids"][:, 5] = CONFIG.sep_id
    check_step(kbi.LongformerEncoder(config, task="question"), rows, 4096)
