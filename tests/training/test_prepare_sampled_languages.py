"""Languages of different size, sampled for the vocabulary and for the rows."""

import collections

import pytest
from tiers import once

from keras_bert_impl.text.rows import shards
from keras_bert_impl.text.rows.example_files import RecordReader, parse_rows
from keras_bert_impl.text.tokenizers import open_tokenizer
from keras_bert_training import data_preparation
from keras_bert_training.data_preparation import PrepareConfig, VocabularySample, factors_of, open_pieces

pytestmark = once


@pytest.fixture
def corpus(tmp_path):
    """Nine hundred German documents of 33 bytes and a hundred Russian ones of 24."""
    sentences = {"de": "Der Hund sah die Katze im Garten.", "ru": "Кот спал у печи."}  # noqa: RUF001
    for (language, sentence), count in zip(sentences.items(), (900, 100), strict=True):
        (tmp_path / "text" / language).mkdir(parents=True)
        text = "\n\n".join([sentence] * count)
        (tmp_path / "text" / language / "a.txt").write_text(text, encoding="utf-8")
    return {"input": str(tmp_path / "text"), "text_format": "lines", "sequence_length": 16, "vocabulary_size": 100}


def prepare(output, **options):
    return data_preparation.run(PrepareConfig(str(output), **options))


def words_of_rows(directory, split):
    """How often each word stands in the rows of a split."""
    tokenizer, counts = open_tokenizer(directory), collections.Counter()
    for path in sorted(directory.rglob(f"{split}/*.tfrecord")):
        reader = RecordReader(path)
        ids = parse_rows(reader.read(100_000))["input_ids"].values
        reader.close()
        counts.update(tokenizer.vocabulary[index] for index in ids)
    return counts


def test_small_languages_are_used_more_often_and_large_ones_less(tmp_path, corpus, capsys):
    found = prepare(tmp_path / "data", language_exponent=0.5, pairs="doc_sentences", **corpus)["languages"]
    before, after = ({name: found[name][when] for name in ("de", "ru")} for when in ("before", "after"))
    # The files hold 900 * 35 - 2 and 100 * 30 - 2 bytes: the roots of 31498 and 2998 are as 3.24 to 1.
    sizes = {name: (tmp_path / "text" / name / "a.txt").stat().st_size for name in ("de", "ru")}
    assert list(sizes.values()) == [900 * 35 - 2, 100 * 30 - 2]
    for name, share in {"de": 3.24 / 4.24, "ru": 1 / 4.24}.items():
        assert after[name]["share"] == pytest.approx(share, abs=0.02)
        assert before[name]["share"] == pytest.approx(sizes[name] / sum(sizes.values()), abs=0.01)
    assert after["ru"]["documents"] > 2 * before["ru"]["documents"]
    assert after["de"]["documents"] < 0.9 * before["de"]["documents"]
    assert "language" in capsys.readouterr().out
    # What is counted is what stands in the rows, and other splits are as they were.
    words = words_of_rows(tmp_path / "data", "train")
    assert (words["hund"], words["печи"]) == (after["de"]["documents"], after["ru"]["documents"])
    del corpus["vocabulary_size"]
    prepare(tmp_path / "natural", pairs="doc_sentences", vocab=str(tmp_path / "data" / "vocab.txt"), **corpus)
    for split in ("validation", "test"):
        assert words_of_rows(tmp_path / "data", split) == words_of_rows(tmp_path / "natural", split)


def test_the_exponent_one_changes_no_document(tmp_path, corpus):
    sampled = prepare(tmp_path / "one", language_exponent=1.0, **corpus)
    natural = prepare(tmp_path / "none", **corpus)
    assert "languages" not in natural
    assert sampled["languages"]["ru"]["before"] == sampled["languages"]["ru"]["after"]
    files = [sorted((tmp_path / name).rglob("*.tfrecord")) for name in ("one", "none")]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


@pytest.mark.full
def test_workers_and_blocks_do_not_change_how_often_a_document_is_used(tmp_path, corpus, monkeypatch):
    whole = prepare(tmp_path / "whole", language_exponent=0.3, **corpus)["languages"]
    monkeypatch.setattr(data_preparation, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(data_preparation, "PIECE_BYTES", 1)
    monkeypatch.setattr(shards, "SHARD_TOKENS", 3000)
    results = [prepare(tmp_path / str(n), language_exponent=0.3, workers=n, **corpus)["languages"] for n in (1, 2)]
    assert results == [whole, whole]
    files = [sorted((tmp_path / str(n)).rglob("*.tfrecord")) for n in (1, 2)]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


@pytest.mark.parametrize("megabytes", [1, 0.01])
def test_the_vocabulary_is_learned_from_the_same_shares(corpus, megabytes, monkeypatch):
    """From all text, and from a part of it."""
    monkeypatch.setattr(data_preparation, "PIECE_BYTES", 1)
    config = PrepareConfig("", language_exponent=0.5, vocabulary_megabytes=megabytes, **corpus)
    pieces, _ = open_pieces(config)
    factors = factors_of(config, pieces)
    sizes = collections.Counter()
    for sentence in VocabularySample(config, pieces, factors):
        sizes["de" if sentence.isascii() else "ru"] += len(sentence.encode())
    files = {piece.files[0][0]: piece.documents.files[0].stat().st_size for piece in pieces}
    ratio = (files["de/a.txt"] / files["ru/a.txt"]) ** 0.5
    assert sizes["de"] / sizes["ru"] == pytest.approx(ratio, rel=0.1)
    if megabytes < 1:
        assert 9_900 < sum(sizes.values()) < 10_200


def test_text_outside_folders_is_refused_before_anything_is_written(tmp_path, corpus):
    (tmp_path / "text" / "more.txt").write_text("Ein Satz.")
    with pytest.raises(ValueError, match="and no other files"):
        prepare(tmp_path / "data", language_exponent=0.7, **corpus)
    assert not (tmp_path / "data").exists()
