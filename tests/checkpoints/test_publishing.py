"""Uploading to the hub, of which a stand-in runs on this machine: in processes of their own, since huggingface_hub
reads the address of the hub when it is imported."""

import os
import re
import subprocess
import sys

import pytest
from conftest import revealing_config
from huggingface_hub.utils import filter_repo_objects
from stand_in_hub import Hub
from tiers import once

import keras_bert_impl as kbi
from keras_bert_impl.checkpoints import CardFacts, facts_of, write_card

pytestmark = once


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


@pytest.fixture
def checkpoint(tmp_path, small_tokenizer):
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=32))
    kbi.TextClassifier(encoder, 2, small_tokenizer, class_names=["bad", "good"]).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def in_a_process(code, hub, folder):
    """What a program prints that has this hub and a cache of its own."""
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(folder / "home"), "HF_TOKEN": "hf_a"}
    environment |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.full
def test_what_is_pushed_is_found_again_by_its_name(hub, checkpoint, tmp_path):
    (checkpoint / "notes.txt").write_text("mine alone")
    hub.files["me/moods"] = {"pytorch_model.bin": b"old", "notes.md": b"kept"}
    code = f"import keras_bert_impl as kbi\nprint(kbi.push_to_hub({str(checkpoint)!r}, 'me/moods'))"
    assert in_a_process(code, hub, tmp_path).strip().startswith(f"{hub.address}/me/moods/commit/")
    assert hub.created[0]["visibility"] == "private"
    held = hub.files["me/moods"]
    assert "notes.txt" not in held and "pytorch_model.bin" not in held
    assert held["notes.md"] == b"kept" and held["model.safetensors"] == (checkpoint / "model.safetensors").read_bytes()
    card = held["README.md"].decode()
    for program in re.findall(r"```python\n(import keras_bert_impl.*?|from transformers.*?)```", card, re.DOTALL):
        assert '"."' not in program and in_a_process(program, hub, tmp_path).strip()


class Api:
    """Replaces `huggingface_hub.HfApi`: keeps the files that it is given."""

    files: dict = {}  # noqa: RUF012

    def create_repo(self, repository, **options):
        self.options = options

    def upload_folder(self, repo_id, folder_path, **options):
        Api.options = options
        Api.files = {path.name: path.read_bytes() for path in folder_path.iterdir() if path.is_file()}
        return type("Commit", (), {"commit_url": f"https://hub/{repo_id}"})


@pytest.fixture
def uploaded(monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    return lambda: Api.files


def test_the_programs_of_an_uploaded_card_fetch_it(uploaded, checkpoint):
    write_card(checkpoint, CardFacts(license="mit"))
    assert kbi.push_to_hub(checkpoint, "hf://me/moods") == "https://hub/me/moods"
    card = uploaded()["README.md"].decode()
    assert 'kbi.TextClassifier.from_pretrained("hf://me/moods")' in card and "license: mit" in card
    assert 'BertTokenizer.from_pretrained("me/moods")' in card and '"."' not in card
    assert facts_of(checkpoint).license == "mit" and '"."' in (checkpoint / "README.md").read_text()


def test_a_model_is_uploaded_with_facts(uploaded, checkpoint):
    model = kbi.TextClassifier.from_pretrained(checkpoint)
    kbi.push_to_hub(model, "me/moods", CardFacts(languages=["en"]))
    card = uploaded()["README.md"].decode()
    assert "Languages: en." in card and 'from_pretrained("hf://me/moods")' in card
    assert {"config.json", "model.safetensors", "vocab.txt"} <= uploaded().keys()


def test_what_an_embedder_had_in_the_repository_is_removed(uploaded, checkpoint):
    kbi.push_to_hub(checkpoint, "me/moods")
    before = ["modules.json", "1_Pooling/config.json", "config_sentence_transformers.json", "2_Dense/model.safetensors"]
    kept = ["config.json", "onnx/config.json", "notes.txt"]
    assert list(filter_repo_objects([*before, *kept], allow_patterns=Api.options["delete_patterns"])) == before


def test_a_readme_of_somebody_else_is_uploaded_as_it_is(uploaded, checkpoint):
    (checkpoint / "README.md").write_text('My own: from_pretrained(".")')
    kbi.push_to_hub(checkpoint, "me/moods")
    assert uploaded()["README.md"] == b'My own: from_pretrained(".")'


def test_a_name_without_an_owner_and_a_directory_without_a_checkpoint_are_refused(tmp_path):
    with pytest.raises(ValueError, match="moods: expected the repository as owner/name"):
        kbi.push_to_hub(tmp_path, "moods")
    with pytest.raises(ValueError, match=r"config.json not found"):
        kbi.push_to_hub(tmp_path, "me/moods")
