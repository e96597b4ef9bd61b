"""The REST interface answers as TensorFlow Serving does; see https://www.tensorflow.org/tfx/serving/api_rest."""

import base64
import http.client
import json
import os
import socket
import threading
import urllib.error
import urllib.request

import pytest
import tensorflow as tf
from made_servers import running, write_model
from tiers import on

from keras_bert_serving import json_tensors
from keras_bert_serving.metrics import Metrics
from keras_bert_serving.request_log import RequestLog

pytestmark = on("tensorflow")

PREDICT = "/v1/models/toy:predict"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("toy")
    write_model(directory, 7)
    with running(directory, max_rows=40, max_text_bytes=50, max_body_bytes=50_000) as server:
        yield server


def test_rows_are_answered_by_rows_with_the_names_of_the_outputs(server):
    answer = server.json(PREDICT, {"instances": ["the cat", {"b64": base64.b64encode(b"\xff\x00\xfe").decode()}]})
    assert answer == {"predictions": [{"length": 7, "version": 7}, {"length": 3, "version": 7}]}


def test_columns_are_answered_by_columns_and_a_single_output_without_its_name(server):
    for inputs in (["the cat", "sat"], {"text": ["the cat", "sat"]}):
        assert server.json(PREDICT, {"inputs": inputs}) == {"outputs": {"length": [7, 3], "version": [7, 7]}}
    assert server.json(PREDICT, {"signature_name": "echo", "instances": ["é"]}) == {"predictions": ["é"]}
    assert server.json(PREDICT, {"signature_name": "echo", "inputs": {"text": ["é"]}}) == {"outputs": ["é"]}


def test_rows_with_several_inputs_are_objects_and_numbers_that_are_none_have_names(server):
    rows = [{"numbers": [1, 2.5], "more": 3}, {"numbers": [0, -1], "more": 0}]
    answer = server.json(PREDICT, {"signature_name": "add", "instances": rows})
    assert [row["sum"] for row in answer["predictions"]] == [6.5, -1.0]
    assert str([row["share"] for row in answer["predictions"]]) == "[[inf, inf], [nan, -inf]]"


def test_strings_of_outputs_named_bytes_and_those_that_are_no_text_are_in_base64(server):
    kept = server.json(PREDICT, {"signature_name": "keep", "instances": ["cat"]})
    assert kept == {"predictions": [{"b64": base64.b64encode(b"cat").decode()}]}
    damaged = {"b64": base64.b64encode(b"caf\xe9").decode()}
    assert server.json(PREDICT, {"signature_name": "echo", "instances": [damaged]}) == {"predictions": [damaged]}


def test_a_version_is_named_by_its_number_and_the_status_is_the_one_of_tensorflow_serving(server):
    answer = server.json("/v1/models/toy/versions/7:predict", {"instances": ["cat"]})
    assert answer == {"predictions": [{"length": 3, "version": 7}]}
    ok = {"error_code": "OK", "error_message": ""}
    expected = {"model_version_status": [{"version": "7", "state": "AVAILABLE", "status": ok}]}
    assert server.json("/v1/models/toy") == server.json("/v1/models/toy/versions/7") == expected


