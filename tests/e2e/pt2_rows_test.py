"""What pt2_test.py's limits are too wide for."""

from __future__ import annotations

from pathlib import Path

import harness
import numpy as np
import pytest
from pt2_test import arrays, input_names

FOLDER = Path(__file__).resolve().parent / "pt2"


@pytest.mark.parametrize("name", ["halves", "halves-core"])
def test_numbers_that_half_types_lack(name: str, tmp_path: Path) -> None:
    """All but a few results are the nearest half to those in float64."""
    path, engine = FOLDER / f"{name}.pt2", tmp_path / "m.engine"
    harness.compile_model(path, engine)
    inputs = dict(zip(input_names(path), arrays(path, "in"), strict=True))
    got = harness.run_all_outputs(engine, inputs, tmp_path)
    for index, want in enumerate(arrays(path, "out")):
        result = got[f"output_{index}"]
        assert result.dtype == want.dtype == np.float16
        assert (result != want).mean() < 0.06, f"output_{index}"


@pytest.mark.parametrize("name", ["tails", "tails-core"])
def test_what_is_small_is_exact(name: str, tmp_path: Path) -> None:
    """The complement of the error function keeps its digits where it is 1e-36."""
    path, engine = FOLDER / f"{name}.pt2", tmp_path / "m.engine"
    harness.compile_model(path, engine)
    inputs = dict(zip(input_names(path), arrays(path, "in"), strict=True))
    got = harness.run_all_outputs(engine, inputs, tmp_path)
    for index, want in enumerate(arrays(path, "out")[:2]):
        np.testing.assert_allclose(got[f"output_{index}"], want, rtol=5e-7)
        assert 0 < want.min() < 1e-35
