"""Checks that the notebook runs, and that the outputs stored in it belong to the code stored in it."""

import contextlib
import importlib.metadata
import io
import pathlib
import platform
import re

import nbclient
import nbformat
import pytest
from documentation import shape_of_line
from tiers import on

pytestmark = on("tensorflow")

NOTEBOOK = pathlib.Path(__file__).parents[2] / "notebooks" / "quickstart.ipynb"
# The same numbers of epochs as in the notebook, so that each cell prints the same number of lines.
SMALL = """
MAX_SENTENCES = 100
VOCABULARY_SIZE = 600
LAYERS, WIDTH, HEADS = 1, 24, 2
PRETRAINING_EPOCHS = 4
FINETUNING_EPOCHS = 3
"""


def read():
    return nbformat.read(NOTEBOOK, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell):
    """The lines that a cell printed, except TensorFlow's log and what a slow machine prints while it compiles.
    Warnings, which depend on the text, are on stderr."""
    text = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
    return [line for line in text.splitlines() if not line.startswith(("INFO:tensorflow", "  compiling the "))]


def settings_of(notebook):
    (settings,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    return settings


def shape(line):
    """A line without what depends on training: numbers, guessed words, predicted sources."""
    line = re.sub(r"^N% \S+$", "N% guess", " ".join(shape_of_line(line).split()))
    return re.sub(r"b'[^']+'", "b'source'", re.sub(r"^\S+ N% ", "source N% ", line))


@pytest.fixture(scope="module")
def executed(tmp_path_factory, text_folder):
    """The notebook after a run in a small setting, and the folder that it wrote to."""
    notebook, folder = read(), tmp_path_factory.mktemp("notebook")
    settings_of(notebook).source = f"TEXT = {str(text_folder)!r}\n{SMALL}"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook, folder


@pytest.mark.full
def test_notebook_runs_in_a_small_setting(executed):
    notebook, folder = executed
    assert (folder / "my_classifier" / "model.safetensors").is_file()
    assert (folder / "my_saved_model" / "saved_model.pb").is_file()
    assert "b'" in notebook.cells[-1].outputs[-1].text


@pytest.mark.full
def test_stored_outputs_have_the_lines_that_the_stored_code_prints(executed):
    stored = code_cells(read())
    assert [cell.execution_count for cell in stored] == list(range(1, len(stored) + 1))
    for cell, again in zip(stored, code_cells(executed[0]), strict=True):
        if "corpora" in cell.source or "vocabulary" in cell.source:
            continue  # these print the text itself: see the next test
        assert [shape(line) for line in printed(cell)] == [shape(line) for line in printed(again)], cell.source


def skip_if_the_text_is_another(notebook):
    """The notebook reads the docstrings of Python and of packages, which differ between their versions."""
    constraints = (NOTEBOOK.parents[1] / "constraints.txt").read_text(encoding="utf-8")
    wanted = {"python": notebook.metadata.language_info.version}
    wanted |= dict(re.findall(r"^(keras|numpy|tensorflow)==(\S+)", constraints, re.MULTILINE))
    for name, version in wanted.items():
        found = platform.python_version() if name == "python" else importlib.metadata.version(name)
        if found != version:
            pytest.skip(f"the stored outputs are of {name} {version}, this is {found}")


@pytest.mark.full
def test_what_is_printed_before_training_is_word_for_word_what_is_stored():
    notebook, found = read(), {}
    skip_if_the_text_is_another(notebook)
    for cell in code_cells(notebook)[1:5]:  # from the cell after the installation to the one that makes the encoder
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(cell.source, found)
        assert output.getvalue().splitlines() == printed(cell)
    assert "weights" in output.getvalue()


def test_stored_steps_and_predictions_agree_with_the_stored_settings_and_with_each_other():
    cells, settings = code_cells(read()), {}
    exec(settings_of(read()).source, settings)
    text = next(printed(cell) for cell in cells if "corpora" in cell.source)
    assert text[0].startswith(
        f"{settings['MAX_SENTENCES']:,} sentences to train on, {settings['MAX_SENTENCES'] // 10:,} "
    )
    fits = [(cell, re.search(r"(\w+)\.fit\(", cell.source)) for cell in cells]
    (pretraining,) = (printed(cell) for cell, fit in fits if fit and fit[1] == "masked_lm")
    (finetuning,) = (printed(cell) for cell, fit in fits if fit and fit[1] == "classifier")
    for lines, epochs, rows in (
        (pretraining, settings["PRETRAINING_EPOCHS"], 16),
        (finetuning, settings["FINETUNING_EPOCHS"], 32),
    ):
        steps = -(-settings["MAX_SENTENCES"] // rows)
        assert lines[::2] == [f"Epoch {number}/{epochs}" for number in range(1, epochs + 1)]
        assert all(line.startswith(f"{steps}/{steps} - ") for line in lines[1::2])
    # Keras' classifier and the SavedModel made from it predict the same.
    predicted, served = printed(cells[-2]), printed(cells[-1])[0]
    labels, shares = zip(*(re.match(r"(\w+) +([\d.]+)%", line).groups() for line in predicted), strict=True)
    assert tuple(re.findall(r"b'(\w+)'", served)) == labels
    wanted = [round(float(share) / 100, 3) for share in shares]
    assert [float(share) for share in re.findall(r"0\.\d+", served)] == wanted
