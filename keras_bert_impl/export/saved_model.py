"""Writes a trained model as a SavedModel that takes strings, whichever backend trained it.

The graphs themselves are in `text_graphs`, the only module here that imports TensorFlow.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import keras

from keras_bert_impl.export.served_models import MODELS, kind_of
from keras_bert_impl.models.pretrained import check_vocabulary, tokenizer_to_config


def export_saved_model(model, directory, tokenizer=None, sequence_length=None, overwrite=False):
    """Writes a SavedModel that takes raw strings; TensorFlow and tensorflow_text alone load it.

    Unless stated otherwise, a signature takes `text`, (batch,) strings. Any string is accepted, including the empty one
    and invalid UTF-8.

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
        `words`, `labels`, `probabilities` (batch, words), padded with ""; a word that is cut off has the label ""
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

    On JAX or torch, the SavedModel is written by a separate process that runs TensorFlow.

    Args:
        model: a model of one of these kinds.
        directory: target directory; it is written completely or not at all, and may be moved afterwards.
        tokenizer: a WordPieceTokenizer; None means the model's own, which an encoder does not have.
        sequence_length: longer texts are cut to this many tokens; None means the model's own, or an encoder's
            max_length.
        overwrite: whether to replace a SavedModel that is already there.

    Raises: ValueError if the directory is not empty, or if the model is of another kind, has no tokenizer, takes fewer
        tokens, or is of a class that the TensorFlow process cannot import; ImportError without TensorFlow;
        RuntimeError if the TensorFlow process fails, with its error messages.
    """
    _check_model(model)
    encoder = getattr(model, "encoder", model)
    tokenizer = tokenizer or getattr(model, "tokenizer", None)
    if tokenizer is None:
        raise ValueError(
            f"A SavedModel that takes text needs a tokenizer, and this {type(model).__name__} has none: "
            "pass tokenizer=WordPieceTokenizer('vocab.txt')."
        )
    check_vocabulary(tokenizer, encoder)
    _check_long_texts(model)
    sequence_length = sequence_length or getattr(model, "sequence_length", encoder.config.max_length)
    if sequence_length > encoder.config.max_length:
        raise ValueError(
            f"sequence_length {sequence_length} exceeds the encoder's max_length {encoder.config.max_length}."
        )
    _check_tensorflow()
    directory = pathlib.Path(directory).absolute()
    _check_target(directory, overwrite)
    write = _write_here if keras.backend.backend() == "tensorflow" else _write_in_tensorflow_process
    with _replaced_when_whole(directory) as target:
        write(model, tokenizer, sequence_length, target)


def _write_here(model, tokenizer, sequence_length, target):
    # Imported here and not at the top: with JAX or torch this module is imported without TensorFlow.
    from keras_bert_impl.export import text_graphs

    text_graphs.write(model, tokenizer, sequence_length, target)


def _write_in_tensorflow_process(model, tokenizer, sequence_length, target):
    described = class_for_another_process(model)
    with tempfile.TemporaryDirectory() as handover:
        # Not a .keras file: it would also hold the loss, which may be a function that the other process cannot find.
        description = {
            "class": (described.__module__, described.__name__),
            "config": model.get_config(),
            "tokenizer": tokenizer_to_config(tokenizer),
            "sequence_length": sequence_length,
        }
        pathlib.Path(handover, "model.json").write_text(json.dumps(description), encoding="utf-8")
        model.save_weights(pathlib.Path(handover, "model.weights.h5"))
        command = [sys.executable, "-m", "keras_bert_impl.export.text_graphs", handover, target]
        process = subprocess.run(command, env=_tensorflow_environment(), capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"The TensorFlow process that writes the SavedModel failed:\n{process.stderr.strip()}")


def class_for_another_process(model):
    """The class from which another process builds the model: for a subclass that computes what its parent does, the
    parent.

    Raises: ValueError if a class of the user's own changes what is computed and another process cannot import it.
    """
    kind, own = kind_of(model), type(model)
    between = own.__mro__[: own.__mro__.index(kind)]
    if not any(name in vars(parent) for parent in between for name in ("__init__", "call", "get_config")):
        return kind
    if own.__module__ == "__main__" or "<locals>" in own.__qualname__:
        raise ValueError(
            f"{own.__name__} computes what its parent {kind.__name__} does not, and the TensorFlow process that "
            f"writes the SavedModel cannot import it from {own.__module__}: define the class at the top level of a "
            "module of its own."
        )
    return own


def _tensorflow_environment():
    package_root = str(pathlib.Path(__file__).parents[2])
    # The new process can import whatever this one can, including a user's class.
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")]), *filter(None, sys.path)]
    return {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "PYTHONPATH": os.pathsep.join(paths),
        "CUDA_VISIBLE_DEVICES": "-1",  # the training process may hold all memory of the GPU; writing needs none
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


def _check_model(model):
    if not isinstance(model, MODELS):
        names = [kind.__name__ for kind in MODELS]
        raise ValueError(
            f"A SavedModel can be made of a {', '.join(names[:-1])} or {names[-1]}, not of a {type(model).__name__}. "
            "A Pretrainer becomes a MaskedLM with save_pretrained and MaskedLM.from_pretrained."
        )
    if getattr(model, "encoder", model).packed:
        raise ValueError(
            "The encoder takes packed rows, with several sequences in each; a SavedModel serves one text in each row. "
            "Save the model with save_pretrained, and load it without packed=True."
        )


def _check_long_texts(model):
    if getattr(model, "long_texts", "cut") != "cut":
        raise ValueError(
            f"The model reads long texts as {model.long_texts!r}, but a SavedModel cuts them: set model.long_texts to "
            "'cut' to accept that."
        )


def _check_tensorflow():
    missing = [name for name in ("tensorflow", "tensorflow_text") if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"A SavedModel needs {' and '.join(missing)} to be installed: pip install 'keras_bert_impl[tensorflow]' "
            "(tensorflow-text does not exist for Windows: save the model with save_pretrained, and export the "
            "checkpoint under WSL or Linux)."
        )


def _check_target(directory, overwrite):
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    if not overwrite:
        raise ValueError(f"{directory} exists: name another directory, remove it, or pass overwrite=True.")
    if not (directory / "saved_model.pb").is_file():
        raise ValueError(f"{directory} is not a SavedModel, so overwrite=True leaves it alone: name another directory.")


@contextlib.contextmanager
def _replaced_when_whole(directory):
    """Yields a path next to `directory` to write to, which replaces `directory` unless an exception is raised."""
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
