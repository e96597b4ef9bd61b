"""The options of `keras-bert distill`."""

import dataclasses
import typing

from keras_bert_impl.options.pretrain import ModelOptions, PretrainConfig

OF_DISTILBERT = ("temperature", "soft_target_weight", "masked_lm_weight", "cosine_weight", "soft_targets")


@dataclasses.dataclass(kw_only=True)
class DistillConfig(PretrainConfig):
    """Trains a small student to imitate a pre-trained teacher, as DistilBERT or MiniLM.

    Args:
        teacher: checkpoint directory of the teacher, or a published name.
        objective: distilbert learns the teacher's distributions over the vocabulary, masked words and the directions of
            its last hidden states (Sanh et al. 2019); minilm the attention and the relations of the values in its last
            block (Wang et al. 2020), which needs no masked-LM head.
        family: of the student: distilbert, or bert, which has segments and a pooler.
        num_layers: of the student, evenly spaced blocks of the teacher; default is every second one.
        hidden_size: of a student whose width is not the teacher's, for minilm with from_scratch.
        num_heads: of a student with from_scratch.
        intermediate_size: of a student with from_scratch.
        from_scratch: begin with random weights instead of the teacher's.
        temperature: for distilbert, what the logits are divided by before the softmax; default is 2.
        soft_target_weight: for distilbert, weight of the loss of the soft targets; default is 5.
        masked_lm_weight: for distilbert, weight of the loss of the masked words; default is 2.
        cosine_weight: for distilbert, weight of the loss of the hidden states' directions; default is 1.
        soft_targets: for distilbert, compare distributions at all tokens as its authors did, which is the default, or
            only at the masked ones, which takes a seventh of the work and memory for the vocabulary.
    """

    GROUPS: typing.ClassVar = {
        "what is learnt from the teacher": ("objective", *OF_DISTILBERT),
        "the student": (
            *(field.name for field in dataclasses.fields(ModelOptions)),
            "family",
            "from_scratch",
        ),
    }

    teacher: str
    objective: typing.Literal["distilbert", "minilm"] = "distilbert"
    family: typing.Literal["distilbert", "bert"] | None = None
    from_scratch: bool = False
    temperature: float | None = None
    soft_target_weight: float | None = None
    masked_lm_weight: float | None = None
    cosine_weight: float | None = None
    soft_targets: typing.Literal["all", "masked"] | None = None
    # Options of keras-bert pretrain that say what the teacher says here.
    size: None = dataclasses.field(init=False, default=None)
    generator_size: None = dataclasses.field(init=False, default=None)
    init: None = dataclasses.field(init=False, default=None)
    # Those of objectives that no student has here: it reads both sides, and does not learn from pairs.
    direction: str = dataclasses.field(init=False, default="both")
    next_sentence: None = dataclasses.field(init=False, default=None)
    # Recorded in run.json, so that a run is resumed with the same teacher only.
    teacher_sha256: str | None = dataclasses.field(init=False, default=None)
