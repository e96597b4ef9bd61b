"""EuroBERT's tokenizer gives the ids of the `tokenizers` library over files of the form that Llama 3's have."""

import json

import pytest
from hostile_texts import HOSTILE_TEXTS, mixed_texts
from made_tokenizers import SENTENCES, eurobert_tokenizer
from tiers import once
from transformers import AutoTokenizer

from keras_bert_impl.text.tokenizers import EuroBertTokenizer, kind_in
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import EUROBERT

pytestmark = once

BEGINNING, _, END, MASK = EUROBERT.control
# Of Llama 3, whose rows have no end; with one; and with another beginning in the middle.
ROWS = {
    "beginning alone": ([BEGINNING, "A"], [BEGINNING, "A", BEGINNING, "B"]),
    "both": ([BEGINNING, "A", END], [BEGINNING, "A", END, "B", END]),
    "both twice": ([BEGINNING, "A", END], [BEGINNING, "A", END, BEGINNING, "B", END]),
}
TEXTS = [
    *(text for text in HOSTILE_TEXTS if len(text) < 1000 and "<|" not in text),
    *(*SENTENCES, *mixed_texts(50)),
    "a Parisian <|mail|>x  <|mail|><|mail|>",
    "It'S 'twas (a ((b\tc\n\n d!\n\n\n e 1234567 ''s '\u017f x'LLy",
]


def published_like(folder, rows, strips_mask=False, change=lambda content: None, **named):
    """The files of a checkpoint as the authors publish them: control tokens are not in the model's own vocabulary, and
    there are further special tokens."""
    tokenizer = eurobert_tokenizer()
    content = json.loads(tokenizer.pipeline().to_str())
    ids = content["model"]["vocab"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = [{"id": ids.pop(token), "content": token, **flags} for token in dict.fromkeys((BEGINNING, END, MASK))]
    special[-1]["lstrip"] = strips_mask
    others = [{**flags, "id": ids.pop("<|mail|>"), "content": "<|mail|>", "normalized": True, "special": False}]
    reserved = [{"id": len(tokenizer.vocabulary), "content": "<|reserved_special_token_0|>", **flags}]
    content["added_tokens"] = [*special, *others, *reserved]
    single, pair = (
        [{"Sequence": {"id": part, "type_id": 0}} if len(part) == 1 else {"SpecialToken": {"id": part, "type_id": 0}}
         for part in parts]
        for parts in rows
    )  # fmt: skip
    tokens = {name: {"id": name, "ids": [tokenizer.token_to_id(name)], "tokens": [name]} for name in (BEGINNING, END)}
    template = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}
    content["post_processor"]["processors"][1] = template
    change(content)
    names = {"bos_token": BEGINNING, "eos_token": END, "pad_token": END, "mask_token": MASK, **named}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 8192, **names}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    (folder / "tokenizer_config.json").write_text(json.dumps({key: config[key] for key in config if config[key]}))
    return folder


@pytest.mark.parametrize("strips_mask", [False, True])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_files_as_published_give_the_ids_of_transformers(rows, strips_mask, tmp_path):
    theirs = AutoTokenizer.from_pretrained(published_like(tmp_path, rows, strips_mask))
    assert kind_in(tmp_path) is EuroBertTokenizer
    ours = EuroBertTokenizer.from_pretrained(tmp_path)
    ours.save_pretrained(tmp_path / "again")
    again = EuroBertTokenizer.from_pretrained(tmp_path / "again")
    assert again == ours and ours.pad_id == ours.sep_id == theirs.pad_token_id
    written = AutoTokenizer.from_pretrained(tmp_path / "again")
    for text in TEXTS:
        expected = theirs(text)
        assert ours.encode(text).ids == expected["input_ids"] == written(text)["input_ids"], text
        assert ours.decode(ours.encode(text).ids) == text
    pair = theirs("a cat", "on 2018")["input_ids"]
    assert ours.encode("a cat", "on 2018").ids == pair == written("a cat", "on 2018")["input_ids"]
    for text in (f"The cat   {MASK}.", MASK, f"x{MASK}{MASK} y"):
        assert ours.encode_with_masks(text).ids == theirs(text)["input_ids"], text
        assert ours.encode_with_masks(text.replace(MASK, "[MASK]")).ids == theirs(text)["input_ids"], text


def test_names_of_control_tokens_in_a_text_stay_text(tmp_path):
    ours = EuroBertTokenizer.from_pretrained(published_like(tmp_path, ROWS["both"]))
    text = f"{BEGINNING}a {END} {MASK} <|reserved_special_token_0|>"
    ids = ours.encode(text, add_special_tokens=False).ids
    assert not {*ours.special_ids, ours.vocabulary_size - 1} & set(ids) and ours.decode(ids) == text


def test_a_word_of_the_vocabulary_is_one_token_whatever_the_merges_say():
    tokenizer = eurobert_tokenizer()
    assert tokenizer.encode("a Parisian", add_special_tokens=False).tokens == ["a", "ĠParisian"]


@pytest.mark.parametrize(
    ("change", "named", "message"),
    [
        (lambda content: content.update(normalizer={"type": "NFC"}), {}, "type of the normalizer is 'NFC'"),
        (lambda content: content["model"].update(ignore_merges=False), {}, "ignore_merges of the model is False"),
        (lambda content: content["pre_tokenizer"]["pretokenizers"].pop(), {}, "pretokenizers of the pre_tokenizer is"),
        (lambda content: content.update(post_processor=None), {}, "has no TemplateProcessing"),
        (lambda content: None, {"mask_token": None}, "has no mask_token: name its mask token"),
    ],
)
def test_files_that_would_give_other_ids_are_refused(change, named, message, tmp_path):
    published_like(tmp_path, ROWS["both"], change=change, **named)
    with pytest.raises(ValueError, match=message):
        EuroBertTokenizer.from_pretrained(tmp_path)
