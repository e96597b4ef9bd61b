# ruff: noqa: RUF001
"""The tokenizer of DeBERTa's version 3: sentencepiece's ids, with the bytes of characters that it does not know."""

import json

import pytest
import sentencepiece
from hostile_texts import HOSTILE_TEXTS, mixed_texts
from made_tokenizers import SENTENCES, deberta_tokenizer
from tiers import once
from tokenizers import Tokenizer
from transformers import AutoTokenizer

import keras_bert_impl as kbi
from keras_bert_impl.text.tokenizers import kind_in, open_tokenizer
from keras_bert_impl.text.tokenizers.tokenizer_json import write_portable_file

pytestmark = once

TEXTS = [
    *(text for text in HOSTILE_TEXTS if len(text) < 1000),
    *SENTENCES,
    *mixed_texts(50),
    "  a   漢字 😀 b  ",
    "ＦＵＬＬ",
]


@pytest.fixture(params=[True, False], ids=["bytes", ""])
def tokenizer(request):
    return deberta_tokenizer(request.param)


def changed(tokenizer, folder, change):
    """A directory with the tokenizer.json of a tokenizer alone, after `change` of its content."""
    tokenizer.save_pretrained(folder)
    (folder / tokenizer.files[0]).unlink()
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_texts_have_the_ids_of_sentencepiece_and_the_mask_follows_its_pieces(tokenizer):
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    assert tokenizer.mask_id == pieces.get_piece_size() == tokenizer.vocabulary_size - 1
    assert (tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.unk_id) == (0, 1, 2, 3)
    for text in TEXTS:
        expected = pieces.encode(text)
        assert tokenizer.encode(text).ids == [1, *expected, 2] and tokenizer.ids_batch([text]) == [expected], text
    pair = tokenizer.encode("The cat", "Paris")
    assert pair.type_ids[0] == 0 and pair.type_ids[-1] == 1 and pair.ids.count(2) == 2


def test_bytes_of_a_character_stand_where_it_does_and_are_one_word():
    tokenizer = deberta_tokenizer()
    text = "The 漢, 😀 cat"
    encoding = tokenizer.encode(text, add_special_tokens=False)
    spans = {
        text[slice(*span)] for token, span in zip(encoding.tokens, encoding.offsets, strict=True) if "<0x" in token
    }
    assert spans == {"漢", "😀"}
    numbers = tokenizer.word_numbers(text, encoding)
    words = {
        number for token, number in zip(encoding.tokens, numbers.tolist(), strict=True) if token in ("<0xE6>", "<0xA2>")
    }
    assert len(words) == 1
    is_continuation = dict(zip(tokenizer.vocabulary, tokenizer.is_continuation, strict=True))
    assert is_continuation["<0xA2>"] and not is_continuation["[MASK]"] and not is_continuation["▁"]


def test_ids_read_as_their_text():
    tokenizer = deberta_tokenizer()
    assert tokenizer.decode(tokenizer.encode("The 漢, 😀 cat").ids) == "The 漢, 😀 cat"
    assert tokenizer.decode([tokenizer.token_to_id("<0xE6>")]) == "\ufffd"
    assert tokenizer.decode([1, 2], skip_special_tokens=False) == "[CLS][SEP]"


def test_what_is_saved_gives_transformers_the_same_ids(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path, sequence_length=20)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.model_max_length == 20 and theirs.pad_token_id == 0 and theirs.mask_token_id == tokenizer.mask_id
    for text in (*SENTENCES, "a 漢 😀 ＦＵＬＬ", "It is [MASK], 2018."):
        assert theirs(text)["input_ids"] == tokenizer.encode_with_masks(text).ids, text
    pair, ours = theirs("The cat", "Paris"), tokenizer.encode("The cat", "Paris")
    assert pair["input_ids"] == ours.ids and pair.get("token_type_ids", ours.type_ids) == ours.type_ids
    theirs.save_pretrained(tmp_path / "again")
    assert kind_in(tmp_path / "again") is kbi.DebertaV2Tokenizer
    assert open_tokenizer(tmp_path / "again").ids_batch(TEXTS) == tokenizer.ids_batch(TEXTS)


def test_a_file_without_the_model_gives_its_ids(tokenizer, tmp_path):
    def as_transformers_4_writes_it(content):
        content["normalizer"]["normalizers"].append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
        spaces = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "prepend_scheme": "always"}
        content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [spaces]}

    for number, change in enumerate((lambda content: None, as_transformers_4_writes_it)):
        read = open_tokenizer(changed(tokenizer, tmp_path / str(number), change))
        assert type(read) is kbi.DebertaV2Tokenizer and read.vocabulary == tokenizer.vocabulary
        assert read.ids_batch(TEXTS) == tokenizer.ids_batch(TEXTS)


def test_a_portable_file_gives_the_ids(tokenizer, tmp_path):
    write_portable_file(tokenizer, tmp_path / "tokenizer.json", 1000)
    read = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in (*SENTENCES, "a 漢 😀 ＦＵＬＬ"):
        assert read.encode(text, "Paris").ids == tokenizer.encode(text, "Paris").ids, text
