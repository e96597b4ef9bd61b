"""The documents that every corpus yields, and the split that each belongs to."""

import hashlib
from typing import NamedTuple


class Document(NamedTuple):
    """A document of a corpus: sentences in reading order.

    Fields:
        name (str): name, unique in its corpus and the same on every machine, such as "numpy.linalg",
            "novels/emma.txt#1" or "reviews.jsonl#3". It determines the split.
        source (str): where it is from, such as a label for a classifier: a package, or the top folder or file of a text
            corpus.
        sentences (list of str): sentences with single spaces and without line breaks.
    """

    name: str
    source: str
    sentences: list[str]


def split_of(name, seed=0):
    """Returns the split of a document: "train", "validation" or "test", with 90, 5 and 5 of every hundred names.

    Whole documents are assigned, since sentences of one document reveal each other's content. The name alone decides,
    so that a document keeps its split when others are added or removed.

    Args:
        name (str): name of the document.
        seed (int, optional): another seed gives another split. Default: 0.
    """
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    hundredth = int.from_bytes(digest, "big") * 100 >> 64
    if hundredth < 90:
        return "train"
    return "validation" if hundredth < 95 else "test"
