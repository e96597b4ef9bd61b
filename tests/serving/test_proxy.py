"""nginx before the server, with the configuration of docs/server.md: TLS, keys, and clients that are slow."""

import contextlib
import getpass
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time

import grpc
import pytest
import tensorflow as tf
from documentation import indented_blocks
from made_servers import running, write_model
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
from tiers import on

pytestmark = [
    on("tensorflow"),
    pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="needs nginx and openssl"),
]
BODY = json.dumps({"instances": ["cat"]})
PREDICT = "/v1/models/toy:predict"
SLOW = 1  # seconds, instead of the page's 10


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """(port, folder) of nginx before a server; its certificate is in the folder."""
    folder = tmp_path_factory.mktemp("proxy")
    write_model(folder / "toy")
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(["openssl", *made], check=True, capture_output=True, cwd=folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(folder / "toy", max_answer_bytes=2**30, max_text_bytes=2**22) as server:
        (block,) = [block for block in indented_blocks("docs/server.md") if block.startswith("upstream bert")]
        for shown, here in {
            "127.0.0.1:8501": f"127.0.0.1:{server.server.port}",
            "127.0.0.1:8500": f"127.0.0.1:{server.server.grpc_port}",
            "listen 443": f"listen 127.0.0.1:{port}",
            "films.example": "localhost",
            " 10s;": f" {SLOW}s;",
            "certificate.pem": f"{folder}/certificate.pem",
            "key.pem": f"{folder}/key.pem",
        }.items():
            assert shown in block
            block = block.replace(shown, here)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        config = f"events {{ worker_connections 4096; }}\nhttp {{ access_log off; {temporary}\n{block}\n}}\n"
        place = f"user {getpass.getuser()}; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        (folder / "nginx.conf").write_text(place + config)
        nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
        try:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield port, folder
        finally:
            nginx.terminate()
            nginx.wait(20)


def connected(proxy, reads_little=False):
    context = ssl.create_default_context(cafile=proxy[1] / "certificate.pem")
    connection = context.wrap_socket(socket.socket(), server_hostname="localhost")
    if reads_little:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(10)
    connection.connect(("127.0.0.1", proxy[0]))
    return connection


def ask(proxy, path=PREDICT, body=BODY, key="KEY"):
    context = ssl.create_default_context(cafile=proxy[1] / "certificate.pem")
    connection = http.client.HTTPSConnection("localhost", proxy[0], context=context, timeout=20)
    connection.request("GET" if body is None else "POST", path, body, {"x-api-key": key} if key else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_who_shows_a_key_is_answered_over_tls(proxy):
    assert ask(proxy) == (200, b'{"predictions":[{"length":3,"version":1}]}')
    assert ask(proxy, key=None)[0] == ask(proxy, key="wrong")[0] == ask(proxy, "/metrics", None, None)[0] == 401
    assert ask(proxy, "/healthz", None, None) == (200, b"ok\n") and ask(proxy, "/", None)[0] == 200


def test_grpc_goes_through_with_the_same_key(proxy):
    credentials = grpc.ssl_channel_credentials((proxy[1] / "certificate.pem").read_bytes())
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "toy"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["cat"]))
    with grpc.secure_channel(f"localhost:{proxy[0]}", credentials) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        assert stub.Predict(request, metadata=[("x-api-key", "KEY")]).outputs["length"].int_val == [3]
        with pytest.raises(grpc.RpcError) as refused:
            stub.Predict(request)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def closes_in_time(connection):
    """Whether the other side closes a connection, which it has to within a few seconds."""
    began = time.monotonic()
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            pass
    return time.monotonic() - began < 5 * SLOW


HEAD = f"POST {PREDICT} HTTP/1.1\r\nx-api-key: KEY\r\nHost: localhost\r\nContent-Length: "


@pytest.mark.full
@pytest.mark.parametrize("sent", [None, "", HEAD[:40], HEAD + "9\r\n\r\n{"], ids=["handshake", "", "head", "body"])
def test_a_handshake_or_request_that_does_not_end_is_cut_off(proxy, sent):
    opened = socket.create_connection(("127.0.0.1", proxy[0]), timeout=20) if sent is None else connected(proxy)
    with opened as connection:
        connection.sendall((sent or "").encode())
        assert closes_in_time(connection)


@pytest.mark.full
def test_a_client_that_does_not_read_its_answer_is_dropped(proxy):
    body = json.dumps({"signature_name": "echo", "instances": ["a" * 2**20] * 3})
    head = f"{HEAD}{len(body)}\r\n\r\n"
    with connected(proxy, reads_little=True) as connection:
        connection.sendall(head.encode() + body.encode())
        time.sleep(4 * SLOW)
        received = connection.recv(100)
        assert not received or b" 200 " in received
        size = 100
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while part := connection.recv(2**20):
                size += len(part)
    assert size < 3 * 2**20, "was sent after all"


@pytest.mark.full
def test_many_slow_connections_keep_nobody_from_asking_after_its_health(proxy):
    with contextlib.ExitStack() as held:
        for _ in range(520):
            held.enter_context(socket.create_connection(("127.0.0.1", proxy[0]), timeout=10)).sendall(b"\x16")
        assert ask(proxy, "/healthz", None, None) == (200, b"ok\n") and ask(proxy)[0] == 200


def test_a_body_above_the_limit_is_refused(proxy):
    assert ask(proxy, body=b" " * (5 * 2**20))[0] == 413
