"""Opens any export for texts, by what its config.json says."""

import functools
import os
import pathlib

import numpy as np

from keras_bert_impl.batching import means_of_texts
from keras_bert_impl.checkpoints.huggingface import MULTI_LABEL
from keras_bert_impl.export import runtimes
from keras_bert_impl.export.array_names import own_outputs
from keras_bert_impl.export.formats import FORMATS
from keras_bert_impl.json_files import read_json
from keras_bert_impl.models.answers import of_length_one, sigmoid, softmax

ROWS = 64  # windows of long texts that are computed at once
# Format and precision of which all activations of a run are rounded by one scale: each row runs alone and without
# padding, so that no answer depends on the others.
ALONE = {("onnx", "int8")}
# The inputs of a SavedModel's signature that takes pairs, in the order of a pair.
PAIRS = (("text", "text_pair"), ("question", "context"), ("text", "endings"))
FIELDS = {"input_ids": "ids", "token_type_ids": "type_ids", "attention_mask": "attention_mask"}


def description_of(directory):
    """The field `export` of an export's config.json. Raises ValueError if the directory holds no export."""
    path = pathlib.Path(directory, "config.json")
    found = read_json(path).get("export") if path.is_file() else None
    if not isinstance(found, dict):
        raise ValueError(f"{directory} holds no export: make one with keras-bert export.")
    return found


def open_texts(directory, threads=None):
    """A function from texts, or pairs of texts, to a dict of outputs: tokenizing is part of it."""
    export = description_of(directory)
    main_file = FORMATS[export["format"]].main_file
    if not pathlib.Path(directory, main_file).is_file():
        raise ValueError(f"{directory} lacks {main_file}: export the model again, if it was made by an older version.")
    if export["format"] == "saved_model":
        return open_saved_model(directory, threads)
    runtimes.warn_of_overflow(directory, export)
    run = FORMATS[export["format"]].open(directory, threads or os.cpu_count(), export["precision"])
    return functools.partial(TextReader(directory).answer, run)


