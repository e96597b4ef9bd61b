"""Executes the notebooks and stores them with their outputs, as `make docs` does before it builds the site.

    python notebooks/run.py                 # those whose code has changed since they were stored
    python notebooks/run.py 07_plots        # these, whether or not they have changed
    python notebooks/run.py --all

The source of a notebook is a percent file, NAME.py. It runs in a folder that is removed at the end. NAME.ipynb has, after
the first cell, one more that installs the package. A plot's text alternative is the `alt` of its cell:
`# %% alt="Line plot: ..."`.
"""

import os
import pathlib
import re
import sys
import tempfile
import time

import jupytext
import nbclient
import nbformat

HERE = pathlib.Path(__file__).parent
SOURCES = sorted(path for path in HERE.glob("*.py") if path.name != "run.py")
# Folders of this machine in warnings, TensorFlow's words about its processor, and tqdm's about missing widgets.
LINES_OF_THIS_RUN = re.compile(
    r"/\S*/ipykernel_\d+/\d+\.py:\d+: |/\S*/(?=small_english/)|^INFO:tensorflow:Assets written to: .*\n"
    r"|^/\S*: TqdmWarning: .*\n  from .*\n"
    r"|^WARNING: All log messages before absl.*\n|^[IW]0000 .*\n|^To enable the following instructions: .*\n",
    re.M,
)
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
COLAB = {"accelerator": "GPU", "colab": {"provenance": []}}  # each notebook also runs without a GPU

ADDRESS = "ADDRESS"  # of the Git repository, which is not public yet
EXTRAS = {
    "05_export_and_serve": "training,serving,tensorflow,openvino",
    "06_search": "training,ranking",
}
INSTALL = """\
import importlib.util

if importlib.util.find_spec("keras_bert_impl") is None:
    %pip install -q "keras_bert_impl[{extras}] @ git+https://{address}"
"""

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # what is stored is what a CPU does; a TPU's library, if there, complains


def code_of(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def has_run(stored, notebook):
    """Whether a stored notebook is there, with the code of this one, each cell executed."""
    if not stored.exists():
        return False
    found = nbformat.read(stored, as_version=4)
    ran = all(cell.execution_count for cell in found.cells if cell.cell_type == "code")
    return ran and code_of(found) == code_of(notebook)


def execute(notebook):
    """Runs a notebook from its first cell to its last. Raises: CellExecutionError for a cell that fails."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        options = {"timeout": 1200, "record_timing": False, "coalesce_streams": True}
        nbclient.NotebookClient(notebook, resources=resources, **options).execute()


def clean_outputs(notebook):
    """Removes lines that say something about this machine only."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = LINES_OF_THIS_RUN.sub("", output.text)
        cell.get("outputs", [])[:] = [one for one in cell.get("outputs", ()) if one.get("text") != ""]


def take_outputs(notebook, stored):
    """Gives the cells the outputs of a stored notebook with the same code."""
    found = [cell for cell in nbformat.read(stored, as_version=4).cells if cell.cell_type == "code"]
    for cell, ran in zip((cell for cell in notebook.cells if cell.cell_type == "code"), found, strict=True):
        cell.outputs, cell.execution_count = ran.outputs, ran.execution_count


def opened(source):
    """The notebook of a percent file, with the cell that installs the package."""
    notebook = jupytext.read(source)
    notebook.metadata = {"kernelspec": KERNEL, **COLAB}
    install = INSTALL.format(extras=EXTRAS.get(source.stem, "training"), address=ADDRESS).strip()
    notebook.cells.insert(1, nbformat.v4.new_code_cell(install))
    return notebook


def describe_plots(notebook):
    """Writes the text alternatives of cells to where the site's builder and JupyterLab look for them."""
    for cell in notebook.cells:
        alt = cell.metadata.get("alt")
        if alt is not None:
            cell.metadata["mystnb"] = {"image": {"alt": alt}}
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", ()):
                if alt is None:
                    raise ValueError(f'a plot without a text alternative: add alt="..." to the cell {cell.source!r}')
                output.metadata["image/png"] = {**output.metadata.get("image/png", {}), "alt": alt}


def main(arguments):
    named = SOURCES if arguments == ["--all"] else [HERE / f"{name}.py" for name in arguments]
    for source in named or SOURCES:
        notebook, stored = opened(source), source.with_suffix(".ipynb")
        if not named and has_run(stored, notebook):
            take_outputs(notebook, stored)
        else:
            begun = time.monotonic()
            print(f"{source.name} ...", end=" ", flush=True)
            execute(notebook)
            print(f"{time.monotonic() - begun:.0f} s")
        clean_outputs(notebook)
        describe_plots(notebook)
        notebook.metadata["language_info"] = {"name": "python"}  # whatever version of it ran
        for number, cell in enumerate(notebook.cells):
            cell.id = f"{source.stem.split('_')[0]}-{number}"  # random ones would change with every run
        nbformat.write(notebook, stored)


if __name__ == "__main__":
    main(sys.argv[1:])
