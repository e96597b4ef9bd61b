"""One JSON line for each request and event, without the texts: who reads the log should not read the clients' mail."""

import contextlib
import dataclasses
import json
import sys
import time


@dataclasses.dataclass
class RequestEntry:
    """What the log says about a request; filled in while it is answered. `model` is as the client gave it."""

    protocol: str
    method: str
    model: str = ""
    version: int | None = None
    signature: str | None = None
    rows: int | None = None
    began: float = dataclasses.field(default_factory=time.monotonic)

    def answered_by(self, servable, signature, inputs):
        """Notes which version and signature were asked, and for how many rows."""
        self.version, self.signature = servable.version, signature
        first = next(iter(inputs.values()), None)
        self.rows = len(first) if getattr(first, "ndim", 0) else None


class RequestLog:
    """Writes events and requests to stdout and counts the requests.

    Args:
        metrics: Metrics.
        requests: whether each request has a line; events, such as a model that was loaded, always have.
    """

    def __init__(self, metrics, requests=True):
        self._figures, self._stream, self._requests = metrics, sys.stdout, requests

    def event(self, name, **fields):
        """Writes a line about the server itself."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() % 1 * 1000):03d}Z"
        # Whoever read the log may be gone: the requests are answered all the same.
        with contextlib.suppress(OSError, ValueError):
            print(json.dumps({"time": now, "event": name, **fields}), file=self._stream, flush=True)

    def request(self, entry, status, served_names):
        """Writes a line about an answered request, and counts it.

        Args:
            entry: RequestEntry.
            status: the HTTP status, or the name of the gRPC status.
            served_names: names of the models: clients cannot invent others for the metrics.
        """
        fields = dataclasses.asdict(entry)
        seconds = time.monotonic() - fields.pop("began")
        fields["model"] = entry.model if entry.model in served_names else ""
        self._figures.observe_request(entry.protocol, fields["model"], entry.method, str(status), seconds)
        if self._requests:
            self.event("request", **fields, status=status, ms=round(seconds * 1000, 1))
