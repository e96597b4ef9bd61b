"""Turns text into what training needs: a vocabulary, pre-training examples and labelled sentences.

    keras-bert prepare-data --output data                       # the default corpus
    keras-bert prepare-data --input 'corpus/**/*.txt.gz' --vocab vocab.txt --output data
    keras-bert prepare-data --output data --verify              # checks whether files are damaged

The splits are train, validation and test (90, 5 and 5 % of the documents; if these are too few, of their parts). The
output directory holds:
    vocab.txt, tokenizer_config.json        the vocabulary, learned from the training split
                                            (vocab.json and merges.txt with --tokenizer byte_pair; spiece.model with
                                            sentence_piece; tokenizer.json with modernbert_byte_pair)
    pretraining/LENGTH/SPLIT/*.tfrecord     rows of LENGTH tokens, masked when they are read
    sentences/SPLIT.jsonl                   with --labelled_sentences: {"text": ..., "label": ...}, the label being the
                                            package, top folder or file that the text is from
    phrases.txt                             with --phrases, the phrases
    held_out.txt                            a thousand sentences of the test split, in random order
    summary.json, manifest.json             counts of all these; size and SHA-256 of every other file
    report.html                             the counts on one page
    run.json, input.json                    options and versions; the input files with size and SHA-256

The text is read in pieces, each of which is tokenized and written on its own, so that memory does not grow with the
corpus. The same command resumes an interrupted preparation, and refuses if the input files have changed since it began.
The output does not depend on the number of workers.
"""

import contextlib
import dataclasses
import fnmatch
import glob
import itertools
import json
import os
import pathlib
import shutil
import sys

import numpy as np

from keras_bert_impl.console import progress, say
from keras_bert_impl.features import MASKING_RATE, usual_predictions
from keras_bert_impl.json_files import write_json
from keras_bert_impl.text import corpora
from keras_bert_impl.text.rows.beam_jobs import open_storage, remove_storage, run_jobs_on_beam
from keras_bert_impl.text.rows.language_sampling import copies_of, language_sizes, sampling_factors
from keras_bert_impl.text.rows.local_jobs import run_jobs, worker_pool
from keras_bert_impl.text.rows.masking import check_predictions
from keras_bert_impl.text.rows.phrases import FILE, PhraseFinder, read_phrases
from keras_bert_impl.text.rows.pretraining_rows import PAIRS, RowFormat
from keras_bert_impl.text.rows.shards import (
    BLOCK_BYTES,
    PIECE_BYTES,
    SPLITS,
    Piece,
    Settings,
    damaged_files,
    file_identity,
    is_whole,
    plan_shards,
    read_manifest,
    run_files,
    shard_record,
    tokenize_piece,
    write_shard,
)
from keras_bert_training import report
from keras_bert_training.input_record import check_input, write_input
from keras_bert_training.labelled_sentences import report_losses, write_sentences
from keras_bert_training.options.prepare_data import PrepareConfig as PrepareConfig
from keras_bert_training.preparation_report import (
    print_examples,
    print_statistics,
    report_languages,
    report_phrases,
    report_reading,
)
from keras_bert_training.runs import check_run, locked, open_run, versions
from keras_bert_training.vocabularies import LEARNERS, LOWERCASED, open_vocabulary, vocabulary_in

# Longest documents to try if there are too few for a split: a chapter, some pages, two pages.
SHORTEST_PAIR = 5  # [CLS], [SEP] twice, and a token of each text
PART_CHARACTERS = (64_000, 16_000, 4_000)
LEAST_DOCUMENTS = {"next_sentence": 2}  # of a split; 1 for other pairs
NAMED_ENDINGS = 9  # of files that are left out, listed at most
QUICKLY_READ_BYTES = 1_000_000_000  # whose checksums are compared each time, in some seconds
SMALL_BYTES = 50_000_000  # such a corpus is read once and kept; starting more processes would not pay off


