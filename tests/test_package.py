"""The wheel and the source archive: what they hold, and that the wheel works where nothing else of the tree is."""

import os
import pathlib
import shutil
import site
import subprocess
import sys
import zipfile

import pytest
from documentation import ROOT
from tiers import once

PACKAGES = (
    "keras_bert_impl",
    "training/keras_bert_training",
    "serving/keras_bert_serving",
)  # paths from the root, whose last part is the package's name
FILL_MASK = """
import keras_bert_impl as kbi
print(kbi.__file__, kbi.MaskedLM.from_pretrained("small_english").fill_mask("A [MASK].")[0][0].token)
"""


def files_in(directory):
    """The paths of all files in a directory, except those that Python compiled."""
    return {path.relative_to(directory) for path in directory.rglob("*") if path.is_file() and path.suffix != ".pyc"}


@once
@pytest.mark.full
def test_wheel_and_source_archive_hold_the_packages_alone_and_the_wheel_works_by_itself(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    outside.mkdir()
    for package in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    build = "from setuptools import build_meta as b; print(b.build_sdist('dist')); print(b.build_wheel('dist'))"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)

    (wheel,), (archive,) = (tree / "dist").glob("*.whl"), (tree / "dist").glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    with zipfile.ZipFile(wheel) as opened:
        in_wheel = {pathlib.Path(name) for name in opened.namelist() if ".dist-info/" not in name}
    in_tree = {
        pathlib.Path(place.name, path) for place in map(pathlib.Path, PACKAGES) for path in files_in(ROOT / place)
    }
    assert in_wheel == in_tree
    for place in PACKAGES:
        assert files_in(source / place) == files_in(ROOT / place)
    assert not [path for path in files_in(source) if "tests" in path.parts]

    # The dependencies are this environment's, of which no .pth file is read there: nothing of the tree is on the path.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", outside / "venv"], check=True)
    python = outside / "venv" / "bin" / "python"
    (packages,) = (outside / "venv").glob("lib/*/site-packages")
    install = ["-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run([sys.executable, *install], check=True, env=environment)
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    for command in ([python.with_name("keras-bert"), "--help"], [python, "-c", FILL_MASK]):
        done = subprocess.run(command, cwd=outside, env=environment, capture_output=True, text=True, check=True)
    place, word = done.stdout.split()
    assert place.startswith(str(packages)) and word.isalpha()
