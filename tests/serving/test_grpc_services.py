"""The gRPC services, asked by the stubs of the package tensorflow-serving-api."""

import contextlib

import grpc
import numpy as np
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from made_servers import running, write_model
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)
from tiers import on

from keras_bert_serving import grpc_services, tensor_messages

pytestmark = on("tensorflow")


@contextlib.contextmanager
def stubs(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.server.grpc_port}") as channel:
        yield (
            prediction_service_pb2_grpc.PredictionServiceStub(channel),
            model_service_pb2_grpc.ModelServiceStub(channel),
            f"127.0.0.1:{server.server.grpc_port}",
        )


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    directory = tmp_path_factory.mktemp("toy")
    write_model(directory, 7)
    with running(directory, max_body_bytes=100_000) as server, stubs(server) as found:
        yield found


def request_of(texts, signature="", version=None):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "toy"
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    return request


@contextlib.contextmanager
def refused(code, message):
    with pytest.raises(grpc.RpcError) as failure:
        yield
    assert failure.value.code() is code and message in failure.value.details()


def test_texts_are_answered_in_the_fields_that_clients_of_tensorflow_serving_read(services):
    answer = services[0].Predict(request_of(["the cat", b"\xff\x00"]))
    assert list(answer.outputs["length"].int_val) == [7, 2]
    assert tf.make_ndarray(answer.outputs["version"]).tolist() == [7, 7]
    spec = answer.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("toy", 7, "serving_default")


def test_arrays_of_numbers_go_and_come(services):
    request = request_of(["a"], "add")
    request.inputs.clear()
    request.inputs["numbers"].CopyFrom(tf.make_tensor_proto(np.array([[1, 2.5], [3, 4]], np.float32)))
    request.inputs["more"].CopyFrom(tf.make_tensor_proto([3, 0], tf.int32))
    answer = services[0].Predict(request)
    assert list(answer.outputs["sum"].float_val) == [6.5, 7.0]
    assert tf.make_ndarray(answer.outputs["share"]).shape == (2, 2)


def test_a_filter_chooses_the_outputs_and_writes_each_once(services, monkeypatch):
    written, write = [], grpc_services.message_of_array
    monkeypatch.setattr(grpc_services, "message_of_array", lambda array: written.append(1) or write(array))
    request = request_of(["cat"])
    request.output_filter.extend(["length"] * 5000)
    assert list(services[0].Predict(request).outputs) == ["length"] and len(written) == 1
    request.output_filter.append("wrong")
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "not found in signature: wrong"):
        services[0].Predict(request)


def test_a_version_is_followed_and_wrong_requests_are_refused_with_their_status(services):
    assert services[0].Predict(request_of(["cat"], version=7)).outputs["length"].int_val == [3]
    labelled, nameless = request_of(["cat"]), request_of(["cat"])
    labelled.model_spec.version_label, nameless.model_spec.name = "stable", "no"
    codes = grpc.StatusCode
    for request, code, message in (
        (labelled, codes.INVALID_ARGUMENT, "Unrecognized servable version label: stable"),
        (request_of(["cat"], version=8), codes.NOT_FOUND, "Specific(toy, 8)"),
        (nameless, codes.NOT_FOUND, "Latest(no)"),
        (request_of(["boom"]), codes.INVALID_ARGUMENT, "boom is refused"),
        (request_of(["cat"], "add"), codes.INVALID_ARGUMENT, "takes more, numbers"),
        (request_of(["cat" * 50_000]), codes.RESOURCE_EXHAUSTED, "larger than max"),
    ):
        with refused(code, message):
            services[0].Predict(request)


def claim(message, kind, *sizes):
    """Makes a TensorProto describe an array of these sizes, and hold one value of it."""
    message.Clear()
    message.dtype = kind.as_datatype_enum
    for size in sizes:
        message.tensor_shape.dim.add(size=size)


@pytest.mark.parametrize(
    ("sizes", "values", "message"),
    [
        ([10**6, 10**6], [b"a"], "describe arrays of"),
        ([2**40, 2**40], [b"a"], "describe arrays of"),
        ([1] * 65, [b"a"], "expected [?]"),
        ([-1], [b"a"], "describes no array"),
        ([1], [b"a", b"b"], "is no valid tensor"),
    ],
)
def test_a_message_that_describes_another_array_than_it_holds_is_refused(services, sizes, values, message):
    request = request_of(["a"])
    claim(request.inputs["text"], tf.string, *sizes)
    request.inputs["text"].string_val.extend(values)
    with refused(grpc.StatusCode.INVALID_ARGUMENT, message):
        services[0].Predict(request)


@pytest.fixture
def allocates_nothing(monkeypatch):
    monkeypatch.setattr(tensor_messages, "array_of_message", lambda *arguments: pytest.fail("allocated"))


def test_names_are_checked_before_the_arrays_that_they_claim_to_hold_are_made(services, allocates_nothing):
    request = request_of(["a"])
    for number in range(400):
        claim(request.inputs[f"surplus_{number}_{'x' * 200}"], tf.float32, 20_000)
    with pytest.raises(grpc.RpcError) as failure:
        services[0].Predict(request)
    assert "and 391 more; signature" in failure.value.details() and len(failure.value.details()) < 1000


def test_the_inputs_of_a_request_are_limited_together(services, allocates_nothing):
    request = request_of(["a"], "add")
    request.inputs.clear()
    for name in ("numbers", "more"):
        claim(request.inputs[name], tf.float32, 15_000)  # 60,000 bytes, of at most 100,000
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "120000 bytes"):
        services[0].Predict(request)


@pytest.mark.parametrize(("sizes", "message"), [([2000], "has 2000 examples"), ([1, 9], "has shape [1, 9]")])
def test_rows_and_shapes_are_checked_before_arrays_are_made(services, allocates_nothing, sizes, message):
    request = request_of(["a"])
    claim(request.inputs["text"], tf.string, *sizes)
    with refused(grpc.StatusCode.INVALID_ARGUMENT, message):
        services[0].Predict(request)


def test_status_and_metadata_are_told(services):
    asked = get_model_status_pb2.GetModelStatusRequest()
    asked.model_spec.name = "toy"
    (status,) = services[1].GetModelStatus(asked).model_version_status
    assert status.version == 7 and status.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
    asked = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    asked.model_spec.name = "toy"
    found = get_model_metadata_pb2.SignatureDefMap()
    assert services[0].GetModelMetadata(asked).metadata["signature_def"].Unpack(found)
    assert set(found.signature_def) == {"serving_default", "echo", "words", "add", "keep"}


def test_a_probe_of_grpc_is_answered(services):
    serving = health_pb2.HealthCheckResponse.SERVING
    with grpc.insecure_channel(services[2]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", "tensorflow.serving.PredictionService"):
            assert stub.Check(health_pb2.HealthCheckRequest(service=name)).status == serving
        with refused(grpc.StatusCode.NOT_FOUND, "There is no service other"):
            stub.Check(health_pb2.HealthCheckRequest(service="other"))


def test_bytes_that_are_no_message_are_refused_without_a_traceback(services, capfd):
    with grpc.insecure_channel(services[2]) as channel:
        send = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "The 3 bytes are no PredictRequest"):
            send(b"\xff\xff\xff")
    assert "Traceback" not in capfd.readouterr().err


def test_a_request_has_the_id_that_the_client_gave(services):
    metadata = (("x-request-id", "job-9"),)
    _, call = services[0].Predict.with_call(request_of(["cat"]), metadata=metadata)
    assert dict(call.trailing_metadata())["x-request-id"] == "job-9"
