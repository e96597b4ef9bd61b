"""Bytes that are no message are refused as any other request: grpcio would print a traceback for each."""

import grpc
from google.protobuf.message import DecodeError

from keras_bert_impl.serving.errors import invalid


class MessageParser(grpc.aio.ServerInterceptor):
    """Parses the messages in place of grpcio.

    Args:
        services: grpc_services.Services, which counts and answers the refusals.
    """

    def __init__(self, services):
        self._services = services

    async def intercept_service(self, continuation, details):
        """The handler of a method, which takes bytes; None if there is no such method."""
        handler = await continuation(details)
        if handler is None or handler.unary_unary is None:
            return handler
        method = details.method.rpartition("/")[-1]

        async def answer(body, context):
            try:
                request = handler.request_deserializer(body)
            except DecodeError:
                async with self._services.answering(context, method, ""):
                    raise invalid(f"The {len(body)} bytes of the request are no message that {method} takes.") from None
            return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(answer, None, handler.response_serializer)
