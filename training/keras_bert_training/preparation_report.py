"""What `keras-bert prepare-data` prints and writes about the corpus and the rows."""

import collections

import numpy as np

from keras_bert_impl.console import say
from keras_bert_impl.text import corpora
from keras_bert_impl.text.rows.shards import SPLITS

MOST_UNUSED_TEXT = 0.1  # without a warning
NAMED = 5  # phrases or files listed at most


def report_reading(config, records):
    """Prints the formats that text files were read as, those with equal content, and what could not be read."""
    formats = collections.Counter()
    for record in records:
        formats.update(record["formats"])
        for place, reason in record["problems"]:
            say(f"  left out: {place}: {reason}")
    names = collections.defaultdict(list)
    for record in records:
        for name, sha256 in record["files"].items():
            names[sha256].append(name)
    copies = [same for sha256, same in names.items() if sha256 and len(same) > 1]
    if copies:
        named = "; ".join(" = ".join(same[:NAMED]) for same in copies[:NAMED])
        say(
            f"  {sum(map(len, copies)) - len(copies):,} files are copies of others. All are used, so held-out text "
            f"may also be trained on: {named}{'; ...' * (len(copies) > NAMED)}"
        )
    if formats:
        say("  text files read as " + ", ".join(f"{name}: {count:,}" for name, count in formats.items()))
    if config.language not in corpora.LANGUAGES_WITH_RULES:
        say(f"  no abbreviations are known for language {config.language}: sentences end at the marks of all scripts")


def print_statistics(records):
    """Prints documents, sentences, words and bytes of each split; returns them."""
    names = ("documents", "sentences", "words", "bytes", "tokens")
    blocks = [block for record in records for block in record["blocks"]]
    statistics = {split: {name: sum(block[split][name] for block in blocks) for name in names} for split in SPLITS}
    say(f"  {'split':<12}{'documents':>10}{'sentences':>11}{'words':>14}{'bytes':>15}")
    for split, counts in statistics.items():
        documents, sentences, words, size, _ = counts.values()
        say(f"  {split:<12}{documents:>10,}{sentences:>11,}{words:>14,}{size:>15,}")
    return statistics


def print_examples(settings, shards):
    """Prints how many rows there are, how full they are, and how much of the text is in none, which can be much if its
    sentences are long.

    Returns: the numbers of rows by length and split; the shares of the text's tokens that no row holds, by length.
    """
    examples, shares = {}, {}
    for length in (rows.sequence_length for rows in settings.rows):
        written = [shard for shard in shards if shard["path"].split("/")[1] == str(length)]
        counts = examples[str(length)] = dict.fromkeys(SPLITS, 0)
        for shard in written:
            counts[shard["path"].split("/")[2]] += shard["examples"]
        tokens, text, unused = (sum(shard[name] for shard in written) for name in ("tokens", "text", "unused"))
        share = shares[str(length)] = unused / max(1, text)
        say(
            f"  examples of {length} tokens: "
            + ", ".join(f"{counts[split]:,} {split}" for split in SPLITS)
            + f"; {tokens / max(1, length * sum(counts.values())):.1%} of the positions hold tokens"
        )
        if share > MOST_UNUSED_TEXT:
            say(
                f"  warning: {share:.1%} of the text is in no example of {length} tokens, because sentences are "
                "nearly as long or documents are short: --pairs full_sentences uses all of it, a larger "
                "--sequence_length more"
            )
    return examples, shares


def report_languages(records):
    """Prints the training text of each language before and after sampling; returns it."""
    counts, report = {}, {}
    for record in records:
        for language, found in record["languages"].items():
            counts[language] = np.add(counts.get(language, 0), found)
    totals = sum(counts.values())
    for language, found in sorted(counts.items()):
        report[language] = {}
        for when, (documents, size), (_, total) in zip(("before", "after"), found, totals, strict=True):
            share = float(size / max(1, total))
            report[language][when] = {"documents": int(documents), "bytes": int(size), "share": share}
            say(f"  language {language} {when} sampling: {documents:,.0f} documents, {size:,.0f} bytes, {share:.1%}")
    return report


def report_phrases(path, phrases, finder, records):
    """Prints how many phrases the text has, and which it does not have; returns these figures."""
    found = collections.Counter()
    for record in records:
        found.update(dict(record["phrases"]))
    missing = [number for number, same in enumerate(finder.same) if same is None or not found[same]]
    held, places = len(phrases) - len(missing), sum(found.values())
    say(f"  {held:,} of {len(phrases):,} phrases occur in the text, {places:,} times in all")
    unknown = set(finder.unknown)
    for what, numbers in (
        ("have a word that is not in the vocabulary", finder.unknown),
        ("are not in the text", [number for number in missing if number not in unknown]),
    ):
        if numbers:
            named = ", ".join(f"line {number + 1}: {phrases[number]}" for number in numbers[:NAMED])
            say(f"  {len(numbers):,} phrases of {path} {what} ({named}{', ...' * (len(numbers) > NAMED)})")
    return {
        "given": len(phrases),
        "places": places,
        "lines_with_unknown_words": [number + 1 for number in finder.unknown],
        "lines_not_in_text": [number + 1 for number in missing],
    }
