"""Serves models over REST and gRPC, as TensorFlow Serving does.

    keras-bert serve
    keras-bert serve --model films=runs/films/model

`docs/server.md` shows requests, limits, and what stands before and beside it.
"""

import asyncio
import signal

from keras_bert_serving import metrics, request_log
from keras_bert_serving.batch_choice import BATCH_BYTES_ON_CPU, BATCH_BYTES_ON_GPU
from keras_bert_serving.models import Models, parse_models
from keras_bert_serving.page.application import make_page
from keras_bert_serving.request_queue import RequestQueue
from keras_bert_serving.servable import SessionOptions
from keras_bert_serving.server import Server
from keras_bert_serving.tensorflow_runtime import HAS_GPU
from keras_bert_training.commands.packaged_model import with_model
from keras_bert_training.options.serve import ServeConfig as ServeConfig


def run(config):
    """Serves until the process is asked to end."""
    import uvloop

    models = parse_models(with_model(config).model)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(config, models))


async def serve(config, models):
    """Serves models, directories by name, until SIGTERM or Ctrl-C."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = make_server(config, models)
    starting, ending = asyncio.ensure_future(server.start()), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            describe(server, config)
        await ending
        if starting.cancel():  # it then ends what it has begun
            await asyncio.wait([starting])
        else:
            await server.stop()
        server.log.say("stopped; all accepted requests have been answered.")
    finally:
        server.log.close()


def make_server(config, models):
    """The Server of a configuration, not started."""
    figures = metrics.Metrics()
    log = request_log.RequestLog(figures, config.log_requests)
    batch_bytes = config.max_batch_bytes or (BATCH_BYTES_ON_GPU if HAS_GPU else BATCH_BYTES_ON_CPU)
    queue = RequestQueue(
        config.workers, config.max_batch_size, config.max_queued_rows, batch_bytes, figures.observe_batch
    )
    figures.queued_rows.set_function(lambda: queue.queued_rows)
    served = Models(models, SessionOptions(config.threads, config.precision == "bfloat16"), config, queue, log.event)
    page = make_page if config.page else None
    return Server(served, log, figures, config.host, config.port, config.grpc_port, config.host_names, page)


def describe(server, config):
    """Prints what is served, and where."""
    say, address = server.log.say, f"http://{config.host}:{server.port}"
    for model in server.models.models:
        names = ", ".join(sorted(model.signatures))
        say(f"model {model.name}, version {model.version}: {address}/v1/models/{model.name}, signatures {names}")
    if server.grpc_port is not None:
        say(f"gRPC: {config.host}:{server.grpc_port}")
    if config.page:
        say(f"page: {address}/")
    say(f"metrics: {address}/metrics")
