"""What the server says about its models, as the messages of TensorFlow Serving."""

from google.protobuf import json_format
from grpc import StatusCode
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from keras_bert_impl.serving.errors import invalid

SIGNATURE_DEF = "signature_def"


def status_message(versions):
    """The GetModelStatusResponse about a list of `model_manager.Version`."""
    response = get_model_status_pb2.GetModelStatusResponse()
    for version in versions:
        status = response.model_version_status.add(
            version=version.number, state=get_model_status_pb2.ModelVersionStatus.State.Value(version.state)
        )
        status.status.error_code = StatusCode.UNKNOWN.value[0] if version.error else 0
        status.status.error_message = version.error
    return response


def status_json(versions):
    """The same as a JSON object."""
    # A field at its default is printed, too: "error_code": "OK".
    return json_format.MessageToDict(
        status_message(versions), always_print_fields_with_no_presence=True, preserving_proto_field_name=True
    )


def metadata_message(servable):
    """The GetModelMetadataResponse with the signatures of a servable."""
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = servable.name
    response.model_spec.version.value = servable.version
    response.metadata[SIGNATURE_DEF].Pack(signature_map(servable))
    return response


def signature_map(servable):
    """The SignatureDefMap of a servable."""
    found = get_model_metadata_pb2.SignatureDefMap()
    for name, definition in servable.signature_defs.items():
        found.signature_def[name].CopyFrom(definition)
    return found


def metadata_json(servable):
    """The metadata as a JSON object, as TensorFlow Serving's REST interface has it."""
    signatures = json_format.MessageToDict(
        signature_map(servable), always_print_fields_with_no_presence=True, preserving_proto_field_name=True
    )
    spec = {"name": servable.name, "signature_name": "", "version": str(servable.version)}
    return {"model_spec": spec, "metadata": {SIGNATURE_DEF: signatures}}


def check_metadata_fields(fields):
    """Raises ServingError unless the fields asked for are those there are."""
    if not fields:
        raise invalid("GetModelMetadataRequest must specify at least one metadata_field.")
    for field in fields:
        if field != SIGNATURE_DEF:
            raise invalid(f"Metadata field {field} is not supported: expected {SIGNATURE_DEF}.")
