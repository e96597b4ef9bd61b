# ruff: noqa: RUF001
import copy
import json
import pickle

import pytest
from conftest import REAL_DATA
from google_tokenization import google_ids
from hostile_texts import HOSTILE_TEXTS, letters_between, revealing_vocabulary
from transformers import BertTokenizerFast

from keras_bert_impl.tokenizers import WordPieceTokenizer

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
@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=lambda text: ascii(text[:12]))
def test_hostile_text_gives_googles_ids(text, lowercase):
    tokenizer = WordPieceTokenizer(revealing_vocabulary([text], lowercase), lowercase)
    assert tokenizer.encode(text, add_special_tokens=False).ids == google_ids([text], tokenizer)[0]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_every_code_point_between_letters_gives_googles_ids(step, lowercase):
    texts = letters_between(step)
    tokenizer = WordPieceTokenizer(revealing_vocabulary(texts, lowercase), lowercase)
    assert our_ids(texts, tokenizer) == google_ids(texts, tokenizer)


@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_published_vocabulary_gives_googles_ids(case):
    tokenizer = published_tokenizer(case)
    texts = HOSTILE_TEXTS + letters_between(step=31)
    assert our_ids(texts, tokenizer) == google_ids(texts, tokenizer)


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


def test_a_tokenizer_that_is_called_gives_the_inputs_of_a_model(tokenizer):
    rows = tokenizer(["paris", "the capital of paris"], ["is", "is the capital"], sequence_length=7)
    assert list(rows) == ["token_ids", "segment_ids", "padding_mask"]
    first = tokenizer.encode("paris", "is")
    assert rows["token_ids"][0].tolist() == [*first.ids, 0, 0] and rows["segment_ids"][0, :5].tolist() == first.type_ids
    assert tokenizer("paris")["token_ids"][0, :3].tolist() == tokenizer.encode("paris").ids


def test_control_token_in_text_stays_text(tokenizer):
    assert tokenizer.encode("[SEP] [MASK]", add_special_tokens=False).tokens == ["[", "sep", "]", "[", "mask", "]"]


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
    with pytest.raises(ValueError, match="id 99 is outside the vocabulary of 22 tokens"):
        tokenizer.id_to_token(99)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda tokenizer: pickle.loads(pickle.dumps(tokenizer))])
def test_copy_gives_the_same_ids(tokenizer, duplicate):
    assert duplicate(tokenizer).encode("The Café").ids == tokenizer.encode("The Café").ids


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


def test_googles_directory_takes_the_case_from_the_argument(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    assert WordPieceTokenizer.from_pretrained(tmp_path).lowercase
    assert not WordPieceTokenizer.from_pretrained(tmp_path, lowercase=False).lowercase


def test_checkpoint_with_other_steps_is_refused(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "strip_accents": False}))
    with pytest.raises(ValueError, match="strip_accents False with lower-casing True"):
        WordPieceTokenizer.from_pretrained(tmp_path)
