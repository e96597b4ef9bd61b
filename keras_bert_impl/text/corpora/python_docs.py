"""The default corpus: the docstrings of installed Python packages, about 5 MB of English sentences.

Packages are read, never imported: `importlib.util.find_spec` locates their folder.
"""

import importlib.util
import pathlib
import re
import sysconfig
import warnings

from keras_bert_impl.text.corpora.document import Document
from keras_bert_impl.text.corpora.sentences import split_sentences

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

TRIPLE_QUOTED = re.compile(r'("""|\'\'\')(.*?)\1', re.DOTALL)
FENCED = re.compile(r"```.*?```", re.DOTALL)
DOCTEST = re.compile(r"^\s*>>>.*", re.DOTALL | re.MULTILINE)
# What begins a line with another thought than the line before: a bullet, a number, a parameter and its type, or a
# section such as "Returns:". Lines without a letter are underlines.
LINE_START = re.compile(
    r"^(?:\s*(?:[-*+•#]+|\(?\d{1,2}[.)]|:[^:\n]+:|\*{0,2}`{0,2}[\w.]+`{0,2}(?: \([^)\n]*\))?:)(?=\s)"
    r"|\s*\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)* :\s.*$|[^A-Za-z\n]*$)",
    re.MULTILINE,
)
MARKUP = re.compile(r":[\w:+-]+:(?=`)|`~?|(?<!\w)\*+(?=\w)|(?<=\w)\*+(?!\w)")
# Words and a mark at the end, with nothing that code, tables and directives are made of; the function word tells a
# sentence from a list of names.
SENTENCE = re.compile(
    r"""(?=.*\b(?i:the|an?|is|are|be|of|to|in|for|if|that|this|with|from|on|by|or|and|as|not|it)\b)"""
    r"""(?!.*(?:\w\([^)]|__|--|\.\.|::))[A-Za-z][\w ,;:'"()/.-]*[\w)]["')]?[.!?]["')]?"""
)


class PythonDocsCorpus:
    """The docstrings of installed packages as documents, one for each module: a corpus that needs no download.

    Only whole sentences of plain words are kept. Each is kept only where it first occurs, so that no sentence is in
    both a training and a test document. Every iteration reads the files again, and gives the same documents in the same
    order on the same installation.

    Args:
        packages (list of str, optional): names of packages, each the `source` of its documents; "python" is the
            standard library. Default: python, numpy, tensorflow and keras.

    Raises: ValueError if none of the packages is installed; a warning names missing ones.
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

    def pieces(self, piece_bytes):
        """[self], one piece: whether a sentence occurs for the first time depends on all packages."""
        return [self]

    def __iter__(self):
        seen = set()
        for package, root in self.roots.items():
            for path in module_files(root):
                sentences = []
                for sentence in sentences_of(path.read_text(encoding="utf-8", errors="replace")):
                    if (key := sentence.lower()) not in seen:
                        seen.add(key)
                        sentences.append(sentence)
                if sentences:
                    yield Document(_module_name(package, root, path), package, sentences)


def module_files(root):
    """Python files under a folder in sorted order, without tests, vendored packages and re-exporting copies."""
    for path in sorted(root.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS and not path.as_posix().endswith(tuple(SKIPPED_PATHS)):
                yield from module_files(path)
        elif path.suffix == ".py":
            yield path


def sentences_of(source):
    """The English sentences in the strings of a Python file with three quotation marks, in order.

    Whatever is not a whole sentence of plain words is left out: examples, signatures, tables, headings, types.
    """
    for _, text in TRIPLE_QUOTED.findall(source):
        for block in re.split(r"\n\s*\n", FENCED.sub("\n\n", text)):
            for part in LINE_START.split(DOCTEST.sub("", block)):
                found = split_sentences(MARKUP.sub("", part))
                yield from (sentence for sentence in found if SENTENCE.fullmatch(sentence))


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
