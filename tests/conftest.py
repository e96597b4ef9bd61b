"""What all tests share: paths of real data, small configurations, and which tests run."""

import collections
import gc
import itertools
import os
import pathlib
import platform
import re
import zlib


def machine_type():
    """The processor of this machine: a program that was compiled for another may end with an illegal instruction."""
    described = pathlib.Path("/proc/cpuinfo")
    features = re.search(r"^(flags|Features)\b.*", described.read_text(), re.M) if described.exists() else None
    return f"{platform.machine()}-{zlib.crc32(features[0].encode() if features else b''):08x}"


# Set before Keras is imported. JAX compiles for seconds what a test computes in milliseconds: keep it on disk.
COMPILED = pathlib.Path(__file__).parents[1] / ".pytest_cache" / "jax" / machine_type()
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# One thread of torch and TensorFlow for each process: tests run side by side, and threads that wait for one another at
# every small operation made some of them ten times as slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import keras
import numpy as np
import pytest
from tiers import runs_here

REAL_DATA = pathlib.Path(__file__).parents[2] / "shared" / "data"
# Options for `compile`, since tracing a step of milliseconds takes TensorFlow seconds, and XLA more. Only JAX has to
# compile. test_fit_learns_from_texts and the pretrainer's tests check that all three train with the defaults.
QUICK_STEPS = {"jit_compile": True} if keras.backend.backend() == "jax" else {"run_eagerly": True}


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="all tests of this backend, as `make test-all` runs them")
    parser.addoption("--timings", help="file to write the seconds of each test to, the slowest first")


# XLA's optimizations for the CPU take a quarter of the time of a test that compiles.
QUICK_COMPILATION = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


def pytest_configure(config):
    """XLA compiles cheaply, also in processes that a test starts. It has read no flags so far."""
    flags = os.environ.get("XLA_FLAGS", "")
    if keras.backend.backend() == "jax" and QUICK_COMPILATION not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {QUICK_COMPILATION}".strip()


def pytest_collection_modifyitems(config, items):
    """Leaves the tests of this backend and tier; tests/tiers.py has the rule."""
    full, backend = config.getoption("--full"), keras.backend.backend()
    left_out = [item for item in items if not runs_here(item, backend, full)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if runs_here(item, backend, full)]


def pytest_terminal_summary(terminalreporter, config):
    """Writes the seconds of each test, its fixtures included, to the file of --timings."""
    if config.getoption("--timings"):
        seconds = collections.Counter()
        for report in itertools.chain(*terminalreporter.stats.values()):
            seconds[getattr(report, "nodeid", "")] += getattr(report, "duration", 0.0)
        lines = [f"{spent:8.2f}  {test}\n" for test, spent in seconds.most_common() if test]
        path = pathlib.Path(config.getoption("--timings"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{seconds.total():8.2f}  seconds in {len(lines)} tests\n{''.join(lines)}")


def pytest_collection_finish():
    """What importing made stays until the end: looking through it for garbage took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(7)


@pytest.fixture
def small_config():
    """Odd sizes, so that swapped axes fail: 2 layers, width 15, 3 heads, 53 words, at most 11 positions."""
    from keras_bert_impl import BertConfig

    return BertConfig(
        vocabulary_size=53, hidden_size=15, num_layers=2, num_heads=3, intermediate_size=21, max_length=11
    )


@pytest.fixture
def small_batch():
    """Two rows of seven tokens, the second with two tokens of padding, and three masked positions each."""
    random = np.random.default_rng(3)
    return {
        "token_ids": random.integers(5, 53, (2, 7)).astype("int32"),
        "segment_ids": np.array([[0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0]], "int32"),
        "padding_mask": np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]], "int32"),
        "mask_positions": np.array([[1, 3, 6], [2, 4, 0]], "int32"),
    }


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory):
    """Two files of real text, keras.txt and numpy.txt: forty documents each, of eight sentences at most."""
    from keras_bert_impl.text.corpora import PythonDocsCorpus

    folder = tmp_path_factory.mktemp("text")
    for package in ("keras", "numpy"):
        documents = itertools.islice(PythonDocsCorpus([package]), 40)
        text = "\n\n".join("\n".join(document.sentences[:8]) for document in documents)
        (folder / f"{package}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def command(monkeypatch):
    """Calls a script's main with these arguments, as the shell does; returns the message it exits with, or None."""
    from keras_bert_training.runs import main

    def call(config_class, run, *arguments):
        monkeypatch.setattr("sys.argv", ["script.py", *map(str, arguments)])
        try:
            main(config_class, run)
        except SystemExit as end:
            return end.code
        return None

    return call


@pytest.fixture
def bucket(tmp_path):
    """The environment in which gs://bucket is a folder, and this folder."""
    import stand_in_bucket

    (tmp_path / "buckets" / "bucket").mkdir(parents=True)
    server = stand_in_bucket.Server(tmp_path / "buckets")
    yield stand_in_bucket.environment(server.folder, server.server_port), server.folder / "bucket"
    server.shutdown()
    server.server_close()


@pytest.fixture
def without_chips(monkeypatch):
    """The TPU compiler as `keras-bert plan-tpu` starts it: without the lock that other processes would miss."""
    from keras_bert_training.cli import WITHOUT_CHIPS

    for name, value in WITHOUT_CHIPS.items():
        monkeypatch.setenv(name, value)


WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat ran on a mat in rain ##s ##ing . , red blue is good bad".split()


@pytest.fixture
def small_tokenizer():
    from keras_bert_impl import WordPieceTokenizer

    return WordPieceTokenizer(WORDS)


def revealing_config(tokenizer, **more):
    """A small BertConfig without dropout, with weights so large that texts and words differ in the outputs."""
    from keras_bert_impl import BertConfig

    sizes = {"hidden_size": 15, "num_layers": 1, "num_heads": 3, "intermediate_size": 21}
    rates = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0}
    return BertConfig(tokenizer.vocabulary_size, **sizes, **rates, **more)


def without(batch, *names):
    """The batch without some of its arrays."""
    return {name: array for name, array in batch.items() if name not in names}
