"""The API reference: which public names there are, the pages that list them by area, and how a docstring is shown.

The lists are those of the package (`__all__`), so that a new public name is on its page without anything being done.
"""

import functools
import importlib
import inspect
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
MODULES = {
    # page: (title, introduction, modules or module:name)
    "models": (
        "Models",
        "A model is an encoder with a head for one task. Open one with `from_pretrained`, train it with `fit`, and use "
        "the method of its task for answers.",
        [
            "models",
            *(f"models.answers:{name}" for name in ("Label", "Choice", "Match")),
            "models.span_answers:Answer",
            "preprocessing.entities:Entity",
            *(f"models.masked_lm:{name}" for name in ("FilledMask", "FilledText")),
            "models.replaced_token_detector:TokenDoubt",
        ],
    ),
    "encoders": (
        "Encoders",
        "Each family of encoders has a configuration and an encoder. `encoder_from_pretrained` opens any of them.",
        [""],
    ),
    "text": (
        "Text",
        "Tokenizers turn texts into token IDs; corpora read text files as documents of sentences.",
        ["text.tokenizers", "text.tokenizers.tokenizer:Encoding", "text.corpora"],
    ),
    "preprocessing": (
        "Preprocessing",
        "Functions that make a model's inputs from texts, for `tf.data`, PyTorch's `DataLoader` and lists; see "
        "[the guide](../preprocessing.md).",
        ["preprocessing"],
    ),
    "checkpoints": (
        "Checkpoints",
        "Reading and writing checkpoints, model cards, and the Hugging Face Hub. Models open and save them with "
        "`from_pretrained` and `save_pretrained`.",
        ["checkpoints", "checkpoints.tensor_tables:Checkpoint"],
    ),
    "training": (
        "Training",
        "Optimizers, learning-rate schedules, losses and metrics.",
        ["optimization", "losses", "metrics", "embedding_losses", "embedding_metrics", "retrieval"],
    ),
    "callbacks": ("Callbacks", "For the `fit` of every model; see [the guide](../callbacks.md).", ["callbacks"]),
    "export": ("Export", "Models for runtimes and servers; see [the guide](../serving.md).", ["export"]),
    "plots": (
        "Plots",
        "Plots of trainings, models, outputs and texts; see [the gallery](../plots.md).",
        ["plots"],
    ),
    "layers": ("Layers", "The parts of encoders and heads.", ["layers"]),
    "data": (
        "Pre-training data",
        "Pre-training examples in files and in batches, as `keras-bert prepare-data` writes them and `keras-bert "
        "pretrain` reads them.",
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
        "Training on several devices and processes; see [the guide](../devices.md).",
        [
            f"distribution:{name}"
            for name in ("Distribution", "distributed", "num_replicas", "num_processes", "is_chief", "from_chief")
        ],
    ),
    "serving": (
        "Serving",
        "The server as an application of Ray Serve; see [the guide](../server.md).",
        ["keras_bert_serving.ray_app:app"],
    ),
}
# What modules of the library share, and users do not need.
INTERNAL = {
    "checkpoints": ("build_filled", "format_of", "load", "published_table"),
    "text.tokenizers": (
        *("RowTemplate", "kind_in", "read_vocabulary", "tokenizer_from_config", "tokenizer_to_config"),
        "write_vocabulary",
    ),
    "text.corpora": ("Problem",),
}
# The names of a page by heading, in order; those that are in no group follow.
GROUPS = {
    "models": {
        "Texts": ("TextClassifier", "TextRegressor", "MultipleChoice", "NextSentencePredictor"),
        "Words and answers": (
            *("TokenClassifier", "FeatureTagger", "QuestionAnswerer", "MaskedLM", "ReplacedTokenDetector"),
        ),
        "Search and similarity": ("TextEmbedder", "Reranker"),
        "Pre-training": ("Pretrainer", "ElectraPretrainer"),
        "Distillation": ("Distiller",),
        "Answers": tuple(module.rpartition(":")[2] for module in MODULES["models"][2][1:]),
    },
    "encoders": {"Any family": ("encoder_from_pretrained",), "BERT": ("BertEncoder", "BertConfig")},
    "text": {
        "Tokenizers": ("open_tokenizer", "Tokenizer", "WordPieceTokenizer", "BytePairTokenizer", "Encoding"),
        "New vocabularies": ("learn_vocabulary", "learn_byte_pairs", "learn_sentence_pieces"),
        "Corpora": ("open_corpus", "TextCorpus", "PythonDocsCorpus", "Document", "split_of", "split_sentences"),
    },
    "training": {
        "Optimizers": ("BertAdamW", "BertStableAdamW", "BertLamb"),
        "Learning-rate schedules": ("WarmupLinearDecay", "WarmupStableDecay", "MovableDecay"),
        "Losses": ("WeightedCrossEntropy", "WeightedLoss"),
        "Losses for embeddings": (
            *("MultipleNegativesRankingLoss", "CosineSimilarityLoss", "TripletLoss", "EmbedDistillLoss", "CoSENTLoss"),
            *("AnglELoss", "ContrastiveLoss", "MarginMSELoss", "MatryoshkaLoss"),
        ),
        "Metrics": (
            *("MultiLabelF1", "LabelledAccuracy", "ClassScore", "SpearmanCorrelation", "RankingAccuracy"),
            "TripletAccuracy",
        ),
        "Retrieval": ("retrieval_scores", "mine_hard_negatives"),
    },
}
# Members of classes in the order of their use; others follow by their names.
BY_USE = (
    *("from_pretrained", "from_name", "list_pretrained", "fit", "classify", "tag", "answer", "choose", "fill_mask"),
    *("find_replaced", "follows", "embed", "similarity", "search", "embed_queries", "embed_documents", "rank"),
    *("evaluate", "predict", "encode", "encode_batch", "ids_batch", "decode", "compile", "save_pretrained"),
    *("load_pretrained", "freeze_layers", "enable_lora", "merge_lora", "quantize", "preprocessor"),
)
# Members that modules of the library call, and users do not need.
NOT_SHOWN = {
    # of models
    *("asked", "call", "checked_beside", "checked_labels", "compile_from_config", "compute_loss", "constant_variables"),
    *("data_seed", "get_compile_config", "get_metrics_result", "joined_windows", "label_rule", "make_preprocessor"),
    *("named_outputs", "note_rows", "of_texts", "preprocessor_arguments", "record", "takes_class_numbers"),
    *("training_flops", "usual_objective"),
    # of encoders and configurations
    *("answer_penalty", "answer_vectors", "check_texts", "connect", "connected_for", "decoded_states", "for_task"),
    *("detection_vectors", "generator", "inputs_of_rows", "last_context", "masked_lm_head", "masked_states"),
    *("permuted_states", "pool", "pooled", "token_vectors", "blocks_of", "class_prefix", "classifier_dropout_rate"),
    *("depth", "from_content", "from_keys", "keys_seen", "last_kernel_scale", "num_blocks", "num_positions"),
    *("schedule", "token_classifier_dropout_rate", "windows"),
    # of layers
    *("attention_inputs", "build_transform", "contents", "dropouts", "has_bias_of_inputs", "load_own_variables"),
    *("lora_factors", "transformed"),
    # of tokenizers, corpora and preprocessors
    *("cut", "dialect", "filled_text", "ids_of_words", "in_running_text", "is_cut_again", "is_in", "moved", "pieces"),
    *("pieces_of_model", "row_processor", "scores_in_texts", "settings", "steps", "stripped", "template"),
    *("write_vocabulary_files", "arranged", "makes_labels", "named", "names_of_columns", "packed", "report_cut"),
    *("sentences", "sizes", "table_of_figures", "takes", "to_evaluate", "to_train", "unlabelled", "masked"),
    # of callbacks, losses, optimizers and batches
    *("begin_call", "finish", "get_state", "is_at_end_of_epoch", "measure", "open", "restore_history", "save"),
    *("saved_state", "seconds_per_step", "set_state", "weights", "let_follow", "from_step", "inputs_and_labels"),
    *("mask", "own_streams", "stream"),
}


