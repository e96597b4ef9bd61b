"""Writes a trained model in the formats of runtimes that take rows of ids: ONNX, OpenVINO and LiteRT."""

import functools

from keras_bert_impl.export import export_files, opened, precisions, row_samples, runtimes
from keras_bert_impl.export.checks import check_model, checked_text_settings, require
from keras_bert_impl.export.destination import check_destination, replaced_when_whole
from keras_bert_impl.export.handover import write_on

ONNX_FILE, OPENVINO_FILE, LITERT_FILE = "model.onnx", "openvino_model.xml", "model.tflite"
ONNX_WRITER, LITERT_WRITER = "keras_bert_impl.export.onnx_graph", "keras_bert_impl.export.litert_graph"


def export_onnx(
    model, directory, tokenizer=None, sequence_length=None, overwrite=False, precision="float32", figures=None
):
    """Writes an ONNX file, which ONNX Runtime runs, whichever backend trained the model.

    The file takes rows of ids, `token_ids`, `segment_ids` and `padding_mask`, int32 (batch, length), both sizes free;
    of a MultipleChoice (batch, choices, length). Beside it lie the files that `export_files.write` lists; with
    tokenizer.json, the `tokenizers` library alone makes the rows. Outputs, float32:

    TextClassifier: `logits` and `probabilities` (batch, classes)
    TextRegressor: `value` (batch,)
    TokenClassifier: `logits` and `probabilities` (batch, length, classes)
    QuestionAnswerer: `start_logits` and `end_logits` (batch, length)
    MultipleChoice: `logits` and `probabilities` (batch, choices)
    NextSentencePredictor: `logits` (batch, 2), `probability` (batch,) that the second text follows
    MaskedLM, which also takes `mask_positions`, (batch, masks): `logits` (batch, masks, vocabulary)
    TextEmbedder: `vector` (batch, width)
    An encoder: its own outputs, and `mean_pooled` (batch, hidden_size)

    Weights of other types are exported in float32. On TensorFlow or JAX, a separate process that runs torch writes the
    file. Before anything is kept, ONNX Runtime computes rows of several sizes, which have to equal the model's to 1e-4
    of the largest output.

    Args:
        model: a model of one of these kinds.
        directory: target directory; it is written completely or not at all, and may be moved afterwards.
        tokenizer: a Tokenizer; None means the model's own, which an encoder does not have.
        sequence_length: longer texts are cut to this many tokens; None means the model's own, or an encoder's
            max_length.
        overwrite: whether to replace an export that is already there.
        precision: float32, float16, bfloat16, int8_weights or int8: what each format makes of it, by the tool of its
            runtime, is in `precisions`.
        figures: scores of the model, for config.json: a dict that JSON can hold.

    Raises: ValueError if the directory is not empty, if the format does not have the precision, or if the model is of
        another kind, quantized, has no tokenizer, takes fewer tokens, or is of a class that another process cannot
        import; ImportError that names what to install; RuntimeError if the process fails or the outputs differ.
    """
    tokenizer, sequence_length = _checked(model, directory, ONNX_FILE, tokenizer, sequence_length, overwrite)
    precisions.check_precision("onnx", precision, None)
    require("An ONNX file", "onnx", ("torch", "onnx", "onnxscript", "onnxruntime"))
    with replaced_when_whole(directory) as target:
        write_on("torch", ONNX_WRITER, model, tokenizer, sequence_length, target)
        reduce = functools.partial(precisions.reduce_onnx, target / ONNX_FILE, precision)
        _finish(model, tokenizer, sequence_length, target, "onnx", reduce, precision, figures)


def export_openvino(
    model,
    directory,
    tokenizer=None,
    sequence_length=None,
    overwrite=False,
    precision="float32",
    figures=None,
    calibration_texts=None,
):
    """Writes an OpenVINO model, openvino_model.xml and .bin; see `export_onnx`, from whose file OpenVINO makes it.

    It has to be opened with INFERENCE_PRECISION_HINT f32, as example.py does, to give the model's outputs: where the
    processor can, OpenVINO computes in bfloat16 by default. For the precision int8, `calibration_texts` are a few
    hundred typical texts, as the model's `predict` takes them.
    """
    tokenizer, sequence_length = _checked(model, directory, OPENVINO_FILE, tokenizer, sequence_length, overwrite)
    precisions.check_precision("openvino", precision, calibration_texts)
    require("An OpenVINO model", "openvino", ("torch", "onnx", "onnxscript", "openvino"))
    with replaced_when_whole(directory) as target:
        write_on("torch", ONNX_WRITER, model, tokenizer, sequence_length, target)
        convert_to_openvino(target / ONNX_FILE, target)
        (target / ONNX_FILE).unlink()
        rows = calibration_texts and precisions.calibration_rows(model, tokenizer, calibration_texts, sequence_length)
        reduce = functools.partial(precisions.reduce_openvino, target / OPENVINO_FILE, precision, rows)
        _finish(model, tokenizer, sequence_length, target, "openvino", reduce, precision, figures)


def export_litert(
    model, directory, tokenizer=None, sequence_length=None, overwrite=False, precision="float32", figures=None
):
    """Writes a LiteRT file, model.tflite; see `export_onnx`. On JAX or torch, a process that runs TensorFlow writes it.

    Its signature takes and returns arrays by name; the interpreter adapts to another size of rows by itself.
    """
    tokenizer, sequence_length = _checked(model, directory, LITERT_FILE, tokenizer, sequence_length, overwrite)
    precisions.check_precision("litert", precision, None)
    require("A LiteRT file", "litert", ("tensorflow", "ai_edge_litert"))
    with replaced_when_whole(directory) as target:
        write_on("tensorflow", LITERT_WRITER, model, tokenizer, sequence_length, target)
        reduce = functools.partial(precisions.reduce_litert, target / LITERT_FILE, precision)
        _finish(model, tokenizer, sequence_length, target, "litert", reduce, precision, figures)


def convert_to_openvino(onnx_file, directory):
    """Writes an ONNX file as openvino_model.xml and .bin, in float32, to a directory."""
    import openvino

    openvino.save_model(openvino.convert_model(onnx_file), directory / OPENVINO_FILE, compress_to_fp16=False)


def _checked(model, directory, main_file, tokenizer, sequence_length, overwrite):
    """The tokenizer and the length of the rows, after the checks that need no runtime."""
    check_model(model)
    row_samples.check_not_quantized(model)
    settings = checked_text_settings(model, tokenizer, sequence_length)
    check_destination(directory, main_file, overwrite)
    return settings


def _finish(model, tokenizer, sequence_length, target, format_name, reduce, precision, figures):
    """Compares the written model with the samples, lets `reduce` rewrite it in another precision than float32, and
    writes the files beside it."""
    samples = row_samples.read(target)
    difference = row_samples.check_equal(opened.open_rows(target, format_name, "float32"), samples)
    if precision != "float32":
        reduce()
        difference = row_samples.largest_difference(opened.open_rows(target, format_name, precision), samples)
    (target / row_samples.FILE).unlink()
    facts = {"outputs": row_samples.axes_of_outputs(samples), "largest_difference": difference}
    if precision == "int8" and format_name != "litert":
        facts["weight_bits"] = 7 if runtimes.saturates() else 8
    export_files.write(model, tokenizer, sequence_length, target, format_name, precision, figures, **facts)
