import json
import re
import threading

import keras
import pytest
from six_languages import SENTENCES

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.text.tokenizers import learn_vocabulary
from keras_bert_training import labelled_sentences, pretraining, pretraining_plan
from keras_bert_training.commands import quickstart
from keras_bert_training.options.serve import ServeConfig
from keras_bert_training.runs import parse

BACKEND = keras.backend.backend()
RECIPES = {
    "prepare_data": {"vocabulary_size": 700, "sequence_length": 32, "labelled_sentences": 100},
    "pretrain": {"size": "bert_tiny", "hidden_size": 24, "steps": 6, "batch_size": 8, "validation_batches": 2,
                 "jit_compile": "off"},
    "finetune": {"epochs": 1, "sequence_length": 32, "batch_size": 64, "jit_compile": "off"},
}  # fmt: skip


@pytest.fixture
def recipes(tmp_path):
    """Small versions of the quickstart's recipes."""
    (tmp_path / "recipes").mkdir()
    for name, options in RECIPES.items():
        # JSON is YAML.
        (tmp_path / "recipes" / f"{name}.yaml").write_text(json.dumps(options))
    return tmp_path / "recipes"


@pytest.mark.full
def test_quickstart_goes_from_text_to_served_predictions_and_reuses_what_is_there(
    tmp_path, text_folder, recipes, capfd, monkeypatch
):
    monkeypatch.setattr(labelled_sentences, "FEWEST_SENTENCES", 5)
    arguments = ["--corpus", str(text_folder), "--output", str(tmp_path / "out"), "--recipes", str(recipes)]
    config, before = parse(quickstart.QuickstartConfig, arguments), set(threading.enumerate())
    figures = quickstart.run(config)
    printed = capfd.readouterr().out
    for step in ("0. ", "1-3.", "4-5.", "6. ", "7. ", "8. ", "9. "):
        assert f"\n{step}" in f"\n{printed}", f"step {step} was not announced"
    assert printed.count("     the word was: ") == 5
    *_, serve, address = printed.splitlines()
    assert re.search(rf"keras-bert serve --model quickstart=.*/{BACKEND}/saved_model$", serve)
    assert address.strip() == f"http://localhost:{ServeConfig().port}/"
    assert figures["pretraining"]["steps"] == 6
    assert figures["classifier"]["class_names"] == ["keras.txt", "numpy.txt"]
    for name in ("evaluation.json", "curves.png", "history.json", "encoder/model.safetensors", "encoder/vocab.txt"):
        assert list(tmp_path.glob(f"out/*/{BACKEND}/pretrain/{name}")), name
    for name in ("metrics.json", "confusion.png", "predictions.jsonl", "model/model.safetensors"):
        assert list(tmp_path.glob(f"out/*/{BACKEND}/classifier/{name}")), name

    begun = set(threading.enumerate()) - before
    writers = [thread for thread in begun if type(thread).__module__.startswith("tensorboardX")]
    assert not writers, "a finished training goes on to write its log"
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert quickstart.run(config) == figures
    assert written == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}


@pytest.fixture
def prepared(tmp_path, text_folder, recipes):
    config = quickstart.QuickstartConfig(str(tmp_path / "out"), str(text_folder), str(recipes))
    options = ("--input", text_folder, "--output", tmp_path / "data")
    quickstart.data_preparation.run(
        quickstart.read(config, "prepare_data", quickstart.data_preparation.PrepareConfig, *options)
    )
    return tmp_path / "data"


def test_what_is_said_about_the_text_reaches_its_preparation(tmp_path, recipes, monkeypatch):
    arguments = "--corpus text --text_field body --language zh --text_format lines".split()
    config = parse(quickstart.QuickstartConfig, [*arguments, "--recipes", str(recipes)])

    def prepared(config):
        raise RuntimeError(config.text_field, config.language, config.text_format)

    monkeypatch.setattr(quickstart.data_preparation, "run", prepared)
    with pytest.raises(RuntimeError) as given:
        quickstart.run(config)
    assert given.value.args == ("body", "zh", "lines")


@pytest.mark.parametrize(("minutes", "folder"), [([], BACKEND), (["--minutes", "2.5"], f"{BACKEND}_2.5_minutes")])
def test_other_minutes_have_a_folder_of_their_own(minutes, folder, tmp_path, recipes, monkeypatch):
    config = parse(quickstart.QuickstartConfig, ["--output", str(tmp_path), "--recipes", str(recipes), *minutes])
    monkeypatch.setattr(quickstart.data_preparation, "run", lambda config: None)

    def trained(config):
        raise RuntimeError(config.max_minutes, config.output)

    monkeypatch.setattr(quickstart.pretraining, "run", trained)
    with pytest.raises(RuntimeError) as given:
        quickstart.run(config)
    assert given.value.args == (2.5 if minutes else None, str(tmp_path / "python_docs" / folder / "pretrain"))


@pytest.mark.parametrize("language", ["zh", "hi"])
def test_a_word_of_every_script_is_masked(tmp_path, language):
    (tmp_path / "held_out.txt").write_text("\n".join(SENTENCES[language]), encoding="utf-8")
    tokenizer = WordPieceTokenizer(learn_vocabulary(SENTENCES[language], 500, lowercase=False), lowercase=False)
    (text, word), *_ = quickstart.masked_sentences(tmp_path, tokenizer, 5)
    assert text.replace("[MASK]", word) in SENTENCES[language]


def pretrain_config(prepared, output, **options):
    defaults = {"size": "bert_tiny", "hidden_size": 24, "steps": 6, "batch_size": 4, "steps_per_round": 2}
    return pretraining.PretrainConfig(
        str(prepared), str(output), **{**defaults, "validation_batches": 1, "jit_compile": "off", **options}
    )


def test_steps_are_planned_from_the_minutes_and_kept(prepared, tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining_plan, "measure_step", lambda *_: 0.5)
    for steps, less in (50, 50), (5000, 113):
        config = pretrain_config(prepared, tmp_path / str(steps), steps=steps, max_minutes=1.0)
        plan = pretraining_plan.make_plan(config, None, pretraining.open_run(config.output, config), None)
        assert plan["steps"] == less
    config = pretrain_config(prepared, tmp_path / "run", steps=None, max_minutes=1.0, steps_per_round=None)
    plan = pretraining_plan.make_plan(config, None, pretraining.open_run(config.output, config), None)
    minutes = plan.pop("minutes")  # less the time that planning took
    expected = {"jit_compile": False, "seconds_per_step": 0.5, "steps_per_round": 6, "steps_per_execution": 1}
    assert plan == {**expected, "steps": 113}
    assert 0.98 < minutes < 1.0
    monkeypatch.setattr(pretraining_plan, "measure_step", lambda *_: 0.1)
    assert pretraining_plan.make_plan(config, None, tmp_path / "run", None) == {**plan, "minutes": minutes}


def test_a_short_run_is_not_measured_before_it_begins(prepared, tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(pretraining_plan, "jit_choices", lambda _: [True, False])
    monkeypatch.setattr(
        pretraining_plan, "measure_step", lambda config, data, build, how: measured.append(how) or (0.1 if how else 0.2)
    )
    for steps, compiled, expected in (40, False, []), (5000, True, [True, False]):
        measured.clear()
        config = pretrain_config(prepared, tmp_path / str(steps), steps=steps, jit_compile="auto")
        plan = pretraining_plan.make_plan(config, None, pretraining.open_run(config.output, config), None)
        assert (plan["jit_compile"], measured) == (compiled, expected)
