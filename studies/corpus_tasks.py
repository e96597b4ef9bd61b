"""Tasks made from the corpus itself, for ablations without a download: a sentence, a pair and a token task.

| task | what is asked | labels |
| --- | --- | --- |
| source | which library, folder or file is a sentence from | those of prepare-data --labelled_sentences |
| follows | does the second sentence follow the first, or is it from another document | follows, random |
| names | which words of a lower-cased sentence were written with a capital, apart from its first | B-NAME, I-NAME, O |

`follows` is what next-sentence prediction trains on: it favours rows that were trained with it.
"""

import itertools
import json
import re

import numpy as np

from keras_bert_impl.text.corpora import open_corpus, split_of

WORDS = re.compile(r"\w+|[^\w\s]")
SENTENCE_WORDS = (5, 30)
FILES = {"train": "train", "validation": "dev", "test": "test"}  # splits of a corpus, and of NamedEntities


def make_tasks(prepared, data, directory, count, seed=0):
    """Writes the tasks unless they are there; returns {column of the table: (task of keras-bert finetune, directory)}.

    Args:
        prepared: configuration of prepare-data, whose corpus and splits are used.
        data: directory of the prepared data, with the labelled sentences.
        directory: where the tasks' files go.
        count: training examples of `follows`, and sentences of `names`; half as many for each of the other splits.
        seed: of the choice.
    """
    tasks = {"source": ("text_classification", str(data / "sentences"))} if (data / "sentences").is_dir() else {}
    if not (directory / "finished").is_file():
        corpus = open_corpus(
            prepared["input"], "skip", prepared["text_format"], prepared["text_field"], prepared["language"]
        )
        documents = sample_documents(corpus, prepared["seed"], count, seed)
        for split, found in documents.items():
            random, number = np.random.default_rng((seed, len(split))), count if split == "train" else count // 2
            write_pairs(directory / "follows" / f"{split}.jsonl", found, number, random)
            write_names(directory / "names" / f"{FILES[split]}.txt", found, number, random)
        (directory / "finished").write_text("")
    of_corpus = {"follows": "text_classification", "names": "ner"}
    return tasks | {name: (kind, str(directory / name)) for name, kind in of_corpus.items()}


def sample_documents(corpus, corpus_seed, count, seed):
    """{split: lists of the consecutive sentences of documents}, of each document at most as many as are needed. None
    stands for a sentence that is too short or too long: those beside it do not follow one another."""
    found = {split: [] for split in FILES}
    random = np.random.default_rng(seed)
    for document in corpus:
        sentences = [sentence if has_usual_length(sentence) else None for sentence in document.sentences]
        start = random.integers(max(1, len(sentences) - count))  # a book has more sentences than are wanted
        if places_of_pairs(sentences[start : start + count]):
            found[split_of(document.name, corpus_seed)].append(sentences[start : start + count])
    return found


def places_of_pairs(sentences):
    """The places of the sentences that are followed by another one."""
    return [place for place, pair in enumerate(itertools.pairwise(sentences)) if None not in pair]


def has_usual_length(sentence):
    """Whether a sentence is neither a heading nor longer than a row."""
    least, most = SENTENCE_WORDS
    return least <= len(sentence.split()) <= most


def write_pairs(path, documents, count, random):
    """Writes pairs of sentences, half of which follow one another; the others are from two documents."""
    rows, places = [], [places_of_pairs(sentences) for sentences in documents]
    kept = [[sentence for sentence in sentences if sentence is not None] for sentences in documents]
    for number in range(count):
        first = random.integers(len(documents))
        place = places[first][random.integers(len(places[first]))]
        follows = number % 2 == 0
        if follows:
            second = documents[first][place + 1]
        else:
            other = (first + 1 + random.integers(len(documents) - 1)) % len(documents)
            second = kept[other][random.integers(len(kept[other]))]
        label = "follows" if follows else "random"
        rows.append(json.dumps({"text": documents[first][place], "text_pair": second, "label": label}) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(rows), encoding="utf-8")


def write_names(path, documents, count, random):
    """Writes lower-cased sentences in CoNLL's format, a word and its label in each line."""
    lines = []
    for _ in range(count):
        document = [sentence for sentence in documents[random.integers(len(documents))] if sentence is not None]
        words = WORDS.findall(document[random.integers(len(document))])
        lines += [f"{word.lower()} {label}" for word, label in zip(words, name_labels(words), strict=True)] + [""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def name_labels(words):
    """B-NAME and I-NAME for words with a capital, O for others, for the first word, whose capital says nothing, and for
    single letters such as "I"."""
    labels, before = [], "O"
    for place, word in enumerate(words):
        is_name = place > 0 and len(word) > 1 and word[0].isupper()
        before = ("I-NAME" if before != "O" else "B-NAME") if is_name else "O"
        labels.append(before)
    return labels
