# ruff: noqa: RUF001
"""In a TensorFlow graph, texts give the ids and offsets of the tokenizers over SentencePiece models."""

import random

import pytest
import tensorflow as tf
from hostile_texts import HOSTILE_TEXTS, letters_between, mixed_texts
from made_tokenizers import (
    SENTENCES,
    albert_tokenizer,
    bigbird_tokenizer,
    camembert_tokenizer,
    deberta_tokenizer,
    published_bigbird,
    tokenizer_that_cuts_pieces,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from memory_of_graphs import check_memory
from tiers import full_but, on

from keras_bert_impl.preprocessing.graphs.sentence_pieces import SentencePieces
from keras_bert_impl.text.tokenizers import BigBirdTokenizer

pytestmark = on("tensorflow")

HOSTILE = [text for text in HOSTILE_TEXTS if len(text) < 1000]
QUOTES = ["'''a''''b` ``` `''`", "''Σ''Α ΑΣ''Α", "İ ΑΣ", "a\"''\"b", "\0a''\0b ``x''", "  The ''Café''  Zürich. "]
# Of such characters there are divisions that are equally probable.
REPEATED = ["In 12,000 and 5,000", "0000 000000 aaaaa ooo", "ssssss tt nnnnn 00000 in 1000000"]
# Behind unknown characters the sums of probabilities are others, and with them the first of such divisions.
UNKNOWN = ["😀12,000", "In 日12,000 and 日本5,000 0000", "x\u200b 00000 in 1000000", "a ▁", "▁", "a\t▁ \n 0▁"]


def texts_with_unknown_characters(count):
    """Random texts of digits that can be divided in several ways, letters, signs for a space and unknown characters."""
    chance = random.Random(7)
    return ["".join(chance.choices("0,123 aos日😀▁\t\n\u00a0tn.", k=30)) for _ in range(count)]


MADE = {
    "albert": albert_tokenizer,
    "albert with case and accents": lambda: albert_tokenizer(lowercase=False, keep_accents=True),
    "albert with accents": lambda: albert_tokenizer(keep_accents=True),
    "albert that cuts pieces": tokenizer_that_cuts_pieces,
    "xlm_roberta": xlm_roberta_tokenizer,
    "camembert": camembert_tokenizer,
    "xlnet": xlnet_tokenizer,
    "bigbird": bigbird_tokenizer,
    "bigbird as published": lambda: BigBirdTokenizer(published_bigbird()),
    "deberta": deberta_tokenizer,
    "deberta without bytes": lambda: deberta_tokenizer(byte_fallback=False),
}
QUICK = ("albert that cuts pieces", "deberta")


@pytest.fixture(params=full_but(MADE, *QUICK), scope="module")
def tokenizer(request):
    return MADE[request.param]()


@pytest.fixture(autouse=True)
def seeded():
    """Nothing: setting TensorFlow's seed would remove the resource of tensorflow_text."""


@pytest.fixture(scope="module")
def pieces_of(tokenizer):
    return SentencePieces(tokenizer, offsets=True)


@pytest.mark.parametrize("step", full_but([1999, 97], 1999))
def test_hostile_texts_and_characters_give_the_tokenizers_ids(tokenizer, pieces_of, step):
    texts = [*HOSTILE, *QUOTES, *REPEATED, *UNKNOWN, *SENTENCES, *mixed_texts(80), *letters_between(step)]
    texts += texts_with_unknown_characters(150)
    cut = tf.function(pieces_of, input_signature=[tf.TensorSpec((None,), tf.string)])
    for text, found, expected in zip(texts, cut(texts).to_list(), tokenizer.ids_batch(texts), strict=True):
        assert found == expected, ascii(text[:60])


@pytest.mark.full
def test_a_long_text_makes_no_array_of_all_texts_times_its_length(tokenizer, pieces_of):
    check_memory(pieces_of)
    texts = HOSTILE_TEXTS[-2:]
    assert pieces_of(texts).to_list() == tokenizer.ids_batch(texts)


def test_every_piece_has_the_bytes_of_the_tokenizers_characters(tokenizer, pieces_of):
    cut = tf.function(pieces_of.with_offsets, input_signature=[tf.TensorSpec((), tf.string)])
    for text in [*HOSTILE, *QUOTES, *REPEATED, *UNKNOWN, *SENTENCES, *texts_with_unknown_characters(20)]:
        expected = tokenizer.encode(text, add_special_tokens=False)
        ids, begins, ends = (array.numpy().tolist() for array in cut(text))
        assert ids == expected.ids, ascii(text)
        places = [tuple(len(text[:place].encode()) for place in span) for span in expected.offsets]
        assert list(zip(begins, ends, strict=True)) == places, ascii(text)


def test_masks_are_cut_out_as_by_the_tokenizer(tokenizer, pieces_of):
    texts = ["The capital is [MASK].", "[MASK] of <mask>[MASK] is", "", "no mask"]
    rows = [tokenizer.encode_with_masks(text).ids for text in texts]
    assert pieces_of.with_masks(texts).to_list() == list(map(tokenizer.template.text_in, rows))


@pytest.mark.full
def test_two_saved_graphs_in_one_process_keep_their_own_models(tmp_path):
    texts, specification = ["😀12,000 Café\u0301", "ＦＵＬＬ"], [tf.TensorSpec((None,), tf.string)]
    made = {"xlm_roberta": xlm_roberta_tokenizer(), "deberta": deberta_tokenizer()}
    for name, tokenizer in made.items():
        module = SentencePieces(tokenizer, offsets=True)
        module.cut = tf.function(module.__call__, specification)
        module.places = tf.function(module.with_offsets, [tf.TensorSpec((), tf.string)])
        tf.saved_model.save(module, str(tmp_path / name))
    loaded = {name: tf.saved_model.load(str(tmp_path / name)) for name in made}
    for name, module in loaded.items():
        found = module.cut(texts).to_list()
        assert found == made[name].ids_batch(texts)
        assert module.places(texts[0])[0].numpy().tolist() == found[0]


def test_bytes_that_are_not_utf_8_are_ignored(pieces_of):
    assert pieces_of([b"The \xffcat\xc3"]).to_list() == pieces_of([b"The cat"]).to_list()
