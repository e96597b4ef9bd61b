"""Phrases at the places where a tagger has found them, from the rows of a file to the masks of a training run."""

import json

import numpy as np
import pytest
from tiers import once

from keras_bert_impl.preprocessing import shards
from keras_bert_impl.preprocessing.phrases import MARKS
from keras_bert_impl.preprocessing.record_files import RecordReader
from keras_bert_impl.preprocessing.serialized_rows import parse_rows
from keras_bert_impl.tokenizers.vocabulary import SPECIAL_TOKENS
from keras_bert_impl.training import data_preparation, pretraining
from keras_bert_impl.training.pretraining_data import PretrainingData

pytestmark = once

# "May Day" is an entity in the second sentence, and two words in the first.
TEXT = "On  May Day it may rain. We met May Day\nin New York. She saw Day in Yorkshire."
WORDS = "on may day it rain . we met in new york she saw ##shire".split()


def span_of(phrase, occurrence=0):
    """start and end of a phrase in TEXT."""
    start = -1
    for _ in range(occurrence + 1):
        start = TEXT.index(phrase, start + 1)
    return {"start": start, "end": start + len(phrase), "label": "X"}


@pytest.fixture
def tagged(tmp_path):
    """Options for two hundred documents in two files, whose phrases are "May Day", the second one, and "New York"."""
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *WORDS]) + "\n", encoding="utf-8")
    write_rows(tmp_path, [span_of("May Day", 1), span_of("New York")])
    options = {"vocab": str(tmp_path / "vocab.txt"), "sequence_length": 32, "text_format": "running"}
    return {**options, "input": str(tmp_path / "text")}


def write_rows(directory, spans, field="entities"):
    (directory / "text").mkdir(exist_ok=True)
    row = json.dumps({"text": TEXT, field: spans})
    for name in "ab":
        (directory / "text" / f"{name}.jsonl").write_text(f"{row}\n" * 100, encoding="utf-8")


def prepare(output, **options):
    return data_preparation.run(data_preparation.PrepareConfig(str(output), **options))


def rows_of(directory):
    """The features of all training rows, in the order of the files."""
    records = []
    for path in sorted(directory.rglob("train/*.tfrecord")):
        reader = RecordReader(path)
        records += reader.read(100_000)
        reader.close()
    return parse_rows(records)


def files_of(directory):
    """Name and content of the files of a preparation, but for the record of its options and the report with them."""
    without = ("run.json", "report.html")
    paths = [path for path in directory.rglob("*") if path.is_file() and path.name not in without]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def shown_rows(directory):
    """The tokens of all training rows with "+" before those that go on with a phrase."""
    rows, vocabulary = rows_of(directory), [*SPECIAL_TOKENS, *WORDS]
    pairs = zip(rows["input_ids"].values.tolist(), rows[MARKS].values.tolist(), strict=True)
    return " ".join("+" * mark + vocabulary[index] for index, mark in pairs)


def test_phrases_are_marked_where_they_stand_and_nowhere_else(tmp_path, tagged):
    found = prepare(tmp_path / "data", phrase_field="entities", **tagged)["phrases"]
    assert (found["given"], found["marked"], found["extended"]) == (400, 400, 0)
    shown = shown_rows(tmp_path / "data")
    assert shown.count("we met may +day in new +york .") > 100
    assert shown.count("on may day it may rain .") > 100
    assert set(shown.split()) & {f"+{word}" for word in WORDS} == {"+day", "+york"}


@pytest.mark.full
def test_ids_and_order_of_rows_are_those_without_phrases_on_any_number_of_workers(tmp_path, tagged, monkeypatch):
    monkeypatch.setattr(data_preparation, "PIECE_BYTES", 1000)
    monkeypatch.setattr(data_preparation, "BLOCK_BYTES", 1000)
    spans = [span_of("y Day", 1), span_of("York", 1), span_of("She")]
    write_rows(tmp_path, spans)
    prepare(tmp_path / "plain", workers=1, **tagged)
    prepare(tmp_path / "one", phrase_field="entities", workers=1, **tagged)
    prepare(tmp_path / "two", phrase_field="entities", workers=2, **tagged)
    plain, rows = rows_of(tmp_path / "plain"), rows_of(tmp_path / "one")
    assert set(rows) - set(plain) == {MARKS} and rows[MARKS].values.max() == 1
    for name, values in plain.items():
        np.testing.assert_array_equal(rows[name].values, values.values)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_every_phrase_is_counted_whether_it_is_marked_or_not(tmp_path, tagged, capsys):
    spans = [span_of("Yorkshire"), span_of("York", 1), span_of("rain. We"), span_of("met Ma"), {"start": 2, "end": 4}]
    write_rows(tmp_path, spans)
    summary = prepare(tmp_path / "data", phrase_field="entities", **tagged)
    assert summary["phrases"] == {
        "given": 1000,
        "marked": 400,
        "extended": 200,
        "overlapping": 200,
        "across_sentences": 200,
        "without_tokens": 200,
        "unreadable_rows": 0,
    }
    assert json.loads((tmp_path / "data" / "summary.json").read_text())["phrases"] == summary["phrases"]
    printed = capsys.readouterr().out
    assert '400 of 1,000 phrases in the field "entities" are marked, 200 of them extended to whole words' in printed
    assert "200 phrases are not marked, because they overlap a longer or equal one" in printed
    assert "200 phrases are not marked, because they cross the end of a sentence" in printed
    assert "200 phrases are not marked, because they have no character that the tokenizer keeps" in printed


