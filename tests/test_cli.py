"""The command line: its commands, recipes by name, exit codes, and the environment that a command needs."""

import dataclasses
import os
import re
import subprocess
import sys
import tomllib
import typing

import pytest
from documentation import ROOT, python_blocks
from tiers import on

from keras_bert_impl import startup
from keras_bert_training import cli, runs
from keras_bert_training.options.ask import AskConfig


@dataclasses.dataclass
class MixConfig:
    """Mixes paint."""

    GROUPS: typing.ClassVar = {"the colour": ("red", "blue")}

    output: str
    red: float = 0.5
    blue: float = 0.5
    verify: bool = False


def test_every_command_is_there_and_explains_each_of_its_options(capsys, monkeypatch):
    monkeypatch.setattr(cli, "COMMANDS", {n: c for n, c in cli.COMMANDS.items() if n != "plan-tpu"})
    for name, command in cli.COMMANDS.items():
        assert f"  {name} " in cli.overview()
        config = cli.options_of(name)
        with pytest.raises(SystemExit) as ended:
            runs.parse(config, ["--help"], f"keras-bert {name}", command.positional)
        printed = capsys.readouterr().out
        assert ended.value.code == 0 and printed.startswith(f"usage: keras-bert {name}")
        for field in (field for field in dataclasses.fields(config) if field.init):  # the others are no options
            assert f"--{field.name}" in printed, f"{name}: {field.name}"


def test_start_up_is_silent():
    """TensorFlow's messages, which it writes whichever backend trains, would hide the command's own."""
    command = [sys.executable, "-m", "keras_bert_training", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "" and done.stdout.startswith("keras_bert_impl ")


ALL_HELP = """
import os, sys
from keras_bert_training.cli import COMMANDS, WITHOUT_CHIPS, main
os.environ.update(WITHOUT_CHIPS)  # otherwise plan-tpu would begin anew
for words in [["--help"], *([name, option] for name in COMMANDS for option in ("--help", "--nonsense"))]:
    try:
        main(words)
    except SystemExit:
        pass
print(sorted({"keras", "tensorflow", "torch", "jax", "numpy"} & sys.modules.keys()))
"""


def test_options_are_parsed_before_a_backend_is_imported():
    """Importing one takes seconds, which --help and a misspelt option do not need."""
    done = subprocess.run([sys.executable, "-c", ALL_HELP], capture_output=True, text=True)
    assert (done.stdout + done.stderr).count("usage: keras-bert") >= 2 * len(cli.COMMANDS)
    assert done.stdout.endswith("\n[]\n")


def test_the_pages_import_the_library_before_keras_and_tensorflow():
    """Only then are TensorFlow's start-up messages hidden."""
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        code = "\n".join(python_blocks(page))
        imported = re.findall(r"^import (keras|tensorflow|keras_bert_impl)\b", code, re.MULTILINE)
        assert "keras_bert_impl" not in imported or imported[0] == "keras_bert_impl", page


@on("jax", "torch")  # about the backends that need no TensorFlow
@pytest.mark.full
def test_a_command_that_reads_no_data_starts_without_tensorflow():
    code = "import sys, keras_bert_training.commands.fill_mask; sys.exit('tensorflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_command_ends_with_2_and_the_list(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["pretrian"])
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert "Did you mean pretrain?" in printed and "finetune" in printed


def test_options_stand_in_the_group_of_their_class(capsys):
    with pytest.raises(SystemExit):
        runs.parse(MixConfig, ["--help"], "paint mix")
    printed = capsys.readouterr().out
    assert printed.index("what to work on:") < printed.index("\n  --output OUTPUT") < printed.index("the colour:")
    assert printed.index("the colour:") < printed.index("--red RED ") < printed.index("--blue BLUE ")
    assert "usage: paint mix --output OUTPUT [options]" in printed


def test_plain_words_in_front_are_the_positional_options():
    assert runs.parse(MixConfig, ["here", "0.25", "--verify"], positional=("output", "red")) == MixConfig(
        "here", 0.25, 0.5, True
    )


def test_a_recipe_is_found_by_its_name_and_an_unknown_one_lists_them():
    assert runs.recipe_path("bert_base/phase_128").is_file()
    assert runs.recipe_path("bert_base/phase_128.yaml") == runs.recipe_path("bert_base/phase_128")
    with pytest.raises(ValueError, match=r"albert_base/phase_512.* Did you mean bert_base/phase_128"):
        runs.recipe_path("bert_bsae/phase_128")


@pytest.mark.parametrize(
    ("kind", "failure", "code", "told"),
    [
        (MixConfig, OSError("disk full"), "error: disk full", ""),
        (MixConfig, KeyboardInterrupt(), 130, "resumes"),
        (AskConfig, KeyboardInterrupt(), 130, "interrupted."),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_an_interruption_has_its_code(kind, failure, code, told, capsys):
    def run(config):
        raise failure

    with pytest.raises(SystemExit) as ended:
        runs.main(kind, run, ["--output=x"] if kind is MixConfig else ["--text=x"])
    printed = capsys.readouterr().err
    assert ended.value.code == code and told in printed and ("resumes" in printed) == (told == "resumes")


def test_a_command_for_another_backend_starts_anew_with_it(monkeypatch):
    calls = []
    monkeypatch.setattr(os, "execve", lambda *arguments: calls.append(arguments) or sys.exit(0))
    for name in cli.WITHOUT_CHIPS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit):
        cli.main(["plan-tpu", "--topology", "v5e:2x2"])
    ((_, words, environment),) = calls
    assert words[1:] == ["-m", "keras_bert_training", "plan-tpu", "--topology", "v5e:2x2"]
    assert environment["KERAS_BACKEND"] == "jax" and environment["JAX_PLATFORMS"] == "cpu"


@pytest.mark.parametrize(
    ("installed", "chosen"), [(("tensorflow", "jax"), "tensorflow"), (("jax", "torch"), "jax"), (("torch",), "torch")]
)
def test_without_a_word_the_first_installed_backend_computes(monkeypatch, tmp_path, installed, chosen):
    monkeypatch.delenv("KERAS_BACKEND")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in installed else None)
    startup.choose_backend()
    assert os.environ["KERAS_BACKEND"] == chosen


@pytest.mark.parametrize(("named", "chosen"), [("tensorflow", "jax"), ("torch", None)])
def test_a_backend_in_the_file_of_keras_counts_only_if_it_is_installed(monkeypatch, tmp_path, named, chosen):
    """Keras writes "tensorflow" into this file when it is first imported, whatever is installed."""
    monkeypatch.delenv("KERAS_BACKEND")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "keras.json").write_text(f'{{"backend": "{named}"}}')
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in ("jax", "torch") else None)
    startup.choose_backend()
    assert os.environ.get("KERAS_BACKEND") == chosen


