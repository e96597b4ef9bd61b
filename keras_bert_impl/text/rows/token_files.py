"""Documents as token ids on disk: the step between a corpus and its examples, a third as large as the text."""

import io
import os
import pathlib

import numpy as np

from keras_bert_impl.text.rows.ragged import Ragged


def write_token_file(path, documents_of_splits):
    """Writes documents; the file gets its name only when it is complete.

    Args:
        path: the file.
        documents_of_splits: dict of split to `Ragged` (documents, sentences, tokens) of ids.
    """
    arrays = {}
    for split, documents in documents_of_splits.items():
        sentences = documents.values
        tokens = sentences.values
        arrays[f"{split}/tokens"] = tokens.astype(np.uint16 if tokens.max(initial=0) < 2**16 else np.int32)
        arrays[f"{split}/sentences"] = sentences.lengths.astype(np.int32)
        arrays[f"{split}/documents"] = documents.lengths.astype(np.int32)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    partial = pathlib.Path(f"{path}.partial")
    partial.write_bytes(buffer.getbuffer())
    os.replace(partial, path)


def read_token_files(paths, split):
    """The documents of a split in files of `write_token_file`, int32 `Ragged` (documents, sentences, tokens)."""
    parts = {"tokens": [], "sentences": [], "documents": []}
    for path in paths:
        with np.load(path) as arrays:
            for name, found in parts.items():
                found.append(arrays[f"{split}/{name}"])
    tokens, sentences, documents = (np.concatenate(arrays) for arrays in parts.values())
    return Ragged(Ragged(tokens.astype(np.int32), sentences.astype(np.int64)), documents.astype(np.int64))
