"""The output directory of a run, which may be in a bucket: gs://bucket/folder.

States go to the bucket directly. The other files of a run are written to a local copy, as in any run, and those that
have changed are sent before the first round, after each round and at the end. A process that resumes fetches what
decides how to go on.
"""

import pathlib
import shutil
import tempfile

from keras_bert_impl import distribution
from keras_bert_impl.callbacks.saved_states import TrainingState
from keras_bert_impl.callbacks.sharded_state import path_of

FETCHED = "*.json"  # configuration, plan, history and figures; not the model nor the logs


class Output:
    """A run's output directory, local or remote; a context, at whose end everything is sent.

    Args:
        output: a path, or gs://bucket/folder, for which the backend must be JAX.

    Attributes:
        directory: the local directory of all files but the states.
        states: the directory of the states.

    Raises: ValueError or ImportError if this backend cannot save to a remote directory, or Orbax is missing; ValueError
        if the processes do not see the same directory.
    """

    def __init__(self, output):
        self.name, self.is_remote = str(output).rstrip("/"), "://" in str(output)
        self.sent, self.temporary = {}, None
        if not self.is_remote:
            self.directory = pathlib.Path(output)
            self.states = self.directory / "training_state"
            return
        self.states = f"{self.name}/training_state"
        TrainingState(self.states)
        self.remote = path_of(self.name)
        self.temporary = tempfile.TemporaryDirectory()
        self.directory = pathlib.Path(self.temporary.name) / self.remote.name

    def __enter__(self):
        if self.is_remote:
            distribution.check_shared(self.remote)
            with distribution.failing_together():
                names = {path.name for path in self.remote.iterdir()} if self.remote.is_dir() else set()
                names = {name for name in names if not name.startswith(distribution.SHARED_TOKEN)}  # of a killed run
                if names and "run.json" not in names and distribution.is_chief():
                    raise ValueError(f"{self.name} is not empty and holds no run.json: name another output directory.")
            for path in self.remote.glob(FETCHED) if "run.json" in names else ():
                self.directory.mkdir(exist_ok=True)
                (self.directory / path.name).write_bytes(path.read_bytes())
                self.sent[path.name] = version_of(self.directory / path.name)
        return self

    def send(self):
        """Sends the files that have changed; the first of several processes does it."""
        if not self.is_remote or not distribution.is_chief():
            return
        for path in sorted(path for path in self.directory.rglob("*") if path.is_file()):
            name, version = path.relative_to(self.directory).as_posix(), version_of(path)
            if self.sent.get(name) == version:
                continue
            target = self.remote / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
            self.sent[name] = version

    def __exit__(self, *error):
        self.send()  # also after an error: the batch of a loss that is NaN, for instance
        if self.temporary is not None:
            self.temporary.cleanup()


def version_of(path):
    """What differs between a file and a later version of it: time and size."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size