def test_without_a_backend_text_needs_none_and_a_model_names_the_remedy(tmp_path):
    code = (
        "import importlib.util, sys\n"
        "importlib.util.find_spec = lambda name: None\n"
        "import keras_bert_impl as kbi\n"
        "print(kbi.WordPieceTokenizer.__name__, 'keras' in sys.modules)\n"
        "kbi.TextClassifier"
    )
    environment = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    environment["KERAS_HOME"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "WordPieceTokenizer False\n"
    assert "No backend is installed" in done.stderr.splitlines()[-1]


def without_command_line(monkeypatch):
    """As where only the library is installed."""
    monkeypatch.delitem(sys.modules, "keras_bert_training.runs")
    monkeypatch.delattr("keras_bert_training.runs")
    monkeypatch.setitem(sys.modules, "jsonargparse", None)
    return ["--help"]


def without_metrics(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "keras_bert_training.commands.serve", raising=False)
    monkeypatch.delitem(sys.modules, "keras_bert_serving.metrics", raising=False)
    monkeypatch.delattr("keras_bert_serving.metrics", raising=False)
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    return ["serve", "--model", "toy=."]


@pytest.mark.parametrize(("prepared", "extra"), [(without_command_line, "training"), (without_metrics, "serving")])
def test_a_package_that_is_missing_is_named_with_its_extra(prepared, extra, monkeypatch):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    monkeypatch.setattr(
        "importlib.metadata.requires",
        lambda name: [f'{package}; extra == "{extra}"' for extra, packages in extras.items() for package in packages],
    )
    words = prepared(monkeypatch)
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code.endswith(f": pip install 'keras_bert_impl[{extra}]'")
    modules = ("sklearn.metrics", "apache_beam.options", "tensorflow_text", "tensorflow_serving.apis", "ai_edge_litert")
    found = [re.findall(r"\[(.*)]", cli.remedy_for(name))[0] for name in modules]
    assert found == ["training", "beam", "tensorflow", "serving", "litert"]
    assert cli.remedy_for("no_such_module") == cli.remedy_for(None) == ""


def test_the_page_on_installing_names_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    of_developers = {"dev", "docs", "browser-test", "keras-nlp"}  # no command imports these
    assert [extra for extra in extras.keys() - of_developers if f"`[{extra}]`" not in page] == []
