"""The tasks that an ablation makes from its corpus."""

import json

import numpy as np
import pytest
from tiers import once

from keras_bert_impl.corpora import Document
from keras_bert_impl.studies import ablation_tasks
from keras_bert_impl.tasks.conll import read_conll
from keras_bert_impl.tasks.tables import BadRows

pytestmark = once


def document(number):
    return [f"sentence {place} of the document {number} ." for place in range(6)]


def test_half_of_the_pairs_follow_one_another_and_the_others_are_of_two_documents(tmp_path):
    documents = [document(number) for number in range(3)]
    ablation_tasks.write_pairs(tmp_path / "pairs.jsonl", documents, 40, np.random.default_rng(0))
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert sorted({row["label"] for row in rows}) == ["follows", "random"]
    assert sum(row["label"] == "follows" for row in rows) == 20
    for row in rows:
        (_, first, *_, one, _), (_, second, *_, other, _) = row["text"].split(), row["text_pair"].split()
        if row["label"] == "follows":
            assert one == other and int(second) == int(first) + 1
        else:
            assert one != other


def test_sentences_between_which_one_was_left_out_do_not_follow_one_another(tmp_path, monkeypatch):
    monkeypatch.setattr(ablation_tasks, "split_of", lambda name, seed: name)
    texts = [*document(0)[:2], "A heading", *document(0)[2:4], "Another", document(0)[4]]
    corpus = [Document(split, "source", texts) for split in ("train", "validation", "test") for _ in range(2)]
    found = ablation_tasks.sample_documents(corpus, 0, 99, 0)["train"]
    assert ablation_tasks.places_of_pairs(found[0]) == [0, 3]
    ablation_tasks.write_pairs(tmp_path / "pairs.jsonl", found, 60, np.random.default_rng(0))
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    pairs = {(row["text"], row["text_pair"]) for row in rows if row["label"] == "follows"}
    assert pairs == {(texts[0], texts[1]), (texts[3], texts[4])}
    assert not any("eading" in text or text == "Another" for row in rows for text in (row["text"], row["text_pair"]))


def test_names_are_words_with_a_capital_that_do_not_begin_the_sentence():
    words = ["The", "Keras", "API", "of", "I", "and", "NumPy", "."]
    expected = ["O", "B-NAME", "I-NAME", "O", "O", "O", "B-NAME", "O"]
    assert ablation_tasks.name_labels(words) == expected


def test_the_capitals_themselves_are_not_shown(tmp_path):
    ablation_tasks.write_names(tmp_path / "dev.txt", [["He met Jane Eyre there ."]], 2, np.random.default_rng(0))
    first, _ = read_conll(tmp_path / "dev.txt", BadRows("stop"))
    assert first.words == ["he", "met", "jane", "eyre", "there", "."]
    assert first.labels == ["O", "O", "B-NAME", "I-NAME", "O", "O"]


def test_documents_keep_the_split_that_pretraining_gave_them(monkeypatch):
    splits = {"a": "train", "b": "train", "c": "validation", "d": "validation", "e": "test", "f": "test"}
    monkeypatch.setattr(ablation_tasks, "split_of", lambda name, seed: splits[name])
    corpus = [Document(name, "source", [f"{name} is a word of this text"] * 3) for name in splits]
    found = ablation_tasks.sample_documents(corpus, 0, 2, 0)
    assert {split: [sentences[0][0] for sentences in found[split]] for split in found} == {
        "train": ["a", "b"], "validation": ["c", "d"], "test": ["e", "f"],
    }  # fmt: skip


def test_a_corpus_too_small_for_tasks_is_refused():
    with pytest.raises(ValueError, match=r"split of the corpus has . documents, which is too few for tasks"):
        ablation_tasks.sample_documents([Document("a", "s", ["one two three four five six"] * 3)], 0, 2, 0)
