"""Writes a trained model in each format: a SavedModel that takes strings, or a file that takes rows of ids.

The graphs themselves are in `text_signatures`, `onnx_graph` and `litert_graph`, each of which imports its backend.
"""

import contextlib
import pathlib
import shutil
import tempfile

from keras_bert_impl import features
from keras_bert_impl.export import export_files, precisions, row_samples, runtimes
from keras_bert_impl.export.formats import FORMATS
from keras_bert_impl.export.handover import write_on
from keras_bert_impl.models.pretrained import check_tokenizer_fits
from keras_bert_impl.models.task_model import checked_sequence_length


def export_saved_model(model, directory, tokenizer=None, sequence_length=None, overwrite=False, figures=None):
    """Exports a model as a TensorFlow SavedModel that takes raw strings, for TensorFlow Serving and C++.

    TensorFlow and tensorflow_text alone load it. Any string is accepted, including the empty one and invalid UTF-8. The
    signature `serving_default` takes `text`, (batch,) strings, unless other inputs are given here:

    | model                 | inputs                | outputs                                                        |
    | ---                   | ---                   | ---                                                            |
    | TextClassifier        | `text`                | `logits`, `probabilities` (batch, classes); `class_id`,        |
    |                       |                       | `label` (batch,)                                               |
    | with multi_label      | `text`                | `logits`, `probabilities` (batch, classes); `labels` (batch,   |
    |                       |                       | most), classes above 0.5, the likeliest first, padded with ""  |
    | TextRegressor         | `text`                | `value` (batch,)                                               |
    | TokenClassifier       | `text`                | `words`, `labels`, `probabilities` (batch, words), padded with |
    |                       |                       | ""; words are separated by white space                         |
    | MultipleChoice        | `text`, `endings`     | `logits`, `probabilities` (batch, choices); `class_id`         |
    |                       | (batch, choices)      | (batch,)                                                       |
    | NextSentencePredictor | `text`, `text_pair`   | `logits` (batch, 2); `probability` (batch,)                    |
    | QuestionAnswerer      | `question`, `context` | `answer`, `begin`, `end` (bytes of the context), `score`,      |
    |                       |                       | `null_odds` (batch,), higher if no answer is likelier          |
    | MaskedLM              | `text`                | `tokens`, `token_ids`, `probabilities` (batch, masks, 5), the  |
    |                       |                       | likeliest first, padded with "", the ID of [PAD] and 0         |
    | TextEmbedder          | `text`                | `vector` (batch, width)                                        |
    | encoder               | `text`                | `pooled_output` (if it has a pooler), `mean_pooled` (batch,    |
    |                       |                       | hidden_size); `sequence_output` (batch, length, hidden_size);  |
    |                       |                       | `token_ids`, `padding_mask` (batch, length)                    |

    TextClassifier and TextRegressor also have the signature `pairs`, which takes `text_pair` as well. Models that take
    only `text` have the signature `attention`: `tokens` (batch, length), padded with "", and `attention` (batch,
    layers, heads, length, length), the attention that each token (fourth axis) pays to each (fifth axis), 0 for
    padding.

    Texts above sequence_length are read as the model's `long_texts` says; without it, and in pairs, they are truncated.
    A TokenClassifier and a QuestionAnswerer read texts of any length. A text without [MASK] has no guesses. On JAX or
    torch, a separate process that runs TensorFlow writes the SavedModel. The directory also holds config.json, the
    tokenizer's files, and example.py, a program that runs the model.

        kbi.export.export_saved_model(model, "exported")

    Args:
        model (keras.Model): a model of one of the kinds in the table, or an encoder.
        directory (str or pathlib.Path): target; it is written completely or not at all, and can be moved afterwards.
        tokenizer (Tokenizer, optional): tokenizer. Default: the model's own, which an encoder does not have.
        sequence_length (int, optional): number of tokens that texts are truncated to. Default: the model's own; an
            encoder's max_length.
        overwrite (bool, optional): whether to replace an export that is already there. Default: False.
        figures (dict, optional): metrics of the model for config.json, of values that JSON can hold. Default: None.

    Raises: ValueError if the directory is not empty, or if the model is of another kind, has no tokenizer, takes fewer
        tokens, or is of a class that the TensorFlow process cannot import; ImportError without TensorFlow; RuntimeError
        if the TensorFlow process fails, with its error messages.
    """
    # What the model computes in, or the mode that Keras quantized it to.
    precision = row_samples.quantization_of(model) or getattr(model, "encoder", model).dtype_policy.name
    with new_export("saved_model", model, directory, tokenizer, sequence_length, overwrite) as (target, *settings):
        export_files.write(model, *settings, target, "saved_model", precision, figures)


