import pathlib

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).parents[2] / "notebooks" / "quickstart.ipynb"
SMALL = """
MAX_SENTENCES = 300
VOCABULARY_SIZE = 600
LAYERS, WIDTH, HEADS = 1, 24, 2
PRETRAINING_EPOCHS = 1
FINETUNING_EPOCHS = 1
"""


def read():
    return nbformat.read(NOTEBOOK, as_version=4)


def test_notebook_runs_in_a_small_setting(tmp_path, text_folder):
    notebook = read()
    (settings,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    settings.source = f"TEXT = {str(text_folder)!r}\n{SMALL}"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert (tmp_path / "my_classifier" / "model.safetensors").is_file()
    assert (tmp_path / "my_saved_model" / "saved_model.pb").is_file()
    assert "b'" in notebook.cells[-1].outputs[-1].text


def test_stored_outputs_belong_to_the_stored_code():
    code = [cell for cell in read().cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    assert "% " in "".join(output.get("text", "") for cell in code for output in cell.outputs)
