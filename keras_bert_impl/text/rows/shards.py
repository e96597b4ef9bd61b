"""Turns a corpus of any size into files of examples, in jobs that are independent of one another.

    pieces of the corpus -> `tokenize_piece` -> token files -> `plan_shards` -> `write_shard` -> TFRecord

A job depends only on its arguments and the run's settings, so any process or machine can do it. A small JSON file
records its results, so that no job is done twice. `local_jobs` runs jobs on this machine, `beam_jobs` on a cluster.
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import heapq
import itertools
import json
import os
import pathlib
import platform
import tempfile
from typing import NamedTuple

import numpy as np

from keras_bert_impl.json_files import read_json_if_there, write_json
from keras_bert_impl.text.corpora import split_of
from keras_bert_impl.text.corpora.sentences import CHARACTER_WITHOUT_SPACES
from keras_bert_impl.text.ragged import Ragged
from keras_bert_impl.text.rows import phrases
from keras_bert_impl.text.rows.language_sampling import copies_of
from keras_bert_impl.text.rows.pretraining_rows import RowFormat, write_rows
from keras_bert_impl.text.rows.remote_files import open_file, size_of
from keras_bert_impl.text.rows.sentence_ids import document_ids
from keras_bert_impl.text.tokenizers import open_tokenizer, tokenizer_files

SPLITS = ("train", "validation", "test")
PIECE_BYTES = 8_000_000  # text of one tokenizing job
BLOCK_BYTES = 2_000_000  # text tokenized at once, the content of one token file
SHARD_TOKENS = 2_000_000  # of one shard; random second sentences come from the same shard
BYTES_AT_ONCE = 1 << 20  # read at once to compute the SHA-256 of a file
HELD_OUT_SENTENCES = 1000
LEAST_WORDS = 5  # of a labelled sentence
LEAST_CHARACTERS = 8  # the same for scripts without spaces between words; a Chinese word has one or two


@dataclasses.dataclass(frozen=True)
class Settings:
    """What all jobs of a run have in common.

    Args:
        directory: the directory of the run, with the vocabulary. Every process must see it at this path.
        rows: the RowFormat of each length of rows; each has its own files.
        duplicates: how often the training text is cut into rows.
        labelled_sentences: the most sentences of one source to keep for each split; 0 keeps none.
        seed: seed of every random choice.
        block_bytes: text of one token file.
        language_factors: pairs of a language and how often its training text is used, see `language_sampling`; empty
            if all text is used once.
    """

    directory: str
    rows: tuple[RowFormat, ...]
    duplicates: int
    labelled_sentences: int
    seed: int
    block_bytes: int
    language_factors: tuple[tuple[str, float], ...] = ()

    @property
    def work(self):
        """The directory of intermediate files."""
        return pathlib.Path(self.directory) / "work"


class Piece(NamedTuple):
    """A part of a corpus: its number, an iterable of documents that can be pickled, and (name, path) of each file."""

    number: int
    documents: object
    files: tuple[tuple[str, str], ...] = ()

    def record_path(self, settings):
        """The file in which `tokenize_piece` records its results."""
        return settings.work / f"piece-{self.number:05d}.json"

    def moved(self, root):
        """This piece of a `TextCorpus` whose files have been copied to the folder `root`, under the same names."""
        return Piece(self.number, self.documents.moved(root), tuple((name, f"{root}/{name}") for name, _ in self.files))


class Shard(NamedTuple):
    """A file of examples to be written: its number within its split and length, and the files with its tokens."""

    number: int
    split: str
    sequence_length: int
    token_files: tuple[str, ...]

    @property
    def path(self):
        """Path of the file within the run's directory."""
        return f"pretraining/{self.sequence_length}/{self.split}/examples-{self.number:05d}.tfrecord"

    def record_path(self, settings):
        """The file in which `write_shard` records its results."""
        return shard_record(settings, self.path)


