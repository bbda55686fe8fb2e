"""Columns of products that meet element by element, run by charonia-simt: gates, rotary embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper
from simt_rows_test import SMALL, Rows
from simt_sums_test import LIMITS

ACTIVATIONS = {
    "silu": lambda m, x: m.add("Mul", x, m.add("Sigmoid", x)),
    "gelu": lambda m, x: m.add("Gelu", x),
    "sigmoid": lambda m, x: m.add("Sigmoid", x),
    "relu": lambda m, x: m.add("Relu", x),
}


class Columns(Rows):
    limits = LIMITS | {"tf32": 2e-3}

    def values(self, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def product(self, x: str, terms: int, columns: int, bias: bool = False) -> str:
        y = self.add("MatMul", x, self.weight(terms, columns, terms=terms))
        return self.add("Add", y, self.weight(columns)) if bias else y

    def halves(self, x: str, width: int) -> list[str]:
        """Of the last dimension."""
        half = width // 2
        return [self.slice(x, 0, half), self.slice(x, half, width)]

    def slice(self, x: str, start: int, end: int) -> str:
        return self.add("Slice", x, self.shape(start), self.shape(end), self.shape(-1))


def gated(m: Columns, x: str, terms: int, columns: int, form: str, activation: str, bias: bool = False) -> str:
    """A gate and what passes it: of two products, or the halves of one."""
    if form == "two":
        gate, passed = (m.product(x, terms, columns, bias) for _ in range(2))
    else:
        gate, passed = m.halves(m.product(x, terms, 2 * columns, bias), 2 * columns)
    if form == "second":
        gate, passed = passed, gate
    return m.add("Mul", ACTIVATIONS[activation](m, gate), passed)


# A gate is one kernel with what it passes, and what is multiplied may have to be cast.
@pytest.mark.parametrize(
    "form, activation, bias, rows, terms, columns, precision, target",
    [
        ("two", "silu", False, 128, 64, 64, "fp16", "sm_90a"),
        ("two", "gelu", False, 200, 96, 136, "fp16", "sm_90"),
        ("two", "relu", True, 129, 64, 16, "fp16", "sm_90a"),
        ("two", "silu", True, 131, 72, 344, "bf16", "sm_90a"),
        ("two", "sigmoid", False, 333, 40, 24, "fp32", "sm_80"),
        ("two", "silu", False, 131, 64, 24, "tf32", "sm_90a"),
        ("two", "gelu", True, 129, 64, 136, "fp16", "sm_80"),
        ("halves", "silu", False, 128, 64, 64, "fp16", "sm_80"),
        ("halves", "gelu", True, 131, 80, 136, "fp16", "sm_90a"),
        ("halves", "sigmoid", True, 333, 64, 24, "bf16", "sm_90"),
        ("halves", "relu", False, 129, 64, 16, "fp32", "sm_90a"),
        ("second", "silu", True, 200, 64, 344, "fp16", "sm_90a"),
        ("second", "gelu", False, 200, 40, 24, "tf32", "sm_80"),
        ("second", "sigmoid", True, 131, 72, 16, "fp16", "sm_90"),
    ],
)
def test_gates(tmp_path, form, activation, bias, rows, terms, columns, precision, target):
    m = Columns(rows + columns)
    result = gated(m, m.input("x", rows, terms), terms, columns, form, activation, bias)
    m.check(tmp_path, result, 2 if precision in SMALL else 1, target, precision)


def angles(m: Columns, rows: int, width: int, shape: tuple[int, ...], as_inputs: bool) -> list[str]:
    """Cosines and sines for each row, the same for both halves of a vector."""
    half = np.arange(rows)[:, None] * 100.0 ** -(np.arange(width // 2) / (width // 2))
    both = np.concatenate([half, half], axis=1).reshape(shape)
    names = []
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        value = function(both).astype(np.float32)
        if as_inputs:
            m.input(name, *shape)
            m.inputs[name] = value
        names.append(name if as_inputs else m.values(value))
    return names


def rotated(m: Columns, x: str, width: int, cos: str, sin: str, split: bool = False) -> str:
    """x cos + rotate_half(x) sin."""
    if split:
        half = width // 2
        names = [f"{x}_low", f"{x}_high"]
        m.nodes.append(helper.make_node("Split", [x, m.shape(half, half)], names, axis=-1))
        low, high = names
    else:
        low, high = m.halves(x, width)
    swapped = m.add("Concat", m.add("Neg", high), low, axis=-1)
    return m.add("Add", m.add("Mul", x, cos), m.add("Mul", swapped, sin))


def heads(m: Columns, x: str, batch: int, rows: int, count: int, width: int, late: bool) -> str:
    x = m.add("Reshape", x, m.shape(batch, rows, count, width))
    return x if late else m.add("Transpose", x, perm=[0, 2, 1, 3])


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "rows, count, width, bias, as_inputs, split, precision, target",
    [
        (129, 4, 16, False, False, False, "fp16", "sm_90a"),
        (200, 2, 48, True, False, True, "fp16", "sm_90a"),
        (129, 3, 64, False, True, False, "bf16", "sm_90a"),
        (200, 1, 80, True, False, False, "fp16", "sm_80"),
        (131, 2, 128, False, False, True, "fp16", "sm_90"),
        (129, 1, 256, True, True, False, "fp16", "sm_90a"),
        (333, 5, 64, False, False, False, "fp32", "sm_90a"),
        (129, 1, 64, False, False, False, "tf32", "sm_80"),
    ],
)
def test_rotated(tmp_path, late, rows, count, width, bias, as_inputs, split, precision, target):
    """`late`: heads change places with rows behind. Of one head that is a mere view, angles that are inputs stay."""
    m = Columns(rows + width)
    x = heads(m, m.product(m.input("x", 1, rows, 64), 64, count * width, bias), 1, rows, count, width, late)
    shape = (1, rows, 1, width) if late else (1, 1, rows, width)
    x = rotated(m, x, width, *angles(m, rows, width, shape, as_inputs), split)
    kernels = (2 if precision in SMALL else 1) if late or (count > 1 and not as_inputs) else None
    m.check(tmp_path, m.add("Transpose", x, perm=[0, 2, 1, 3]) if late else x, kernels, target, precision)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize(
    "form, batch, rows, width, hidden, precision, target",
    [
        ("two", 1, 140, 64, 160, "fp16", "sm_90a"),
        ("two", 3, 65, 64, 96, "bf16", "sm_90a"),
        ("halves", 1, 333, 96, 264, "fp16", "sm_80"),
        ("halves", 3, 67, 64, 136, "fp16", "sm_90"),
        ("two", 1, 131, 64, 136, "fp32", "sm_90a"),  # the rows are normalized by themselves
    ],
)
def test_feed_forward(tmp_path, rms, form, batch, rows, width, hidden, precision, target):
    """Normalized rows, a gate, and a product with what it is added to."""
    m = Columns(rows + hidden)
    x = m.add("Add", m.product(m.input("x", batch, rows, width), width, width), "x")
    y = gated(m, m.normalized(x, width, rms), width, hidden, form, "silu")
    m.check(tmp_path, m.add("Add", m.product(y, hidden, width), x), 4, target, precision)


@pytest.mark.parametrize("precision, target", [("fp16", "sm_90a"), ("bf16", "sm_80"), ("fp32", "sm_90")])
def test_others_of_the_same_rows(tmp_path, precision, target):
    """A gate beside two products that go other ways, and products that meet by threes."""
    m = Columns(5)
    x = m.input("x", 131, 64)
    first, second = m.product(x, 64, 48), m.product(x, 64, 40)
    gate = gated(m, x, 64, 48, "two", "silu")
    three = m.add("Mul", m.add("Mul", m.product(x, 64, 24), m.product(x, 64, 24)), m.product(x, 64, 24))
    result = m.add("Concat", first, gate, second, three, axis=-1)
    m.check(tmp_path, result, 4 + (precision in SMALL), target, precision)


@pytest.mark.parametrize("columns", [60, 20, 8, 4])
@pytest.mark.parametrize("form", ["two", "halves"])
def test_no_whole_runs(tmp_path, form, columns):
    m = Columns(columns)
    m.check(tmp_path, gated(m, m.input("x", 130, 64), 64, columns, form, "silu", True), 3, "sm_90a", "fp16")


@pytest.mark.parametrize("precision", SMALL)
@pytest.mark.parametrize("form", ["two", "halves"])
def test_open_rows(tmp_path, precision, form):
    m = Columns(7)
    m.input("x", 3, 67, 64)
    m.open["x"], m.shapes["x"] = ["n", "s", 64], ["1..2..4", "1..150..300", 64]
    m.check(tmp_path, gated(m, "x", 64, 72, form, "silu"), 2, "sm_90a", precision)


def attention(m: Columns, q: str, k: str, v: str, batch: int, rows: int, of: tuple[int, int], width: int) -> str:
    """Of query heads and key heads, `of` each, [batch, heads, rows, width]; the result is [batch, rows, columns]."""
    if of[0] != of[1]:
        grouped = [batch, of[1], of[0] // of[1], rows, width]
        k, v = (m.add("Expand", m.add("Unsqueeze", t, m.shape(2)), m.shape(*grouped)) for t in (k, v))
        k, v = (m.add("Reshape", t, m.shape(batch, of[0], rows, width)) for t in (k, v))
    scores = m.add("MatMul", q, m.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = m.add("Mul", scores, m.values(np.float32(width**-0.5)))
    y = m.add("Transpose", m.add("MatMul", m.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return m.add("Reshape", y, m.shape(batch, rows, of[0] * width))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    "batch, rows, of, width, bias, as_inputs, scaled, precision, target",
    [
        (1, 129, (2, 2), 64, True, False, False, "fp16", "sm_90a"),
        (1, 200, (4, 2), 16, False, True, False, "fp16", "sm_90a"),
        (1, 130, (4, 2), 48, False, False, True, "fp16", "sm_80"),
        (1, 129, (2, 1), 80, True, False, True, "fp16", "sm_90"),
        (1, 131, (1, 1), 128, False, False, False, "fp16", "sm_90a"),
        (3, 67, (2, 2), 32, True, False, True, "bf16", "sm_90a"),
        (1, 129, (4, 2), 64, False, False, False, "fp32", "sm_90a"),
        (1, 131, (2, 2), 256, False, True, False, "fp16", "sm_90a"),
    ],
)
def test_attention(tmp_path, fused, batch, rows, of, width, bias, as_inputs, scaled, precision, target):
    """Queries and keys are rotated, values are not; of one projection or of three."""
    m = Columns(rows + width)
    x, counts = m.input("x", batch, rows, 64), (of[0], of[1], of[1])
    if fused:
        all_of = m.product(x, 64, sum(counts) * width, bias)
        ends = np.cumsum((0, *counts)) * width
        q, k, v = (m.slice(all_of, int(a), int(b)) for a, b in zip(ends, ends[1:]))
    else:
        q, k, v = (m.product(x, 64, n * width, bias) for n in counts)
    q, k, v = (heads(m, t, batch, rows, n, width, False) for t, n in zip((q, k, v), counts))
    cos, sin = angles(m, rows, width, (1, 1, rows, width), as_inputs)
    q, k = (rotated(m, t, width, cos, sin) for t in (q, k))
    if scaled:
        q = m.add("Mul", q, m.values(np.float32(1.25)))
    kernels = (4 if precision in SMALL else 2) if of[1] > 1 and not as_inputs else None
    m.check(tmp_path, attention(m, q, k, v, batch, rows, of, width), kernels, target, precision)


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize(
    "rows, count, width, part, precision, target",
    [
        (129, 3, 64, 16, "fp16", "sm_90a"),
        (40, 2, 96, 32, "bf16", "sm_80"),
        (131, 2, 128, 64, "fp32", "sm_90"),
    ],
)
def test_part_of_heads(tmp_path, in_turn, rows, count, width, part, precision, target):
    """The first elements of each head are rotated; query, key and value apart or in turn, head by head."""
    m = Columns(rows + part)
    x = m.product(m.input("x", 1, rows, 64), 64, 3 * count * width, True)
    if in_turn:
        x = m.add("Reshape", x, m.shape(1, rows, count, 3 * width))
        q, k, v = (m.slice(x, i * width, (i + 1) * width) for i in range(3))
    else:
        of = count * width
        q, k, v = (
            m.add("Reshape", m.slice(x, i * of, (i + 1) * of), m.shape(1, rows, count, width)) for i in range(3)
        )
    cos, sin = angles(m, rows, part, (1, rows, 1, part), False)

    def partly(t: str) -> str:
        return m.add("Concat", rotated(m, m.slice(t, 0, part), part, cos, sin), m.slice(t, part, width), axis=-1)

    result = m.add("Concat", partly(q), partly(k), m.add("Neg", v), axis=-2)
    m.check(tmp_path, result, None, target, precision)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("rotates", [False, True])
@pytest.mark.parametrize(
    "rows, of, width, precision, target",
    [
        (129, (4, 2), 64, "fp16", "sm_90a"),
        (24, (2, 2), 128, "bf16", "sm_90a"),
        (131, (2, 1), 32, "fp32", "sm_80"),
    ],
)
def test_normalized_heads(tmp_path, rms, rotates, rows, of, width, precision, target):
    """Queries and keys are normalized, each by weights of its own, and rotated then."""
    m = Columns(rows + width)
    counts = (of[0], of[1], of[1])
    all_of = m.product(m.input("x", 1, rows, 64), 64, sum(counts) * width)
    ends = np.cumsum((0, *counts)) * width
    parts = (m.slice(all_of, int(a), int(b)) for a, b in zip(ends, ends[1:]))
    q, k, v = (m.add("Reshape", t, m.shape(1, rows, n, width)) for t, n in zip(parts, counts))
    q, k = (m.normalized(t, width, rms) for t in (q, k))
    if rotates:
        cos, sin = angles(m, rows, width, (1, rows, 1, width), False)
        q, k = (rotated(m, t, width, cos, sin) for t in (q, k))
    m.check(tmp_path, m.add("Concat", q, k, v, axis=-2), None, target, precision)


def test_long_chains(tmp_path):
    """What has no place behind the product is computed, and its mean taken, from memory."""
    m = Columns(6)
    x = m.add("Reshape", m.product(m.input("x", 130, 64), 64, 128), m.shape(130, 2, 64))
    for _ in range(8):
        x = m.add("Add", m.add("Erf", x), m.weight(64))
    cos, sin = angles(m, 130, 64, (130, 1, 64), False)
    m.check(tmp_path, rotated(m, m.normalized(x, 64), 64, cos, sin), None, "sm_90a", "fp16")


@pytest.mark.parametrize("behind", ["stored", "transposed", "heads", "mean", "part", "residual"])
@pytest.mark.parametrize("form, precision, target", [("two", "fp16", "sm_90a"), ("halves", "fp32", "sm_80")])
def test_behind(tmp_path, behind, form, precision, target):
    """What reads a gate's result otherwise than element by element."""
    m = Columns(3)
    y = gated(m, m.input("x", 132, 64), 64, 72, form, "silu", True)
    kernels = 1
    if behind == "transposed":
        y = m.add("Transpose", y, perm=[1, 0])
    elif behind == "heads":
        y = m.add("Transpose", m.add("Reshape", y, m.shape(4, 33, 3, 24)), perm=[0, 2, 1, 3])
    elif behind == "mean":
        y, kernels = m.add("ReduceMean", y, m.shape(-1)), 2
    elif behind == "part":
        y, kernels = m.slice(y, 8, 70), 2
    elif behind == "residual":
        y = m.add("Add", y, m.add("Transpose", m.input("r", 72, 132), perm=[1, 0]))
    m.check(tmp_path, y, kernels + (precision in SMALL), target, precision)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("form", ["two", "halves"])
