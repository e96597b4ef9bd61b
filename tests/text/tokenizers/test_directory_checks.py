"""A directory whose tokenizer in transformers gives other ids is refused by name; one that is opened gives the same."""

import json
import random

import pytest
from made_tokenizers import (
    SENTENCES,
    albert_tokenizer,
    bigbird_tokenizer,
    byte_pair_tokenizer,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from tiers import full_but, once
from tokenizers import AddedToken
from tokenizers import Tokenizer as Pipeline
from transformers import AutoTokenizer

from keras_bert_impl.text.tokenizers import BytePairTokenizer, WordPieceTokenizer, learn_vocabulary, open_tokenizer
from keras_bert_impl.text.tokenizers.directory_checks import SETTINGS
from keras_bert_impl.text.tokenizers.tokenizer_json import write_portable_file

pytestmark = once

WORDS = ("[E1]", "covid", "Zürich")
ENDS = ("in Paris, 2018", "closed [E1]", "ran!")
TEXTS = [f"{first} {word} {second}" for first in SENTENCES for word in WORDS for second in ENDS]
MADE = {
    "wordpiece": lambda: WordPieceTokenizer(learn_vocabulary(SENTENCES * 3, 150)),
    "byte_pair": byte_pair_tokenizer,
    "albert": albert_tokenizer,
    "xlm_roberta": xlm_roberta_tokenizer,
    "xlnet": xlnet_tokenizer,
    "bigbird": bigbird_tokenizer,
}


@pytest.fixture(params=full_but(MADE, "wordpiece", "albert"))
def tokenizer(request):
    return MADE[request.param]()


def change_json(path, **changes):
    """Changes entries of a JSON file, which is {} if there is none."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(content | changes), encoding="utf-8")


def saved_by_transformers(tokenizer, directory):
    """A directory with the files of ours and the tokenizer.json of transformers."""
    tokenizer.save_pretrained(directory)
    AutoTokenizer.from_pretrained(directory).save_pretrained(directory)


def test_what_is_opened_gives_the_ids_of_transformers(tokenizer, tmp_path):
    saved_by_transformers(tokenizer, tmp_path)
    ids = sorted((tokenizer.cls_id, tokenizer.mask_id))
    change_json(tmp_path / "added_tokens.json", **{tokenizer.vocabulary[index]: index for index in ids})
    sep = {"content": tokenizer.vocabulary[tokenizer.sep_id], "lstrip": False, "rstrip": False, "normalized": False}
    change_json(tmp_path / "special_tokens_map.json", sep_token=sep)
    change_json(tmp_path / "tokenizer_config.json", additional_special_tokens=[tokenizer.vocabulary[ids[0]]])
    assert open_tokenizer(tmp_path) == tokenizer
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert [theirs(text)["input_ids"] for text in TEXTS] == [tokenizer.encode(text).ids for text in TEXTS]


@pytest.mark.parametrize("name", ["added_tokens.json", "tokenizer_config.json"])
@pytest.mark.parametrize("tokenizer", full_but([name for name in MADE if name != "wordpiece"], "albert"), indirect=True)
def test_added_tokens_are_refused(name, tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    size = tokenizer.vocabulary_size
    added = {"covid": size, **{f"[E{place}]": size + place for place in range(1, 6)}}
    if name == "added_tokens.json":
        change_json(tmp_path / name, **added)
    else:
        change_json(tmp_path / name, extra_special_tokens=list(added))
    with pytest.raises(ValueError, match=rf"{name}: 6 added tokens, such as \[E1\], \[E2\], \[E3\], \[E4\], are"):
        open_tokenizer(tmp_path)


# The settings of added tokens, and what texts hold of them and beside them.
ADDED = {"xy": {"single_word": True}, "<|i|>": {"lstrip": True, "normalized": False}, "Zürich": {}, "中文": {}, "é": {}}
PARTS = "xy xycat <|i|> <|I|> Zürich zurich ZÜRICH 中文 中 [E1] [e1] /E1] é e\u0301 e the . \u00a0 \u2028 [SEP \t"


@pytest.mark.parametrize("form", ["tokenizer.json", "tokenizer_config.json", "added_tokens.json"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_added_tokens_behind_a_vocabulary_of_words_have_the_ids_of_transformers(form, lowercase, tmp_path):
    WordPieceTokenizer(learn_vocabulary(SENTENCES * 3, 150), lowercase).save_pretrained(tmp_path)
    theirs, are_plain = AutoTokenizer.from_pretrained(tmp_path), form == "added_tokens.json"
    size = len(theirs)
    theirs.add_tokens([token if are_plain else AddedToken(token, **ADDED[token]) for token in ADDED])
    theirs.add_tokens(["[E1]"], special_tokens=not are_plain)
    added = {index: token for index, token in theirs.added_tokens_decoder.items() if index >= size}
    if form == "tokenizer.json":
        theirs.save_pretrained(tmp_path)
        (tmp_path / "vocab.txt").unlink()
    elif are_plain:
        change_json(tmp_path / form, **{token.content: index for index, token in added.items()})
    else:
        added = {at: {name: getattr(token, name) for name in ("content", *SETTINGS)} for at, token in added.items()}
        change_json(tmp_path / form, added_tokens_decoder=added)
    tokenizer = open_tokenizer(tmp_path)
    tokenizer.save_pretrained(tmp_path / "saved")
    assert open_tokenizer(tmp_path / "saved") == tokenizer
    write_portable_file(tokenizer, tmp_path / "portable.json", 64)
    portable, chance = Pipeline.from_file(str(tmp_path / "portable.json")), random.Random(5)
    for text in ("".join(chance.choices([*PARTS.split(" "), " "], k=6)) for _ in range(500)):
        found, expected = tokenizer.encode(text), theirs(text, return_offsets_mapping=True)
        assert found.ids == portable.encode(text).ids == expected["input_ids"], text
        assert found.offsets == expected["offset_mapping"], text


def test_a_control_token_with_another_id_is_refused(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    name = tokenizer.vocabulary[tokenizer.mask_id]
    change_json(tmp_path / "added_tokens.json", **{name: 999})
    with pytest.raises(ValueError, match=r"added_tokens.json: .* has the id 999, but \d+ in the vocabulary"):
        open_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("name", "key"), [("tokenizer_config.json", "cls_token"), ("special_tokens_map.json", "sep_token")]
)
def test_other_control_tokens_are_refused(key, name, tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    change_json(tmp_path / name, **{key: tokenizer.vocabulary[7]})
    with pytest.raises(ValueError, match=rf"{name}: {key} is '.*', but {type(tokenizer).__name__} has '.*'"):
        open_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "tokenizer.json"])
def test_texts_that_lose_their_beginnings_are_refused(name, tokenizer, tmp_path):
    saved_by_transformers(tokenizer, tmp_path)
    if name == "tokenizer_config.json":
        change_json(tmp_path / name, truncation_side="left")
    else:
        cut = {"direction": "Left", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
        change_json(tmp_path / name, truncation=cut)
    with pytest.raises(ValueError, match=r"the side of truncation is '[lL]eft', but this library truncates"):
        open_tokenizer(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", truncation_side="right")
    assert open_tokenizer(tmp_path) == tokenizer


def test_a_post_processor_that_joins_pairs_otherwise_is_refused(tokenizer, tmp_path):
    saved_by_transformers(tokenizer, tmp_path)
    control = [{"SpecialToken": {"id": "[X]", "type_id": 0}}]
    texts = [[{"Sequence": {"id": name, "type_id": 0}}] for name in "AB"]
    row = control + texts[0] + control
    template = {"type": "TemplateProcessing", "single": row, "pair": row + texts[1] + control}
    token = {"id": "[X]", "ids": [tokenizer.cls_id], "tokens": ["[X]"]}
    change_json(tmp_path / "tokenizer.json", post_processor=template | {"special_tokens": {"[X]": token}})
    with pytest.raises(ValueError, match=r"tokenizer.json has no post_processor that adds control tokens"):
        open_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json"])
def test_words_of_mecab_are_refused(name, tmp_path):
    tokenizer = MADE["wordpiece"]()
    tokenizer.save_pretrained(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", tokenizer_class=None)
    change_json(tmp_path / name, tokenizer_class="BertJapaneseTokenizer")
    with pytest.raises(
        ValueError, match=rf"/{name}: tokenizer_class is BertJapaneseTokenizer, which may give other ids"
    ):
        open_tokenizer(tmp_path)
    change_json(tmp_path / name, tokenizer_class="BertTokenizerFast")
    assert open_tokenizer(tmp_path) == tokenizer
    change_json(tmp_path / "tokenizer_config.json", word_tokenizer_type="mecab")
    with pytest.raises(ValueError, match=r"word_tokenizer_type of the tokenizer .* is 'mecab', expected 'basic'"):
        open_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["byte_pair", "albert"])
def test_another_class_is_refused(kind, tmp_path):
    MADE[kind]().save_pretrained(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", tokenizer_class="CamembertTokenizerFast")
    with pytest.raises(ValueError, match="tokenizer_class is CamembertTokenizerFast, which may give other ids"):
        open_tokenizer(tmp_path)


def test_merges_that_mark_the_end_of_a_word_are_refused(tmp_path):
    """HerBERT's files have the names of RoBERTa's, and its control tokens."""
    characters = sorted({character for text in TEXTS for character in text if not character.isspace()})
    pieces = [*characters, *(f"{character}</w>" for character in characters), "th", "the</w>"]
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"]
    merges = [("t", "h"), ("th", "e</w>")]
    ids = {token: place for place, token in enumerate(vocabulary)}
    (tmp_path / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("".join(f"{left} {right}\n" for left, right in merges))
    with pytest.raises(ValueError, match=r"tokens such as '!</w>' mark the end of a word, as in HerBERT.*AutoToken"):
        open_tokenizer(tmp_path)


def test_the_files_of_bertweet_and_phobert_are_not_taken_for_wordpiece(tmp_path):
    (tmp_path / "vocab.txt").write_text("th@@ 12\ne 7\n")
    (tmp_path / "bpe.codes").write_text("t h 100\n")
    with pytest.raises(ValueError, match=r"BERTweet and PhoBERT, is unknown.*kbi.encoder_from_pretrained"):
        open_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["wordpiece", "byte_pair"])
def test_a_vocabulary_and_a_tokenizer_json_that_disagree_are_refused(kind, tmp_path):
    tokenizer = MADE[kind]()
    saved_by_transformers(tokenizer, tmp_path)
    assert open_tokenizer(tmp_path) == tokenizer
    words, (first, second) = list(tokenizer.vocabulary), tokenizer.ids_batch(["The cat"])[0][:2]
    words[first], words[second] = words[second], words[first]
    other = WordPieceTokenizer(words) if kind == "wordpiece" else BytePairTokenizer(words, tokenizer.merges)
    other.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=rf"{tokenizer.files[0]} and tokenizer.json have different tokens, and"):
        open_tokenizer(tmp_path)


def test_another_table_of_characters_than_in_tokenizer_json_is_refused(tmp_path):
    tokenizer = xlm_roberta_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    change_json(tmp_path / "tokenizer.json", normalizer=None)
    with pytest.raises(ValueError, match=r"bpe.model and tokenizer.json have different tables of characters, and prog"):
        open_tokenizer(tmp_path)


def test_sentence_pieces_without_a_space_before_a_text_are_refused(tmp_path):
    tokenizer = xlm_roberta_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", add_prefix_space=True)
    assert open_tokenizer(tmp_path) == tokenizer
    change_json(tmp_path / "tokenizer_config.json", add_prefix_space=False)
    with pytest.raises(
        ValueError, match=r"tokenizer_config.json: add_prefix_space is False, but this tokenizer puts a space"
    ):
        open_tokenizer(tmp_path)
