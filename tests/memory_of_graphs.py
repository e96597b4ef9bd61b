"""The memory that TensorFlow needs to cut texts in a graph."""

import pathlib

import pytest
import tensorflow as tf


def check_memory(cut):
    """Asserts that a function of texts makes no array of all texts times the longest: of 4,000 short ones beside one of
    120,000 characters, such an array of bytes alone has 480 MB."""
    if not pathlib.Path("/proc/self/clear_refs").exists():
        pytest.skip("memory is read as Linux tells it")
    texts = tf.constant(["ab " * 40_000, *["\u4e00"] * 4000])
    cut(texts[:2])
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forgets the highest value so far
    before = resident("VmRSS")
    cut(texts)
    assert resident("VmHWM") - before < 200e6


def resident(name):
    """Bytes of this process in memory: "VmRSS" now, "VmHWM" at most."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(name)))
