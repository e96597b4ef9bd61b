"""Clients that send slowly, without end, or go away cost the server little, and only for a while."""

import contextlib
import http.client
import json
import socket
import time

import pytest
from made_servers import running, write_model
from tiers import on

from keras_bert_impl.serving import server as server_module

pytestmark = on("tensorflow")

START = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("toy")
    write_model(directory)
    with running(directory, body_seconds=0.4, max_body_bytes=1000) as server:
        yield server


def connect(server):
    return socket.create_connection(("127.0.0.1", server.server.port), timeout=10)


def answer(connection):
    """Everything that the server sends before it closes the connection."""
    received = b""
    while part := connection.recv(65536):
        received += part
    return received


def drip(connection, data, pause=0.05, seconds=5.0):
    """Sends byte by byte until the server has closed the connection; whether it did."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for byte in data:
            try:
                connection.send(bytes([byte]))
            except OSError:
                return True
            time.sleep(pause)
    return False


def test_headers_that_come_byte_by_byte_are_refused_in_time(server):
    with connect(server) as connection:
        assert drip(connection, START)


def test_a_connection_that_sends_nothing_is_closed(server):
    with connect(server) as connection:
        assert answer(connection).startswith(b"HTTP/1.1 408")


def test_headers_without_end_are_refused(server):
    with connect(server) as connection:
        connection.sendall(START + b"x-header: " + b"a" * 65_536)
        assert answer(connection).startswith(b"HTTP/1.1 431")


def test_a_body_that_comes_byte_by_byte_is_refused_in_time(server):
    with connect(server) as connection:
        connection.sendall(START + b"Content-Length: 900\r\n\r\n{")
        received = answer(connection)
    assert received.startswith(b"HTTP/1.1 408") and b"--body_seconds" in received


def test_a_body_that_nobody_reads_does_not_keep_the_connection(server):
    with connect(server) as connection:
        connection.sendall(START.replace(b"toy:predict", b"no") + b"Content-Length: 100000000\r\n\r\n")
        assert b" 400 " in connection.recv(65536)
        assert drip(connection, b"a", seconds=2)


def test_a_chunked_body_above_the_limit_is_refused(server):
    with connect(server) as connection:
        connection.sendall(START + b"Transfer-Encoding: chunked\r\n\r\n" + (b"400\r\n" + b" " * 1024 + b"\r\n") * 9)
        assert answer(connection).startswith(b"HTTP/1.1 413")


def test_a_client_that_closes_its_half_after_the_request_is_answered(server):
    body = b'{"instances": ["cat"]}'
    with connect(server) as connection:
        connection.sendall(START + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        connection.shutdown(socket.SHUT_WR)
        received = answer(connection)  # to its end: the server closes the rest
    assert received.startswith(b"HTTP/1.1 200") and b'"length":3' in received


def test_a_client_that_does_not_read_its_answer_is_dropped(tmp_path):
    write_model(tmp_path)
    text = "a" * 1_900_000
    body = json.dumps({"signature_name": "echo", "instances": [text] * 10}).encode()
    options = {
        "body_seconds": 0.5,
        "max_body_bytes": 20_000_000,
        "max_text_bytes": 2_000_000,
        "max_answer_bytes": 10**8,
    }
    with running(tmp_path, **options) as server, connect(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(START + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(3)
        received = 0
        with pytest.raises(ConnectionResetError):
            while part := connection.recv(65536):
                received += len(part)
            raise ConnectionResetError if received < len(body) else AssertionError("all of it came")


def test_many_slow_connections_do_not_keep_others_out(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 40)
    write_model(tmp_path)
    with running(tmp_path, body_seconds=30) as server, contextlib.ExitStack() as held:
        for number in range(60):
            connection = held.enter_context(connect(server))
            connection.sendall(START if number % 2 else START + b"Content-Length: 900\r\n\r\n{")
        time.sleep(0.2)
        assert server.ask("/healthz") == (200, b"ok\n")
        assert server.json("/v1/models/toy:predict", {"instances": ["cat"]})["predictions"][0]["length"] == 3


def test_after_all_that_the_server_answers_several_requests_on_one_connection(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server.port, timeout=10)
    for _ in range(3):
        connection.request("POST", "/v1/models/toy:predict", b'{"instances": ["cat"]}')
        assert json.loads(connection.getresponse().read())["predictions"][0]["length"] == 3
        time.sleep(0.2)
