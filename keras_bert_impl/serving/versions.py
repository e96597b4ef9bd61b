"""Which versions of a model its directory holds, and which of them are to be served."""

import dataclasses
import pathlib

SAVED_MODEL = "saved_model.pb"
# A version is written completely once one of these is there: an export is renamed when it is whole.
LARGEST_VERSION = 2**63 - 1
MAIN_FILES = (SAVED_MODEL, "openvino_model.xml", "model.onnx")


@dataclasses.dataclass(frozen=True)
class ServedModel:
    """A model to serve.

    Args:
        name: in the address of requests.
        directory: holds a directory for each version, named by a number, as TensorFlow Serving has it; or is itself a
            SavedModel or another export, which is then version 1.
        latest: how many of the highest versions to serve; 0 means all.
        only: these versions and no others, if any are given.
        labels: version by label.
    """

    name: str
    directory: str
    latest: int = 1
    only: tuple[int, ...] = ()
    labels: dict[str, int] = dataclasses.field(default_factory=dict)


def versions_in(directory):
    """The directory of each version in a model's directory, by number; of versions that are written completely."""
    directory = pathlib.Path(directory)
    if holds_model(directory):
        return {1: directory}
    try:
        numbered = (path for path in directory.iterdir() if path.name.isascii() and path.name.isdigit())
        # Clients give a version as a 64-bit number: a larger one could not be asked.
        found = {int(path.name): path for path in numbered if int(path.name[:20]) <= LARGEST_VERSION}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {number: path for number, path in sorted(found.items()) if holds_model(path)}


def holds_model(directory):
    """Whether a directory holds a model in a format that is served."""
    return any((directory / name).is_file() for name in MAIN_FILES)


def wanted_versions(model):
    """The directories of the versions that are to be served, by number."""
    found = versions_in(model.directory)
    if model.only:
        return {number: path for number, path in found.items() if number in model.only}
    return dict(list(found.items())[-model.latest :])


def fingerprint(directory):
    """Names, sizes and times of all files of a version: what fails to load is tried again when it changes."""
    found = []
    for path in sorted(pathlib.Path(directory).rglob("*")):
        try:
            state = path.stat()
        except FileNotFoundError:  # removed in between
            continue
        found.append((str(path), state.st_size, state.st_mtime_ns))
    return tuple(found)


def parse_model(argument):
    """The ServedModel of NAME=DIR. Raises ValueError."""
    name, equals, directory = argument.partition("=")
    if not (name and equals and directory) or "/" in name or ":" in name:
        raise ValueError(f"--model {argument}: expected NAME=DIR, with a name without / and :.")
    return ServedModel(name, directory)


def read_model_config_file(path):
    """The ServedModels of a file in TensorFlow Serving's format (ModelServerConfig as text). Raises ValueError."""
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    try:
        text_format.Parse(pathlib.Path(path).read_text(encoding="utf-8"), config)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no ModelServerConfig of TensorFlow Serving: {error}.") from None
    return models_of_config(config)


def models_of_config(config):
    """The ServedModels of a ModelServerConfig message. Raises ValueError."""
    models = []
    for entry in config.model_config_list.config:
        policy = entry.model_version_policy
        kind = policy.WhichOneof("policy_choice") or "latest"
        latest = {"latest": policy.latest.num_versions or 1, "all": 0, "specific": 0}[kind]
        if not entry.name or not entry.base_path:
            raise ValueError("Each config of a model_config_list needs a name and a base_path.")
        models.append(
            ServedModel(
                entry.name, entry.base_path, latest, tuple(policy.specific.versions), dict(entry.version_labels)
            )
        )
    if not models:
        raise ValueError("The model_config_list is empty.")
    check_names(models)
    return models


def check_names(models):
    """Raises ValueError if two models have one name."""
    names = [model.name for model in models]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Two models are named {', '.join(twice)}: names must differ.")
