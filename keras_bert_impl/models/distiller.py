"""Distillation: a student that learns to compute what a larger, frozen teacher computes."""

import keras
from keras import ops

from keras_bert_impl import losses
from keras_bert_impl.callbacks.flops import training_flops
from keras_bert_impl.encoders.epoch_loss import SumOfMeansModel
from keras_bert_impl.layers import FrozenModel
from keras_bert_impl.models.masked_lm import MaskedLM
from keras_bert_impl.models.student import evenly_spaced
from keras_bert_impl.models.text_classifier import TextClassifier


class Distiller(SumOfMeansModel):
    """Trains a small student to imitate a large, frozen teacher, as DistilBERT and TinyBERT were trained.

    Each weight above 0 adds a part to the loss:

    - `soft_target_loss`: divergence from the teacher's distributions over words or classes, both softened by the
      temperature (Hinton et al. 2015, section 2);
    - `masked_lm_loss`: the masked words themselves;
    - `cosine_loss`: 1 - the cosine of the last hidden states (DistilBERT, Sanh et al. 2019, sections 2 and 3);
    - `hidden_state_loss`: the mean squared difference of the embeddings, and of each layer from one of the teacher's
      layers, evenly spaced, summed over all (TinyBERT, Jiao et al. 2020, section 3, equations 8 and 9).

    If the widths differ, a dense layer maps the student's states to the teacher's; it is trained, but not saved. The
    default weights and temperature are those of DistilBERT's authors.

    Args:
        student (keras.Model): a MaskedLM or TextClassifier; for hidden states alone, an encoder or a model over one.
        teacher (keras.Model): a model of the same kind. It runs without dropout, and `callbacks.ExactResume` does not
            save it.
        temperature (float, optional): temperature of the soft targets. Default: 2.0.
        soft_target_weight (float, optional): weight of `soft_target_loss`. Default: 5.0.
        masked_lm_weight (float, optional): weight of `masked_lm_loss`, for a MaskedLM. Default: 2.0.
        cosine_weight (float, optional): weight of `cosine_loss`. Default: 1.0.
        hidden_state_weight (float, optional): weight of `hidden_state_loss`. Default: 0.0.
        soft_targets (str, optional): tokens at which the distributions of a MaskedLM are compared: "all", or "masked",
            which takes a seventh of the compute and memory of the vocabulary's logits. Default: "all".

    For a MaskedLM, `fit` and `evaluate` take (inputs, labels) as a `Pretrainer` does. Other models need inputs alone,
    such as `student.rows(texts)`.

    Input:  dict of the encoder's inputs; for a MaskedLM with `mask_positions` (batch, predictions), int32.
    Output: dict of the compared outputs; those of the teacher are named `teacher_...`.
    Raises: ValueError if vocabularies or classes differ, or if models of another kind, or with multi_label, have a
        soft_target_weight above 0; KeyError for another value of soft_targets.

    Example:
        >>> teacher = kbi.TextClassifier.from_pretrained("small_english", num_classes=2)
        >>> config = kbi.BertConfig.from_name("bert_tiny", vocabulary_size=8000)
        >>> encoder = kbi.BertEncoder(config)
        >>> student = kbi.TextClassifier(encoder, 2, tokenizer=teacher.tokenizer)
        >>> distiller = kbi.Distiller(student, teacher)
        >>> distiller.compile(kbi.optimization.BertAdamW(1e-3))
        >>> history = distiller.fit(student.rows(["A wonderful film.", "Dull."]), verbose=0)
        >>> sorted(history.history)
        ['cosine_loss', 'loss', 'soft_target_loss']
    """

    def __init__(
        self, student, teacher, temperature=2.0, soft_target_weight=5.0, masked_lm_weight=2.0, cosine_weight=1.0,
        hidden_state_weight=0.0, soft_targets="all", name="distiller",
    ):  # fmt: skip
        check_pair(student, teacher, soft_target_weight)
        predicts_words = isinstance(student, MaskedLM)
        weights = {
            "soft_target_loss": soft_target_weight,
            "masked_lm_loss": masked_lm_weight * predicts_words,
            "cosine_loss": cosine_weight,
            "hidden_state_loss": hidden_state_weight,
        }
        # The loss of masked words is shown at any weight.
        weights = {
            part: weight for part, weight in weights.items() if weight or (predicts_words and part == "masked_lm_loss")
        }
        scores = {"all": "logits", "masked": "masked_lm_logits" if predicts_words else "logits"}[soft_targets]
        ours, theirs = (encoder_of(model).hidden_states() for model in (student, teacher))
        # Of the student, the embeddings and all layers, or the last one.
        layers = range(len(ours)) if hidden_state_weight else range(len(ours))[-1:] if cosine_weight else ()
        spaced = evenly_spaced(len(theirs), len(ours))
        compared = [scores] if soft_target_weight else []
        states = {state(layer): ours[layer] for layer in layers}
        of_student = computing(student, [*compared, *["masked_lm_logits"] * predicts_words], states, "student")
        states = {state(layer): theirs[spaced[layer]] for layer in layers}
        of_teacher = computing(teacher, compared, states, "teacher")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in of_student.input}
        frozen = FrozenModel(of_teacher, name="teacher")
        outputs = of_student(inputs)
        widths = [encoder_of(model).config.hidden_size for model in (student, teacher)]
        if layers and widths[0] != widths[1]:
            projection = keras.layers.Dense(widths[1], dtype=student.dtype_policy, name="projection")
            outputs |= {state(layer): projection(outputs[state(layer)]) for layer in layers}
        taught = frozen({name: inputs[name] for name in of_teacher.input})
        outputs |= {f"teacher_{name}": tensor for name, tensor in taught.items()}
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.dtype_policy = student.dtype_policy
        # Not tracked as layers: the graph holds their layers already, but for a pooler that no loss trains.
        for attribute, value in (("student", student), ("teacher", teacher)):
            object.__setattr__(self, attribute, value)
        # Attributes, although the graph holds both: Keras on torch collects a model's parameters by their paths, which
        # student and teacher share, and gradients of those that it missed would add up from step to step.
        self.of_student, self.of_teacher = of_student, frozen
        self.temperature, self.scores, self.layers_compared = float(temperature), scores, tuple(layers)
        self.part_weights = weights
        means = (*weights, "masked_lm_accuracy") if predicts_words else weights
        self.means = {mean: keras.metrics.Mean(name=mean) for mean in means}

    @property
    def encoder(self):
        """The student's encoder."""
        return encoder_of(self.student)

    @property
    def constant_variables(self):
        """The teacher's: no training changes them, and no state of a training holds them."""
        return self.of_teacher.variables

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the weighted sum of the parts of the loss, and updates their means."""
        rows = losses.weights_of_rows(sample_weight, x["token_ids"])
        tokens = ops.cast(x["padding_mask"], "float32") * rows[:, None]
        counted, parts = {"logits": rows}, {}
        if isinstance(self.student, MaskedLM):
            ids, logits = y["mask_ids"], y_pred["masked_lm_logits"]
            masked = ops.cast(y["mask_weights"], "float32") * rows[:, None]
            counted = {"logits": tokens, "masked_lm_logits": masked}
            self.record("masked_lm_accuracy", losses.accuracy(ids, logits, masked), masked)
            parts["masked_lm_loss"] = (losses.masked_lm_loss(ids, masked, logits), masked)
        if "soft_target_loss" in self.part_weights:
            pair, weights = (y_pred[self.scores], y_pred[f"teacher_{self.scores}"]), counted[self.scores]
            parts["soft_target_loss"] = (losses.soft_target_loss(*pair, weights, self.temperature), weights)
        pairs = [(y_pred[state(layer)], y_pred[f"teacher_{state(layer)}"]) for layer in self.layers_compared]
        if "cosine_loss" in self.part_weights:
            parts["cosine_loss"] = (losses.cosine_loss(*pairs[-1], tokens), tokens)
        if "hidden_state_loss" in self.part_weights:
            parts["hidden_state_loss"] = (sum(losses.hidden_state_loss(*pair, tokens) for pair in pairs), tokens)
        for name, (loss, weights) in parts.items():
            self.record(name, loss, weights)
        return sum(self.part_weights[name] * loss for name, (loss, _) in parts.items())

    def training_flops(self, rows, length, predictions):
        """The arithmetic of a training step: the student's, and a forward pass of the teacher."""
        words = isinstance(self.student, MaskedLM)
        predictions = words * (predictions + length * ("logits" in self.of_student.output))
        decodes = getattr(self.teacher, "enhanced_decoder", False)
        of_teacher = training_flops(encoder_of(self.teacher), rows, length, predictions, decodes) / 3
        return training_flops(self.encoder, rows, length, predictions) + of_teacher

    def get_config(self):
        raise ValueError(
            "A .keras file cannot hold a Distiller with its teacher: save_pretrained writes the student as a "
            "checkpoint, and callbacks.ExactResume keeps the state of a training."
        )

    def save_pretrained(self, directory):
        """Writes the student as Hugging Face's model of its family.

        Args:
            directory (str or pathlib.Path): created if it does not exist.
        """
        self.student.save_pretrained(directory)


