"""Trains a small student to imitate a pre-trained teacher, as DistilBERT or TinyBERT.

    keras-bert distill --teacher bert-base-uncased --data data --output runs/distilled
    keras-bert distill --teacher DIR --soft_target_weight 0 --masked_lm_weight 0 --cosine_weight 0 \\
        --hidden_state_weight 1 --num_layers 4 --data data --output runs/small

`--data` is the directory that keras-bert prepare-data wrote, with the teacher's vocabulary and, as for DistilBERT, rows
that are not pairs:

    keras-bert prepare-data --vocab DIR/vocab.txt --pairs full_sentences ...

The output directory is that of keras-bert pretrain. Its folder encoder/ holds the student: a DistilBertForMaskedLM or
BertForMaskedLM, or, if no part of the loss is about words, a DistilBertModel or BertModel. The teacher is not saved.
"""

import functools
import pathlib

import keras

from keras_bert_impl import checkpoints
from keras_bert_impl.checkpoints import build_filled
from keras_bert_impl.console import say
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.models import Distiller, MaskedLM
from keras_bert_impl.models.student import copy_layers, student_config
from keras_bert_impl.text.rows.shards import file_identity
from keras_bert_training import pretraining, pretraining_model
from keras_bert_training.options.distill import OF_DISTILLER
from keras_bert_training.options.distill import DistillConfig as DistillConfig
from keras_bert_training.options.pretrain import ObjectiveOptions, OptimizerOptions, RowOptions
from keras_bert_training.pretraining_data import PretrainingData


def run(config):
    """Checks the configuration, then trains; returns the figures on held-out text."""
    checkpoint = checkpoints.open_checkpoint(config.teacher)
    # The SHA-256 of its weights, or of the index that lists their files.
    config.teacher_sha256 = file_identity(pathlib.Path(checkpoint.source.path))["sha256"]
    return pretraining.run_with(
        config,
        functools.partial(open_data, checkpoint=checkpoint),
        functools.partial(build_distiller, checkpoint=checkpoint),
    )


def has_head(config):
    """Whether student and teacher score words."""
    return bool(config.soft_target_weight or config.masked_lm_weight)


def open_data(config, checkpoint):
    """The PretrainingData of a run. Raises ValueError if data, teacher and options do not fit each other."""
    if has_head(config) and not checkpoint.has("masked_lm_head/"):
        raise ValueError(
            f"{checkpoint.source.path} has no masked-LM head: give --soft_target_weight 0 --masked_lm_weight 0, or a "
            "teacher that was saved with its head."
        )
    data = PretrainingData(config.data, config.part(RowOptions), config.part(ObjectiveOptions), config.seed)
    if checkpoint.tokenizer is None or checkpoint.tokenizer.vocabulary != data.tokenizer.vocabulary:
        raise ValueError(
            f"{config.teacher} was trained with a different vocabulary from the data in {data.directory}: prepare "
            f"the data with --vocab {config.teacher}/vocab.txt."
        )
    if data.sequence_length > checkpoint.config.max_length:
        raise ValueError(
            f"The examples have {data.sequence_length} tokens, but the teacher takes at most "
            f"{checkpoint.config.max_length}: prepare shorter ones."
        )
    changed = [name for name in SIZES if getattr(config, name) not in (None, getattr(checkpoint.config, name))]
    if changed and not config.from_scratch:
        raise ValueError(
            f"A student whose {', '.join(changed)} differs from its teacher's cannot start from the teacher's "
            "weights: remove the option, or add --from_scratch."
        )
    return data


SIZES = ("hidden_size", "num_heads", "intermediate_size")


def build_distiller(config, data, jit_compile, schedule, checkpoint):
    """A new student with its teacher, compiled with this learning rate schedule."""
    policy = keras.dtype_policies.get(config.precision)
    model_of = MaskedLM if has_head(config) else lambda encoder: encoder
    # With the decoder that it predicts with, which the student does not have.
    of_teacher = checkpoint.arguments_of(MaskedLM) if has_head(config) else {}

    def teacher():
        return model_of(build_encoder(checkpoint.config, packed=data.packed, dtype=policy), **of_teacher)

    names = (*SIZES, "initializer_range")
    changes = {name: getattr(config, name) for name in names if getattr(config, name) is not None}
    if "hidden_size" in changes:
        changes = {"intermediate_size": None, **changes}  # four times the width
    changes |= {"hidden_dropout_rate": config.dropout_rate, "attention_dropout_rate": config.dropout_rate}
    shape = student_config(checkpoint.config, config.family or "distilbert", config.num_layers, **changes)
    student = model_of(
        build_encoder(shape, packed=data.packed, rematerialize=config.gradient_checkpointing, dtype=policy)
    )
    teacher = build_filled(teacher, checkpoint)
    if not config.from_scratch:
        layers = copy_layers(student, teacher)
        say(f"  the student starts from blocks {' '.join(map(str, layers))} of its teacher")
    model = Distiller(student, teacher, **{name: getattr(config, name) for name in OF_DISTILLER})
    options = {"jit_compile": jit_compile, "steps_per_execution": config.steps_per_execution}
    return pretraining_model.compiled(model, config.part(OptimizerOptions), schedule, **options)
