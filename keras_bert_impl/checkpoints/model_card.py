"""The model card of a checkpoint: README.md, with the metadata that the Hugging Face hub reads.

A card says what the checkpoint itself knows, and what `CardFacts` add. Its programs run as they stand.
"""

import dataclasses
import html
import json
import math
import pathlib
import typing
import warnings
from collections.abc import Sequence

import huggingface_hub

from keras_bert_impl import startup
from keras_bert_impl.checkpoints import sentence_transformers
from keras_bert_impl.configurations.known_families import family_of
from keras_bert_impl.json_files import read_json

FILE = "README.md"
# A card without this line is somebody's own, and is never written over.
MARKER = (
    "<!-- Written by keras_bert_impl, which replaces this file at each save. Remove this line to keep your own. -->"
)
FACTS = ("<!-- facts: ", " -->")  # a line with the CardFacts, which `write_card` adds to
HERE = "."  # the checkpoint in the programs of a card that lies beside it


class Figure(typing.NamedTuple):
    """A measured metric in a model card.

    Fields:
        name (str): name of the metric, such as "accuracy".
        value (float): the value, not in percent.
        split (str): the data that it was measured on, such as "test".
        deviation (float, optional): one standard deviation of `value`. Default: None, unknown.
        over (str, optional): what the deviation is over, such as "5 seeds" or "277 examples". Default: "".
        baselines (tuple, optional): (name, value) pairs of the same metric without this model. Default: none.
        class_name (str, optional): class of the metric, such as "equivalent" for the F1 of MRPC. Default: "", all.
    """

    name: str
    value: float
    split: str
    deviation: float | None = None
    over: str = ""
    baselines: tuple[tuple[str, float], ...] = ()
    class_name: str = ""

    @property
    def title(self):
        """The name in words, with the class."""
        return self.name.replace("_", " ") + (f" of class {self.class_name}" if self.class_name else "")


@dataclasses.dataclass(frozen=True)
class CardFacts:
    """Facts for a model card that the checkpoint itself does not know. The card leaves out facts that are not given.

    Args:
        license (str, optional): as the Hub names it, such as "apache-2.0".
        languages (list of str, optional): codes of the languages, such as ["en", "de"].
        base_model (str, optional): "owner/name" of the checkpoint that training started from.
        datasets (list of str, optional): "owner/name" of datasets on the Hub.
        task (str, optional): name of the task, such as "mrpc".
        data (list of tuple, optional): (name, number) pairs about the training data, such as ("training examples",
            3668).
        notes (list of str, optional): sentences about the training.
        figures (list of Figure, optional): measured metrics.
    """

    license: str | None = None
    languages: Sequence[str] = ()
    base_model: str | None = None
    datasets: Sequence[str] = ()
    task: str | None = None
    data: Sequence[tuple[str, int]] = ()
    notes: Sequence[str] = ()
    figures: Sequence[Figure] = ()

    def with_others(self, others):
        """Returns these facts, replaced by those that are given in `others`, a `CardFacts`."""
        return dataclasses.replace(self, **{name: value for name, value in vars(others).items() if value})

    def table_of_figures(self):
        """(head, rows) of the figures as texts, with their deviations and beside their baselines."""
        baselines = list(dict.fromkeys(what for figure in self.figures for what, _ in figure.baselines))
        rows = []
        for figure in self.figures:
            deviation = "" if figure.deviation is None else f"{figure.deviation:.4f} over {figure.over}"
            beside = {what: f"{value:.4f}" for what, value in figure.baselines}
            cells = [beside.get(what, "") for what in baselines]
            rows.append([f"{figure.title}, {figure.split}", f"{figure.value:.4f}", deviation, *cells])
        return ["figure", "this model", "standard deviation", *baselines], rows


def facts_of(directory):
    """Returns the facts in the model card of a checkpoint, as `write_card` wrote them.

    Args:
        directory (str or pathlib.Path): directory of the checkpoint.

    Returns: a `CardFacts`; an empty one if there is no card.
    """
    path = pathlib.Path(directory, FILE)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    line = next((line for line in lines if line.startswith(FACTS[0])), None)
    if line is None:
        return CardFacts()
    found = json.loads(line.removeprefix(FACTS[0]).removesuffix(FACTS[1]))
    figures = [Figure(*figure)._replace(baselines=tuple(map(tuple, figure[5]))) for figure in found["figures"]]
    return CardFacts(**{**found, "figures": figures, "data": [tuple(each) for each in found["data"]]})


