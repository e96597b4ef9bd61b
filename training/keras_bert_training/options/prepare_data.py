"""The options of `keras-bert prepare-data`."""

import dataclasses
import typing


@dataclasses.dataclass
class PrepareConfig:
    """Turns text into a vocabulary, pre-training examples and labelled sentences.

    Args:
        output: output directory.
        input: text file, directory or glob (.txt, .jsonl, also .gz, .xz, .zst), in UTF-8; default is the docstrings of
            the installed Python, NumPy, TensorFlow and Keras.
        text_format: format of .txt files. lines: one sentence a line, blank lines between documents; documents: one
            document a line; running: running text, wrapped or not, one document a file; paragraphs: running text with
            blank lines between documents; auto decides between the first three for each file, and prints what it found.
            A .jsonl line is one document; with auto and documents the lines of its text are paragraphs, otherwise they
            have the given format.
        text_field: key of the text in .jsonl.
        language: language of the text, two letters (ISO 639-1), which decides on abbreviations when text is split into
            sentences. The marks that end a sentence are known in every script.
        tokenizer: algorithm that splits text into tokens: wordpiece as BERT's, byte_pair as RoBERTa's byte-level BPE,
            sentence_piece as ALBERT's, xlnet_sentence_piece as XLNet's, bigbird_sentence_piece as BigBird's,
            modernbert_byte_pair as ModernBERT's byte-level BPE; or xlm_sentence_piece as XLM-RoBERTa's,
            mmbert_byte_pair as mmBERT's, mpnet_wordpiece as MPNet's, deberta_byte_pair as that of DeBERTa's version 1,
            deberta_sentence_piece as that of versions 2 and 3, llama_byte_pair as EuroBERT's or
            camembert_sentence_piece as CamemBERT's, for which vocab has to be given.
        vocab: an existing vocab.txt to use, or the directory or name of a checkpoint; default is to learn one.
        vocabulary_size: number of words in the vocabulary to learn.
        vocabulary_megabytes: megabytes of training text to learn the vocabulary from, drawn from all over the corpus.
        lowercase: whether text is lower-cased and accents are removed; default is yes, except for the two with
            byte-level BPE, which keep the case.
        sequence_length: number of tokens in an example.
        long_sequence_length: also write examples of this greater length, for the last part of the training; 512 in the
            paper.
        predictions_per_sequence: largest number of masked tokens in an example; default is 15 % of the length, rounded
            up.
        pairs: content of an example. next_sentence as in the paper; sentence_order as in ALBERT; full_sentences or
            doc_sentences as in RoBERTa: no pairs, but as many sentences as fit, across documents or not.
        short_sequence_probability: fraction of documents that are split into pairs of a random, shorter length.
        duplicates: how many times the training text is split into pairs, differently each time.
        static_masks: mask only once, while preparing, in google-research/bert's format, and not again in every epoch.
        masking_unit: unit of static_masks: token, whole_word, span, ngram, context_span or phrase.
        phrases: file of phrases and entities, one a line, which masking_unit phrase then masks whole, as ERNIE does.
            They are found at whole words, the longest first; for tokenizer wordpiece.
        packed: put several pairs in an example, so that there is hardly any padding; nothing else changes for a pair.
        labelled_sentences: largest number of labelled training sentences from each source, in addition to up to 500
            each for validation and test; every label gets equally many.
        language_exponent: samples the languages of a corpus in proportion to their share to this power, for the
            vocabulary and for the training examples; 0.7 in multilingual BERT. The folders directly in the input are
            the languages.
        skip_unreadable: skip and report files that cannot be read, instead of stopping.
        seed: random seed for every random choice.
        workers: number of processes; default is one for each core, or a single one for a small corpus.
        runner: run on Apache Beam instead, with DirectRunner, DaskRunner, DataflowRunner, FlinkRunner or SparkRunner.
            All its machines must see the text and the output directory under the same paths, or use beam_storage.
        beam_options: further flags for Beam, in one word: --beam_options="--region=europe-west4 --project=mine".
        beam_storage: folder such as gs://bucket/folder, through which text and results pass if the machines share no
            directory.
        verify: only compare the files with the manifest, and report damaged ones. After these are removed, the same
            command without --verify writes them again.
    """

    GROUPS: typing.ClassVar = {
        "the text": ("text_format", "text_field", "language", "language_exponent", "skip_unreadable"),
        "the vocabulary": ("tokenizer", "vocab", "vocabulary_size", "lowercase"),
        "the examples": (
            *("sequence_length", "long_sequence_length", "pairs", "packed", "static_masks", "masking_unit"),
            "phrases",
            *("short_sequence_probability", "predictions_per_sequence", "duplicates", "seed"),
        ),
        "how it is done": ("workers", "runner", "beam_options", "beam_storage", "verify"),
    }

    output: str
    input: str | None = None
    text_format: typing.Literal["auto", "lines", "documents", "running", "paragraphs"] = "auto"
    text_field: str = "text"
    language: str = "en"
    language_exponent: float | None = None
    tokenizer: typing.Literal[
        *("wordpiece", "byte_pair", "sentence_piece", "modernbert_byte_pair", "xlm_sentence_piece"),
        *("mmbert_byte_pair", "mpnet_wordpiece", "deberta_byte_pair", "deberta_sentence_piece"),
        *("xlnet_sentence_piece", "bigbird_sentence_piece", "llama_byte_pair", "camembert_sentence_piece"),
    ] = "wordpiece"
    vocab: str | None = None
    vocabulary_size: int = 8000
    vocabulary_megabytes: int = 100
    lowercase: bool | None = None
    sequence_length: int = 128
    long_sequence_length: int | None = None
    predictions_per_sequence: int | None = None
    pairs: typing.Literal["next_sentence", "sentence_order", "full_sentences", "doc_sentences"] = "next_sentence"
    short_sequence_probability: float = 0.1
    duplicates: int = 1
    static_masks: bool = False
    masking_unit: typing.Literal["token", "whole_word", "span", "ngram", "context_span", "phrase"] = "token"
    phrases: str | None = None
    packed: bool = False
    labelled_sentences: int = 0
    skip_unreadable: bool = False
    seed: int = 0
    workers: int | None = None
    runner: str | None = None
    beam_options: str = ""
    beam_storage: str | None = None
    verify: bool = False
