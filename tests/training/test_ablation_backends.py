"""The parts of an ablation study that depend most on the backend: what is trained, and states of one training."""

import json

import pytest
from made_studies import COMPILED, config_of
from made_tasks import write_ner

from keras_bert_impl.studies import ablation, ablation_plan
from keras_bert_impl.studies.ablation_study import read_recipe, read_study
from keras_bert_impl.tokenizers import open_tokenizer
from keras_bert_impl.training import pretraining
from keras_bert_impl.training.pretraining_data import PretrainingData

pytestmark = pytest.mark.usefixtures("without_reports")


def test_encoders_of_several_steps_come_from_one_run(tmp_path, prepared_data):
    write_ner(tmp_path / "ner")
    rows = [{"name": "half", "share_of_steps": 0.5}, {"name": "all", "share_of_steps": 1.0}]
    found = ablation.run(config_of(tmp_path, prepared_data(), rows=rows, tasks=[f"ner={tmp_path / 'ner'}"]))
    assert [row["pretraining"]["steps"] for row in found["rows"]] == [2, 4]
    assert [path.name for path in (tmp_path / "run" / "pretrain").iterdir() if path.is_dir()] == ["recipe"]
    encoders = tmp_path / "run" / "pretrain" / "recipe" / "seed_0" / "encoders"
    states = [(encoders / step / "model.safetensors").read_bytes() for step in ("2", "4")]
    assert states[0] != states[1]
    assert (encoders / "4" / "model.safetensors").read_bytes() == (
        encoders.parent / "encoder" / "model.safetensors"
    ).read_bytes()


def test_every_family_of_the_study_is_built_with_its_objective_on_data_of_its_own(tmp_path, prepared_data):
    """One step each, of the shapes of the study made smaller."""
    data = prepared_data()
    config = config_of(tmp_path, data, study="families")
    study, recipe = read_study("families"), read_recipe(config.recipe)
    plan = ablation_plan.Plan(config, study, recipe, data, [], tmp_path)
    found = {}
    for row in study.rows:
        ablation.prepare_for(row, data, tmp_path, 0)
        smaller = {"hidden_size": 16, "num_layers": 1, "steps_per_execution": 1}
        options = plan.pretrain_config(row, {**row.pretrain, **smaller})
        rows = PretrainingData(options)
        assert rows.tokenizer.vocabulary == open_tokenizer(data).vocabulary
        model = pretraining.build_pretrainer(options, rows, COMPILED == "on", pretraining.schedule_of(options, 4))
        figures = model.fit(rows.for_fit("train", repeat=True), steps_per_epoch=1, verbose=0, shuffle=False).history
        assert figures["loss"][0] > 0
        found[row.name] = (type(model.encoder).__name__, rows.pairs, "next_sentence_loss" in figures)
    assert found == {
        "BERT": ("BertEncoder", "next_sentence", True),
        "ELECTRA": ("ElectraEncoder", "next_sentence", False),
        "RoBERTa": ("RobertaEncoder", "full_sentences", False),
        "ALBERT": ("AlbertEncoder", "sentence_order", True),
        "SpanBERT": ("BertEncoder", "doc_sentences", False),
        "ERNIE, random phrases": ("ErnieEncoder", "next_sentence", True),
        "ModernBERT": ("ModernBertEncoder", "full_sentences", False),
        "DeBERTa, masked words": ("DebertaV2Encoder", "full_sentences", False),
        "DeBERTa, replaced tokens": ("DebertaV2Encoder", "full_sentences", False),
        "XLNet": ("XLNetEncoder", "full_sentences", False),
    }
    phrases = (tmp_path / "random_phrases.txt").read_text(encoding="utf-8").splitlines()
    assert len(phrases) > 20 and {len(phrase.split()) for phrase in phrases} == {2, 3, 4}
    figures = json.loads((tmp_path / "data,phrases=random" / "summary.json").read_text())["phrases"]
    assert figures["places"] >= len(phrases) - len(figures["lines_not_in_text"]) > 20
