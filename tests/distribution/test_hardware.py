"""What is known about the device that computes, and where compiled programs are kept."""

import keras
import pytest
from tiers import every_backend, on

from keras_bert_impl.distribution import hardware

pytestmark = every_backend

IS_JAX = keras.backend.backend() == "jax"


def test_a_cpu_is_no_accelerator_and_counts_no_memory():
    assert hardware.device_kind() == "cpu" and not hardware.has_accelerator() and hardware.peak_memory() is None


def test_the_most_used_device_counts(monkeypatch):
    if IS_JAX:
        import jax

        class Device:
            platform, device_kind = "tpu", "TPU v5 lite"

            def __init__(self, used):
                self.used = used

            def memory_stats(self):
                return {"peak_bytes_in_use": self.used} if self.used else None

        monkeypatch.setattr(jax, "local_devices", lambda: [Device(5), Device(7), Device(None)])
    elif keras.backend.backend() == "torch":
        import torch

        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: (5, 7)[device])
    else:
        pytest.skip("TensorFlow's devices cannot be replaced")
    assert hardware.device_kind() in ("TPU v5 lite", "NVIDIA H200") and hardware.peak_memory() == 7


@pytest.fixture
def cache():
    """Restores where JAX keeps its programs."""
    import jax

    before = jax.config.jax_compilation_cache_dir
    yield jax
    hardware.keep_compiled(before or "off")


@on("jax")
def test_what_is_compiled_is_kept_in_the_directory(cache, tmp_path):
    assert hardware.keep_compiled(str(tmp_path / "kept")) == str(tmp_path / "kept")
    cache.jit(lambda x: x * 3.5 + 1)(cache.numpy.ones(7)).block_until_ready()
    assert list((tmp_path / "kept").iterdir())


@on("jax")
def test_by_default_an_accelerator_keeps_programs_and_a_cpu_does_not(cache, monkeypatch):
    cache.config.update("jax_compilation_cache_dir", None)
    assert hardware.keep_compiled("auto") is None
    monkeypatch.setattr(hardware, "has_accelerator", lambda: True)
    monkeypatch.setenv("HOME", "/of/a/user")
    assert hardware.keep_compiled("auto") == "/of/a/user/.cache/keras_bert_impl/compiled"
    assert hardware.keep_compiled("off") is None and cache.config.jax_compilation_cache_dir is None