def _line_of_facts(facts):
    content = dataclasses.asdict(facts)
    if not any(content.values()):
        return ""
    stored = json.dumps(content).replace("--", "-\\u002d")  # nothing in it ends a comment
    return f"{FACTS[0]}{stored}{FACTS[1]}"


def deviation_of_share(share, count):
    """The standard deviation of a share of `count` examples that is expected if they are drawn anew: of a coin with
    this probability."""
    return math.sqrt(share * (1 - share) / count)


PROGRAMS = json.loads(pathlib.Path(__file__).with_name("card_programs.json").read_text(encoding="utf-8"))


def write(checkpoint, tokenizer, target, home, facts=None, place=HERE):
    """Writes the card of a checkpoint, metadata and then Markdown.

    Args:
        checkpoint: an open `Checkpoint` in Hugging Face's format.
        tokenizer: the tokenizer beside it, or None.
        target: directory with its files, into which the card is written.
        home: directory that a save moves them to. If it has somebody's own README.md, nothing is written.
        facts: CardFacts; None for none, which warns if the card in `home` has some.
        place: of the checkpoint in the programs: HERE, or "owner/name" of the hub.

    Returns: whether a card was written.
    """
    before = pathlib.Path(home, FILE)
    if before.is_file() and MARKER not in before.read_text(encoding="utf-8", errors="replace"):
        return False
    if facts is None and (left_out := [name for name, value in vars(facts_of(home)).items() if value]):
        warnings.warn(
            f"{before} described the previous weights: {', '.join(left_out)}. The new card omits this; "
            "kbi.checkpoints.write_card adds the parts that still apply.",
            stacklevel=2,
        )
    facts, target = facts or CardFacts(), pathlib.Path(target)
    task = _task_of(checkpoint, (target / sentence_transformers.MODULES).is_file())
    head, rows = facts.table_of_figures()
    settings = target / "tokenizer_config.json"
    named = read_json(settings).get("tokenizer_class") if tokenizer is not None and settings.is_file() else None
    parts = [
        f"---\n{metadata_of(checkpoint, task, tokenizer, facts).to_yaml()}\n---",
        MARKER,
        f"# {checkpoint.architecture}",
        _description(checkpoint, tokenizer),
        _of_training(facts),
        f"## Figures\n\n{table(map(plain, head), [map(plain, row) for row in rows])}" if rows else "",
        _of_use(checkpoint, task, tokenizer, named, place),
        _line_of_facts(facts),
    ]
    (target / FILE).write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")
    return True


def metadata_of(checkpoint, task, tokenizer, facts):
    """The `huggingface_hub.ModelCardData` of a card."""
    pipeline = PROGRAMS["tasks"][task]["pipeline"] if tokenizer is not None else None
    library = "sentence-transformers" if task in ("embedding", "ranking") else "transformers"
    results = [
        huggingface_hub.EvalResult(
            task_type=pipeline or "other",
            dataset_type=next(iter(facts.datasets), facts.task or "own"),
            dataset_name=facts.task or "own data",
            dataset_split=figure.split,
            metric_type=figure.name.replace(" ", "_"),
            metric_value=round(figure.value, 6),
        )
        for figure in facts.figures
    ]
    return huggingface_hub.ModelCardData(
        library_name=library,
        pipeline_tag=pipeline,
        license=facts.license,
        language=list(facts.languages) or None,
        base_model=facts.base_model,
        datasets=list(facts.datasets) or None,
        tags=["keras", "keras_bert_impl", checkpoint.config.model_type],
        model_name=checkpoint.architecture if results else None,
        eval_results=results or None,
    )


def plain(text):
    """A text of the user's as Markdown shows it: in one line, without a meaning for Markdown or HTML."""
    shown = html.escape(" ".join(str(text).split()), quote=False)
    return "".join(f"\\{character}" if character in "\\`*_[]|#" else character for character in shown)


