"""Writes sentences of a corpus as text: held-out ones, and ones labelled with their source, for a classifier."""

import collections
import heapq
import json

from keras_bert_impl.console import say
from keras_bert_impl.json_files import write_json_lines
from keras_bert_impl.text.rows.shards import HELD_OUT_SENTENCES, SPLITS
from keras_bert_impl.text.tokenizers import google_characters

MOST_UNKNOWN_WORDS = 0.01
MOST_DROPPED_MARKS = 0.01
FEWEST_SENTENCES = 20  # for a label in a split: accuracy on fewer would mean little
MOST_LABELS = 10


def write_sentences(config, settings, records, directory):
    """Writes held_out.txt and the labelled sentences from the sentences that the pieces kept; returns the counts of the
    labelled ones."""
    held_out, by_split = {}, {split: {} for split in SPLITS}
    sizes = {split: collections.Counter() for split in SPLITS}
    for record in records:
        for split, counts in record["sources"].items():
            sizes[split].update(counts)
    labels = choose_labels(sizes) if config.labelled_sentences else []
    for path in sorted(settings.work.glob("sentences-*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        held_out = dict(heapq.nsmallest(HELD_OUT_SENTENCES, {**held_out, **kept["held_out"]}.items()))
        for split in SPLITS:
            for label in labels:
                by_split[split].setdefault(label, {}).update(kept["by_source"][split].get(label, {}))
    text = "".join(f"{sentence}\n" for _, sentence in sorted(held_out.items()))
    (directory / "held_out.txt").write_text(text, encoding="utf-8")
    return write_labelled_sentences(config, by_split, labels, directory / "sentences") if labels else {}


def write_labelled_sentences(config, by_split, labels, directory):
    """Writes sentences labelled with their source, equally many of each; returns the counts by split and label."""
    directory.mkdir(exist_ok=True)
    counts = {}
    for split, by_label in by_split.items():
        asked = config.labelled_sentences if split == "train" else 500
        most = min(asked, *(len(by_label[label]) for label in labels))
        rows = [
            {"text": sentence, "label": label}
            for label in labels
            for _, sentence in sorted(by_label[label].items())[:most]
        ]
        write_json_lines(directory / f"{split}.jsonl", rows)
        counts[split] = {label: most for label in labels}
    say(f"  {len(labels)} x {counts['train'][labels[0]]:,} labelled training sentences: {', '.join(labels)}")
    return counts


def choose_labels(by_split):
    """The sources to use as labels, in alphabetical order; none if fewer than two are large enough.

    Sources with too few sentences in a split, and all but the ten largest, are left out and reported.

    Args:
        by_split: number of sentences by split and source.
    """
    sizes = {
        label: min(by_split[split].get(label, 0) for split in SPLITS)
        for label in sorted({label for by_label in by_split.values() for label in by_label})
    }
    enough = [label for label in sizes if sizes[label] >= FEWEST_SENTENCES]
    chosen = sorted(sorted(enough, key=sizes.get, reverse=True)[:MOST_LABELS])
    if len(chosen) < 2:
        say("  no labelled sentences: they need two sources (top folders or files) with enough text in every split")
        return []
    if len(chosen) < len(sizes):
        left_out = [label for label in sizes if label not in chosen]
        say(f"  {len(left_out)} small sources are not used as labels ({', '.join(left_out[:5])}, ...)")
    return chosen


def report_losses(directory, tokenizer):
    """The share of the words of held_out.txt that become [UNK]; warns if this share, or that of dropped accents, is
    large."""
    text = (directory / "held_out.txt").read_text(encoding="utf-8")
    words, unknown = count_unknown_words(text.split("\n"), tokenizer)
    share = unknown.total() / max(1, words)
    if share > MOST_UNKNOWN_WORDS:
        examples = ", ".join(word for word, _ in unknown.most_common(5))
        say(
            f"  warning: {share:.1%} of the held-out words become [UNK] ({examples}): learn a larger vocabulary with "
            "--vocabulary_size, learn it from more text with --vocabulary_megabytes, or give a vocabulary of this "
            "language with --vocab"
        )
    marks = set(google_characters.characters(google_characters.NONSPACING_MARKS))
    dropped = sum(character in marks for character in text) / max(1, len(text))
    if tokenizer.lowercase and dropped > MOST_DROPPED_MARKS:
        say(
            f"  warning: {dropped:.1%} of the held-out characters are dropped as accents, which lower-casing strips. "
            "In scripts such as those of Hindi and Thai they are vowels: keep them with --lowercase false"
        )
    return share


def count_unknown_words(sentences, tokenizer):
    """(number of words in the sentences, a Counter of those that become unknown); see `Tokenizer.word_numbers`."""
    words, unknown = 0, collections.Counter()
    for sentence, encoding in zip(sentences, tokenizer.encode_batch(sentences, add_special_tokens=False), strict=True):
        words += len(set(tokenizer.word_numbers(sentence, encoding).tolist()))
        for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if index == tokenizer.unk_id:
                unknown[sentence[start:end]] += 1
    return words, unknown