def run(config):
    """Prepares the data as the module's docstring describes; returns the summary. A finished output is not changed."""
    if config.verify:
        return verify(pathlib.Path(config.output))
    short, long = config.sequence_length, config.long_sequence_length
    if (long is not None and long <= short) or (config.pairs in PAIRS and short < SHORTEST_PAIR):
        raise ValueError(
            f"--sequence_length {short} and --long_sequence_length {long}: the second must be larger, and a pair "
            f"needs at least {SHORTEST_PAIR} tokens: [CLS], two [SEP], and one from each text."
        )
    if config.predictions_per_sequence is not None:
        check_predictions(config.predictions_per_sequence, config.sequence_length, MASKING_RATE)
    if config.lowercase is None:
        config = dataclasses.replace(config, lowercase=config.tokenizer in LOWERCASED)
    directory = check_run(config.output, config)
    phrases = read_phrases(config.phrases) if config.phrases else None
    pieces, size = open_pieces(config)
    input_files = check_input(directory, pieces)
    is_finished = (directory / "summary.json").is_file()
    files = list(itertools.chain(*read_manifest(directory))) if is_finished else []
    thorough = sum(file["bytes"] for file in files) <= QUICKLY_READ_BYTES
    damaged = damaged_files(directory, files, thorough)
    if is_finished and not damaged:
        check_same_phrases(config, phrases, directory)
        compared = "checksums" if thorough else "sizes; --verify also compares checksums"
        say(f"{directory} is ready from an earlier run: {len(files):,} files, compared by their {compared}.")
        return json.loads((directory / "summary.json").read_text())
    with locked(directory):
        for file in damaged:  # above all a damaged vocabulary, which would be used for the files made again
            say(f"  {directory / file['path']} is missing or damaged: it is written again")
            (directory / file["path"]).unlink(missing_ok=True)
        check_same_phrases(config, phrases, directory)
        return prepare(config, directory, phrases, pieces, size, input_files)


def prepare(config, directory, phrases, pieces, size, input_files):
    """Prepares what is not there yet, in a directory in which no other process does; returns the summary.

    Args:
        config: the PrepareConfig.
        directory: of the output.
        phrases: list of strings, or None.
        pieces: the pieces of the corpus.
        size: bytes of the corpus.
        input_files: see `check_input`.
    """
    tokenizer = read_tokenizer(config, directory)
    languages = factors_of(config, pieces)
    pieces = with_enough_documents(config, pieces)
    if size <= SMALL_BYTES and not config.runner:  # jobs for other machines name their text, and do not hold it
        pieces = read_pieces(pieces)
    if tokenizer is None:
        tokenizer = learn_tokenizer(config, pieces, languages)
    finder = PhraseFinder(tokenizer, phrases) if phrases else None
    if finder and finder.empty:
        raise ValueError(f"{config.phrases} line {finder.empty[0] + 1} holds no character that the tokenizer keeps.")
    open_run(directory, config)
    write_input(directory, input_files)
    tokenizer.save_pretrained(directory)
    if phrases:
        (directory / FILE).write_text("".join(f"{phrase}\n" for phrase in phrases), encoding="utf-8")

    settings = settings_of(config, languages.items())
    restore_records(directory, settings)
    with jobs_runner(config, settings, pieces, size) as do:
        records = do(tokenize_piece, pieces, "tokenizing")
        report_reading(config, records)
        statistics = print_statistics(records)
        check_documents({split: counts["documents"] for split, counts in statistics.items()}, config.pairs)
        shards = do(write_shard, plan_shards(settings, records), "writing examples")
    examples, unused = print_examples(settings, shards)
    summary = {
        "corpus": statistics,
        "vocabulary_size": tokenizer.vocabulary_size,
        "sequence_lengths": [rows.sequence_length for rows in settings.rows],
        "predictions_per_sequence": [rows.predictions_per_sequence for rows in settings.rows],
        "examples": examples,
        "share_of_text_in_no_row": unused,
        "labels": write_sentences(config, settings, records, directory),
        "held_out_unknown_words": report_losses(directory, tokenizer),
    }
    if languages:
        summary["languages"] = report_languages(records)
    if phrases:
        summary["phrases"] = report_phrases(config.phrases, phrases, finder, records)
    write_input(directory, input_files, records)
    write_manifest(directory, shards)
    write_json(directory / "summary.json", summary)
    report.write(directory, "preparation")
    # A worker that a cluster took for dead may still write there.
    shutil.rmtree(settings.work, ignore_errors=True)
    return summary


def factors_of(config, pieces):
    """How often the training text of each language is used, see `language_sampling`; empty without that option."""
    if config.language_exponent is None:
        return {}
    return sampling_factors(
        language_sizes([file for piece in pieces for file in piece.files]), config.language_exponent
    )


def check_same_phrases(config, phrases, directory):
    """Raises ValueError if an earlier run in this directory was given other phrases."""
    if phrases and (directory / FILE).is_file() and read_phrases(directory / FILE) != phrases:
        raise ValueError(
            f"{config.phrases} differs from the phrases that {directory} was made with: name another output, or "
            "restore the earlier file."
        )


def write_manifest(directory, shards):
    """Writes manifest.json: size and SHA-256 of the files that a run has written."""
    others = [directory / name for name in (*run_files(directory), "held_out.txt")]
    others += sorted((directory / "sentences").glob("*.jsonl"))
    files = [{"path": path.relative_to(directory).as_posix(), **file_identity(path)} for path in others]
    write_json(directory / "manifest.json", {"versions": versions(), "shards": shards, "files": files})


