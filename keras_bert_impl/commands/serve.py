"""Serves models over REST and gRPC, as TensorFlow Serving does.

    keras-bert serve --model films=runs/films/model

`docs/server.md` shows requests, limits, and how to move to TensorFlow Serving.
"""

import asyncio
import contextlib
import dataclasses
import pathlib
import signal
import tempfile

from keras_bert_impl.console import say
from keras_bert_impl.options.rules import check_options
from keras_bert_impl.options.serve import ServeConfig as ServeConfig
from keras_bert_impl.serving import access, checkpoint_export, metrics, request_log
from keras_bert_impl.serving.batch_choice import BATCH_BYTES_ON_CPU, BATCH_BYTES_ON_GPU
from keras_bert_impl.serving.model_manager import ModelManager
from keras_bert_impl.serving.page import make_page
from keras_bert_impl.serving.request_inputs import Limits
from keras_bert_impl.serving.request_queue import RequestQueue
from keras_bert_impl.serving.servable import SessionOptions
from keras_bert_impl.serving.server import Server, stop_on_signals
from keras_bert_impl.serving.tensorflow_runtime import HAS_GPU
from keras_bert_impl.serving.versions import check_names, parse_model, read_model_config_file


def run(config):
    """Serves until the process is asked to end."""
    models = chosen_models(config)
    check_options(config)
    with contextlib.ExitStack() as opened:
        # While models are exported and loaded, SIGTERM must also remove the temporary directories.
        signal.signal(signal.SIGTERM, end)
        models = [exported(model, opened) for model in models]
        run_server(config, models)


def end(number, frame):
    """Ends the process with 0 when it receives SIGTERM before it serves."""
    raise SystemExit(0)


def run_server(config, models):
    """Runs the event loop of the server."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(config, models))


async def serve(config, models, stopping=None):
    """Serves ServedModels until the asyncio.Event `stopping`, or a signal."""
    stopping = stopping or asyncio.Event()
    server = make_server(config, models)
    stop_on_signals(stopping)
    await server.start()
    describe(server, config)
    await server.run_until(stopping)
    say("stopped; all requests that were taken have been answered.")


def make_server(config, models):
    """The Server of a configuration, not started. Raises OSError or ValueError if the file of keys is not readable."""
    figures = metrics.Metrics()
    log = request_log.RequestLog(figures, requests=config.log_requests)
    limits = Limits(**{field.name: getattr(config, field.name) for field in dataclasses.fields(Limits)})
    batch_bytes = config.max_batch_bytes or (BATCH_BYTES_ON_GPU if HAS_GPU else BATCH_BYTES_ON_CPU)
    queue = RequestQueue(
        config.workers, config.max_batch_size, config.max_queued_rows, batch_bytes, figures.observe_batch
    )
    options = SessionOptions(config.threads, config.precision == "bfloat16")
    manager = ModelManager(models, options, limits, queue, figures, config.poll_seconds, log.event)
    keys = access.ApiKeys.from_file(config.api_keys) if config.api_keys else access.ApiKeys()
    return Server(
        manager,
        log,
        keys,
        config.host,
        config.port,
        config.grpc_port,
        config.tls_certificate,
        config.tls_key,
        page=make_page if config.page else None,
    )


def chosen_models(config):
    """The ServedModels of a configuration. Raises ValueError."""
    if bool(config.model) == bool(config.model_config_file):
        raise ValueError("name the models either with --model NAME=DIR or with --model_config_file FILE.")
    models = (
        read_model_config_file(config.model_config_file)
        if config.model_config_file
        else [parse_model(argument) for argument in config.model]
    )
    check_names(models)
    for model in models:
        if not pathlib.Path(model.directory).is_dir():
            raise ValueError(f"model {model.name}: there is no directory {model.directory}.")
    return models


def exported(model, opened):
    """The model, with a checkpoint replaced by a SavedModel in a temporary directory, removed as the server ends."""
    if not checkpoint_export.is_checkpoint(model.directory):
        return model
    directory = opened.enter_context(tempfile.TemporaryDirectory(prefix="keras-bert-serve-"))
    say(f"{model.directory} is a checkpoint: it is exported to a SavedModel first, which takes about half a minute.")
    checkpoint_export.export_checkpoint(model.directory, directory)
    return dataclasses.replace(model, directory=directory)


def describe(server, config):
    """Prints what is served, and where."""
    scheme = "https" if config.tls_certificate else "http"
    for model in server.manager.models:
        address = f"{scheme}://{config.host}:{server.port}/v1/models/{model.name}"
        say(f"model {model.name}, version {model.version}: {address}, signatures {', '.join(sorted(model.signatures))}")
    if server.grpc_port is not None:
        say(f"gRPC: {config.host}:{server.grpc_port}")
    if config.page:
        say(f"page: {scheme}://{config.host}:{server.port}/")
    say(f"metrics: {scheme}://{config.host}:{server.port}/metrics")
