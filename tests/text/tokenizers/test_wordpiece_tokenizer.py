# ruff: noqa: RUF001
import json

import pytest
from conftest import REAL_DATA
from google_tokenization import google_ids
from hostile_texts import HOSTILE_TEXTS, STEPS, against_google, letters_between
from made_tokenizers import SENTENCES
from tiers import full_but, once
from transformers import AutoTokenizer, BertTokenizerFast

from keras_bert_impl.text.tokenizers import WordPieceTokenizer
from keras_bert_impl.text.tokenizers.vocabulary import is_cased

pytestmark = once

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cap ##ital of is paris . [ ] sep mask caf ##e α ##ς fi #".split()


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(WORDS)


def our_ids(texts, tokenizer):
    return [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]


def published_tokenizer(case):
    path = REAL_DATA / "vocab" / f"bert-base-{case}-vocab.txt"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return WordPieceTokenizer(path, lowercase=case == "uncased")


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("step", full_but(STEPS, STEPS[0]))
def test_hostile_texts_and_code_points_give_googles_ids(step, lowercase):
    texts, tokenizer, expected = against_google(step, lowercase)
    assert our_ids(texts, tokenizer) == expected


@pytest.mark.parametrize("case", full_but(["uncased", "cased"], "uncased"))
def test_published_vocabulary_gives_googles_ids(case):
    tokenizer = published_tokenizer(case)
    texts = [*HOSTILE_TEXTS, *SENTENCES, *letters_between(997)]
    assert our_ids(texts, tokenizer) == google_ids(texts, tokenizer)
    assert is_cased(tokenizer.vocabulary) is (case == "cased")


def test_published_vocabulary_gives_known_ids():
    ids = published_tokenizer("uncased").encode("Hello, wörld!").ids
    assert ids == [101, 7592, 1010, 2088, 999, 102]


def test_offsets_are_characters_of_the_original_text(tokenizer):
    text = "\u200bThe\u3000Café\u200b ΑΣ ﬁ"
    encoding = tokenizer.encode(text, add_special_tokens=False)
    pieces = [text[begin:end] for begin, end in encoding.offsets]
    assert encoding.tokens == ["the", "caf", "##e", "α", "##ς", "[UNK]"]
    assert pieces == ["The", "Caf", "é", "Α", "Σ", "ﬁ"]


def test_pair_is_joined_as_bert_joins_it(tokenizer):
    encoding = tokenizer.encode("the cap", "Café")
    assert encoding.tokens == ["[CLS]", "the", "cap", "[SEP]", "caf", "##e", "[SEP]"]
    assert encoding.type_ids == [0, 0, 0, 0, 1, 1, 1]
    assert encoding.sequence_ids == [None, 0, 0, None, 1, 1, None]
    assert encoding.offsets[-3:] == [(0, 3), (3, 4), (0, 0)]


def test_masks_are_read_where_asked_for(tokenizer):
    encoding = tokenizer.encode_with_masks("[MASK]ital of [SEP] is [MASK]. [mask]")
    expected = "[CLS] [MASK] [UNK] of [ sep ] is [MASK] . [ mask ] [SEP]".split()
    assert encoding.tokens == expected
    assert encoding.offsets[1] == (0, 6)


def test_batch_keeps_the_order_of_plain_and_other_texts(tokenizer):
    texts = ["café", "the", "", "paris\x00", "cap"]
    encodings = tokenizer.encode_batch(texts)
    assert [encoding.ids for encoding in encodings] == [tokenizer.encode(text).ids for text in texts]


def test_decode_joins_pieces_and_drops_control_tokens(tokenizer):
    ids = tokenizer.encode("The capital is Paris.").ids
    assert tokenizer.decode(ids) == "the capital is paris."
    assert tokenizer.decode(ids, skip_special_tokens=False).startswith("[CLS] the")


def test_ids_and_tokens_are_inverse(tokenizer):
    assert [tokenizer.token_to_id(token) for token in tokenizer.vocabulary] == list(range(tokenizer.vocabulary_size))
    assert tokenizer.id_to_token(tokenizer.mask_id) == "[MASK]"
    assert tokenizer.token_to_id("absent") is None


@pytest.mark.parametrize("lowercase", [True, False])
def test_saved_tokenizer_opens_here_and_in_hugging_face(tmp_path, lowercase):
    tokenizer = WordPieceTokenizer([*WORDS, "The", "É"], lowercase)
    tokenizer.save_pretrained(tmp_path)
    text = "The capital is É."
    expected = tokenizer.encode(text).ids
    assert WordPieceTokenizer.from_pretrained(tmp_path).encode(text).ids == expected
    assert BertTokenizerFast.from_pretrained(tmp_path)(text).input_ids == expected


