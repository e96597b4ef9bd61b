"""ModernBERT's tokenizer gives the ids of the `tokenizers` library over files such as those that are published."""

import json
import re
import unicodedata

import pytest
from hostile_texts import HOSTILE_TEXTS, letters_between, mixed_texts
from made_tokenizers import SENTENCES, modernbert_tokenizer
from tiers import once
from transformers import AutoTokenizer

from keras_bert_impl.text.tokenizers import ModernBertTokenizer, learn_byte_pairs
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MODERNBERT
from keras_bert_impl.text.tokenizers.modernbert_tokenizer import nfc_with_places

pytestmark = once

CONTROL = re.compile(r"\[(CLS|PAD|SEP|UNK|MASK)\]|<\|padding\|>")
TEXTS = [
    *(text for text in HOSTILE_TEXTS if len(text) < 1000 and not CONTROL.search(text)),
    *SENTENCES,
    *mixed_texts(50),
    "a  b   c    d       e",
    " leading, trailing \n\n\n  ",
    "def f():\n        return  3\n",
    "<|mail|>x [unused0] <|mail|><|mail|> [unused1]",
    "cafe\u0301 \u1100\u1161\u11a8 \u212b e\u0316\u0301 \u0344",
]


@pytest.fixture(params=[False, True], ids=["", "prefix"])
def tokenizer(request):
    return modernbert_tokenizer(request.param)


