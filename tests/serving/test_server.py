"""The process: it answers what it has taken before it ends, and says why it cannot start."""

import asyncio
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import pytest
from conftest import revealing_config
from grpc_health.v1 import health_pb2, health_pb2_grpc
from made_servers import RunningServer, running, write_model
from tiers import on

import keras_bert_impl as kbi
from keras_bert_serving import models
from keras_bert_serving.model_directory import exported
from keras_bert_serving.models import parse_models
from keras_bert_training import runs
from keras_bert_training.commands.serve import ServeConfig, run

pytestmark = on("tensorflow")

ROOT = pathlib.Path(__file__).parents[2]
PREDICT = "/v1/models/toy:predict"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    directory = tmp_path_factory.mktemp("toy")
    write_model(directory)
    return directory


def test_the_server_says_that_it_is_not_ready_while_models_load(toy, monkeypatch):
    may_load, load = threading.Event(), models.load
    monkeypatch.setattr(models, "load", lambda *given: may_load.wait(30) and load(*given))
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
        port, grpc_port = free.getsockname()[1], other.getsockname()[1]
    servers, named = [], {"toy": str(toy)}
    starting = threading.Thread(target=lambda: servers.append(RunningServer(named, port=port, grpc_port=grpc_port)))
    starting.start()
    health = health_pb2.HealthCheckResponse

    def health_of_grpc():
        with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
            asked = health_pb2_grpc.HealthStub(channel).Check
            return asked(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=20).status

    def status(path, body=None):
        end = time.monotonic() + 20
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            try:
                connection.request("GET" if body is None else "POST", path, body)
                return connection.getresponse().status
            except ConnectionError:
                assert time.monotonic() < end
                time.sleep(0.05)
            finally:
                connection.close()

    asked = [("/healthz",), ("/readyz",), (PREDICT, b'{"instances": ["cat"]}')]
    assert [status(*one) for one in asked] == [200, 503, 503] and health_of_grpc() == health.NOT_SERVING
    may_load.set()
    starting.join()
    assert [status(*one) for one in asked] == [200, 200, 200] and health_of_grpc() == health.SERVING
    servers[0].stop()


def test_requests_that_were_taken_are_answered_when_the_server_is_asked_to_end(toy):
    server = RunningServer({"toy": str(toy)})
    connections = [http.client.HTTPConnection("127.0.0.1", server.server.port, timeout=20) for _ in range(6)]
    held = threading.Event()
    servable = server.server.models.find("toy")
    ran = servable.run

    def slowly(*arguments):
        held.wait(10)
        return ran(*arguments)

    servable.run = slowly
    for connection in connections:
        connection.request("POST", PREDICT, b'{"instances": ["cat"]}')
    time.sleep(0.3)
    ending = threading.Thread(target=server.stop)
    ending.start()
    time.sleep(0.3)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.server.port), timeout=1).close()
    held.set()
    found = [json.loads(connection.getresponse().read()) for connection in connections]
    ending.join(20)
    assert found == [{"predictions": [{"length": 3, "version": 1}]}] * 6 and not ending.is_alive()


def test_who_was_connected_when_the_server_is_asked_to_end_is_answered(toy):
    """Among them those whom the system has let in, and whom nobody has accepted yet."""
    server, ended, found = RunningServer({"toy": str(toy)}), threading.Event(), []
    body = b'{"instances": ["cat"]}'
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"

    def ask():
        while not ended.is_set():
            try:
                connection = socket.create_connection(("127.0.0.1", server.server.port), timeout=5)
            except OSError:
                continue
            with connection:
                try:
                    connection.sendall(head.encode() + body)
                    found.append(connection.recv(4096)[:12])
                except OSError as error:
                    found.append(error)

    clients = [threading.Thread(target=ask) for _ in range(8)]
    for client in clients:
        client.start()
    time.sleep(0.3)
    server.stop()
    ended.set()
    for client in clients:
        client.join()
    assert len(found) > 50 and set(found) == {b"HTTP/1.1 200"}


def started(*options, stderr=None, **variables):
    """The command `serve` in a process of its own."""
    command = [sys.executable, "-m", "keras_bert_training", "serve", "--port=0", "--grpc_port=0", *options]
    paths = f"{ROOT}:{ROOT / 'training'}:{ROOT / 'serving'}"
    environment = {**os.environ, "PYTHONPATH": paths, "KERAS_BACKEND": "tensorflow", **variables}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True)


