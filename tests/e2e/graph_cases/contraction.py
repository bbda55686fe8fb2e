"""Steps of matrix products and of what is made of them."""

from __future__ import annotations

import numpy as np
from op_cases.base import chance, choose


def linear(b, x):
    if x.rank < 2 or x.rank > 4:
        return None
    width, out = x.shape[-1], choose(b.rng, (8, 16, 17, 24, 33, 64))
    shape = (*x.shape[:-1], out)
    if x.rank == 2 and chance(b.rng, 0.5):
        weight = b.weight(out, width, scale=width**-0.5)
        return b.node("Gemm", [x, weight, b.weight(out)], shape, transB=1)
    y = b.node("MatMul", [x, b.weight(width, out, scale=width**-0.5)], shape)
    return b.node("Add", [y, b.weight(out)], shape) if chance(b.rng, 0.7) else y


def batched_matmul(b, x):
    y = b.pick(3)
    if x.rank != 3 or y is None:
        return None
    scale = b.constant(x.shape[2] ** -0.5, np.float32)
    left = b.node("Mul", [x, scale], x.shape)
    if y.shape[1] == x.shape[2]:
        return b.node("MatMul", [left, y], (*x.shape[:2], y.shape[2]))
    if y.shape[2] == x.shape[2]:
        turned = b.node("Transpose", [y], (y.shape[0], y.shape[2], y.shape[1]), perm=[0, 2, 1])
        return b.node("MatMul", [left, turned], (*x.shape[:2], y.shape[1]))
    return None


def attention(b, x):
    if x.rank != 3 or x.shape[2] not in (16, 24, 32, 64):
        return None
    n, s, width = x.shape
    heads = choose(b.rng, (1, 2, 4))
    depth = width // heads
    project = lambda: b.node("MatMul", [x, b.weight(width, width, scale=width**-0.5)], x.shape)

    def split_heads(value, perm):
        value = b.reshape(value, (n, s, heads, depth))
        dims = (n, s, heads, depth)
        return b.node("Transpose", [value], [dims[p] for p in perm], perm=list(perm))

    q = split_heads(project(), (0, 2, 1, 3))
    v = split_heads(project(), (0, 2, 1, 3))
    scale = b.constant(depth**-0.25, np.float32)
    if chance(b.rng, 0.5):
        k = split_heads(project(), (0, 2, 3, 1))
    else:
        k = split_heads(project(), (0, 2, 1, 3))
        k = b.node("Transpose", [k], (n, heads, depth, s), perm=[0, 1, 3, 2])
    both = chance(b.rng, 0.5)
    if both:
        q = b.node("Mul", [q, scale], q.shape)
        k = b.node("Mul", [k, scale], k.shape)
    scores = b.node("MatMul", [q, k], (n, heads, s, s))
    if not both:
        scores = b.node("Div", [scores, b.constant(depth**0.5, np.float32)], scores.shape)
    if chance(b.rng, 0.4):
        mask = np.triu(np.full((s, s), -1e9, np.float32), 1)
        name = b.name("mask")
        b.weights[name] = mask.reshape(1, 1, s, s)
        scores = b.node("Add", [scores, name], scores.shape)
    # Keys that a query may not attend to; the first query has none.
    fill = choose(b.rng, (None, None, -np.inf, -1e9, -65504.0))
    if fill is not None:
        keep = b.rng.random((s, s)) < 0.6
        keep[0] = False
        name = b.name("keep")
        b.weights[name] = keep
        scores = b.node("Where", [name, scores, b.constant(fill, np.float32)], scores.shape)
    weights = b.node("Softmax", [scores], scores.shape, axis=-1)
    if fill is not None and np.isinf(fill):
        empty = b.node("IsNaN", [weights], weights.shape)
        weights = b.node("Where", [empty, b.constant(0, np.float32), weights], weights.shape)
    mixed = b.node("MatMul", [weights, v], (n, heads, s, depth))
    mixed = b.node("Transpose", [mixed], (n, s, heads, depth), perm=[0, 2, 1, 3])
    mixed = b.reshape(mixed, (n, s, width))
    out = b.node("MatMul", [mixed, b.weight(width, width, scale=width**-0.5)], x.shape)
    return b.node("Add", [x, out], x.shape) if chance(b.rng, 0.7) else out


def rows_of_batch(b, x):
    """Batch and sequence as one dimension, as exporters write linear layers."""
    if x.rank < 3 or x.shape[-1] > 64:
        return None
    width, out = x.shape[-1], choose(b.rng, (8, 17, 32))
    count = int(np.prod(x.shape[:-1]))
    flat = b.node("Reshape", [x, b.constant([-1, width])], (count, width))
    y = b.node("MatMul", [flat, b.weight(width, out, scale=width**-0.5)], (count, out))
    if chance(b.rng, 0.6):
        y = b.node(choose(b.rng, ("Relu", "Sigmoid", "Tanh")), [y], y.shape)
    if chance(b.rng, 0.3):
        y = b.node("Softmax", [y], y.shape, axis=-1)
    shape = (*x.shape[:-1], out)
    return b.node("Reshape", [y, b.constant([-1, *shape[1:]])], shape)


def einsum(b, x):
    if x.rank != 3:
        return None
    n, s, d = x.shape
    equation, shape, other = choose(b.rng, (
        ("nsd,de->nse", (n, s, 8), (d, 8)), ("nsd,sd->ns", (n, s), (s, d)),
        ("nsd,se->ned", (n, 9, d), (s, 9)), ("nsd->nds", (n, d, s), None),
    ))  # fmt: skip
    operands = [x] + ([b.weight(*other, scale=other[0] ** -0.5)] if other else [])
    return b.node("Einsum", operands, shape, equation=equation)
