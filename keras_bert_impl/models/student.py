"""The student of a distillation before training: some layers of its teacher."""

import dataclasses
import re

import numpy as np

from keras_bert_impl.distribution import assign_whole, to_numpy
from keras_bert_impl.encoders.bert import BertConfig
from keras_bert_impl.encoders.distilbert import DistilBertConfig

STUDENT_CONFIGS = {config_class.model_type: config_class for config_class in (DistilBertConfig, BertConfig)}


def student_config(teacher, family="distilbert", num_layers=None, **changes):
    """The configuration of a student: the teacher's, with fewer layers.

    Args:
        teacher: the teacher's configuration, of any family.
        family: "distilbert" or "bert".
        num_layers: default is half of the teacher's (Sanh et al. 2019, section 3).
        changes: further fields to replace.
    """
    num_layers = max(1, teacher.num_layers // 2) if num_layers is None else num_layers
    known = {field.name for field in dataclasses.fields(STUDENT_CONFIGS[family])}
    shape = {name: value for name, value in teacher.to_dict().items() if name in known}
    return STUDENT_CONFIGS[family](**{**shape, "num_layers": num_layers, **changes})


def evenly_spaced(num_layers, count):
    """The numbers of `count` of a teacher's blocks, from the first to the last: 0 2 4 7 9 11 of twelve, as
    DistilBERT's authors chose them (the script extract_distilbert.py; their paper says "one layer out of two")."""
    return [int(number) for number in np.rint(np.linspace(0, num_layers - 1, count))]


def copy_layers(student, teacher):
    """Gives a student the embeddings, evenly spaced blocks and the head of its teacher; returns the blocks' numbers.

    A family without segments gets the teacher's first segment added to its positions, which leaves the sum as it was
    for rows of one segment. (DistilBERT's authors left the segments out.) Both are encoders, or models with the same
    head, and of the same width.
    """
    layers = evenly_spaced(*(getattr(model, "encoder", model).config.num_layers for model in (teacher, student)))
    theirs = {weight.path: weight for weight in [*getattr(teacher, "encoder", teacher).weights, *teacher.weights]}
    ours = {weight.path: weight for weight in student.weights}
    sources = {path: re.sub(r"^block_(\d+)/", lambda found: f"block_{layers[int(found[1])]}/", path) for path in ours}
    for path, source in sources.items():
        assign_whole(ours[path], to_numpy(theirs[source]))
    segments = "segment_embedding/embeddings"
    if segments in theirs and segments not in ours:
        positions = ours["position_embedding/embeddings"]
        assign_whole(positions, to_numpy(positions) + to_numpy(theirs[segments])[0])
    return layers