def tokenize_piece(settings, piece):
    """Reads a piece of the corpus and writes its token files; returns its record.

    The record: `blocks`, a list of {"file", split: {"documents", "sentences", "words", "bytes", "tokens"}}, `problems`,
    what could not be read, `formats`, the number of files read in each format, `sources`, the number of sentences of
    each source in each split, and `files`, a dict of name to SHA-256. With a file of phrases, also `phrases`, pairs of
    the number of a phrase and of the places where it was found. If languages are sampled, also `languages`, a dict of
    language to documents and bytes of its training text, before and after: [[documents, bytes], [documents, bytes]].
    """
    path = piece.record_path(settings)
    record = read_json_if_there(path)
    if record and all((settings.work / block["file"]).is_file() for block in record["blocks"]):
        return record
    with _attempt(settings) as attempt:
        record = _write_token_files(settings, piece, attempt)
        write_json(attempt / path.name, record)
        # The record comes last: where it is, the other files are.
        for file in sorted(attempt.iterdir(), key=lambda file: file.name == path.name):
            os.replace(file, settings.work / file.name)
    return record


def _write_token_files(settings, piece, directory):
    files = {name: file_sha256(file) for name, file in piece.files}
    ids_of, mark = _ids_and_marks(settings)
    found, languages = collections.Counter(), {}
    kept, blocks = KeptSentences(settings), []
    numbers = itertools.count()
    for documents in blocks_of_documents(piece.documents, settings.block_bytes):
        by_split = {split: [] for split in SPLITS}
        for document in documents:
            by_split[split_of(document.name, settings.seed)].append(document)
        for split in SPLITS:
            kept.add(split, by_split[split])
        for used in _rounds(by_split, settings, languages):
            file = f"tokens-{piece.number:05d}-{next(numbers):05d}.npz"
            tokens = {split: _tokenize(ids_of, documents) for split, documents in used.items()}
            if mark:
                for split in SPLITS:
                    tokens[split], counts = mark(tokens[split])
                    found += counts
            write_token_file(directory / file, tokens)
            blocks.append({"file": file, **{split: _counts(used[split], tokens[split]) for split in SPLITS}})
    kept.write(directory / f"sentences-{piece.number:05d}.json")
    problems = [list(problem) for problem in getattr(piece.documents, "problems", ())]
    formats = dict(getattr(piece.documents, "formats", {}))
    record = {"blocks": blocks, "problems": problems, "formats": formats, "sources": kept.counts, "files": files}
    record |= {"languages": languages} if settings.language_factors else {}
    return {**record, "phrases": sorted(found.items())} if mark else record


def _rounds(by_split, settings, languages):
    """Yields the documents of a block by split. If languages are sampled, some training documents are left out, and
    those that are used a second time, a third time and so on come in rounds of their own; `languages` counts them."""
    if not settings.language_factors:
        yield by_split
        return
    factors, copies = dict(settings.language_factors), []
    for document in by_split["train"]:
        copies.append(copies_of(document, factors, settings.seed))
        size = len("\n".join(document.sentences).encode()) + 1
        before, after = languages.setdefault(document.source, [[0, 0], [0, 0]])
        before[:] = before[0] + 1, before[1] + size
        after[:] = after[0] + copies[-1], after[1] + copies[-1] * size
    # In rounds, so that a document seldom stands beside its copy: a random next sentence may still be from a copy.
    for turn in range(max(copies, default=1) or 1):
        again = [document for document, count in zip(by_split["train"], copies, strict=True) if count > turn]
        yield {**(by_split if turn == 0 else {split: [] for split in SPLITS}), "train": again}


def plan_shards(settings, pieces):
    """The `Shard`s of a run from the records of its pieces, in order."""
    shards = []
    for split in SPLITS:
        groups = _groups([block for piece in pieces for block in piece["blocks"]], split)
        copies = settings.duplicates if split == "train" else 1
        for rows in settings.rows:
            for place, files in enumerate(groups):
                numbers = range(place * copies, (place + 1) * copies)
                shards += [Shard(number, split, rows.sequence_length, files) for number in numbers]
    return shards


def write_shard(settings, shard):
    """Writes a file of examples; returns its record: path, examples, tokens, those of the text, those of the
    text that no example holds, bytes and SHA-256."""
    path, record_path = pathlib.Path(settings.directory) / shard.path, shard.record_path(settings)
    record = read_json_if_there(record_path)
    if record and is_whole(settings.directory, record):
        return record
    path.parent.mkdir(parents=True, exist_ok=True)
    with _attempt(settings) as attempt:
        record = {"path": shard.path, **_write_examples(settings, shard, attempt / path.name)}
        write_json(attempt / record_path.name, record)
        os.replace(attempt / path.name, path)
        os.replace(attempt / record_path.name, record_path)
    return record