class TextReader:
    """Makes rows of texts, as the config.json and the tokenizer.json of an export that takes rows say.

    Args:
        directory: of the export, for which `description_of` has found one.
    """

    def __init__(self, directory):
        from tokenizers import Tokenizer

        self._config = read_json(pathlib.Path(directory, "config.json"))
        export = self._config["export"]
        self._normalizes = export.get("normalize", False)
        self._long_texts = export.get("long_texts", "cut")
        self._is_alone = (export["format"], export["precision"]) in ALONE
        path = str(pathlib.Path(directory, "tokenizer.json"))
        self._cutting, self._whole = Tokenizer.from_file(path), Tokenizer.from_file(path)
        self._padding = self._cutting.padding
        if self._is_alone:
            self._cutting.no_padding()
            self._whole.no_padding()
        if self._long_texts == "cut":
            return
        length = export["sequence_length"]
        self._room = length - self._whole.num_special_tokens_to_add(False)
        if self._long_texts == "windows":
            self._whole.enable_truncation(length, stride=self._room - max(1, self._room // 2))  # as `windows_of`
        else:
            self._whole.no_truncation()
            self._whole.no_padding()

    def answer(self, run, texts):
        """The outputs of texts, or of pairs of texts, each of them an array (texts, ...), by name.

        Args:
            run: function from rows to named outputs.
            texts: list of strings, of pairs as tuples, or of tuples of a text and its choices; long ones are cut, or
                if the export says so, single ones computed in windows or without their middle.
        """
        if _has_choices(texts[0]):
            batches = [[text] for text in texts] if self._is_alone else [texts]
            parts = [own_outputs(run(self._rows_of_choices(batch))) for batch in batches]
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if self._long_texts == "cut" or not isinstance(texts[0], str):
            return self._outputs(run, self._cutting.encode_batch(texts))
        if self._long_texts == "head_and_tail":
            return self._outputs(run, self._two_ends(texts))
        windows = [[one, *one.overflowing] for one in self._whole.encode_batch(texts)]
        counts = np.array([len(of_text) for of_text in windows])
        windows = [window for of_text in windows for window in of_text]
        # A book takes no more memory than the rows that are computed at once.
        parts = [self._outputs(run, windows[start : start + ROWS]) for start in range(0, len(windows), ROWS)]
        return self._of_texts({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, counts)

    def _outputs(self, run, encodings):
        if not self._is_alone:
            return own_outputs(run(rows_of(encodings)))
        parts = [own_outputs(run(rows_of([encoding]))) for encoding in encodings]
        return {name: joined([part[name] for part in parts]) for name in parts[0]}

    def _rows_of_choices(self, texts):
        pairs = [(text, choice) for text, choices in texts for choice in choices]
        rows = rows_of(self._padded(self._cutting.encode_batch(pairs)))
        return {name: array.reshape(len(texts), -1, array.shape[1]) for name, array in rows.items()}

    def _padded(self, encodings):
        names = ("direction", "pad_id", "pad_type_id", "pad_token")
        length = self._padding["length"] or max(map(len, encodings))
        for encoding in encodings:
            encoding.pad(length, **{name: self._padding[name] for name in names})
        return encodings

    def _two_ends(self, texts):
        """Encodings of texts, of long ones without their middle, as `long_texts.head_and_tail` leaves it out."""
        from tokenizers import Encoding

        found = []
        for whole in self._whole.encode_batch(texts, add_special_tokens=False):
            if len(whole) > self._room:
                tail = Encoding.merge([whole], growing_offsets=False)
                whole.truncate(self._room // 4)
                tail.truncate(self._room - self._room // 4, direction="left")
                whole = Encoding.merge([whole, tail], growing_offsets=False)
            found.append(self._whole.post_process(whole))
        return found if self._is_alone else self._padded(found)

    def _of_texts(self, outputs, counts):
        """The outputs of texts from those of their windows: means, and what follows from them."""
        found = {name: means_of_texts(array, counts).astype(array.dtype) for name, array in outputs.items()}
        if "probabilities" in found:  # those of the mean logits
            shares = sigmoid if self._config.get("problem_type") == MULTI_LABEL else softmax
            found["probabilities"] = shares(found["logits"]).astype("float32")
        if self._normalizes:
            found["vector"] = of_length_one(found["vector"])
        return found


def rows_of(encodings):
    """The rows of encodings of the library `tokenizers` that are equally long."""
    return {name: np.array([getattr(one, field) for one in encodings], "int64") for name, field in FIELDS.items()}


def open_export(directory, threads=None, batch_size=32):
    """Opens an export of any format, as a function from texts to outputs; on a CPU the fastest way in Python.

        answer = kbi.export.open_export("exported")
        answer(["A wonderful film."])["probabilities"]

    Args:
        directory (str or pathlib.Path): an export of `export_saved_model`, `export_onnx`, `export_openvino` or
            `export_litert`.
        threads (int, optional): number of threads that share one operation; for a SavedModel it has to be set before
            TensorFlow computes. Default: one for each core.
        batch_size (int, optional): number of texts in a batch, which are sorted by length. Default: 32.

    Returns: a function from a list to a dict of arrays, whose first axis has the order of the list. The list holds
        texts; pairs of texts, such as a question and its context; or for a MultipleChoice, (text, list of choices).
        Outputs for each token are padded with 0 (strings with b"") to the longest text. The function raises ValueError
        for a single str, for no texts, and for different numbers of choices.
    Raises: ValueError if the directory holds no export; RuntimeError if the number of threads can no longer be set.
    """
    answer = open_texts(directory, threads)

    def of_texts(texts):
        if isinstance(texts, str | bytes) or not len(texts):
            raise ValueError(f"Expected a list of texts, or of pairs of texts, but got {texts!r}.")
        texts = [tuple(text) if isinstance(text, list) else text for text in texts]
        if len({len(text[1]) for text in texts if _has_choices(text)}) > 1:
            raise ValueError("Texts have different numbers of choices: give every text the same number.")
        lengths = [len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts]
        order = np.argsort(lengths, kind="stable")[::-1]  # a batch too large for memory fails at once
        starts = range(0, len(texts), batch_size)
        parts = [answer([texts[place] for place in order[start : start + batch_size]]) for start in starts]
        back = np.argsort(order, kind="stable")
        return {name: joined([part[name] for part in parts])[back] for name in parts[0]}

    return of_texts


def _has_choices(text):
    return isinstance(text, tuple) and not isinstance(text[1], str)


def joined(arrays):
    """Arrays (rows, ...), whose other axes may differ, as one that is filled up with 0, or strings with b""."""
    shape = np.max([array.shape[1:] for array in arrays], axis=0, initial=0).astype(int)
    filled = np.full((sum(map(len, arrays)), *shape), b"" if arrays[0].dtype == object else 0, arrays[0].dtype)
    start = 0
    for array in arrays:
        filled[(slice(start, start + len(array)), *map(slice, array.shape[1:]))] = array
        start += len(array)
    return filled


def open_saved_model(directory, threads=None):
    """The signatures `serving_default`, and `pairs` if there is one, of a SavedModel, with arrays as outputs."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  the operations of the tokenizer

    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    signatures = tf.saved_model.load(str(directory)).signatures

    def answer(texts):
        name = "pairs" if isinstance(texts[0], tuple) and "pairs" in signatures else "serving_default"
        inputs = signatures[name].structured_input_signature[1]
        names = next((pair for pair in PAIRS if inputs.keys() == set(pair)), tuple(inputs))
        columns = zip(*texts, strict=True) if isinstance(texts[0], tuple) else [texts]
        outputs = signatures[name](**{name: tf.constant(list(one)) for name, one in zip(names, columns, strict=True)})
        return {name: array.numpy() for name, array in outputs.items()}

    return answer
