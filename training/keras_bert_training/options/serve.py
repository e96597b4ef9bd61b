"""The options of `keras-bert serve`."""

import dataclasses
import typing


@dataclasses.dataclass
class ServeConfig:
    """Serves models over REST and gRPC, with TensorFlow Serving's interfaces.

    Args:
        model: NAME=DIR, once for each model. DIR is an export, a checkpoint or a published name, or holds exports in
            directories named by numbers, of which the highest is served. Default is small_english, the model in the
            package.
        host: address to listen on; 0.0.0.0 is every one of this machine.
        port: of REST; 0 is any that is free.
        grpc_port: of gRPC; 0 is any that is free, null is no gRPC.
        host_names: further names under which a proxy on this machine makes the server known, once for each.
        max_body_bytes: largest request.
        max_rows: rows of a request.
        max_text_bytes: largest text, in UTF-8.
        max_answer_bytes: largest answer, in bytes of its arrays.
        max_queued_rows: texts that may wait; beyond, requests are refused with 429.
        request_seconds: how long a request may take, waiting included.
        max_batch_size: texts that run together; 1 merges no requests.
        max_batch_bytes: bytes of text that run together; default is 2048 on a CPU, where more gains nothing, and 65536
            on a GPU.
        workers: batches that run at the same time.
        threads: threads that share one batch; default is one for each core.
        precision: bfloat16 is faster on processors that have instructions for it; for SavedModels and OpenVINO exports
            in float32. Others compute in the precision of their file.
        page: show a page at `/`, on which a person can ask the models.
        log_requests: print a line for each request, without its texts.
    """

    GROUPS: typing.ClassVar = {
        "who may ask": ("host", "port", "grpc_port", "host_names"),
        "limits": (
            "max_body_bytes",
            "max_rows",
            "max_text_bytes",
            "max_answer_bytes",
            "max_queued_rows",
            "request_seconds",
        ),
        "how to compute": ("max_batch_size", "max_batch_bytes", "workers", "threads", "precision"),
    }

    model: list[str] = dataclasses.field(default_factory=list)
    host: str = "127.0.0.1"
    port: int = 8501
    grpc_port: int | None = 8500
    host_names: list[str] = dataclasses.field(default_factory=list)
    max_body_bytes: int = 4 * 2**20
    max_rows: int = 1024
    max_text_bytes: int = 20_000
    max_answer_bytes: int = 64 * 2**20
    max_queued_rows: int = 2048
    request_seconds: float = 30.0
    max_batch_size: int = 32
    max_batch_bytes: int | None = None
    workers: int = 1
    threads: int | None = None
    precision: typing.Literal["float32", "bfloat16"] = "float32"
    page: bool = True
    log_requests: bool = True
