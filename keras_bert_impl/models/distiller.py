"""Distillation: a student that learns to compute what a larger, frozen teacher computes."""

import math

import keras
from keras import ops

from keras_bert_impl import losses
from keras_bert_impl.callbacks.flops import training_flops
from keras_bert_impl.kernels.attention.plain import by_heads, of_fused
from keras_bert_impl.layers import AttentionMask, FrozenModel
from keras_bert_impl.model_methods.epoch_loss import SumOfMeansMixin
from keras_bert_impl.model_methods.keras_methods import KerasMethodsMixin


class Distiller(SumOfMeansMixin, KerasMethodsMixin, keras.Model):
    """Base class of the two ways to distill: runs student and teacher on the same rows.

    The teacher is frozen and computes without dropout. It is not part of what `callbacks.ExactResume` saves.

    Args:
        student, teacher: models over encoders; the first is trained and saved.
        of_student, of_teacher: functional models with their layers, which compute what is compared: dicts of arrays.
        loss_weights: the weight of each part of the loss by its name.
        metrics: names of further means.
        name: of the model.
    """

    def __init__(self, student, teacher, of_student, of_teacher, loss_weights, metrics, name):
        if not any(loss_weights.values()) or min(loss_weights.values()) < 0:
            named = ", ".join(f"{part} {weight:g}" for part, weight in loss_weights.items())
            raise ValueError(f"The weights of the loss are {named}: none may be below 0, and one must be above it.")
        inputs = {tensor: keras.Input((None,), dtype="int32", name=tensor) for tensor in of_student.input}
        frozen = FrozenModel(of_teacher, name="teacher")
        theirs = frozen({tensor: inputs[tensor] for tensor in of_teacher.input})
        ours = of_student(inputs)
        outputs = {**ours, **{f"teacher_{output}": tensor for output, tensor in theirs.items()}}
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.dtype_policy = student.dtype_policy
        # Not tracked as layers: the graph holds their layers already, but for a pooler that no loss trains.
        for attribute, value in (("student", student), ("teacher", teacher)):
            object.__setattr__(self, attribute, value)
        # Attributes, although the graph holds both: Keras on torch collects a model's parameters by their paths, which
        # student and teacher share, and gradients of those that it missed would add up from step to step.
        self.of_student, self.of_teacher = of_student, frozen
        self.part_weights = dict(loss_weights)
        self.means = {mean: keras.metrics.Mean(name=mean) for mean in (*loss_weights, *metrics)}

    @property
    def encoder(self):
        """The student's encoder."""
        return getattr(self.student, "encoder", self.student)

    @property
    def constant_variables(self):
        """The teacher's: no training changes them, and no state of a training holds them."""
        return self.of_teacher.variables

    def sum_of(self, parts):
        """The weighted sum of the parts of the loss, {name: (loss, what it is a mean over)}, whose means it updates."""
        for name, (loss, weights) in parts.items():
            self.record(name, loss, weights)
        return sum(self.part_weights[name] * loss for name, (loss, _) in parts.items())

    def training_flops(self, rows, length, predictions):
        """The arithmetic of a training step: the student's, and a forward pass of the teacher."""
        teacher, student = getattr(self.teacher, "encoder", self.teacher), self.encoder
        predictions = self.scored_tokens(length, predictions)
        decodes = getattr(self.teacher, "enhanced_decoder", False)
        of_teacher = training_flops(teacher, rows, length, predictions, decodes) / 3
        return training_flops(student, rows, length, predictions) + of_teacher

    def get_config(self):
        raise ValueError(
            f"A .keras file cannot hold a {type(self).__name__} with its teacher: save_pretrained writes the student "
            "as a checkpoint, and callbacks.ExactResume keeps the state of a training."
        )

    def save_pretrained(self, directory):
        """Writes the student as Hugging Face's model of its family."""
        self.student.save_pretrained(directory)


