"""Byte-level BPE gives the ids, offsets and texts of transformers' RoBERTa, except for control tokens in texts."""

import json
import re
import shutil

import pytest
from conftest import REAL_DATA
from hostile_texts import HOSTILE_TEXTS
from made_tokenizers import SENTENCES, byte_pair_tokenizer
from tiers import once
from transformers import RobertaTokenizerFast

from keras_bert_impl.text.tokenizers import BytePairTokenizer

pytestmark = once

SPECIAL = re.compile("<s>|<pad>|</s>|<unk>|<mask>")
TEXTS = [
    *(text for text in HOSTILE_TEXTS if len(text) < 1000),
    *SENTENCES,
    "a   b",
    " leading, trailing \n\n\n  ",
    "'s 're it'll I'd we've",
    "naïve 😀👩\u200d👧 漢字 ½",
]


def published_files():
    files = [REAL_DATA / "vocab" / f"roberta-base-{name}" for name in ("vocab.json", "merges.txt")]
    if not all(path.is_file() for path in files):
        pytest.skip(f"{files[0]} is not there")
    return files


@pytest.fixture(scope="module")
def published():
    return BytePairTokenizer(*published_files())


def transformers_tokenizer(tokenizer, folder):
    """The tokenizer that transformers opens from what ours has saved."""
    tokenizer.save_pretrained(folder)
    return RobertaTokenizerFast.from_pretrained(folder)


def assert_same(ours, theirs, texts):
    for text in texts:
        assert not SPECIAL.search(text)
        found, expected = ours.encode(text), theirs(text, return_offsets_mapping=True)
        assert found.ids == expected["input_ids"], text
        assert found.offsets == expected["offset_mapping"], text
        assert ours.decode(found.ids) == theirs.decode(found.ids, skip_special_tokens=True)


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_hard_texts_give_the_ids_and_offsets_of_transformers(tmp_path, add_prefix_space):
    tokenizer = byte_pair_tokenizer(add_prefix_space)
    assert_same(tokenizer, transformers_tokenizer(tokenizer, tmp_path), TEXTS)


def test_the_published_vocabulary_gives_the_ids_of_transformers(tmp_path, published):
    for path, name in zip(published_files(), ("vocab.json", "merges.txt"), strict=True):
        shutil.copy(path, tmp_path / name)
    assert_same(published, RobertaTokenizerFast.from_pretrained(tmp_path), TEXTS)
    assert BytePairTokenizer.from_pretrained(tmp_path) == published


def test_a_cut_pair_keeps_room_for_four_control_tokens():
    tokenizer = byte_pair_tokenizer()
    with pytest.warns(UserWarning, match="1 of 1 texts have more than 9 tokens"):
        rows = tokenizer("The cat sat on the mat", "The dog ran on and on", sequence_length=9)
    [row] = rows["token_ids"].tolist()
    assert len(row) == 9 and row.count(tokenizer.sep_id) == 3 and row[-1] == tokenizer.sep_id
    assert row[3:5] == [tokenizer.sep_id] * 2 or row[4:6] == [tokenizer.sep_id] * 2


def test_masks_are_read_where_asked_for_and_take_the_space_before_them_along(published):
    expected = ["<s>", "The", "Ġcapital", "Ġis", "<mask>", ".", "</s>"]
    for text in ("The capital is <mask>.", "The capital is [MASK].", "The capital is  [MASK]."):
        ids = published.encode_with_masks(text).ids
        assert [published.id_to_token(index) for index in ids] == expected
    assert published.mask_id not in published.encode_with_masks("[mask] <s>").ids


def test_a_byte_that_the_vocabulary_lacks_is_unknown_and_not_dropped():
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "a", "<mask>"]
    assert BytePairTokenizer(vocabulary, []).encode("aéa", add_special_tokens=False).ids == [4, 3, 3, 4]


def test_words_of_a_text_end_at_white_space_and_punctuation(published):
    text = " Google's U.S. team   (2018) in 漢字!"
    encoding = published.encode(text, add_special_tokens=False)
    numbers = published.word_numbers(text, encoding)
    words = {}
    for (start, end), number in zip(encoding.offsets, numbers.tolist(), strict=True):
        words[number] = (min(start, words.get(number, (start, 0))[0]), end)
    found = [text[start:end].strip() for start, end in words.values()]
    assert found == ["Google", "'s", "U", ".", "S", ".", "team", "(", "2018", ")", "in", "漢", "字", "!"]
    assert list(words) == list(range(len(found)))


def test_only_tokens_without_a_space_before_them_continue_a_word():
    tokenizer = byte_pair_tokenizer()
    is_continuation = dict(zip(tokenizer.vocabulary, tokenizer.is_continuation, strict=True))
    assert is_continuation["."] and is_continuation["a"]
    assert not any(is_continuation[token] for token in ("<s>", "<mask>", "Ġ", "Ġthe"))


def test_pieces_read_as_text_and_fill_the_masks_of_a_text(published):
    paris, s, the = (published.token_to_id(token) for token in ("ĠParis", "s", "The"))
    assert [published.piece_text(index) for index in (paris, s, published.mask_id)] == [" Paris", "s", "<mask>"]
    assert published.filled_text("It is [MASK]<mask>.", ["ĠParis", "s"]) == "It is Pariss."
    assert published.filled_text("<mask> end", ["ĠParis"]) == "Paris end"
    assert published.piece_text(the) == "The"


def changed_file(tmp_path, change):
    """A directory with the tokenizer.json of a tokenizer, after `change` of its content."""
    content = json.loads(byte_pair_tokenizer().pipeline().to_str())
    change(content)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    return tmp_path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(normalizer={"type": "NFC"}), "type of the normalizer is 'NFC', expected None"),
        (lambda content: content["pre_tokenizer"].update(use_regex=False), "use_regex of the pre_tokenizer is False"),
        (lambda content: content["model"].update(end_of_word_suffix="</w>"), "end_of_word_suffix of the model"),
        (lambda content: content["model"]["vocab"].pop("<mask>"), "has no <mask>"),
        (
            lambda content: content.update(added_tokens=[{"id": len(content["model"]["vocab"]), "content": "COVID"}]),
            "1 added tokens, such as COVID, are matched",
        ),
        (lambda content: content["model"]["vocab"].update({"zz": 900}), "is missing, at the token 'zz'"),
    ],
)
def test_steps_that_would_give_other_ids_are_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        BytePairTokenizer.from_pretrained(changed_file(tmp_path, change))


def test_files_that_disagree_on_the_space_before_a_text_are_refused(tmp_path):
    changed_file(tmp_path, lambda content: None)
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    with pytest.raises(ValueError, match=r"tokenizer_config.json and tokenizer.json have different add_prefix_space"):
        BytePairTokenizer.from_pretrained(tmp_path)
