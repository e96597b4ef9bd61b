"""On which backends a test runs, and in which of the two tiers: `make test` or only `make test-all`.

A test without a mark runs on torch in `make test`, and on all three backends in `make test-all`. `pytest.mark.full`
leaves a test to `make test-all`.
"""

import pytest

BACKENDS = ("tensorflow", "jax", "torch")


def on(*backends):
    """Mark of a test that runs on these backends alone, in both tiers."""
    return pytest.mark.on(*backends)


# What must hold on all three: layers, kernels, losses, optimizers, and a few tests of each model.
every_backend = on(*BACKENDS)
# What computes nothing with a backend: text, files, figures in NumPy. torch starts fastest.
once = on("torch")


def runs_here(item, backend, full):
    """Whether pytest runs a collected test on a backend, in `make test` or, with `full`, in `make test-all`."""
    if item.get_closest_marker("full") and not full:
        return False
    mark = item.get_closest_marker("on")
    return backend in (mark.args if mark else BACKENDS if full else ("torch",))


def full_but(cases, *first):
    """The cases of a parametrized test, of which `make test` runs only `first` and `make test-all` all."""
    return [case if case in first else pytest.param(*_arguments(case), marks=pytest.mark.full) for case in cases]


def _arguments(case):
    return case if isinstance(case, tuple) else (case,)
