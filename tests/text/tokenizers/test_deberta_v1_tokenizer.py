"""DeBERTa's first tokenizer gives GPT-2's pieces in BERT's rows, in the files that transformers opens."""

import pytest
from made_tokenizers import SENTENCES, byte_pair_tokenizer, deberta_v1_tokenizer
from tiers import once

from keras_bert_impl.text.tokenizers import BytePairTokenizer, DebertaTokenizer, kind_in

pytestmark = once
TEXTS = [*SENTENCES, "", " ", "\n a  b\t", "[CLS] [MASK] <s>", "日本 café 🙂"]


@pytest.fixture(params=[False, True], ids=["as it is", "with a space"])
def tokenizer(request):
    return deberta_v1_tokenizer(request.param)


def test_ids_and_offsets_are_those_of_transformers(tokenizer, tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizer.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert type(theirs).__name__.removesuffix("Fast") == "DebertaTokenizer"
    for text in TEXTS:
        if "[" in text:  # transformers takes control tokens in a text for what they say
            continue
        expected = theirs(text, return_offsets_mapping=True)
        found = tokenizer.encode(text)
        assert (found.ids, found.type_ids) == (expected["input_ids"], expected["token_type_ids"]), text
    masked = tokenizer.encode_with_masks("The capital of [MASK] is Paris")
    assert masked.ids == theirs("The capital of [MASK] is Paris")["input_ids"]


def test_a_row_is_bert_s_without_segments(tokenizer):
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    first, second = (tokenizer.encode(text, add_special_tokens=False).ids for text in ("the cat", "a dog"))
    pair = tokenizer.encode("the cat", "a dog")
    assert pair.ids == [cls, *first, sep, *second, sep] and not any(pair.type_ids)
    # Pieces are those of RoBERTa's tokenizer over the same merges; only control tokens differ.
    others = BytePairTokenizer(
        ["<s>", "<pad>", "</s>", "<unk>", *tokenizer.vocabulary[4:-1], "<mask>"],
        tokenizer.merges,
        tokenizer.add_prefix_space,
    )
    for text in TEXTS:
        assert tokenizer.encode(text, add_special_tokens=False).tokens == (
            others.encode(text, add_special_tokens=False).tokens
        )


def test_its_files_are_told_from_those_of_roberta_and_modernbert(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "own")
    assert kind_in(tmp_path / "own") is DebertaTokenizer
    byte_pair_tokenizer().save_pretrained(tmp_path / "roberta")
    assert kind_in(tmp_path / "roberta") is BytePairTokenizer
    tokenizer.pipeline().save(str(tmp_path / "own" / "tokenizer.json"))  # beside its vocabulary, as transformers has it
    assert kind_in(tmp_path / "own") is DebertaTokenizer
    assert DebertaTokenizer.from_pretrained(tmp_path / "own") == tokenizer
