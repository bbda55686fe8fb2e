"""Rows that are normalized behind the products that read them, run by charonia-simt."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper
from simt_sums_test import Model

SMALL = ["fp16", "bf16"]


class Rows(Model):
    def __init__(self, seed: int):
        super().__init__(seed)
        self.opset = 23

    def near(self, middle: float, *shape: int) -> str:
        value = middle + 0.3 * self.rng.standard_normal(shape)
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def value(self, name: str) -> np.ndarray:
        (weight,) = (w for w in self.weights if w.name == name)
        return numpy_helper.to_array(weight).astype(np.float64)

    def shape(self, *sizes: int) -> str:
        self.weights.append(numpy_helper.from_array(np.array(sizes, np.int64), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def linear(self, x: str, terms: int, columns: int) -> str:
        return self.add("Add", self.add("MatMul", x, self.weight(terms, columns, terms=terms)), self.weight(columns))

    def normalized(self, x: str, columns: int, rms: bool = False, scale: float = 1.0) -> str:
        if rms:
            return self.add("RMSNormalization", x, self.near(scale, columns), epsilon=1e-6)
        return self.add("LayerNormalization", x, self.near(scale, columns), self.near(0.5, columns), epsilon=1e-5)


def block(m: Rows, x: str, y: str, width: int, hidden: int, rms: bool) -> str:
    """A residual connection, what is normalized of it, and two products."""
    s = m.add("Add", m.linear(x, hidden, width), y)
    inner = m.add("Relu", m.linear(m.normalized(s, width, rms), width, hidden))
    return m.add("Add", m.linear(inner, hidden, width), s)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", SMALL)
@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize(
    "rows, width, hidden, kernels",
    [
        (16, 32, 24, 4),  # three products, and a cast of what is multiplied
        (33, 96, 130, 4),
        (127, 160, 72, 4),
        (197, 256, 512, 4),
        (1, 64, 64, None),  # a single row is normalized by itself
        (40, 72, 64, None),  # no whole runs
    ],
)
def test_before(tmp_path, target, precision, rms, rows, width, hidden, kernels):
    m = Rows(rows + width)
    result = block(m, m.input("x", rows, hidden), m.input("y", rows, width), width, hidden, rms)
    m.check(tmp_path, result, kernels, target, precision)


@pytest.mark.parametrize("precision", SMALL)
@pytest.mark.parametrize("rows", [24, 131])
def test_behind(tmp_path, precision, rows):
    """What is normalized is also added to what follows."""
    width, hidden = 96, 160
    m = Rows(rows)
    s = m.add("Add", m.linear(m.input("x", rows, hidden), hidden, width), m.input("y", rows, width))
    n = m.normalized(s, width)
    s = m.add("Add", m.linear(m.add("Relu", m.linear(n, width, hidden)), hidden, width), n)
    m.check(tmp_path, m.linear(m.normalized(s, width), width, 40), 5, "sm_90a", precision)


@pytest.mark.parametrize("mean, scale", [(10.0, 1.0), (0.0, 1e-3), (0.0, 30.0)])
def test_numbers(tmp_path, mean, scale):
    """Means of ten deviations; scales that the weights have no place for, and large ones."""
    m = Rows(3)
    m.input("y", 50, 64)
    m.inputs["y"] += np.float32(mean)
    s = m.add("Add", m.linear(m.input("x", 50, 64), 64, 64), "y")
    m.check(tmp_path, m.linear(m.normalized(s, 64, scale=scale), 64, 48), None, "sm_90a", "fp16")


@pytest.mark.parametrize("precision", SMALL)
@pytest.mark.parametrize("batch", [1, 3])
def test_open(tmp_path, precision, batch):
    m = Rows(batch)
    for name, width in (("x", 64), ("y", 96)):
        m.input(name, batch, 21, width)
        m.open[name] = ["n", 21, width]
        m.shapes[name] = ["1..4..9", 21, width]
    m.check(tmp_path, block(m, "x", "y", 96, 64, False), 4, "sm_90a", precision)


@pytest.mark.parametrize("shift", [0, 3])
def test_windows(tmp_path, shift):
    """Rows that go to windows before they are multiplied, as in Swin."""
    m = Rows(shift)
    x = m.add("Reshape", m.linear(m.input("x", 64, 96), 96, 64), m.shape(1, 8, 8, 64))
    n = m.normalized(x, 64)
    if shift:
        parts = [m.add("Slice", n, m.shape(a), m.shape(b), m.shape(1)) for a, b in ((shift, 8), (0, shift))]
        n = m.add("Concat", *parts, axis=1)
    n = m.add("Transpose", m.add("Reshape", n, m.shape(1, 2, 4, 2, 4, 64)), perm=[0, 1, 3, 2, 4, 5])
    n = m.linear(m.add("Reshape", n, m.shape(4, 16, 64)), 64, 72)
    m.check(tmp_path, n, None, "sm_90a", "fp16")


def rolled(m: Rows, x: str, shape: tuple[int, ...], axis: int, by: int) -> str:
    """A roll as views: twice the rows, and a part of them."""
    sizes = list(shape)
    twice = m.add("Expand", m.add("Unsqueeze", x, m.shape(axis)), m.shape(*sizes[:axis], 2, *sizes[axis:]))
    twice = m.add("Reshape", twice, m.shape(*sizes[:axis], 2 * sizes[axis], *sizes[axis + 1 :]))
    return m.add("Slice", twice, m.shape(by), m.shape(by + sizes[axis]), m.shape(axis))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", SMALL)
@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("batch, height, width, window, kernels", [(1, 9, 6, 3, 4), (2, 10, 15, 5, 4), (1, 7, 7, 7, 4)])
def test_from_windows(tmp_path, target, precision, shift, batch, height, width, window, kernels):
    """Rows that go from windows to their places, and roll there, before they are added and normalized, as in Swin."""
    m = Rows(height)
    down, right, channels = height // window, width // window, 96
    x = m.linear(m.input("x", batch * down * right, window * window, 64), 64, channels)
    x = m.add("Reshape", x, m.shape(batch, down, right, window, window, channels))
    x = m.add("Reshape", m.add("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), m.shape(batch, height, width, channels))
    for axis in (1, 2) if shift else ():
        x = rolled(m, x, (batch, height, width, channels), axis, shift)
    s = m.add("Add", m.input("y", batch, height, width, channels), x)
    inner = m.add("Relu", m.linear(m.normalized(s, channels), channels, 72))
    m.check(tmp_path, m.add("Add", m.linear(inner, 72, channels), s), kernels, target, precision)


@pytest.mark.parametrize("precision", SMALL)
@pytest.mark.parametrize("of_row", [8.003, None])
def test_equal_terms(tmp_path, precision, of_row):
    """Rows that are stored as equal numbers, although rounding changed each: nothing is far from their mean."""
    m = Rows(9)
    y = np.full((50, 1), of_row) if of_row else m.rng.standard_normal((50, 1)) * 10
    m.input("y", 50, 64)
    m.inputs["y"][:] = y
    m.input("x", 50, 64)
    m.inputs["x"][:] = 0
    s = m.add("Add", m.add("MatMul", "x", m.weight(64, 64, terms=64)), "y")
    s = m.add("LayerNormalization", s, m.near(1.0, 64), m.near(0.5, 64), epsilon=1e-12)
    m.check(tmp_path, m.linear(s, 64, 48), None, "sm_90a", precision)


def far(m: Rows, y: np.ndarray, epsilon: float) -> tuple[str, np.ndarray]:
    """Rows of f16, as a kernel of a product stores them, normalized: the name, and the same in double precision."""
    rows, width = y.shape
    m.input("x", rows, 64)
    m.inputs["x"][:] = 0
    m.inputs["y"] = y.astype(np.float16).astype(np.float32)
    s = m.add("Add", m.add("MatMul", "x", m.weight(64, width, terms=64)), "y")
    scale, shift = m.near(1.0, width), m.near(0.5, width)
    distance = m.inputs["y"] - m.inputs["y"].mean(-1, keepdims=True, dtype=np.float64)
    deviation = np.sqrt((distance**2).mean(-1, keepdims=True) + epsilon)
    normalized = distance / deviation * m.value(scale) + m.value(shift)
    return m.add("LayerNormalization", s, scale, shift, epsilon=epsilon), normalized


def multiplied(m: Rows, rows: str, values: np.ndarray, columns: int) -> tuple[str, np.ndarray]:
    weights = m.weight(values.shape[1], columns, terms=values.shape[1])
    return m.add("MatMul", rows, weights), values @ m.value(weights)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "mean, deviation, epsilon, limit",
    [(300, 1, 1e-5, 6e-4), (-600, 1, 1e-12, 8e-4), (1000, 1, 1e-5, 1.5e-3), (1000, 0.5, 1e-12, 3e-3)],
)
@pytest.mark.parametrize(
    "rows, width, columns",
    [(50, 32, 48), (33, 96, 40), (40, 160, 24), (35, 768, 136), (128, 2080, 256)],  # of the last parts are walked
)
def test_far_means(tmp_path, target, mean, deviation, epsilon, limit, rows, width, columns):
    """Rows around a mean of many deviations: few levels of f16, which products multiply exactly."""
    m = Rows(width)
    n = far(m, mean + deviation * m.rng.standard_normal((rows, width)), epsilon)
    result, want = multiplied(m, *n, columns)
    m.check(tmp_path, result, None, target, "fp16", want, limit)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-12])
@pytest.mark.parametrize("mean", [300, 1000])
def test_far_means_behind(tmp_path, epsilon, mean):
    """What is normalized of such rows is also added to what follows."""
    m = Rows(mean)
    n, normalized = far(m, mean + m.rng.standard_normal((40, 96)), epsilon)
    result, want = multiplied(m, *multiplied(m, n, normalized, 64), 96)
    m.check(tmp_path, m.add("Add", result, n), 4, "sm_90a", "fp16", want + normalized, 2e-3)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-12])
@pytest.mark.parametrize("of_row", [300.0, 8.003, 6e4, None])
@pytest.mark.parametrize("width", [64, 96, 768, 4096])
def test_even_rows(tmp_path, epsilon, of_row, width):
    """Rows of equal numbers are no distance from their mean, and leave the shift alone."""
    m = Rows(width)
    y = np.full((40, 1), of_row) if of_row else m.rng.standard_normal((40, 1)) * 100
    result, want = multiplied(m, *far(m, np.repeat(y, width, 1), epsilon), 48)
    m.check(tmp_path, result, None, "sm_90a", "fp16", want, 8e-4)


@pytest.mark.parametrize("epsilon", [1e-5, 1e-12])
def test_one_apart(tmp_path, epsilon):
    """Rows of which one number differs from the others, by its last place: f16 has no lesser variance."""
    m = Rows(5)
    y = np.full((40, 768), 300.0)
    y[np.arange(40), m.rng.integers(0, 768, 40)] += 0.25
    result, want = multiplied(m, *far(m, y, epsilon), 48)
    m.check(tmp_path, result, None, "sm_90a", "fp16", want, 3e-2)  # what the product rounds, times 4 * sqrt(768)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("columns", [48, 1])
def test_higher_rank(tmp_path, rms, columns):
    """A scale that gives rows one more dimension; products of a single column."""
    m = Rows(columns)
    s = m.add("Add", m.linear(m.input("x", 50, 64), 64, 64), m.input("y", 50, 64))
    s = m.normalized(s, 64, rms)
    if columns > 1:
        s = m.add("Add", m.add("Mul", s, m.near(1.0, 1, 1, 64)), m.near(0.5, 1, 1, 64))
    m.check(tmp_path, m.linear(s, 64, columns), None, "sm_90a", "fp16")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_flat(tmp_path, target):
    """What is added to a product that was made flat has no columns."""
    m = Rows(2)
    s = m.add("Reshape", m.linear(m.input("x", 64, 64), 64, 64), m.shape(4096))
    s = m.add("Reshape", m.add("Add", s, m.input("y", 4096)), m.shape(64, 64))
    m.check(tmp_path, m.linear(m.normalized(s, 64), 64, 48), None, target, "fp16")