def published_like(tokenizer, folder, change=lambda content: None):
    """The files of a checkpoint as the authors publish them: control tokens are not in the model's own vocabulary."""
    content = json.loads(tokenizer.pipeline().to_str())
    vocabulary = content["model"]["vocab"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    added = [*MODERNBERT.control, *tokenizer.added_tokens]
    content["added_tokens"] = [
        {
            **{"id": vocabulary.pop(token), "content": token, **flags, "lstrip": token == "[MASK]"},
            **{"normalized": token in tokenizer.added_tokens, "special": token in MODERNBERT.control},
        }
        for token in sorted(added, key=vocabulary.get)
    ]
    padding = {"id": tokenizer.vocabulary_size, "content": "<|padding|>", **flags, "normalized": False, "special": True}
    content["added_tokens"].append(padding)
    content["model"]["unk_token"] = None
    ids = {name: {"id": name, "ids": [tokenizer.token_to_id(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    slots = [("SpecialToken", "[CLS]", 0), ("Sequence", "A", 0), ("SpecialToken", "[SEP]", 0)]
    slots += [("Sequence", "B", 1), ("SpecialToken", "[SEP]", 1)]
    pair = [{kind: {"id": name, "type_id": segment}} for kind, name, segment in slots]
    content["post_processor"] = {"type": "TemplateProcessing", "single": pair[:3], "pair": pair, "special_tokens": ids}
    change(content)
    decoder = {str(token["id"]): {key: token[key] for key in token if key != "id"} for token in content["added_tokens"]}
    config = {"added_tokens_decoder": decoder, "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 8192}
    names = dict(zip(("cls", "pad", "sep", "unk", "mask"), MODERNBERT.control, strict=True))
    config |= {f"{name}_token": token for name, token in names.items()}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_files_as_published_give_the_ids_of_transformers(tmp_path, tokenizer):
    theirs = AutoTokenizer.from_pretrained(published_like(tokenizer, tmp_path))
    ours = ModernBertTokenizer.from_pretrained(tmp_path)
    assert ours.vocabulary == [*tokenizer.vocabulary, "<|padding|>"]
    assert ours.added_tokens == sorted(tokenizer.added_tokens, key=tokenizer.token_to_id)
    for text in TEXTS:
        found, expected = ours.encode(text), theirs(text)["input_ids"]
        assert found.ids == expected and ours.ids_batch([text]) == [expected[1:-1]], text
        assert tokenizer.add_prefix_space or ours.decode(found.ids) == unicodedata.normalize("NFC", text)


def test_composed_text_is_that_of_the_library_for_every_character(tokenizer):
    texts = letters_between(499)
    assert [tokenizer.encode(text, add_special_tokens=False).ids for text in texts] == tokenizer.ids_batch(texts)


def test_pieces_stand_at_their_characters_also_behind_added_tokens_and_composed_ones(tokenizer):
    text = "cafe\u0301s   and <|mail|> \u1100\u1161\u11a8 Paris  x"
    encoding = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.token_to_id("<|mail|>") in encoding.ids and tokenizer.token_to_id("   ") in encoding.ids
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        written = unicodedata.normalize("NFC", text[start:end])
        read = tokenizer.decode([tokenizer.token_to_id(token)], skip_special_tokens=False).strip()
        assert written == read or "\ufffd" in read, (token, text[start:end])
    covered = {place for span in encoding.offsets for place in range(*span)}
    assert covered == {place for place, character in enumerate(text) if character != " "}


def test_places_of_composed_characters_are_those_of_all_their_parts():
    composed, begins, ends = nfc_with_places("ae\u0301\u1100\u1161\u11a8b \u0301")
    assert composed == "aé각b \u0301"
    assert list(zip(begins, ends, strict=True)) == [(0, 1), (1, 3), (3, 6), (6, 7), (7, 8), (8, 9), (9, 9)]
    assert nfc_with_places("é") == ("é", None, None)
    assert len(nfc_with_places("e" + "\u0301" * 100_000)[0]) == 100_000  # in no more time than a text takes


def test_marks_that_were_added_as_special_tokens_are_whole_as_in_transformers(tmp_path):
    modernbert_tokenizer().save_pretrained(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    theirs.add_special_tokens({"additional_special_tokens": ["[E1]", "[/E1]"]})
    theirs.add_tokens(["[D] "], special_tokens=True)
    theirs.save_pretrained(tmp_path / "marked")
    ours = ModernBertTokenizer.from_pretrained(tmp_path / "marked")
    ours.save_pretrained(tmp_path / "ours")
    text = "[D] the [E1]cat[/E1]  sat"
    expected = theirs(text)["input_ids"]
    assert {*map(ours.token_to_id, ("[E1]", "[/E1]", "[D] "))} <= set(expected)
    assert ours.encode(text).ids == expected == AutoTokenizer.from_pretrained(tmp_path / "ours")(text)["input_ids"]


@pytest.mark.parametrize("text", ["a[CLS]b [SEP] [PAD]", "[MASK]", "<|padding|> [UNK]"])
def test_control_tokens_in_a_text_stay_text(text, tokenizer, tmp_path):
    published = ModernBertTokenizer.from_pretrained(published_like(tokenizer, tmp_path))
    for one in (tokenizer, published):
        ids = one.encode(text, add_special_tokens=False).ids
        assert not {*one.special_ids, one.token_to_id("<|padding|>")} & set(ids)
        assert one.decode(ids).strip() == text and one.ids_batch([text]) == [ids]


def test_a_mask_stands_where_it_is_written():
    tokenizer = modernbert_tokenizer()
    encoding = tokenizer.encode_with_masks("The [MASK].")
    start, end = encoding.offsets[encoding.ids.index(tokenizer.mask_id)]
    assert "The [MASK]."[start:end] == "[MASK]"


def test_runs_of_spaces_begin_a_word_and_what_follows_belongs_to_it():
    tokenizer = modernbert_tokenizer()
    is_continuation = dict(zip(tokenizer.vocabulary, tokenizer.is_continuation, strict=True))
    assert is_continuation["a"] and not any(is_continuation[token] for token in ("  ", "Ġ", "[CLS]", "<|mail|>"))


def test_nothing_is_merged_across_added_tokens():
    texts = ["aaa  bbb"] * 50
    vocabulary, merges = learn_byte_pairs(texts, 300, MODERNBERT, ["  "])
    assert vocabulary[-2:] == ["  ", "[MASK]"] and not any("ĠĠ" in "".join(pair) for pair in merges)


def added(file, **flags):
    token = next(token for token in file["added_tokens"] if token["content"] == "<|mail|>")
    token.update(flags)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content.update(normalizer=None),
            "type of the normalizer is None, expected 'NFC'",
        ),
        (lambda content: added(content, lstrip=True), r"the added token '<\|mail\|>' has lstrip, which is not"),
        (lambda content: added(content, normalized=False, content="日本"), "'日本' has normalized=false, which"),
        (lambda content: added(content, normalized=False, content=" [E]"), r"' \[E\]' has normalized=false, which"),
    ],
)
def test_steps_that_would_give_other_ids_are_refused(tmp_path, change, message):
    published_like(modernbert_tokenizer(), tmp_path, change)
    with pytest.raises(ValueError, match=message):
        ModernBertTokenizer.from_pretrained(tmp_path)


def test_an_added_token_without_an_id_is_refused():
    tokenizer = modernbert_tokenizer()
    with pytest.raises(ValueError, match="the added token 'zz' is not in the vocabulary"):
        ModernBertTokenizer(tokenizer.vocabulary, tokenizer.merges, added_tokens=["zz"])
