"""Writes the graph of a model from rows of ids to named outputs as an ONNX file.

Runs on Keras' torch backend, if need be in a process of its own; see `handover`. Of the converters that Keras uses,
torch's is the one that keeps layer norm and GELU as single operators, 260 operators for six layers, with batch and
length free; tf2onnx makes 937 of the same model, and knows no kernel for TensorFlow's exact GELU.
"""

import keras
import torch

from keras_bert_impl.export import handover, row_samples
from keras_bert_impl.export.precisions import quiet

FILE = "onnx/model.onnx"
OPSET = 20  # the first with Gelu; the Attention of 23 does not broadcast a mask over the queries in ONNX Runtime 1.32


def write(model, tokenizer, sequence_length, target):
    """Writes onnx/model.onnx, and samples for comparison, to the new directory `target`."""
    (target / FILE).parent.mkdir(parents=True)
    model = row_samples.float32_model(model)
    row_samples.write(model, tokenizer, sequence_length, target)
    axes = row_samples.arrays_of(model)
    rows = row_samples.rows_of(model, (3, min(7, sequence_length), 2), sequence_length)
    function = row_samples.served(model)
    # On the device of the weights, which may be a GPU.
    example = {name: keras.ops.convert_to_tensor(array) for name, array in rows.items()}
    # Warnings would be of torchvision, which is not needed, and of Keras' ways of keeping weights.
    with torch.no_grad(), quiet():
        outputs = list(function(example))
        exported = torch.onnx.export(
            OfArrays(model, function, list(axes)).eval(),
            tuple(example.values()),
            dynamo=True,
            input_names=list(axes),
            output_names=outputs,
            dynamic_shapes=(free_axes(axes, model),),
            opset_version=OPSET,
            verbose=False,
        )
    exported.save(target / FILE)


class OfArrays(torch.nn.Module):
    """A function of a dict as a module of as many arguments, which returns a tuple."""

    def __init__(self, model, function, names):
        super().__init__()
        self.model, self.function, self.names = model, function, names

    def forward(self, *arrays):
        return tuple(self.function(dict(zip(self.names, arrays, strict=True))).values())


def free_axes(axes, model):
    """For each input, which axes may have any size; rows are at most as long as the position table."""
    limits = {"length": {"max": getattr(model, "encoder", model).config.max_length}}
    sizes = {axis: torch.export.Dim(axis, **limits.get(axis, {})) for names in axes.values() for axis in names}
    return tuple({place: sizes[axis] for place, axis in enumerate(names)} for names in axes.values())


if __name__ == "__main__":
    handover.main(write)