def test_the_metadata_hold_the_signatures(server):
    metadata = server.json("/v1/models/toy/metadata")
    assert metadata["model_spec"] == {"name": "toy", "signature_name": "", "version": "7"}
    text = metadata["metadata"]["signature_def"]["signature_def"]["echo"]["inputs"]["text"]
    shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert text == {"name": "echo_text:0", "dtype": "DT_STRING", "tensor_shape": shape}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "JSON Parse error"),
        (b'{"instances": ["\\ud800"]}', "JSON Parse error"),
        (b"[" * 4000, "JSON Parse error"),
        (b"[NaN" * 1200, "JSON Parse error"),
        (b"[1]", "Is not object"),
        ({"instances": ["a"], "inputs": ["a"]}, "one of the keys"),
        ({"instances": []}, "a list of examples"),
        ({"instances": [None]}, "takes strings"),
        ({"instances": [["a"]]}, "has shape [1, 1]"),
        ({"instances": ["a", ["b"]]}, "takes strings"),
        ({"instances": [{"b64": "?"}]}, "takes strings"),
        ({"instances": [{"other": "a"}]}, "takes text"),
        ({"instances": ["a"], "signature_name": 3}, "not found in signature def"),
        ({"instances": ["a"], "signature_name": "no"}, "not found in signature def: model toy has add, echo"),
        ({"inputs": {"wrong": ["a"]}}, "takes text"),
        ({"inputs": {"text": "a"}}, "has shape []"),
        ({"signature_name": "add", "instances": [{"numbers": [1], "more": 1}]}, "expected [?,2]"),
        ({"signature_name": "add", "instances": [{"numbers": [1, 1e39], "more": 1}]}, "outside the range of float32"),
        ({"signature_name": "add", "instances": [{"numbers": [1, 2], "more": 1.5}]}, "takes int32"),
        ({"instances": ["a"] * 41}, "--max_rows"),
        ({"instances": ["a" * 51]}, "--max_text_bytes"),
        ({"instances": ["boom"]}, "boom is refused"),
    ],
)
def test_a_wrong_request_is_refused_with_400_and_the_reason(server, body, message):
    status, error = server.error(PREDICT, body)
    assert status == 400 and message in error


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/v1/models/no:predict", 404, "Latest(no)"),
        ("POST", "/v1/models/toy/versions/8:predict", 404, "Specific(toy, 8)"),
        ("POST", "/v1/models/toy/labels/no:predict", 400, "Malformed request"),
        ("GET", f"/v1/models/toy/versions/{2**64}", 404, f"Specific(toy, {2**64})"),
        ("POST", "/v1/models/toy:frobnicate", 400, "Malformed request"),
        ("GET", "/v1/models/toy:predict", 400, "a POST with a body"),
        ("GET", "/v1/models/", 400, "/v1/models/NAME"),
        ("GET", "/elsewhere", 404, "Malformed request"),
        ("DELETE", "/v1/models/toy", 405, "Malformed request"),
    ],
)
def test_an_address_that_is_none_is_refused_as_json(server, method, path, status, message):
    connection = http.client.HTTPConnection("127.0.0.1", server.server.port)
    connection.request(method, path, b'{"instances": ["a"]}' if method == "POST" else None)
    answer = connection.getresponse()
    assert answer.status == status and message in json.loads(answer.read())["error"]


def test_a_body_above_the_limit_is_refused_with_413(server):
    assert server.error(PREDICT, {"instances": ["a" * 50_000]})[0] == 413


@pytest.mark.parametrize("failure", [MemoryError(), tf.errors.ResourceExhaustedError(None, None, "OOM: [8,512,512]")])
def test_what_the_model_has_no_memory_for_is_refused_with_413_and_not_asked_for_again(server, failure, monkeypatch):
    def run(*asked):
        raise failure

    monkeypatch.setattr(server.server.models.find("toy"), "run", run)
    connection = http.client.HTTPConnection("127.0.0.1", server.server.port)
    connection.request("POST", PREDICT, b'{"instances": ["a"]}')
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Retry-After"]) == (413, None) and b"fewer or shorter texts" in answer.read()


def test_the_time_of_a_request_holds_for_its_warnings(tmp_path, monkeypatch):
    write_model(tmp_path)
    with running(tmp_path, request_seconds=0.3) as server:
        ended = threading.Event()
        checks = server.server.models.find("toy").text_checks
        monkeypatch.setattr(checks, "warnings", lambda *asked: [f"waited {ended.wait(10)}"])
        answer = server.json(PREDICT, {"instances": ["a" * 11_000]})
        ended.set()
    assert answer["predictions"][0]["length"] == 11_000 and "no time to see" in answer["warnings"][0]


def test_health_readiness_and_metrics_are_open(server):
    server.json(PREDICT, {"instances": ["cat"]})
    assert server.ask("/healthz") == (200, b"ok\n") and server.ask("/readyz") == (200, b"ready\n")
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        page = server.ask(path)[1].decode()
        assert 'keras_bert_requests_total{method="predict",model="toy",protocol="rest",status="200"}' in page
        assert "keras_bert_batch_rows_bucket" in page
    server.error("/v1/models/invented:predict", {"instances": ["a"]})  # names of clients are no labels
    assert b"invented" not in server.ask("/metrics")[1]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:8501"}, 200),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "[zz]:80"}, 400),
        ({"Origin": "http://["}, 400),
    ],
)
def test_a_page_from_elsewhere_cannot_ask_a_server_of_this_machine(server, headers, status):
    """Neither by a name that was made to point here, nor by a form or script that a browser sends here."""
    assert server.ask(PREDICT, {"instances": ["cat"]}, **headers)[0] == status
    assert server.ask(PREDICT, {"instances": ["cat"]}, Origin=server.address)[0] == 200  # its own page


def test_a_probe_need_not_name_the_host(server):
    """As those of HTTP/1.0; a browser always names it."""
    for path in (b"/healthz", b"/readyz"):
        with socket.create_connection(("127.0.0.1", server.server.port), timeout=10) as connection:
            connection.sendall(b"GET " + path + b" HTTP/1.0\r\n\r\n")
            assert b" 200 " in connection.recv(100)


