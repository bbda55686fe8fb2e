"""What pt2_test.py's limits are too wide for."""

from __future__ import annotations

from pathlib import Path

import harness
import numpy as np
import pytest
from pt2_tables_test import save
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


DRAWN = 40000
NUMBERS = [
    # operator, arguments, least and largest value that there may be, mean, variance, whole numbers
    ("rand.default", {"size": [DRAWN]}, 0, 1, 1 / 2, 1 / 12, False),
    ("rand_like.default", {"self": "x"}, 0, 1, 1 / 2, 1 / 12, False),
    ("uniform.default", {"self": "x", "from": -2.0, "to": 4.0}, -2, 4, 1, 3, False),
    ("randn.default", {"size": [DRAWN]}, -6, 6, 0, 1, False),
    ("randn_like.default", {"self": "x"}, -6, 6, 0, 1, False),
    ("normal.float_float", {"mean": 3.0, "std": 0.5, "size": [DRAWN]}, 0, 6, 3, 0.25, False),
    ("normal.Tensor_float", {"mean": "x", "std": 2.0}, -12, 12, 0.25, 4, False),
    ("normal.float_Tensor", {"mean": -1.0, "std": "x"}, -3, 1, -1, 1 / 16, False),
    ("normal.Tensor_Tensor", {"mean": "x", "std": "x"}, -2, 3, 0.25, 1 / 16, False),
    ("normal_functional.default", {"self": "x", "mean": 1.0, "std": 2.0}, -12, 14, 1, 4, False),
    ("bernoulli.default", {"self": "x"}, 0, 1, 1 / 4, 3 / 16, True),
    ("bernoulli.p", {"self": "x", "p": 0.9}, 0, 1, 0.9, 0.09, True),
    ("randint.low", {"low": -3, "high": 5, "size": [DRAWN]}, -3, 4, 0.5, 63 / 12, True),
    ("randint.default", {"high": 2, "size": [DRAWN]}, 0, 1, 0.5, 0.25, True),
    ("randint_like.low_dtype", {"self": "x", "low": 7, "high": 10}, 7, 9, 8, 2 / 3, True),
    ("randint_like.default", {"self": "x", "high": 2**24}, 0, 2**24 - 1, 2**23, 2**48 / 12, True),
]


def test_random_numbers(tmp_path: Path) -> None:
    """Each operator has numbers of its own, of the distribution that it says; runs have the same."""
    nodes = [(op, given, (7, [DRAWN])) for op, given, *_ in NUMBERS]
    harness.compile_model(save(tmp_path / "m.pt2", nodes, [DRAWN]), tmp_path / "m.engine")
    x = {"x": np.full(DRAWN, 0.25, np.float32)}
    first = list(harness.run_all_outputs(tmp_path / "m.engine", x, tmp_path).values())
    again = list(harness.run_all_outputs(tmp_path / "m.engine", x, tmp_path).values())
    assert len(first) == len(NUMBERS)
    for (op, _, least, largest, mean, variance, whole), got, same in zip(NUMBERS, first, again):
        got = got.astype(np.float64)
        assert got.min() >= least and got.max() <= largest, op
        assert abs(got.mean() - mean) < 5 * (variance / DRAWN) ** 0.5, op
        assert abs(got.var() / variance - 1) < 0.05, op
        assert np.unique(got).size > 2 or whole, op
        assert not whole or (got == np.round(got)).all(), op
        np.testing.assert_array_equal(got, same, op)
    assert abs(np.corrcoef(first[0], first[1])[0, 1]) < 0.03
