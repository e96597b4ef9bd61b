"""Small SavedModels and a running server for the tests of serving."""

import asyncio
import contextlib
import functools
import json
import pathlib
import shutil
import tempfile
import threading
import urllib.error
import urllib.request

import tensorflow as tf
import uvloop

from keras_bert_training.commands import serve

TEXT = tf.TensorSpec([None], tf.string, name="text")
QUICK = {"port": 0, "grpc_port": 0, "log_requests": False}


class Measuring(tf.Module):
    """Answers with what it was given, so that a test knows what to expect."""

    def __init__(self, version):
        super().__init__()
        self.version = tf.Variable(version)

    @tf.function(input_signature=[TEXT])
    def measure(self, text):
        refused = tf.debugging.assert_none_equal(text, "boom", message="boom is refused")
        with tf.control_dependencies([refused]):
            return {"length": tf.strings.length(text), "version": tf.fill(tf.shape(text), self.version)}

    @tf.function(input_signature=[TEXT])
    def echo(self, text):
        return {"echo": text}

    @tf.function(input_signature=[TEXT])
    def label_words(self, text):
        """The outputs of an exported TokenClassifier, as wide as the longest row."""
        words = tf.strings.split(text)
        lengths = words.with_flat_values(tf.cast(tf.strings.length(words.flat_values), tf.float32))
        return {"words": words.to_tensor(), "labels": words.to_tensor(), "probabilities": lengths.to_tensor()}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.int32)])
    def add(self, numbers, more):
        return {"sum": tf.reduce_sum(numbers, axis=1) + tf.cast(more, tf.float32), "share": numbers / 0.0}

    @tf.function(input_signature=[TEXT])
    def keep(self, text):
        return {"whole_bytes": text}


@functools.cache
def written_model(version):
    """A directory with a Measuring, written once."""
    model, directory = Measuring(version), tempfile.TemporaryDirectory()
    signatures = {"serving_default": model.measure, "echo": model.echo, "words": model.label_words}
    signatures |= {"add": model.add, "keep": model.keep}
    tf.saved_model.save(model, directory.name, signatures)
    return directory


def write_model(directory, version=1):
    """Writes a Measuring to `directory`/`version`."""
    shutil.copytree(written_model(version).name, pathlib.Path(directory) / str(version))


class RunningServer:
    """A server on an event loop in a thread of its own.

    Attributes:
        server: serving.server.Server.
        address: http://127.0.0.1:PORT.
    """

    def __init__(self, models, **options):
        self._ready, self._stopping, self._failure = threading.Event(), None, None
        self._config = serve.ServeConfig([], **{**QUICK, **options})
        self._thread = threading.Thread(target=self._run_loop, args=(models,))
        self._thread.start()
        self._ready.wait()
        if self._failure:
            raise self._failure
        self.address = f"http://127.0.0.1:{self.server.port}"

    def _run_loop(self, models):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._run(models))

    async def _run(self, models):
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            self.server = serve.make_server(self._config, models)
            await self.server.start()
        except Exception as failure:
            self._failure = failure
            return
        finally:
            self._ready.set()
        await self._stopping.wait()
        await self.server.stop()

    def stop(self):
        """Ends the server, as SIGTERM does."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def ask(self, path, content=None, **headers):
        """Status and body of a GET, or of a POST of JSON or bytes."""
        body = content if content is None or isinstance(content, bytes) else json.dumps(content).encode()
        request = urllib.request.Request(self.address + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def json(self, path, content=None):
        """The object in a successful answer."""
        status, body = self.ask(path, content)
        assert status == 200, body
        return json.loads(body)

    def error(self, path, content=None):
        """Status and message of a refusal."""
        status, body = self.ask(path, content)
        return status, json.loads(body)["error"]


@contextlib.contextmanager
def running(directory, name="toy", **options):
    """A RunningServer of one model."""
    server = RunningServer({name: str(directory)}, **options)
    try:
        yield server
    finally:
        server.stop()
