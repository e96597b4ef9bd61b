"""The documents that every corpus yields, the split that each belongs to, and the size of a corpus."""

import dataclasses
import hashlib
from collections.abc import Iterable
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


@dataclasses.dataclass(frozen=True)
class CorpusStatistics:
    """Size of a corpus. Words are separated by spaces; bytes are UTF-8, one line break counted per sentence."""

    documents: int = 0
    sentences: int = 0
    words: int = 0
    bytes: int = 0


def corpus_statistics(documents: Iterable[Document]):
    """The `CorpusStatistics` of documents, which are read once and not kept in memory."""
    counts = [0, 0, 0, 0]
    for document in documents:
        text = "\n".join(document.sentences) + "\n"
        counts[0] += 1
        counts[1] += len(document.sentences)
        counts[2] += len(text.split())
        counts[3] += len(text.encode())
    return CorpusStatistics(*counts)
