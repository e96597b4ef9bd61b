import ast
import pathlib
import re

from tiers import once

pytestmark = once

ROOT = pathlib.Path(__file__).parents[1]
LIBRARY = ROOT / "keras_bert_impl"
# A package imports only itself and the packages before it.
PACKAGES = {
    "keras_bert_impl": LIBRARY,
    "keras_bert_serving": ROOT / "serving" / "keras_bert_serving",
    "keras_bert_training": ROOT / "training" / "keras_bert_training",
}
# A module of the library imports only from its own folder or file and from what comes before it in this list.
ORDER = (
    "startup",
    "suggestions",
    "features",
    "device_options",
    "process_group",
    "json_files",
    "console",
    "user_warnings",
    "quiet_tensorflow",
    "text.corpora",
    "text.ragged",
    "text.tokenizers",
    "text.rows",
    "kernels",
    "distribution",
    "layers",
    "losses",
    "metrics",
    "embedding_losses",
    "embedding_metrics",
    "optimization",
    "configurations",
    "checkpoints",
    "batching",
    "preprocessing.graphs",
    "preprocessing",
    "retrieval",
    "callbacks",
    "encoders",
    "models",
    "plots",
    "export",
)
# These import a backend only if it is in use, or are themselves imported only then.
MAY_NAME_A_BACKEND = (
    "startup",
    "quiet_tensorflow",
    "kernels",
    "distribution",
    "export",
    "preprocessing.graphs",
    "callbacks.sharded_state",  # of JAX's arrays
    "checkpoints.google",  # imported where such a checkpoint is opened
)
BACKENDS = {"tensorflow", "tensorflow_text", "torch", "jax"}


def modules_of(package):
    """(name without the package's, path) of each module but the package itself."""
    base = PACKAGES[package]
    for path in sorted(base.rglob("*.py")):
        if path != base / "__init__.py":
            yield ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"), path


def place_of(name):
    """The place in ORDER that a module or name of the library is in; None for the package or a folder of places."""
    found = [place for place in ORDER if f"{name}.".startswith(f"{place}.")]
    return max(found, key=len, default=None)


def imported_names(path):
    """Every module or name that a file imports, anywhere in it, in full."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_package_imports_only_those_before_it():
    for place, package in enumerate(PACKAGES):
        after = [*PACKAGES][place + 1 :]
        for _, path in modules_of(package):
            named = {name.split(".")[0] for name in imported_names(path)}
            assert not named & {*after, "tests", "studies", "benchmarks"}, path


def test_a_module_imports_only_what_stands_above_it():
    against = []
    for module, path in modules_of("keras_bert_impl"):
        place = place_of(module)
        assert place or module == "text", f"{path}: {module} has no place in the order yet"
        for name in imported_names(path):
            package, _, rest = name.partition(".")
            used = place_of(rest)
            if package == "keras_bert_impl" and place and used and ORDER.index(used) > ORDER.index(place):
                against.append(f"{path} imports {name}")
    assert not against


def test_everything_in_the_order_is_there():
    assert set(ORDER) == {place_of(module) for module, _ in modules_of("keras_bert_impl")} - {None}


def test_the_way_from_text_to_loss_in_the_guide_is_there():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    way = re.findall(r"^\d+\. `([\w/]+)\.py`", guide, re.MULTILINE)
    assert way[0] == "training/keras_bert_training/data_preparation" and way[-1] == "keras_bert_impl/losses"
    for module in way:
        assert (ROOT / f"{module}.py").is_file(), module


def test_no_module_names_a_backend_where_all_three_run():
    for module, path in modules_of("keras_bert_impl"):
        if not f"{module}.".startswith(tuple(f"{place}." for place in MAY_NAME_A_BACKEND)):
            named = BACKENDS & {name.split(".")[0] for name in imported_names(path)}
            assert not named, f"{path} imports {named}"
