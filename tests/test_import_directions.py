import ast
import os
import pathlib
import subprocess
import sys

import keras
import pytest

PACKAGE = pathlib.Path(__file__).parents[1] / "keras_bert_impl"
# A module imports only from its own folder or file and from what comes before it in this list.
ORDER = (
    "startup",
    "features",
    "kernels",
    "distribution",
    "json_files",
    "console",
    "corpora",
    "tokenizers",
    "configurations",
    "batching",
    "layers",
    "losses",
    "embedding_losses",
    "embedding_metrics",
    "optimization",
    "checkpoints",
    "callbacks",
    "encoders",
    "models",
    "tasks",
    "preprocessing",
    "export",
    "training",
    "commands",
    "cli",
    "__main__",
)
MAY_IMPORT_TENSORFLOW = ("startup", "preprocessing", "export", "training", "commands")
# These import a backend only if it is in use.
OF_BACKENDS = [
    *(PACKAGE / "kernels").glob("*.py"),
    *(PACKAGE / "distribution").glob("*.py"),
    PACKAGE / "commands" / "plan_tpu.py",  # the TPU compiler is JAX's
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


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of the source alone: once is enough")
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_stands_above_it(path):
    assert place_of(path) in ORDER, f"{place_of(path)} has no place in the order yet"
    for name in imported_names(path):
        package, *rest = name.split(".")
        if package == "keras_bert_impl":
            assert ORDER.index(rest[0]) <= ORDER.index(place_of(path)), f"{path} imports {name}"


def test_everything_in_the_order_is_there():
    assert set(ORDER) == {place_of(path) for path in MODULES}


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of the source alone: once is enough")
@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_names_a_backend_where_all_three_run(path):
    if place_of(path) not in MAY_IMPORT_TENSORFLOW and path not in (TF1_READER, *OF_BACKENDS):
        assert not BACKENDS & {name.split(".")[0] for name in imported_names(path)}


WITHOUT_TENSORFLOW = """
import importlib.machinery
import sys

class WithoutTensorFlow(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, *arguments):
        blocked = name.split(".")[0] in ("tensorflow", "tensorflow_text")
        return None if blocked else super().find_spec(name, *arguments)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = WithoutTensorFlow

import numpy as np
import keras_bert_impl as kbi

config = kbi.BertConfig(
    vocabulary_size=11, hidden_size=6, num_layers=1, num_heads=2, intermediate_size=7, max_length=5
)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on".split()
classifier = kbi.TextClassifier(kbi.BertEncoder(config), 2, tokenizer=kbi.WordPieceTokenizer(words))
classifier.fit(["the cat sat", "the dog"], np.array([0, 1]), verbose=0)

pretrainer = kbi.Pretrainer(kbi.BertEncoder(config))
pretrainer.compile(optimizer=kbi.optimization.BertAdamW(1e-3))
inputs = {**classifier.rows(["the cat sat", "the dog"]), "mask_positions": np.array([[1], [2]])}
labels = {
    "mask_ids": np.array([[5], [7]]),
    "mask_weights": np.ones((2, 1), "float32"),
    "next_sentence_labels": np.array([0, 1]),
}
pretrainer.fit(inputs, labels, verbose=0)
for model in (classifier, pretrainer):
    assert int(model.optimizer.iterations) == 1
assert "tensorflow" not in sys.modules
"""


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="about the backends that need no TensorFlow")
def test_raw_texts_and_pretraining_run_without_tensorflow():
    environment = {**os.environ, "KERAS_BACKEND": keras.backend.backend()}
    subprocess.run([sys.executable, "-c", WITHOUT_TENSORFLOW], env=environment, check=True, cwd=PACKAGE.parent)
