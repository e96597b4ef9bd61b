"""The models of a server: which versions are loaded, how one replaces another, and the one way to ask them.

A new version is loaded and warmed while the old one answers; then new requests go to it, and the old one is let go when
its last request is answered. A version that cannot be loaded changes nothing, and is tried again when its files change.
"""

import asyncio
import contextlib
import time

from grpc import StatusCode

from keras_bert_impl.serving.errors import ServingError, first_line, invalid, place_of
from keras_bert_impl.serving.loaded_versions import (
    AVAILABLE,
    END,
    LOADING,
    UNLOADING,
    ModelDescription,
    Version,
    load_and_warm,
)
from keras_bert_impl.serving.metrics import Metrics
from keras_bert_impl.serving.page_metadata import longest_row
from keras_bert_impl.serving.request_inputs import Limits, bytes_of, check_inputs, least_answer_bytes
from keras_bert_impl.serving.request_queue import RequestQueue
from keras_bert_impl.serving.servable import SessionOptions
from keras_bert_impl.serving.signatures import DEFAULT_SIGNATURE, find_signature
from keras_bert_impl.serving.versions import MAIN_FILES, fingerprint, wanted_versions


class ModelManager:
    """Loads models and asks them.

    The page and both interfaces use only `models` and `predict`, and what stands below them.

    Args:
        models: list of ServedModel.
        options: SessionOptions.
        limits: Limits of a request.
        queue: the RequestQueue in which requests run; None makes one with the defaults.
        metrics: Metrics.
        poll_seconds: how often the directories are searched for new versions; 0 means never.
        log: called with an event's name and what belongs to it, by name.
    """

    def __init__(
        self,
        models,
        options=SessionOptions(),  # noqa: B008  frozen
        limits=Limits(),  # noqa: B008  frozen
        queue=None,
        metrics=None,
        poll_seconds=1.0,
        log=lambda event, **fields: None,
    ):
        self.limits, self.metrics = limits, metrics or Metrics()
        self.queue = queue or RequestQueue(observe=self.metrics.observe_batch)
        self.metrics.queued_rows.set_function(lambda: self.queue.queued_rows)
        self._options, self._poll_seconds, self._log = options, poll_seconds, log
        self._models = {model.name: model for model in models}
        self._versions = {model.name: {} for model in models}  # of each model: Version by number
        self._seen = {}  # files of a new version when it was last looked at
        self._changing = asyncio.Lock()
        self._polling = None
        self.is_stopping = False

    @property
    def models(self):
        """List of ModelDescription, of the models that answer."""
        found = []
        for name in self._models:
            numbers = tuple(number for number, _ in self._available(name))
            if numbers:
                servable = self._versions[name][numbers[-1]].servable
                found.append(ModelDescription(name, numbers[-1], numbers, servable.signatures, servable.metadata))
        return found

    @property
    def names(self):
        """Names of the models that are served."""
        return self._models.keys()

    @property
    def is_ready(self):
        """Whether every model answers, and the server is not about to end."""
        return not self.is_stopping and all(self._available(name) for name in self._models)

    async def predict(self, name, inputs, signature=DEFAULT_SIGNATURE, version=None, label=None, seconds=None):
        """The outputs of a model.

        Args:
            name: of the model.
            inputs: arrays, or lists of values, by name; strings may be str or bytes.
            signature: name of the signature; "" is the default.
            version: number; None is the highest that answers.
            label: name of a version, instead of its number.
            seconds: how long to wait; None means the server's limit, which is also the longest.

        Returns: NumPy arrays by name; strings are bytes, in arrays of dtype object.
        Raises: ServingError.
        """
        with self.using(name, version, label) as servable:
            return await self.ask(servable, inputs, signature, seconds)

    async def ask(self, servable, inputs, signature=DEFAULT_SIGNATURE, seconds=None):
        """As `predict`, for the servable that `using` gave."""
        limit = self.limits.request_seconds
        deadline = time.monotonic() + (limit if seconds is None else min(seconds, limit))
        found = find_signature(servable, signature)
        inputs = check_inputs(inputs, found, self.limits)
        self.limits.check_answer(least_answer_bytes(inputs, found, longest_row(servable.metadata)))
        outputs = await self.queue.run(servable, found, inputs, deadline)
        self.limits.check_answer(bytes_of(outputs))
        return outputs

    @contextlib.contextmanager
    def using(self, name, version=None, label=None):
        """The Servable of a model's version, which is not let go before the block ends. Raises ServingError."""
        found = self._find(name, version, label)
        found.in_use += 1
        try:
            yield found.servable
        finally:
            found.in_use -= 1
            self._close_if_unused(found, name)

    def _find(self, name, version, label):
        if name not in self._models:
            raise ServingError(StatusCode.NOT_FOUND, f"Servable not found for request: Latest({name})")
        if label:
            version = self._number_of(name, label)
        available = dict(self._available(name))
        if version is None and available:
            version = max(available)
        if version not in available:
            state = self._versions[name].get(version)
            if version is None or (state is not None and state.state == LOADING):
                raise ServingError(StatusCode.UNAVAILABLE, f"Model {name} is being loaded: try again later.")
            raise ServingError(StatusCode.NOT_FOUND, f"Servable not found for request: Specific({name}, {version})")
        return available[version]

    def _number_of(self, name, label):
        labels = self._models[name].labels
        if label not in labels:
            raise invalid(f"Unrecognized servable version label: {label}; model {name} has {sorted(labels) or 'none'}.")
        return labels[label]

    def _available(self, name):
        return sorted((n, version) for n, version in self._versions[name].items() if version.state == AVAILABLE)

    def statuses(self, name, version=None, label=None):
        """The Versions of a model that are known, or the one asked for. Raises ServingError."""
        if name not in self._models:
            raise ServingError(StatusCode.NOT_FOUND, f"Could not find any versions of model {name}")
        number = self._number_of(name, label) if label else version
        found = [one for key, one in sorted(self._versions[name].items(), reverse=True) if number in (None, key)]
        if not found:
            raise ServingError(StatusCode.NOT_FOUND, f"Could not find version {number} of model {name}")
        return found

    async def start(self):
        """Loads all models, then watches their directories. Raises ValueError if a model has no version that loads."""
        for model in self._models.values():
            if not await self._refresh(model, wait_until_settled=False):
                failed = [f"version {one.number}: {one.error}" for one in self._versions[model.name].values()]
                expected = f"expected {', '.join(MAIN_FILES)} in it, or in a directory named by a number"
                raise ValueError(
                    f"{model.directory} has no version of model {model.name} that can be loaded: "
                    f"{'; '.join(failed) or expected}."
                )
        if self._poll_seconds:
            self._polling = asyncio.ensure_future(self._poll())

    async def _poll(self):
        while True:
            await asyncio.sleep(self._poll_seconds)
            for model in list(self._models.values()):
                try:
                    await self._refresh(model)
                except Exception as failure:  # a disk that is away for a while must not end the watch
                    self._log("poll_failed", model=model.name, error=place_of(failure))

    async def _refresh(self, model, wait_until_settled=True):
        """Loads the new versions of a model and lets go those it replaces; whether any that is wanted answers."""
        async with self._changing:
            wanted = await asyncio.to_thread(wanted_versions, model)
            versions = self._versions[model.name]
            for number, directory in wanted.items():
                files = await asyncio.to_thread(fingerprint, directory)
                if self._is_new(versions.get(number), directory, files) and self._is_settled(
                    directory, files, wait_until_settled
                ):
                    await self._load(model.name, number, directory, files)
            if not any(number in wanted for number, _ in self._available(model.name)):
                return False  # what answers now goes on, whatever its number is
            for number, version in self._available(model.name):
                if number not in wanted:
                    self._let_go(version, model.name)
            return True

    def _is_new(self, version, directory, files):
        if version is None or version.directory != str(directory):
            return True
        # One that was replaced is loaded again when what replaced it is removed; one that failed, when it changes.
        return version.state == END and (not version.error or version.files != files)

    def _is_settled(self, directory, files, wait):
        """Whether the files are as they were at the last look: a version may still be being copied."""
        before, self._seen[directory] = self._seen.get(directory), files
        return not wait or before == files

    async def _load(self, name, number, directory, files):
        before = self._versions[name].get(number)
        version = Version(number, str(directory), files=files)
        if before is None or before.state != AVAILABLE:
            self._versions[name][number] = version
        began = time.monotonic()
        try:
            version.servable = await asyncio.to_thread(load_and_warm, name, number, directory, self._options)
        except Exception as error:  # whatever a damaged SavedModel raises
            version.state, version.error = END, f"{type(error).__name__}: {first_line(error)}"
            self.metrics.failed_loads.labels(name).inc()
            self._log("load_failed", model=name, version=number, error=version.error)
            return
        version.state, self._versions[name][number] = AVAILABLE, version
        if before is not None and before.state == AVAILABLE:
            self._let_go(before, name)
        self.metrics.loaded.labels(name, number).set(1)
        self._log("loaded", model=name, version=number, seconds=round(time.monotonic() - began, 3))

    def _let_go(self, version, name):
        version.state = UNLOADING
        self._close_if_unused(version, name)

    def _let_go_all(self, name):
        for _, version in self._available(name):
            self._let_go(version, name)

    def _close_if_unused(self, version, name):
        if version.state != UNLOADING or version.in_use:
            return
        version.state = END
        servable, version.servable = version.servable, None
        servable.close()
        if version.number not in dict(self._available(name)):
            self.metrics.loaded.remove(name, str(version.number))
        self._log("unloaded", model=name, version=version.number)

    async def close(self):
        """Answers what was taken, and frees the memory."""
        self.is_stopping = True
        if self._polling:
            self._polling.cancel()
        await self.queue.close()
        for name in self._versions:
            self._let_go_all(name)
