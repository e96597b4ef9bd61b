"""Learning, reading and checking the vocabularies of byte-level BPE."""

from made_tokenizers import SENTENCES
from tiers import once

from keras_bert_impl.text.tokenizers import BytePairTokenizer, learn_byte_pairs
from keras_bert_impl.text.tokenizers.byte_pair_vocabulary import read_merges

pytestmark = once


def test_the_most_frequent_pairs_are_merged_first():
    vocabulary, merges = learn_byte_pairs(["low low low lower"], 5 + 256 + 4)
    assert vocabulary[:4] == ["<s>", "<pad>", "</s>", "<unk>"] and vocabulary[-1] == "<mask>"
    assert set(merges[:3]) <= {
        ("l", "o"),
        ("lo", "w"),
        ("o", "w"),
        ("Ġ", "low"),
        ("Ġ", "lo"),
        ("Ġlo", "w"),
        ("l", "ow"),
    }
    assert vocabulary[260:-1] == [left + right for left, right in merges] and "Ġlow" in vocabulary
    assert len(vocabulary) == 265


def test_no_text_is_unknown_whatever_was_learned_from():
    tokenizer = BytePairTokenizer(*learn_byte_pairs(["abc"], 300))
    for text in ("漢字 😀", "\x00\x7f", *SENTENCES):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.unk_id not in ids and tokenizer.decode(ids) == text


def test_the_same_texts_give_the_same_tokens():
    # The learner's hash maps are seeded anew for each of them.
    first, *others = [learn_byte_pairs(SENTENCES, 350) for _ in range(5)]
    assert all(other == first for other in others)


def test_a_pair_of_merges_may_begin_with_the_sign_of_a_comment(tmp_path):
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n# #\n", encoding="utf-8")
    assert read_merges(tmp_path / "merges.txt") == [("a", "b"), ("#", "#")]
