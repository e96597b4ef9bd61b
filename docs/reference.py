"""The API reference: which public names there are, and the pages that list them, by area.

The lists are those of the package (`__all__`), so that a new public name is on its page without anything being done.
"""

import importlib
import inspect
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
MODULES = {
    # page: (title, what it is about, where the names are from)
    "models": ("Models", "A head over an encoder, fitted on texts and asked in words.", ["models"]),
    "encoders": ("Encoders", "The families: a configuration and an encoder each.", [""]),
    "text": ("Text", "Text files as documents of sentences, and texts as ids.", ["text.tokenizers", "text.corpora"]),
    "preprocessing": (
        "Preprocessing",
        "Rows of texts for `tf.data`, DataLoaders and lists; [the guide](../preprocessing.md).",
        ["preprocessing"],
    ),
    "checkpoints": ("Checkpoints", "What `from_pretrained` and `save_pretrained` use.", ["checkpoints"]),
    "training": (
        "Training",
        "Optimizers, schedules, losses and metrics.",
        [
            "optimization",
            "losses",
            "metrics",
            "embedding_losses",
            "embedding_metrics",
            "retrieval",
        ],
    ),
    "callbacks": ("Callbacks", "For the `fit` of every model; [the guide](../callbacks.md).", ["callbacks"]),
    "export": ("Export", "Models for runtimes and servers; [the guide](../serving.md).", ["export"]),
    "plots": ("Plots", "Pictures of runs, models, outputs and texts; [the gallery](../plots.md).", ["plots"]),
    "layers": ("Layers", "The parts of encoders and heads.", ["layers"]),
    "data": (
        "Pre-training data",
        "Rows in files and batches of them, as `keras-bert prepare-data` writes and `pretrain` reads them.",
        [
            "features",
            "text.rows.pretraining_rows:RowFormat",
            "text.rows.masking:MaskingRule",
            "text.rows.masking:NextTokens",
            "text.rows.numpy_data:RowFiles",
            "text.rows.numpy_data:TrainingBatches",
            "preprocessing.graphs.tf_data:read_training_data",
        ],
    ),
    "distribution": (
        "Distribution",
        "Which devices and processes compute; [the guide](../devices.md).",
        ["distribution"],
    ),
    "serving": (
        "Serving",
        "The server as an application of Ray Serve; [the guide](../server.md).",
        ["keras_bert_serving.ray_app:app"],
    ),
}


def full_name(module):
    """The name of a module, which stands above without the library's, "keras_bert_impl"."""
    return module if module.startswith("keras_bert_") else f"keras_bert_impl.{module}".rstrip(".")


def public_names(module):
    """The names that a module of the package shows: its `__all__`, or what it defines itself without underscore. Of
    "module:Name" the name alone."""
    module, _, name = module.partition(":")
    if name:
        return [name]
    found = importlib.import_module(full_name(module))
    if hasattr(found, "__all__"):
        kinds = {name: getattr(found, name) for name in found.__all__}
        return [name for name, value in kinds.items() if inspect.isclass(value) or inspect.isroutine(value)]
    return [
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == found.__name__
    ]


def entries(page):
    """The full names on a page. A name that the package itself shows is there without its module."""
    import keras_bert_impl as kbi

    elsewhere = {*kbi.models.__all__, *kbi.tokenizers.__all__}
    listed = []
    for module in MODULES[page][2]:
        for name in public_names(module):
            if module == "":
                if name not in elsewhere:
                    listed.append(f"keras_bert_impl.{name}")
            elif name not in kbi.__all__:
                listed.append(f"{full_name(module.partition(':')[0])}.{name}")
            elif name in elsewhere:
                listed.append(f"keras_bert_impl.{name}")
    return listed


HEADER = re.compile(r"(Input|Output|Returns?|Raises(?: \([^)]*\))?|Yields|Args|Source): +(\S.*)")
SECTIONS = ("Args:", "Attributes:", "Fields:", "Returns:", "Raises:", "Yields:", "Input:", "Output:")


