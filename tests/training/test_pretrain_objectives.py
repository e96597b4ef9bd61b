"""Pre-training with other objectives, families and rows than the quickstart's."""

import json

import keras
import numpy as np
import pytest
from made_runs import write_checkpoint
from safetensors.numpy import load_file
from tiers import full_but, once
from transformers import AutoModelForMaskedLM

from keras_bert_impl import BertConfig, BertEncoder, MaskedLM, Pretrainer, TextEmbedder, WordPieceTokenizer
from keras_bert_training import pretraining

pytestmark = [once, pytest.mark.usefixtures("without_reports")]


def train(data, output, **options):
    defaults = {"steps": 4, "batch_size": 4, "steps_per_round": 2, "validation_batches": 1}
    if "init" not in options:
        defaults |= {"size": "bert_tiny", "hidden_size": 24}
    return pretraining.run(
        pretraining.PretrainConfig(str(data), str(output), jit_compile="off", **{**defaults, **options})
    )


def assert_equal_files(one, other, atol=0.0):
    one, other = (load_file(path / "model.safetensors") for path in (one, other))
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_allclose(other[name], array, rtol=0, atol=atol, err_msg=name)


def test_the_head_of_spans_is_learnt_from_full_sentences_and_saved(prepared_data, tmp_path):
    data = prepared_data(pairs="full_sentences", packed=False)
    figures = train(data, tmp_path / "run", objective="span_boundary", masking_unit="span")
    assert figures["span_boundary_loss"] > 0 and figures["next_sentence_accuracy"] is None
    assert type(AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "encoder")).__name__ == "BertForMaskedLM"
    model = Pretrainer.from_pretrained(tmp_path / "run" / "encoder", next_sentence=False, span_boundary=True)
    assert np.abs(keras.ops.convert_to_numpy(model.get_layer("span_boundary_head").output_bias)).max() > 0
    with pytest.raises(ValueError, match="masking_unit is token"):
        train(data, tmp_path / "other", objective="span_boundary")


# Of a DeBERTa, the leader's embeddings are taken from the follower's, and added again.
REPLACED = [
    ("electra_small", {"generator_size": 0.5}, 0.0),
    ("deberta_v3_small", {"objective": "replaced_tokens"}, 1e-7),
]


@pytest.mark.parametrize(("size", "options", "atol"), full_but(REPLACED, REPLACED[0]))
def test_replaced_tokens_are_learnt_from_packed_rows_and_both_checkpoints_gone_on_from(
    size, options, atol, prepared_data, tmp_path
):
    data = prepared_data(long_sequence_length=64, packed=True)
    figures = train(data, tmp_path / "short", size=size, num_layers=2, hidden_size=16, num_heads=4, **options)
    assert figures["next_sentence_accuracy"] is None and 0 < figures["detection_accuracy"] < 1
    last = json.loads((tmp_path / "short" / "history.json").read_text())[-1]
    assert 0 < last["flops_utilization"] < 1 and last["val_replaced_recall"] >= 0
    short, long = (tmp_path / name / "encoder" for name in ("short", "long"))
    train(data, tmp_path / "long", sequence_length=64, init=str(short), learning_rate=0.0, **options)
    for model in ("", "generator"):
        assert_equal_files(short / model, long / model, atol)
    assert MaskedLM.from_pretrained(long / "generator").tokenizer is not None


@pytest.mark.filterwarnings("error:.*does not use")
@pytest.mark.parametrize("size", full_but(["deberta_base", "deberta_v2_xlarge"], "deberta_v2_xlarge"))
def test_a_deberta_learns_masked_words_from_absolute_positions_too(size, prepared_data, tmp_path):
    data = prepared_data(long_sequence_length=64, packed=True)
    options = {"objective": "enhanced_masked_lm", "gradient_checkpointing": True}
    shape = {"size": size, "num_layers": 2, "hidden_size": 16, "num_heads": 4}
    train(data, tmp_path / "short", **options, **shape)
    short = tmp_path / "short" / "encoder"
    assert MaskedLM.from_pretrained(short).enhanced_decoder
    train(data, tmp_path / "long", sequence_length=64, init=str(short), learning_rate=0.0, **options)
    assert "deberta.embeddings.position_embeddings.weight" in load_file(short / "model.safetensors")
    assert_equal_files(short, tmp_path / "long" / "encoder")
    with pytest.raises(UserWarning, match="which --objective masked_lm does not use, so its head would get states"):
        train(data, tmp_path / "plain", sequence_length=64, init=str(short))