def settings_of(config, language_factors=()):
    """The settings that the jobs need."""
    names = ("pairs", "static_masks", "masking_unit", "packed", "short_sequence_probability")
    options = {name: getattr(config, name) for name in names}
    lengths = dict.fromkeys(filter(None, (config.sequence_length, config.long_sequence_length)))  # each once
    return Settings(
        directory=os.path.abspath(config.output),  # other processes may have another working directory
        rows=tuple(
            RowFormat(
                length,
                config.predictions_per_sequence or usual_predictions(length),
                phrases=bool(config.phrases),
                **options,
            )
            for length in lengths
        ),
        duplicates=config.duplicates,
        labelled_sentences=config.labelled_sentences,
        seed=config.seed,
        block_bytes=BLOCK_BYTES,
        language_factors=tuple(language_factors),
    )


def open_pieces(config):
    """The pieces of the corpus, which are not read yet, and its size in bytes."""
    path = os.path.abspath(config.input) if config.input and config.runner else config.input
    on_error = "skip" if config.skip_unreadable else "raise"
    corpus = corpora.open_corpus(path, on_error, config.text_format, config.text_field, config.language)
    if config.input:
        check_output(config)
    if left_out := getattr(corpus, "left_out", None):
        endings = ", ".join(f"{ending} {count:,}" for ending, count in left_out.most_common(NAMED_ENDINGS))
        say(f"  left out {left_out.total():,} files with other endings: {endings}")
    pieces = []
    for number, documents in enumerate(corpus.pieces(PIECE_BYTES)):
        files = getattr(documents, "files", ())
        names = ((file.relative_to(corpus.root).as_posix(), str(file)) for file in files)
        pieces.append(Piece(number, documents, tuple(names)))
    return pieces, sum(file.stat().st_size for file in getattr(corpus, "files", ()))


def check_output(config):
    """Raises ValueError if the output is within the input: other runs, and this one if repeated, would read it."""
    place = os.path.realpath(config.input)
    folders = os.path.dirname(place) if glob.has_magic(config.input) else f"{glob.escape(place)}/*"
    if fnmatch.fnmatchcase(os.path.realpath(config.output), folders):
        raise ValueError(
            f"--output {config.output} is within --input {config.input}, where vocab.txt and held_out.txt would be "
            "read as text the next time: name an output outside of it."
        )


def with_enough_documents(config, pieces):
    """The pieces; if a split would have too few documents, long ones are cut, which is printed.

    Raises: ValueError if the text is too short even so.
    """
    counts = first_documents(config, pieces)
    for longest in PART_CHARACTERS if config.input and too_small(counts, config.pairs) else ():
        cut = [piece._replace(documents=piece.documents.cut(longest)) for piece in pieces]
        if not too_small(first_documents(config, cut), config.pairs):
            say(
                f"  {sum(counts.values())} documents are too few to hold out whole ones: documents of more than "
                f"{longest:,} characters are split, so held-out text comes from documents that are also trained on"
            )
            return cut
    check_documents(counts, config.pairs)
    return pieces


def first_documents(config, pieces):
    """The number of documents in each split, counted until all splits have enough."""
    counts = dict.fromkeys(SPLITS, 0)
    for document in itertools.chain.from_iterable(piece.documents for piece in pieces):
        counts[corpora.split_of(document.name, config.seed)] += 1
        if not too_small(counts, config.pairs):
            break
    return counts


def read_pieces(pieces):
    """The pieces of a small corpus with all their documents, which are read now."""
    return [
        piece._replace(documents=ReadCorpus(list(progress(piece.documents, "reading")), piece.documents))
        for piece in pieces
    ]


class ReadCorpus(list):
    """The documents of a corpus, the problems met while reading it, and the formats its files were read as."""

    def __init__(self, documents, corpus):
        super().__init__(documents)
        self.problems, self.formats = getattr(corpus, "problems", []), getattr(corpus, "formats", {})


def too_small(counts, pairs):
    """The splits with too few documents, of a dict of split to number of documents."""
    return [split for split in SPLITS if counts[split] < LEAST_DOCUMENTS.get(pairs, 1)]


def check_documents(counts, pairs):
    """Raises ValueError if a split has too few documents, of a dict of split to number of documents."""
    if small := too_small(counts, pairs):
        raise ValueError(
            f"The corpus has {sum(counts.values())} documents, which leaves {', '.join(small)} with fewer than the "
            f"{LEAST_DOCUMENTS.get(pairs, 1)} that pairs={pairs} needs: give more text, or divide it into more "
            "documents. A file of running text is one document. With --text_format paragraphs, blank lines separate "
            "documents, as in files with one sentence a line; with --text_format documents, each line is one."
        )


