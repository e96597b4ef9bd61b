from collections import Counter

from tiers import once

from keras_bert_impl.text.corpora import split_of

pytestmark = once


def test_splits_hold_ninety_five_and_five_of_a_hundred_documents():
    counts = Counter(split_of(f"package.module_{index}") for index in range(20_000))
    assert abs(counts["train"] / 20_000 - 0.90) < 0.01
    assert abs(counts["validation"] / 20_000 - 0.05) < 0.005
    assert abs(counts["test"] / 20_000 - 0.05) < 0.005


def test_split_of_a_name_never_changes():
    # Fixed values: a new hash would move test documents into the training sets of models already published.
    names = [f"m{index}" for index in range(60)]
    assert [name for name in names if split_of(name) != "train"] == ["m14", "m16", "m25", "m34", "m39"]
