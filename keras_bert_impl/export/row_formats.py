"""Writes a trained model in the formats of runtimes that take rows of ids: ONNX, OpenVINO and LiteRT."""

from keras_bert_impl.export import export_files, precisions, row_samples, runtimes
from keras_bert_impl.export.formats import FORMATS
from keras_bert_impl.export.new_export import new_export


def export_onnx(
    model, directory, tokenizer=None, sequence_length=None, overwrite=False, precision="float32", figures=None
):
    """Writes an ONNX file, which ONNX Runtime runs, whichever backend trained the model.

    The file takes rows of ids, `token_ids`, `segment_ids` and `padding_mask`, int32 (batch, length), both sizes free;
    for choices (batch, choices, length), and for masked words also `mask_positions`, (batch, masks). Its outputs,
    float32, are those of the model's `named_outputs`. Beside it lie the files that `export_files.write` lists; with
    tokenizer.json, the `tokenizers` library alone makes the rows.

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
    write_rows("onnx", model, directory, tokenizer, sequence_length, overwrite, precision, figures)


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
    texts = calibration_texts
    write_rows("openvino", model, directory, tokenizer, sequence_length, overwrite, precision, figures, texts)


def export_litert(
    model, directory, tokenizer=None, sequence_length=None, overwrite=False, precision="float32", figures=None
):
    """Writes a LiteRT file, model.tflite; see `export_onnx`. On JAX or torch, a process that runs TensorFlow writes it.

    Its signature takes and returns arrays by name; the interpreter adapts to another size of rows by itself.
    """
    write_rows("litert", model, directory, tokenizer, sequence_length, overwrite, precision, figures)


def write_rows(
    name, model, directory, tokenizer, sequence_length, overwrite, precision, figures, calibration_texts=None
):
    """Writes an export in a format that takes rows, compares it with the model, and rewrites it in another precision
    than float32; see `export_onnx`."""
    form = FORMATS[name]
    precisions.check_precision(name, form, precision, calibration_texts)
    row_samples.check_not_quantized(model)
    with new_export(name, model, directory, tokenizer, sequence_length, overwrite) as (target, *settings):
        samples = row_samples.read(target)
        difference = row_samples.check_equal(form.open(target, None, "float32"), samples)
        if precision != "float32":
            rows = calibration_texts and precisions.calibration_rows(model, calibration_texts, *settings)
            form.reduce(target / form.main_file, precision, rows)
            difference = row_samples.largest_difference(form.open(target, None, precision), samples)
        (target / row_samples.FILE).unlink()
        facts = {"outputs": row_samples.axes_of_outputs(samples), "largest_difference": difference}
        if precision == "int8" and name != "litert":
            facts["weight_bits"] = 7 if runtimes.saturates() else 8
        export_files.write(model, *settings, target, name, precision, figures, **facts)
