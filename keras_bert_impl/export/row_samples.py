"""The graph from rows of ids to named outputs that runtimes without strings serve, and rows with the outputs that the
Keras model gives for them: an export is compared with them before it is kept."""

import keras
import numpy as np

from keras_bert_impl.encoders.asked import kind_of
from keras_bert_impl.export.array_names import INPUTS, file_outputs, own_rows
from keras_bert_impl.models.span_answers import SCORE_OF_PADDING

FILE = "samples.npz"
TOLERANCE = 1e-4  # of the largest output, or of 1 if all outputs are smaller
# batch, length, choices; a length of 0 stands for the longest.
SIZES = ((3, 5, 2), (1, 0, 3))


def served(model):
    """The function to export: from a dict of the arrays of `arrays_of` to a dict of named outputs, all float32, which
    padding does not change. An embedder also gives the vectors of tokens, which other programs pool."""
    whole = None
    # A subclass may compute something else than its graph: then there are no tokens to pool.
    if hasattr(model, "pooling") and type(model).call is kind_of(model).call:
        tokens = keras.ops.cast(model.encoder.output["sequence_output"], "float32")
        whole = keras.Model(model.input, (model.output, {"sequence_output": tokens}))

    def function(arrays):
        rows = own_rows(model, arrays)
        outputs, more = whole(rows, training=False) if whole else (model(rows, training=False), {})
        return file_outputs(model.named_outputs(outputs, rows) | more)

    return function


def arrays_of(model):
    """The names of the axes of each input of a file by its name; all are int64, as transformers' are."""
    axes = ("batch", "choices", "length") if len(model.input["token_ids"].shape) == 3 else ("batch", "length")
    return dict.fromkeys(INPUTS, axes)


def quantization_of(model):
    """The names of the modes that Keras quantized a model to; "" for none."""
    return ", ".join(sorted({layer.quantization_mode for layer in model._flatten_layers()} - {None}))


def check_not_quantized(model):
    """Raises ValueError for a model that Keras has quantized."""
    if modes := quantization_of(model):
        raise ValueError(
            f"{type(model).__name__} {model.name!r} is quantized to {modes} by Keras, which only a "
            "SavedModel can hold: export the model before quantize()."
        )


def float32_model(model):
    """The model itself, or if it computes in another type, one of the same weights that computes in float32."""
    if getattr(model, "encoder", model).dtype_policy.name == "float32":
        return model
    config = model.get_config()
    (config["encoder"]["config"] if "encoder" in config else config)["dtype"] = "float32"
    copy = type(model).from_config(config)
    for to, weight in zip(copy.weights, model.weights, strict=True):
        to.assign(keras.ops.cast(weight, "float32"))
    return copy


def rows_of(model, size, longest, seed=0):
    """Random rows of a size, with padding in all but the first."""
    batch, length, choices = size
    axes = {"batch": batch, "length": min(length or longest, longest), "choices": choices}
    random, rows = np.random.default_rng(seed), {}
    vocabulary_size = getattr(model, "encoder", model).config.vocabulary_size
    for name, names in arrays_of(model).items():
        shape = tuple(axes[axis] for axis in names)
        rows[name] = random.integers(0, vocabulary_size if name == "input_ids" else 2, shape)
    rows["attention_mask"][:] = 1
    rows["attention_mask"][1:, ..., axes["length"] // 2 :] = 0
    return rows


def write(model, tokenizer, longest, target):
    """Writes rows of several sizes, which begin with [CLS], and the outputs of the model to the directory `target`."""
    function, arrays = served(model), {}
    for number, size in enumerate(SIZES):
        rows = rows_of(model, size, longest, number)
        # What is calibrated with texts has only seen this token there.
        rows["input_ids"][..., 0] = tokenizer.cls_id
        outputs = function({name: keras.ops.convert_to_tensor(array) for name, array in rows.items()})
        arrays |= {f"{number} in {name}": array for name, array in rows.items()}
        arrays |= {f"{number} out {name}": keras.ops.convert_to_numpy(array) for name, array in outputs.items()}
    np.savez(target / FILE, **arrays)


def read(target):
    """The pairs (rows, outputs) that `write` wrote, each a dict."""
    found = [({}, {}) for _ in SIZES]
    with np.load(target / FILE) as file:
        for key, array in file.items():
            number, way, name = key.split()
            found[int(number)][way == "out"][name] = array
    return found


def axes_of_outputs(samples):
    """The axes of each output by its name: a number where the size is the same for all rows, else its name."""
    (rows, outputs), (_, others) = samples[:2]
    names = ("batch", "length") if rows["input_ids"].ndim == 2 else ("batch", "choices", "length")
    sizes = dict(zip(rows["input_ids"].shape, names, strict=True))
    return {
        name: [size if size == other else sizes[size] for size, other in zip(shape, shapes, strict=True)]
        for name, shape, shapes in ((name, array.shape, others[name].shape) for name, array in outputs.items())
    }


def largest_difference(run, samples):
    """The largest difference between the outputs of `run`, a function of rows, and the model's, relative to the largest
    output or 1.

    Raises: RuntimeError if an output is missing, has another shape, or is not finite.
    """
    differences = []
    for rows, expected in samples:
        found = run(rows)
        for name, array in expected.items():
            if np.shape(found[name]) != array.shape or not np.isfinite(found[name]).all():
                raise RuntimeError(
                    f"The export gives {name} of shape {np.shape(found[name])} with "
                    f"{np.size(found[name]) - np.isfinite(found[name]).sum()} values that are not finite for rows of "
                    f"shape {rows['input_ids'].shape}; the model gives shape {array.shape}. Nothing was kept. Please "
                    "report this with the versions of the packages."
                )
            largest = np.abs(array).max(initial=1.0, where=array > SCORE_OF_PADDING)
            differences.append((np.abs(found[name] - array) / np.maximum(largest, np.abs(array))).max(initial=0))
    return float(max(differences))


def check_equal(run, samples):
    """`largest_difference`; raises RuntimeError if it is above the tolerance."""
    difference = largest_difference(run, samples)
    if difference > TOLERANCE:
        raise RuntimeError(
            f"The export's outputs differ from the model's by up to {difference:.2g} of the largest, more than "
            f"{TOLERANCE:g}. Nothing was kept. Please report this with the versions of the packages."
        )
    return difference
