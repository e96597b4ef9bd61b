"""report.html of a run directory: one file that needs no other, for a browser.

What it shows is read from the files of the run; all of it that comes from a user's data is escaped by the template.
"""

import base64
import dataclasses
import io
import json
import pathlib
import shlex
import typing

import jinja2

from keras_bert_impl.json_files import written_whole
from keras_bert_impl.process_group import is_chief
from keras_bert_impl.training.worst_errors import worst_errors

FILE = "report.html"
TEMPLATES = pathlib.Path(__file__).parent / "templates"
PICTURES = {
    "curves.png": "Figures of training and validation over the steps",
    "confusion.png": "Confusion matrix: how often each class was predicted for each class",
    "f1_by_label.png": "F1 of each label",
}


class Table(typing.NamedTuple):
    """A table of a report: its title, the names of its columns, its rows of cells, and a sentence above it."""

    title: str
    head: list
    rows: list
    note: str = ""


class Page(typing.NamedTuple):
    """What a report shows beside the files of its run.

    Fields:
        title: what was done, such as "Fine-tuning: mrpc".
        state: whether it is finished, in a sentence.
        lines: sentences on what was trained on what.
        tables: `Table`s.
        masks: rows of pieces, dicts of `truth` and `guess`, which is None for a word that was not masked.
        commands: how to go on, lines of a shell.
        drawn: (PNG as bytes, alternative text) of pictures that are no files.
    """

    title: str
    state: str
    lines: tuple = ()
    tables: tuple = ()
    masks: tuple = ()
    commands: tuple = ()
    drawn: tuple = ()


def write(directory, page):
    """Writes report.html, completely or not at all. One process writes."""
    if not is_chief():
        return
    directory = pathlib.Path(directory)
    run, data = (_read(directory / name) for name in ("run.json", "data.json"))
    drawn = [{"data": base64.b64encode(content).decode(), "alt": alt} for content, alt in page.drawn]
    content = template().render(
        **page._asdict(),
        pictures=[*drawn, *pictures(directory)],
        errors=worst_errors(directory),
        options=[[name, _shown(value)] for name, value in sorted(run.get("configuration", {}).items())],
        versions=list(run.get("versions", {}).items()),
        files=files_of(data),
    )
    with written_whole(directory / FILE) as file:
        file.write(content)


def files_of(data):
    """Rows (file, SHA-256) of a data.json: the files of a fine-tuning, or the data of a pre-training as a whole."""
    if "fingerprint" in data:
        return [[data["directory"], data["fingerprint"]]]
    return [[name, sha256] for name, sha256 in data.get("files", {}).items()]


def template():
    """The template of the page."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template(FILE)


def pictures(directory):
    """The pictures of a run that are there."""
    found = [(directory / name, alt) for name, alt in PICTURES.items() if (directory / name).is_file()]
    return [{"data": base64.b64encode(path.read_bytes()).decode(), "alt": alt} for path, alt in found]


def figures_table(figures, title="Held-out figures"):
    """A `Table` of `checkpoints.Figure`s, with their deviations and beside their baselines."""
    baselines = list(dict.fromkeys(what for figure in figures for what, _ in figure.baselines))
    have_deviation = any(figure.deviation is not None for figure in figures)
    rows = []
    for figure in figures:
        others = dict(figure.baselines)
        deviation = "" if figure.deviation is None else f"± {figure.deviation:.4f} ({figure.over})"
        cells = [f"{others[what]:.4f}" if what in others else "" for what in baselines]
        name = f"{figure.name.replace('_', ' ')}{figure.of_class}, {figure.split}"
        rows.append([name, f"{figure.value:.4f}", *([deviation] if have_deviation else []), *cells])
    head = ["figure", "this model", *(["deviation"] if have_deviation else []), *baselines]
    return Table(title, head, rows, "± is one standard deviation." if have_deviation else "")


def counts_table(title, counts):
    """A `Table` of (what, number)."""
    return Table(title, ["", "number"], [[what, f"{number:,}"] for what, number in counts])


def drawn(figure, alt):
    """A matplotlib figure as PNG, with its alternative text."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue(), alt


def command_of(config, name):
    """The command line of a configuration, with the options that are not the defaults."""
    words = ["keras-bert", name]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if value is not None and value != default:
            words += [f"--{field.name}", value if isinstance(value, str) else json.dumps(value)]
    return shlex.join(words)


def commands_for(checkpoint, task=None):
    """How to go on with a checkpoint, as lines of a shell; `task` "fill_mask" or "embed" for a pre-trained one."""
    place = shlex.quote(str(checkpoint))
    ask = f"keras-bert fill-mask --model {place}" if task == "fill_mask" else f"keras-bert ask {place}"
    tune = (f"keras-bert finetune --data my_data --model {place} --output runs/classifier",) if task else ()
    return (
        *tune,
        ask,
        f"keras-bert serve --model name={place}",
        f"keras-bert export --model {place} --format onnx --output served",
    )


def _read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _shown(value):
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
