"""Opens any export for texts, by what its config.json says."""

import pathlib

import numpy as np

from keras_bert_impl.export import runtimes
from keras_bert_impl.json_files import read_json

FIELDS = {"token_ids": "ids", "segment_ids": "type_ids", "padding_mask": "attention_mask"}


def description_of(directory):
    """The field `export` of an export's config.json. Raises ValueError if the directory holds no export."""
    path = pathlib.Path(directory, "config.json")
    found = read_json(path).get("export") if path.is_file() else None
    if not isinstance(found, dict):
        raise ValueError(f"{directory} holds no export: make one with keras-bert export.")
    return found


def open_rows(directory, format_name, precision, threads=None):
    """A function from rows, a dict of arrays, to a dict of outputs, of an export in any format but SavedModel."""
    if format_name == "openvino":
        return runtimes.open_openvino(directory, threads, precision)
    return {"onnx": runtimes.open_onnx, "litert": runtimes.open_litert}[format_name](directory, threads)


def open_texts(directory, threads=None):
    """A function from texts, or pairs of texts, to a dict of outputs: tokenizing is part of it."""
    export = description_of(directory)
    if export["format"] == "saved_model":
        return open_saved_model(directory, threads)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(pathlib.Path(directory, "tokenizer.json")))
    run = open_rows(directory, export["format"], export["precision"], threads)

    def answer(texts):
        encodings = tokenizer.encode_batch(texts)
        return run(
            {name: np.array([getattr(one, field) for one in encodings], "int32") for name, field in FIELDS.items()}
        )

    return answer


def open_saved_model(directory, threads=None):
    """The signatures `serving_default`, and `pairs` for pairs, of a SavedModel, with arrays as outputs."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the tokenizer

    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    signatures = tf.saved_model.load(str(directory)).signatures

    def answer(texts):
        if isinstance(texts[0], tuple):
            first, second = map(list, zip(*texts, strict=True))
            outputs = signatures["pairs"](text=tf.constant(first), text_pair=tf.constant(second))
        else:
            outputs = signatures["serving_default"](text=tf.constant(texts))
        return {name: array.numpy() for name, array in outputs.items()}

    return answer
