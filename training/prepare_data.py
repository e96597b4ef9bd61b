"""Text to what training needs: a vocabulary, pre-training examples and labelled sentences.

    python training/prepare_data.py --output data                       # the default corpus
    python training/prepare_data.py --corpus path/to/text --output data

The output holds, for each of the splits train, validation and test (90, 5 and 5 % of the documents):
    vocab.txt, tokenizer_config.json        the vocabulary, learned from the training split
    pretraining/SPLIT/*.tfrecord            sentence pairs, masked when they are read
    sentences/SPLIT.jsonl                   {"text": ..., "label": ...}, the label being where the text is from
    summary.json                            counts of all that
"""

import dataclasses
import hashlib
import json
import pathlib

from keras_bert_impl import corpora
from keras_bert_impl.preprocessing.pretraining import write_examples
from keras_bert_impl.runs import main, open_run, say, write_json
from keras_bert_impl.tokenizers import WordPieceTokenizer, learn_vocabulary

SPLITS = ("train", "validation", "test")


@dataclasses.dataclass
class PrepareConfig:
    """Text to vocabulary, pre-training examples and labelled sentences.

    Args:
        output: directory for all of it.
        corpus: text file, directory or glob (.txt, .jsonl, also .gz, .xz, .zst); default is the docstrings of the
            installed Python, NumPy, TensorFlow and Keras.
        vocab: an existing vocab.txt to use; default is to learn one.
        vocabulary_size: words of the vocabulary to learn.
        lowercase: whether upper and lower case are one, and accents dropped.
        sequence_length: tokens of a row.
        predictions_per_sequence: most masked tokens of a row; about 15 % of the length.
        duplicates: how often the training text is cut into different pairs.
        static_masks: mask once, now, in google-research/bert's format, rather than anew in every epoch.
        labelled_sentences: most labelled training sentences of one label; the labels are balanced.
        skip_unreadable: go on without files that cannot be read, naming them, rather than stop.
        seed: of every random choice.
    """

    output: str
    corpus: str | None = None
    vocab: str | None = None
    vocabulary_size: int = 8000
    lowercase: bool = True
    sequence_length: int = 128
    predictions_per_sequence: int = 20
    duplicates: int = 1
    static_masks: bool = False
    labelled_sentences: int = 4000
    skip_unreadable: bool = False
    seed: int = 0


def run(config):
    """Does what the module says; returns the summary. A finished output is left as it is."""
    directory = open_run(config.output, config)
    if (directory / "summary.json").is_file():
        say(f"{directory} is ready from an earlier run.")
        return json.loads((directory / "summary.json").read_text())
    corpus = corpora.open_corpus(config.corpus, on_error="skip" if config.skip_unreadable else "raise")
    splits = read_splits(corpus, config.seed)
    summary = {"corpus": print_statistics(splits)}
    tokenizer = make_tokenizer(config, splits["train"], directory)
    summary["vocabulary_size"] = tokenizer.vocabulary_size
    summary["examples"] = {split: write_split(config, splits[split], tokenizer, directory, split) for split in SPLITS}
    summary["labels"] = write_labelled_sentences(config, splits, directory / "sentences")
    write_json(directory / "summary.json", summary)
    return summary


def read_splits(corpus, seed):
    """The documents of each split. Raises ValueError if the corpus is too small to have all three."""
    splits = {split: [] for split in SPLITS}
    for document in corpus:
        splits[corpora.split_of(document.name, seed)].append(document)
    for problem in getattr(corpus, "problems", ()):
        say(f"  left out: {problem.place}: {problem.reason}")
    count = sum(map(len, splits.values()))
    small = [split for split in SPLITS if len(splits[split]) < 2]
    if small:
        raise ValueError(
            f"The corpus has {count} documents, which leaves {', '.join(small)} with fewer than the two that "
            "next-sentence pairs need: give it more files, or put a blank line between documents."
        )
    return splits


def print_statistics(splits):
    """Prints documents, sentences, words and bytes of each split; returns them."""
    statistics = {split: dataclasses.asdict(corpora.corpus_statistics(splits[split])) for split in SPLITS}
    say(f"  {'split':<12}{'documents':>10}{'sentences':>11}{'words':>12}{'bytes':>12}")
    for split, counts in statistics.items():
        documents, sentences, words, size = (counts[name] for name in ("documents", "sentences", "words", "bytes"))
        say(f"  {split:<12}{documents:>10,}{sentences:>11,}{words:>12,}{size:>12,}")
    return statistics


def make_tokenizer(config, documents, directory):
    """Reads the vocabulary asked for, or learns one from the documents; writes it to the directory."""
    if config.vocab:
        tokenizer = WordPieceTokenizer(config.vocab, lowercase=config.lowercase)
        say(f"  vocabulary of {tokenizer.vocabulary_size:,} words from {config.vocab}")
    else:
        sentences = (sentence for document in documents for sentence in document.sentences)
        vocabulary = learn_vocabulary(sentences, config.vocabulary_size, lowercase=config.lowercase)
        tokenizer = WordPieceTokenizer(vocabulary, lowercase=config.lowercase)
        say(f"  learned a vocabulary of {tokenizer.vocabulary_size:,} words from the training split")
    tokenizer.save_pretrained(directory)
    return tokenizer


def write_split(config, documents, tokenizer, directory, split):
    """Writes the pre-training examples of one split; returns their number."""
    _, count = write_examples(
        documents,
        tokenizer,
        directory / "pretraining" / split,
        sequence_length=config.sequence_length,
        predictions_per_sequence=config.predictions_per_sequence,
        duplicates=config.duplicates if split == "train" else 1,
        static_masks=config.static_masks,
        seed=config.seed,
    )
    say(f"  {count:,} {split} examples of {config.sequence_length} tokens")
    return count


def write_labelled_sentences(config, splits, directory):
    """Writes sentences with their source as label, equally many of each; returns the counts by split and label."""
    directory.mkdir(exist_ok=True)
    counts = {}
    for split, documents in splits.items():
        by_label = sentences_by_source(documents, config.seed)
        share = 1 if split == "train" else 0.1
        most = min([int(config.labelled_sentences * share), *map(len, by_label.values())])
        rows = [
            {"text": sentence, "label": label}
            for label, sentences in sorted(by_label.items())
            for _, sentence in sorted(sentences)[:most]
        ]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        pathlib.Path(directory / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
        counts[split] = {label: most for label in sorted(by_label)}
    return counts


def sentences_by_source(documents, seed):
    """Pairs (shuffle key, sentence) of five words or more by the source of their document."""
    found = {}
    for document in documents:
        for sentence in document.sentences:
            if len(sentence.split()) >= 5:
                found.setdefault(document.source, {})[sentence] = shuffle_key(sentence, seed)
    return {source: [(key, sentence) for sentence, key in keys.items()] for source, keys in found.items()}


def shuffle_key(sentence, seed):
    """Sorting by it shuffles sentences, the same way on every machine."""
    return hashlib.blake2b(f"{seed}/{sentence}".encode(), digest_size=8).hexdigest()


if __name__ == "__main__":
    main(PrepareConfig, run)