@pytest.mark.parametrize("precision, target", [("fp16", "sm_90a"), ("fp32", "sm_80")])
def test_images(tmp_path, size, form, precision, target):
    """Channels of an image are the columns of a convolution."""
    m = Columns(size)
    x = m.input("x", 1, 64, 12, 13)

    def convolution(filters: int) -> str:
        weights = m.weight(filters, 64, size, size, terms=64 * size * size), m.weight(filters)
        return m.add("Conv", x, *weights, pads=[size // 2] * 4)

    if form == "two":
        gate, passed = convolution(24), convolution(24)
    else:
        both = convolution(48)
        gate, passed = (m.add("Slice", both, m.shape(a), m.shape(a + 24), m.shape(1)) for a in (0, 24))
    result = m.add("Mul", m.add("Sigmoid", gate), passed)
    m.check(tmp_path, result, None, target, precision)


@pytest.mark.parametrize("form", ["two", "halves"])
def test_packed_weights(tmp_path, form):
    """Weights of 8 bits stay these in the engine, and in their order."""
    m = Columns(8)
    m.limits = {"fp16": 2e-2}  # ONNX Runtime multiplies in 8 bits
    x = m.input("x", 131, 64)

    def product(columns: int) -> str:
        scales = (m.rng.uniform(0.5, 1.5, columns) * 0.002).astype(np.float32)
        numbers = m.values(m.rng.integers(-127, 128, (64, columns)).astype(np.int8))
        return m.add("MatMul", x, m.add("DequantizeLinear", numbers, m.values(scales), axis=1))

    gate, passed = (product(48), product(48)) if form == "two" else m.halves(product(96), 96)
    m.check(tmp_path, m.add("Mul", m.add("Sigmoid", gate), passed), 3, "sm_90a", "fp16")


def test_behind_readers(tmp_path):
    """The second product, and its weights, stand behind what reads the first."""
    m = Columns(4)
    x = m.input("x", 131, 64)
    gate = m.add("Sigmoid", m.product(x, 64, 40))
    late = m.add("MatMul", x, m.add("Mul", m.weight(64, 40, terms=64), m.weight(40)))
    m.check(tmp_path, m.add("Mul", m.add("Mul", gate, late), m.add("Neg", gate)), 2, "sm_90a", "fp16")
