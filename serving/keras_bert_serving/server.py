"""The process that serves: both interfaces on one event loop, from the first load to the last answer.

There are no worker processes: TensorFlow computes outside Python's lock, on all cores, from one copy of the weights. A
process that dies is started again by what started it, such as systemd, Docker or Kubernetes. TLS, keys, and clients
that send or read slowly are the business of a proxy: docs/server.md has nginx's configuration.
"""

import asyncio
import contextlib
import select
import socket

import uvicorn

from keras_bert_serving import LOOPBACK
from keras_bert_serving.grpc_services import start_grpc
from keras_bert_serving.rest import make_app

# nginx keeps idle connections for 60 s. It must be the first to close one: what it sends on one closed here is lost.
IDLE_SECONDS = 75


class HttpServer(uvicorn.Server):
    """Uvicorn without its own handling of signals."""

    @contextlib.contextmanager
    def capture_signals(self):
        """Leaves the signals to the command: it also has gRPC to end."""
        yield


class Server:
    """Serves models.

    Args:
        models: models.Models, not started.
        log: RequestLog.
        metrics: Metrics.
        host: address to listen on.
        port: port for REST; 0 means any free one.
        grpc_port: port for gRPC; 0 means any free one, None means no gRPC.
        host_names: further host names that a proxy uses for the server.
        page: a function from the models to the ASGI application shown at `/` and under `/page/`, or None.

    Attributes:
        port, grpc_port: after `start`, the real ports.
        log: the RequestLog.
    """

    def __init__(self, models, log, metrics, host="127.0.0.1", port=8501, grpc_port=8500, host_names=(), page=None):
        self.models, self.host, self.port, self.grpc_port = models, host, port, grpc_port
        self.log, self._grpc, self._serving, self._listening = log, None, None, None
        hosts = {*LOOPBACK, *host_names} if host in LOOPBACK else None
        self._http = HttpServer(
            uvicorn.Config(
                make_app(models, log, metrics, hosts, page and page(models)),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=int(models.limits.request_seconds) + 1,
            )
        )

    async def start(self):
        """Listens, and loads the models: whoever asks meanwhile is told that they are not ready.

        Raises: ValueError if no model can be loaded, OSError if a port is taken.
        """
        self._listening = listen(self.host, self.port)
        self.port = self._listening.getsockname()[1]
        self._serving = asyncio.ensure_future(self._http.serve(sockets=[self._listening]))
        try:
            if self.grpc_port is not None:
                host = f"[{self.host}]" if ":" in self.host else self.host
                self._grpc, self.grpc_port = await start_grpc(self.models, self.log, f"{host}:{self.grpc_port}")
            await self.models.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self):
        """Takes no more requests, answers those it has, and frees the models."""
        self.models.is_stopping = True
        seconds = self.models.limits.request_seconds
        ending = [self._serving]
        if self._grpc is not None:
            ending.append(asyncio.ensure_future(self._grpc.stop(grace=seconds)))
        await self._close_port()
        self._http.should_exit = True
        await asyncio.wait(ending)
        await self.models.close()

    async def _close_port(self):
        """Closes the port when each connection that the system has taken has been accepted, and its request read:
        uvicorn alone would drop these."""
        for _ in range(100):
            if not select.select([self._listening], [], [], 0)[0]:
                break
            await asyncio.sleep(0.001)
        for server in getattr(self._http, "servers", ()):  # none, if it has not begun
            server.close()
        await asyncio.sleep(0.1)


def listen(host, port):
    """A listening socket. Raises OSError that names the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise OSError(f"cannot listen on {host}:{port} ({error.strerror}): give another --port.") from None
    listening.setblocking(False)
    return listening
