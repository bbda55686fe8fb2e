"""Rows whose running sums and products overflow, vanish, or would if neighbours were combined first."""

from __future__ import annotations

import numpy as np

TYPES = {"float": np.float32, "double": np.float64}


def sum_heads(most, _least):
    return {
        # What neighbours add up to is too large; from the front it is not.
        "back-and-forth": [-0.9 * most, 0.9 * most, 0.9 * most, -0.9 * most, -0.9 * most],
        "shifted": [0, -0.9 * most, 0.9 * most, 0.9 * most, 0, -0.9 * most, -0.9 * most, 1],
        "far": [0] * 30 + [-0.7 * most] + [0] * 9 + [0.7 * most, 0.7 * most, 0, -0.7 * most],
        "overflow": [0.9 * most, 0.9 * most, 1, 2],
        "infinity": [1, np.inf, 2, 3],
        "both-infinities": [1, np.inf, 2, -np.inf, 3],
        "nan": [1, 2, np.nan, 4],
        "zeros": [-0.0, 0.0, -0.0],
    }


SUMS = list(sum_heads(1.0, 0.0))


def product_heads(most, least):
    root = float(np.sqrt(most))
    return {
        # Zero times what is too large.
        "zero": [0, root, root, root, root],
        "late-zero": [2, 3, 0, root, root, root, root],
        "zero-and-infinity": [2, 0, 3, np.inf, 5],
        "infinity-and-zero": [2, np.inf, 3, 0, 5],
        "nan": [0, 1, np.nan, 3],
        # In range from the front, and not in pairs, too large or too small.
        "pairs-overflow": [1 / root, 1 / root, root * 4, root * 4, 1 / root, 1, 2],
        "pairs-vanish": [root / 4, root / 4, 1 / root, 1 / root, 1 / root, root, 3],
        "pairs-lose-digits": [root, 1 / root / 3, 1 / root / 7, root, 1, 2],
        # Gone for good.
        "vanished": [least * 2, least * 2, root, root, root, root],
        "overflow": [root, root * 2, 1 / root, 1 / root],
        "halves": [0.5] * 1200 + [1] * 700 + [2] * 300,
    }


PRODUCTS = list(product_heads(4.0, 0.25))


def rows(heads, fill, names, dtype, length):
    """Three rows of each, the head at other places, so that lanes and parts begin anywhere."""
    info = np.finfo(TYPES[dtype])
    all_heads = heads(float(info.max), float(info.tiny))
    chosen = [all_heads[name] for name in names]
    length = max(length, *(len(head) + 100 for head in chosen))
    x = np.tile(np.resize(fill, length), (3 * len(chosen), 1))
    for i, head in enumerate(chosen):
        for r, at in enumerate((0, 3, 17)):
            x[3 * i + r, at : at + len(head)] = head
    return x.astype(TYPES[dtype])


def sums(dtype, length=200, names=SUMS):
    x = rows(sum_heads, [0.0], names, dtype, length)
    with np.errstate(all="ignore"):
        return x, np.add.accumulate(x, axis=1, dtype=x.dtype)


def products(dtype, length=200, names=PRODUCTS):
    x = rows(product_heads, [1.5, 0.75, 1 / 1.125], names, dtype, length)
    with np.errstate(all="ignore"):
        return x, np.multiply.accumulate(x, axis=1, dtype=x.dtype)


def expect(got, want):
    """Equal but for the last places, and not finite at the same places."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isposinf(got), np.isposinf(want))
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(want))
    finite = np.isfinite(want)
    tiny = np.finfo(want.dtype).tiny
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-5, atol=tiny)
