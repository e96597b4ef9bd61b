"""Lets workers that do not share the output directory do the jobs of `shards`, through a bucket.

    the text files  -> storage/text -> `tokenize_piece` -> storage/work
    storage/work    -> `write_shard` -> storage/pretraining -> the output directory

A worker downloads what a job reads, does the job in a temporary folder, and uploads what the job wrote. The storage is
any folder that TensorFlow reads and writes, such as gs://bucket/folder.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import posixpath
import tempfile

from keras_bert_impl.text.rows.remote_files import gfile
from keras_bert_impl.text.rows.shards import Piece, file_identity, run_files

FOLDER = "prepare-data"  # of the storage; removed when the output is complete
COPIES_AT_ONCE = 16  # a bucket answers slowly, but to many at the same time


def open_storage(storage, settings, pieces):
    """Uploads the files of a run that its jobs read; returns the path of the run's folder in the storage.

    Raises: ValueError if the folder holds another run.
    """
    files = {name: path for piece in pieces for name, path in piece.files}
    # Workers may have another working directory.
    folder = posixpath.join(storage if "://" in storage else os.path.abspath(storage), FOLDER)
    names = run_files(settings.directory)
    tokenizer = {name: file_identity(f"{settings.directory}/{name}") for name in names}
    text = {name: pathlib.Path(path).stat() for name, path in files.items()}
    run = {
        "settings": dataclasses.asdict(dataclasses.replace(settings, directory="")),
        "tokenizer": tokenizer,
        "text": {name: [status.st_size, status.st_mtime_ns] for name, status in text.items()},
    }
    record, content = f"{folder}/run.json", json.dumps(run)
    if gfile().exists(record):
        if gfile().GFile(record).read() != content:
            raise ValueError(f"{folder} holds the files of another run: name another beam_storage, or remove it.")
        return folder
    _copy_all((f"{settings.directory}/{name}", f"{folder}/{name}") for name in names)
    _copy_all((path, f"{folder}/text/{name}") for name, path in files.items())
    # Written last: where it is, the text is complete.
    with gfile().GFile(record, "w") as file:
        file.write(content)
    return folder


def run_in_storage(function, folder, settings, job):
    """function(settings, job) on a worker: with the files in `folder`, the path that `open_storage` returned."""
    with tempfile.TemporaryDirectory() as directory:
        here = dataclasses.replace(settings, directory=directory)
        record = job.record_path(here)
        if gfile().exists(f"{folder}/{record.relative_to(directory).as_posix()}"):
            return
        run = json.loads(gfile().GFile(f"{folder}/run.json").read())
        names = [*run["tokenizer"], *_names_read(job)]
        _copy_all((f"{folder}/{name}", f"{directory}/{name}") for name in names)
        function(here, job.moved(f"{directory}/text") if isinstance(job, Piece) else job)
        paths = [path for path in pathlib.Path(directory).rglob("*") if path.is_file() and path != record]
        written = {path.relative_to(directory).as_posix(): path for path in paths}
        _copy_all((path, f"{folder}/{name}") for name, path in written.items() if name not in names)
        # The record comes last: where it is, the other files are.
        _copy(record, f"{folder}/{record.relative_to(directory).as_posix()}")


def download_results(folder, settings, jobs):
    """Copies to the directory of the run what its next steps read there: records, kept sentences, examples."""
    names = [job.record_path(settings).relative_to(settings.directory).as_posix() for job in jobs]
    names += [f"work/sentences-{job.number:05d}.json" if isinstance(job, Piece) else job.path for job in jobs]
    _copy_all((f"{folder}/{name}", f"{settings.directory}/{name}") for name in names)


def remove_storage(folder):
    """Removes the folder that `open_storage` returned."""
    gfile().rmtree(folder)


def _names_read(job):
    if isinstance(job, Piece):
        return [f"text/{name}" for name, _ in job.files]
    return [f"work/{file}" for file in job.token_files]


def _copy_all(pairs):
    with concurrent.futures.ThreadPoolExecutor(COPIES_AT_ONCE) as threads:
        for _ in threads.map(lambda pair: _copy(*pair), list(pairs)):
            pass  # raises what a copy raised


def _copy(source, target):
    gfile().makedirs(posixpath.dirname(str(target)))
    gfile().copy(str(source), str(target), overwrite=True)
