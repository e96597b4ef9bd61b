"""One version of a model while it is served, and what the page and the interfaces are told about a model."""

import dataclasses
import pathlib

from keras_bert_impl.serving.row_servable import RowServable
from keras_bert_impl.serving.servable import Servable
from keras_bert_impl.serving.versions import SAVED_MODEL
from keras_bert_impl.serving.warm_up import warm_up

# As ModelVersionStatus of TensorFlow Serving names them.
LOADING, AVAILABLE, UNLOADING, END = "LOADING", "AVAILABLE", "UNLOADING", "END"


@dataclasses.dataclass
class Version:
    """One version of a model, and what became of it."""

    number: int
    directory: str
    state: str = LOADING
    error: str = ""
    servable: Servable | RowServable | None = None
    files: tuple = ()  # as they were when it was loaded, or failed to
    in_use: int = 0  # requests being answered


@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """What a served model can be asked.

    Attributes:
        name, version: of the version that answers if none is named.
        versions: numbers of all versions that answer.
        signatures: `signatures.Signature` by name.
        metadata: what config.json beside the model holds; {} if there is none.
    """

    name: str
    version: int
    versions: tuple[int, ...]
    signatures: dict
    metadata: dict


def load_and_warm(name, number, directory, options):
    """A Servable, or for an export in another format a RowServable, that has answered its warm-up requests."""
    kind = Servable if (pathlib.Path(directory) / SAVED_MODEL).is_file() else RowServable
    servable = kind(name, number, directory, options)
    try:
        warm_up(servable)
    except BaseException:
        servable.close()
        raise
    return servable