def full_name(module):
    """The name of a module, which stands above without the library's, "keras_bert_impl"."""
    return module if module.startswith("keras_bert_") else f"keras_bert_impl.{module}".rstrip(".")


def public_names(module):
    """The names that a module of the package shows: its `__all__`, or what it defines itself without underscore; for
    "module:Name" this name."""
    module, _, name = module.partition(":")
    if name:
        return [name]
    found = importlib.import_module(full_name(module))
    if hasattr(found, "__all__"):
        kinds = {name: getattr(found, name) for name in found.__all__}
        shown = [name for name, value in kinds.items() if inspect.isclass(value) or inspect.isroutine(value)]
        return [name for name in shown if name not in INTERNAL.get(module, ())]
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

    elsewhere = {*kbi.models.__all__, *kbi.tokenizers.__all__, "push_to_hub"}
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


HEADER = re.compile(r"(Input|Output|Labels|Returns?|Raises(?: \([^)]*\))?|Yields|Args|Source): +(\S.*)")
SECTIONS = ("Args:", "Attributes:", "Fields:", "Returns:", "Raises:", "Yields:", "Input:", "Output:")


def as_restructured_text(app, what, name, of, options, lines):
    """Writes a docstring of this package so that Sphinx sees what a reader of the source sees.

    "Input:  text" with further lines below it becomes a field; an indented block behind an empty line, code; one behind
    a line that ends in a colon, text in columns; a table of Markdown, a table. Names in backticks become links.
    """
    found, place = [], 0
    marked = functools.partial(linked, within=name)
    while place < len(lines):
        line, end = lines[place], place + 1
        while end < len(lines) and (lines[end].startswith(" ") or (not lines[end] and lines[end + 1 :][:1] and
                                    lines[end + 1].startswith(" "))):  # fmt: skip
            end += 1
        below = lines[place + 1 : end]
        if line.startswith("|"):
            end = next((at for at in range(place, len(lines)) if not lines[at].startswith("|")), len(lines))
            found += table_of([marked(one) for one in cells] for cells in merged_rows(lines[place:end]))
        elif header := HEADER.fullmatch(line):
            if found and found[-1] and not found[-1].startswith((":", " ")):
                found.append("")
            found += [f":{header[1]}: {marked(header[2])}", *(f"    {marked(one.strip())}" for one in below if one)]
        elif line == "Example:":
            found += [".. rubric:: Example", "", ".. code-block:: pycon", "", *below, ""]
        elif line.startswith(" "):  # behind an empty line: an example
            found += [".. code-block:: python", "", *lines[place:end], ""]
        elif line.startswith("- "):
            found += map(marked, lines[place:end])
        elif below and line.endswith(":") and line not in SECTIONS:
            found += [marked(line), "", f".. code-block:: {'text' if below[0] else 'python'}", "", *below, ""]
        else:
            found.append(marked(line))
            end = place + 1 if line not in SECTIONS else end
            found += map(marked, lines[place + 1 : end])
        place = end
    lines[:] = found


