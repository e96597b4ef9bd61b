"""Uvicorn's HTTP/1.1, with limits for clients that send headers slowly or without end.

Uvicorn limits neither: a client that opens connections and sends a byte a second would hold them for ever.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADER_BYTES = 65_536


def protocol_with_limits(seconds):
    """The protocol class for uvicorn; `seconds` is how long a client may take to send its headers."""

    class LimitedProtocol(HttpToolsProtocol):
        """HttpToolsProtocol that closes connections whose headers are late or too large, or whose body is not read."""

        _header_bytes = 0
        _timer = None

        def connection_made(self, transport):
            super().connection_made(transport)
            self._wait_for_headers()

        def data_received(self, data):
            if self._timer is not None:
                self._header_bytes += len(data)
            super().data_received(data)
            # What arrived with the end of the headers is body, and is counted there.
            if self._timer is not None and self._header_bytes > MOST_HEADER_BYTES:
                self._refuse(b"431 Request Header Fields Too Large")

        def on_message_begin(self):
            super().on_message_begin()
            if self._timer is None:  # a further request of a connection
                self._wait_for_headers()

        def on_headers_complete(self):
            self._stop_waiting()
            super().on_headers_complete()

        def on_response_complete(self):
            # A body that nobody reads could go on for ever.
            unread = self.cycle.more_body and not self.pipeline
            super().on_response_complete()
            if unread:
                self.transport.close()

        def shutdown(self):
            is_idle = self.cycle is None or self.cycle.response_complete
            if is_idle and self.transport.get_write_buffer_size() == 0:
                self.transport.abort()  # closing a TLS connection would wait for a client that is idle, too
            else:
                super().shutdown()

        def connection_lost(self, exc):
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait_for_headers(self):
            self._header_bytes = 0
            self._timer = self.loop.call_later(seconds, self._refuse, b"408 Request Timeout")

        def _stop_waiting(self):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _refuse(self, status):
            self._stop_waiting()
            if not self.transport.is_closing():
                self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                self.transport.close()

    return LimitedProtocol
