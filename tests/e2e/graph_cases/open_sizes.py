"""Graphs whose batch, sequence lengths or image sizes are all open, run at several.

Values are [n, s, width] with one or two lengths, or [n, channels, h, w]. What a step
makes of an open size is an expression of the symbols.
"""

from __future__ import annotations

import numpy as np
from graph_cases import elementwise, rows
from graph_cases.builder import Graph, Size, Value
from op_cases.base import Rng, chance, choose

N, S, T, H, W = map(Size, "nsthw")


class OpenGraph(Graph):
    def __init__(self, rng: Rng, first: list[tuple], symbols: str, low: int, high: int):
        super().__init__(rng)
        draw = lambda: {k: int(rng.integers(low, high + 1)) for k in symbols}
        # The ends of the ranges, and what lies between.
        runs = [draw(), dict.fromkeys(symbols, low), dict.fromkeys(symbols, high), draw()]
        batches = (choose(rng, (1, 2, 3)), 1, 4, 2)
        self.sizes = [dict(run, n=n) for run, n in zip(runs, batches)]
        for shape in first:
            value = Value(self.name("x"), shape)
            self.inputs.append(value)
            self.values.append(value)

    def declared(self, value: Value, axis: int) -> int | str | None:
        size = value.shape[axis]
        if not isinstance(size, Size):
            return size
        return size.text if size.text.isidentifier() else None


# --- Sequences ------------------------------------------------------------------


def mix(b, x):
    """An elementwise operation of values that broadcast along open axes."""
    fits = [
        v for v in b.values
        if v.rank == x.rank and all(c == d or c == 1 for c, d in zip(v.shape, x.shape))
    ]  # fmt: skip
    operands = [x, choose(b.rng, fits)]
    if chance(b.rng, 0.5):
        operands.reverse()
    return b.node(choose(b.rng, ("Add", "Sub", "Mul", "Max")), operands, x.shape)


def along(b, x):
    """Softmax or a reduction of an open axis."""
    axis = 1 if x.rank == 3 else int(b.rng.integers(2, x.rank))
    if chance(b.rng, 0.4):
        return b.node("Softmax", [x], x.shape, axis=axis)
    op = choose(b.rng, ("ReduceMean", "ReduceMax", "ReduceLogSumExp"))
    shape = [1 if i == axis else d for i, d in enumerate(x.shape)]
    result = b.node(op, [x, b.constant([axis])], shape)
    return b.node("Sub", [x, result], x.shape) if chance(b.rng, 0.6) else result


def linear(b, x):
    if x.rank != 3:
        return None
    width, out = x.shape[-1], choose(b.rng, (8, 16, 17, 32))
    shape = (*x.shape[:-1], out)
    y = b.node("MatMul", [x, b.weight(width, out, scale=width**-0.5)], shape)
    return b.node("Add", [y, b.weight(out)], shape) if chance(b.rng, 0.7) else y


def flat_linear(b, x):
    """Batch and sequence as one dimension; their sizes come back through Shape."""
    if x.rank != 3:
        return None
    width, out = x.shape[-1], choose(b.rng, (8, 17))
    flat = b.node("Reshape", [x, b.constant([-1, width])], (x.shape[0] * x.shape[1], width))
    y = b.node("MatMul", [flat, b.weight(width, out, scale=width**-0.5)], (flat.shape[0], out))
    dims = b.node("Shape", [x], (2,), end=2)
    shape = b.node("Concat", [dims, b.constant([out])], (3,), axis=0)
    return b.node("Reshape", [y, shape], (*x.shape[:2], out))


def attention(b, x):
    """Of a sequence to itself or to another of a different open length."""
    width = x.shape[-1]
    others = [v for v in b.values if v.rank == 3 and v.shape[-1] == width and v.shape[0] == N]
    if x.rank != 3 or x.shape[0] != N or width % 2 or width < 8 or not others:
        return None
    memory = choose(b.rng, others)
    heads = choose(b.rng, (1, 2))
    depth = width // heads

    def project(value, perm):
        y = b.node("MatMul", [value, b.weight(width, width, scale=width**-0.5)], value.shape)
        dims = (*value.shape[:2], heads, depth)
        y = b.node("Reshape", [y, b.constant([0, 0, heads, depth])], dims)
        return b.node("Transpose", [y], [dims[p] for p in perm], perm=list(perm))

    q, k = project(x, (0, 2, 1, 3)), project(memory, (0, 2, 3, 1))
    v = project(memory, (0, 2, 1, 3))
    lengths = (N, heads, x.shape[1], memory.shape[1])
    scores = b.node("MatMul", [q, k], lengths)
    scores = b.node("Mul", [scores, b.constant(depth**-0.5, np.float32)], lengths)
    weights = b.node("Softmax", [scores], lengths, axis=-1)
    mixed = b.node("MatMul", [weights, v], q.shape)
    mixed = b.node("Transpose", [mixed], (N, x.shape[1], heads, depth), perm=[0, 2, 1, 3])
    mixed = b.node("Reshape", [mixed, b.constant([0, 0, width])], x.shape)
    return b.node("Add", [x, mixed], x.shape) if chance(b.rng, 0.6) else mixed


def join(b, x):
    """Concatenation along an axis whose sizes are open and may be of different names."""
    axis = choose(b.rng, (1, 2) if x.rank == 3 else (1, 3))
    fits = [
        v for v in b.values
        if v.rank == x.rank and all(i == axis or c == d for i, (c, d) in enumerate(zip(v.shape, x.shape)))
    ]  # fmt: skip
    other = choose(b.rng, fits)
    shape = list(x.shape)
    shape[axis] = shape[axis] + other.shape[axis]
    return b.node("Concat", [x, other], shape, axis=axis)


