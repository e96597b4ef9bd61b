"""The gRPC interface: PredictionService and ModelService of TensorFlow Serving, and gRPC's own Health."""

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2, predict_pb2

from keras_bert_serving import model_messages
from keras_bert_serving.errors import ServingError, error_of, invalid, place_of
from keras_bert_serving.request_inputs import bytes_of
from keras_bert_serving.request_log import ID, RequestEntry, request_id
from keras_bert_serving.rest import away_if_large
from keras_bert_serving.signatures import find_signature
from keras_bert_serving.tensor_messages import arrays_of_messages, message_of_array


async def predict(models, request, entry, seconds):
    """Predict: tensors to tensors, by name."""
    spec = request.model_spec
    servable = models.find(spec.name, version_of(spec))
    signature = find_signature(servable, spec.signature_name)
    wanted = wanted_outputs(request.output_filter, signature)
    inputs = arrays_of_messages(request.inputs, signature, models.limits)
    entry.answered_by(servable, signature.name, inputs)
    outputs = await models.ask(servable, inputs, signature.name, seconds)
    response = predict_pb2.PredictResponse()
    response.model_spec.name, response.model_spec.signature_name = servable.name, signature.name
    response.model_spec.version.value = servable.version
    messages = await away_if_large(bytes_of(outputs), lambda: [message_of_array(outputs[name]) for name in wanted])
    for name, message in zip(wanted, messages, strict=True):
        response.outputs[name].CopyFrom(message)
    return response


async def metadata(models, request, entry, seconds):
    """GetModelMetadata: the signatures of a model."""
    servable = models.find(request.model_spec.name, version_of(request.model_spec))
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name, response.model_spec.version.value = servable.name, servable.version
    response.metadata[model_messages.SIGNATURE_DEF].Pack(model_messages.signature_map(servable))
    return response


async def status(models, request, entry, seconds):
    """GetModelStatus: whether the model answers."""
    return model_messages.status(models, request.model_spec.name, version_of(request.model_spec))


async def health(models, request, entry, seconds):
    """Check: whether the server is ready, which is all that `service` may ask about."""
    if request.service not in ("", *SERVICES):
        raise ServingError(grpc.StatusCode.NOT_FOUND, f"There is no service {request.service}.")
    status = health_pb2.HealthCheckResponse.ServingStatus
    return health_pb2.HealthCheckResponse(status=status.SERVING if models.is_ready else status.NOT_SERVING)


# Of each service, its methods: the message that one takes, and the coroutine that answers.
SERVICES = {
    "tensorflow.serving.PredictionService": {
        "Predict": (predict_pb2.PredictRequest, predict),
        "GetModelMetadata": (get_model_metadata_pb2.GetModelMetadataRequest, metadata),
    },
    "tensorflow.serving.ModelService": {"GetModelStatus": (get_model_status_pb2.GetModelStatusRequest, status)},
    # Watch is missing, which clients take for healthy: it would hold the end of the server.
    "grpc.health.v1.Health": {"Check": (health_pb2.HealthCheckRequest, health)},
}


def version_of(spec):
    """The version number in a ModelSpec message, or None. Raises ServingError for a label."""
    if spec.version_label:
        raise invalid(f"Unrecognized servable version label: {spec.version_label}; this server has no labels.")
    return spec.version.value if spec.HasField("version") else None


def wanted_outputs(names, signature):
    """The outputs that a request asks for; all, if it names none. Raises ServingError."""
    for name in names:
        if name not in signature.outputs:
            raise invalid(
                f"output tensor alias not found in signature: {name}; signature {signature.name} has "
                f"{', '.join(sorted(signature.outputs))}."
            )
    return list(dict.fromkeys(names)) or list(signature.outputs)


def handler(models, log, kind, answer):
    """The handler of a method, as SERVICES has its message and answer, which counts, logs and refuses requests. It
    takes bytes: of those that are no message, grpcio itself would print a traceback."""

    async def handle(body, context):
        given = dict(context.invocation_metadata() or ()).get(ID)
        entry, code = RequestEntry("grpc", answer.__name__, request_id(given)), grpc.StatusCode.CANCELLED
        context.set_trailing_metadata(((ID, entry.id),))
        try:
            request = kind.FromString(body)
            entry.model = request.model_spec.name if hasattr(request, "model_spec") else ""
            response = await answer(models, request, entry, context.time_remaining())
            code = grpc.StatusCode.OK
            return response
        except DecodeError:
            code, message = grpc.StatusCode.INVALID_ARGUMENT, f"The {len(body)} bytes are no {kind.__name__}."
        except Exception as failure:
            error = error_of(failure)
            code, message = error.code, str(error)
            if code == grpc.StatusCode.INTERNAL and not isinstance(failure, ServingError):
                log.event("failed", method=entry.method, model=entry.model, error=place_of(failure))
        finally:
            log.request(entry, code.name, models.names)
        await context.abort(code, message)

    return grpc.unary_unary_rpc_method_handler(handle, None, lambda response: response.SerializeToString())


async def start_grpc(models, log, address):
    """A started grpc.aio server and its port; that of the address is 0 for any that is free. Raises OSError if the port
    is taken."""
    options = [
        ("grpc.max_receive_message_length", models.limits.max_body_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # a second server on the same port must fail, not share it
    ]
    server = grpc.aio.server(options=options)
    for service, methods in SERVICES.items():
        handlers = {name: handler(models, log, *method) for name, method in methods.items()}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen on {address} ({error}): give another --grpc_port.") from None
    await server.start()
    return server, port