def test_rows_with_malformed_phrases_stop_the_run_or_are_counted(tmp_path, tagged, capsys):
    with (tmp_path / "text" / "b.jsonl").open("a") as file:
        file.write('{"text": "We met.", "entities": [[0, 8]]}\n')
    message = r"b\.jsonl:101: entities\[0\] is \[0, 8\], expected .* within the 7 characters"
    with pytest.raises(ValueError, match=message):
        prepare(tmp_path / "data", phrase_field="entities", **tagged)
    assert not (tmp_path / "data").exists()
    found = prepare(tmp_path / "data", phrase_field="entities", skip_unreadable=True, **tagged)["phrases"]
    assert (found["given"], found["unreadable_rows"]) == (400, 1)
    assert "b.jsonl:101: entities[0] is [0, 8], expected" in capsys.readouterr().out


def test_an_interrupted_preparation_goes_on_with_the_same_phrases(tmp_path, tagged, monkeypatch):
    options = {"phrase_field": "entities", **tagged}
    prepare(tmp_path / "whole", **options)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(data_preparation, "write_shard", lambda settings, shard: 1 / 0)
        prepare(tmp_path / "data", **options)
    monkeypatch.setattr(shards, "mark_spans", lambda *_: 1 / 0)  # its pieces are done
    assert prepare(tmp_path / "data", **options)["phrases"]["marked"] == 400
    assert files_of(tmp_path / "data") == files_of(tmp_path / "whole")
    with pytest.raises(ValueError, match="phrase_field 'entities' there, 'ents' here"):
        prepare(tmp_path / "data", **{**options, "phrase_field": "ents"})


def test_sampled_languages_keep_their_phrases(tmp_path, tagged):
    for name, language in (("a", "en"), ("b", "de")):
        (tmp_path / "text" / language).mkdir()
        (tmp_path / "text" / f"{name}.jsonl").rename(tmp_path / "text" / language / "rows.jsonl")
    with (tmp_path / "text" / "en" / "rows.jsonl").open("a") as file:
        file.write(f"{json.dumps({'text': TEXT, 'entities': [span_of('May Day', 1)]})}\n" * 300)
    summary = prepare(tmp_path / "data", phrase_field="entities", language_exponent=0.5, **tagged)
    documents = sum(summary["corpus"][split]["documents"] for split in ("train", "validation", "test"))
    assert 400 < documents < 600 and summary["phrases"]["marked"] > documents
    shown = shown_rows(tmp_path / "data")
    assert shown.count("met may +day in new +york .") > 100 < shown.count("met may +day in new york .")


def test_phrases_are_masked_whole_in_training(tmp_path, tagged):
    prepare(tmp_path / "data", phrase_field="entities", packed=True, **tagged)
    cut = {}
    for unit in ("phrase", "whole_word"):
        config = pretraining.PretrainConfig(str(tmp_path / "data"), "", masking_unit=unit, batch_size=8)
        data = PretrainingData(config)
        met, may, day = map(data.tokenizer.token_to_id, ("met", "may", "day"))
        cut[unit] = chosen = 0
        for (inputs, labels), original in zip(data.arrays("train"), data.unmasked_rows("train"), strict=True):
            is_chosen = np.zeros(original.shape, bool)
            row, column = np.nonzero(labels["mask_weights"])
            is_chosen[row, inputs["mask_positions"][row, column]] = True
            entity = (original[:, :-2] == met) & (original[:, 1:-1] == may) & (original[:, 2:] == day)
            cut[unit] += (entity & (is_chosen[:, 1:-1] != is_chosen[:, 2:])).sum()
            chosen += (entity & is_chosen[:, 2:]).sum()
        assert chosen > 10
    assert cut["phrase"] == 0 < cut["whole_word"]
