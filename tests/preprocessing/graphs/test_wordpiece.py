# ruff: noqa: RUF001
import shutil
import sys

import google_tokenization
import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from conftest import REAL_DATA
from google_tokenization import google_ids
from hostile_texts import HOSTILE_TEXTS, STEPS, against_google, letters_between, mixed_texts, revealing_vocabulary
from made_tokenizers import SENTENCES
from memory_of_graphs import check_memory
from tiers import full_but, on

from keras_bert_impl.preprocessing.graphs.text_rows import graph_of
from keras_bert_impl.preprocessing.graphs.wordpiece import WordPiece, _fast_row, _replacements
from keras_bert_impl.text.tokenizers import WordPieceTokenizer, google_characters

pytestmark = on("tensorflow")

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat . [ ] mask caf ##e".split()


@pytest.fixture(scope="module")
def wordpiece():
    return WordPiece(WordPieceTokenizer(WORDS))


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("step", full_but(STEPS, STEPS[0]))
def test_hostile_texts_and_code_points_give_googles_ids(step, lowercase):
    texts, tokenizer, expected = against_google(step, lowercase)
    wordpiece = WordPiece(tokenizer)
    for start in range(0, len(texts), 50_000):
        assert wordpiece(texts[start : start + 50_000]).to_list() == expected[start : start + 50_000]


def test_a_graph_of_added_tokens_is_refused():
    with pytest.raises(ValueError, match=r"cannot find added tokens, such as '\[E1\]'"):
        graph_of(WordPieceTokenizer(WORDS, added_tokens={"[E1]": {}}), offsets=False)


@pytest.mark.parametrize("lowercase", full_but([True, False], True))
def test_every_piece_has_the_bytes_of_the_tokenizers_characters(lowercase):
    texts = [
        *(text for text in HOSTILE_TEXTS if len(text) < 1000),
        *mixed_texts(30),
        "tﬁ c\u200bax \x7fc \x00c",
        "x" * 300,
    ]
    vocabulary = revealing_vocabulary(texts, lowercase)
    tokenizer = WordPieceTokenizer([token for token in vocabulary if "x" not in token], lowercase)
    cut = tf.function(WordPiece(tokenizer, offsets=True).with_offsets, input_signature=[tf.TensorSpec((), tf.string)])
    for text in texts:
        expected = tokenizer.encode(text, add_special_tokens=False)
        ids, begins, ends = (array.numpy().tolist() for array in cut(text))
        assert ids == expected.ids, ascii(text)
        places = [tuple(len(text[:place].encode()) for place in span) for span in expected.offsets]
        assert list(zip(begins, ends, strict=True)) == places, ascii(text)


@pytest.mark.parametrize("case", full_but(["uncased", "cased"], "uncased"))
def test_published_vocabulary_gives_googles_ids(case):
    path = REAL_DATA / "vocab" / f"bert-base-{case}-vocab.txt"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    tokenizer = WordPieceTokenizer(path, lowercase=case == "uncased")
    texts = [*HOSTILE_TEXTS, *SENTENCES, *letters_between(997)]
    assert WordPiece(tokenizer)(texts).to_list() == google_ids(texts, tokenizer)


def test_bytes_that_are_not_utf8_are_ignored():
    texts = [b"a\xffb", b"\xe2\x82A", b"\xed\xa0\x80z", b"\xf5\x80\x80\x80q", b"\xc0\xafx", b"\xe2(\xa1"]
    decoded = [google_tokenization.convert_to_unicode(text) for text in texts]
    tokenizer = WordPieceTokenizer(revealing_vocabulary(decoded, True))
    assert WordPiece(tokenizer)(texts).to_list() == google_ids(texts, tokenizer)


@pytest.mark.full
def test_a_long_text_makes_no_array_of_all_texts_times_its_length(wordpiece):
    check_memory(wordpiece)


@pytest.mark.parametrize("end", full_but([0x3100, sys.maxunicode + 1], 0x3100))
def test_the_kernel_divides_words_as_google_does_wherever_rows_take_it(end):
    characters = [chr(code) for code in range(end) if not 0xD800 <= code <= 0xDFFF]
    kernel = tf_text.FastWordpieceTokenizer(["[UNK]", "a"], token_out_type=tf.int32, max_bytes_per_word=800)
    words = kernel.tokenize([f"a{character}b" for character in characters]).row_lengths().numpy()
    alone = set(google_characters.characters(google_characters.isolated()))
    spaces_and_dropped = google_characters.replacements(lowercase=False)
    expected = [3 if character in alone else 1 for character in characters]
    differing = {c for c, found, wanted in zip(characters, words, expected, strict=True) if found != wanted}
    takes_kernel = tf.strings.regex_full_match(sorted(differing - spaces_and_dropped.keys()), _fast_row(False))
    assert not takes_kernel.numpy().any()


def test_no_character_becomes_more_letters_than_a_long_word_of_a_fast_row_allows():
    assert max(map(len, _replacements(True).values())) * 66 <= google_characters.MAX_CHARACTERS_PER_WORD


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_about_as_long_as_allowed_give_googles_ids(lowercase):
    letters = ["a", "é", "ж", "한", "İ", "\u1e9e", "\u0344", "\u00ad", "😀"]
    texts = [letter * count for letter in letters for count in (66, 67, 100, 199, 200, 201)]
    texts += [f"{'a' * 199}{letter} x {letter}{'a' * 200}." for letter in letters]
    tokenizer = WordPieceTokenizer(revealing_vocabulary(texts, lowercase), lowercase)
    assert WordPiece(tokenizer)(texts).to_list() == google_ids(texts, tokenizer)


def test_rows_keep_their_order_whichever_way_they_take(wordpiece):
    texts = ["the cat", "Café\u200b", "", "sat.", "ＴＨＥ", "the"]
    assert wordpiece(texts).to_list() == [[5, 6], [12, 13], [], [7, 8], [1], [5]]


def test_mask_in_text_is_the_token_only_where_asked_for(wordpiece):
    assert wordpiece(["[MASK]."]).to_list() == [[9, 11, 10, 8]]
    texts = ["the [MASK] sat[MASK].", "", "[MASK]", "café", "[mask]"]
    assert wordpiece.with_masks(texts).to_list() == [[5, 4, 7, 4, 8], [], [4], [12, 13], [9, 11, 10]]


@pytest.mark.full
def test_saved_model_needs_no_file_beside_it(wordpiece, tmp_path):
    module = tf.Module()
    module.wordpiece = wordpiece
    signature = [tf.TensorSpec([None], tf.string)]
    module.pieces = tf.function(lambda texts: wordpiece(texts).to_tensor(), input_signature=signature)
    module.masked = tf.function(lambda texts: wordpiece.with_masks(texts).to_tensor(), input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "written"))
    shutil.move(tmp_path / "written", tmp_path / "moved")
    served = tf.saved_model.load(str(tmp_path / "moved"))
    assert served.pieces(tf.constant(["Café\u200b", "the cat sat"])).numpy().tolist() == [[12, 13, 0], [5, 6, 7]]
    assert served.masked(tf.constant(["the [MASK]"])).numpy().tolist() == [[5, 4]]
