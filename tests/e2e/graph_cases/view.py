"""Steps that move values: reshapes, slices, pads, concatenations."""

from __future__ import annotations

import numpy as np
from op_cases.base import chance, choose


def transpose(b, x):
    if x.rank < 3:
        return None
    perm = [0, *(1 + int(a) for a in b.rng.permutation(x.rank - 1))]
    return b.node("Transpose", [x], [x.shape[p] for p in perm], perm=perm)


def flatten(b, x):
    if x.rank < 2:
        return None
    count = int(np.prod(x.shape[1:]))
    if count > 2048:
        return None
    if chance(b.rng, 0.5):
        return b.node("Flatten", [x], (x.shape[0], count))
    return b.reshape(x, (x.shape[0], count))


def unfold(b, x):
    """A reshape that splits the last axis or merges two."""
    if x.rank >= 3 and chance(b.rng, 0.5):
        at = int(b.rng.integers(1, x.rank - 1))
        shape = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
        return b.reshape(x, shape)
    last = x.shape[-1]
    factors = [f for f in (2, 3, 4, 8) if x.rank > 1 and last % f == 0 and last > f]
    if not factors or x.rank > 4:
        return None
    factor = choose(b.rng, factors)
    return b.reshape(x, (*x.shape[:-1], factor, last // factor))


def slice_(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    extent = x.shape[axis]
    step = choose(b.rng, (1, 1, 2))
    start = int(b.rng.integers(0, (extent + 1) // 2))
    end = int(b.rng.integers(start + 1, extent + 1))
    shape = list(x.shape)
    shape[axis] = -(-(end - start) // step)
    return b.node("Slice", [x, *(b.constant([v]) for v in (start, end, axis, step))], shape)


def split_gate(b, x):
    if x.rank < 2 or x.shape[-1] % 2 or x.shape[-1] < 4:
        return None
    half = (*x.shape[:-1], x.shape[-1] // 2)
    left, right = b.nodes_out("Split", [x], [half, half], axis=-1, num_outputs=2)
    return b.node("Mul", [left, b.node("Sigmoid", [right], half)], half)


def concat(b, x):
    same = [v for v in b.values if v.rank == x.rank and x.rank > 1]
    axis = int(b.rng.integers(1, x.rank)) if x.rank > 1 else 0
    same = [
        v for v in same
        if all(i == axis or c == d for i, (c, d) in enumerate(zip(v.shape, x.shape)))
    ]  # fmt: skip
    if not same or axis == 0:
        return None
    others = [choose(b.rng, same) for _ in range(int(b.rng.integers(1, 3)))]
    shape = list(x.shape)
    shape[axis] += sum(v.shape[axis] for v in others)
    return b.node("Concat", [x, *others], shape, axis=axis)


def pad(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    before, after = int(b.rng.integers(0, 3)), int(b.rng.integers(0, 3))
    pads = [0] * (2 * x.rank)
    pads[axis], pads[x.rank + axis] = before, after
    shape = list(x.shape)
    shape[axis] += before + after
    return b.node("Pad", [x, b.constant(pads)], shape)


def mirror_pad(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    mode = choose(b.rng, ("reflect", "edge"))
    most = 2 if mode == "edge" else min(2, x.shape[axis] - 1)
    pads = [0] * (2 * x.rank)
    pads[axis] = int(b.rng.integers(0, most + 1))
    pads[x.rank + axis] = int(b.rng.integers(0, most + 1))
    shape = list(x.shape)
    shape[axis] += pads[axis] + pads[x.rank + axis]
    return b.node("Pad", [x, b.constant(pads)], shape, mode=mode)


def expand(b, x):
    if x.rank < 2 or x.rank > 4:
        return None
    axis = int(b.rng.integers(1, x.rank + 1))
    lifted = (*x.shape[:axis], 1, *x.shape[axis:])
    y = b.node("Unsqueeze", [x, b.constant([axis])], lifted)
    target = [1] * len(lifted)
    target[axis] = choose(b.rng, (2, 3, 5))
    shape = (*x.shape[:axis], target[axis], *x.shape[axis:])
    return b.node("Expand", [y, b.constant(target)], shape)


def tile(b, x):
    if x.rank < 2:
        return None
    times = [1, *(choose(b.rng, (1, 1, 2, 3)) for _ in x.shape[1:])]
    return b.node("Tile", [x, b.constant(times)], [d * t for d, t in zip(x.shape, times)])


def reverse(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    bounds = (b.constant([v]) for v in (-1, -x.shape[axis] - 1, axis, -1))
    return b.node("Slice", [x, *bounds], x.shape)


def turn_batch(b, x):
    """Sequence first, something along it, and back."""
    if x.rank != 3:
        return None
    n, s, d = x.shape
    y = b.node("Transpose", [x], (s, n, d), perm=[1, 0, 2])
    op = choose(b.rng, ("Tanh", "Softmax", "Slice", "LayerNormalization"))
    if op == "Softmax":
        y = b.node(op, [y], y.shape, axis=choose(b.rng, (0, 2)))
    elif op == "Slice" and s > 1:
        y = b.node(op, [y, *(b.constant([v]) for v in (-1, -s - 1, 0, -1))], y.shape)
    elif op == "LayerNormalization" and d >= 4:
        y = b.node(op, [y, b.weight(d, scale=0.2, shift=1)], y.shape, axis=-1, epsilon=1e-3)
    else:
        y = b.node("Tanh", [y], y.shape)
    return b.node("Transpose", [y], (n, s, d), perm=[1, 0, 2])


def several(b, x):
    """Parts of unequal sizes, used in another order."""
    if x.rank < 2 or x.shape[-1] < 4:
        return None
    last = x.shape[-1]
    cuts = (1, last // 2, last - 1 - last // 2)
    parts = [(*x.shape[:-1], c) for c in cuts if c]
    outs = b.nodes_out("Split", [x, b.constant([c for c in cuts if c])], parts, axis=-1)
    order = [outs[i] for i in b.rng.permutation(len(outs))]
    order[0] = b.node("Tanh", [order[0]], order[0].shape)
    return b.node("Concat", order, x.shape, axis=-1)


def shaped_mask(b, x):
    """A triangle made from the value's own shape, as decoders have it."""
    if x.rank < 2 or x.shape[-1] > 64 or x.shape[-2] > 64 or x.rank == 2:
        return None
    dims = x.shape[-2:]
    shape = b.node("Shape", [x], (2,), start=-2)
    ones = b.node("Expand", [b.constant(1.0, np.float32), shape], dims)
    mask = b.node("Trilu", [ones], dims, upper=0)
    return b.node("Mul", [x, mask], x.shape)
