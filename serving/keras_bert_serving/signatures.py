"""What a served model can be asked: the names, types and shapes of its inputs and outputs."""

import dataclasses

import numpy as np

from keras_bert_serving.errors import invalid

DEFAULT_SIGNATURE = "serving_default"
# Outputs of our exports whose second dimension is the longest row of the batch. The output named here shows how long
# the rows of one request are: it is empty or 0 in what was only added for the others in the batch.
WIDTH_SHOWN_BY = {
    frozenset({"words", "labels", "probabilities"}): "words",
    frozenset({"tokens", "token_ids", "probabilities"}): "tokens",
    frozenset({"logits", "probabilities", "labels"}): "labels",
    frozenset({"mean_pooled", "sequence_output", "token_ids", "padding_mask"}): "padding_mask",
    frozenset({"pooled_output", "mean_pooled", "sequence_output", "token_ids", "padding_mask"}): "padding_mask",
}
# Outputs of our exports that are as wide as an input, (batch, choices): only requests of equal widths are merged.
AS_WIDE_AS_INPUTS = frozenset({"logits", "probabilities", "class_id"})


@dataclasses.dataclass(frozen=True)
class Array:
    """An input or output of a signature: its NumPy dtype (object for strings) and shape; None is any size or rank."""

    dtype: np.dtype
    shape: tuple[int | None, ...] | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a SavedModel can be asked under one name.

    Attributes:
        inputs, outputs: Array by name.
        method_name: as the SavedModel has it, such as tensorflow/serving/predict.
        mergeable: whether the rows of several requests may run as one batch, and each get what it would get alone, so
            that those of one request may run in several.
    """

    name: str
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    method_name: str

    @property
    def mergeable(self):
        in_rows = all(
            array.shape and array.shape[0] is None for array in (*self.inputs.values(), *self.outputs.values())
        )
        return in_rows and (self._fixed_widths or frozenset(self.outputs) in WIDTH_SHOWN_BY)

    @property
    def _fixed_widths(self):
        fixed = all(None not in array.shape[1:] for array in self.outputs.values())
        return fixed or frozenset(self.outputs) == AS_WIDE_AS_INPUTS

    def cut_to_own_width(self, outputs):
        """Of the rows of one request, taken out of a batch: the columns that they would have alone."""
        shown_by = WIDTH_SHOWN_BY.get(frozenset(self.outputs))
        if shown_by is None or self._fixed_widths:
            return outputs
        shown = outputs[shown_by]
        is_used = shown != (b"" if shown.dtype == object else 0)
        used = is_used.any(axis=(0, *range(2, is_used.ndim)))
        width = int(used.nonzero()[0].max(initial=-1)) + 1
        wide = {name for name, array in self.outputs.items() if array.shape[1:] and array.shape[1] is None}
        return {name: array[:, :width] if name in wide else array for name, array in outputs.items()}


def find_signature(servable, name):
    """The Signature of a name; "" means the default. Raises ServingError."""
    name = name or DEFAULT_SIGNATURE
    if name not in servable.signatures:
        raise invalid(
            f'Serving signature name: "{name}" not found in signature def: model {servable.name} has '
            f"{', '.join(sorted(servable.signatures))}."
        )
    return servable.signatures[name]
