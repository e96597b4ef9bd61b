"""What can rot in the site and the notebooks, without building it; and, in `make test-all`, the build itself."""

import ast
import functools
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from documentation import NOTEBOOKS, PAGES, ROOT, cells_of, text_of, without_code
from tiers import on, once

import keras_bert_impl as kbi
from keras_bert_training.tasks import endings, glue, named_entities, question_answering

sys.path.append(str(ROOT / "docs"))
import reference

pytestmark = once
of_notebooks = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
# Written when the site is built.
GENERATED = {f"api/{page}" for page in (*reference.MODULES, "command_line")}


@functools.cache
def anchors_of(page):
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", one) for one in re.findall(r"^#+ (.*)$", text, re.M)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or path.removesuffix(".md") in GENERATED:
            continue
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and found.suffix == ".md" and anchor not in anchors_of(found)):
            yield target


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_project_leads_somewhere(page):
    assert list(broken_links(page, text_of(page))) == []


def test_every_public_name_is_in_the_reference():
    listed = {entry for page in reference.MODULES for entry in reference.entries(page)}
    names = {name for name in kbi.__all__ if not inspect.ismodule(getattr(kbi, name))} - {"__version__"}
    assert {f"keras_bert_impl.{name}" for name in names} <= listed
    modules = {name for name in kbi.__all__ if inspect.ismodule(getattr(kbi, name))}
    documented = {
        module.partition(":")[0].removeprefix("text.") for _, _, parts in reference.MODULES.values() for module in parts
    }
    assert modules <= documented
    for entry in listed:
        module, name = entry.rsplit(".", 1)
        if module != "keras_bert_serving.ray_app":  # needs Ray
            assert getattr(importlib.import_module(module), name).__doc__, entry


@of_notebooks
def test_what_a_notebook_imports_and_names_of_this_package_exists(notebook):
    tree = ast.parse(notebook.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(importlib.util.find_spec(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("kbi."):
            functools.reduce(getattr, ast.unparse(node).split("(")[0].split(".")[1:], kbi)


@of_notebooks
def test_a_stored_notebook_is_that_of_its_source_and_has_run(notebook):
    stored = json.loads(notebook.with_suffix(".ipynb").read_text(encoding="utf-8"))
    cells = [(cell["cell_type"], "".join(cell["source"]).strip()) for cell in stored["cells"]]
    kind, install = cells.pop(1)
    assert kind == "code" and "%pip install" in install
    assert cells == cells_of(notebook), f"python notebooks/run.py {notebook.stem}"
    assert notebook.stem in SMALL
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs and not any(output["output_type"] == "error" for output in outputs)
    plots = [output for output in outputs if "image/png" in output.get("data", ())]
    assert all(output["metadata"]["image/png"]["alt"] for output in plots)
    warned = [line for line in json.dumps(outputs).split("\\n") if "Warning: " in line]
    assert len(warned) == len(set(warned))
    texts = json.dumps([{**output, "data": {}} for output in outputs])
    assert not re.search(r"/(home|work|root|tmp|usr)/|site-packages", texts)


def rows_below(heading):
    """The rows of the first table below a heading of docs/paper.md: (first cell, numbers, ...)."""
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8").split(f"## {heading}")[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.M)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return [(first, *[float(one) for one in rest if re.fullmatch(r"[0-9]+[.][0-9]+", one)]) for first, *rest in cells]


def of_study(name):
    rows = yaml.safe_load((ROOT / "studies" / f"{name}.yaml").read_text(encoding="utf-8"))["rows"]
    return {row["name"]: list(row["paper"].values()) for row in rows}


def test_the_figures_of_the_papers_tables_are_those_that_the_commands_print():
    table_1 = {row: tuple(both) for row, *both in rows_below("Table 1")}
    assert table_1 == {row: both for of_task in glue.PAPER.values() for row, both in of_task.items()}
    squad = [question_answering.TASKS[name] for name in ("squad1.1", "squad2.0")]
    in_table = [(task.name, *figures.values()) for task in squad for figures in task.paper.values()]
    assert rows_below("Tables 2 and 3") == in_table
    swag = endings.TASKS["swag"].paper
    assert rows_below("Table 4") == [("swag", *(figures["accuracy"] for figures in swag.values()))]
    assert {row: figures for row, *figures in rows_below("Table 5")} == of_study("pretraining_tasks")
    assert [figures for _, *figures in rows_below("Table 6")] == list(of_study("model_size").values())
    conll = {row: list(figures.values()) for row, figures in named_entities.PAPER_CONLL.items()}
    assert {row: figures for row, *figures in rows_below("Table 7")} == conll
    masking = of_study("masking")
    joined = {row: [*figures, *masking[f"{row}, features"]] for row, figures in masking.items() if "," not in row}
    assert {row: figures for row, *figures in rows_below("Table 8")} == joined


SMALL = {
    "01_pretrain": {"PASSAGES": 200, "EPOCHS": 1},
    "02_classifier": {"ROWS": 80, "EPOCHS": 1},
    "03_questions": {"PASSAGES": 15, "EPOCHS": 1},
    "04_entities": {"SENTENCES": 60, "EPOCHS": 1},
    "05_export_and_serve": {"TRAINING_TEXTS": 40, "REQUESTS": 16},
    "06_search": {"TEXTS": 80, "EPOCHS": 1},
    "07_plots": {"SENTENCES": 60, "EPOCHS": 1},
}
BACKEND = {"01_pretrain": "jax", "05_export_and_serve": "tensorflow"}


@pytest.mark.full
@pytest.mark.parametrize("name", SMALL)
def test_a_notebook_runs_in_a_small_form(name, tmp_path):
    code = "\n".join(source for kind, source in cells_of(ROOT / "notebooks" / f"{name}.py") if kind == "code")
    for parameter, value in SMALL[name].items():
        code, count = re.subn(rf"^{parameter} = .*$", f"{parameter} = {value}", code, flags=re.MULTILINE)
        assert count == 1
    backend = BACKEND.get(name, "torch")
    path = os.pathsep.join(str(ROOT / place) for place in (".", "training", "serving"))
    environment = {**os.environ, "KERAS_BACKEND": backend, "MPLBACKEND": "agg", "PYTHONPATH": path}
    (tmp_path / "notebook.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "notebook.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.full
@on("tensorflow")
def test_the_site_is_built_without_a_warning(tmp_path):
    for module in ("sphinx", "myst_nb", "pydata_sphinx_theme"):
        if importlib.util.find_spec(module) is None:
            pytest.skip("needs pip install '.[docs]'")
    command = [sys.executable, "-m", "sphinx", *"--quiet --nitpicky --fail-on-warning --keep-going -c docs".split()]
    done = subprocess.run([*command, ".", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "docs" / "index.html").is_file() and (tmp_path / "searchindex.js").is_file()
    for page in tmp_path.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?://', text), f"{page} asks another machine"
