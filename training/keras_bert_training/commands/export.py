"""Writes a checkpoint as a SavedModel that takes raw strings, or in the format of another runtime.

    keras-bert export --model runs/classifier --output served
    keras-bert export --model runs/classifier --output served --format onnx

The task follows from `architectures` in the checkpoint's config.json; the export of a pre-training checkpoint fills
masks, or with `--task embed` computes vectors. Prints inputs and outputs, and how to call the model.
"""

import pathlib

from keras_bert_impl import checkpoints, export, models
from keras_bert_impl.checkpoints import encoder_from_pretrained
from keras_bert_impl.console import say
from keras_bert_impl.json_files import read_json
from keras_bert_impl.startup import leave_accelerators_to_the_backend
from keras_bert_training.options.export import ExportConfig as ExportConfig

# The tasks that a checkpoint can be exported for; "auto" means the first.
TASKS = {
    "ForSequenceClassification": ("classify", "embed"),
    "ForTokenClassification": ("label_words", "embed"),
    "ForQuestionAnswering": ("answer", "embed"),
    "ForMultipleChoice": ("choose", "embed"),
    "ForNextSentencePrediction": ("next_sentence", "embed"),
    "ForMaskedLM": ("fill_mask", "embed"),
    "ForPreTraining": ("fill_mask", "next_sentence", "embed"),
    "Model": ("embed", "vector"),
}
# The kind of model by its task; a new one for "embed" is an encoder.
KINDS = {kind.asked.task: kind for kind in map(vars(models).get, models.__all__) if "asked" in vars(kind)}
LOADERS = {**{task: kind.from_pretrained for task, kind in KINDS.items()}, "embed": encoder_from_pretrained}


def run(config):
    """Writes the export and prints how to call it; returns the signatures of a SavedModel."""
    task = choose_task(config.model, config.task)
    tokenizer = checkpoints.open_checkpoint(config.model).tokenizer
    # For other formats the model is computed in float32 and reduced afterwards.
    dtype = {"dtype": "bfloat16"} if (config.format, config.precision) == ("saved_model", "bfloat16") else {}
    model, figures = LOADERS[task](config.model, **dtype), figures_of(config)
    arguments = (model, config.output, tokenizer, config.sequence_length, config.overwrite)
    if config.format != "saved_model":
        write = getattr(export, f"export_{config.format}")
        write(*arguments, precision=config.precision, figures=figures, **calibration_of(config))
        print_rows(config)
        return None
    export.export_saved_model(*arguments, figures=figures)
    signatures = load_signatures(config.output)
    say(f"{config.output} serves {config.model}:")
    for name, function in signatures.items():
        print_signature(name, function)
    say(f"Run it: python {pathlib.Path(config.output, 'example.py')}")
    return signatures


def model_for(task, path):
    """The model of a checkpoint that answers about texts."""
    return KINDS.get(task, KINDS["vector"]).from_pretrained(path)


def calibration_of(config):
    """The texts of the file `calibration`, or pairs as two columns, as an argument of the writer."""
    if config.calibration is None:
        return {}
    lines = pathlib.Path(config.calibration).read_text(encoding="utf-8").splitlines()
    texts = [line.split("\t") for line in lines if line.strip()]
    columns = [list(column) for column in zip(*texts, strict=True)]
    return {"calibration_texts": columns[0] if len(columns) == 1 else tuple(columns)}


def figures_of(config):
    """The figures to keep with the export, or None."""
    path = pathlib.Path(config.figures or checkpoints.local_directory(config.model).parent / "metrics.json")
    return read_json(path) if config.figures or path.is_file() else None


def print_rows(config):
    """Prints inputs and outputs of an export that takes rows, and the command that runs it."""
    export = read_json(pathlib.Path(config.output, "config.json"))["export"]
    say(f"{config.output} serves {config.model}:")
    for arrow, arrays in (("in ", export["inputs"]), ("out", export["outputs"])):
        for name, axes in arrays.items():
            say(f"    {arrow}  {name:<18}({', '.join(map(str, axes))})")
    say(f"Its outputs differ from the checkpoint's by at most {export['largest_difference']:.1g} of the largest.")
    say("Run it, with its runtime and the tokenizers library alone:")
    say(f"    python {pathlib.Path(config.output, 'example.py')}")


def load_signatures(directory):
    """The functions of a SavedModel, by their names."""
    leave_accelerators_to_the_backend()
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the tokenizer

    return tf.saved_model.load(directory).signatures


def choose_task(path, wanted="auto"):
    """The task wanted, or the checkpoint's own. Raises ValueError if the checkpoint has no such head."""
    checkpoint = checkpoints.open_checkpoint(path)
    architecture, tasks = checkpoint.architecture, TASKS.get(checkpoint.task)
    is_sequence_head = checkpoint.task == "ForSequenceClassification" and checkpoint.has("classifier/")
    if is_sequence_head and checkpoint.class_names is None:
        tasks = ("regress", "embed")
    if checkpoint.task == "ForPreTraining" and "next_sentence" not in checkpoint.config.pair_tasks:
        tasks = ("fill_mask", "embed")  # ALBERT's head for pairs learnt their order
    if checkpoint.task == "ForPreTraining" and not checkpoint.has("masked_lm_head/"):
        tasks = ("embed",)  # an ELECTRA's discriminator
    if tasks == TASKS["Model"] and checkpoint.read_pooling():
        tasks = ("vector", "embed")
    if tasks is None and wanted == "auto":
        raise ValueError(f"{path} is a {architecture}, which implies no task: give --task fill_mask or --task embed.")
    if tasks is not None and wanted not in ("auto", *tasks):
        raise ValueError(f"{path} is a {architecture}, which is for {' or '.join(tasks)}, not for {wanted}.")
    return tasks[0] if wanted == "auto" else wanted


def print_signature(name, function):
    """Prints names, types and shapes of inputs and outputs; None means any size."""
    say(f"  {name}")
    _, inputs = function.structured_input_signature
    for arrow, arrays in (("in ", inputs), ("out", function.structured_outputs)):
        for key, spec in sorted(arrays.items()):
            say(f"    {arrow}  {key:<16}{spec.dtype.name:<9}{tuple(spec.shape)}")
