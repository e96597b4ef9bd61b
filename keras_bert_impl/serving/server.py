"""The process that serves: both interfaces on one event loop, from the first load to the last answer.

There are no worker processes: TensorFlow computes outside Python's lock, on all cores, from one copy of the weights. A
process that dies is started again by what started it, such as systemd, Docker or Kubernetes.
"""

import asyncio
import contextlib
import pathlib
import signal
import socket

import grpc
import uvicorn

from keras_bert_impl.serving.grpc_services import Services, start_grpc
from keras_bert_impl.serving.http_protocol import protocol_with_limits
from keras_bert_impl.serving.rest import make_app

MOST_CONNECTIONS = 512
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class HttpServer(uvicorn.Server):
    """Uvicorn without its own handling of signals."""

    @contextlib.contextmanager
    def capture_signals(self):
        """Leaves the signals to `Server`: it also has gRPC to end."""
        yield


class Server:
    """Serves the models of a manager.

    Args:
        manager: ModelManager, not started.
        log: RequestLog.
        keys: ApiKeys.
        host: address to listen on.
        port: of REST; 0 means any that is free.
        grpc_port: of gRPC; 0 means any that is free, None means no gRPC.
        certificate, private_key: PEM files for TLS on both ports, or None.
        page: a function from the manager to the ASGI application shown at `/` and under `/page/`, or None.

    Attributes:
        port, grpc_port: after `start`, the real ports.
    """

    def __init__(
        self,
        manager,
        log,
        keys,
        host="127.0.0.1",
        port=8501,
        grpc_port=8500,
        certificate=None,
        private_key=None,
        page=None,
    ):
        self.manager, self.host, self.port, self.grpc_port = manager, host, port, grpc_port
        self._log, self._keys, self._page = log, keys, page
        self._certificate, self._private_key = certificate, private_key
        self._services = Services(manager, log, keys)
        self._grpc = self._http = self._serving = None

    async def start(self):
        """Loads the models, then listens. Raises ValueError if no version loads, OSError if a port is taken."""
        # Before the models are loaded, so that a port that is taken is reported at once.
        listening = listen(self.host, self.port)
        try:
            self.port = listening.getsockname()[1]
            # Before the models are loaded, so that whoever asks meanwhile is told that the server is not ready.
            self._http = HttpServer(self._uvicorn_config())
            self._serving = asyncio.ensure_future(self._http.serve(sockets=[listening]))
            while not self._http.started:
                if self._serving.done():
                    await self._serving
                    raise OSError("the HTTP server ended as it started")
                await asyncio.sleep(0.01)
            await self.manager.start()
            if self.grpc_port is not None:
                self._grpc, self.grpc_port = await start_grpc(
                    self._services,
                    f"{bracketed(self.host)}:{self.grpc_port}",
                    self._grpc_credentials(),
                    self.manager.limits.max_body_bytes,
                )
        except BaseException:
            if self._serving is not None:
                self._http.should_exit = True
                await asyncio.wait([self._serving])
            listening.close()
            raise

    async def run_until(self, stopping):
        """Serves until the asyncio.Event `stopping`; then answers what was taken, and ends."""
        await stopping.wait()
        await self.stop()

    async def stop(self):
        """Takes no more requests, answers those it has, and frees the models."""
        self.manager.is_stopping = True
        seconds = self.manager.limits.request_seconds
        self._http.should_exit = True
        ending = [self._serving]
        if self._grpc is not None:
            ending.append(asyncio.ensure_future(self._grpc.stop(grace=seconds)))
        await asyncio.wait(ending)
        await self.manager.close()

    def _uvicorn_config(self):
        limits = self.manager.limits
        page = self._page and self._page(self.manager)
        return uvicorn.Config(
            make_app(self.manager, self._log, self._keys, LOOPBACK if self.host in LOOPBACK else None, page),
            http=protocol_with_limits(limits.body_seconds, MOST_CONNECTIONS),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=int(limits.request_seconds) + 1,
            ssl_certfile=self._certificate,
            ssl_keyfile=self._private_key,
        )

    def _grpc_credentials(self):
        if self._certificate is None:
            return None
        pair = pathlib.Path(self._private_key).read_bytes(), pathlib.Path(self._certificate).read_bytes()
        return grpc.ssl_server_credentials([pair])


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


def bracketed(host):
    """The host as it stands in an address with a port."""
    return f"[{host}]" if ":" in host else host


def stop_on_signals(stopping):
    """Sets the event when the process is asked to end, by SIGTERM or Ctrl-C."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
