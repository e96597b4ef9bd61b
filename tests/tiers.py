"""On which backends a test runs, and in which of the two tiers: `make test` or only `make test-all`.

A test without a mark runs on torch in `make test`. `make test-all` runs it on all three backends if its folder is about
what a backend computes, or if it is marked `three_in_full`. `pytest.mark.full` leaves a test to `make test-all`, and
`full_on` on some backends alone.
"""

import os

import pytest

BACKENDS = ("tensorflow", "jax", "torch")
# Folders whose unmarked tests `make test-all` runs on all three.
NUMERICAL = {"callbacks", "distribution", "encoders", "export", "kernels", "layers", "models"}


def on(*backends):
    """Mark of a test that runs on these backends alone, in both tiers."""
    return pytest.mark.on(*backends)


# What must hold on all three: layers, kernels, losses, optimizers, and a few tests of each model.
every_backend = on(*BACKENDS)
# The same, but on torch alone in `make test`.
three_in_full = pytest.mark.three_in_full
# What computes nothing with a backend, in a numerical folder. torch starts fastest.
once = on("torch")


def full_on(*backends):
    """Mark of a test that these backends leave to `make test-all`: JAX and TensorFlow may compile for long."""
    return pytest.mark.full_on(*backends)


def runs_here(item, backend, full):
    """Whether pytest runs a collected test on a backend, in `make test` or, with `full`, in `make test-all`."""
    left_to_full = {one for mark in item.iter_markers("full_on") for one in mark.args}  # of a test and of its case
    if not full and (item.get_closest_marker("full") or backend in left_to_full):
        return False
    is_numerical = NUMERICAL.intersection(item.location[0].split(os.sep)) or item.get_closest_marker("three_in_full")
    return backend in _arguments_of("on", item, BACKENDS if full and is_numerical else ("torch",))


def full_but(cases, *first, on=BACKENDS):
    """The cases of a parametrized test, of which `make test` runs only `first` on these backends."""
    mark = pytest.mark.full if on == BACKENDS else full_on(*on)
    return [case if case in first else pytest.param(*_arguments(case), marks=mark) for case in cases]


def _arguments_of(name, item, otherwise):
    mark = item.get_closest_marker(name)
    return mark.args if mark else otherwise


def _arguments(case):
    return case if isinstance(case, tuple) else (case,)
