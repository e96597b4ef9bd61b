"""What tokenizers of every kind do, and that the tokenizer of a directory is found by its files."""

import copy
import json
import pickle

import pytest
from conftest import WORDS
from made_tokenizers import (
    albert_tokenizer,
    bigbird_tokenizer,
    byte_pair_tokenizer,
    camembert_tokenizer,
    deberta_tokenizer,
    deberta_v1_tokenizer,
    eurobert_tokenizer,
    mmbert_tokenizer,
    modernbert_tokenizer,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from tiers import once
from transformers import AutoTokenizer

from keras_bert_impl.text.tokenizers import (
    BytePairTokenizer,
    WordPieceTokenizer,
    kind_in,
    open_tokenizer,
    tokenizer_from_config,
    tokenizer_to_config,
)

pytestmark = once

TOKENIZERS = [
    WordPieceTokenizer(WORDS, lowercase=False),
    byte_pair_tokenizer(add_prefix_space=True),
    modernbert_tokenizer(),
    modernbert_tokenizer(add_prefix_space=True),
    deberta_v1_tokenizer(),
    albert_tokenizer(lowercase=False, keep_accents=True),
    xlm_roberta_tokenizer(),
    xlnet_tokenizer(),
    bigbird_tokenizer(),
    deberta_tokenizer(),
    mmbert_tokenizer(),
    eurobert_tokenizer(),
    camembert_tokenizer(),
]
every_kind = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda tokenizer: tokenizer.kind)


@every_kind
def test_a_saved_tokenizer_is_opened_again_and_a_described_one_built_again(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(tokenizer.files)
    assert open_tokenizer(tmp_path) == tokenizer
    assert tokenizer_from_config(json.loads(json.dumps(tokenizer_to_config(tokenizer)))) == tokenizer


@every_kind
def test_a_copy_gives_the_same_ids(tokenizer):
    for again in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert again == tokenizer and again.encode("The Café").ids == tokenizer.encode("The Café").ids


@every_kind
def test_control_tokens_in_a_text_stay_text(tokenizer):
    for text in ("[CLS] a [SEP]", "a<s>b </s> <pad>", "[MASK] <mask> [PAD] [UNK]", "<bos>b <eos><unk>", "[sep]"):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert not (tokenizer.special_ids - {tokenizer.unk_id}) & set(ids)
        assert tokenizer.ids_batch([text]) == [ids]


@every_kind
def test_words_have_the_ids_that_they_have_in_running_text(tokenizer):
    words = ["The", "cat", "isn't", "in", "Zürich", "日本", "."]
    [ids] = tokenizer.ids_of_words([words])
    running = tokenizer.encode(" ".join(words), add_special_tokens=False).ids
    assert [index for of_word in ids for index in of_word] == running


# Pairs of DeBERTa's first version have another row in transformers 5.
BYTE_PAIRS = [one for one in TOKENIZERS if isinstance(one, BytePairTokenizer) and one.kind != "deberta_byte_pair"]


@pytest.mark.parametrize("tokenizer", BYTE_PAIRS, ids=lambda tokenizer: tokenizer.kind)
def test_what_transformers_saves_opens_here_and_masks_are_its_own(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "ours", sequence_length=77)
    theirs, mask = AutoTokenizer.from_pretrained(tmp_path / "ours"), tokenizer.mask_texts[0]
    assert theirs.model_max_length == 77 and theirs.mask_token_id == tokenizer.mask_id
    for text in (f"The cat   {mask}.", f"The \n{mask} cat {mask}", mask, "日本\n\nx"):
        expected = theirs(text)["input_ids"]
        assert tokenizer.encode_with_masks(text).ids == expected, text
        assert tokenizer.encode_with_masks(text.replace(mask, "[MASK]")).ids == expected, text
    assert theirs("The cat", "Café")["input_ids"] == tokenizer.encode("The cat", "Café").ids
    theirs.save_pretrained(tmp_path / "theirs")
    assert type(tokenizer).from_pretrained(tmp_path / "theirs") == tokenizer


def test_a_description_without_a_kind_is_of_wordpiece():
    assert tokenizer_from_config({"vocabulary": WORDS, "lowercase": False}) == TOKENIZERS[0]
    assert tokenizer_from_config(tokenizer_to_config(None)) is None


def test_a_directory_of_no_several_or_unknown_vocabularies(tmp_path):
    assert kind_in(tmp_path) is None
    with pytest.raises(FileNotFoundError, match="has no vocabulary: expected one of"):
        open_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "WordLevel"}}')
    with pytest.raises(ValueError, match=r"tokenizer.json: its tokenization algorithm is not supported"):
        kind_in(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    assert kind_in(tmp_path) is BytePairTokenizer
    (tmp_path / "vocab.txt").write_text("a")
    with pytest.raises(ValueError, match=r"several tokenizers \(vocab.txt, tokenizer.json\)"):
        kind_in(tmp_path)