class MaskedLMDistiller(Distiller):
    """Trains a student as DistilBERT was (Sanh et al. 2019, sections 2 and 3): on the teacher's distributions over the
    vocabulary, softened by a temperature, on the masked tokens themselves, and on the direction of the teacher's last
    hidden states.

    The paper does not state the weights of the three losses or the temperature. They are those of the command that its
    authors published (transformers' research project `distillation`: --alpha_ce 5.0 --alpha_mlm 2.0 --alpha_cos 1.0,
    temperature 2), which compares distributions at all tokens, not only at the masked ones.

    Args:
        student, teacher: MaskedLM models of one vocabulary; for the cosine loss, also of one width.
        temperature: of the soft targets.
        soft_target_weight, masked_lm_weight, cosine_weight: of the three losses.
        soft_targets: at which tokens distributions are compared: "all", or "masked", which takes a seventh of the
            products with the vocabulary, and of the memory for their logits.

    Input:  dict of the encoder's inputs and `mask_positions` (batch, predictions), int32.
    Output: dict of `masked_lm_logits` (batch, predictions, vocabulary), `sequence_output` (batch, length, width) and,
            for "all", `logits` (batch, length, vocabulary); the same of the teacher, as `teacher_...`. What no loss
            needs is left out.

    `fit` and `evaluate` take (inputs, labels) as `Pretrainer`; of the labels `mask_ids` and `mask_weights` are used.
    Raises: ValueError if the models do not fit each other.
    """

    def __init__(
        self, student, teacher, temperature=2.0, soft_target_weight=5.0, masked_lm_weight=2.0, cosine_weight=1.0,
        soft_targets="all", name="masked_lm_distiller",
    ):  # fmt: skip
        if soft_targets not in ("all", "masked"):
            raise ValueError(f"soft_targets is {soft_targets!r}, expected 'all' or 'masked'.")
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, not {temperature!r}.")
        check_same(student, teacher, "vocabulary_size", "soft targets need")
        if cosine_weight:
            check_same(student, teacher, "hidden_size", "a cosine_weight above 0 needs")
        if not (soft_target_weight or cosine_weight):
            raise ValueError(
                "soft_target_weight and cosine_weight are both 0, so that nothing is learnt from the teacher: raise "
                "one, or train the student alone with keras-bert pretrain."
            )
        vectors = ("sequence_output",) if cosine_weight else ()
        scores = ("logits" if soft_targets == "all" else "masked_lm_logits",) if soft_target_weight else ()
        of_student = computing(student, {"masked_lm_logits", *scores, *vectors}, "student")
        of_teacher = computing(teacher, {*scores, *vectors}, "teacher")
        weights = {
            "soft_target_loss": soft_target_weight,
            "masked_lm_loss": masked_lm_weight,
            "cosine_loss": cosine_weight,
        }
        super().__init__(student, teacher, of_student, of_teacher, weights, ("masked_lm_accuracy",), name)
        self.temperature, self.soft_targets = float(temperature), soft_targets

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The weighted sum of the losses; also updates their metrics."""
        tokens, ids = ops.cast(x["padding_mask"], "float32"), y["mask_ids"]
        predictions, logits = ops.cast(y["mask_weights"], "float32"), y_pred["masked_lm_logits"]
        self.record("masked_lm_accuracy", losses.accuracy(ids, logits, predictions), predictions)
        parts = {"masked_lm_loss": (losses.masked_lm_loss(ids, predictions, logits), predictions)}
        if self.part_weights["soft_target_loss"]:
            name, counted = ("logits", tokens) if self.soft_targets == "all" else ("masked_lm_logits", predictions)
            soft = losses.soft_target_loss(y_pred[name], y_pred[f"teacher_{name}"], counted, self.temperature)
            parts["soft_target_loss"] = (soft, counted)
        if self.part_weights["cosine_loss"]:
            cosine = losses.cosine_loss(y_pred["sequence_output"], y_pred["teacher_sequence_output"], tokens)
            parts["cosine_loss"] = (cosine, tokens)
        return self.sum_of(parts)

    def scored_tokens(self, length, predictions):
        """The tokens of a row for which the vocabulary is scored."""
        return predictions + (length if self.soft_targets == "all" else 0)


class RelationDistiller(Distiller):
    """Trains a student as MiniLM was (Wang et al. 2020, sections 3.1 and 3.2): its last block shall relate the tokens
    of a row to each other as the teacher's last block does, in the attention of each head (equation 6) and in the
    products of the values of each head with each other (equation 9). Neither needs a head, nor equal widths.

    The paper's two losses have equal weights. Its teacher assistant (section 3.3) is a student of a first run that is
    the teacher of a second.

    Args:
        student, teacher: encoders with the same number of attention heads.
        attention_weight, value_weight: of the two losses.

    Input:  dict of the encoder's inputs.
    Output: dict of `query_key_value` (batch, length, 3 * width) and, of the teacher, `teacher_query_key_value`.

    `fit` and `evaluate` take (inputs, labels) as `Pretrainer`, but no label is used: rows should not be masked.
    Raises: ValueError if the models do not fit each other.
    """

    def __init__(self, student, teacher, attention_weight=1.0, value_weight=1.0, name="relation_distiller"):
        check_same(student, teacher, "num_heads", "relations of attention heads need")
        for role, encoder in (("student", student), ("teacher", teacher)):
            direction = getattr(encoder.config, "direction", "both")
            if direction != "both":
                raise ValueError(
                    f"The {role}'s direction is {direction}: its tokens do not attend to all others, and MiniLM "
                    "compares the relations of all pairs. Take an encoder that reads both sides."
                )
        of_student, of_teacher = (
            keras.Model(encoder.input, {"query_key_value": last_query_key_value(encoder)}, name=role)
            for role, encoder in (("student", student), ("teacher", teacher))
        )
        weights = {"attention_relation_loss": attention_weight, "value_relation_loss": value_weight}
        super().__init__(student, teacher, of_student, of_teacher, weights, (), name)
        self.num_heads = student.config.num_heads

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The weighted sum of the losses; also updates their metrics."""
        tokens = ops.cast(x["padding_mask"], "float32")
        mask = AttentionMask()(x["padding_mask"], sequence_ids=x.get("sequence_ids"))
        student, teacher = (
            by_heads(of_fused(y_pred[name], self.num_heads)) for name in ("query_key_value", "teacher_query_key_value")
        )
        parts = {}
        for name, first, second in (("attention_relation_loss", 0, 1), ("value_relation_loss", 2, 2)):
            ours, theirs = (relations(parts[first], parts[second]) for parts in (student, teacher))
            parts[name] = (losses.relation_loss(ours, theirs, mask, tokens), tokens)
        return self.sum_of(parts)

    def scored_tokens(self, length, predictions):
        """The tokens of a row for which the vocabulary is scored."""
        return 0


