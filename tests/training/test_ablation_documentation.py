"""The study that docs/ablations.md shows, run as it is written there, with a very small recipe."""

import documentation
import pytest
import yaml
from tiers import once

from keras_bert_impl.studies import ablation, ablation_study
from keras_bert_impl.training.runs import parse

PAGE = "docs/ablations.md"
TINY = {
    "prepare": {},
    "pretrain": {"size": "bert_tiny", "num_layers": 1, "hidden_size": 16, "steps": 2, "batch_size": 4},
    "finetune": {"epochs": 1, "batch_size": 8, "sequence_length": 32},
    "task_rows": 8,
}
pytestmark = [once, pytest.mark.usefixtures("without_reports")]


def page():
    return (documentation.ROOT / PAGE).read_text(encoding="utf-8")


def commands():
    return [words for block in documentation.indented_blocks(PAGE)
            for words in documentation.commands(block, "keras-bert")]  # fmt: skip


@pytest.mark.full
def test_the_study_of_the_page_runs(tmp_path, monkeypatch, prepared_data):
    monkeypatch.chdir(tmp_path)
    text = page().split("```yaml\n# my_study.yaml\n")[1].split("```")[0]
    (tmp_path / "my_study.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(TINY), encoding="utf-8")
    words = next(words for words in commands() if "my_study.yaml" in words)
    small = ["--recipe", "tiny.yaml", "--seeds", "1", "--data", str(prepared_data())]
    table = ablation.run(parse(ablation.AblateConfig, [*words[1:], *small]))
    assert [row["name"] for row in table["rows"]] == ["tokens", "whole words", "whole words, BiLSTM"]
    assert all(sorted(row["tasks"]) == ["follows", "names"] for row in table["rows"])
    assert (tmp_path / "runs" / "mine" / "table.png").is_file()


def test_every_command_of_the_page_is_read_and_its_tasks_are_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in commands():
        assert words[0] == "ablate"
        for given in parse(ablation.AblateConfig, words[1:]).tasks:
            (tmp_path / given.partition("=")[2]).mkdir(parents=True)
        ablation.given_tasks(parse(ablation.AblateConfig, words[1:]))


def test_every_study_is_in_the_table_of_the_page():
    for name in ablation_study.study_names():
        assert f"| `{name}` |" in page()
