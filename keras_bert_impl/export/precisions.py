"""Makes a written model smaller, and mostly faster, by the tools of its runtime.

| precision      | onnx                          | openvino                       | litert                       |
| ---            | ---                           | ---                            | ---                          |
| `float16`      | weights and activations       | weights                        | -                            |
| `bfloat16`     | -                             | computed in bfloat16           | -                            |
| `int8_weights` | in blocks of 32 (MatMulNBits) | per channel (nncf)             | per channel (AI Edge         |
|                |                               |                                | Quantizer)                   |
| `int8`         | activations as they come, one | activations calibrated, with   | activations as they come     |
|                | scale an array                | SmoothQuant (nncf)             |                              |

A SavedModel has the precision of the model itself: load the checkpoint with `dtype="bfloat16"`, or call
`quantize("int8")`.
"""

import contextlib
import io
import logging
import pathlib
import warnings

from keras_bert_impl.batching import SortedBatches
from keras_bert_impl.export.array_names import INPUTS
from keras_bert_impl.export.runtimes import require, saturates
from keras_bert_impl.preprocessing import ChoicePreprocessor, TextPreprocessor

ROWS_AT_ONCE = 8
NARROW = 16  # rows or columns of a table below which a product stays in float32
PRECISIONS = ("float32", "float16", "bfloat16", "int8_weights", "int8")


def check_precision(name, form, precision, calibration_texts):
    """Raises ValueError for a precision that a format does not have, or without texts to calibrate; ImportError without
    the tool."""
    reason = "" if precision in PRECISIONS else f"it can be {', '.join(PRECISIONS)}."
    if reason := form.lacks.get(precision, reason):
        raise ValueError(f"The format {name} has no {precision}: {reason}")
    if (name, precision) == ("openvino", "int8") and not calibration_texts:
        raise ValueError(
            "int8 in OpenVINO needs typical texts, to measure the ranges of activations: pass a few hundred as "
            "calibration_texts, or use int8_weights, which needs none."
        )
    if precision.startswith("int8"):
        require(f"{precision} for {name}", form.extra, form.tools)


def reduce_onnx(path, precision, calibration_rows=None):
    """Rewrites an ONNX file in a precision."""
    import onnx
    from onnxruntime import quantization
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    from onnxruntime.transformers import float16

    with quiet():
        if precision == "int8":
            weights = quantization.QuantType.QInt8
            # Only products of matrices: a rounded embedding would have one scale for all its words.
            quantization.quantize_dynamic(
                path, path, ["MatMul"], per_channel=True, weight_type=weights, reduce_range=saturates()
            )
            return
        model = onnx.load(path)
        if precision == "float16":
            model = float16.convert_float_to_float16(model, keep_io_types=True)
        else:
            # accuracy_level 4 rounds activations, too, but in blocks of 32 numbers with a scale each, to use the
            # processor's products of bytes.
            quantizer = MatMulNBitsQuantizer(model, bits=8, block_size=32, is_symmetric=True, accuracy_level=4)
            quantizer.process()
            model = quantizer.model.model
        onnx.save(model, path)


def reduce_openvino(path, precision, calibration_rows):
    """Rewrites an OpenVINO model in a precision; `calibration_rows` is a list of dicts of arrays, for int8 alone."""
    import openvino

    with quiet():
        # Read into memory as a whole: otherwise the file would be written while it is read.
        weights = path.with_suffix(".bin").read_bytes()
        model = openvino.Core().read_model(path.read_bytes(), weights)
        if precision.startswith("int8"):
            import nncf
            from nncf.quantization.range_estimator import RangeEstimatorParametersSet

            if precision == "int8_weights":
                model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
            else:
                # The whole range of all rows: nncf's own, the mean of the ranges of batches, cuts the few large numbers
                # of a BERT, more of them the smaller the batches.
                how = nncf.AdvancedQuantizationParameters(
                    overflow_fix=nncf.OverflowFix.ENABLE if saturates() else nncf.OverflowFix.DISABLE,
                    activations_range_estimator_params=RangeEstimatorParametersSet.MINMAX,
                )
                model = nncf.quantize(
                    model,
                    nncf.Dataset(calibration_rows),
                    model_type=nncf.ModelType.TRANSFORMER,
                    subset_size=len(calibration_rows),
                    ignored_scope=nncf.IgnoredScope(names=narrow_products(model), validate=False),
                    advanced_parameters=how,
                )
        # What is not in eight bits, such as the embeddings, is stored in sixteen.
        openvino.save_model(model, path, compress_to_fp16=True)


def narrow_products(model):
    """The names of an OpenVINO model's products with a small table: of segments, and of heads with few classes.

    They cost nothing in float32. If no text of calibration has a second segment, SmoothQuant takes its column for one
    of zeros, and pairs that are served later get wrong outputs.
    """
    products = [node for node in model.get_ops() if node.get_type_name() == "MatMul"]
    shapes = {node.get_friendly_name(): node.input_value(1).get_partial_shape() for node in products}
    return [name for name, shape in shapes.items() if shape.is_static and min(shape.to_shape()) < NARROW]


def reduce_litert(path, precision, calibration_rows=None):
    """Rewrites a LiteRT file in a precision."""
    from ai_edge_quantizer import quantizer, recipe

    with quiet():
        steps = quantizer.Quantizer(str(path))
        how = recipe.dynamic_wi8_afp32() if precision == "int8" else recipe.weight_only_wi8_afp32()
        steps.load_quantization_recipe(how)
        path.write_bytes(steps.quantize().quantized_model)


def calibration_rows(model, texts, tokenizer, sequence_length):
    """Rows of texts as the file takes them, in batches of similar length: a list of dicts."""
    preprocessor = ChoicePreprocessor if model.asked.task == "choose" else TextPreprocessor
    rows = preprocessor(tokenizer, sequence_length).rows(texts)
    batches = SortedBatches(tokenizer, rows, ROWS_AT_ONCE, sequence_length, multiple=1)
    found = [batches.whole_batch(number) for number in range(batches.num_batches)]
    return [{theirs: rows[ours].astype("int64") for theirs, ours in INPUTS.items()} for rows in found]


@contextlib.contextmanager
def quiet():
    """Hides the progress and the warnings that the tools print and log."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            with warnings.catch_warnings(action="ignore"):
                yield
    finally:
        logging.disable(level)


def size_of(directory):
    """Bytes of an exported model, without the files beside it."""
    parts = ("saved_model.pb", "variables", "assets", "onnx", "openvino", "model.tflite")
    roots = [pathlib.Path(directory, part) for part in parts]
    found = [path for root in roots for path in (root, *root.rglob("*"))]
    return sum(path.stat().st_size for path in found if path.is_file())