def escaped(text):
    """Text whose bars and last underscores are these characters, and no markup."""
    return re.sub(r"\||(?<=\w)_(?=\W|$)", r"\\\g<0>", text)


# The name and the type of an argument, whose words Sphinx links itself.
ARGUMENT = re.compile(r" +[\w, ]+ \([^:]*\): ")
# Names in backticks, and names of several words, which can be nothing else.
NAMES = re.compile(r"(`[^`]*`|(?<![\w./\"-])[A-Z]+[a-z]+[A-Z]\w*)")


def linked(line, within):
    """A line in which public names are links to their page or entry; other text as it is. A method stands without its
    class on the page of this class, `within`."""
    head = found[0] if (found := ARGUMENT.match(line)) else ""
    parts = NAMES.split(line[len(head) :])
    return head + "".join(link_to(part, within) if place % 2 else escaped(part) for place, part in enumerate(parts))


def link_to(part, within):
    """A name in backticks as a link: to a member of the class or a name of the module that it is within, else to a
    public name. A plain word is rather an argument or an output than a name elsewhere."""
    shown, links = part.strip("`"), links_by_name()
    beside = next((name for name in (within, within.rpartition(".")[0]) if f"{name}.{shown}" in links), None)
    is_name = re.search(r"[A-Z_.]", shown)
    target = f"{beside}.{shown}" if beside else links.get(shown) if is_name else None
    return part if target in (None, within) else f":py:obj:`{shown} <{target}>`"


