import ast
import pathlib
import re

from tiers import once

pytestmark = once

PACKAGE = pathlib.Path(__file__).parents[1] / "keras_bert_impl"
# A module imports only from its own folder or file and from what comes before it in this list.
ORDER = (
    "startup",
    "misspelt",
    "features",
    "options",
    "kernels",
    "distribution",
    "process_group",
    "json_files",
    "console",
    "user_warnings",
    "corpora",
    "tokenizers",
    "text_graphs",
    "preprocessing",
    "batching",
    "layers",
    "losses",
    "metrics",
    "embedding_losses",
    "embedding_metrics",
    "optimization",
    "natural_data",
    "configurations",
    "checkpoints",
    "resume",
    "callbacks",
    "model_methods",
    "encoders",
    "families",
    "models",
    "plots",
    "tasks",
    "export",
    "serving",
    "page",
    "training",
    "commands",
    "cli",
    "__main__",
)
MAY_IMPORT_TENSORFLOW = ("startup", "export", "serving", "commands")
# These import a backend only if it is in use, or are themselves imported only then.
OF_BACKENDS = [
    PACKAGE / "preprocessing" / "beam_storage.py",
    PACKAGE / "text_graphs" / "quiet_tensorflow.py",
    PACKAGE / "text_graphs" / "sentence_pieces.py",
    PACKAGE / "text_graphs" / "character_strings.py",
    PACKAGE / "text_graphs" / "wordpiece.py",
    PACKAGE / "text_graphs" / "byte_pairs.py",
    PACKAGE / "text_graphs" / "character_pairs.py",
    *(PACKAGE / "kernels").rglob("*.py"),
    *(PACKAGE / "distribution").glob("*.py"),
    PACKAGE / "resume" / "sharded_state.py",  # of JAX's arrays
    PACKAGE / "commands" / "compiled_program.py",  # the TPU compiler is JAX's
    PACKAGE / "commands" / "plan_tpu.py",
]
TF1_READER = PACKAGE / "checkpoints" / "google.py"  # imported where such a checkpoint is opened
BACKENDS = {"tensorflow", "tensorflow_text", "torch", "jax"}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def place_of(path):
    """The folder or file directly in the package that a module is in, or is itself."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_names(path):
    """Every module or name that a file imports, anywhere in it, in full."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_module_imports_only_what_stands_above_it():
    against = []
    for path in MODULES:
        assert place_of(path) in ORDER, f"{path}: {place_of(path)} has no place in the order yet"
        for name in imported_names(path):
            package, *rest = name.split(".")
            if package == "keras_bert_impl" and ORDER.index(rest[0]) > ORDER.index(place_of(path)):
                against.append(f"{path} imports {name}")
    assert not against


def test_everything_in_the_order_is_there():
    assert set(ORDER) == {place_of(path) for path in MODULES}


def test_the_way_from_text_to_loss_is_that_of_the_guide():
    """Each file of the list is imported by one before it; the two that begin are commands."""
    guide = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    way = re.findall(r"^\d+\. `([\w/]+)\.py`", guide, re.MULTILINE)
    assert way[0] == "training/data_preparation" and way[-1] == "losses"
    commands = {"training/data_preparation", "training/pretraining"}
    for place, module in enumerate(way):
        before = {name for path in way[:place] for name in imported_names(PACKAGE / f"{path}.py")}
        name = f"keras_bert_impl.{module.replace('/', '.')}"
        # A room's __init__ stands for its modules: `from keras_bert_impl.models import Pretrainer`.
        room = f"{name.rpartition('.')[0]}.Pretrainer" if module == "models/pretrainer" else name
        assert module in commands or any(one.startswith((name, room)) for one in before), module


def test_no_module_names_a_backend_where_all_three_run():
    for path in MODULES:
        if place_of(path) not in MAY_IMPORT_TENSORFLOW and path not in (TF1_READER, *OF_BACKENDS):
            named = BACKENDS & {name.split(".")[0] for name in imported_names(path)}
            assert not named, f"{path} imports {named}"