@pytest.mark.parametrize("pairs", full_but(["full_sentences", "next_sentence"], "full_sentences"))
def test_a_roberta_learns_masked_words_alone(pairs, prepared_data, tmp_path):
    data = prepared_data(pairs=pairs, packed=pairs == "full_sentences")
    options = {"size": "roberta_small", "num_layers": 1, "hidden_size": 16, "num_heads": 4}
    figures = train(data, tmp_path / "run", gradient_checkpointing=True, **options)
    assert figures["next_sentence_accuracy"] is None and figures["masked_lm_perplexity"] > 1
    found = AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "encoder")
    tokenizer = MaskedLM.from_pretrained(tmp_path / "run" / "encoder").tokenizer
    assert type(found).__name__ == "RobertaForMaskedLM" and found.config.pad_token_id == tokenizer.pad_id


def test_an_albert_learns_sentence_order_from_packed_rows_with_ngrams_masked(prepared_data, tmp_path):
    options = {"size": "albert_base", "num_layers": 2, "hidden_size": 16, "num_heads": 4, "masking_unit": "ngram"}
    figures = train(prepared_data(pairs="sentence_order", packed=True), tmp_path / "run", **options)
    assert 0 <= figures["next_sentence_accuracy"] <= 1 and figures["pairs"] == "sentence_order"
    written = json.loads((tmp_path / "run" / "encoder" / "config.json").read_text())
    assert written["architectures"] == ["AlbertForPreTraining"] and written["num_hidden_groups"] == 1


def test_an_ernie_learns_phrases_and_next_sentences_from_packed_rows(prepared_data, tmp_path):
    (tmp_path / "phrases.txt").write_text("the values\nof the\nif the\n")
    data = prepared_data(packed=True, phrases=str(tmp_path / "phrases.txt"))
    options = {"size": "ernie_small", "num_layers": 1, "hidden_size": 16, "num_heads": 4, "masking_unit": "phrase"}
    figures = train(data, tmp_path / "run", **options)
    assert figures["masked_lm_perplexity"] > 1 and 0 <= figures["next_sentence_accuracy"] <= 1
    found = AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "encoder")
    assert (type(found).__name__, found.config.hidden_act) == ("ErnieForMaskedLM", "relu")


def test_an_albert_refuses_rows_that_were_made_for_next_sentences(prepared_data, tmp_path):
    data = prepared_data(packed=True, long_sequence_length=64)
    with pytest.raises(ValueError, match="ALBERT learns sentence_order"):
        train(data, tmp_path / "run", size="albert_base", num_layers=1, hidden_size=16, num_heads=4)


def test_longer_rows_go_on_from_the_shorter_ones(prepared_data, tmp_path, capsys):
    data = prepared_data(long_sequence_length=64, packed=True)
    figures = train(data, tmp_path / "short", steps=7, steps_per_round=3)
    rounds = json.loads((tmp_path / "short" / "history.json").read_text())
    assert [row["step"] for row in rounds] == [3, 6, 7] and figures["steps"] == 7
    assert rounds[-1]["gradient_norm"] > 0 and rounds[-1]["tokens_per_second"] > 0
    assert 0 < rounds[-1]["flops_utilization"] < 1 and rounds[-1]["share_of_tokens"] > 0.9
    capsys.readouterr()
    short, long = (tmp_path / name / "encoder" for name in ("short", "long"))
    options = {"gradient_checkpointing": True, "masking_unit": "whole_word", "learning_rate": 0.0}
    train(data, tmp_path / "long", sequence_length=64, init=str(short), **options)
    assert_equal_files(short, long)
    printed = capsys.readouterr().out
    figures = [line for line in printed.splitlines() if line.startswith("  held-out text: masked lm perplexity")]
    assert len(figures) == 2 and len(set(figures)) == 1  # before the first step, and at the end
    assert printed.index("before the first step") < printed.index("Round 1")


def test_a_length_that_was_not_prepared_is_refused(prepared_data, tmp_path):
    with pytest.raises(ValueError, match="holds examples of 32 tokens, not 64"):
        train(prepared_data(), tmp_path / "run", sequence_length=64)


def test_a_checkpoint_of_another_vocabulary_is_refused(prepared_data, tmp_path):
    with pytest.raises(ValueError, match="a different vocabulary"):
        train(prepared_data(), tmp_path / "run", init=str(write_checkpoint(tmp_path / "checkpoint")))


