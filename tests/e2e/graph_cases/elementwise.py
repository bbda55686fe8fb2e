"""Steps of elementwise operators."""

from __future__ import annotations

import numpy as np
from op_cases.base import chance, choose


def unary(b, x):
    op = choose(b.rng, ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Erf", "HardSwish", "Softplus", "Elu", "Sin"))
    return b.node(op, [x], x.shape)


def clip(b, x):
    bounds = [b.constant(-1.5, np.float32), b.constant(2.0, np.float32)]
    return b.node("Clip", [x, *bounds], x.shape)


def binary(b, x):
    y = b.pick()
    full = x.shape
    if y.shape != full:
        # Reduce or broadcast what the other one has too much of.
        if y.rank != x.rank or any(c not in (1, d) for c, d in zip(y.shape, full)):
            tail = int(b.rng.integers(0, x.rank))
            y = b.weight(*(d if chance(b.rng, 0.7) else 1 for d in full[x.rank - tail :]))
            if tail == x.rank:
                return None
    op = choose(b.rng, ("Add", "Sub", "Mul", "Max", "Min"))
    operands = [x, y] if chance(b.rng, 0.5) else [y, x]
    return b.node(op, operands, full)


def residual(b, x):
    return b.node("Add", [unary(b, x), x], x.shape)


def scale_shift(b, x):
    width = x.shape[-1] if x.rank > 1 else 1
    y = b.node("Mul", [x, b.weight(width, scale=0.3, shift=1)], x.shape)
    return b.node("Add", [y, b.weight(width)], x.shape)


def where(b, x):
    y = b.node("Tanh", [x], x.shape)
    other = b.inputs[0]
    if other.shape != x.shape:
        return None
    # Compare inputs only: a comparison of computed values would be a coin toss.
    test = b.node("Greater", [other, b.constant(0.1, np.float32)], x.shape)
    return b.node("Where", [test, x, y], x.shape)


def gelu(b, x):
    constant = lambda v: b.constant(v, np.float32)
    if chance(b.rng, 0.5):
        inner = b.node("Div", [x, constant(2**0.5)], x.shape)
        inner = b.node("Erf", [inner], x.shape)
    else:
        cube = b.node("Pow", [x, constant(3.0)], x.shape)
        inner = b.node("Mul", [cube, constant(0.044715)], x.shape)
        inner = b.node("Add", [x, inner], x.shape)
        inner = b.node("Mul", [inner, constant((2 / np.pi) ** 0.5)], x.shape)
        inner = b.node("Tanh", [inner], x.shape)
    inner = b.node("Add", [inner, constant(1.0)], x.shape)
    if chance(b.rng, 0.5):
        half = b.node("Mul", [x, constant(0.5)], x.shape)
        return b.node("Mul", [half, inner], x.shape)
    return b.node("Mul", [b.node("Mul", [x, inner], x.shape), constant(0.5)], x.shape)
