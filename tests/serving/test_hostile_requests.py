"""Requests that are made to harm: each is refused with its reason, and the server is as it was."""

import concurrent.futures
import json
import random
import socket

import grpc
import numpy as np
import pytest
import tensorflow as tf
from made_servers import running, write_model
from tensorflow_serving.apis import predict_pb2
from tiers import on

pytestmark = on("tensorflow")

PREDICT = "/v1/models/toy:predict"
BOMBS = [
    b'{"instances":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"instances":[' + b"1," * 10**6 + b"1]}",
    b'{"instances":[' + b'"a",' * 100_000 + b'"a"]}',
    b'{"instances":[' + b"NaN," * 100_000 + b"NaN]}",
    b'{"signature_name":"add","inputs":{"numbers":[[1e999,-1e999]],"more":[' + b"9" * 5000 + b"]}}",
    b'{"instances":["' + b"a" * 150_000 + b'"]}',
    b'{"instances":["a"]}' + b" " * 5_000_000,
]
DAMAGED = [
    b"",
    b"null",
    b'{"instances":["a"',
    b'{"instances":["\xff\xfe"]}',
    b'{"instances":["\\ud800"]}',
    b'{"instances":[{"b64":"%%%"}]}',
    b'{"instances":[[["a"]]]}',
    b'{"instances":[{}]}',
    b'{"inputs":{"text":null}}',
    b'{"inputs":{"text":[]}, "signature_name":"\\u0000"}',
    b'{"instances":["boom"]}',
    b'{"instances":["boom", {"b64":"//4="}]}',
    b'{"signature_name":"add","instances":[{"numbers":[NaN,1],"more":null}]}',
    b'{"signature_name":"add","instances":[{"numbers":[1,2],"more":1e30}]}',
    b'{"signature_name":"add","inputs":{"numbers":[[1,2]],"more":[1,2,3]}}',
]
PATHS = [
    PREDICT,
    PREDICT,
    PREDICT,
    "/v1/models/toy:classify",
    "/v1/models/toy:regress",
    "/v1/models/no:predict",
    "/v1/models/%00%ff/versions/99999999999999999999999:predict",
    "/v1/models/../../etc/passwd",
    "/v1/models/toy/labels/%F0%9F:predict",
]
METHODS = ["Predict", "Predict", "Classify", "Regress", "MultiInference", "GetModelMetadata"]
STATUSES = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED"}


def hostile_requests(count):
    """`count` pairs of a path and a body; one in forty is a bomb."""
    chance = random.Random(5)
    for number in range(count):
        if number % 40 == 0:
            yield PREDICT, BOMBS[number // 40 % len(BOMBS)]
            continue
        body = chance.choice(DAMAGED)
        if number % 3 == 0:  # cut off, with another byte at the end
            body = body[: chance.randrange(len(body) + 1)] + bytes([chance.randrange(256)])
        yield chance.choice(PATHS), body


def drop_half_way(server, body):
    """Promises more than it sends, and closes the connection."""
    with socket.create_connection(("127.0.0.1", server.server.port), timeout=10) as connection:
        head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body) + 50}\r\n\r\n"
        connection.sendall(head.encode() + body)


def attack(server, count):
    """Sends `count` hostile requests from 16 clients; the statuses that came back."""

    def send(numbered):
        number, (path, body) = numbered
        if number % 40 == 7:
            drop_half_way(server, body)
            return None
        try:
            status, answer = server.ask(path, body)
        except OSError:
            return None  # the server may close the connection while a body above the limit is still being sent
        assert status == 200 or json.loads(answer)["error"], (path, body[:80], status, answer[:80])
        return status

    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        return set(clients.map(send, enumerate(hostile_requests(count)))) - {None}


def message(name="toy", signature="", **inputs):
    """A PredictRequest as bytes."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(value)
    return request.SerializeToString()


def damaged_messages():
    """Requests that are well-formed, but ask what cannot be answered."""
    text = tf.make_tensor_proto(["a"])
    huge, negative, short, unknown = (tf.make_tensor_proto(["a"]) for _ in range(4))
    huge.tensor_shape.dim[0].size = 2**62
    negative.tensor_shape.dim[0].size = -5
    short.tensor_shape.dim[0].size = 1000
    unknown.dtype = 9999
    numbers = tf.make_tensor_proto(np.full((2, 2), np.nan, np.float32))
    yield from (message(text=tensor) for tensor in (text, huge, negative, short, unknown, numbers))
    yield from (message("no", text=text), message("", text=text), message(signature="\0", text=text), message())
    yield message(text=text, other=text)
    yield message(text=tf.make_tensor_proto([b"\xff\xfe", b"boom"]))
    yield message(text=tf.make_tensor_proto(["a"] * 5000))
    yield message(text=tf.make_tensor_proto(["a" * 100_000]))
    yield message(text=tf.make_tensor_proto(["a" * 5_000_000]))
    yield message(signature="add", numbers=numbers, more=tf.make_tensor_proto([1, 2, 3]))
    yield message(signature="add", numbers=numbers, more=text)


def attack_over_grpc(server, count):
    """Sends `count` messages, of which a third have damaged bytes; the statuses that came back."""
    messages, chance = list(damaged_messages()), random.Random(7)
    bodies = [chance.choice(messages) for _ in range(count)]
    bodies[::3] = [damaged(body, chance) for body in bodies[::3]]
    with grpc.insecure_channel(f"127.0.0.1:{server.server.grpc_port}") as channel:
        methods = [channel.unary_unary(f"/tensorflow.serving.PredictionService/{name}") for name in METHODS]

        def send(numbered):
            number, body = numbered
            call = methods[number % len(methods)].future(body, timeout=20)
            if number % 40 == 7:
                call.cancel()
            try:
                call.result()
            except grpc.FutureCancelledError:
                return None
            except grpc.RpcError as error:
                assert error.details(), (body[:80], error)
                return error.code().name
            return "OK"

        with concurrent.futures.ThreadPoolExecutor(16) as clients:
            return set(clients.map(send, enumerate(bodies))) - {None}


def damaged(body, chance):
    """A message, cut off, and with another byte at the end."""
    body = body[:2000]
    return body[: chance.randrange(len(body) + 1)] + bytes([chance.randrange(256)])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("toy")
    write_model(directory)
    with running(directory) as server:
        yield server


ATTACKS = {
    "rest": (attack, {400, 404, 413}, {200, 400, 404, 413}),
    "grpc": (attack_over_grpc, {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"}, STATUSES),
}


@pytest.mark.parametrize("protocol", ATTACKS)
def test_hostile_requests_are_refused_and_the_server_goes_on(protocol, server):
    attack, least, most = ATTACKS[protocol]
    assert least <= attack(server, 400) <= most
    assert server.json(PREDICT, {"instances": ["cat"]})["predictions"][0]["length"] == 3
    assert server.server.models.queue.queued_rows == 0
