"""Text to what training needs: a vocabulary, pre-training examples and labelled sentences.

    python training/prepare_data.py --output data                       # the default corpus
    python training/prepare_data.py --corpus path/to/text --output data

The output holds, for each of the splits train, validation and test (90, 5 and 5 % of the documents):
    vocab.txt, tokenizer_config.json        the vocabulary, learned from the training split
    pretraining/SPLIT/*.tfrecord            sentence pairs, masked when they are read
    sentences/SPLIT.jsonl                   {"text": ..., "label": ...}, the label being the package, top folder or
                                            file that the text is from
    held_out.txt                            a thousand sentences of the test split, in random order
    summary.json                            counts of all that
"""

import quiet_start  # noqa: F401

import dataclasses
import hashlib
import json
import pathlib

from rich.progress import track

from keras_bert_impl import corpora
from keras_bert_impl.preprocessing.pretraining import write_examples
from keras_bert_impl.runs import check_run, main, open_run, say, write_json
from keras_bert_impl.tokenizers import WordPieceTokenizer, learn_vocabulary

SPLITS = ("train", "validation", "test")
FEWEST_SENTENCES = 20  # of a label in a split: fewer say nothing about accuracy
MOST_LABELS = 10


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
        packed: put several pairs in a row: hardly a position is padding, and nothing else changes for a pair.
        labelled_sentences: most labelled training sentences of one label, beside at most 500 to validate and test; the
            labels are balanced.
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
    packed: bool = False
    labelled_sentences: int = 4000
    skip_unreadable: bool = False
    seed: int = 0


def run(config):
    """Does what the module says; returns the summary. A finished output is left as it is."""
    directory = check_run(config.output, config)
    if (directory / "summary.json").is_file():
        say(f"{directory} is ready from an earlier run.")
        return json.loads((directory / "summary.json").read_text())
    corpus = corpora.open_corpus(config.corpus, on_error="skip" if config.skip_unreadable else "raise")
    splits = read_splits(corpus, config.seed)
    summary = {"corpus": print_statistics(splits)}
    tokenizer = make_tokenizer(config, splits["train"])
    open_run(directory, config)
    tokenizer.save_pretrained(directory)
    summary["vocabulary_size"] = tokenizer.vocabulary_size
    summary["examples"] = {split: write_split(config, splits[split], tokenizer, directory, split) for split in SPLITS}
    write_held_out(splits["test"], config.seed, directory / "held_out.txt")
    summary["labels"] = write_labelled_sentences(config, splits, directory / "sentences")
    write_json(directory / "summary.json", summary)
    return summary


def read_splits(corpus, seed):
    """The documents of each split. Raises ValueError if the corpus is too small to have all three."""
    splits = {split: [] for split in SPLITS}
    for document in track(corpus, "  reading", total=None, transient=True):
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


def make_tokenizer(config, documents):
    """Reads the vocabulary asked for, or learns one from the documents."""
    if config.vocab:
        tokenizer = WordPieceTokenizer(config.vocab, lowercase=config.lowercase)
        say(f"  vocabulary of {tokenizer.vocabulary_size:,} words from {config.vocab}")
    else:
        sentences = (sentence for document in documents for sentence in document.sentences)
        vocabulary = learn_vocabulary(sentences, config.vocabulary_size, lowercase=config.lowercase)
        tokenizer = WordPieceTokenizer(vocabulary, lowercase=config.lowercase)
        say(f"  learned a vocabulary of {tokenizer.vocabulary_size:,} words from the training split")
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
        packed=config.packed,
        seed=config.seed,
    )
    say(f"  {count:,} {split} examples of {config.sequence_length} tokens")
    return count


def write_held_out(documents, seed, path):
    """Writes up to a thousand of the documents' sentences, one a line."""
    sentences = {sentence for document in documents for sentence in document.sentences}
    shuffled = sorted(sentences, key=lambda sentence: shuffle_key(sentence, seed))
    path.write_text("".join(f"{sentence}\n" for sentence in shuffled[:1000]), encoding="utf-8")


def write_labelled_sentences(config, splits, directory):
    """Writes sentences with their source as label, equally many of each; returns the counts by split and label.

    Sources with too few sentences in a split are named and left out, and all but the ten largest; with fewer than two
    left there is nothing to tell apart, and no file.
    """
    by_split = {split: sentences_by_source(documents, config.seed) for split, documents in splits.items()}
    labels = choose_labels(by_split)
    if len(labels) < 2:
        say("  no labelled sentences: that takes two sources (top folders or files) with text in every split")
        return {}
    directory.mkdir(exist_ok=True)
    counts = {}
    for split, by_label in by_split.items():
        asked = config.labelled_sentences if split == "train" else 500
        most = min(asked, *(len(by_label[label]) for label in labels))
        rows = [
            {"text": sentence, "label": label} for label in labels for _, sentence in sorted(by_label[label])[:most]
        ]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        pathlib.Path(directory / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
        counts[split] = {label: most for label in labels}
    say(f"  {len(labels)} x {counts['train'][labels[0]]:,} labelled training sentences: {', '.join(labels)}")
    return counts


def choose_labels(by_split):
    """The sources to tell apart, in alphabetical order."""
    sizes = {
        label: min(len(by_split[split].get(label, ())) for split in SPLITS)
        for label in sorted({label for by_label in by_split.values() for label in by_label})
    }
    enough = [label for label in sizes if sizes[label] >= FEWEST_SENTENCES]
    chosen = sorted(sorted(enough, key=sizes.get, reverse=True)[:MOST_LABELS])
    if len(chosen) >= 2 and len(chosen) < len(sizes):
        left_out = [label for label in sizes if label not in chosen]
        say(f"  not among the labels: {len(left_out)} small sources ({', '.join(left_out[:5])}, ...)")
    return chosen


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
