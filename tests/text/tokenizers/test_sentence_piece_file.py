"""A tokenizer.json without the model file beside it gives the ids of the model, or is refused by name."""

import json

import pytest
from hostile_texts import HOSTILE_TEXTS
from made_tokenizers import (
    SENTENCE_PIECE,
    SENTENCES,
    albert_tokenizer,
    tokenizer_of_transformers,
)
from tiers import once
from transformers import AutoTokenizer

from keras_bert_impl.text.tokenizers import open_tokenizer

pytestmark = once

TEXTS = [*(text for text in HOSTILE_TEXTS if len(text) < 1000), *SENTENCES, "a   b", " ``quoted''  text "]


@pytest.fixture(params=SENTENCE_PIECE, scope="module")
def tokenizer(request):
    return SENTENCE_PIECE[request.param]()


def changed(path, change):
    """Applies `change` to the content of a tokenizer.json."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_a_file_that_transformers_writes_alone_gives_the_ids_of_the_model(tokenizer, tmp_path):
    tokenizer_of_transformers(tokenizer).save_pretrained(tmp_path)
    assert not (tmp_path / tokenizer.files[0]).exists()
    read = open_tokenizer(tmp_path)
    assert type(read) is type(tokenizer)
    assert (read.vocabulary, read.scores()) == (tokenizer.vocabulary, tokenizer.scores())
    for text in TEXTS:
        assert read.encode(text) == tokenizer.encode(text), text


def test_a_saved_tokenizer_gives_transformers_the_same_rows(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path, sequence_length=20)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.model_max_length == 20 and type(theirs).__name__ == tokenizer.published_class
    pair = theirs("The cat", "Paris")
    ours = tokenizer.encode("The cat", "Paris")
    assert pair["input_ids"] == ours.ids
    assert pair.get("token_type_ids", [0] * len(ours.ids)) == ours.type_ids
    text = f"It is {tokenizer.mask_texts[0]}, 2018, Café."
    assert theirs(text)["input_ids"] == tokenizer.encode_with_masks(text).ids


def test_earlier_forms_of_the_steps_are_read(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / tokenizer.files[0]).unlink()

    def without_split(content):
        several = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}
        content["normalizer"]["normalizers"] += [{"type": "Strip", "strip_left": False, "strip_right": True}, several]
        content["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}

    changed(tmp_path / "tokenizer.json", without_split)
    read = open_tokenizer(tmp_path)
    assert all(read.encode(text).ids == tokenizer.encode(text).ids for text in TEXTS)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("keep_accents", [True, False])
def test_alberts_settings_follow_from_the_steps(lowercase, keep_accents, tmp_path):
    albert_tokenizer(lowercase=lowercase, keep_accents=keep_accents).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    read = open_tokenizer(tmp_path)
    assert (read.lowercase, read.keep_accents) == (lowercase, keep_accents)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": not lowercase}))
    with pytest.raises(ValueError, match="have different lowercase"):
        open_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content["added_tokens"].append({"id": 20, "content": content["model"]["vocab"][20][0]}),
            "1 added tokens, such as .*, are matched in the text as a whole",
        ),
        (
            lambda content: content.update(pre_tokenizer=content["pre_tokenizer"]["pretokenizers"][0]),
            "type of the pre_tokenizer|not those of",
        ),
        (
            lambda content: content["pre_tokenizer"]["pretokenizers"][1].update(prepend_scheme="first"),
            "prepend_scheme of the pre_tokenizer is 'first', expected 'always'",
        ),
        (
            lambda content: content["normalizer"]["normalizers"].insert(0, {"type": "NFC"}),
            "normalizer or pre_tokenizer has other steps than",
        ),
        (lambda content: content["model"].update(unk_id=2), "unk_id of the model is 2, expected"),
        (lambda content: content["model"].update(byte_fallback=True), "byte_fallback of the model is True"),
    ],
)
def test_a_file_that_would_give_other_ids_is_refused(change, message, tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    changed(tmp_path / "tokenizer.json", change)
    with pytest.raises(ValueError, match=message):
        open_tokenizer(tmp_path)


def test_model_file_and_tokenizer_json_with_different_tokens_are_refused(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    changed(tmp_path / "tokenizer.json", lambda content: content["model"]["vocab"][20].__setitem__(0, "other"))
    with pytest.raises(ValueError, match=f"{tokenizer.files[0]} and tokenizer.json have different tokens"):
        open_tokenizer(tmp_path)