def _write_examples(settings, shard, path):
    documents = read_token_files([settings.work / file for file in shard.token_files], shard.split)
    [rows] = [rows for rows in settings.rows if rows.sequence_length == shard.sequence_length]
    tokenizer = open_tokenizer(settings.directory)
    examples, tokens, unused = write_rows(path, documents, tokenizer, rows, settings.seed, shard.number)
    counts = {"examples": examples, "tokens": tokens, "text": len(documents.flat_values), "unused": int(unused)}
    return {**counts, **file_identity(path)}


@contextlib.contextmanager
def _attempt(settings):
    # A cluster may do a job twice at the same time: it believes that a worker has died which has not, or starts the job
    # again because it is slow. Both write the same bytes, but would garble them in one file, and an attempt that ended
    # half-way must leave nothing among the examples. So each attempt writes in a folder of its own.
    settings.work.mkdir(parents=True, exist_ok=True)
    worker = f"{platform.node()}-{os.getpid()}"  # the owner of a folder that was left behind
    with tempfile.TemporaryDirectory(prefix=f"attempt-{worker}-", dir=settings.work) as directory:
        yield pathlib.Path(directory)


def shard_record(settings, path):
    """The path of the record of a file of examples; `path` is that of the file within the run's directory."""
    return settings.work / f"{path.replace('/', '-')}.json"


def read_prepared_json(directory, name):
    """The content of a JSON file; `directory` may be a bucket, see `remote_files`. Raises: FileNotFoundError."""
    with open_file(f"{directory}/{name}") as file:
        return json.loads(file.read())


def read_manifest(directory):
    """The manifest of a finished run: (records of its files of examples, records of its other files).

    `directory` is as for `read_prepared_json`.
    """
    manifest = read_prepared_json(directory, "manifest.json")
    return manifest["shards"], manifest["files"]


def is_whole(directory, record, thorough=False):
    """Whether a file exists with the size in its record; `thorough` also compares its SHA-256."""
    path = f"{directory}/{record['path']}"
    if size_of(path) != record["bytes"]:
        return False
    return not thorough or file_identity(path)["sha256"] == record["sha256"]


def damaged_files(directory, records, thorough=False):
    """The records whose files are missing or damaged, see `is_whole`."""
    return [record for record in records if not is_whole(directory, record, thorough)]


def file_identity(path):
    """The size in bytes and the SHA-256 of a file."""
    digest, size = hashlib.sha256(), 0
    with open_file(path) as file:
        while part := file.read(BYTES_AT_ONCE):
            digest.update(part)
            size += len(part)
    return {"bytes": size, "sha256": digest.hexdigest()}


