"""Phrases, from the command to the masks of a training run."""

import numpy as np
import pytest
from six_languages import SENTENCES
from tiers import once

from keras_bert_impl.text.rows import shards
from keras_bert_impl.text.rows.example_files import RecordReader, parse_rows
from keras_bert_impl.text.rows.phrases import MARKS
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS
from keras_bert_training import data_preparation, pretraining

pytestmark = once

WORDS = ["北京", "中国", "首都", "全国", "政治", "文化", "中心", "长江", "公里", "亚洲", "河流"]


@pytest.fixture
def chinese(tmp_path):
    """Options for a hundred documents of two sentences, and for a file of words."""
    characters = sorted({character for sentence in SENTENCES["zh"][:2] for character in sentence})
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *characters]) + "\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("\n\n".join(["\n".join(SENTENCES["zh"][:2])] * 100), encoding="utf-8")
    (tmp_path / "words.txt").write_text("\n".join(WORDS), encoding="utf-8")
    options = {"vocab": str(tmp_path / "vocab.txt"), "text_format": "lines", "language": "zh", "sequence_length": 64}
    return {**options, "input": str(tmp_path / "text.txt")}


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


def test_words_of_a_file_are_marked_in_rows_of_chinese(tmp_path, chinese):
    summary = prepare(tmp_path / "listed", phrases=str(tmp_path / "words.txt"), **chinese)
    figures = {"given": 11, "places": 1100, "lines_with_unknown_words": [], "lines_not_in_text": []}
    assert summary["phrases"] == figures
    rows = rows_of(tmp_path / "listed")
    vocabulary = (tmp_path / "listed" / "vocab.txt").read_text(encoding="utf-8").split()
    shown = "".join(
        "+" * mark + vocabulary[index] for index, mark in zip(rows["input_ids"].values, rows[MARKS].values, strict=True)
    )
    units = {"北+京是中+国的首+都", "政+治和文+化中+心", "六千三百公+里", "是亚+洲最长的河+流"}
    assert all(unit in shown for unit in units) and "+是" not in shown and "+[" not in shown


def test_words_of_a_file_are_masked_whole_in_training(tmp_path, chinese):
    prepare(tmp_path / "data", phrases=str(tmp_path / "words.txt"), packed=True, **chinese)
    cut = {}
    for unit in ("phrase", "whole_word"):
        config = pretraining.PretrainConfig(str(tmp_path / "data"), "", masking_unit=unit, batch_size=8)
        data = pretraining.open_data(config)
        ids_of = data.tokenizer.token_to_id
        words = [tuple(map(ids_of, word)) for word in WORDS]
        cut[unit] = chosen = 0
        for (inputs, labels), original in zip(data.arrays("train"), data.unmasked_rows("train"), strict=True):
            is_chosen = np.zeros(original.shape, bool)
            row, column = np.nonzero(labels["mask_weights"])
            is_chosen[row, inputs["mask_positions"][row, column]] = True
            for first, second in words:
                whole = (original[:, :-1] == first) & (original[:, 1:] == second)
                cut[unit] += (whole & (is_chosen[:, :-1] != is_chosen[:, 1:])).sum()
                chosen += (whole & is_chosen[:, :-1]).sum()
        assert chosen > 50
    assert cut["phrase"] == 0 < cut["whole_word"]


def test_a_phrase_that_the_text_or_the_vocabulary_does_not_have_is_reported(tmp_path, chinese, capsys):
    (tmp_path / "words.txt").write_text("北京\n京北\n上海\n公里\n", encoding="utf-8")
    found = prepare(tmp_path / "data", phrases=str(tmp_path / "words.txt"), **chinese)["phrases"]
    assert found == {"given": 4, "places": 200, "lines_with_unknown_words": [3], "lines_not_in_text": [2, 3]}
    printed = capsys.readouterr().out
    assert "2 of 4 phrases occur" in printed and "line 3: 上海" in printed and "line 2: 京北" in printed


def test_text_without_phrases_has_none_to_mask(tmp_path, chinese):
    summary = prepare(tmp_path / "data", **chinese)
    assert "phrases" not in summary and MARKS not in rows_of(tmp_path / "data")
    with pytest.raises(ValueError, match="data holds no phrases to mask"):
        pretraining.open_data(pretraining.PretrainConfig(str(tmp_path / "data"), "", masking_unit="phrase"))


@pytest.mark.full
def test_phrases_do_not_change_ids_nor_the_order_of_rows(tmp_path, chinese, monkeypatch):
    monkeypatch.setattr(data_preparation, "BLOCK_BYTES", 1000)
    prepare(tmp_path / "plain", workers=1, **chinese)
    prepare(tmp_path / "one", phrases=str(tmp_path / "words.txt"), workers=1, **chinese)
    prepare(tmp_path / "two", phrases=str(tmp_path / "words.txt"), workers=2, **chinese)
    plain, rows = rows_of(tmp_path / "plain"), rows_of(tmp_path / "one")
    np.testing.assert_array_equal(plain["input_ids"].values, rows["input_ids"].values)
    assert set(rows) - set(plain) == {MARKS}
    files = [sorted((tmp_path / name).rglob("*.tfrecord")) for name in ("one", "two")]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


def test_the_phrases_of_a_directory_stay_the_same(tmp_path, chinese, monkeypatch):
    def interrupted(settings, shard):
        raise KeyboardInterrupt

    options = {"phrases": str(tmp_path / "words.txt"), **chinese}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(data_preparation, "write_shard", interrupted)
        prepare(tmp_path / "data", **options)
    (tmp_path / "words.txt").write_text("北京\n", encoding="utf-8")
    with pytest.raises(ValueError, match="differs from the phrases"):
        prepare(tmp_path / "data", **options)
    (tmp_path / "words.txt").write_text("\n".join(WORDS), encoding="utf-8")
    prepare(tmp_path / "data", **options)
    assert (tmp_path / "data" / "phrases.txt").read_text(encoding="utf-8").split() == WORDS
    named = {file["path"] for file in shards.read_manifest(tmp_path / "data")[1]}
    assert "phrases.txt" in named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"masking_unit": "phrase"}, "needs phrases to mask"),
        ({"phrases": "words.txt", "tokenizer": "byte_pair"}, "is for tokenizer wordpiece"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        prepare(tmp_path / "data", **options)
    assert not (tmp_path / "data").exists()


def test_a_phrase_of_which_nothing_is_left_is_refused_with_its_line(tmp_path, chinese):
    (tmp_path / "words.txt").write_text("北京\n\u200d\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"words\.txt line 2"):
        prepare(tmp_path / "data", phrases=str(tmp_path / "words.txt"), **chinese)
    assert not (tmp_path / "data").exists()