@pytest.mark.full
def test_the_command_serves_until_sigterm_and_ends_with_0(toy):
    process = started(f"--model=toy={toy}", stderr=subprocess.PIPE)
    try:
        lines = [process.stdout.readline() for _ in range(5)]
        assert json.loads(lines[0])["event"] == "loaded" and lines[2].startswith("gRPC: 127.0.0.1:")
        port = int(lines[4].rpartition("/metrics")[0].rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", PREDICT, b'{"instances": ["secret text"]}')
        assert connection.getresponse().status == 200
        process.send_signal(signal.SIGTERM)
        printed, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    logged = json.loads(printed.splitlines()[0])
    assert process.returncode == 0 and errors == "" and "all accepted requests" in printed
    assert logged["rows"] == 1 and logged["status"] == 200 and "secret" not in printed


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["toy"], "expected NAME=DIR"),
        (["a/b=dir"], "without / and :"),
        (["toy=/nowhere/at/all"], "neither a directory nor a published name"),
        (["toy=."] * 2, "with a name of its own"),
    ],
)
def test_wrong_models_are_refused(models, message):
    with pytest.raises(ValueError, match=message):
        run(ServeConfig(model=models))


def test_a_port_that_is_taken_is_reported_before_models_are_loaded(toy, monkeypatch):
    loaded = []
    monkeypatch.setattr(models, "load", lambda *given: loaded.append(given))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for option in ("port", "grpc_port"):
            with pytest.raises(OSError, match=f"give another --{option}"):
                RunningServer({"toy": str(toy)}, **{option: taken.getsockname()[1]})
    assert not loaded


@pytest.mark.full
def test_a_server_that_is_asked_to_end_while_it_exports_ends_and_leaves_nothing(tmp_path, small_tokenizer):
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=16))
    kbi.TextClassifier(encoder, num_classes=2, tokenizer=small_tokenizer).save_pretrained(tmp_path / "films")
    (tmp_path / "temporary").mkdir()
    process = started(f"--model=films={tmp_path / 'films'}", TMPDIR=str(tmp_path / "temporary"))
    try:
        assert "is a checkpoint: it is exported" in process.stdout.readline()
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0 and not list((tmp_path / "temporary").glob("keras-bert-serve-*"))
    finally:
        process.kill()


def test_each_model_option_names_one_model(toy):
    config = runs.parse(ServeConfig, ["--model", f"a={toy}", f"--model=b={toy}", "--max-rows", "5"])
    assert list(parse_models(config.model)) == ["a", "b"] and config.max_rows == 5


@pytest.mark.full
def test_a_checkpoint_is_exported_to_a_saved_model_first(tmp_path, small_tokenizer, capsys):
    encoder = kbi.BertEncoder(revealing_config(small_tokenizer, max_length=16))
    classifier = kbi.TextClassifier(encoder, class_names=["bad", "good"], num_classes=2, tokenizer=small_tokenizer)
    classifier.save_pretrained(tmp_path / "films" / "model")  # as a run of `finetune` has it
    with contextlib.ExitStack() as opened:
        directory = asyncio.run(exported(str(tmp_path / "films"), opened))
        assert "is a checkpoint: it is exported" in capsys.readouterr().out
        with running(directory, "films") as server:
            answer = server.json("/v1/models/films:predict", {"instances": ["the cat sat"]})
            asked = {"model": "films", "task": "classify", "fields": {"text": "the cat sat"}}
            on_page = server.json("/page/ask", asked)["answer"]
            attention = server.json("/page/ask", {**asked, "task": "attention"})["answer"]
            assert server.ask("/")[0] == 200
            asked["fields"]["text"] = "cat " * 6000
            assert server.error("/page/ask", asked)[0] == 400
        expected = classifier.predict(["the cat sat"], verbose=0)[0]
        assert {one["name"] for one in on_page["classes"]} == {"bad", "good"}
        assert attention["tokens"][:2] == ["[CLS]", "the"] and attention["layers"] == 1
        np.testing.assert_allclose(answer["predictions"][0]["logits"], expected, rtol=1e-4, atol=1e-4)
    assert not pathlib.Path(directory).exists()
    (tmp_path / "films" / "config.json").write_text("{}")
    with contextlib.ExitStack() as opened, pytest.raises(ValueError, match="could not be exported"):
        asyncio.run(exported(str(tmp_path / "films"), opened))
