"""Byte-level BPE in a TensorFlow graph, against the tokenizer that it is made of."""

import random
import re

import numpy as np
import pytest
import tensorflow as tf
from conftest import REAL_DATA
from hostile_texts import HOSTILE_TEXTS
from made_tokenizers import (
    SENTENCES,
    byte_pair_tokenizer,
    deberta_v1_tokenizer,
    eurobert_tokenizer,
    mmbert_tokenizer,
    modernbert_tokenizer,
)
from memory_of_graphs import check_memory
from tiers import full_but, on

from keras_bert_impl.preprocessing.graphs import pair_merging
from keras_bert_impl.preprocessing.graphs.byte_pairs import BytePairs, CharacterPairs
from keras_bert_impl.preprocessing.graphs.text_rows import graph_of
from keras_bert_impl.text.tokenizers import BytePairTokenizer, MmBertTokenizer
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import NFC, byte_tokens

pytestmark = on("tensorflow")

CONTROL = ["<s>", "<pad>", "</s>", "<unk>"]
# Where the regular expression of byte-level BPE divides texts, and characters of one to four bytes.
CHARACTERS = list("aA1 '\n\t\u00a0.!sre tvmld\u3000é日٣½\x00🙂\u200d\u0301")
# What ModernBERT's tokenizer finds whole or composes.
CHARACTERS += ["   ", "    ", "e\u0301", "\u1100\u1161\u11a8", "[unused0]", "<|mail|>"]
# What mmBERT's has for spaces, whole, and for bytes.
CHARACTERS += ["▁", "▁▁▁", "\n\n", "<h1>", "<0x0A>"]
# What Llama 3's words depend on.
CHARACTERS += list("\r\n''LS\u017fK7(( ")


# Of a character with marks, of which it is composed with some alone, the graph finds these by themselves.
SEVERAL_MARKS = re.compile("\u0301\u0301|[é\u11a8]\u0301")


def mixtures(count):
    drawn = random.Random(0)
    return ["".join(drawn.choices(CHARACTERS, k=drawn.randrange(25))) for _ in range(count)]


TEXTS = [
    "",
    " ",
    " The cat",
    "▁The",
    "  two  spaces\n\nnew ",
    "it's we're 'twas  'll 's's ''s\n's",
    "a\0b",
    *SENTENCES,
    *mixtures(150),
]


def tokenizer_of(merges, add_prefix_space=False):
    pieces = dict.fromkeys(first + second for first, second in merges)
    return BytePairTokenizer([*CONTROL, *byte_tokens(), *pieces, "<mask>"], merges, add_prefix_space)


MADE = {
    "roberta": byte_pair_tokenizer,
    "deberta": deberta_v1_tokenizer,
    "added": modernbert_tokenizer,
    "nfc": lambda prefix: modernbert_tokenizer(prefix, ()),
}
KINDS = {f"{name}{'-prefix' * prefix}": (made, prefix) for name, made in MADE.items() for prefix in (False, True)}
KINDS["characters-prefix"] = (lambda prefix: mmbert_tokenizer(), True)
KINDS["characters, none added-prefix"] = (lambda prefix: mmbert_tokenizer(()), True)


KINDS["llama"] = (lambda prefix: eurobert_tokenizer(), False)
KINDS["llama, none added"] = (lambda prefix: eurobert_tokenizer(()), False)
QUICK = ("llama", "deberta-prefix", "added", "characters-prefix")


@pytest.fixture(params=full_but(KINDS, *QUICK), scope="module")
def tokenizer(request):
    made, prefix = KINDS[request.param]
    return made(prefix)


@pytest.fixture(autouse=True)
def seeded():
    """Nothing: setting TensorFlow's seed would remove the resource of tensorflow_text."""


@pytest.fixture(scope="module")
def graph(tokenizer):
    return graph_of(tokenizer, offsets=True)


def test_texts_get_the_ids_of_the_tokenizer_in_a_graph(tokenizer, graph):
    texts = [*TEXTS, *(text for text in HOSTILE_TEXTS if len(text) < 1000)]
    expected = tokenizer.ids_batch(texts)
    in_graph = tf.function(lambda strings: graph(strings), input_signature=[tf.TensorSpec((None,), tf.string)])
    assert in_graph(tf.constant(texts)).to_list() == expected
    assert in_graph(tf.constant([], tf.string)).to_list() == []


@pytest.mark.full
def test_a_long_text_makes_no_array_of_all_texts_times_its_length(tokenizer, graph):
    check_memory(graph)
    texts = HOSTILE_TEXTS[-2:]
    assert graph(tf.constant(texts)).to_list() == tokenizer.ids_batch(texts)


def test_a_vocabulary_without_all_bytes_gives_unknown_tokens():
    learned = byte_pair_tokenizer()
    vocabulary = [token for token in learned.vocabulary if "t" not in token]
    merges = [pair for pair in learned.merges if "t" not in "".join(pair)]
    tokenizer = BytePairTokenizer(vocabulary, merges)
    assert tokenizer.unk_id in tokenizer.encode("the cat").ids
    assert BytePairs(tokenizer)(tf.constant(TEXTS)).to_list() == tokenizer.ids_batch(TEXTS)


