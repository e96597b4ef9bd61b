"""The gRPC interface: PredictionService and ModelService of TensorFlow Serving, with its messages."""

import contextlib

import grpc
from tensorflow_serving.apis import model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc

from keras_bert_impl.serving import model_messages
from keras_bert_impl.serving.errors import ServingError, error_of, invalid, place_of
from keras_bert_impl.serving.grpc_parsing import MessageParser
from keras_bert_impl.serving.request_log import RequestEntry
from keras_bert_impl.serving.rest import away_if_large
from keras_bert_impl.serving.signatures import find_signature
from keras_bert_impl.serving.tensor_messages import arrays_of_messages, message_of_array


class Services:
    """What both services share: how a call is checked, answered, counted and refused.

    Args:
        manager: ModelManager.
        log: RequestLog.
        keys: ApiKeys.
    """

    def __init__(self, manager, log, keys):
        self.manager, self.log, self.keys = manager, log, keys

    @contextlib.asynccontextmanager
    async def answering(self, context, method, model):
        """Checks the key before the block, and turns what it raises into a gRPC status; yields a RequestEntry."""
        entry = RequestEntry("grpc", method, model)
        status = grpc.StatusCode.CANCELLED
        try:
            self.keys.check(dict(context.invocation_metadata() or ()))
            yield entry
            status = grpc.StatusCode.OK
        except Exception as failure:
            error = error_of(failure)
            status = error.code
            if status == grpc.StatusCode.INTERNAL and not isinstance(failure, ServingError):
                self.log.event("failed", method=method, model=entry.model, error=place_of(failure))
            await context.abort(status, str(error))
        finally:
            self.log.request(entry, status.name, self.manager.names)

    def using(self, spec):
        """The servable that a ModelSpec message names; see `ModelManager.using`."""
        return self.manager.using(spec.name, *version_of(spec))


def version_of(spec):
    """The version number and the label in a ModelSpec message, None or "" where there is none."""
    choice = spec.WhichOneof("version_choice")
    return spec.version.value if choice == "version" else None, spec.version_label if choice == "version_label" else ""


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Asks models."""

    def __init__(self, services):
        self._services, self._manager = services, services.manager

    async def Predict(self, request, context):
        """Tensors to tensors, by name."""
        async with self._services.answering(context, "predict", request.model_spec.name) as entry:
            with self._services.using(request.model_spec) as servable:
                signature = find_signature(servable, request.model_spec.signature_name)
                wanted = wanted_outputs(request.output_filter, signature)
                most = self._manager.limits.max_body_bytes
                inputs = arrays_of_messages(request.inputs, signature, most)
                entry.answered_by(servable, signature.name, inputs)
                outputs = await self._manager.ask(servable, inputs, signature.name, context.time_remaining())
                response = predict_pb2.PredictResponse()
                fill_spec(response.model_spec, servable, signature.name)
                messages = await away_if_large(outputs, lambda: [message_of_array(outputs[name]) for name in wanted])
                for name, message in zip(wanted, messages, strict=True):
                    response.outputs[name].CopyFrom(message)
                return response

    async def GetModelMetadata(self, request, context):
        """The signatures of a model."""
        async with self._services.answering(context, "metadata", request.model_spec.name):
            model_messages.check_metadata_fields(request.metadata_field)
            with self._services.using(request.model_spec) as servable:
                return model_messages.metadata_message(servable)


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """Says which versions answer."""

    def __init__(self, services):
        self._services, self._manager = services, services.manager

    async def GetModelStatus(self, request, context):
        """The state of each version."""
        spec = request.model_spec
        async with self._services.answering(context, "status", spec.name):
            return model_messages.status_message(self._manager.statuses(spec.name, *version_of(spec)))


def fill_spec(spec, servable, signature_name):
    """Writes into a ModelSpec message who answered."""
    spec.name, spec.signature_name = servable.name, signature_name or "serving_default"
    spec.version.value = servable.version


def wanted_outputs(names, signature):
    """The outputs that a request asks for; all, if it names none. Raises ServingError."""
    for name in names:
        if name not in signature.outputs:
            raise invalid(
                f"output tensor alias not found in signature: {name}; signature {signature.name} has "
                f"{', '.join(sorted(signature.outputs))}."
            )
    return list(dict.fromkeys(names)) or list(signature.outputs)


async def start_grpc(services, address, credentials=None, most_bytes=4 * 2**20):
    """A started grpc.aio server and its port.

    Args:
        services: Services.
        address: host and port; port 0 means any that is free.
        credentials: grpc.ServerCredentials, or None for no TLS.
        most_bytes: largest message that is accepted.

    Raises: OSError if the port is taken.
    """
    options = [
        ("grpc.max_receive_message_length", most_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # a second server on the same port must fail, not share it
    ]
    server = grpc.aio.server(options=options, interceptors=[MessageParser(services)])
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(PredictionService(services), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(ModelService(services), server)
    try:
        port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen on {address}: {error}") from None
    await server.start()
    return server, port
