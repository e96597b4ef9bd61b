"""A corpus of any size to files of examples, in jobs that need nothing of one another.

    pieces of the corpus -> `tokenize_piece` -> token files -> `plan_shards` -> `write_shard` -> TFRecord

A job is a function of its arguments and the run's settings alone, so it does not matter which process or machine
does it; what it has done is recorded in a small JSON file, so that a job is not done twice. `run_jobs` does jobs here,
`run_jobs_on_beam` on a cluster.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import heapq
import json
import multiprocessing
import os
import pathlib
import threading
from typing import NamedTuple

import tensorflow as tf

from keras_bert_impl.corpora import split_of
from keras_bert_impl.corpora.scripts import CHARACTER_WITHOUT_SPACES
from keras_bert_impl.json_files import write_json
from keras_bert_impl.preprocessing.pretraining import write_rows
from keras_bert_impl.preprocessing.token_files import read_token_files, write_token_file
from keras_bert_impl.preprocessing.wordpiece import WordPiece
from keras_bert_impl.tokenizers import WordPieceTokenizer

SPLITS = ("train", "validation", "test")
PIECE_BYTES = 32_000_000  # text of one tokenizing job
BLOCK_BYTES = 2_000_000  # text tokenized at once
SHARD_TOKENS = 2_000_000  # of a shard, from which its random second sentences come
BYTES_AT_ONCE = 1 << 20  # of a file that is read for its SHA-256
HELD_OUT_SENTENCES = 1000
LEAST_WORDS = 5  # of a labelled sentence
LEAST_CHARACTERS = 8  # of one in a script without spaces between words; a Chinese word has one or two


@dataclasses.dataclass(frozen=True)
class Settings:
    """What all jobs of a run have in common.

    Args:
        directory: of the run; holds the vocabulary. Every process must see it under this name.
        sequence_lengths: of the rows; each has files of its own.
        pairs: next_sentence, sentence_order, full_sentences or doc_sentences.
        duplicates: how often the training text is cut into rows.
        static_masks: mask now, in google-research/bert's format.
        masking_unit: of static masks: token, whole_word or span.
        packed: several pairs in a row.
        predictions_per_sequence: by sequence length; used for static masks.
        short_sequence_probability: share of documents cut into shorter pairs.
        labelled_sentences: most of one source to keep, for each split; 0 keeps none.
        seed: of every random choice.
    """

    directory: str
    sequence_lengths: tuple[int, ...]
    pairs: str
    duplicates: int
    static_masks: bool
    masking_unit: str
    packed: bool
    predictions_per_sequence: tuple[int, ...]
    short_sequence_probability: float
    labelled_sentences: int
    seed: int

    @property
    def work(self):
        """The directory of what is in the making."""
        return pathlib.Path(self.directory) / "work"


class Piece(NamedTuple):
    """A part of a corpus: its number, an iterable of documents, that can be pickled, and (name, path) of its files."""

    number: int
    documents: object
    files: tuple[tuple[str, str], ...] = ()


class Shard(NamedTuple):
    """A file of examples in the making: its number among those of its split and length, and where its tokens are."""

    number: int
    split: str
    sequence_length: int
    token_files: tuple[str, ...]

    @property
    def path(self):
        """Of the file, within the run's directory."""
        return f"pretraining/{self.sequence_length}/{self.split}/examples-{self.number:05d}.tfrecord"


def tokenize_piece(settings, piece):
    """Reads a piece of the corpus, writes its token files; returns its record.

    The record: `blocks`, a list of {"file", split: {"documents", "sentences", "words", "bytes", "tokens"}}, `problems`,
    what could not be read, `formats`, what files were taken for and how many, `sources`, how many sentences each
    source has in each split, and `files`, a dict of name to SHA-256.
    """
    path = settings.work / f"piece-{piece.number:05d}.json"
    record = _read_record(path)
    if record is not None and all((settings.work / block["file"]).is_file() for block in record["blocks"]):
        return record
    settings.work.mkdir(parents=True, exist_ok=True)
    files = {name: file_sha256(file) for name, file in piece.files}
    wordpiece = _wordpiece(settings.directory)
    kept, blocks = KeptSentences(settings), []
    for number, documents in enumerate(blocks_of_documents(piece.documents)):
        file = f"tokens-{piece.number:05d}-{number:05d}.npz"
        by_split = {split: [] for split in SPLITS}
        for document in documents:
            by_split[split_of(document.name, settings.seed)].append(document)
        tokens = {split: _tokenize(wordpiece, documents) for split, documents in by_split.items()}
        write_token_file(settings.work / file, tokens)
        counts = {split: _counts(by_split[split], tokens[split]) for split in SPLITS}
        blocks.append({"file": file, **counts})
        for split in SPLITS:
            kept.add(split, by_split[split])
    kept.write(settings.work / f"sentences-{piece.number:05d}.json")
    problems = [list(problem) for problem in getattr(piece.documents, "problems", ())]
    formats = dict(getattr(piece.documents, "formats", {}))
    record = {"blocks": blocks, "problems": problems, "formats": formats, "sources": kept.counts, "files": files}
    return write_record(path, record)


