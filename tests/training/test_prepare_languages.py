"""Options that describe the text, and warnings about words that the vocabulary loses."""

import json

import pytest
from six_languages import SENTENCES
from tiers import once

from keras_bert_impl import WordPieceTokenizer
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS
from keras_bert_training import data_preparation, labelled_sentences

pytestmark = once


@pytest.mark.parametrize(("text_format", "documents"), [("lines", 100), ("paragraphs", 100), ("running", 1)])
def test_format_and_language_come_from_the_command_line(tmp_path, command, capsys, text_format, documents):
    text = "\n\n".join(["Es war der 3. Oktober.\nEr las z. B. Bücher."] * 100)
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    places = ["--input", tmp_path / "a.txt", "--output", tmp_path / "data", "--vocabulary_size", 100]
    options = ["--text_format", text_format, "--language", "de"]
    error = command(data_preparation.PrepareConfig, data_preparation.run, *places, *options)
    if documents == 1:
        assert "The corpus has 1 documents" in error
    else:
        assert error is None
        held_out = (tmp_path / "data" / "held_out.txt").read_text(encoding="utf-8").splitlines()
        assert sorted(held_out) == ["Er las z. B. Bücher.", "Es war der 3. Oktober."]


def test_another_field_and_language_from_the_command_line(tmp_path, command, capsys):
    rows = [json.dumps({"body": "".join(SENTENCES["zh"])}, ensure_ascii=False)] * 100
    (tmp_path / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    arguments = ["--input", tmp_path / "a.jsonl", "--output", tmp_path / "data", "--vocabulary_size", 200]
    call = [data_preparation.PrepareConfig, data_preparation.run, *arguments]
    assert "Set text_field to the field that holds the text" in command(*call)
    assert command(*call, "--text_field", "body", "--language", "zh") is None
    assert "no abbreviations are known for language zh" in capsys.readouterr().out
    held_out = (tmp_path / "data" / "held_out.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(held_out) == sorted(SENTENCES["zh"])


@pytest.mark.parametrize(("text", "share", "examples"), [("a b 中 c\nd", 1 / 5, "中"), ("a b c d" * 50, 0, None)])
def test_unknown_words_are_counted_and_warned_of(tmp_path, capsys, text, share, examples):
    (tmp_path / "held_out.txt").write_text(text, encoding="utf-8")
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b", "c", "d", "##a"])
    assert labelled_sentences.report_losses(tmp_path, tokenizer) == pytest.approx(share)
    printed = capsys.readouterr().out
    assert (f"20.0% of the held-out words become [UNK] ({examples})" in printed) is bool(examples)


@pytest.mark.parametrize(
    ("language", "lowercase", "warns"), [("hi", True, True), ("hi", False, False), ("ru", True, False)]
)
def test_vowel_signs_that_lower_casing_drops_are_warned_of(tmp_path, capsys, language, lowercase, warns):
    (tmp_path / "held_out.txt").write_text("\n".join(SENTENCES[language]), encoding="utf-8")
    labelled_sentences.report_losses(tmp_path, WordPieceTokenizer(list(SPECIAL_TOKENS), lowercase))
    assert ("dropped as accents" in capsys.readouterr().out) is warns
