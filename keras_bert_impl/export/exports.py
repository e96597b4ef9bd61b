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
    """Writes a SavedModel that takes raw strings; TensorFlow and tensorflow_text alone load it.

    Unless stated otherwise, a signature takes `text`, (batch,) strings. Any string is accepted, including the empty one
    and invalid UTF-8. Single texts that are longer than a row are read as the model's `long_texts` says; where it has
    none, and in pairs, they are cut.

    TextClassifier, `serving_default`, and `pairs`, which also takes `text_pair`:
        `logits` and `probabilities` (batch, classes), `class_id` (batch,), `label` (batch,), the name of the class.
        With multi_label: `logits`, `probabilities` (batch, classes), the sigmoid for each class, and `labels` (batch,
        most), the names of the classes of probability above 0.5, the likeliest first, padded with ""
    MaskedLM, `serving_default`; a text without [MASK] has no guesses:
        `tokens`, `token_ids`, `probabilities` (batch, masks, 5), the likeliest first, where masks is the largest number
        of masks in a text; padded with "", the id of [PAD] and 0
    TextRegressor, `serving_default`, and `pairs`, which also takes `text_pair`:
        `value` (batch,)
    TokenClassifier, `serving_default`; words are separated by white space:
        `words`, `labels`, `probabilities` (batch, words), padded with ""; of texts of any length, as `tag` reads them
    MultipleChoice, `serving_default`, which also takes `endings`, (batch, choices) strings:
        `logits`, `probabilities` (batch, choices), `class_id` (batch,), the number of the likeliest ending
    NextSentencePredictor, `serving_default`, which also takes `text_pair`:
        `logits` (batch, 2), `probability` (batch,) that `text_pair` follows `text`
    QuestionAnswerer, `serving_default`, which takes `question` and `context`, of any length:
        `answer` (batch,), `begin` and `end`, its bytes in the context, `score`, `null_odds`, higher if no answer is
        likelier
    TextEmbedder, `serving_default`:
        `vector` (batch, width)
    An encoder, `serving_default`:
        `pooled_output`, if it has a pooler, and `mean_pooled` (batch, hidden_size), the mean over all tokens of the
        text, [CLS] and [SEP] included; `sequence_output` (batch, length, hidden_size); `token_ids`, `padding_mask`

    Each of these that takes only `text` in `serving_default` also has the signature `attention`:
        `tokens` (batch, length), padded with "", and `attention` (batch, layers, heads, length, length): the share of
        the attention of a token (fourth axis) that a token (fifth axis) receives; 0 in the rows of padding

    On JAX or torch, the SavedModel is written by a separate process that runs TensorFlow. Beside the model lie the
    files that `export_files.write` lists.

    Args:
        model: a model of one of these kinds.
        directory: target directory; it is written completely or not at all, and may be moved afterwards.
        tokenizer: a Tokenizer; None means the model's own, which an encoder does not have.
        sequence_length: longer texts are cut to this many tokens; None means the model's own, or an encoder's
            max_length.
        overwrite: whether to replace a SavedModel that is already there.
        figures: scores of the model, for config.json: a dict that JSON can hold.

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
    """Writes an ONNX file, which ONNX Runtime runs, whichever backend trained the model.

    The file, onnx/model.onnx, has the names that transformers gives to arrays, so that sentence-transformers, optimum
    and transformers.js open the directory. It takes rows of ids, `input_ids`, `token_type_ids` and `attention_mask`,
    int64 (batch, length), both sizes free; for choices (batch, choices, length). Its outputs are float32: `logits`, and
    what follows from them; `start_logits` and `end_logits` of answers; `sentence_embedding` and `last_hidden_state` of
    a TextEmbedder; `last_hidden_state`, `pooler_output` and `mean_pooled` of an encoder. A masked LM has logits at all
    positions. Beside it lie the files that `export_files.write` lists; with tokenizer.json, the `tokenizers` library
    alone makes the rows.

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
    """Writes an OpenVINO model, openvino/openvino_model.xml and .bin, from the file of `export_onnx`; see there.

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
            f"The encoder takes {', '.join(more)}, which the rows of an export do not have: open the model without "
            "packed=True, and with global tokens by a rule."
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
