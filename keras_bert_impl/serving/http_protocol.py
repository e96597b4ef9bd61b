"""Uvicorn's HTTP/1.1, with limits for clients that send or read slowly, or without end.

Uvicorn limits none of them: a client that opens connections and sends a byte a second, or does not read its answer,
would hold them for ever.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADER_BYTES = 65_536


class LimitedProtocol(HttpToolsProtocol):
    """HttpToolsProtocol that closes connections whose headers are late or too large, whose body is not read, or whose
    answer is not read; of each server a subclass, which `protocol_with_limits` makes.

    Attributes:
        seconds, most_connections: see `protocol_with_limits`.
        waiting: connections that wait for their client, as keys, the longest first.
    """

    seconds, most_connections, waiting = None, None, None
    _header_bytes = 0
    _timer = _write_timer = None
    _has_ended = False  # the client has closed its half of the connection

    def connection_made(self, transport):
        super().connection_made(transport)
        self._wait_for_headers()
        if len(self.connections) > self.most_connections:
            next(iter(self.waiting))._refuse(b"503 Service Unavailable")

    def data_received(self, data):
        if self._timer is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        # What arrived with the end of the headers is body, and is counted there.
        if self._timer is not None and self._header_bytes > MOST_HEADER_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def eof_received(self):
        # A client that has sent all may close its half, and still wants the answer.
        self._has_ended = True
        return self.cycle is not None and not self.cycle.response_complete

    def on_message_begin(self):
        super().on_message_begin()
        if self._timer is None:  # a further request of a connection
            self._wait_for_headers()

    def on_headers_complete(self):
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self):
        self.waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self):
        # A body that nobody reads could go on for ever.
        unread = self.cycle.more_body and not self.pipeline
        super().on_response_complete()
        if unread or (self._has_ended and not self.pipeline):
            self.transport.close()
        else:
            self.waiting[self] = None

    def pause_writing(self):
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self):
        super().resume_writing()
        self._stop_write_timer()

    def shutdown(self):
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.transport.get_write_buffer_size() == 0:
            self.transport.abort()  # closing a TLS connection would wait for a client that is idle, too
        else:
            super().shutdown()

    def connection_lost(self, exc):
        self.waiting.pop(self, None)
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def _wait_for_headers(self):
        self._header_bytes = 0
        self.waiting[self] = None
        self._timer = self.loop.call_later(self.seconds, self._refuse, b"408 Request Timeout")

    def _stop_timer(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_write_timer(self):
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _refuse(self, status):
        self.waiting.pop(self, None)
        self._stop_timer()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()


def protocol_with_limits(seconds, most_connections):
    """The protocol class for uvicorn.

    Args:
        seconds: how long a client may take to send its headers, and how long it may not read what it is sent.
        most_connections: open ones. Beyond it, the one that has waited longest for a client to send is closed, so that
            slow clients do not keep others out, nor those who ask whether the server lives.
    """
    limits = {"seconds": seconds, "most_connections": most_connections, "waiting": {}}
    return type("ProtocolOfServer", (LimitedProtocol,), limits)
