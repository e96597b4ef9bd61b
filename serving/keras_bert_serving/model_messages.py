"""What the server says about its models, as the messages of TensorFlow Serving."""

from google.protobuf import json_format
from grpc import StatusCode
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from keras_bert_serving.errors import ServingError

SIGNATURE_DEF = "signature_def"


def status(models, name, version=None):
    """The GetModelStatusResponse about a model, or one version of it. Raises ServingError."""
    response = get_model_status_pb2.GetModelStatusResponse()
    try:
        number, state = models.find(name, version).version, "AVAILABLE"
    except ServingError as error:
        if error.code != StatusCode.UNAVAILABLE:
            raise
        number, state = version or 0, "LOADING"
    found = response.model_version_status.add(
        version=number, state=get_model_status_pb2.ModelVersionStatus.State.Value(state)
    )
    found.status.error_code = 0
    return response


def signature_map(servable):
    """The SignatureDefMap of a servable."""
    found = get_model_metadata_pb2.SignatureDefMap()
    for name, definition in servable.signature_defs.items():
        found.signature_def[name].CopyFrom(definition)
    return found


def as_json(message):
    """A message as a JSON object. A field at its default is printed, too: "error_code": "OK"."""
    return json_format.MessageToDict(
        message, always_print_fields_with_no_presence=True, preserving_proto_field_name=True
    )
