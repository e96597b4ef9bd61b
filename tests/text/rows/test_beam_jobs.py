"""Data preparation on Beam's runners writes the same files as in one process, and a worker's death changes nothing."""

import dataclasses
import json
import os
import signal
import sys
import threading
import time

import pytest
import tensorflow as tf
from documentation import commands, indented_blocks
from tiers import on

from keras_bert_impl.text.rows import beam_jobs, shards
from keras_bert_impl.text.tokenizers import WordPieceTokenizer
from keras_bert_training import data_preparation
from keras_bert_training.runs import parse

pytestmark = on("tensorflow")

PipelineOptions = pytest.importorskip("apache_beam.options.pipeline_options").PipelineOptions
distributed = pytest.importorskip("distributed")
pytest.importorskip("apache_beam.runners.dask.dask_runner")  # its flags are known once it is imported

OPTIONS = {"vocabulary_size": 500, "sequence_length": 32, "workers": 1}


@pytest.fixture(scope="module")
def small_jobs(text_folder):
    """Corpora are cut into several pieces, blocks and shards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_preparation, "PIECE_BYTES", 4_000)
        patch.setattr(data_preparation, "SMALL_BYTES", 0)
        patch.setattr(data_preparation, "BLOCK_BYTES", 2_000)
        patch.setattr(shards, "SHARD_TOKENS", 1_000)
        yield {"input": str(text_folder), **OPTIONS}


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory, small_jobs):
    """The files that one process writes."""
    return prepared(tmp_path_factory.mktemp("one") / "data", small_jobs)


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two worker processes with one thread each."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


def prepared(output, options, **more):
    """Name and content of every file that a preparation writes, but for the record and the report of its options."""
    data_preparation.run(data_preparation.PrepareConfig(str(output), **options, **more))
    files = (path for path in output.rglob("*") if path.is_file() and path.name not in ("run.json", "report.html"))
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in files}


def on_dask(cluster):
    return {"runner": "DaskRunner", "beam_options": f"--dask_client_address={cluster.scheduler_address}"}


def test_the_direct_runner_writes_the_same_files(tmp_path, small_jobs, in_one_process):
    assert prepared(tmp_path / "data", small_jobs, runner="DirectRunner") == in_one_process


@pytest.mark.full
def test_two_processes_on_dask_share_the_jobs_and_write_the_same_files(tmp_path, small_jobs, in_one_process, cluster):
    assert prepared(tmp_path / "data", small_jobs, **on_dask(cluster)) == in_one_process
    with distributed.Client(cluster) as client:
        have_worked = client.run(lambda: "keras_bert_impl.text.rows.shards" in sys.modules)
    assert list(have_worked.values()) == [True, True]


def kill_a_worker(output, orphans):
    """Kills the process of the first attempt at a job that it catches in the middle; adds its folder to `orphans`."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        for folder in (output / "work").glob("attempt-*"):
            worker = int(folder.name.split("-")[-2])
            if worker != os.getpid():
                os.kill(worker, signal.SIGKILL)
                if folder.is_dir():
                    orphans.append(folder)
                    return
        time.sleep(0.001)


@pytest.mark.full
def test_a_worker_killed_in_the_middle_of_a_job_changes_no_file(tmp_path, small_jobs, in_one_process, cluster):
    output, orphans = tmp_path / "data", []
    killer = threading.Thread(target=kill_a_worker, args=(output, orphans))
    killer.start()
    files = prepared(output, small_jobs, **on_dask(cluster))
    killer.join()
    assert len(orphans) == 1
    assert files == in_one_process


def in_memory(tmp_path):
    """A runner whose workers see the text and the output only in TensorFlow's file system in memory."""
    return {"runner": "DirectRunner", "beam_storage": f"ram://{tmp_path.name}"}


def test_files_that_pass_through_storage_are_the_same(tmp_path, small_jobs, in_one_process):
    assert prepared(tmp_path / "data", small_jobs, **in_memory(tmp_path)) == in_one_process
    assert not tf.io.gfile.exists(f"ram://{tmp_path.name}/prepare-data")


@pytest.mark.full
def test_workers_mark_phrases_as_one_process_does(tmp_path, small_jobs):
    (tmp_path / "phrases.txt").write_text("of the\nthe array\n", encoding="utf-8")
    options = {**small_jobs, "phrases": str(tmp_path / "phrases.txt")}
    in_one = prepared(tmp_path / "one", options)
    assert json.loads(in_one["summary.json"])["phrases"]["places"] > 50
    rows = [content for name, content in in_one.items() if name.endswith(".tfrecord")]
    assert all(b"phrase_continuations" in content for content in rows) and len(rows) > 5
    assert prepared(tmp_path / "beam", options, runner="DirectRunner") == in_one
    assert prepared(tmp_path / "stored", options, **in_memory(tmp_path)) == in_one


@pytest.mark.full
def test_what_is_in_storage_is_not_done_again(tmp_path, small_jobs, in_one_process, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(data_preparation, "write_shard", lambda settings, shard: 1 / 0)
        prepared(tmp_path / "data", small_jobs, **in_memory(tmp_path))
    monkeypatch.setattr(data_preparation, "tokenize_piece", lambda settings, piece: 1 / 0)
    assert prepared(tmp_path / "data", small_jobs, **in_memory(tmp_path)) == in_one_process


def test_storage_of_another_run_is_refused(tmp_path, small_jobs):
    config = data_preparation.PrepareConfig(str(tmp_path), **small_jobs)
    WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]).save_pretrained(tmp_path)
    pieces, settings = data_preparation.open_pieces(config)[0], data_preparation.settings_of(config)
    storage = f"ram://{tmp_path.name}"
    assert beam_jobs.open_storage(storage, settings, pieces) == f"{storage}/prepare-data"
    assert beam_jobs.open_storage(storage, settings, pieces) == f"{storage}/prepare-data"
    with pytest.raises(ValueError, match="prepare-data holds the files of another run"):
        beam_jobs.open_storage(storage, dataclasses.replace(settings, seed=1), pieces)


def test_workers_that_write_elsewhere_are_reported(tmp_path, small_jobs, monkeypatch):
    monkeypatch.setattr(data_preparation, "tokenize_piece", lambda settings, piece: None)
    with pytest.raises(FileNotFoundError, match=r"no record of 2 of its 2 jobs: every machine .* must see"):
        prepared(tmp_path / "data", small_jobs, runner="DirectRunner")


def test_a_worker_with_another_version_of_a_package_is_refused():
    versions = {**beam_jobs.installed_versions(), "tensorflow-text": "2.0"}
    with pytest.raises(RuntimeError, match=r"has tensorflow-text \S+ instead of 2\.0, and could write other files"):
        beam_jobs.run_on_worker(print, None, versions, None)


def test_beam_knows_every_flag_in_the_guide(caplog):
    found = [command for block in indented_blocks("docs/beam.md") for command in commands(block, "keras-bert")]
    assert len(found) >= 5
    for name, *options in found:
        config = parse(data_preparation.PrepareConfig, options)
        assert name == "prepare-data" and config.runner
        flags = beam_jobs.pipeline_flags(config.runner, config.beam_options)
        PipelineOptions(flags).get_all_options()
    assert "unparseable" not in caplog.text
    PipelineOptions(["--flink_slots=2"]).get_all_options()
    assert "unparseable" in caplog.text
