"""A path such as gs://bucket/folder is opened as what it is or refused, never taken for a local folder `gs:`."""

import importlib

import pytest
from tiers import on, once

from keras_bert_impl.callbacks.sharded_state import path_of
from keras_bert_training import pretraining
from keras_bert_training.options.convert import ConvertConfig
from keras_bert_training.options.export import ExportConfig
from keras_bert_training.runs import check_run, open_run, parse

pytestmark = once


def test_outputs_of_commands_that_write_local_files_are_no_urls():
    for kind, words in (
        (ExportConfig, ["--model=hf://owner/name", "--output=gs://b/x"]),
        (ConvertConfig, ["--source=somewhere", "--target=gs://b/x"]),
        (pretraining.PretrainConfig, ["--data=gs://b/data", "--output=s3://b/x"]),
    ):
        with pytest.raises(ValueError, match="is remote"):
            parse(kind, words)
    assert parse(pretraining.PretrainConfig, ["--data=gs://b/data", "--output=gs://b/x"]).output == "gs://b/x"


@pytest.mark.parametrize("function", [check_run, open_run])
def test_a_program_that_names_a_bucket_as_output_is_told_so(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="The output gs://bucket/run is remote: name a local directory"):
        function("gs://bucket/run", pretraining.PretrainConfig("data", "gs://bucket/run"))
    assert not list(tmp_path.iterdir())


@on("tensorflow")
def test_a_run_of_tensorflow_in_a_bucket_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is remote, and tensorflow saves training states only to local directories"):
        pretraining.run(pretraining.PretrainConfig("data", "gs://bucket/run", steps=1))
    assert not list(tmp_path.iterdir())


def test_a_bucket_without_a_client_for_it_says_what_to_install(monkeypatch):
    pytest.importorskip("orbax.checkpoint")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("tensorflow", "gcsfs") else name)
    with pytest.raises(ImportError, match=r"gs://bucket/run cannot be opened without gcsfs: pip install 'keras_bert"):
        path_of("gs://bucket/run")