def export_onnx(
    model, directory, tokenizer=None, sequence_length=None, overwrite=False, precision="float32", figures=None
):
    """Exports a model as an ONNX file, for ONNX Runtime, transformers.js and optimum, from any backend.

    The file is onnx/model.onnx, with transformers' names of arrays. Its inputs are `input_ids`, `token_type_ids` and
    `attention_mask`, int64 (batch, length), both sizes free; for choices (batch, choices, length). Its outputs are
    float32:

    | model             | outputs                                              |
    | ---               | ---                                                  |
    | classifiers       | `logits`, and what follows from them                 |
    | MaskedLM          | `logits` at all positions                            |
    | QuestionAnswerer  | `start_logits`, `end_logits`                         |
    | TextEmbedder      | `sentence_embedding`, `last_hidden_state`            |
    | encoder           | `last_hidden_state`, `pooler_output`, `mean_pooled`  |

    The directory also holds config.json, tokenizer.json, with which the `tokenizers` library makes the inputs, and
    example.py, a program that runs the model. Weights of other types are exported in float32. On TensorFlow or JAX, a
    separate process that runs torch writes the file. The export is kept only if ONNX Runtime's outputs for inputs of
    several sizes equal the model's to 1e-4 of the largest output.

        kbi.export.export_onnx(model, "exported")
        answers = kbi.export.open_export("exported")(["A wonderful film."])

    Args:
        model (keras.Model): a model of one of the kinds in the table, or an encoder.
        directory (str or pathlib.Path): target; it is written completely or not at all, and can be moved afterwards.
        tokenizer (Tokenizer, optional): tokenizer. Default: the model's own, which an encoder does not have.
        sequence_length (int, optional): number of tokens that texts are truncated to. Default: the model's own; an
            encoder's max_length.
        overwrite (bool, optional): whether to replace an export that is already there. Default: False.
        precision (str, optional): "float32", "float16", "int8_weights" or "int8". Default: "float32".
        figures (dict, optional): metrics of the model for config.json, of values that JSON can hold. Default: None.

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
    """Exports a model for OpenVINO, for Intel's processors: openvino/openvino_model.xml and .bin.

    It is made from the file of `export_onnx`, with the same inputs, outputs and errors. Open it with
    INFERENCE_PRECISION_HINT f32, as its example.py does: by default OpenVINO computes in bfloat16 where the processor
    can, and the outputs differ from the model's.

    Args:
        model (keras.Model): a model of one of the kinds in the table, or an encoder.
        directory (str or pathlib.Path): target; it is written completely or not at all, and can be moved afterwards.
        tokenizer (Tokenizer, optional): tokenizer. Default: the model's own, which an encoder does not have.
        sequence_length (int, optional): number of tokens that texts are truncated to. Default: the model's own; an
            encoder's max_length.
        overwrite (bool, optional): whether to replace an export that is already there. Default: False.
        precision (str, optional): "float32", "float16", "bfloat16", "int8_weights" or "int8".
            Default: "float32".
        figures (dict, optional): metrics of the model for config.json, of values that JSON can hold. Default: None.
        calibration_texts (list, optional): a few hundred typical texts, as `predict` takes them, for the precision
            "int8". Default: None.
    """
    texts = calibration_texts
    write_rows("openvino", model, directory, tokenizer, sequence_length, overwrite, precision, figures, texts)


def export_litert(
    model, directory, tokenizer=None, sequence_length=None, overwrite=False, precision="float32", figures=None
):
    """Exports a model for LiteRT (TensorFlow Lite), for phones: model.tflite.

    Inputs, outputs and errors are those of `export_onnx`. Its signature takes and returns arrays by name; the
    interpreter adapts to other sizes by itself. On JAX or torch, a separate process that runs TensorFlow writes the
    file.

    Args:
        model (keras.Model): a model of one of the kinds in the table, or an encoder.
        directory (str or pathlib.Path): target; it is written completely or not at all, and can be moved afterwards.
        tokenizer (Tokenizer, optional): tokenizer. Default: the model's own, which an encoder does not have.
        sequence_length (int, optional): number of tokens that texts are truncated to. Default: the model's own; an
            encoder's max_length.
        overwrite (bool, optional): whether to replace an export that is already there. Default: False.
        precision (str, optional): "float32", "int8_weights" or "int8". Default: "float32".
        figures (dict, optional): metrics of the model for config.json, of values that JSON can hold. Default: None.
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


