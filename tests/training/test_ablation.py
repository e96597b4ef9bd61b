"""The ablation studies in studies/: their files, their runs, the tasks made from a corpus."""

import collections
import json
import pathlib
import sys

import documentation
import keras
import numpy as np
import pytest
import yaml
from made_tasks import write_ner
from tiers import once

from keras_bert_impl.text.corpora import Document
from keras_bert_training import finetuning
from keras_bert_training.options.rules import check_options
from keras_bert_training.runs import parse
from keras_bert_training.tasks.conll import read_conll
from keras_bert_training.tasks.tables import BadRows

PAGE = "docs/ablations.md"
STUDIES = documentation.ROOT / "studies"
sys.path.append(str(STUDIES))

import ablate  # noqa: E402
import ablation_table  # noqa: E402
import corpus_tasks  # noqa: E402

pytestmark = [once, pytest.mark.usefixtures("without_reports")]
COMPILED = "on" if keras.backend.backend() == "jax" else "off"
RECIPE = {
    "prepare": {},
    "pretrain": {"size": "bert_tiny", "num_layers": 1, "hidden_size": 16, "steps": 4, "batch_size": 4,
                 "validation_batches": 1, "jit_compile": COMPILED},
    "finetune": {"epochs": 1, "batch_size": 8, "sequence_length": 32, "learning_rate": 1e-3, "jit_compile": COMPILED},
    "task_rows": 16,
}  # fmt: skip
LEFT = {"direction": "left_to_right"}
ROWS = [
    {"name": "joined", "pretrain": LEFT, "join": {"direction": "right_to_left"}, "paper": {"SQuAD": 77.8}},
    {"name": "left, BiLSTM", "pretrain": LEFT, "bilstm_units": 3},
    {"name": "left, features", "pretrain": LEFT, "features": {"features": "last", "units": 3}},
    {"name": "half", "share_of_steps": 0.5, "prepare": {"pairs": "doc_sentences"}},
]


def write_yaml(path, content):
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_the_options_of_every_study_are_those_of_the_commands_and_the_page_lists_it(tmp_path):
    page = (documentation.ROOT / PAGE).read_text(encoding="utf-8")
    names = [path.stem for path in STUDIES.glob("*.yaml") if path.stem not in ("usual", "short")]
    assert len(names) == 7
    for name in names:
        assert f"| `{name}` |" in page
        ablation = ablate.Ablation(ablate.AblateConfig(name, str(tmp_path), recipe="short", pretraining_seeds=2))
        for row in ablation.rows:
            runs = [*ablation.pretrainings(row), *ablation.finetunings(row, {"ner": ("ner", "data")})["ner"]]
            assert len(runs) == 5 + 2 * (row.join is not None)
            for run in runs:
                check_options(run)


def test_every_command_of_the_page_is_read():
    found = [words for block in documentation.indented_blocks(PAGE)
             for words in documentation.commands(block, "python studies/ablate.py")]  # fmt: skip
    assert len(found) > 2
    for words in found:
        assert parse(ablate.AblateConfig, words, positional=("study",)).output.startswith("runs/")


