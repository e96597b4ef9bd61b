"""Runs the jobs of `shards` as an Apache Beam pipeline: in processes on this machine, or on a cluster.

An engine may do a job several times, also at the same time: again after a worker has died, or because the first attempt
is slow. `shards` writes the same files however often and wherever a job is done, so the engine does not matter.

Workers that do not share the output directory do the jobs through a storage, any folder that TensorFlow reads and
writes, such as gs://bucket/folder:

    the text files  -> storage/text -> `tokenize_piece` -> storage/work
    storage/work    -> `write_shard` -> storage/pretraining -> the output directory

A worker downloads what a job reads, does the job in a temporary folder, and uploads what the job wrote.
"""

import concurrent.futures
import dataclasses
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import posixpath
import shlex
import tempfile

from keras_bert_impl.json_files import read_json_if_there
from keras_bert_impl.text.rows.remote_files import gfile
from keras_bert_impl.text.rows.shards import Piece, file_identity, run_files

# Their versions decide what the files hold: the sentences, their tokens and the random numbers.
PACKAGES = ("keras_bert_impl", "keras", "numpy", "sentencex", "tensorflow", "tensorflow-text")
DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"


def run_jobs_on_beam(function, settings, jobs, runner, flags="", folder=None):
    """Runs function(settings, job) for each job in a Beam pipeline; returns the records in the order of the jobs.

    The records are read from the files that the jobs write, because a pipeline's results stay on its workers.

    Args:
        function: `shards.tokenize_piece` or `shards.write_shard`.
        settings: the `shards.Settings` of the run.
        jobs: list of `shards.Piece` or `shards.Shard`.
        runner: name of a Beam runner, or of a class that is one, with its module.
        flags: further flags for Beam, in one string.
        folder: the folder of `open_storage`; without one, workers write to the directory of the run.

    Raises: ModuleNotFoundError without Apache Beam; FileNotFoundError if the pipeline has ended and this process sees
        no record of a job; what Beam raises when a job fails for good.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    on_worker = functools.partial(run_in_storage, function, folder) if folder else function
    pipeline = beam.Pipeline(options=PipelineOptions(pipeline_flags(runner, flags)))
    _ = (
        pipeline
        | beam.Create(list(jobs))
        # Otherwise a runner may fuse the steps and run all jobs on one worker.
        | beam.Reshuffle()
        | beam.Map(functools.partial(run_on_worker, on_worker, settings, installed_versions()))
    )
    result = pipeline.run()
    try:
        result.wait_until_finish()
    finally:
        # The DaskRunner leaves its client open, and with it the processes of a cluster that it has started itself.
        if hasattr(result, "client"):
            result.client.close()
    if folder:
        download_results(folder, settings, jobs)
    return read_records(settings, jobs)


def pipeline_flags(runner, flags):
    """The list of flags for a Beam pipeline."""
    given = shlex.split(flags)
    if runner.endswith("DaskRunner"):
        runner = DASK_RUNNER  # the only one of Beam's runners that it does not know by its short name
        if not any(flag.startswith(("--dask_npartitions", "--dask_partition_size")) for flag in given):
            # A partition is one task of Dask's. By default it has 128 jobs: one worker would do everything.
            given.append("--dask_partition_size=1")
    return [f"--runner={runner}", *given]


def run_on_worker(function, settings, versions, job):
    """function(settings, job), once the packages of this machine are those of the machine that started the pipeline.

    Raises: RuntimeError that names the packages of another version.
    """
    here = installed_versions()
    different = [
        f"{name} {here[name]} instead of {version}" for name, version in versions.items() if here[name] != version
    ]
    if different:
        raise RuntimeError(
            f"The worker {platform.node()} has {', '.join(different)}, and could write other files. Install the same "
            "versions on the workers as where prepare-data is started."
        )
    return function(settings, job)


@functools.cache
def installed_versions():
    """The versions of Python (two numbers) and of `PACKAGES` in this process; None for a package that is missing."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def read_records(settings, jobs):
    """The records of jobs that have been done. Raises FileNotFoundError if this process does not see one."""
    records = [read_json_if_there(job.record_path(settings)) for job in jobs]
    missing = records.count({})
    if missing:
        raise FileNotFoundError(
            f"The pipeline has ended, but {settings.work} has no record of {missing} of its {len(jobs)} jobs: every "
            "machine that runs jobs must see the output directory under the same path, for instance on NFS; machines "
            "that share none need --beam_storage."
        )
    return records


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
