"""The tokenizer of a directory is found by its files."""

import json

import pytest
from conftest import WORDS
from made_tokenizers import (
    albert_tokenizer,
    bigbird_tokenizer,
    byte_pair_tokenizer,
    deberta_tokenizer,
    deberta_v1_tokenizer,
    modernbert_tokenizer,
    xlm_roberta_tokenizer,
    xlnet_tokenizer,
)
from tiers import once

from keras_bert_impl.text.tokenizers import (
    BytePairTokenizer,
    WordPieceTokenizer,
    kind_in,
    open_tokenizer,
    tokenizer_from_config,
    tokenizer_to_config,
)

pytestmark = once

TOKENIZERS = [
    WordPieceTokenizer(WORDS, lowercase=False),
    byte_pair_tokenizer(add_prefix_space=True),
    modernbert_tokenizer(),
    modernbert_tokenizer(add_prefix_space=True),
    deberta_v1_tokenizer(),
    albert_tokenizer(lowercase=False, keep_accents=True),
    xlm_roberta_tokenizer(),
    xlnet_tokenizer(),
    bigbird_tokenizer(),
    deberta_tokenizer(),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda tokenizer: tokenizer.kind)
def test_a_saved_tokenizer_is_opened_again_and_a_described_one_built_again(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(tokenizer.files)
    assert open_tokenizer(tmp_path) == tokenizer
    assert tokenizer_from_config(json.loads(json.dumps(tokenizer_to_config(tokenizer)))) == tokenizer


def test_a_description_without_a_kind_is_of_wordpiece():
    assert tokenizer_from_config({"vocabulary": WORDS, "lowercase": False}) == TOKENIZERS[0]
    assert tokenizer_from_config(tokenizer_to_config(None)) is None


def test_a_directory_of_no_several_or_unknown_vocabularies(tmp_path):
    assert kind_in(tmp_path) is None
    with pytest.raises(FileNotFoundError, match="holds no vocabulary"):
        open_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "WordLevel"}}')
    with pytest.raises(ValueError, match=r"tokenizer.json has an algorithm that is not known here"):
        kind_in(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    assert kind_in(tmp_path) is BytePairTokenizer
    (tmp_path / "vocab.txt").write_text("a")
    with pytest.raises(ValueError, match=r"several tokenizers \(vocab.txt, tokenizer.json\)"):
        kind_in(tmp_path)
