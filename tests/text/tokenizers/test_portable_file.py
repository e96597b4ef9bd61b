"""The tokenizer.json of an export, read by the `tokenizers` library alone."""

import unicodedata

import pytest
from hostile_texts import HOSTILE_TEXTS, letters_between, mixed_texts, revealing_vocabulary
from made_tokenizers import byte_pair_tokenizer, deberta_v1_tokenizer, mmbert_tokenizer, modernbert_tokenizer
from tiers import once
from tokenizers import Tokenizer

import keras_bert_impl as kbi
from keras_bert_impl.text.tokenizers import google_characters
from keras_bert_impl.text.tokenizers.tokenizer_json import write_portable_file

pytestmark = once

NO_LIMIT = 10**6


def portable(tokenizer, folder, sequence_length=NO_LIMIT, **options):
    write_portable_file(tokenizer, folder / "tokenizer.json", sequence_length, **options)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def assigned_letters(step):
    """Characters between two letters, without those that Unicode 14 does not have."""
    is_same_unicode = unicodedata.unidata_version == google_characters.UNICODE_VERSION
    return [text for text in letters_between(step) if not is_same_unicode or unicodedata.category(text[1]) != "Cn"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_are_those_of_training_in_every_script(lowercase, tmp_path):
    texts = [*HOSTILE_TEXTS, *mixed_texts(100), *assigned_letters(997)]
    tokenizer = kbi.WordPieceTokenizer(revealing_vocabulary(texts, lowercase), lowercase)
    read = portable(tokenizer, tmp_path)
    read.no_padding()
    found, expected = ([row.ids for row in source.encode_batch(texts)] for source in (read, tokenizer))
    assert [text for text, one, other in zip(texts, found, expected, strict=True) if one != other] == []


def test_rows_are_padded_and_cut_as_here(small_tokenizer, tmp_path):
    texts = ["the cat sat on a mat in rain", "a dog"]
    rows = portable(small_tokenizer, tmp_path, sequence_length=7).encode_batch(texts)
    expected = small_tokenizer(texts, sequence_length=7)
    for name, field in (("token_ids", "ids"), ("segment_ids", "type_ids"), ("padding_mask", "attention_mask")):
        assert [getattr(row, field) for row in rows] == expected[name].tolist()


@pytest.mark.parametrize(("masks", "tokens"), [(True, ["[MASK]"]), (False, ["[UNK]", "[UNK]", "[UNK]"])])
def test_mask_is_a_token_only_where_words_are_guessed(masks, tokens, small_tokenizer, tmp_path):
    assert portable(small_tokenizer, tmp_path, masks=masks).encode("[MASK]").tokens[1:-1] == tokens


def test_windows_cover_a_long_context(small_tokenizer, tmp_path):
    context = "the cat sat on a mat in rain . the dog ran"
    window = portable(small_tokenizer, tmp_path, sequence_length=9, stride=2).encode("is it", context)
    covered = {offset for one in (window, *window.overflowing) for offset in one.offsets}
    assert {(0, 3), (4, 7), (39, 42)} <= covered and len(window.overflowing) > 1


@pytest.mark.parametrize("made", [byte_pair_tokenizer, deberta_v1_tokenizer, modernbert_tokenizer, mmbert_tokenizer])
def test_byte_pairs_have_the_rows_of_a_pair_as_here(made, tmp_path):
    tokenizer = made()
    mask = tokenizer.mask_texts[0]
    read = portable(tokenizer, tmp_path, masks=True)
    firsts, seconds = ["The cat sat", "Cafe\u0301   and [CLS]"], ["a dog <s>", "Paris,  Bern"]
    rows = read.encode_batch(list(zip(firsts, seconds, strict=True)))
    expected = tokenizer(firsts, seconds)
    for name, field in (("token_ids", "ids"), ("segment_ids", "type_ids"), ("padding_mask", "attention_mask")):
        assert [getattr(row, field) for row in rows] == expected[name][:, : len(rows[0].ids)].tolist()
    assert read.encode(f"It is {mask}.").ids == tokenizer.encode_with_masks(f"It is {mask}.").ids
