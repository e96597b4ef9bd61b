"""What only BigBird does: blocks of a row that see some others, by the length of each row, in memory linear in it."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from conftest import QUICK_STEPS
from families import SIZES
from made_exports import check_rows_of_export
from made_tokenizers import bigbird_tokenizer
from reference_models import outputs_of, random_model
from shapes_of_a_step import check_step
from tiers import every_backend, full_but, on

import keras_bert_impl as kbi
from keras_bert_impl.callbacks.flops import training_flops
from keras_bert_impl.export.attention_graph import with_attention

pytestmark = on("torch")

# Rows of more than 28 tokens have blocks that see some others.
CONFIG = kbi.BigBirdConfig(
    **{**SIZES, "max_length": 64},
    sep_id=3,
    block_size=4,
    num_random_blocks=1,
    hidden_dropout_rate=0.0,
    attention_dropout_rate=0.0,
)
FIRST_BLOCK = dataclasses.replace(CONFIG, random_blocks="first_block")


def rows_of(length, hidden=(), config=CONFIG):
    """Two rows of ids, of which the second lacks the tokens at `hidden`."""
    random = np.random.default_rng(length)
    mask = np.ones((2, length), "int32")
    mask[1, list(hidden)] = 0
    ids = np.where(mask == 1, random.integers(5, 53, mask.shape), config.pad_id).astype("int32")
    segments = np.where(np.arange(length) < length // 2, 0, mask).astype("int32")
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}


def reference(name, config, directory, **fields):
    """A model of transformers: its layers draw random blocks while it is trained; without dropout nothing else
    differs."""
    model = random_model(name, config, directory, **fields)
    return model.train() if config.random_blocks == "seeded" else model


# (length, places of padding in the second row): one block, its edges, those of the longest row that is seen as a whole,
# whole blocks and parts of one; padding on either side, within, of the global blocks, of a whole row.
ROWS = [
    (5, (0,)),
    (28, range(20, 28)),
    (29, range(25, 29)),
    (36, range(36)),
    (41, [*range(3), 11, 12, 13, 14, 15, 40]),
    (64, range(32, 64)),
]
both_kinds = pytest.mark.parametrize("config", [CONFIG, FIRST_BLOCK], ids=["seeded", "first_block"])


@every_backend
@both_kinds
@pytest.mark.parametrize(("length", "hidden"), full_but(ROWS, ROWS[4], on=("tensorflow", "jax")))
def test_every_state_is_that_of_transformers(config, length, hidden, tmp_path):
    """Of padding, too: in a row of blocks it sees nothing in both."""
    rows = rows_of(length, hidden)
    theirs = reference("BigBirdModel", config, tmp_path, output_hidden_states=True)
    ours = kbi.BigBirdEncoder.from_pretrained(tmp_path, return_hidden_states=True).predict_on_batch(rows)
    expected = outputs_of(theirs, rows)
    np.testing.assert_allclose(ours["hidden_states"], np.stack(expected["hidden_states"], axis=1), atol=1e-5)
    np.testing.assert_allclose(ours["pooled_output"], expected["pooler_output"], atol=1e-5)


@pytest.mark.parametrize("length", full_but([1024, 3072, 4096, 1100], 1024))
def test_long_rows_see_the_random_blocks_with_which_published_models_learnt(length, tmp_path):
    sizes = {**SIZES, "hidden_size": 8, "num_heads": 2, "max_length": 4096}
    config = dataclasses.replace(CONFIG, **sizes, block_size=64, num_random_blocks=3)
    rows = rows_of(length, range(length - 100, length))
    expected = outputs_of(reference("BigBirdModel", config, tmp_path), rows)["last_hidden_state"]
    found = kbi.BigBirdEncoder.from_pretrained(tmp_path).predict_on_batch(rows)["sequence_output"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    other = kbi.BigBirdEncoder.from_pretrained(tmp_path, random_blocks="first_block").predict_on_batch(rows)
    assert np.abs(other["sequence_output"] - expected).max() > 1e-2


def test_attention_is_that_of_transformers_with_the_shares_of_a_block_together(tmp_path):
    rows = rows_of(41, range(38, 41))
    theirs = random_model("BigBirdModel", FIRST_BLOCK, tmp_path, output_attentions=True)
    encoder = kbi.BigBirdEncoder.from_pretrained(tmp_path, return_attention=True)
    ours = encoder.predict_on_batch(rows)["attention_probabilities"]
    np.testing.assert_allclose(ours.sum(-1), 1, atol=1e-5)
    queries = np.nonzero(rows["padding_mask"][1])[0]  # what padding sees is not used
    expected = np.stack(outputs_of(theirs, rows)["attentions"], axis=1)
    np.testing.assert_allclose(ours[..., queries, :], expected[..., queries, :], atol=1e-5)


@pytest.mark.parametrize("length", [28, 41])
def test_what_padding_holds_changes_no_other_state(length):
    encoder = kbi.BigBirdEncoder(CONFIG)
    rows = rows_of(length, [*range(5), 9, *range(length - 6, length)])
    before = encoder.predict_on_batch(rows)["sequence_output"]
    is_token = rows["padding_mask"] == 1
    others = {**rows, "token_ids": np.where(is_token, rows["token_ids"], 7), "segment_ids": 1 - rows["segment_ids"]}
    others["segment_ids"] = np.where(is_token, rows["segment_ids"], others["segment_ids"])
    after = encoder.predict_on_batch(others)["sequence_output"]
    np.testing.assert_allclose(after[is_token], before[is_token], atol=1e-6)


def test_what_is_filled_up_to_a_block_is_as_padding():
    """41 tokens, and the same with padding up to 44 and to a further block, which moves the last one."""
    encoder = kbi.BigBirdEncoder(dataclasses.replace(CONFIG, num_random_blocks=0))
    rows = rows_of(41)
    longer = {name: np.pad(array, [(0, 0), (0, 3)]) for name, array in rows.items()}
    found, expected = (encoder.predict_on_batch(one)["sequence_output"][:, :41] for one in (longer, rows))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def pairs(length, config=CONFIG):
    """Three rows, two texts each of other lengths, of which one has padding; one has no separator."""
    rows = rows_of(length, range(length - 4, length), config)
    rows = {name: np.concatenate([array, array[:1]]) for name, array in rows.items()}
    rows["token_ids"][0, [3, length - 1]] = rows["token_ids"][1, [20, length - 5]] = config.sep_id
    return rows


def test_the_pooler_that_transformers_keeps_in_a_head_is_kept(tmp_path):
    encoder = kbi.BigBirdEncoder(CONFIG)
    kbi.MaskedLM(encoder).save_pretrained(tmp_path)
    again = kbi.BigBirdEncoder.from_pretrained(tmp_path)
    for one, other in zip(again.get_layer("pooler").weights, encoder.get_layer("pooler").weights, strict=True):
        np.testing.assert_array_equal(*(keras.ops.convert_to_numpy(weight) for weight in (one, other)))


def test_a_question_holds_no_answer():
    rows = pairs(37)
    logits = kbi.QuestionAnswerer(kbi.BigBirdEncoder(CONFIG)).predict_on_batch(rows)
    hidden = logits[..., 0] < -1e5
    expected = np.zeros((3, 37), bool)
    expected[0, 1:4] = expected[1, 1:21] = True  # up to the first separator, but for [CLS]
    np.testing.assert_array_equal(hidden, expected)


def test_heads_over_one_encoder_share_its_layers_and_have_dense_layers_of_their_own():
    encoder, rows = kbi.BigBirdEncoder(CONFIG), pairs(37)
    classifier, chooser = kbi.TextClassifier(encoder, 2), kbi.MultipleChoice(encoder)
    assert "pooled_output" not in classifier.encoder.output and chooser.encoder is encoder
    shared = {id(weight) for weight in classifier.weights} & {id(weight) for weight in encoder.weights}
    assert len(shared) == len(encoder.weights) - 2
    before = encoder.predict_on_batch(rows)
    classifier.compile(optimizer=keras.optimizers.SGD(1.0), loss=classifier.loss, **QUICK_STEPS)
    classifier.train_on_batch(rows, np.array([0, 1, 1]))
    after = encoder.predict_on_batch(rows)
    assert np.abs(after["sequence_output"] - before["sequence_output"]).max() > 1e-4
    again = classifier.encoder.for_task("choice")
    assert "pooled_output" in again.output and again.get_layer("block_0") is encoder.get_layer("block_0")


def test_attention_of_a_head_s_encoder_is_that_of_one_built_to_return_it():
    rows, encoder = pairs(37), kbi.TextClassifier(kbi.BigBirdEncoder(CONFIG), 2).encoder
    returning = kbi.BigBirdEncoder(CONFIG, task="text", return_attention=True)
    returning.set_weights(encoder.get_weights())
    expected = returning.predict_on_batch(rows)["attention_probabilities"]
    np.testing.assert_allclose(with_attention(encoder).predict_on_batch(rows), expected, atol=1e-6)
    of_task = kbi.BigBirdEncoder(CONFIG, return_attention=True).for_task("text")
    assert "attention_probabilities" in of_task.output


def test_gradients_are_finite_in_rows_that_are_padding_alone():
    config = dataclasses.replace(CONFIG, hidden_dropout_rate=0.1, attention_dropout_rate=0.1)
    model = kbi.TextClassifier(kbi.BigBirdEncoder(config), 2)
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss=model.loss, **QUICK_STEPS)
    assert np.isfinite(model.train_on_batch(rows_of(37, range(37)), np.array([0, 1]))).all()
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_packed_rows_of_blocks_are_refused_and_short_ones_are_not():
    with pytest.raises(ValueError, match="packed rows of up to max_length 64 "):
        kbi.BigBirdEncoder(CONFIG, packed=True)
    for options in ({"max_length": 28}, {"attention_type": "original_full"}):
        kbi.BigBirdEncoder(dataclasses.replace(CONFIG, **options), packed=True)


def test_a_file_of_transformers_means_the_blocks_of_its_outputs_and_ours_says_which(tmp_path):
    theirs = {key: value for key, value in CONFIG.to_huggingface().items() if key != "random_blocks"}
    (tmp_path / "config.json").write_text(json.dumps(theirs))
    assert kbi.BigBirdConfig.from_huggingface(tmp_path / "config.json") == FIRST_BLOCK
    assert kbi.BigBirdConfig().random_blocks == "seeded"
    for config in (CONFIG, FIRST_BLOCK):
        kbi.BigBirdEncoder(config).save_pretrained(tmp_path / config.random_blocks)
        assert kbi.BigBirdEncoder.from_pretrained(tmp_path / config.random_blocks).config == config
    other = kbi.BigBirdEncoder.from_pretrained(tmp_path / "seeded", random_blocks="first_block")
    assert other.config == FIRST_BLOCK


def test_arithmetic_counts_the_keys_that_are_seen():
    # Of 11 blocks the two at the ends see the whole row, the others six blocks of four tokens.
    keys = (2 * 44 + 9 * 6 * 4) / 11
    whole, sparse = (
        training_flops(kbi.BigBirdEncoder(dataclasses.replace(CONFIG, attention_type=kind)), 1, 44, 2)
        for kind in ("original_full", "block_sparse")
    )
    assert whole - sparse == pytest.approx(3 * 2 * 4 * (44 - keys) * 44 * 15)


TEXTS = ["the dog ran home and " * 5, "red rain", "", "The cat sat on the mat in the rain. " * 2]


@pytest.fixture
def tokenizer():
    return bigbird_tokenizer()


def model_of(kind, tokenizer, config=CONFIG, **arguments):
    """A model with weights so large that every token influences the outputs."""
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "sep_id": tokenizer.sep_id, "pad_id": tokenizer.pad_id}
    encoder = kbi.BigBirdEncoder(dataclasses.replace(config, **fields))
    model, random = kind(encoder, tokenizer=tokenizer, sequence_length=60, **arguments), np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.4))
    return model


# A layer of blocks takes TensorFlow seconds to trace and to write.
SHALLOW = dataclasses.replace(FIRST_BLOCK, num_layers=1)


@on("tensorflow")
@pytest.mark.parametrize("config", full_but([CONFIG, SHALLOW], SHALLOW), ids=["seeded", "first_block"])
def test_a_graph_of_any_length_computes_what_graphs_of_one_length_do(config):
    """Values and gradients; in training, probabilities of a short row are dropped, and of a long one not."""
    import tensorflow as tf

    encoder = kbi.BigBirdEncoder(dataclasses.replace(config, attention_dropout_rate=0.5))
    spec = {name: tf.TensorSpec((None, None), tf.int32) for name in rows_of(1)}

    def outputs(rows, training):
        with tf.GradientTape() as tape:
            states = encoder(rows, training=training)["sequence_output"]
            loss = tf.reduce_sum(states[:1] ** 3)
        return states, tape.gradient(loss, encoder.get_layer("token_embedding").trainable_weights[0].value)

    any_length = [tf.function(lambda rows, on=on: outputs(rows, on), input_signature=[spec]) for on in (False, True)]
    for length, hidden in ((1, ()), (9, ()), (28, (27,)), (29, (3,)), (41, range(5))):
        rows = {name: tf.constant(array) for name, array in rows_of(length, hidden).items()}
        found, expected = any_length[0](rows), outputs(rows, False)
        for one, other in zip(found, map(tf.convert_to_tensor, expected), strict=True):
            np.testing.assert_allclose(tf.convert_to_tensor(one), other, rtol=1e-5, atol=1e-5)
        changed = np.abs(any_length[1](rows)[0] - expected[0]).max() > 1e-3
        assert length == 1 or changed == (length <= 28)


@pytest.mark.full
@on("torch", "tensorflow")
@pytest.mark.parametrize("format_name", ["onnx", "openvino", "litert"])
def test_an_export_of_rows_gives_the_vectors(format_name, tokenizer, tmp_path):
    check_rows_of_export(format_name, model_of(kbi.TextEmbedder, tokenizer), TEXTS, tmp_path)


@pytest.mark.parametrize("random_blocks", ["seeded", "first_block"])
def test_a_step_has_no_array_that_grows_with_the_square_of_the_length(random_blocks):
    """Blocks of 32 queries with at most six blocks of keys, in two heads: a tenth of a row's whole square."""
    sizes = {**SIZES, "hidden_size": 6, "num_heads": 2, "num_layers": 1, "max_length": 4096}
    config = dataclasses.replace(CONFIG, **sizes, block_size=32, random_blocks=random_blocks)
    rows = {name: array[:1] for name, array in rows_of(4096).items()}
    check_step(kbi.BigBirdEncoder(config), rows, 4096)