def encoder_of(model):
    """The encoder of a model over one, or the model itself."""
    return getattr(model, "encoder", model)


def state(layer):
    """The name of the output that holds the hidden states after a layer of the student; 0 for the embeddings."""
    return f"hidden_state_{layer}"


def computing(model, scores, states, role):
    """The functional model that computes hidden states of a model, and scores of its head: `masked_lm_logits` of a
    MaskedLM at the masked positions, `logits` at all, or of a classifier."""
    outputs = dict(states)
    inputs = model.input if "masked_lm_logits" in scores else encoder_of(model).input
    if "masked_lm_logits" in scores:
        outputs["masked_lm_logits"] = model.output
    if "logits" in scores and isinstance(model, MaskedLM):
        # The head scores the tokens at given positions: here 0, 1, 2, ... of each row.
        places = ops.cumsum(ops.ones_like(inputs["token_ids"]), axis=1) - 1
        head = model.get_layer("masked_lm_head")
        outputs["logits"] = head(head.input[0], places)
    elif "logits" in scores:
        outputs["logits"] = model.output
    return keras.Model(inputs, outputs, name=role)


def check_pair(student, teacher, soft_target_weight):
    """Raises ValueError if what a teacher computes would mean something else to the student."""
    sizes = [encoder_of(model).config.vocabulary_size for model in (student, teacher)]
    classes = [getattr(model, "class_names", None) for model in (student, teacher)]
    softens = any(isinstance(student, kind) and isinstance(teacher, kind) for kind in (MaskedLM, TextClassifier))
    if sizes[0] != sizes[1]:
        problem = f"the student's vocabulary has {sizes[0]} words, the teacher's {sizes[1]}."
    elif soft_target_weight and classes[0] != classes[1]:
        problem = f"the student's classes are {classes[0]}, the teacher's {classes[1]}: give the student class_names."
    elif soft_target_weight and (
        not softens or any(getattr(model, "multi_label", False) for model in (student, teacher))
    ):
        problem = "soft targets are of two MaskedLM, or two TextClassifier of one class a text: soft_target_weight=0."
    else:
        return
    raise ValueError(f"Student and teacher do not fit each other: {problem}")
