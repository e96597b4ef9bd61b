import shutil

import huggingface_hub
import pytest
from tiers import once

from keras_bert_impl import BertEncoder
from keras_bert_impl.checkpoints import hub

pytestmark = once


@pytest.fixture
def fetched(monkeypatch, small_config, tmp_path):
    """Replaces the hub: returns a saved encoder and records what was asked for."""
    BertEncoder(small_config).save_pretrained(tmp_path / "snapshot")
    asked = []

    def snapshot_download(repository, allow_patterns):
        asked.append((repository, allow_patterns))
        return str(tmp_path / "snapshot")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_a_hub_address_is_fetched_without_pickles(fetched, small_config):
    assert BertEncoder.from_pretrained("hf://someone/their-bert").config == small_config
    ((repository, patterns),) = fetched
    assert repository == "someone/their-bert"
    assert "model*.safetensors" in patterns and "vocab.txt" in patterns and "pytorch_model*.bin" not in patterns


def test_pickles_are_fetched_where_there_is_nothing_else(monkeypatch, tmp_path):
    def snapshot_download(repository, allow_patterns):
        if "pytorch_model*.bin" in allow_patterns:
            (tmp_path / "pytorch_model.bin").touch()
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert hub.local_directory("hf://google/bert") == tmp_path
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    with pytest.raises(ValueError, match=r"google/bert has no weights that can be read"):
        hub.local_directory("hf://google/bert")


def test_a_published_name_is_fetched_from_its_owner(fetched):
    BertEncoder.from_pretrained("bert-base-uncased")
    assert fetched[0][0] == "google-bert/bert-base-uncased"


def test_a_directory_comes_before_a_published_name(fetched, small_config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BertEncoder(small_config).save_pretrained("bert-base-uncased")
    BertEncoder.from_pretrained("bert-base-uncased")
    assert not fetched


def test_the_directory_of_a_run_stands_for_its_checkpoint(small_config, tmp_path):
    for within in ("model", "encoder"):
        BertEncoder(small_config).save_pretrained(tmp_path / within / within)
        (tmp_path / within / "run.json").write_text("{}")
        assert hub.local_directory(tmp_path / within) == tmp_path / within / within


def test_an_unreachable_hub_and_a_name_that_is_nothing_say_what_was_tried(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match="Give the path") as raised:
        BertEncoder.from_pretrained("hf://someone/absent")
    assert "\n" not in str(raised.value) and raised.value.__cause__ is None, "tracebacks of HTTP libraries hide it"
    with pytest.raises(ValueError, match="hf://owner/name"):
        BertEncoder.from_pretrained("nowhere")


def test_the_list_has_every_published_name_and_where_it_is(capsys):
    BertEncoder.list_pretrained()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert len(lines) == 1 + 9 + 24 + 2 + 4 + 3 + 6 + 5 + 8 + 1 + 3 + 3 + 2 + 10 + 8 + 2 + 1 + 3 + 2 + 4 + 2
    assert lines["small_english"] == "(in the package)"
    assert lines["bert_uncased_L-2_H-128_A-2"] == "google/bert_uncased_L-2_H-128_A-2"
    assert lines["modernbert-base"] == "answerdotai/ModernBERT-base"
    assert lines["ettin-150m"] == "jhu-clsp/ettin-encoder-150m"
