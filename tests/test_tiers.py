"""The marks of tests/tiers.py decide on which backends and in which tier a test runs."""

import pytest
from tiers import BACKENDS, every_backend, full_but, full_on, on, once, runs_here, three_in_full

pytestmark = once


class Item:
    """A collected test with these marks, in a folder."""

    def __init__(self, marks, folder):
        self.marks, self.location = marks, (f"tests/{folder}/test_one.py", 1, "")

    def iter_markers(self, name):
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)


def backends_of(*marks, full, folder="layers"):
    return [backend for backend in BACKENDS if runs_here(Item(marks, folder), backend, full)]


ALL = list(BACKENDS)


@pytest.mark.parametrize(
    ("marks", "quick", "full"),
    [
        ((), ["torch"], ALL),
        ((once,), ["torch"], ["torch"]),
        ((every_backend,), ALL, ALL),
        ((on("jax"),), ["jax"], ["jax"]),
        ((pytest.mark.full,), [], ALL),
        ((pytest.mark.full, on("jax")), [], ["jax"]),
        ((every_backend, full_on("tensorflow", "jax")), ["torch"], ALL),
        ((full_on("torch"),), [], ALL),
    ],
)
def test_marks_choose_backends_in_make_test_and_make_test_all(marks, quick, full):
    assert backends_of(*marks, full=False) == quick
    assert backends_of(*marks, full=True) == full


def test_what_computes_nothing_runs_on_torch_alone_unless_its_mark_says_otherwise():
    assert backends_of(full=True, folder="text") == backends_of(pytest.mark.full, full=True, folder="text") == ["torch"]
    assert backends_of(three_in_full, full=True, folder="text") == ALL
    assert backends_of(three_in_full, full=False, folder="text") == ["torch"]


@pytest.mark.parametrize(("backends", "quick"), [({}, []), ({"on": ("tensorflow", "jax")}, ["torch"])])
def test_cases_that_are_not_named_are_left_to_make_test_all_on_these_backends(backends, quick):
    first, *others = full_but([1, (2, 3), 4], 1, **backends)
    assert first == 1 and [case.values for case in others] == [(2, 3), (4,)]
    for case in others:
        assert backends_of(every_backend, *case.marks, full=False) == quick
        assert backends_of(every_backend, *case.marks, full=True) == ALL
