"""A model as an application of Ray Serve: replicas on one machine or many, autoscaling, rolling updates.

    serve run keras_bert_serving.ray_app:app name=films directory=runs/films/model

The addresses and answers are those of `keras-bert serve`, and each replica batches by length as that does.
`serving/deploy/` has the same as a file for a cluster.
"""

import pydantic
from ray import serve

from keras_bert_serving.limits import Limits
from keras_bert_serving.metrics import Metrics
from keras_bert_serving.models import Models
from keras_bert_serving.request_log import RequestLog
from keras_bert_serving.request_queue import RequestQueue
from keras_bert_serving.rest import make_app
from keras_bert_serving.servable import SessionOptions


class Arguments(pydantic.BaseModel, extra="forbid"):
    """Arguments of an application.

    Attributes:
        name: name of the model, in the address of requests.
        directory: directory of an export or a checkpoint, on every machine of the cluster.
        threads: number of threads of a replica; give its deployment as many `num_cpus`. Default: 1.
        bfloat16: whether to compute in bfloat16, on processors with instructions for it. Default: False.
    """

    name: str
    directory: str
    threads: int = 1
    bfloat16: bool = False


@serve.deployment(max_ongoing_requests=64)  # at once: they run together, in batches
@serve.ingress()
class Replica:
    """One copy of a model."""

    async def __init__(self, arguments):
        metrics = Metrics()
        log = RequestLog(metrics, requests=False)
        queue = RequestQueue(observe=metrics.observe_batch)
        options = SessionOptions(arguments.threads, arguments.bfloat16)
        self._models = Models({arguments.name: arguments.directory}, options, Limits(), queue, log.event)
        await self._models.start()
        self._app = make_app(self._models, log, metrics)

    def __serve_build_asgi_app__(self):
        return self._app


def app(arguments: Arguments) -> serve.Application:
    """Builds an application of Ray Serve that answers as `keras-bert serve` does.

        serve run keras_bert_serving.ray_app:app name=films directory=runs/films/model

    Args:
        arguments (Arguments): given after `serve run`, or under `args` in a file: `name`, `directory`, `threads`
            (default 1) and `bfloat16` (default False).
    """
    return Replica.bind(arguments)
