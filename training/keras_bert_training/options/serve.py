"""The options of `keras-bert serve`."""

import dataclasses
import typing

from keras_bert_serving.limits import Limits


@dataclasses.dataclass
class ServeConfig(Limits):
    """Serves models over REST and gRPC, with TensorFlow Serving's interfaces.

    Args:
        model: NAME=DIR, once for each model. DIR is an export, a checkpoint or a published name, or holds exports in
            directories named by numbers, of which the highest is served. Default is small_english, the model in the
            package.
        host: address to listen on; 0.0.0.0 means all addresses of this machine.
        port: port for REST; 0 is any free one.
        grpc_port: port for gRPC; 0 is any free one, null is no gRPC.
        host_names: further host names that a proxy on this machine uses for the server, once for each.
        max_batch_size: largest number of texts that run together; 1 merges no requests.
        max_batch_bytes: largest number of bytes of text that run together; default is 2048 on a CPU, where more gains
            nothing, and 65536 on a GPU.
        workers: number of batches that run at the same time.
        threads: number of threads that share one batch; default is one for each core.
        precision: bfloat16 is faster on processors with instructions for it, for SavedModels and OpenVINO exports in
            float32. Others compute in the precision of their file.
        page: show a page at `/`, on which a person can try the models.
        log_requests: print a line for each request, without its texts.
    """

    GROUPS: typing.ClassVar = {
        "who may ask": ("host", "port", "grpc_port", "host_names"),
        "how to compute": ("max_batch_size", "max_batch_bytes", "workers", "threads", "precision"),
    }

    model: list[str] = dataclasses.field(default_factory=list)
    host: str = "127.0.0.1"
    port: int = 8501
    grpc_port: int | None = 8500
    host_names: list[str] = dataclasses.field(default_factory=list)
    max_batch_size: int = 32
    max_batch_bytes: int | None = None
    workers: int = 1
    threads: int | None = None
    precision: typing.Literal["float32", "bfloat16"] = "float32"
    page: bool = True
    log_requests: bool = True
