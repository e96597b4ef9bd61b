"""Real task files next to the checkout; tests that need them are skipped where they are missing."""

import pathlib

import pytest

DATA = pathlib.Path(__file__).parents[1].parent / "shared/data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs the real task files beside the checkout")
