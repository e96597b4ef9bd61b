"""Uploading to the hub, of which a stand-in with huggingface_hub's own signatures keeps what it is given."""

import os
import re
import subprocess
import sys
from unittest import mock

import huggingface_hub
import pytest
from conftest import revealing_config
from huggingface_hub.utils import filter_repo_objects
from stand_in_hub import Hub
from tiers import once

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import CardFacts, facts_of, write_card

pytestmark = once


@pytest.fixture
def checkpoint(tmp_path, small_tokenizer):
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=32))
    kbi.TextClassifier(encoder, 2, small_tokenizer, class_names=["bad", "good"]).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def in_a_process(code, hub, folder):
    """What a program prints that has this hub, whose address huggingface_hub reads when it is imported."""
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(folder / "home"), "HF_TOKEN": "hf_a"}
    environment |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.full
def test_what_is_pushed_is_found_again_by_its_name(checkpoint, tmp_path):
    with Hub() as hub:
        hub.files["me/moods"] = {"pytorch_model.bin": b"old", "notes.md": b"kept"}
        code = f"import keras_bert_impl as kbi\nprint(kbi.push_to_hub({str(checkpoint)!r}, 'me/moods'))"
        assert in_a_process(code, hub, tmp_path).strip().startswith(f"{hub.address}/me/moods/commit/")
        assert hub.created[0]["visibility"] == "private"
        held = hub.files["me/moods"]
        assert "pytorch_model.bin" not in held and held["notes.md"] == b"kept"
        assert held["model.safetensors"] == (checkpoint / "model.safetensors").read_bytes()
        card = held["README.md"].decode()
        for program in re.findall(r"```python\n(import keras_bert_impl.*?|from transformers.*?)```", card, re.DOTALL):
            assert '"."' not in program and in_a_process(program, hub, tmp_path).strip()


@pytest.fixture
def api(monkeypatch):
    """Replaces `huggingface_hub.HfApi`; `files` are those that it was given, and `deleted` the patterns of old ones."""
    api = mock.create_autospec(huggingface_hub.HfApi, instance=True)

    def upload_folder(repo_id, folder_path, delete_patterns, **options):
        api.files = {path.name: path.read_bytes() for path in folder_path.iterdir() if path.is_file()}
        api.deleted = delete_patterns
        return mock.Mock(commit_url=f"https://hub/{repo_id}")

    api.upload_folder.side_effect = upload_folder
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: api)
    return api


def test_the_programs_of_an_uploaded_card_fetch_it(api, checkpoint):
    write_card(checkpoint, CardFacts(license="mit"))
    (checkpoint / "notes.txt").write_text("mine alone")
    assert kbi.push_to_hub(checkpoint, "hf://me/moods") == "https://hub/me/moods"
    card = api.files["README.md"].decode()
    assert 'kbi.TextClassifier.from_pretrained("hf://me/moods")' in card and "license: mit" in card
    assert 'BertTokenizer.from_pretrained("me/moods")' in card and '"."' not in card
    assert "notes.txt" not in api.files and api.create_repo.call_args.kwargs["private"]
    assert facts_of(checkpoint).license == "mit" and '"."' in (checkpoint / "README.md").read_text()
    kbi.push_to_hub(kbi.TextClassifier.from_pretrained(checkpoint), "me/moods", CardFacts(languages=["en"]))
    assert "Languages: en." in api.files["README.md"].decode()
    assert {"config.json", "model.safetensors", "vocab.txt"} <= api.files.keys()


def test_what_an_embedder_had_in_the_repository_is_removed(api, checkpoint):
    kbi.push_to_hub(checkpoint, "me/moods")
    before = ["modules.json", "1_Pooling/config.json", "config_sentence_transformers.json", "2_Dense/model.safetensors"]
    kept = ["config.json", "onnx/config.json", "notes.txt"]
    assert list(filter_repo_objects([*before, *kept], allow_patterns=api.deleted)) == before


def test_a_readme_of_somebody_else_is_uploaded_as_it_is(api, checkpoint):
    (checkpoint / "README.md").write_text('My own: from_pretrained(".")')
    kbi.push_to_hub(checkpoint, "me/moods")
    assert api.files["README.md"] == b'My own: from_pretrained(".")'


def test_a_name_without_an_owner_is_refused(tmp_path):
    with pytest.raises(ValueError, match="owner/name"):
        kbi.push_to_hub(tmp_path, "moods")