def table(head, rows):
    """A table in Markdown of cells that are Markdown already; all columns but the first are numbers."""
    head = list(head)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def _task_of(checkpoint, is_embedder):
    """The key in PROGRAMS of a checkpoint."""
    task = checkpoint.task
    if task == "ForSequenceClassification" and checkpoint.class_names is None:
        return "ranking" if checkpoint.read_ranking() else "regression"
    if task == "ForPreTraining" and checkpoint.has("masked_lm_head/"):
        return "ForMaskedLM"
    if task == "Model" and is_embedder:
        return "embedding"
    # XLNet's language model has no masks: it is an XLNetLMHeadModel.
    is_known = (
        task in PROGRAMS["tasks"]
        and task in family_of(checkpoint.config).tasks
        and (task != "ForMaskedLM" or checkpoint.architecture.endswith(task))
    )
    return task if is_known else "Model"


def _description(checkpoint, tokenizer):
    config, names = checkpoint.config, checkpoint.class_names
    weights = sum(math.prod(shape) for shape in checkpoint.source.shapes.values())
    lines = [
        f"{config.num_layers} layer{'s' * (config.num_layers != 1)} of width {config.hidden_size} with "
        f"{config.num_heads} heads, {weights:,} weights. Written by keras_bert_impl {startup.VERSION}, as a checkpoint "
        "of Hugging Face transformers."
    ]
    if tokenizer is None:
        lines.append("Saved without a tokenizer: the programs below take ids.")
    else:
        case = "lower-cased" if tokenizer.lowercase else "cased"
        length = checkpoint.sequence_length or config.max_length
        lines.append(f"{tokenizer.vocabulary_size:,} words, {case}; a row has at most {length:,} tokens.")
    if names is not None:
        lines.append(f"Classes: {', '.join(map(plain, names))}.")
    if checkpoint.untrained:
        heads = ", ".join(f"`{head}`" for head in map(plain, checkpoint.untrained))
        lines.append(
            f"\n**Not trained:** {heads}. The values are still the random ones of a new head, so that what is computed "
            "with them means nothing before training."
        )
    return "\n".join(lines)


def _of_training(facts):
    lines = [
        *([f"Task: {plain(facts.task)}."] if facts.task else []),
        *([f"Training started from {plain(facts.base_model)}."] if facts.base_model else []),
        *map(plain, facts.notes),
        *([f"Languages: {', '.join(map(plain, facts.languages))}."] if facts.languages else []),
    ]
    counts = table(["data", "number"], [(plain(what), f"{number:,}") for what, number in facts.data])
    parts = ["\n".join(lines), counts if facts.data else ""]
    return "\n\n".join(["## Training", *filter(None, parts)]) if any(parts) else ""


def _of_use(checkpoint, task, tokenizer, named, place):
    """The programs, each as it stands: in this library, and in transformers or sentence-transformers."""
    config, use = checkpoint.config, PROGRAMS["tasks"][task]
    libraries = ["keras_bert_impl", "sentence-transformers" if task == "embedding" else "transformers"]
    # Their AutoTokenizer goes by the family, and not every family of ours has the tokenizer of theirs.
    tokenizer_class = "AutoTokenizer" if named in (None, "PreTrainedTokenizerFast") else named
    model_class = "AutoModel" if task == "Model" else checkpoint.architecture
    if task == "ForMaskedLM":  # also of a BertForPreTraining
        model_class = f"{config.class_prefix()}{task}"
    program = "\n".join(use["program"])
    if not hasattr(config, "num_segments"):  # their tokenizer may give segments that their model refuses
        program = program.replace('return_tensors="pt"', 'return_tensors="pt", return_token_type_ids=False')
    cut = checkpoint.head_arguments.get("truncate_dim")
    values = {
        "kind": use["kind"],
        "ask": use["ask"].replace("{mask}", tokenizer.mask_texts[0] if tokenizer and task == "ForMaskedLM" else ""),
        "ours": json.dumps(place if place == HERE else f"hf://{place}"),
        "theirs": json.dumps(place) + (f", truncate_dim={cut}" if cut else ""),
        "classes": ", ".join(sorted([tokenizer_class, model_class])),
        "tokenizer_class": tokenizer_class,
        "model_class": model_class,
        "program": program,
    }
    where = "The programs fetch the checkpoint from the hub."
    if place == HERE:
        where = 'The programs run in the directory of this file; elsewhere, put its path in the place of `"."`.'
    sections = []
    for library in libraries:
        programs = PROGRAMS["libraries"]
        of_ids = f"{library} with ids"  # which not every library has
        lines = "\n".join(programs[of_ids if tokenizer is None and of_ids in programs else library]).format(**values)
        sections.append(f"### In {library}\n\n```python\n{lines}\n```")
    return "\n\n".join(["## How to use it", where, *sections])
