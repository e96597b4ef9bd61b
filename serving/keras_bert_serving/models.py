"""The models of a server, loaded once, and the one way to ask them.

A server serves one version of each model, the highest that its directory holds as the server starts. To replace a
version while clients ask, start a second server and end the first, or use an engine that does so: Ray Serve
(`ray_app`) or TensorFlow Serving.
"""

import asyncio
import contextlib
import time

import numpy as np
from grpc import StatusCode

from keras_bert_impl.checkpoints import local_directory
from keras_bert_serving.errors import ServingError, first_line
from keras_bert_serving.model_directory import MAIN_FILES, SAVED_MODEL, exported, highest_version
from keras_bert_serving.request_inputs import answer_bytes, bytes_of, check_inputs
from keras_bert_serving.row_servable import RowServable
from keras_bert_serving.servable import Servable
from keras_bert_serving.signatures import DEFAULT_SIGNATURE, find_signature
from keras_bert_serving.tensorflow_runtime import tf
from keras_bert_serving.text_checks import GUESSES

ANSWER = "The answer has {} bytes"
# The first run of a graph takes several times as long: no client waits for it.
WARM_UP = (b"A short text.", b"A longer text, of some more words. " * 8)


def parse_models(arguments):
    """The directories of models by name, of arguments NAME=DIR, where DIR is as `checkpoints.local_directory` takes it.

    Raises: ValueError if one is malformed, if there is no such model, or two have one name.
    """
    models = {}
    for argument in arguments:
        name, equals, directory = argument.partition("=")
        if not (name and equals and directory) or "/" in name or ":" in name or name in models:
            raise ValueError(f"--model {argument}: expected NAME=DIR, with a name of its own, without / and :.")
        local_directory(directory)
        models[name] = directory
    return models


class Models:
    """Loads models and asks them.

    Args:
        models: the directory of each, by name. It holds exports in directories named by numbers, or is an export, which
            is then version 1.
        options: servable.SessionOptions.
        limits: limits.Limits.
        queue: request_queue.RequestQueue in which requests run.
        log: called with an event's name and what belongs to it, by name.

    Attributes:
        names: of all models, loaded or not.
        failures: of the models that could not be loaded, the reason by name.
        is_stopping: whether the server is about to end.
    """

    def __init__(self, models, options, limits, queue, log=lambda event, **fields: None):
        self.limits, self.queue = limits, queue
        self._options, self._log = options, log
        self._served = models
        self._loaded, self.failures, self._opened = {}, {}, contextlib.ExitStack()
        self.names, self.is_stopping = self._served.keys(), False

    @property
    def models(self):
        """The Servables that answer; each has a name, version, signatures and metadata."""
        return list(self._loaded.values())

    @property
    def loading(self):
        """How many models are still to be loaded."""
        return len(self._served) - len(self._loaded) - len(self.failures)

    @property
    def is_ready(self):
        """Whether every model answers that can be loaded, and the server is not about to end."""
        return not self.is_stopping and not self.loading

    async def start(self):
        """Loads all models; of those that cannot be loaded, or do not answer their first requests, the log has the
        reason. Raises ValueError with these if no model is left."""
        for name, directory in self._served.items():
            began = time.monotonic()
            try:
                export = await exported(directory, self._opened)
                servable = self._loaded[name] = await asyncio.to_thread(load, name, export, self._options)
            except Exception as error:  # whatever it is, the others can be served
                reason = f"{directory} could not be loaded as model {name}: {first_line(error)}"
                self.failures[name] = reason
                self._log("failed to load", model=name, error=reason)
            else:
                seconds = round(time.monotonic() - began, 3)
                self._log("loaded", model=name, version=servable.version, seconds=seconds)
        if not self._loaded:
            raise ValueError(" ".join(self.failures.values()))

    def find(self, name, version=None):
        """The Servable of a model. Raises ServingError."""
        servable, failure = self._loaded.get(name), self.failures.get(name)
        if servable is None and failure is None and name in self._served:
            raise ServingError(StatusCode.UNAVAILABLE, f"Model {name} is being loaded: try again later.")
        if servable is None or version not in (None, servable.version):
            asked = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise ServingError(StatusCode.NOT_FOUND, failure or f"Servable not found for request: {asked}")
        return servable

    async def cut_to(self, servable, inputs, signature=DEFAULT_SIGNATURE):
        """How many tokens a model reads of a longer text or question; None if it reads all of them. Arguments and
        errors: those of `ask`."""
        found = find_signature(servable, signature)
        inputs = check_inputs(inputs, found, self.limits)
        cut, length = await asyncio.to_thread(servable.text_checks.cut, found, inputs)
        return length if cut else None

    async def ask(self, servable, inputs, signature=DEFAULT_SIGNATURE, seconds=None):
        """The outputs of a Servable.

        Args:
            servable: that `find` gave.
            inputs: arrays, or lists of values, by name; strings may be str or bytes.
            signature: name of the signature; "" is the default.
            seconds: how long to wait; None means the server's limit, which is also the longest.

        Returns: NumPy arrays by name; strings are bytes, in arrays of dtype object.
        Raises: ServingError.
        """
        limit = self.limits.request_seconds
        deadline = time.monotonic() + (limit if seconds is None else min(seconds, limit))
        found = find_signature(servable, signature)
        inputs = check_inputs(inputs, found, self.limits)
        if answer_bytes(inputs, found, servable.text_checks.longest_read(inputs, False)) > self.limits.max_answer_bytes:
            longest = await asyncio.to_thread(servable.text_checks.longest_read, inputs, True)
            self.limits.check("max_answer_bytes", answer_bytes(inputs, found, longest), ANSWER)
        outputs = await self.queue.run(servable, found, inputs, deadline)
        if outputs.keys() == GUESSES:
            await asyncio.to_thread(servable.text_checks.refuse_without_mask, inputs, outputs)
        self.limits.check("max_answer_bytes", bytes_of(outputs), ANSWER)
        return outputs

    async def close(self):
        """Answers what was taken, and frees the memory."""
        self.is_stopping = True
        await self.queue.close()
        for servable in self._loaded.values():
            servable.close()
        self._opened.close()


def load(name, directory, options):
    """The Servable of a model's directory, or for an export in another format the RowServable, warmed."""
    number, directory = highest_version(directory) or (None, None)
    if directory is None:
        raise ValueError(f"expected {', '.join(MAIN_FILES)} in it, or in a directory named by a number.")
    kind = Servable if (directory / SAVED_MODEL).is_file() else RowServable
    servable = kind(name, number, directory, options)
    for signature in servable.signatures.values():
        warm_up(servable, signature)
    return servable


def warm_up(servable, signature):
    """Sends two texts to a signature that takes nothing but texts."""
    arrays = signature.inputs
    if not all(array.dtype == object and array.shape and None in array.shape for array in arrays.values()):
        return
    for text in WARM_UP:
        shapes = {name: [2 if size is None else size for size in array.shape] for name, array in arrays.items()}
        # Strings need not be texts: a model of others may refuse them.
        with contextlib.suppress(tf.errors.OpError):
            servable.run(signature.name, {name: np.full(shape, text, object) for name, shape in shapes.items()})
