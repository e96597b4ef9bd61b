"""Where benchmarks/step_shares.py counts the operations of a training step."""

import pathlib

import pytest
from tiers import once

ROOT = pathlib.Path(__file__).parents[1]
pytestmark = once


@pytest.fixture
def step_shares(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import step_shares

    return step_shares


@pytest.mark.parametrize(
    ("name", "backend", "part"),
    [
        ("gradient_tape/bert_pretrainer/block_1/attention/Tensordot/MatMul:_MklMatMul", "tensorflow", "PRODUCTS"),
        ("transpose_copy_fusion.27", "jax", "FUSED"),  # what else is in it cannot be told
    ],
)
def test_an_operation_belongs_to_a_part(step_shares, name, backend, part):
    assert step_shares.part_of(name, backend) == getattr(step_shares, part, part)


def test_shares_are_those_of_the_sum(step_shares):
    found = step_shares.shares({"aten::mm": 3.0, "aten::bmm": 1.0, "aten::gelu": 1.0}, "torch")
    assert found == {step_shares.PRODUCTS: 0.8, "GELU": 0.2}