@contextlib.contextmanager
def new_export(name, model, directory, tokenizer, sequence_length, overwrite):
    """After all checks, the directory with a model that is written in a format, which replaces `directory` at the end,
    the tokenizer, and the length of the longest row, where None means the model's own."""
    form = FORMATS[name]
    check_model(model)
    tokenizer, sequence_length = checked_text_settings(model, tokenizer, sequence_length)
    check_destination(directory, form.main_file, overwrite)
    runtimes.require(form.title, form.extra, form.packages)
    with replaced_when_whole(directory) as target:
        write_on(*form.writer, model, tokenizer, sequence_length, target)
        if form.convert is not None:
            form.convert(target)
            shutil.rmtree(target / "onnx")
        if not (target / form.main_file).is_file():
            raise FileNotFoundError(f"{form.title} was not written: {form.main_file} is missing.")
        yield target, tokenizer, sequence_length


def check_model(model):
    """Raises ValueError if the model is of a kind that cannot be exported, or does what an export cannot do."""
    if not hasattr(model, "asked"):
        raise ValueError(
            "An export can be made of an encoder or a model with one head that answers about texts, not of a "
            f"{type(model).__name__}. A Pretrainer becomes a MaskedLM by save_pretrained and MaskedLM.from_pretrained."
        )
    encoder = getattr(model, "encoder", model)
    if more := [name for name in encoder.input if name not in features.ENCODER_INPUTS]:
        raise ValueError(
            f"The encoder takes {', '.join(more)}, which the inputs of an export do not include: open the model "
            "without packed=True, and with global tokens by a rule."
        )


def checked_text_settings(model, tokenizer, sequence_length):
    """The tokenizer and the length of the longest row, where None means the model's own.

    Raises: ValueError if there is no tokenizer, it does not fit the model, or the model takes fewer tokens.
    """
    encoder = getattr(model, "encoder", model)
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    if tokenizer is None:
        raise ValueError(
            f"An export that takes text needs a tokenizer, and this {type(model).__name__} has none: "
            "pass tokenizer=WordPieceTokenizer('vocab.txt')."
        )
    check_tokenizer_fits(tokenizer, encoder)
    sequence_length = sequence_length or getattr(model, "sequence_length", encoder.config.max_length)
    return tokenizer, checked_sequence_length(sequence_length, encoder.config)


def check_destination(directory, main_file, overwrite):
    """Raises ValueError if there is something in the directory, unless it is an export with this main file that is to
    be replaced."""
    directory = pathlib.Path(directory)
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    if not overwrite or not (directory / main_file).is_file():
        raise ValueError(
            f"{directory} exists: name another directory, remove it, or, if it holds {main_file}, pass overwrite=True."
        )


@contextlib.contextmanager
def replaced_when_whole(directory):
    """Yields a path next to `directory` to write to, which replaces `directory` unless an exception is raised."""
    directory = pathlib.Path(directory).absolute()
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Next to it and hence on the same disk: only there a rename happens completely or not at all.
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as beside:
        written, replaced = pathlib.Path(beside, "written"), pathlib.Path(beside, "replaced")
        yield written
        if directory.exists():
            directory.rename(replaced)
        try:
            written.rename(directory)
        except OSError:
            if replaced.exists():
                replaced.rename(directory)
            raise