def relations(first, second):
    """The scaled products of the vectors of all pairs of tokens, (batch, heads, length, length), float32, from two
    arrays (batch, length, heads, head_width)."""
    first, second = (ops.cast(vectors, "float32") for vectors in (first, second))
    return ops.einsum("bqhd,bkhd->bhqk", first, second) / math.sqrt(first.shape[-1])


def computing(model, names, role):
    """The functional model that computes these outputs of a MaskedLM: `masked_lm_logits` at the masked positions,
    `logits` at all, `sequence_output`."""
    inputs, vectors = model.encoder.input, model.encoder.output["sequence_output"]
    outputs = {"sequence_output": vectors, "masked_lm_logits": model.output}
    if "logits" in names:
        # The head scores the tokens at given positions: here 0, 1, 2, ... of each row.
        places = ops.cumsum(ops.ones_like(inputs["token_ids"]), axis=1) - 1
        outputs["logits"] = model.get_layer("masked_lm_head")(model.scored_states(), places)
    inputs = model.input if "masked_lm_logits" in names else inputs
    return keras.Model(inputs, {name: outputs[name] for name in sorted(names)}, name=role)


def last_query_key_value(encoder):
    """Queries, keys and values of an encoder's last layer, (batch, length, 3 * width)."""
    block = encoder.get_layer(f"block_{encoder.config.schedule[-1]}")
    if block.norm_first or encoder.config.windows[-1] is not None:
        raise ValueError(
            f"Relations between the queries, keys and values of a {encoder.config.family} are not distilled: it turns "
            "them by their positions, and sees a window. Choose another objective, or another teacher."
        )
    return block.attention.query_key_value(encoder.hidden_states()[-2])


def check_same(student, teacher, name, need):
    """Raises ValueError if a size of the encoders of two models differs."""
    ours, theirs = (getattr(getattr(model, "encoder", model).config, name) for model in (student, teacher))
    if ours != theirs:
        raise ValueError(f"The student's {name} is {ours}, the teacher's {theirs}: {need} equal ones.")