def plan_shards(settings, pieces):
    """The `Shard`s of a run from the records of its pieces, in order.

    Raises: ValueError if a split has fewer than the two documents that next-sentence pairs need.
    """
    shards = []
    for split in SPLITS:
        groups = _groups([block for piece in pieces for block in piece["blocks"]], split)
        copies = settings.duplicates if split == "train" else 1
        for length in settings.sequence_lengths:
            for place, files in enumerate(groups):
                shards += [Shard(place * copies + copy, split, length, files) for copy in range(copies)]
    return shards


def write_shard(settings, shard):
    """Writes a file of examples; returns its record: path, examples, tokens, bytes and SHA-256."""
    path = pathlib.Path(settings.directory) / shard.path
    record_path = shard_record(settings, shard.path)
    record = _read_record(record_path)
    if record is not None and is_whole(settings.directory, record):
        return record
    path.parent.mkdir(parents=True, exist_ok=True)
    documents = read_token_files([settings.work / file for file in shard.token_files], shard.split)
    place = settings.sequence_lengths.index(shard.sequence_length)
    examples, tokens = write_rows(
        path,
        documents,
        WordPieceTokenizer.from_pretrained(settings.directory),
        sequence_length=shard.sequence_length,
        predictions_per_sequence=settings.predictions_per_sequence[place],
        pairs=settings.pairs,
        static_masks=settings.static_masks,
        masking_unit=settings.masking_unit,
        packed=settings.packed,
        short_sequence_probability=settings.short_sequence_probability,
        seed=settings.seed,
        number=shard.number,
    )
    record = {"path": shard.path, "examples": examples, "tokens": tokens, **file_identity(path)}
    return write_record(record_path, record)


def shard_record(settings, path):
    """Where the record of the file of examples at `path`, within the run's directory, is."""
    return settings.work / f"{path.replace('/', '-')}.json"


def read_json(directory, name):
    """What a JSON file holds; `directory` may be any that TensorFlow reads, gs://bucket/folder for one."""
    return json.loads(tf.io.gfile.GFile(f"{directory}/{name}").read())


def read_manifest(directory):
    """(the records of the files of examples of a finished run, those of its other files); `directory` as for
    `read_json`."""
    manifest = read_json(directory, "manifest.json")
    if "files" not in manifest:
        raise ValueError(f"{directory}/manifest.json is of an earlier version: prepare the data again, elsewhere.")
    return manifest["shards"], manifest["files"]


def is_whole(directory, record, thorough=False):
    """Whether a file is there with the size of its record; `thorough` reads it for its SHA-256, too."""
    path = f"{directory}/{record['path']}"
    if not tf.io.gfile.exists(path) or tf.io.gfile.stat(path).length != record["bytes"]:
        return False
    return not thorough or file_identity(path)["sha256"] == record["sha256"]


def damaged_files(directory, records, thorough=False):
    """Those of the records whose files are not whole, see `is_whole`."""
    return [record for record in records if not is_whole(directory, record, thorough)]


def file_identity(path):
    """The size in bytes and the SHA-256 of a file."""
    digest, size = hashlib.sha256(), 0
    with tf.io.gfile.GFile(str(path), "rb") as file:
        while part := file.read(BYTES_AT_ONCE):
            digest.update(part)
            size += len(part)
    return {"bytes": size, "sha256": digest.hexdigest()}