@functools.cache
def links_by_name():
    """{name: full name} of all that has an entry. Public names are also found by the ends of their full names, such as
    `TextClassifier`, `callbacks.ExactResume` and `TextEmbedder.search`, unless two end so."""
    full = []
    for page in MODULES:
        for entry in entries(page):
            full.append(entry)
            full += [f"{entry}.{name}" for _, name in members_of(object_of(entry))]
    ends = {}
    for name in full:
        parts = name.split(".")
        least = 2 if parts[-2][0].isupper() else 1  # a method with its class
        for start in range(len(parts) - least + 1):
            ends.setdefault(".".join(parts[start:]), set()).add(name)
    return {end: names.pop() for end, names in ends.items() if len(names) == 1}


def object_of(entry):
    """The object that an entry documents; None where its module needs Ray."""
    module, _, name = entry.rpartition(".")
    return None if module == "keras_bert_serving.ray_app" else getattr(importlib.import_module(module), name)


def members_of(found):
    """(directive, name) for each member that the page of a class shows, in the order of use."""
    if not inspect.isclass(found) or issubclass(found, tuple):
        return []
    not_shown = NOT_SHOWN if hasattr(found, "fit") else NOT_SHOWN | {"rows", "scores"}
    names = [name for name in dir(found) if name[0] != "_" and name not in not_shown and is_own(found, name)]
    order = {name: place for place, name in enumerate(BY_USE)}
    names = sorted(names, key=lambda name: (order.get(name, len(order)), name))
    kinds = {True: "autoproperty", False: "automethod"}
    return [(kinds[isinstance(inspect.getattr_static(found, name), property)], name) for name in names]


def members_by_entry():
    """{full name: `members_of`} of every entry, for the template of a class."""
    return {entry: members_of(object_of(entry)) for page in MODULES for entry in entries(page)}


def is_own(kind, name):
    """Whether a member of a class is a method or property with a docstring of this package, its own or a parent's: what
    comes from Keras or from the backend is documented there."""
    found = [vars(parent)[name] for parent in kind.__mro__ if name in vars(parent)]
    found = [inspect.unwrap(getattr(one, "fget", None) or getattr(one, "__func__", one)) for one in found]
    ours = [one for one in found if (getattr(one, "__module__", None) or "").startswith("keras_bert_")]
    is_method = found[0] in ours and callable(found[0]) and not inspect.isclass(found[0])
    return is_method and any(getattr(one, "__doc__", None) for one in ours)


