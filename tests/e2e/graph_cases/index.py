"""Steps whose places are data."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from op_cases.base import choose


def gather(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    count = choose(b.rng, (1, 3, 8))
    index = b.constant(b.rng.integers(-x.shape[axis], x.shape[axis], count))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return b.node("Gather", [x, index], shape, axis=axis)


def choose_best(b, x):
    """Indices computed from an input choose rows of a table."""
    source = b.inputs[0]
    if source.rank < 2:
        return None
    axis = int(b.rng.integers(1, source.rank))
    dims = [1 if i == axis else d for i, d in enumerate(source.shape)]
    best = b.node("ArgMax", [source], dims, axis=axis, keepdims=1)
    table = b.weight(source.shape[axis], choose(b.rng, (4, 8, 17)))
    return b.node("Gather", [table, best], (*dims, b.weights[table].shape[1]), axis=0)


def gather_elements(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    source = b.inputs[0]
    if source.shape != x.shape:
        return None
    low = b.node("Greater", [source, b.constant(0.0, np.float32)], x.shape)
    index = b.node("Cast", [low], x.shape, to=TensorProto.INT64)
    last = b.constant(x.shape[axis] - 1)
    index = b.node("Min", [index, last], x.shape)
    return b.node("GatherElements", [x, index], x.shape, axis=axis)


def scatter(b, x):
    if x.rank < 2 or x.rank > 4:
        return None
    extent = x.shape[1]
    count = int(b.rng.integers(1, min(extent, 4) + 1))
    rows = b.rng.permutation(extent)[:count]
    turned = b.node("Transpose", [x], (extent, x.shape[0], *x.shape[2:]),
                    perm=[1, 0, *range(2, x.rank)])  # fmt: skip
    taken = b.node("Gather", [turned, b.constant(rows[::-1])], (count, *turned.shape[1:]), axis=0)
    update = b.node("Sigmoid", [taken], taken.shape)
    result = b.node("ScatterND", [turned, b.constant(rows[:, None]), update], turned.shape)
    return b.node("Transpose", [result], x.shape, perm=[1, 0, *range(2, x.rank)])