@pytest.mark.full
def test_an_interrupted_study_goes_on_and_its_runs_start_from_one_another(tmp_path, prepared_data, monkeypatch):
    write_ner(tmp_path / "ner")
    study = write_yaml(tmp_path / "study.yaml", {"title": "A study", "paper": "table 5", "rows": ROWS})
    recipe = write_yaml(tmp_path / "recipe.yaml", RECIPE)
    given = {"data": str(prepared_data()), "tasks": [f"ner={tmp_path / 'ner'}"], "seeds": 3, "pretraining_seeds": 2}
    config = ablate.AblateConfig(study, str(tmp_path / "run"), recipe, seed=5, **given)
    train, calls = finetuning.train, []

    def interrupted(config, *rest):
        calls.append(config.output)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return train(config, *rest)

    monkeypatch.setattr(finetuning, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ablate.run(config)
    table = ablate.run(config)
    assert len(calls) == 13 and len(set(calls)) == 12  # only the interrupted one ran twice
    assert ablate.run(config) == table and len(calls) == 13

    runs = sorted(path.name for path in (tmp_path / "run" / "pretrain").iterdir())
    assert runs == ["direction=left_to_right", "direction=right_to_left", "prepare.pairs=doc_sentences"]
    for seed, start in ((0, "seed_5"), (1, "seed_6"), (2, "seed_5")):
        place = tmp_path / "run" / "finetune" / "joined" / "ner" / f"seed_{seed}" / "run.json"
        tuned = json.loads(place.read_text())["configuration"]
        assert pathlib.Path(tuned["model"]).parts[-3:] == ("direction=left_to_right", start, "encoder")
        assert pathlib.Path(tuned["task_options"]["join"]).parts[-3:] == ("direction=right_to_left", start, "encoder")
    assert [row["pretraining"]["steps"] for row in table["rows"]] == [4, 4, 4, 2]
    first, second = table["rows"][0]["pretraining"]["perplexities"]
    assert first != second
    for row in table["rows"]:
        places = [tmp_path / "run" / "finetune" / ablate.folder_name(row["name"]) / "ner" / f"seed_{n}" for n in "012"]
        values = [json.loads((place / "metrics.json").read_text())["history"][0]["value"] for place in places]
        assert row["tasks"]["ner"]["values"] == values
        assert row["tasks"]["ner"]["mean"] == pytest.approx(sum(values) / 3)
    assert "| joined | 4 |" in (tmp_path / "run" / "table.md").read_text(encoding="utf-8")


@pytest.mark.full
def test_without_tasks_of_its_own_a_study_makes_them_from_the_corpus(tmp_path, prepared_data):
    """The study that the page shows."""
    text = (documentation.ROOT / PAGE).read_text(encoding="utf-8").split("```yaml\n# my_study.yaml\n")[1]
    rows = yaml.safe_load(text.split("```")[0])
    study = write_yaml(tmp_path / "study.yaml", rows | {"rows": [*rows["rows"], ROWS[2]]})
    config = ablate.AblateConfig(study, str(tmp_path / "run"), write_yaml(tmp_path / "recipe.yaml", RECIPE), seeds=1)
    config.data = str(prepared_data())
    found = {row["name"]: sorted(row["tasks"]) for row in ablate.run(config)["rows"]}
    both = ["follows", "names"]
    assert found == {"tokens": both, "whole words": both, "whole words, BiLSTM": both, "left, features": ["names"]}


@pytest.mark.full
@pytest.mark.parametrize("series", [[None, None], ["a curve", "a curve"]])
def test_the_table_has_means_deviations_and_the_paper_s_figures(series, tmp_path):
    tuned = {"mrpc": {"metric": "f1", "values": [0.5, 0.6, 0.7]}}
    pretraining = {"steps": 7, "perplexities": [71.0, 73.0]}
    rows = [
        {"name": "one", "pretraining": pretraining, "tasks": tuned, "paper": {"LM": 3.9}},
        {"name": "two", "pretraining": {}, "tasks": {}, "paper": {}},
    ]
    ablation_table.write({"title": "A study", "paper": "table 5"}, series, rows, "about", tmp_path)
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| one | 7 | 72.0 ± 1.4 | 60.0 ± 10.0 | 3.9 |" in table and "| two |  |  |  |  |" in table
    assert (tmp_path / "table.png").stat().st_size > 5000


@pytest.mark.full
def test_rows_of_one_name_are_refused_since_they_would_share_their_results():
    with pytest.raises(ValueError, match="have the same name"):
        ablate.rows_of({"rows": [{"name": "mask 80%"}, {"name": "mask 80!"}]})


@pytest.mark.full
def test_half_of_the_pairs_follow_one_another_without_one_left_out_between_them(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_tasks, "split_of", lambda name, seed: name)
    texts = {place: [f"sentence {n} of the document {place} ." for n in range(5)] for place in "ab"}
    with_others = {place: [*found[:2], "A heading", *found[2:4], "Another", found[4]] for place, found in texts.items()}
    corpus = [Document(split, "source", found) for split in corpus_tasks.FILES for found in with_others.values()]
    documents = corpus_tasks.sample_documents(corpus, 0, 99, 0)
    assert {split: len(found) for split, found in documents.items()} == dict.fromkeys(corpus_tasks.FILES, 2)
    corpus_tasks.write_pairs(tmp_path / "pairs.jsonl", documents["train"], 60, np.random.default_rng(0))
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert collections.Counter(row["label"] for row in rows) == {"follows": 30, "random": 30}
    for row in rows:
        if row["label"] == "follows":
            found = texts[row["text"][-3]]
            assert (row["text"], row["text_pair"]) in [(found[0], found[1]), (found[2], found[3])]
        else:
            assert row["text"][-3] != row["text_pair"][-3]


@pytest.mark.full
def test_names_are_words_with_a_capital_that_do_not_begin_the_sentence_and_are_shown_without_it(tmp_path):
    corpus_tasks.write_names(tmp_path / "dev.txt", [["So I met Jane Eyre of Hay ."]], 2, np.random.default_rng(0))
    first, _ = read_conll(tmp_path / "dev.txt", BadRows("stop"))
    assert first.words == ["so", "i", "met", "jane", "eyre", "of", "hay", "."]
    assert first.labels == ["O", "O", "O", "B-NAME", "I-NAME", "O", "B-NAME", "O"]
