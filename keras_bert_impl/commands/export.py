"""Writes a checkpoint as a SavedModel that takes raw strings, or in the format of another runtime.

    keras-bert export --model runs/classifier --output served
    keras-bert export --model runs/classifier --output served --format onnx

The task follows from `architectures` in the checkpoint's config.json; the export of a pre-training checkpoint fills
masks, or with `--task embed` computes vectors. Prints inputs and outputs, and how to call the model.
"""

import dataclasses
import pathlib
import typing

from keras_bert_impl.startup import leave_accelerators_to_the_backend

from keras_bert_impl import checkpoints, models
from keras_bert_impl.console import say
from keras_bert_impl.encoders.families import encoder_from_pretrained
from keras_bert_impl.export import export_litert, export_onnx, export_openvino, export_saved_model
from keras_bert_impl.json_files import read_json
from keras_bert_impl.tokenizers import WordPieceTokenizer

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
LOADERS = {
    "classify": models.TextClassifier.from_pretrained,
    "regress": models.TextRegressor.from_pretrained,
    "label_words": models.TokenClassifier.from_pretrained,
    "answer": models.QuestionAnswerer.from_pretrained,
    "choose": models.MultipleChoice.from_pretrained,
    "next_sentence": models.NextSentencePredictor.from_pretrained,
    "fill_mask": models.MaskedLM.from_pretrained,
    "embed": encoder_from_pretrained,
    "vector": models.TextEmbedder.from_pretrained,
}
WRITERS = {"onnx": export_onnx, "openvino": export_openvino, "litert": export_litert}
SENTENCE = "The cat sat on the mat."
# The inputs of the example that is printed, and the output it shows.
EXAMPLES = {
    "classify": ({"text": [SENTENCE]}, "label"),
    "regress": ({"text": [SENTENCE]}, "value"),
    "label_words": ({"text": [SENTENCE]}, "labels"),
    "answer": ({"question": ["Where did it sit?"], "context": [SENTENCE]}, "answer"),
    "choose": ({"text": [SENTENCE], "endings": [["It slept.", "It was a dog."]]}, "class_id"),
    "next_sentence": ({"text": [SENTENCE], "text_pair": ["It slept."]}, "probability"),
    "fill_mask": ({"text": ["The capital of France is [MASK]."]}, "tokens"),
    "embed": ({"text": [SENTENCE]}, "mean_pooled"),
    "vector": ({"text": [SENTENCE]}, "vector"),
}


@dataclasses.dataclass
class ExportConfig:
    """Writes a checkpoint as a SavedModel that takes raw strings, or in the format of another runtime.

    Args:
        model: checkpoint directory with config.json, model.safetensors and vocabulary.
        output: directory to write.
        format: saved_model for TensorFlow, onnx for ONNX Runtime, openvino, or litert; all but the first take rows of
            ids, which the `tokenizers` library makes with the tokenizer.json beside the model.
        task: what the export does; auto is what the checkpoint was trained for. embed gives the encoder's outputs,
            vector one vector for a text, pooled as the checkpoint specifies.
        figures: JSON file with scores of the checkpoint, to be kept in the export's config.json; default is the
            metrics.json of the run that wrote the checkpoint, if there is one.
        sequence_length: longer texts are cut to this many tokens; default is the number of positions of the model. Give
            the value used in training: a checkpoint does not hold it.
        overwrite: replace an export of this format that is already in the output directory.
    """

    model: str
    output: str
    format: typing.Literal["saved_model", "onnx", "openvino", "litert"] = "saved_model"
    task: typing.Literal[
        "auto",
        "classify",
        "regress",
        "label_words",
        "answer",
        "choose",
        "next_sentence",
        "fill_mask",
        "embed",
        "vector",
    ] = "auto"
    figures: str | None = None
    sequence_length: int | None = None
    overwrite: bool = False


def run(config):
    """Writes the export and prints how to call it; returns the signatures of a SavedModel."""
    task = choose_task(config.model, config.task)
    tokenizer = WordPieceTokenizer.from_pretrained(config.model)
    model, figures = LOADERS[task](config.model), figures_of(config)
    arguments = (model, config.output, tokenizer, config.sequence_length, config.overwrite, figures)
    if config.format != "saved_model":
        WRITERS[config.format](*arguments)
        print_rows(config)
        return None
    export_saved_model(*arguments)
    signatures = load_signatures(config.output)
    say(f"{config.output} serves {config.model}:")
    for name, function in signatures.items():
        print_signature(name, function)
    print_example(config.output, task, signatures["serving_default"].structured_outputs)
    return signatures


def figures_of(config):
    """The figures to keep with the export, or None."""
    path = pathlib.Path(config.figures or pathlib.Path(config.model).parent / "metrics.json")
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
    if tasks == TASKS["Model"] and checkpoint.read_pooling():
        tasks = ("vector", "embed")  # of sentence-transformers, or saved from a TextEmbedder
    if tasks is None and wanted == "auto":
        raise ValueError(
            f"{path} is a {architecture}, from which no task follows: give --task fill_mask or --task embed."
        )
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


def print_example(directory, task, outputs):
    """Prints four lines of Python that load the SavedModel and call it."""
    inputs, shown = EXAMPLES[task]
    shown = shown if shown in outputs else "labels"  # of a classifier whose texts may have several
    arguments = ", ".join(f"{name}=tf.constant({value!r})" for name, value in inputs.items())
    say("Call it:")
    say("    import tensorflow as tf, tensorflow_text")
    say(f"    serve = tf.saved_model.load({str(directory)!r}).signatures['serving_default']")
    say(f"    outputs = serve({arguments})")
    say(f"    print(outputs[{shown!r}].numpy())")
