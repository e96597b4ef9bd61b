"""Packages that are missing are named, with the command that installs them."""

import importlib.util

import pytest
from tiers import on

from keras_bert_impl.serving.tensorflow_runtime import check_packages

pytestmark = on("tensorflow")


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch):
    found = importlib.util.find_spec
    missing = ("uvicorn", "tensorflow_serving")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else found(name))
    with pytest.raises(ImportError, match=r"tensorflow_serving, uvicorn: pip install .*tensorflow,serving\]'"):
        check_packages()
