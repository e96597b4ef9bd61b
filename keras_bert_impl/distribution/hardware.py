"""The device that computes: its kind and memory, traces of what it does, and where its compiled programs are kept."""

import contextlib
import importlib.util
import os
import pathlib

import keras

# Where XLA's compiled programs are kept if nothing else is said.
COMPILED = "~/.cache/keras_bert_impl/compiled"


def device_kind():
    """What the maker calls the device: "TPU v5 lite", "NVIDIA H100 80GB HBM3"; "cpu" without an accelerator.

    JAX starts its devices when it is asked for them: call it only when processes and devices are set up.
    """
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        device = jax.local_devices()[0]
        return "cpu" if device.platform == "cpu" else device.device_kind
    if backend == "torch":
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    import tensorflow as tf

    if tf.config.list_logical_devices("TPU"):
        return "TPU"  # TensorFlow does not say which
    gpus = tf.config.list_physical_devices("GPU")
    return tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU") if gpus else "cpu"


def has_accelerator():
    """Whether a GPU or TPU computes."""
    return device_kind() != "cpu"


def peak_memory():
    """The most bytes of a device's memory that this process has used at once, on the device that used most; None on a
    CPU, which does not count them."""
    backend = keras.backend.backend()
    if not has_accelerator():
        return None
    if backend == "torch":
        import torch

        return max(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())))
    if backend == "jax":
        import jax

        stats = [device.memory_stats() or {} for device in jax.local_devices()]
        return max((found["peak_bytes_in_use"] for found in stats if "peak_bytes_in_use" in found), default=None)
    import tensorflow as tf

    names = [device.name.split("device:")[-1] for device in tf.config.list_logical_devices("GPU")]
    return max((tf.config.experimental.get_memory_info(name)["peak"] for name in names), default=None)


def check_tracing():
    """Raises ValueError where recording a profile would kill the process.

    JAX asks an installed libtpu for its part of a profile, also on a machine without a TPU; one that is newer than
    jaxlib, as `keras-bert plan-tpu` may have it, ends the process with a segmentation fault.
    """
    if keras.backend.backend() != "jax" or importlib.util.find_spec("libtpu") is None:
        return
    import jax

    kind = device_kind()
    if "tpu" in (jax.config.jax_platforms or "tpu") and not kind.startswith("TPU"):
        raise ValueError(
            f"A profile cannot be recorded: libtpu is installed, but JAX runs on {kind} and would crash. Set the "
            f"environment variable JAX_PLATFORMS={'cpu' if kind == 'cpu' else 'cuda'}, or uninstall libtpu."
        )


@contextlib.contextmanager
def traced(directory):
    """A context that writes a profile of everything that is computed within it into the directory.

    JAX and TensorFlow write files for TensorBoard's profile plugin (xprof), torch writes `trace.json`, which
    https://ui.perfetto.dev and chrome://tracing open.
    """
    directory, backend = pathlib.Path(directory), keras.backend.backend()
    directory.mkdir(parents=True, exist_ok=True)
    if backend == "torch":
        import torch

        with torch.profiler.profile() as profile:  # of every device that is there
            yield
        profile.export_chrome_trace(str(directory / "trace.json"))
        return
    if backend == "jax":
        import jax

        tracing = jax.profiler.trace(str(directory))
    else:
        import tensorflow as tf

        tracing = tf.profiler.experimental.Profile(str(directory))
    with tracing:
        yield


def keep_compiled(directory):
    """Keeps what XLA compiles for JAX in a directory, from which later processes take it: compiling the step of a large
    model takes minutes.

    Args:
        directory: a path, also gs://bucket/folder; "off" keeps nothing. "auto" means the environment variable
            JAX_COMPILATION_CACHE_DIR; without it COMPILED on an accelerator, and nothing on a CPU, whose programs may
            not run on another one.

    Returns: the directory; None if nothing is kept, as on the other backends.
    """
    if keras.backend.backend() != "jax":
        return None
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    given = jax.config.jax_compilation_cache_dir
    if directory == "auto":
        directory = given or (os.path.expanduser(COMPILED) if has_accelerator() else "off")
    directory = None if directory == "off" else directory
    if directory != given:
        jax.config.update("jax_compilation_cache_dir", directory)
        compilation_cache.reset_cache()  # it looks at the option only once
    return directory
