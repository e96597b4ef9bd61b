"""Writes a checkpoint as a SavedModel that takes raw strings.

    keras-bert export --model runs/classifier --output served

The task follows from `architectures` in the checkpoint's config.json; the SavedModel of a pre-training checkpoint fills
masks, or with `--task embed` computes vectors. Prints the signatures and four lines of Python that call the first one.
"""

import dataclasses
import typing

from keras_bert_impl.startup import leave_accelerators_to_the_backend

from keras_bert_impl import checkpoints, models
from keras_bert_impl.console import say
from keras_bert_impl.encoders.families import encoder_from_pretrained
from keras_bert_impl.export import export_saved_model
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
    "Model": ("embed",),
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
}
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
}


@dataclasses.dataclass
class ExportConfig:
    """Writes a checkpoint as a SavedModel that takes raw strings.

    Args:
        model: checkpoint directory with config.json, model.safetensors and vocabulary.
        output: directory to write.
        task: what the SavedModel does; auto is what the checkpoint was trained for.
        sequence_length: longer texts are cut to this many tokens; default is the number of positions of the model. Give
            the value used in training: a checkpoint does not hold it.
        overwrite: replace a SavedModel that is already in the output directory.
    """

    model: str
    output: str
    task: typing.Literal[
        "auto", "classify", "regress", "label_words", "answer", "choose", "next_sentence", "fill_mask", "embed"
    ] = "auto"
    sequence_length: int | None = None
    overwrite: bool = False


def run(config):
    """Writes the SavedModel and prints how to call it; returns its signatures."""
    task = choose_task(config.model, config.task)
    tokenizer = WordPieceTokenizer.from_pretrained(config.model)
    export_saved_model(LOADERS[task](config.model), config.output, tokenizer, config.sequence_length, config.overwrite)
    signatures = load_signatures(config.output)
    say(f"{config.output} serves {config.model}:")
    for name, function in signatures.items():
        print_signature(name, function)
    print_example(config.output, task, signatures["serving_default"].structured_outputs)
    return signatures


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
