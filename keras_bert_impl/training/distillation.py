"""Trains a small student to imitate a pre-trained teacher, as DistilBERT or MiniLM.

    keras-bert distill --teacher bert-base-uncased --data data --output runs/distilled
    keras-bert distill --teacher DIR --objective minilm --num_layers 2 --data data --output runs/small

`--data` is the directory that keras-bert prepare-data wrote, with the teacher's vocabulary and, as for DistilBERT and
MiniLM, rows that are not pairs:

    keras-bert prepare-data --vocab DIR/vocab.txt --pairs full_sentences ...

The output directory is that of keras-bert pretrain. Its folder encoder/ holds the student: a DistilBertForMaskedLM or
BertForMaskedLM, or, of MiniLM's objective, which trains no head, a DistilBertModel or BertModel. The teacher is not
saved.

A student of a fine-tuned model is trained by keras-bert finetune --teacher.
"""

import functools
import pathlib

import keras

from keras_bert_impl import checkpoints
from keras_bert_impl.checkpoints import build_filled
from keras_bert_impl.console import say
from keras_bert_impl.families import build_encoder
from keras_bert_impl.models import MaskedLM, MaskedLMDistiller, RelationDistiller
from keras_bert_impl.models.student import copy_layers, student_config
from keras_bert_impl.options.distill import OF_DISTILBERT
from keras_bert_impl.options.distill import DistillConfig as DistillConfig
from keras_bert_impl.preprocessing.shards import file_identity
from keras_bert_impl.training import pretraining, pretraining_model
from keras_bert_impl.training.pretraining_data import PretrainingData


def run(config):
    """Checks the configuration, then trains; returns the figures on held-out text."""
    checkpoint = checkpoints.open_checkpoint(config.teacher)
    config.teacher_sha256 = fingerprint(checkpoint)
    return pretraining.run_with(
        config,
        functools.partial(open_data, checkpoint=checkpoint),
        functools.partial(build_distiller, checkpoint=checkpoint),
    )


def fingerprint(checkpoint):
    """The SHA-256 of a checkpoint's weights, or of the index that lists their files."""
    return file_identity(pathlib.Path(checkpoint.source.path))["sha256"]


def open_data(config, checkpoint):
    """The PretrainingData of a run. Raises ValueError if data, teacher and options do not fit each other."""
    if config.objective == "distilbert" and not checkpoint.has("masked_lm_head/"):
        raise ValueError(
            f"{checkpoint.source.path} has no masked-LM head, so that it gives no distributions over the vocabulary: "
            "use --objective minilm, or a teacher that was saved with its head."
        )
    data = PretrainingData(config, hides_words=config.objective == "distilbert")
    if checkpoint.tokenizer is None or checkpoint.tokenizer.vocabulary != data.tokenizer.vocabulary:
        raise ValueError(
            f"{config.teacher} has another vocabulary than the data in {data.directory}: prepare the data with --vocab "
            f"{config.teacher}/vocab.txt."
        )
    if data.sequence_length > checkpoint.config.max_length:
        raise ValueError(
            f"The rows have {data.sequence_length} tokens, but the teacher takes {checkpoint.config.max_length}: "
            "prepare shorter rows."
        )
    check_student(config, checkpoint)
    return data


def check_student(config, checkpoint):
    """Raises ValueError if there is no such student."""
    sizes = ("hidden_size", "num_heads", "intermediate_size")
    changed = [n for n in sizes if getattr(config, n) not in (None, getattr(checkpoint.config, n))]
    if changed and not config.from_scratch:
        raise ValueError(
            f"A student with another {', '.join(changed)} than its teacher cannot begin with the teacher's weights: "
            "leave the option out, or give --from_scratch."
        )
    shape_of_student(config, checkpoint)


def shape_of_student(config, checkpoint):
    """The configuration of the student."""
    names = ("hidden_size", "num_heads", "intermediate_size", "initializer_range")
    changes = {name: getattr(config, name) for name in names if getattr(config, name) is not None}
    if "hidden_size" in changes:
        changes = {"intermediate_size": None, **changes}  # four times the width
    rates = {"hidden_dropout_rate": config.dropout_rate, "attention_dropout_rate": config.dropout_rate}
    return student_config(checkpoint.config, config.family or "distilbert", config.num_layers, **rates, **changes)


def build_distiller(config, data, jit_compile, schedule, checkpoint):
    """A new student with its teacher, compiled with this learning rate schedule."""
    policy = keras.dtype_policies.get(config.precision)
    model_of = encoder_alone if config.objective == "minilm" else MaskedLM
    # With the decoder that it predicts with, which the student does not have.
    of_teacher = {} if config.objective == "minilm" else checkpoint.arguments_of(MaskedLM)

    def teacher():
        return model_of(build_encoder(checkpoint.config, packed=data.packed, dtype=policy), **of_teacher)

    shape = shape_of_student(config, checkpoint)
    student = model_of(
        build_encoder(shape, packed=data.packed, rematerialize=config.gradient_checkpointing, dtype=policy)
    )
    teacher = build_filled(teacher, checkpoint)
    if not config.from_scratch:
        layers = copy_layers(student, teacher)
        say(f"  the student begins with blocks {' '.join(map(str, layers))} of its teacher")
    if config.objective == "minilm":
        model = RelationDistiller(student, teacher)
    else:
        options = {name: getattr(config, name) for name in OF_DISTILBERT if getattr(config, name) is not None}
        model = MaskedLMDistiller(student, teacher, **options)
    return pretraining_model.compiled(model, config, jit_compile, schedule)


def encoder_alone(encoder):
    """The model that the objective without a head compares."""
    return encoder