def cut(b, x):
    """Some from the front, some from the end, every second, or all of them backward."""
    axis = 1 if x.rank == 3 else 2
    extent = x.shape[axis]
    if not isinstance(extent, Size):
        return None
    start, end, step, size = choose(b.rng, (
        (1, 2**31, 1, extent - 1), (0, -1, 1, extent - 1), (0, 2**31, 2, (extent + 1) // 2),
        (-1, -(2**31), -1, extent), (0, 1, 1, 1),
    ))  # fmt: skip
    if min(size.at(run) if isinstance(size, Size) else size for run in b.sizes) < 1:
        return None
    shape = list(x.shape)
    shape[axis] = size
    return b.node("Slice", [x, *(b.constant([v]) for v in (start, end, axis, step))], shape)


def extend(b, x):
    axis = 1 if x.rank == 3 else 3
    pads = [0] * (2 * x.rank)
    pads[axis], pads[x.rank + axis] = int(b.rng.integers(0, 3)), int(b.rng.integers(0, 3))
    shape = list(x.shape)
    shape[axis] = shape[axis] + (pads[axis] + pads[x.rank + axis])
    mode = choose(b.rng, ("constant", "edge"))
    return b.node("Pad", [x, b.constant(pads)], shape, mode=mode)


def turned(b, x):
    """Columns first, something along the open axis that is now the last, and back."""
    if x.rank != 3:
        return None
    n, s, d = x.shape
    y = b.node("Transpose", [x], (n, d, s), perm=[0, 2, 1])
    if chance(b.rng, 0.5):
        weight = b.weight(d, d, 3, scale=(3 * d) ** -0.5)
        y = b.node("Conv", [y, weight], y.shape, pads=[1, 1])
    else:
        y = b.node(choose(b.rng, ("Softmax", "Tanh")), [y], y.shape)
    return b.node("Transpose", [y], x.shape, perm=[0, 2, 1])


# --- Images ------------------------------------------------------------------------


def conv(b, x):
    n, cin, h, w = x.shape
    if not all(isinstance(d, Size) for d in (h, w)):
        return None
    kernel, stride = choose(b.rng, ((1, 1), (3, 1), (3, 2)))
    out, pad = choose(b.rng, (4, 8, 17)), kernel // 2
    reach = 2 * pad - kernel
    shape = (n, out, (h + reach) // stride + 1, (w + reach) // stride + 1)
    if stride == 1:
        shape = (n, out, h, w)
    weight = b.weight(out, cin, kernel, kernel, scale=(kernel * kernel * cin) ** -0.5)
    y = b.node("Conv", [x, weight, b.weight(out)], shape, strides=[stride] * 2, pads=[pad] * 4)
    return b.node("Relu", [y], shape) if chance(b.rng, 0.6) else y


def pool(b, x):
    n, c, h, w = x.shape
    if not all(isinstance(d, Size) for d in (h, w)):
        return None
    if chance(b.rng, 0.3):
        return b.node("GlobalAveragePool", [x], (n, c, 1, 1))
    shape = (n, c, (h - 1) // 2 + 1, (w - 1) // 2 + 1)
    op = choose(b.rng, ("MaxPool", "AveragePool"))
    return b.node(op, [x], shape, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def enlarge(b, x):
    n, c, h, w = x.shape
    if c % 4 == 0 and chance(b.rng, 0.5):
        return b.node("DepthToSpace", [x], (n, c // 4, h * 2, w * 2), blocksize=2)
    scales = b.constant([1, 1, 2, 2], np.float32)
    mode = choose(b.rng, ("nearest", "linear"))
    return b.node("Resize", [x, "", scales], (n, c, h * 2, w * 2), mode=mode)


def pixels(b, x):
    """Pixels as a sequence, a linear layer of their channels, and back."""
    n, c, h, w = x.shape
    if not isinstance(h, Size) or not isinstance(w, Size):
        return None
    y = b.node("Reshape", [x, b.constant([0, c, -1])], (n, c, h * w))
    y = b.node("Transpose", [y], (n, h * w, c), perm=[0, 2, 1])
    y = linear(b, y)
    out = y.shape[2]
    y = b.node("Transpose", [y], (n, out, h * w), perm=[0, 2, 1])
    tail = b.node("Shape", [x], (2,), start=2)
    lead = b.node("Shape", [y], (2,), end=2)
    shape = b.node("Concat", [lead, tail], (4,), axis=0)
    return b.node("Reshape", [y, shape], (n, out, h, w))


COMMON = (
    elementwise.unary, elementwise.unary, elementwise.residual, elementwise.gelu,
    mix, mix, along, along, join, cut, extend,
)  # fmt: skip
SEQUENCE = (
    *COMMON, rows.layer_norm, linear, linear, flat_linear, attention, attention, turned,
    elementwise.scale_shift,
)  # fmt: skip
IMAGE = (*COMMON, conv, conv, conv, pool, enlarge, pixels)


def build(rng: Rng) -> OpenGraph:
    if chance(rng, 0.6):
        width = choose(rng, (8, 16, 24, 32))
        first = [(N, S, width)]
        if chance(rng, 0.6):
            first.append((N, choose(rng, (S, T)), choose(rng, (width, 16))))
        graph = OpenGraph(rng, first, "st", 3, choose(rng, (20, 33, 65)))
        graph.grow(int(rng.integers(2, 11)), SEQUENCE)
        return graph
    graph = OpenGraph(rng, [(N, choose(rng, (3, 4, 8)), H, W)], "hw", 4, choose(rng, (9, 16)))
    graph.grow(int(rng.integers(2, 9)), IMAGE)
    return graph