def file_sha256(path):
    """The SHA-256 of a file of the corpus, None of one that cannot be read: the corpus reports that."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


@contextlib.contextmanager
def worker_pool(workers):
    """So many processes for `run_jobs`, this one included."""
    if workers == 1:
        yield None
        return
    # Forked processes would inherit TensorFlow's threads, which do not survive it.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers - 1, context, initializer=_prepare_worker) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


def run_jobs(pool, function, settings, jobs):
    """Yields (place, function(settings, job)) for each job, in any order, done by a `worker_pool` and this process.

    This one takes the last of the jobs that nobody has begun: TensorFlow costs each process half a gigabyte, and one
    that only waits is one too many.
    """
    if pool is None:
        yield from ((place, function(settings, job)) for place, job in enumerate(jobs))
        return
    waiting = [pool.submit(function, settings, job) for job in jobs]
    for place in reversed(range(len(jobs))):
        future = waiting[place]
        yield place, function(settings, jobs[place]) if future.cancel() else future.result()


def run_jobs_on_beam(function, settings, jobs, options):
    """function(settings, job) for each job, as an Apache Beam pipeline with these flags; returns the records.

    The records come from the files that the jobs write, since what a pipeline computes stays where it ran.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    with beam.Pipeline(options=PipelineOptions(list(options))) as pipeline:
        _ = (
            pipeline
            | beam.Create(list(jobs))
            # Otherwise a runner may fuse the steps and do all jobs in one place.
            | beam.Reshuffle()
            | beam.Map(functools.partial(function, settings))
        )
    return [function(settings, job) for job in jobs]


def blocks_of_documents(documents):
    """Lists of documents of about BLOCK_BYTES."""
    block, size = [], 0
    for document in documents:
        block.append(document)
        size += sum(map(len, document.sentences))
        if size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


class KeptSentences:
    """Sentences of a piece that may be wanted as text: held-out ones, and those of each source.

    A sentence's key is a hash, and the sentences with the smallest keys are kept: the same ones whatever the pieces.
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
        write_record(path, {"held_out": self.held_out, "by_source": self.by_source})


def is_long(sentence):
    """Whether a sentence has enough words to be told by."""
    # A regular expression takes longer than the count: most sentences are long by their words.
    return sentence.count(" ") >= LEAST_WORDS - 1 or (
        not sentence.isascii() and len(CHARACTER_WITHOUT_SPACES.findall(sentence)) >= LEAST_CHARACTERS
    )


def smallest(sentences, count):
    """Of a dict of key to sentence those with the smallest keys, in their order."""
    return dict(heapq.nsmallest(count, sentences.items()))


def shuffle_key(sentence, seed):
    """Sorting by it shuffles sentences, the same way on every machine."""
    return hashlib.blake2b(f"{seed}/{sentence}".encode(), digest_size=8).hexdigest()


def _groups(blocks, split):
    """Tuples of consecutive token files with SHARD_TOKENS of the split, and two documents, at least."""
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


def _tokenize(wordpiece, documents):
    """RaggedTensor (documents, sentences, tokens) of ids."""
    sentences = [sentence for document in documents for sentence in document.sentences]
    rows = wordpiece(tf.constant(sentences, tf.string))
    return tf.RaggedTensor.from_row_lengths(rows, [len(document.sentences) for document in documents])


def _counts(documents, tokens):
    sentences = [sentence for document in documents for sentence in document.sentences]
    text = "\n".join(sentences).encode()
    # Sentences hold single spaces; a line break each counts among the bytes.
    return {
        "documents": len(documents),
        "sentences": len(sentences),
        "words": text.count(b" ") + len(sentences),
        "bytes": len(text) + bool(sentences),
        "tokens": int(tokens.flat_values.shape[0]),
    }


def _wordpiece(directory):
    return _wordpiece_of(directory, (pathlib.Path(directory) / "vocab.txt").stat().st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _wordpiece_of(directory, written):
    # `written` tells a vocabulary from a later one in its place.
    return WordPiece(WordPieceTokenizer.from_pretrained(directory))


def _prepare_worker():
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # As many processes as cores: more threads would only wait for one another.
    with contextlib.suppress(RuntimeError):  # TensorFlow has begun already
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)


def _end_with_parent():
    # A pool's processes do not notice that the one they work for was killed, and would wait for jobs for ever.
    multiprocessing.parent_process().join()
    os._exit(1)


def _read_record(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_record(path, record):
    """Writes a record whole or not at all; returns it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, record)
    return record