def file_sha256(path):
    """The SHA-256 of a file of the corpus, or None if it cannot be read, which the corpus itself reports."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def blocks_of_documents(documents, block_bytes):
    """Lists of documents of about `block_bytes`."""
    block, size = [], 0
    for document in documents:
        block.append(document)
        size += sum(map(len, document.sentences))
        if size >= block_bytes:
            yield block
            block, size = [], 0
    if block:
        yield block


class KeptSentences:
    """Sentences of a piece that are kept as text: held-out ones, and labelled ones of each source.

    A sentence's key is a hash, and the sentences with the smallest keys are kept, so that the choice does not depend on
    how the corpus is divided into pieces.
    """

    def __init__(self, settings):
        self.settings, self.held_out = settings, {}
        self.by_source = {split: {} for split in SPLITS}
        self.counts = {split: {} for split in SPLITS}

    def add(self, split, documents):
        if split == "test":
            sentences = {sentence for document in documents for sentence in document.sentences}
            self.held_out |= {shuffle_key(sentence, self.settings.seed): sentence for sentence in sentences}
            self.held_out = smallest(self.held_out, HELD_OUT_SENTENCES)
        if not self.settings.labelled_sentences:
            return
        for document in documents:
            keys = self.by_source[split].setdefault(document.source, {})
            long_ones = filter(is_long, document.sentences)
            keys |= {shuffle_key(sentence, self.settings.seed): sentence for sentence in long_ones}

    def write(self, path):
        for split, sources in self.by_source.items():
            for source, keys in sources.items():
                self.counts[split][source] = len(keys)
                sources[source] = smallest(keys, self.settings.labelled_sentences)
        write_json(path, {"held_out": self.held_out, "by_source": self.by_source})


def is_long(sentence):
    """Whether a sentence has enough words for a classifier to tell its source."""
    # Spaces are counted first, which is faster than the regular expression and decides most sentences.
    return sentence.count(" ") >= LEAST_WORDS - 1 or (
        not sentence.isascii() and len(CHARACTER_WITHOUT_SPACES.findall(sentence)) >= LEAST_CHARACTERS
    )


def smallest(sentences, count):
    """The `count` entries with the smallest keys of a dict of key to sentence, sorted by key."""
    return dict(heapq.nsmallest(count, sentences.items()))


def shuffle_key(sentence, seed):
    """A sort key that shuffles sentences, in the same way on every machine."""
    return hashlib.blake2b(f"{seed}/{sentence}".encode(), digest_size=8).hexdigest()


def _groups(blocks, split):
    """Tuples of consecutive token files that hold at least SHARD_TOKENS tokens and two documents of the split."""
    groups, group, tokens, documents = [], [], 0, 0
    for block in blocks:
        counts = block[split]
        if not counts["tokens"]:
            continue
        group.append(block["file"])
        tokens, documents = tokens + counts["tokens"], documents + counts["documents"]
        if tokens >= SHARD_TOKENS and documents >= 2:
            groups.append(tuple(group))
            group, tokens, documents = [], 0, 0
    if group and documents < 2 and groups:
        groups[-1] += tuple(group)
    elif group:
        groups.append(tuple(group))
    return groups


def _tokenize(ids_of, documents):
    """`Ragged` (documents, sentences, tokens) of ids."""
    rows = ids_of([document.sentences for document in documents])
    return Ragged(rows, np.array([len(document.sentences) for document in documents], np.int64))


def _counts(documents, tokens):
    sentences = [sentence for document in documents for sentence in document.sentences]
    text = "\n".join(sentences).encode()
    # Words are separated by single spaces; the bytes include one line break per sentence.
    return {
        "documents": len(documents),
        "sentences": len(sentences),
        "words": text.count(b" ") + len(sentences),
        "bytes": len(text) + bool(sentences),
        "tokens": len(tokens.flat_values),
    }


def _ids_and_marks(settings):
    """The function from documents to ids, and that from these to ids with marks and a Counter of what was found, None
    without phrases. They are kept for the next job."""
    # The times of writing distinguish a vocabulary from a later one at the same path.
    files = [pathlib.Path(settings.directory) / name for name in run_files(settings.directory)]
    return _opened(settings.directory, settings.rows[0].phrases, tuple(file.stat().st_mtime_ns for file in files))


@functools.lru_cache(maxsize=1)
def _opened(directory, has_phrases, written):
    tokenizer = open_tokenizer(directory)
    if not has_phrases:
        return document_ids(tokenizer), None
    found = phrases.read_phrases(f"{directory}/{phrases.FILE}")
    return document_ids(tokenizer), phrases.PhraseFinder(tokenizer, found).mark


def run_files(directory):
    """The names of the files in a run's directory that its jobs read: those of the tokenizer, and the phrases."""
    has_phrases = (pathlib.Path(directory) / phrases.FILE).is_file()
    return [*tokenizer_files(directory), *([phrases.FILE] if has_phrases else [])]


def write_token_file(path, documents_of_splits):
    """Writes documents: a dict of split to `Ragged` (documents, sentences, tokens) of ids."""
    arrays = {}
    for split, documents in documents_of_splits.items():
        sentences = documents.values
        tokens = sentences.values
        arrays[f"{split}/tokens"] = tokens.astype(np.uint16 if tokens.max(initial=0) < 2**16 else np.int32)
        arrays[f"{split}/sentences"] = sentences.lengths.astype(np.int32)
        arrays[f"{split}/documents"] = documents.lengths.astype(np.int32)
    np.savez(path, **arrays)


def read_token_files(paths, split):
    """The documents of a split in files of `write_token_file`, int32 `Ragged` (documents, sentences, tokens)."""
    parts = {"tokens": [], "sentences": [], "documents": []}
    for path in paths:
        with np.load(path) as arrays:
            for name, found in parts.items():
                found.append(arrays[f"{split}/{name}"])
    tokens, sentences, documents = (np.concatenate(arrays) for arrays in parts.values())
    return Ragged(Ragged(tokens.astype(np.int32), sentences.astype(np.int64)), documents.astype(np.int64))
