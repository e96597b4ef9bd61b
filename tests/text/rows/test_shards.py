"""Jobs of data preparation may be done twice, also at the same time."""

import numpy as np
import pytest
import tensorflow as tf
from tiers import on

from keras_bert_impl.text.ragged import Ragged
from keras_bert_impl.text.rows import example_files, shards
from keras_bert_impl.text.rows.shards import write_token_file
from keras_bert_impl.text.tokenizers import WordPieceTokenizer
from keras_bert_training import data_preparation

pytestmark = on("tensorflow")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "sat", "ran"]


@pytest.fixture
def settings(tmp_path):
    """Settings of a run that has tokenized five documents of three sentences."""
    WordPieceTokenizer(WORDS).save_pretrained(tmp_path)
    settings = data_preparation.settings_of(data_preparation.PrepareConfig(str(tmp_path), sequence_length=16))
    settings.work.mkdir()
    sentences = Ragged(np.arange(60) % 5 + 5, np.full(15, 4))
    documents = {split: Ragged(sentences, np.full(5, 3)) for split in shards.SPLITS}
    write_token_file(settings.work / "tokens.npz", documents)
    return settings


def test_two_attempts_at_once_write_one_whole_file(settings, monkeypatch):
    shard, others = shards.Shard(0, "train", 16, ("tokens.npz",)), []
    serialize_rows = example_files.serialize_rows

    def with_another_attempt(columns):
        monkeypatch.setattr(example_files, "serialize_rows", serialize_rows)
        rows = list(serialize_rows(columns))
        yield rows[0]
        others.append(shards.write_shard(settings, shard))
        yield from rows[1:]

    monkeypatch.setattr(example_files, "serialize_rows", with_another_attempt)
    assert [shards.write_shard(settings, shard)] == others
    assert shards.is_whole(settings.directory, others[0], thorough=True)
    assert others[0]["examples"] == len(list(tf.data.TFRecordDataset(f"{settings.directory}/{shard.path}"))) > 1


def test_a_failed_attempt_leaves_nothing(settings, monkeypatch):
    def failing(columns):
        raise OSError("disk full")
        yield

    monkeypatch.setattr(example_files, "serialize_rows", failing)
    with pytest.raises(OSError, match="disk full"):
        shards.write_shard(settings, shards.Shard(0, "train", 16, ("tokens.npz",)))
    assert [path.name for path in settings.work.iterdir()] == ["tokens.npz"]