def test_pieces_stand_where_the_tokenizer_finds_them(tokenizer, graph):
    places = tf.function(graph.with_offsets, input_signature=[tf.TensorSpec((), tf.string)])
    for text in TEXTS[:50]:
        if SEVERAL_MARKS.search(text) and tokenizer.dialect.normalizer == NFC:
            continue
        encoding = tokenizer.encode(text, add_special_tokens=False)
        ids, begins, ends = (array.numpy().tolist() for array in places(tf.constant(text)))
        expected = [tuple(len(text[:place].encode()) for place in span) for span in encoding.offsets]
        assert (ids, list(zip(begins, ends, strict=True))) == (encoding.ids, expected), text


def test_masks_take_the_white_space_before_them_along(tokenizer, graph):
    texts = ["The capital <mask>.", "<mask> a [MASK][MASK] \u00a0\n <mask>b ", "[MASK]", "x \x1c<mask>", " <mask> ", ""]
    texts += ["The \n <mask>", "\t\n\n\t<mask>"]
    texts = [text.replace("<mask>", tokenizer.mask_texts[0]) for text in (*texts, "a   <mask>   b")]
    expected = [tokenizer.encode_with_masks(text).ids[1:-1] for text in texts]
    assert graph.with_masks(tf.constant(texts)).to_list() == expected


def test_words_of_a_text_have_the_ids_of_running_text(tokenizer, graph):
    sentences = [text.split() for text in SENTENCES]
    expected = [ids for of_sentence in tokenizer.ids_of_words(sentences) for ids in of_sentence]
    assert graph.of_words(tf.ragged.constant(sentences)).to_list() == expected


@pytest.mark.parametrize(
    "merges",
    [
        [("a", "a"), ("aa", "a"), ("aa", "aa")],
        [("b", "c"), ("a", "b"), ("ab", "c"), ("abc", "a"), ("a", "bc")],  # two merges make abc
        [("ab", "c"), ("a", "b")],  # the first needs the second
        [],
    ],
)
def test_the_order_of_merges_is_that_of_the_tokenizer(merges):
    tokenizer, drawn = tokenizer_of(merges), random.Random(1)
    texts = ["aaa", "abcabc", *("".join(drawn.choices("abc", k=drawn.randrange(1, 15))) for _ in range(100))]
    assert BytePairs(tokenizer)(tf.constant(texts)).to_list() == tokenizer.ids_batch(texts)


def test_other_words_with_the_hash_of_a_piece_are_not_taken_for_it(monkeypatch):
    monkeypatch.setattr(pair_merging, "SLOTS", 4)
    pieces = {b"ab": 7, b"abc": 8, b" ab": 9, b"b": 10}
    found = pair_merging.WholeWords(pieces)
    words = ["ab", "ba", "abc", "abd", "b", "ab" * 40, " ab", "\0"]
    content = tf.constant([byte for word in words for byte in word.encode()], tf.int32)
    lengths = np.array([len(word) for word in words], np.int32)
    ids = found(content, tf.repeat(tf.range(len(words)), lengths), np.cumsum(lengths, dtype=np.int32) - lengths).numpy()
    expected = [pieces.get(word.encode(), -1) for word in words]
    assert all(given in (-1, wanted) for given, wanted in zip(ids, expected, strict=True))
    assert 7 in ids


def test_bytes_that_are_not_utf_8_are_ignored(tokenizer, graph):
    assert graph(tf.constant([b"a \xff\xfecat\xc3", b"\xff"])).to_list() == tokenizer.ids_batch(["a cat", ""])


@pytest.mark.parametrize(
    "change",
    [
        lambda merges: merges[:-1],  # which the kernel makes nevertheless
        lambda merges: [*merges, ("a", "t")],  # another piece
        lambda merges: [merges[-1], *merges[:-1]],  # one of a piece, before the others of that piece
    ],
)
def test_merges_that_are_not_those_of_a_sentence_piece_model_are_refused(change):
    learned = mmbert_tokenizer()
    pieces = ["".join(pair) for pair in learned.merges]
    several = next(piece for piece in pieces if pieces.count(piece) > 1 and "▁" not in piece[1:])
    merges = sorted(learned.merges, key=lambda pair: "".join(pair) == several)
    CharacterPairs(MmBertTokenizer(learned.vocabulary, merges, learned.added_tokens))
    vocabulary = learned.vocabulary if "at" in learned.vocabulary else [*learned.vocabulary, "at"]
    tokenizer = MmBertTokenizer(vocabulary, change(merges), learned.added_tokens)
    with pytest.raises(ValueError, match="the merges are not those of a SentencePiece model"):
        CharacterPairs(tokenizer)


@pytest.mark.full
def test_the_published_vocabulary_gives_its_ids_to_real_text():
    vocabulary, text = REAL_DATA / "vocab", REAL_DATA / "pretrain" / "wikitext-2"
    if not vocabulary.is_dir() or not text.is_dir():
        pytest.skip("needs RoBERTa's vocabulary and Wikipedia's text")
    tokenizer = BytePairTokenizer(vocabulary / "roberta-base-vocab.json", vocabulary / "roberta-base-merges.txt")
    lines = next(path for path in sorted(text.rglob("*")) if path.is_file()).read_text(encoding="utf-8").split("\n")
    assert BytePairs(tokenizer)(tf.constant(lines[:1000])).to_list() == tokenizer.ids_batch(lines[:1000])
