"""One JSON line for each request and event, without the texts: who reads the log should not read the clients' mail."""

import contextlib
import json
import sys
import time


class RequestLog:
    """Writes events and requests to a stream and counts the requests.

    Args:
        metrics: Metrics.
        stream: where the lines go; None means the process's stdout.
        requests: whether each request has a line; events, such as a version that was loaded, always have.
    """

    def __init__(self, metrics, stream=None, requests=True):
        self._figures, self._stream, self._requests = metrics, stream or sys.stdout, requests

    def event(self, name, **fields):
        """Writes a line about the server itself."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() % 1 * 1000):03d}Z"
        # Whoever read the log may be gone: the requests are answered all the same.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(json.dumps({"time": now, "event": name, **fields}) + "\n")
            self._stream.flush()

    def request(self, entry, status, served_names):
        """Writes a line about an answered request, and counts it.

        Args:
            entry: RequestEntry.
            status: the HTTP status, or the name of the gRPC status.
            served_names: names of the models that are served.
        """
        seconds = time.monotonic() - entry.began
        model = entry.model if entry.model in served_names else ""
        self._figures.observe_request(entry.protocol, model, entry.method, str(status), seconds)
        if self._requests:
            self.event(
                "request",
                protocol=entry.protocol,
                method=entry.method,
                model=model,
                version=entry.version,
                signature=entry.signature,
                rows=entry.rows,
                status=status,
                ms=round(seconds * 1000, 1),
            )


class RequestEntry:
    """What the log says about a request; filled in while it is answered.

    Args:
        protocol: rest or grpc.
        method: predict, status, metadata and so on.
        model: name, as the client gave it.
    """

    def __init__(self, protocol, method, model=""):
        self.protocol, self.method, self.model = protocol, method, model
        self.version = self.signature = self.rows = None
        self.began = time.monotonic()

    def answered_by(self, servable, signature, inputs):
        """Notes which version and signature were asked, and for how many rows."""
        self.version, self.signature = servable.version, signature or "serving_default"
        first = next(iter(inputs.values()), None)
        self.rows = len(first) if getattr(first, "ndim", 0) else None