def read_tokenizer(config, directory):
    """The tokenizer for the vocabulary given, or that of an interrupted run; None if it still has to be learned."""
    if config.vocab:
        tokenizer = open_vocabulary(config.tokenizer, config.vocab, config.lowercase)
    else:
        tokenizer = vocabulary_in(config.tokenizer, directory)
    if tokenizer is not None:
        say(f"  vocabulary of {tokenizer.vocabulary_size:,} words from {config.vocab or directory}")
    return tokenizer


def learn_tokenizer(config, pieces, languages):
    """A tokenizer whose vocabulary is learned from the training split, in which `languages` are sampled."""
    sample = VocabularySample(config, pieces, languages)
    tokenizer = LEARNERS[config.tokenizer](sample, config.vocabulary_size, config.lowercase)
    found, asked = tokenizer.vocabulary_size, config.vocabulary_size
    say(
        f"  learned a vocabulary of {found:,} words{f' ({asked:,} were requested)' if found < asked else ''} from "
        f"{sample.bytes / 1e6:.1f} MB of the training split"
    )
    return tokenizer


class VocabularySample:
    """Sentences of the training split, with the pieces in random order, up to `vocabulary_megabytes`.

    If languages are sampled, each takes part with its new share of these megabytes.
    """

    def __init__(self, config, pieces, languages):
        self.config, self.pieces, self.bytes = config, pieces, 0
        self.languages = languages

    def __iter__(self):
        rooms, seed = self._rooms(), self.config.seed
        for place in np.random.default_rng(seed).permutation(len(self.pieces)):
            for document in self.pieces[place].documents:
                if corpora.split_of(document.name, seed) != "train":
                    continue
                language = document.source if self.languages else None
                for _ in range(copies_of(document, self.languages, seed)):
                    if rooms[language] <= 0:
                        break
                    size = sum(map(len, document.sentences))
                    self.bytes += size
                    # Shares are shares of bytes, as those of the rows: a Chinese character has three.
                    rooms[language] -= len("".join(document.sentences).encode()) if self.languages else size
                    yield from document.sentences
                if all(room <= 0 for room in rooms.values()):
                    return

    def _rooms(self):
        """The text to take of each language; without languages, of None."""
        limit = self.config.vocabulary_megabytes * 1_000_000
        if not self.languages:
            return {None: limit}
        sizes = language_sizes([file for piece in self.pieces for file in piece.files])
        total = sum(sizes.values())
        return {language: limit * size / total * self.languages[language] for language, size in sizes.items()}


@contextlib.contextmanager
def jobs_runner(config, settings, pieces, size):
    """Yields a function that runs jobs, shows progress, and returns the records in the order of the jobs."""

    def do(function, jobs, what):
        records = dict(progress(run_jobs(pool, function, settings, jobs), what, len(jobs)))
        return [records[place] for place in range(len(jobs))]

    def do_on_beam(function, jobs, what):
        say(f"  {what}: {len(jobs)} jobs on Beam's {config.runner}")
        return run_jobs_on_beam(function, settings, jobs, config.runner, config.beam_options, folder)

    if config.runner:
        folder = open_storage(config.beam_storage, settings, pieces) if config.beam_storage else None
        yield do_on_beam
        if folder:
            remove_storage(folder)
        return
    with worker_pool(config.workers or (1 if size <= SMALL_BYTES else os.cpu_count())) as pool:
        yield do


def restore_records(directory, settings):
    """Marks the undamaged files of a finished run as done, so that only the others are written again."""
    if (directory / "manifest.json").is_file():
        settings.work.mkdir(exist_ok=True)
        for shard in read_manifest(directory)[0]:
            if is_whole(directory, shard):
                write_json(shard_record(settings, shard["path"]), shard)


def verify(directory):
    """Compares every file with the manifest; ends the program with status 1 if one is damaged."""
    shards, others = read_manifest(directory)
    files = shards + others
    damaged = damaged_files(directory, progress(files, "verifying", len(files)), thorough=True)
    for file in damaged:
        say(f"  {directory / file['path']} is missing or has changed (expected SHA-256 {file['sha256'][:12]}...)")
    if damaged:
        sys.exit(
            f"error: {len(damaged)} of {len(files)} files are damaged: remove them, and run the command that wrote "
            "them again."
        )
    say(f"  {len(files)} files are as they were written.")
    return {"files": len(files)}