def as_restructured_text(app, what, name, of, options, lines):
    """Writes a docstring of this package so that Sphinx sees what a reader of the source sees.

    "Input:  text" with further lines below it becomes a field; an indented block behind an empty line, code; one behind
    a line that ends in a colon, text in columns.
    """
    found, place = [], 0
    while place < len(lines):
        line, end = lines[place], place + 1
        while end < len(lines) and (lines[end].startswith(" ") or (not lines[end] and lines[end + 1 :][:1] and
                                    lines[end + 1].startswith(" "))):  # fmt: skip
            end += 1
        below = lines[place + 1 : end]
        line = line if line.startswith(" ") else escaped(line)
        if header := HEADER.fullmatch(line):
            if found and found[-1] and not found[-1].startswith((":", " ")):
                found.append("")
            found += [f":{header[1]}: {header[2]}", *(f"    {escaped(one.strip())}" for one in below if one)]
        elif line.startswith(" "):  # behind an empty line: an example
            found += [".. code-block:: python", "", *lines[place:end], ""]
        elif below and line.endswith(":") and line not in SECTIONS:
            found += [line, "", f".. code-block:: {'text' if below[0] else 'python'}", "", *below, ""]
        else:
            found.append(line)
            end = place + 1 if line not in SECTIONS else end
            found += map(escaped, lines[place + 1 : end])
        place = end
    lines[:] = found


def escaped(line):
    """A line whose bars and last underscores are these characters, and no markup; what is in backticks stays."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else re.sub(r"\||(?<=\w)_(?=\W|$)", r"\\\g<0>", part) for part in parts)


def without_folder_links(app, page, source):
    """Shows a link to a folder of the clone, which a site has no page for, as its text."""
    folder = (ROOT / page).parent

    def shown(link):
        return link[1] if (folder / link[2]).is_dir() else link[0]

    source[0] = re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)\)", shown, source[0])


def signature_of_class(app, what, name, found, options, signature, returned):
    """What a class takes is what its constructor takes; Keras' classes have a `__new__` that takes anything."""
    if what != "class" or found.__init__ is object.__init__:
        return None
    arguments = list(inspect.signature(found.__init__).parameters.values())[1:]
    return str(inspect.Signature([one.replace(annotation=inspect.Parameter.empty) for one in arguments])), None


def is_foreign(app, what, name, member, skip, options):
    """True for a member that a class has from Keras or from the backend, which document it: Sphinx leaves it out."""
    if inspect.isclass(member):  # an attribute that names a class
        return True
    found = getattr(member, "fget", member)
    found = inspect.unwrap(getattr(found, "__func__", found))
    is_ours = (getattr(found, "__module__", None) or "").startswith("keras_bert_")
    return skip or not (is_ours and getattr(found, "__doc__", None))


def page_of(page):
    """The text of the page of an area."""
    title, about, _ = MODULES[page]
    names = "\n".join(f"   ~{entry}" for entry in entries(page))
    if "features" in MODULES[page][2]:  # its docstring is a page by itself
        about += "\n\n" + importlib.import_module("keras_bert_impl.features").__doc__
    return f"""# {title}

{about}

```{{eval-rst}}
.. autosummary::
   :toctree: generated/
   :nosignatures:

{names}
```
"""


def command_line():
    """The text of the page of the command line: what each command prints for --help."""
    from keras_bert_training.cli import COMMANDS

    text = "# Command line\n\n`keras-bert COMMAND --help` prints the same.\n"
    for name, command in COMMANDS.items():
        asked = [sys.executable, "-m", "keras_bert_training", name, "--help"]
        shown = subprocess.run(
            asked, env={**os.environ, "COLUMNS": "84"}, check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout
        shown = "".join(one for one in shown.replace(f"{ROOT}/", "") if one.isprintable() or one == "\n")
        text += f"\n## keras-bert {name}\n\nThe command {command.does}.\n\n```text\n{shown.rstrip()}\n```\n"
    return text


def write_pages(directory):
    """Writes the page of each area and that of the command line, unless they are there as they should be."""
    directory = pathlib.Path(directory)
    directory.mkdir(exist_ok=True)
    for name, text in {**{page: page_of(page) for page in MODULES}, "command_line": command_line()}.items():
        path = directory / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