def test_a_byte_order_mark_is_read_over(server):
    assert server.json(PREDICT, b'\xef\xbb\xbf{"instances": ["cat"]}')["predictions"][0]["length"] == 3


def test_a_log_that_nobody_reads_holds_nobody_up(server):
    log, (reading, writing) = server.server.log, os.pipe()
    stream, log._stream = log._stream, os.fdopen(writing, "w")
    writer = threading.Thread(target=lambda: [log.event("told", text="a" * 1000) for _ in range(3000)], daemon=True)
    try:
        writer.start()
        writer.join(20)
        assert not writer.is_alive() and server.ask(PREDICT, {"instances": ["cat"]})[0] == 200
        lost = server.ask("/metrics")[1].partition(b"\nkeras_bert_log_lines_lost_total ")[2].split()[0]
        assert 1900 < float(lost) < 2000  # 1000 wait, and a pipe holds some
    finally:
        log._stream = stream
        os.close(reading)


def test_lines_that_a_full_pipe_does_not_take_are_counted():
    """Of one that does not wait, as the programs that start a server may hand it over."""
    figures, (reading, writing) = Metrics(), os.pipe()
    os.set_blocking(writing, False)
    log = RequestLog(figures)
    log._stream = os.fdopen(writing, "w")
    for _ in range(500):
        log.say("a" * 999)
    log.close()
    log._stream.close()
    with os.fdopen(reading) as read:
        assert len(read.readlines()) + figures.lost_lines._value.get() == 500


def test_a_proxy_may_make_a_server_of_this_machine_known_by_another_name(tmp_path):
    write_model(tmp_path)
    with running(tmp_path, host_names=["films.example"]) as server:
        for host, origin, status in (
            ("films.example", "https://films.example", 200),
            ("films.example", "https://evil.example", 403),
            ("evil.example", "https://evil.example", 403),
        ):
            assert server.ask(PREDICT, {"instances": ["cat"]}, Host=host, Origin=origin)[0] == status


@pytest.mark.parametrize("where", ["model", "signature", "label"])
def test_a_long_name_is_not_sent_back_whole(server, where):
    name = "x" * 4_000
    path = {"model": f"/v1/models/{name}:predict", "label": f"/v1/models/toy/labels/{name}:predict"}.get(where, PREDICT)
    body = {"instances": ["a"], **({"signature_name": "x" * 4_000} if where == "signature" else {})}
    status, message = server.error(path, body)
    assert status in (400, 404) and len(message) < 1100


def test_a_large_body_is_read_in_a_thread_of_its_own(server, monkeypatch):
    """Whoever asks after the health of the server need not wait for it."""
    readers, read = [], json_tensors.read_predict
    monkeypatch.setattr(
        json_tensors, "read_predict", lambda *given: readers.append(threading.current_thread()) or read(*given)
    )
    for count in (1, 200):
        server.ask(PREDICT, {"instances": ["a"], "unused": "a" * 100 * count})
    assert readers[0] is server._thread and readers[1] is not server._thread


def test_an_answer_that_is_too_large_is_refused(tmp_path):
    write_model(tmp_path)
    with running(tmp_path, max_answer_bytes=1000) as server:
        assert server.ask(PREDICT, {"signature_name": "echo", "instances": ["a" * 100] * 9})[0] == 200
        status, message = server.error(PREDICT, {"signature_name": "echo", "instances": ["a" * 100] * 11})
    assert status == 400 and "The answer has 1100 bytes; this server takes at most 1000" in message


def test_a_request_has_the_id_that_the_client_gave_or_one_of_its_own(server, monkeypatch):
    lines = []
    monkeypatch.setattr(server.server.log, "say", lines.append)
    monkeypatch.setattr(server.server.log, "_requests", True)
    body = json.dumps({"instances": ["cat"]}).encode()
    found = []
    for given in ("job 7", "job-7", "x" * 129, None):  # a space and too long a one are not taken over
        headers = {"X-Request-Id": given} if given else {}
        with urllib.request.urlopen(urllib.request.Request(server.address + PREDICT, body, headers)) as answer:
            found.append(answer.headers["X-Request-Id"])
    assert [json.loads(line)["id"] for line in lines] == found and len(set(found)) == 4
    assert found[1] == "job-7" and all(len(one) == 32 for one in (found[0], *found[2:]))
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(server.address + PREDICT, b"{", {"X-Request-Id": "job-8"}))
    assert refused.value.headers["X-Request-Id"] == json.loads(lines[-1])["id"] == "job-8"
