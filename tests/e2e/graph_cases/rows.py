"""Steps along an axis: reductions, softmax, normalizations, running sums."""

from __future__ import annotations

import numpy as np
from op_cases.base import chance, choose


def reduce(b, x):
    if x.rank < 2:
        return None
    axes = sorted({int(a) for a in b.rng.integers(1, x.rank, 2)})
    keep = chance(b.rng, 0.6)
    op = choose(b.rng, ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceSum"))
    shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
    if not keep:
        shape = [d for i, d in enumerate(x.shape) if i not in axes]
    source = x
    if op == "ReduceSum":
        count = float(np.prod([x.shape[a] for a in axes]))
        source = b.node("Mul", [x, b.constant(count**-0.5, np.float32)], x.shape)
    result = b.node(op, [source, b.constant(axes)], shape, keepdims=int(keep))
    if keep and chance(b.rng, 0.5):
        return b.node("Sub", [x, result], x.shape)
    return result


def softmax(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    return b.node(choose(b.rng, ("Softmax", "LogSoftmax")), [x], x.shape, axis=axis)


def layer_norm(b, x):
    if x.rank < 2 or x.shape[-1] < 4:
        return None
    width = x.shape[-1]
    scale, shift = b.weight(width, scale=0.2, shift=1), b.weight(width)
    if chance(b.rng, 0.5):
        return b.node("LayerNormalization", [x, scale, shift], x.shape, axis=-1, epsilon=1e-3)
    column = (*x.shape[:-1], 1)
    mean = b.node("ReduceMean", [x, b.constant([-1])], column)
    centered = b.node("Sub", [x, mean], x.shape)
    square = b.node("Pow", [centered, b.constant(2.0, np.float32)], x.shape)
    if chance(b.rng, 0.5):
        square = b.node("Mul", [centered, centered], x.shape)
    variance = b.node("ReduceMean", [square, b.constant([-1])], column)
    shifted = b.node("Add", [variance, b.constant(1e-3, np.float32)], column)
    deviation = b.node("Sqrt", [shifted], column)
    normal = b.node("Div", [centered, deviation], x.shape)
    normal = b.node("Mul", [normal, scale], x.shape)
    return b.node("Add", [normal, shift], x.shape)


def norm_of_channels(b, x):
    if x.rank not in (3, 4) or int(np.prod(x.shape[2:])) < 4:
        return None
    c = x.shape[1]
    op = choose(b.rng, ("InstanceNormalization", "LRN", "LpNormalization"))
    if op == "LRN" and x.rank == 4:
        return b.node(op, [x], x.shape, size=3)
    if op != "InstanceNormalization":
        return b.node("LpNormalization", [x], x.shape, axis=1, p=2)
    return b.node(op, [x, b.weight(c, scale=0.2, shift=1), b.weight(c)], x.shape, epsilon=1e-2)


def cumulative(b, x):
    if x.rank < 2 or int(np.prod(x.shape)) > 4000:
        return None
    axis = int(b.rng.integers(1, x.rank))
    if x.shape[axis] > 32:
        return None
    flags = {k: 1 for k in ("exclusive", "reverse") if chance(b.rng, 0.3)}
    small = b.node("Mul", [x, b.constant(0.2, np.float32)], x.shape)
    return b.node("CumSum", [small, b.constant(axis)], x.shape, **flags)
