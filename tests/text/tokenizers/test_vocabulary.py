import argparse
import collections
import inspect
import random

import pytest
from tiers import once

from keras_bert_impl.text.tokenizers import WordPieceTokenizer, learn_vocabulary, read_vocabulary, write_vocabulary
from keras_bert_impl.text.tokenizers.vocabulary import SPECIAL_TOKENS

pytestmark = once

PROSE = inspect.getsource(argparse).splitlines()[:800]


def test_learned_vocabulary_begins_with_the_control_tokens():
    vocabulary = learn_vocabulary(PROSE, 300)
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(vocabulary) == len(set(vocabulary)) == 300
    assert len(learn_vocabulary(PROSE, 30)) == 30  # though each character takes two tokens


@pytest.mark.full
def test_equal_texts_give_equal_vocabularies():
    assert learn_vocabulary(PROSE, 500) == learn_vocabulary(iter(PROSE), 500)


def test_words_are_normalized_as_the_tokenizer_does():
    lower = learn_vocabulary(["ΟΔΟΣ École 中文 a\u200bb"] * 2, 100)
    assert {"οδος", "ecole", "中", "文", "ab"} <= set(lower)
    cased = learn_vocabulary(["École Cased"] * 2, 100, lowercase=False)
    assert {"École", "Cased"} <= set(cased)


def test_little_text_gives_fewer_tokens():
    assert learn_vocabulary(["ab ab."], 1000) == [*SPECIAL_TOKENS, ".", "a", "b", "##a", "##b", "ab"]


def chinese_text():
    """20,000 characters of 4,000 kinds, the k-th with a frequency proportional to 1/k (Zipf's law); deterministic."""
    kinds = [chr(0x4E00 + 3 * place) for place in range(4000)]
    weights = [1 / (place + 1) for place in range(4000)]
    return ["".join(random.Random(seed).choices(kinds, weights, k=100)) for seed in range(200)]


def test_alphabet_of_many_characters_covers_the_text_if_there_is_room():
    texts = chinese_text()
    counts = collections.Counter("".join(texts))
    vocabulary = learn_vocabulary(texts, 21_128)
    unknown = sum(count for character, count in counts.items() if character not in set(vocabulary))
    assert len(vocabulary) > 1005  # what a cap of 1,000 characters left
    assert unknown <= 0.0005 * counts.total()
    # The coverage ends the alphabet: it takes no more of the characters that occur once than it needs.
    once = sum(counts[character] == 1 for character in vocabulary)
    assert once == sum(count == 1 for count in counts.values()) - int(0.0005 * counts.total())
    assert len(learn_vocabulary(texts, 500)) == 500  # a Chinese character takes one token


def test_rare_characters_stay_among_the_first_thousand():
    assert "é" in learn_vocabulary(["the cat sat on the mat " * 1000, "é"], 100, lowercase=False)


def test_written_vocabulary_is_read_again(tmp_path):
    vocabulary = [*SPECIAL_TOKENS, "é", "##\u2028", "word"]
    write_vocabulary(tmp_path / "vocab.txt", vocabulary)
    assert read_vocabulary(tmp_path / "vocab.txt") == vocabulary
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]


def test_line_ends_of_windows_are_read(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("\r\n".join(SPECIAL_TOKENS).encode() + b"\r\n")
    assert read_vocabulary(tmp_path / "vocab.txt") == list(SPECIAL_TOKENS)


def test_a_vocabulary_without_a_control_token_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(SPECIAL_TOKENS[:4]) + "\n")
    with pytest.raises(ValueError, match=r"vocab.txt has no \[MASK\]; WordPieceTokenizer needs"):
        WordPieceTokenizer(tmp_path / "vocab.txt")
