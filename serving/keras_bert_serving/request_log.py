"""One JSON line for each request and event, without the texts: who reads the log should not read the clients' mail."""

import contextlib
import dataclasses
import json
import os
import queue
import re
import sys
import threading
import time
import uuid

LINES = 1000  # that may wait
ID = "x-request-id"  # the header, and gRPC's metadata


@dataclasses.dataclass
class RequestEntry:
    """What the log says about a request; filled in while it is answered. `model` is as the client gave it, and `id`,
    too, if it gave one."""

    protocol: str
    method: str
    id: str
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


def request_id(given):
    """The id of a request: the client's, if it is one that can stand in a header and in the log, or a new one."""
    return given if re.fullmatch(r"[\x21-\x7e]{1,128}", str(given or "")) else uuid.uuid4().hex


class RequestLog:
    """Writes events and requests to stdout, in a thread of its own, and counts the requests.

    Whoever reads stdout may be slow, or gone: requests are answered all the same, and lines beyond those that wait are
    lost, and counted.

    Args:
        metrics: Metrics.
        requests: whether each request has a line; events, such as a model that was loaded, always have.
    """

    def __init__(self, metrics, requests=True):
        self._figures, self._stream, self._requests = metrics, sys.__stdout__, requests
        self._lines = queue.Queue(LINES)
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def _write(self):
        while (line := self._lines.get()) is not None:
            try:
                os.write(self._stream.fileno(), line.encode() + b"\n")  # no lock is held when Python ends
            except (OSError, ValueError, AttributeError):  # it is closed, or full and does not wait
                self._figures.lost_lines.inc()

    def say(self, line):
        """Writes a line for a person."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._figures.lost_lines.inc()

    def event(self, name, **fields):
        """Writes a line about the server itself."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() % 1 * 1000):03d}Z"
        self.say(json.dumps({"time": now, "event": name, **fields}))

    def close(self):
        """Waits until the lines are written, but not longer than a second."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=1)
            self._writer.join(1)

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
        labels = entry.protocol, fields["model"], entry.method
        self._figures.requests.labels(*labels, str(status)).inc()
        self._figures.latency.labels(*labels).observe(seconds)
        if self._requests:
            self.event("request", **fields, status=status, ms=round(seconds * 1000, 1))
