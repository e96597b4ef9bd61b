"""The default corpus: the docstrings of installed Python packages, about 6 MB of English.

Packages are read, never imported: `importlib.util.find_spec` locates their folder and `ast` finds the docstrings.
Half of the 12 MB of docstrings (Python 3.11, NumPy 2.4, TensorFlow 2.21, Keras 3.15) consist of examples, signatures,
types and repetitions, which are left out.
"""

import ast
import importlib.util
import itertools
import logging
import pathlib
import sysconfig
import warnings

from keras_bert_impl.text.corpora.docstring_prose import prose_paragraphs
from keras_bert_impl.text.corpora.document import Document

STANDARD_LIBRARY = "python"
DEFAULT_PACKAGES = (STANDARD_LIBRARY, "numpy", "tensorflow", "keras")

# Skipped: installed packages inside the standard library's folder, tests (their docstrings are titles), programs, and
# second copies. tensorflow/_api and keras/_tf_keras only re-export; tensorflow/python/keras is an old Keras whose
# docstrings differ from those of today by a few words.
SKIPPED_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "turtledemo"}
    | {"_vendor", "_bundled", "vendored", "_api", "_tf_keras"}
)
SKIPPED_PATHS = frozenset({"tensorflow/python/keras"})

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

logger = logging.getLogger(__name__)


class PythonDocsCorpus:
    """Docstrings of packages as documents: one module is one document, its dotted name the document's name.

    A sentence that occurs several times in the corpus is kept only where it occurs first, in the order of packages and
    paths, so that no sentence is in both a training and a test document. Leaving out repeated paragraphs would not be
    enough: 5 % of the test sentences of eight or more words would then also be in a training document.
    Every iteration reads the files again and yields the same documents in the same order on the same installation.

    Args:
        packages: top-level package names, each the `source` of its documents; "python" is the standard library.

    Attributes:
        duplicate_sentences: number of repeated sentences that the last iteration left out.

    Raises: ValueError if none of the packages is installed; a package that is missing is named in a warning.
    """

    def __init__(self, packages=DEFAULT_PACKAGES):
        roots = {package: _package_root(package) for package in packages}
        missing = [package for package, root in roots.items() if root is None]
        if len(missing) == len(roots):
            raise ValueError(
                f"None of the packages {', '.join(packages) or '(no name given)'} is installed with its source. "
                "Install one of them, or give a path to text files."
            )
        if missing:
            warnings.warn(f"Packages that are not installed are skipped: {', '.join(missing)}.", stacklevel=2)
        self.roots = {package: root for package, root in roots.items() if root is not None}
        self.duplicate_sentences = 0

    def pieces(self, piece_bytes):
        """[self], one piece: whether a sentence occurs for the first time depends on all packages."""
        return [self]

    def __iter__(self):
        self.duplicate_sentences = 0
        seen = set()
        for package, root in self.roots.items():
            for path in module_files(root):
                sentences = self._new_sentences(path, seen)
                if sentences:
                    yield Document(_module_name(package, root, path), package, sentences)
        logger.info("Python docstrings: %d repeated sentences were left out.", self.duplicate_sentences)

    def _new_sentences(self, path, seen):
        found = []
        for docstring in docstrings(path.read_bytes()):
            for sentence in itertools.chain.from_iterable(prose_paragraphs(docstring)):
                key = sentence.lower()
                if key in seen:
                    self.duplicate_sentences += 1
                else:
                    seen.add(key)
                    found.append(sentence)
        return found


def module_files(root):
    """Python files under a folder in sorted order, without tests, vendored packages and re-exporting copies."""
    for path in sorted(root.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS and not path.as_posix().endswith(tuple(SKIPPED_PATHS)):
                yield from module_files(path)
        elif path.suffix == ".py":
            yield path


def docstrings(source):
    """Docstrings of a module and of its classes and functions, in the order they are written.

    Args:
        source: bytes of a Python file. A file with Python 2 syntax or a broken encoding, such as some templates in
            the standard library, gives no docstrings.
    """
    if b'"""' not in source and b"'''" not in source:
        return  # parsing takes most of the time, and one-line docstrings in single quotes are rarely prose
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like in other people's source
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    unread = [tree]
    while unread:
        node = unread.pop()
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node)):
            yield docstring
        # Only statements can hold definitions; walking expressions too takes six times as long.
        blocks = (getattr(node, block, ()) for block in ("body", "handlers", "orelse", "finalbody"))
        unread += reversed([statement for block in blocks for statement in block])


def _package_root(package):
    if package == STANDARD_LIBRARY:
        root = pathlib.Path(sysconfig.get_path("stdlib"))
        return root if root.is_dir() else None
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return pathlib.Path(next(iter(spec.submodule_search_locations)))


def _module_name(package, root, path):
    parts = list(path.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts if package == STANDARD_LIBRARY else [package, *parts])
