"""Which elements nearest resizing takes where coordinates are multiplied by a ratio.

PyTorch and TensorFlow multiply by float(input) / float(result), rounded; the element is
decided where a coordinate is nearly whole, as wherever a size is a whole factor smaller.
"""

from __future__ import annotations

import harness
import numpy as np
import pytest

# Whole factors, their neighbours, primes, one element, enlarging.
PAIRS = [
    (49, 7), (63, 9), (30, 10), (64, 37), (100, 97), (41, 63), (7, 49), (5, 1), (1, 4),
    (14, 7), (55, 11), (82, 41), (23, 22), (1000, 125),
]  # fmt: skip
# Coordinates and roundings of graph.resize: half_pixel, asymmetric, align_corners.
MODES = {"half_pixel": (0, 1), "asymmetric": (1, 2), "align_corners": (2, 1)}


def elements(size: int, result: int, mode: str) -> np.ndarray:
    f, i = np.float32, np.arange(result, dtype=np.float32)
    if mode == "align_corners":
        at = np.floor(i * (f(size - 1) / f(max(result - 1, 1))) + f(0.5))
    elif mode == "half_pixel":
        at = np.floor((i + f(0.5)) * (f(size) / f(result)))
    else:
        at = np.floor(i * (f(size) / f(result)))
    return np.clip(at.astype(np.int64), 0, size - 1)


@pytest.mark.parametrize("mode", MODES)
def test_nearest_by_ratio(tmp_path, mode):
    coordinates, rounding = MODES[mode]
    lines, arguments, types, results = [], [], [], []
    for k, (size, result) in enumerate(PAIRS):
        arguments.append(f'%x{k}: tensor<{size}xf32> {{graph.name = "x{k}"}}')
        types.append(f'tensor<{result}xf32> {{graph.name = "y{k}"}}')
        results.append(f"%y{k}")
        lines.append(
            f"%y{k} = graph.resize nearest %x{k} {{axes = array<i64: 0>, scales = array<f64: 0.0>, "
            f"coordinates = {coordinates} : i32, nearest = {rounding} : i32, cubic_coeff = 0.0 : f64, "
            f"by_ratio}} : (tensor<{size}xf32>) -> tensor<{result}xf32>"
        )
    body = "\n  ".join(lines)
    listed = ", ".join(f"tensor<{r}xf32>" for _, r in PAIRS)
    path = tmp_path / "m.mlir"
    path.write_text(
        f"func.func @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n  {body}\n"
        f"  return {', '.join(results)} : {listed}\n}}\n"
    )
    harness.compile_model(path, tmp_path / "m.engine", target="cpu")
    inputs = {f"x{k}": np.arange(s, dtype=np.float32) for k, (s, _) in enumerate(PAIRS)}
    got = harness.run_engine(
        tmp_path / "m.engine", inputs, [f"y{k}" for k in range(len(PAIRS))], tmp_path / "run"
    )
    for (size, result), value in zip(PAIRS, got):
        np.testing.assert_array_equal(value, elements(size, result, mode), f"{size} to {result}")
