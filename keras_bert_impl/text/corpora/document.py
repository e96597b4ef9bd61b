"""The documents that every corpus yields, and the split that each belongs to."""

import hashlib
from typing import NamedTuple


class Document(NamedTuple):
    """A text in reading order: sentences that follow one another in training data come from one document.

    Args:
        name: unique in its corpus and the same on every machine at any time, for example "numpy.linalg",
            "novels/emma.txt" or "rows.jsonl#3". It determines the split.
        source: a label that a classifier may learn to predict: "numpy", or the top folder or file of a text corpus.
        sentences: one string each, single spaces, no line breaks.
    """

    name: str
    source: str
    sentences: list[str]


def split_of(name, seed=0):
    """The split of a document: "train", "validation" or "test", with 90, 5 and 5 of every hundred names.

    Whole documents are assigned, because sentences of one document reveal each other's content. The name alone
    decides, so that a document keeps its split when others are added or removed. Python's own `hash` would differ
    from process to process.
    """
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    hundredth = int.from_bytes(digest, "big") * 100 >> 64
    if hundredth < 90:
        return "train"
    return "validation" if hundredth < 95 else "test"