@pytest.mark.filterwarnings("error:.*embeds sentences")
def test_an_embedder_to_go_on_from_is_said_to_lose_its_pooling(prepared_data, tmp_path):
    data = prepared_data()
    tokenizer = WordPieceTokenizer.from_pretrained(data)
    config = BertConfig(tokenizer.vocabulary_size, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=16)
    TextEmbedder(BertEncoder(config), tokenizer, pooling="mean").save_pretrained(tmp_path / "embedder")
    with pytest.raises(UserWarning, match=r"embeds sentences \(pooling mean"):
        train(data, tmp_path / "run", init=str(tmp_path / "embedder"))


def test_a_model_that_reads_left_to_right_learns_the_next_token(prepared_data, tmp_path):
    data = prepared_data(packed=True, long_sequence_length=64)
    options = {"direction": "left_to_right", "encoder_rounds": 1, "masking_unit": "token"}
    figures = train(data, tmp_path / "run", steps=4, **options)
    assert figures["next_sentence_accuracy"] is None and figures["masked_lm_perplexity"] > 1
    encoder = tmp_path / "run" / "encoder"
    assert json.loads((encoder / "config.json").read_text())["is_decoder"] is True
    assert sorted(path.name for path in (tmp_path / "run" / "encoders").iterdir()) == ["2", "4"]
    with pytest.raises(ValueError, match="has the direction left_to_right, not both"):
        train(data, tmp_path / "other", init=str(encoder), sequence_length=64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_token_rate": 0.9, "random_token_rate": 0.2}, "must be shares of at least 0 that add up to at most 1"),
        ({"masking_rate": 1.0}, "masking_rate 1.0 is out of range: expected above 0 and below 1"),
        ({"objective": "replaced_tokens"}, "BERT has no generator, which replaced-token detection needs"),
        (
            {"objective": "span_boundary", "masking_unit": "span"},
            "masked spans in single sequences, but .* next_sentence",
        ),
    ],
)
def test_objectives_that_do_not_fit_together_are_refused(options, message, prepared_data, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(prepared_data(packed=True, long_sequence_length=64), tmp_path / "run", **options)


@pytest.mark.parametrize(
    ("option", "value"), [("masking_rate", 0.4), ("mask_token_rate", 0.5), ("direction", "left_to_right")]
)
def test_rows_that_are_masked_already_take_no_other_objective(option, value, prepared_data, tmp_path):
    with pytest.raises(ValueError, match=r"masked (by token )?while (it was|they were)"):
        train(prepared_data(static_masks=True), tmp_path / "run", **{option: value})


def test_next_sentences_can_be_left_out_of_rows_that_are_pairs(prepared_data, tmp_path):
    figures = train(prepared_data(packed=True, long_sequence_length=64), tmp_path / "run", next_sentence=False)
    assert figures["next_sentence_accuracy"] is None


@pytest.mark.parametrize("pairs", full_but(["full_sentences", "next_sentence"], "next_sentence"))
def test_an_xlnet_learns_words_in_a_random_order_and_reads_its_tokenizers_segments(pairs, prepared_data, tmp_path):
    data = prepared_data(pairs=pairs, packed=pairs == "full_sentences", tokenizer="xlnet_sentence_piece")
    config = pretraining.PretrainConfig(str(data), str(tmp_path), size="xlnet_tiny", objective="permuted_lm")
    opened = pretraining.open_data(config)
    inputs, labels = opened.batch_at(0)
    is_cls = inputs["token_ids"] == opened.tokenizer.cls_id
    assert is_cls.any() and (inputs["segment_ids"][is_cls] == 2).all()
    assert inputs["segment_ids"][~is_cls].max() == (pairs == "next_sentence")
    assert opened.tokenizer.mask_id not in inputs["token_ids"]  # nothing is masked
    # The first token of a row is text, and predicted like any other, although 0 is also what pads positions.
    is_first = (labels["mask_weights"] == 1) & (inputs["mask_positions"] == 0)
    assert not is_first[:, 1:].any()

    shape = {"size": "xlnet_tiny", "num_layers": 1, "hidden_size": 16, "num_heads": 4}
    figures = train(data, tmp_path / "run", objective="permuted_lm", masking_unit="ngram", **shape)
    assert figures["next_sentence_accuracy"] is None and figures["masked_lm_perplexity"] > 1
    written = json.loads((tmp_path / "run" / "encoder" / "config.json").read_text())
    assert written["architectures"] == ["XLNetLMHeadModel"] and written["pad_token_id"] == opened.tokenizer.pad_id
    assert "transformer.mask_emb" in load_file(tmp_path / "run" / "encoder" / "model.safetensors")