def test_what_hugging_face_saves_opens_here(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "ours")
    BertTokenizerFast.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    assert WordPieceTokenizer.from_pretrained(tmp_path / "theirs") == tokenizer


@pytest.mark.parametrize(
    ("more_words", "lowercase"), [([], True), (["The"], False), (["##Net"], False), (["<S>", "[CAPITAL]", "é"], True)]
)
def test_a_directory_that_does_not_say_it_takes_the_case_from_its_vocabulary(more_words, lowercase, tmp_path):
    """transformers lower-cases then, also for published cased checkpoints such as SpanBERT's."""
    (tmp_path / "vocab.txt").write_text("\n".join([*WORDS, *more_words]), encoding="utf-8")
    assert WordPieceTokenizer.from_pretrained(tmp_path).lowercase is lowercase
    assert not WordPieceTokenizer.from_pretrained(tmp_path, lowercase=False).lowercase


def test_checkpoint_with_other_steps_is_refused(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "strip_accents": False}))
    with pytest.raises(ValueError, match="strip_accents of the tokenizer with lowercase True is False, expected True"):
        WordPieceTokenizer.from_pretrained(tmp_path)


def tokenizer_json(directory, lowercase=False, change=None, **config):
    """A directory as `tokenizers` and transformers write it: tokenizer.json, tokenizer_config.json with `config`."""
    words = [*WORDS, "The", "É"]
    theirs = BertTokenizerFast(vocab={word: place for place, word in enumerate(words)}, do_lower_case=lowercase)
    theirs.save_pretrained(directory)
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"} | config)
    )
    content = json.loads((directory / "tokenizer.json").read_text())
    if change is not None:
        change(content)
        (directory / "tokenizer.json").write_text(json.dumps(content))
    return directory


@pytest.mark.parametrize("with_vocabulary", [False, True])
@pytest.mark.parametrize("lowercase", [False, True])
def test_the_normalizer_says_whether_text_is_lower_cased(lowercase, with_vocabulary, tmp_path):
    tokenizer_json(tmp_path, lowercase)
    if with_vocabulary:
        (tmp_path / "vocab.txt").write_text("\n".join([*WORDS, "The", "É"]))
    ours = WordPieceTokenizer.from_pretrained(tmp_path)
    assert ours.lowercase is lowercase
    theirs = AutoTokenizer.from_pretrained(tmp_path)  # by the library itself, which follows the normalizer
    assert ours.encode("The capital is É.").ids == theirs("The capital is É.").input_ids


def test_a_normalizer_that_is_contradicted_is_refused_unless_the_caller_decides(tmp_path):
    tokenizer_json(tmp_path, lowercase=False, do_lower_case=True)
    with pytest.raises(ValueError, match=r"tokenizer_config.json and tokenizer.json have different lowercase"):
        WordPieceTokenizer.from_pretrained(tmp_path)
    assert not WordPieceTokenizer.from_pretrained(tmp_path, lowercase=False).lowercase
    assert WordPieceTokenizer.from_pretrained(tokenizer_json(tmp_path, False, do_lower_case=False)).lowercase is False


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda file: file["model"]["vocab"].pop("paris"), r"tokenizer.json: id 10 is missing, at the token '.'"),
        (lambda file: file["model"]["vocab"].update(paris=9), r"id 9 is given twice, at the token"),
        (lambda file: file["model"].update(type="BPE"), r"type of the model is 'BPE', expected 'WordPiece'"),
        (lambda file: file["model"].update(continuing_subword_prefix="@@"), r"continuing_subword_prefix .* is '@@'"),
        (lambda file: file.update(normalizer=None), r"type of the normalizer is None, expected .BertNormalizer"),
        (lambda file: file["normalizer"].update(clean_text=False), r"clean_text of the normalizer is False"),
        (lambda file: file["normalizer"].update(strip_accents=True), r"strip_accents .* is True, expected False"),
        (lambda file: file["pre_tokenizer"].update(type="Whitespace"), r"type of the pre_tokenizer is 'Whitespace'"),
        (lambda file: file["added_tokens"][4].update(id=7), r"\[MASK\] has the id 4 in model.vocab, 7 in added_tokens"),
    ],
)
def test_a_tokenizer_json_that_would_give_other_ids_is_refused(change, message, tmp_path):
    tokenizer_json(tmp_path, change=change)
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer.from_pretrained(tmp_path)


def test_control_tokens_beside_the_vocabulary_fill_its_gaps(tmp_path):
    tokenizer_json(tmp_path, change=lambda file: [file["model"]["vocab"].pop(token) for token in ("[PAD]", "[MASK]")])
    assert WordPieceTokenizer.from_pretrained(tmp_path).vocabulary == [*WORDS, "The", "É"]
