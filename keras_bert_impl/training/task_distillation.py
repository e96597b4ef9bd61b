"""A fine-tuned teacher for `keras-bert finetune`: its outputs for the training texts are further labels."""

import dataclasses
import pathlib

import numpy as np

from keras_bert_impl.checkpoints import local_directory, open_checkpoint
from keras_bert_impl.console import say
from keras_bert_impl.losses import DistilledCrossEntropy, DistilledSquaredError
from keras_bert_impl.tasks.text_classification import TextClassification
from keras_bert_impl.tasks.text_regression import TextRegression
from keras_bert_impl.training.finetuned_model import finetuned_model

USUAL_WEIGHT, USUAL_TEMPERATURE = 0.5, 2.0


def check_teacher(config, task):
    """Raises ValueError if the options of the teacher do not fit each other or the task."""
    if config.teacher is None:
        return
    if not isinstance(task, TextClassification | TextRegression):
        raise ValueError(
            f"The task {task.name} cannot be distilled, only tasks that find the class or a number of a text: leave "
            "teacher out."
        )
    if isinstance(task, TextRegression) and config.temperature is not None:
        raise ValueError(f"The task {task.name} has no temperature, which softens classes: leave it out.")


def with_teacher(config, task, examples, rows, class_names, ask):
    """The training rows with labels (examples, columns): the label, then the teacher's outputs for the same text.

    Args:
        config: a FinetuneConfig with a teacher.
        task: a TextClassification or TextRegression.
        examples: the training examples.
        rows: their Rows, with labels.
        class_names: the classes in the student's order; None for a regression.
        ask: function from Rows and a model to its outputs for each example.

    Raises: ValueError if the teacher has other classes.
    """
    path = pathlib.Path(local_directory(config.teacher))
    names = open_checkpoint(path).class_names
    if sorted(names or ()) != sorted(class_names or ()):
        raise ValueError(
            f"The teacher {config.teacher} has the classes {', '.join(names or ['of no classifier'])}, but the task "
            f"{task.name} has {', '.join(class_names or ['none'])}: fine-tune a teacher for this task."
        )
    teacher, _ = finetuned_model(config, task, path)
    # Its own vocabulary and length: the texts are what both have in common.
    theirs = task.featurize(teacher.tokenizer, examples, class_names, teacher.sequence_length)
    outputs = np.array(ask(theirs, teacher), "float32")
    if class_names is not None:
        outputs = outputs[:, [names.index(name) for name in class_names]]
        agree = np.mean(outputs.argmax(axis=1) == rows.of_texts(rows.labels))
        say(f"  the teacher agrees with {agree:.1%} of the training labels")
    if rows.windows is not None:
        outputs = np.repeat(outputs, rows.windows, axis=0)
    labels = np.reshape(np.asarray(rows.labels, "float32"), (len(rows), 1))
    return dataclasses.replace(rows, labels=np.concatenate([labels, outputs], axis=1))


def loss_of(config, task):
    """The loss on such labels."""
    weight = USUAL_WEIGHT if config.teacher_weight is None else config.teacher_weight
    if isinstance(task, TextRegression):
        return DistilledSquaredError(weight)
    return DistilledCrossEntropy(weight, USUAL_TEMPERATURE if config.temperature is None else config.temperature)
