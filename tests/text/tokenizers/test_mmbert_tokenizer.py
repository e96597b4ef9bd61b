"""mmBERT's tokenizer gives the ids of the `tokenizers` library over files such as those that are published."""

import json
import re

import pytest
from hostile_texts import HOSTILE_TEXTS, letters_between, mixed_texts
from made_tokenizers import ADDED, SENTENCES, mmbert_tokenizer
from tiers import once
from transformers import AutoTokenizer

from keras_bert_impl.text.tokenizers import MmBertTokenizer, kind_in
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import MMBERT

pytestmark = once

CONTROL = re.compile(r"<(bos|pad|eos|unk|mask|start_of_turn)>|\[MASK\]")
TEXTS = [
    *(text for text in HOSTILE_TEXTS if len(text) < 1000 and not CONTROL.search(text)),
    *SENTENCES,
    *mixed_texts(50),
    *letters_between(997),
    "a  b   c    d       e",
    " leading, trailing \n\n\n  ",
    "def f():\n\treturn  3\n",
    "<h1>Zürich</h1>\n\n\n\nx </h1>",
    "a▁▁▁b ▁ c",
    "<0x0A><0x41>",
]


def published_like(folder, change=lambda content: None):
    """The files of a checkpoint as its authors publish them."""
    tokenizer = mmbert_tokenizer()
    vocabulary = {token: index for index, token in enumerate(tokenizer.vocabulary)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": vocabulary[token], "content": token, **flags, "special": token in (*MMBERT.control, "<unused0>")}
        for token in sorted((*MMBERT.control, *ADDED), key=vocabulary.get)
    ]
    vocabulary["<start_of_turn>"] = len(vocabulary)
    added.append({"id": vocabulary["<start_of_turn>"], "content": "<start_of_turn>", **flags, "special": True})
    ids = {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]} for name in ("<bos>", "<eos>")}
    slots = [("SpecialToken", "<bos>", 0), ("Sequence", "A", 0), ("SpecialToken", "<eos>", 0)]
    slots += [("Sequence", "B", 1), ("SpecialToken", "<eos>", 1)]
    pair = [{kind: {"id": name, "type_id": segment}} for kind, name, segment in slots]
    content = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": {"type": "TemplateProcessing", "single": pair[:3], "pair": pair, "special_tokens": ids},
        "decoder": {"type": "ByteFallback"},
        "model": {
            **{"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None},
            **{"end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False},
            **{"vocab": vocabulary, "merges": tokenizer.merges},
        },
    }
    change(content)
    names = dict(zip(("bos", "pad", "eos", "unk", "mask"), MMBERT.control, strict=True))
    config = {f"{name}_token": token for name, token in names.items()}
    config["added_tokens_decoder"] = {
        str(token["id"]): {key: token[key] for key in token if key != "id"} for token in content["added_tokens"]
    }
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "cls_token": "<bos>", "sep_token": "<eos>"}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_files_as_published_give_the_ids_of_transformers(tmp_path):
    theirs, ours = AutoTokenizer.from_pretrained(published_like(tmp_path)), MmBertTokenizer.from_pretrained(tmp_path)
    assert kind_in(tmp_path) is MmBertTokenizer and ours.added_tokens == list(ADDED)
    assert [ours.cls_id, ours.sep_id, ours.pad_id, ours.unk_id, ours.mask_id] == [2, 1, 0, 3, 4]
    for text in TEXTS:
        expected = theirs(text)["input_ids"]
        assert ours.encode(text).ids == expected and ours.ids_batch([text]) == [expected[1:-1]], text
        if not set(text) & set("▁\n<"):
            assert ours.decode(expected) == text.removeprefix(" "), text
    pair = theirs("The cat", "Café")["input_ids"]
    assert ours.encode("The cat", "Café").ids == pair and pair.count(1) == 2


@pytest.mark.parametrize("text", ["a<bos>b <eos> <pad>", "<mask>", "<start_of_turn> <unk>"])
def test_control_tokens_in_a_text_stay_text(text, tmp_path):
    published = MmBertTokenizer.from_pretrained(published_like(tmp_path))
    ids = published.encode(text, add_special_tokens=False).ids
    assert not {*published.special_ids, published.token_to_id("<start_of_turn>")} & set(ids)
    assert published.decode(ids) == text and published.ids_batch([text]) == [ids]


def test_merges_that_make_a_control_token_are_left_out():
    tokenizer = mmbert_tokenizer()
    merges = [("m", "a"), ("ma", "s"), ("mas", "k"), ("mask", ">"), ("<", "mask>")]
    pieces = [piece for pair in merges for piece in (*pair, "".join(pair))]
    vocabulary = list(dict.fromkeys([*tokenizer.vocabulary, *pieces]))
    merges = list(dict.fromkeys([*merges, *tokenizer.merges]))
    encoding = MmBertTokenizer(vocabulary, merges, ADDED).encode("<mask>")
    assert encoding.tokens == ["<bos>", "▁", "<", "mask>", "<eos>"]


def test_pieces_stand_at_their_characters():
    text, tokenizer = "  Café  日本\n\n<h1>Paris</h1> 🙂x", mmbert_tokenizer()
    encoding = tokenizer.encode(text, add_special_tokens=False)
    covered = {place for span in encoding.offsets for place in range(*span)}
    assert covered == {place for place, character in enumerate(text) if character != " "}
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        written = token.replace("▁", "")
        assert text[start:end] == written or (token.startswith("<0x") and end == start + 1), token


def test_a_mask_is_filled_as_written():
    tokenizer = mmbert_tokenizer()
    assert tokenizer.filled_text("The <mask> sat.", ["▁cat"]) == "The cat sat."


def test_pieces_begin_words_where_a_space_or_an_added_token_does():
    tokenizer = mmbert_tokenizer()
    is_continuation = dict(zip(tokenizer.vocabulary, tokenizer.is_continuation, strict=True))
    assert is_continuation["a"] and is_continuation["<0xE6>"]
    assert not any(is_continuation[token] for token in ("▁", "▁cat", "\n", "<h1>", "<bos>"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content.update(normalizer=None),
            "type of the normalizer is None, expected 'Replace'",
        ),
        (lambda content: content["normalizer"].update(content="_"), "content of the normalizer is '_', expected '▁'"),
        (
            lambda content: content.update(pre_tokenizer={"type": "Split", "pattern": {"String": " "}}),
            "type of the pre_tokenizer is 'Split', expected 'Metaspace'. This library uses mmBERT's algorithm",
        ),
        (
            lambda content: content["pre_tokenizer"].update(prepend_scheme="first"),
            "prepend_scheme of the pre_tokenizer is 'first', expected 'always'",
        ),
        (lambda content: content["model"].update(byte_fallback=False), "byte_fallback of the model is False"),
        (
            lambda content: content["added_tokens"][9].update(normalized=True),
            "the added token '▁▁' has normalized=true",
        ),
    ],
)
def test_steps_that_would_give_other_ids_are_refused(tmp_path, change, message):
    published_like(tmp_path, change)
    with pytest.raises(ValueError, match=message):
        MmBertTokenizer.from_pretrained(tmp_path)


def test_a_vocabulary_without_all_bytes_is_refused():
    tokenizer = mmbert_tokenizer()
    vocabulary = [token for token in tokenizer.vocabulary if token not in ("<0xE6>", "<0xFF>")]
    with pytest.raises(ValueError, match="the vocabulary has no token for 2 of 256 bytes, such as <0xE6>"):
        MmBertTokenizer(vocabulary, tokenizer.merges, tokenizer.added_tokens)
