"""What the paper's ablations put between encoder and head, a second encoder and an LSTM, as a task of
`keras-bert finetune`.

    keras-bert finetune --task studies/stacked.py --task_options '{"task": "mrpc", "bilstm_units": 128}' ...
"""

import dataclasses

import keras
from keras import ops

from keras_bert_impl import checkpoints, distribution
from keras_bert_impl.encoders import build_encoder
from keras_bert_impl.encoders.encoder import FamilyEncoder
from keras_bert_impl.encoders.keras_methods import AdaptedModel
from keras_bert_impl.layers import LastToken
from keras_bert_training.finetuning_task import find_task
from keras_bert_training.finetuning_trial import with_dropout
from keras_bert_training.options.finetune import FinetuneConfig


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class StackedEncoder(FamilyEncoder):
    """One encoder, or several whose vectors are concatenated, and on request a bidirectional LSTM on top (Devlin et
    al. 2019, section 5.1).

    With an encoder that reads from left to right and one that reads from right to left, the vectors are joined as
    ELMo's (Peters et al. 2018), but trained together. With a BiLSTM, the text's vector is the last state of both of its
    directions. Any head takes it in place of an encoder. There is no Hugging Face format for it: save with
    `model.save("model.keras")`.

    Args:
        encoders: encoders of any family, with the same vocabulary. The configuration is that of the first. Weights of
            the others have paths of their own if they were built within `keras.name_scope`.
        bilstm_units: units of each direction of the LSTM; 0 for none.

    Input:  as the first encoder.
    Output: dict of `sequence_output` (batch, length, width) and `pooled_output` (batch, width), where width is the sum
            of the encoders' widths, or 2 * bilstm_units.
    Raises: ValueError for packed encoders, or vocabularies of different sizes.
    """

    def __init__(self, encoders, bilstm_units=0, name="stacked_encoder", trainable=True):
        first, *others = encoders
        sizes = {encoder.config.vocabulary_size for encoder in encoders}
        if len(sizes) > 1 or any(encoder.packed for encoder in encoders):
            raise ValueError(f"Join encoders of one vocabulary, not packed: the sizes are {sizes}.")
        rows = [{name: first.input[name] for name in encoder.input} for encoder in (first, *others)]
        parts = [(first, first.output)]
        parts += [(other, other(of_other)) for other, of_other in zip(others, rows[1:], strict=True)]
        hidden = joined([outputs["sequence_output"] for _, outputs in parts])
        if bilstm_units:
            lstm = keras.layers.LSTM(bilstm_units, return_sequences=True, dtype="float32", name="lstm")
            is_token = ops.cast(first.input["padding_mask"], "bool")
            hidden = keras.layers.Bidirectional(lstm, dtype="float32", name="bilstm")(hidden, mask=is_token)
            # 0 at padding, as Keras' Bidirectional gives it, but without the mask that Keras attaches to it: that would
            # reach losses and metrics.
            hidden = hidden * ops.cast(ops.expand_dims(is_token, -1), "float32")
            last = LastToken(dtype="float32", name="bilstm_last_token")(hidden, first.input["padding_mask"])
            pooled = joined([last[:, :bilstm_units], hidden[:, 0, bilstm_units:]])
        else:
            pooled = joined(
                [encoder.pooled(outputs, seen) for (encoder, outputs), seen in zip(parts, rows, strict=True)]
            )
        outputs = {"sequence_output": hidden, "pooled_output": pooled}
        AdaptedModel.__init__(self, inputs=first.input, outputs=outputs, name=name, trainable=trainable)
        self.config, self.dtype_policy, self.packed = first.config, first.dtype_policy, False
        self.bilstm_units = bilstm_units
        # Not tracked as layers, so that a pooler, which an LSTM's vector replaces, is not among the weights: it would
        # get no gradient, of which Keras warns.
        object.__setattr__(self, "encoders", list(encoders))

    def for_task(self, task):
        if any(encoder.for_task(task) is not encoder for encoder in self.encoders):
            raise ValueError(
                f"What a {self.config.family} computes follows from the head, which a StackedEncoder does not pass on: "
                f"build its encoders with task={task!r}."
            )
        return self

    def get_config(self):
        encoders = [keras.saving.serialize_keras_object(encoder) for encoder in self.encoders]
        own = {"bilstm_units": self.bilstm_units, "name": self.name, "trainable": self.trainable}
        return {"encoders": encoders, **own}

    @classmethod
    def from_config(cls, config):
        encoders = [keras.saving.deserialize_keras_object(encoder) for encoder in config["encoders"]]
        return cls(**{**config, "encoders": encoders})


def joined(arrays):
    """The arrays side by side along the last axis."""
    return ops.concatenate(arrays, axis=-1) if len(arrays) > 1 else arrays[0]


@dataclasses.dataclass(frozen=True)
class StackedTask:
    """The parts of another task, with what section 5.1 of the paper puts between its encoder and its head.

    Args:
        task: its name.
        data: the directory with its files, for a task of tables.
        join: checkpoint directory of a second encoder, whose vectors are joined to those of the first.
        bilstm_units: units of each direction of an LSTM over the encoder; 0 for none.
        adapted: the task once it is suited to its training examples.
    """

    task: str = "mrpc"
    data: str = ""
    join: str | None = None
    bilstm_units: int = 0
    adapted: object = None

    @property
    def inner(self):
        """The other task."""
        return self.adapted or find_task(FinetuneConfig(self.data, "", "", self.task), self.data)

    def __getattr__(self, part):
        return getattr(self.inner, part)

    def suited_to(self, train):
        """The same over a task that is suited to the training examples, if that can be."""
        suited = self.inner.suited_to(train) if hasattr(self.inner, "suited_to") else self.inner
        return dataclasses.replace(self, adapted=suited)

    def build(self, encoder, tokenizer, class_names, sequence_length):
        """The task's model over a StackedEncoder; a study keeps the figures of models, and does not save them."""
        encoders = [encoder] if self.join is None else [encoder, joined_encoder(self.join, encoder)]
        stack = StackedEncoder(encoders, self.bilstm_units)
        model = self.inner.build(stack, tokenizer, class_names, sequence_length)
        model.save_pretrained = lambda directory: None
        return model


def joined_encoder(directory, first):
    """The encoder of a checkpoint, with weights whose paths begin with "joined"; precision and dropout are those of the
    first encoder."""
    checkpoint, policy = checkpoints.open_checkpoint(directory), first.dtype_policy
    with keras.name_scope("joined"):
        shape = with_dropout(checkpoint.config, first.config.hidden_dropout_rate)
        encoder = build_encoder(shape, dtype=policy, name="joined_encoder")
    stored = checkpoints.build_filled(lambda: build_encoder(checkpoint.config, dtype=policy), checkpoint)
    for weight, value in zip(encoder.weights, stored.weights, strict=True):
        distribution.assign_whole(weight, distribution.to_numpy(value).copy())
    return encoder


TASK = StackedTask()