def merged_rows(lines):
    """The rows of a Markdown table as lists of cells; a row whose first cell is empty goes on with the one before."""
    rows = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if set("".join(cells)) <= {"-"}:
            continue
        if not cells[0]:
            rows[-1] = [" ".join(filter(None, both)) for both in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows


def table_of(rows):
    """A table in reStructuredText, whose first row is its head."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'*' if place == 0 else ' '} - {cell}" for place, cell in enumerate(row)]
    return [*lines, ""]


def without_folder_links(app, page, source):
    """Shows a link to a folder of the clone, which a site has no page for, as its text."""
    folder = (ROOT / page).parent

    def shown(link):
        return link[1] if (folder / link[2]).is_dir() else link[0]

    source[0] = re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)\)", shown, source[0])


def signature_of_class(app, what, name, found, options, signature, returned):
    """What a class takes is what its constructor takes; Keras' classes have a `__new__` that takes anything. A named
    tuple has fields, whose defaults may be functions."""
    if what == "class" and issubclass(found, tuple):
        return f"({', '.join(found._fields)})", None
    if what != "class" or found.__init__ is object.__init__:
        return None
    arguments = list(inspect.signature(found.__init__).parameters.values())[1:]
    return str(inspect.Signature([one.replace(annotation=inspect.Parameter.empty) for one in arguments])), None


def page_of(page):
    """The text of the page of an area."""
    title, about, modules = MODULES[page]
    listed = {entry.rpartition(".")[2]: entry for entry in entries(page)}
    text = f"# {title}\n\n{about}\n"
    if "features" in modules:  # its docstring is a page by itself
        text += "\n" + importlib.import_module("keras_bert_impl.features").__doc__
    grouped = [(heading, [listed.pop(name) for name in names]) for heading, names in GROUPS.get(page, {}).items()]
    rest = {"encoders": "Other families", "text": "Other tokenizers"}.get(page, "More")
    for heading, names in [*grouped, (rest, list(listed.values()))]:
        if names:
            text += f"\n## {heading}\n" if grouped else ""
            text += "\n```{eval-rst}\n.. autosummary::\n   :toctree: generated/\n   :nosignatures:\n\n"
            text += "".join(f"   ~{name}\n" for name in names) + "```\n"
    return text + {"encoders": sizes_table, "checkpoints": published_table}.get(page, str)()


def sizes_table():
    """The sizes that `from_name` of a configuration knows, as text of a page."""
    from keras_bert_impl.encoders import FAMILIES, count_parameters

    text = "\n## Sizes for `from_name`\n\nParameters are those of the encoder.\n\n"
    text += (
        "| name | configuration | layers | hidden size | heads | parameters |\n| --- | --- | --: | --: | --: | --: |\n"
    )
    for kind in (family.config_class for family in FAMILIES):
        for name, sizes in kind.named_sizes.items():
            count = count_parameters(kind.from_name(name)) / 1e6
            cells = [f"`{name}`", f"`{kind.__name__}`", *map(str, sizes), f"{count:,.1f} M"]
            text += f"| {' | '.join(cells)} |\n"
    return text


def published_table():
    """The names that `from_pretrained` knows, as text of a page."""
    from keras_bert_impl.checkpoints.hub import PUBLISHED

    text = "\n## Names for `from_pretrained`\n\n`list_pretrained()` of every model prints them. "
    text += "Write `hf://owner/name` for any other checkpoint of the Hugging Face Hub.\n\n"
    text += "| name | layers | hidden size | repository |\n| --- | --: | --: | --- |\n"
    for name, repository in PUBLISHED.items():
        layers, width = shape_of(name)
        place = f"[{repository}](https://huggingface.co/{repository})" if repository else "in the package"
        text += f"| `{name}` | {layers} | {width} | {place} |\n"
    return text


def shape_of(name):
    """(layers, hidden size) of a published checkpoint: by its config.json if it is in the package, else by its name; ""
    where that does not tell."""
    from keras_bert_impl.checkpoints import hub, open_checkpoint
    from keras_bert_impl.encoders import FAMILIES

    if name == hub.PACKAGED:
        config = open_checkpoint(name).config
        return config.num_layers, config.hidden_size
    if sizes := re.search(r"L-(\d+)_H-(\d+)", name):
        return sizes[1], sizes[2]
    known = {size: shape for family in FAMILIES for size, shape in family.config_class.named_sizes.items()}
    ours = name.replace("-discriminator", "").replace("bigbird-roberta", "bigbird").replace("-", "_")
    found = [size for size in known if f"{ours}_".startswith(f"{size}_")]
    return known[max(found, key=len)][:2] if found else ("", "")


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
