"""The options of `keras-bert distill`."""

import dataclasses
import typing

from keras_bert_training.options.pretrain import ModelOptions, PretrainConfig

OF_DISTILLER = (
    *("temperature", "soft_target_weight", "masked_lm_weight", "cosine_weight", "hidden_state_weight"),
    "soft_targets",
)


@dataclasses.dataclass(kw_only=True)
class DistillConfig(PretrainConfig):
    """Trains a small student to imitate a pre-trained teacher, as DistilBERT or TinyBERT.

    Args:
        teacher: checkpoint directory of the teacher, or a published name.
        family: family of the student: distilbert, or bert, which has segments and a pooler.
        num_layers: number of layers of the student, evenly spaced blocks of the teacher; default is every second one.
        hidden_size: width of the layers of a student with from_scratch.
        num_heads: number of attention heads of a student with from_scratch.
        intermediate_size: width of the feed-forward layers of a student with from_scratch.
        from_scratch: begin with random weights instead of the teacher's.
        temperature: divisor of the logits before the softmax.
        soft_target_weight: weight of the loss of the soft targets, the teacher's distributions over the vocabulary.
        masked_lm_weight: weight of the loss of the masked words. If this and soft_target_weight are 0, the student has
            no masked-LM head.
        cosine_weight: weight of the loss of the directions of the last hidden states.
        hidden_state_weight: weight of the loss of the hidden states of all layers, by squared differences, as in
            TinyBERT (Jiao et al. 2020).
        soft_targets: whether to compare distributions at all tokens, as DistilBERT's authors did, or only at the masked
            ones, which takes a seventh of the compute and memory for the vocabulary.
    """

    GROUPS: typing.ClassVar = {
        "what is learnt from the teacher": OF_DISTILLER,
        "the student": (
            *(field.name for field in dataclasses.fields(ModelOptions)),
            "family",
            "from_scratch",
        ),
    }

    teacher: str
    family: typing.Literal["distilbert", "bert"] | None = None
    from_scratch: bool = False
    temperature: float = 2.0
    soft_target_weight: float = 5.0
    masked_lm_weight: float = 2.0
    cosine_weight: float = 1.0
    hidden_state_weight: float = 0.0
    soft_targets: typing.Literal["all", "masked"] = "all"
    # Options of keras-bert pretrain that say what the teacher says here.
    size: None = dataclasses.field(init=False, default=None)
    generator_size: None = dataclasses.field(init=False, default=None)
    init: None = dataclasses.field(init=False, default=None)
    # Those of objectives that no student has here: it reads both sides, and does not learn from pairs.
    objective: str = dataclasses.field(init=False, default="masked_lm")
    direction: str = dataclasses.field(init=False, default="both")
    next_sentence: None = dataclasses.field(init=False, default=None)
    # Recorded in run.json, so that a run is resumed with the same teacher only.
    teacher_sha256: str | None = dataclasses.field(init=False, default=None)
