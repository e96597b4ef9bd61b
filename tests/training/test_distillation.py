"""Distillation from the command's configuration to the student's checkpoint."""

import json

import keras
import pytest
from conftest import revealing_config
from interrupted_runs import assert_equal_states, interrupted, last_state, prepare
from reference_models import open_in_transformers

import keras_bert_impl as kbi
from keras_bert_training import distillation
from keras_bert_training.runs import parse

pytestmark = pytest.mark.usefixtures("without_reports")
LENGTH = 16


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, without_reports):
    """Pre-training data of a small corpus: rows that are not pairs."""
    return prepare(tmp_path_factory.mktemp("prepared"), sequence_length=LENGTH, pairs="full_sentences")


@pytest.fixture(scope="module")
def teacher(prepared, tmp_path_factory):
    """A checkpoint of three layers with its masked-LM head."""
    directory = tmp_path_factory.mktemp("teacher")
    write_teacher(directory, kbi.WordPieceTokenizer.from_pretrained(prepared), seed=1)
    return directory


def write_teacher(directory, tokenizer, seed, with_head=True):
    keras.utils.set_random_seed(seed)
    config = revealing_config(tokenizer, max_length=LENGTH)
    encoder = kbi.BertEncoder(kbi.BertConfig(**{**config.to_dict(), "num_layers": 3, "initializer_range": 0.3}))
    if with_head:
        kbi.MaskedLM(encoder, tokenizer).save_pretrained(directory)
    else:
        encoder.save_pretrained(directory)
        tokenizer.save_pretrained(directory)


def config_of(prepared, teacher, output, **options):
    jit_compile = "on" if keras.backend.backend() == "jax" else "off"
    usual = {"num_layers": 2, "steps": 6, "steps_per_round": 3, "batch_size": 4, "validation_batches": 1}
    usual |= {"jit_compile": jit_compile, "learning_rate": 1e-2}
    return distillation.DistillConfig(
        data=str(prepared), output=str(output), teacher=str(teacher), **{**usual, **options}
    )


@pytest.mark.full
def test_an_interrupted_distillation_ends_as_an_uninterrupted_one(prepared, teacher, tmp_path, monkeypatch):
    """The student has dropout, whose random numbers continue too, and a projection that is not part of it."""
    options = {"hidden_state_weight": 1.0, "hidden_size": 9, "from_scratch": True, "num_heads": 3}
    distillation.run(config_of(prepared, teacher, tmp_path / "whole", **options))
    with monkeypatch.context() as patch:
        interrupted(distillation.run, config_of(prepared, teacher, tmp_path / "broken", **options), patch, 5)
    distillation.run(config_of(prepared, teacher, tmp_path / "broken", **options))
    assert_equal_states(last_state(tmp_path / "broken"), last_state(tmp_path / "whole"))
    files = [tmp_path / name / "encoder" / "model.safetensors" for name in ("broken", "whole")]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("given", ["--direction=left_to_right", "--next_sentence=true"])
def test_options_of_pretraining_that_a_student_does_not_heed_are_refused(given, capsys):
    """With --direction, a student that reads both sides learnt to predict the word beside each."""
    with pytest.raises((SystemExit, ValueError)) as refused:
        parse(distillation.DistillConfig, ["--teacher=one", "--data=two", "--output=three", given])
    name = given.partition("=")[0]
    assert name in str(refused.value) or f"unrecognized arguments: {given}." in capsys.readouterr().err


def test_the_student_is_saved_with_its_vocabulary_and_fills_masks(prepared, teacher, tmp_path):
    figures = distillation.run(config_of(prepared, teacher, tmp_path / "run", family="bert"))
    assert {"masked_lm_accuracy", "soft_target_loss", "cosine_loss"} <= figures.keys()
    open_in_transformers("BertForMaskedLM", tmp_path / "run" / "encoder")
    model = kbi.MaskedLM.from_pretrained(tmp_path / "run" / "encoder")
    assert model.encoder.config.num_layers == 2 and len(model.fill_mask("the [MASK] sat", top_k=3)[0]) == 3
    history = json.loads((tmp_path / "run" / "history.json").read_text())
    assert [row["step"] for row in history] == [3, 6] and "val_soft_target_loss" in history[0]


def test_packed_rows_are_distilled(teacher, tmp_path):
    data = prepare(tmp_path, vocab=str(teacher / "vocab.txt"), sequence_length=LENGTH, packed=True)
    figures = distillation.run(config_of(data, teacher, tmp_path / "run"))
    assert 0 < figures["soft_target_loss"] < 100


def test_hidden_states_alone_need_no_head(prepared, tmp_path):
    """As in TinyBERT's first stage, with a student of another width."""
    tokenizer = kbi.WordPieceTokenizer.from_pretrained(prepared)
    write_teacher(tmp_path / "teacher", tokenizer, seed=2, with_head=False)
    with pytest.raises(ValueError, match=r"has no masked-LM head: give --soft_target_weight 0"):
        distillation.run(config_of(prepared, tmp_path / "teacher", tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    options = {"soft_target_weight": 0, "masked_lm_weight": 0, "cosine_weight": 0, "hidden_state_weight": 1}
    options |= {"from_scratch": True, "hidden_size": 9, "num_heads": 3}
    figures = distillation.run(config_of(prepared, tmp_path / "teacher", tmp_path / "run", **options))
    assert figures["hidden_state_loss"] > 0 and "masked_lm_accuracy" not in figures
    assert open_in_transformers("DistilBertModel", tmp_path / "run" / "encoder").config.dim == 9


def test_a_run_is_not_resumed_with_another_teacher(prepared, teacher, tmp_path):
    tokenizer = kbi.WordPieceTokenizer.from_pretrained(prepared)
    write_teacher(tmp_path / "teacher", tokenizer, seed=1)
    distillation.run(config_of(prepared, tmp_path / "teacher", tmp_path / "run", steps=1, steps_per_round=1))
    write_teacher(tmp_path / "teacher", tokenizer, seed=2)
    with pytest.raises(ValueError, match=r"teacher_sha256 '.*' there, '.*' here"):
        distillation.run(config_of(prepared, tmp_path / "teacher", tmp_path / "run", steps=1, steps_per_round=1))


def test_rows_longer_than_the_teacher_reads_are_refused(teacher, tmp_path):
    data = prepare(tmp_path, vocab=str(teacher / "vocab.txt"), sequence_length=40, pairs="full_sentences")
    with pytest.raises(ValueError, match="have 40 tokens, but the teacher takes at most 16"):
        distillation.run(config_of(data, teacher, tmp_path / "short"))


def test_options_that_do_not_fit_are_refused_before_anything_is_written(prepared, teacher, tmp_path):
    with pytest.raises(ValueError, match="whose hidden_size differs from its teacher's"):
        distillation.run(config_of(prepared, teacher, tmp_path / "run", hidden_size=9))
    assert not (tmp_path / "run").exists()


def test_data_of_another_vocabulary_is_refused(prepared, teacher, tmp_path):
    kbi.MaskedLM.from_pretrained(teacher).save_pretrained(tmp_path)
    kbi.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]).save_pretrained(tmp_path)
    with (
        pytest.warns(UserWarning),
        pytest.raises(ValueError, match=r"with a different vocabulary from the data .* --vocab"),
    ):
        distillation.run(config_of(prepared, tmp_path, tmp_path / "run"))
