"""Sums over images that begin in the kernels that compute these, run by charonia-simt."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper
from simt_sums_test import LIMITS, Model


def excited(m: Model, x: str, channels: int, few: int, rank: int = 2) -> str:
    """Squeeze and excite."""
    ones = [1] * rank
    first = m.weight(few, channels, *ones, terms=channels), m.weight(few)
    second = m.weight(channels, few, *ones, terms=few), m.weight(channels)
    squeezed = m.add("Relu", m.add("Conv", m.add("GlobalAveragePool", x), *first))
    return m.add("Mul", x, m.add("Sigmoid", m.add("Conv", squeezed, *second)))


def depthwise(m: Model, x: str, channels: int, window: int, stride: int, rank: int = 2) -> str:
    """A convolution of each channel alone, with what follows it element by element."""
    pads = [window // 2] * (2 * rank)
    filters = m.weight(channels, 1, *[window] * rank, terms=window**rank)
    x = m.add("Conv", x, filters, m.weight(channels), group=channels, strides=[stride] * rank, pads=pads)  # fmt: skip
    return m.add("Mul", x, m.add("Sigmoid", x))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize(
    "batch, channels, height, width, window, stride, kernels",
    [
        (1, 96, 14, 14, 3, 1, 2),  # an image in two cells, neither as a whole
        (1, 40, 7, 7, 5, 1, 2),  # in one
        (1, 8, 1, 31, 3, 1, 2),
        (1, 24, 29, 13, 3, 2, 2),
        (1, 48, 1, 1, 3, 1, None),  # no image: there is nothing to add up
        (1, 16, 37, 5, 5, 1, 2),
        (3, 32, 9, 10, 3, 1, None),
        (1, 20, 9, 9, 3, 1, None),  # channels are no vectors: a kernel of its own
    ],
)
def test_sums_begin(tmp_path, target, precision, batch, channels, height, width, window, stride, kernels):
    m = Model(channels + height)
    x = m.add("Transpose", m.input("x", batch, height, width, channels), perm=[0, 3, 1, 2])
    result = excited(m, depthwise(m, x, channels, window, stride), channels, 4)
    result = m.add("Transpose", result, perm=[0, 2, 3, 1])
    if kernels and precision != "fp32":
        kernels += 1  # of the input's cast
    m.check(tmp_path, result, kernels, target, precision)


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("batch", [1, 3])
def test_open_batch(tmp_path, precision, batch):
    """Each image has cells of its own."""
    m = Model(batch)
    shape = [9, 11, 24]
    x = m.input("x", batch, *shape)
    m.open["x"] = ["n", *shape]
    m.shapes = {"x": ["1..1..4", *shape]}
    x = m.add("Transpose", x, perm=[0, 3, 1, 2])
    result = excited(m, depthwise(m, x, 24, 3, 1), 24, 6)
    m.check(tmp_path, m.add("Transpose", result, perm=[0, 2, 3, 1]), None, "sm_90a", precision)


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("image", [[37], [130], [5, 3, 9]])
def test_other_ranks(tmp_path, precision, image):
    m = Model(len(image))
    rank, channels = len(image), 32
    x = m.add("Transpose", m.input("x", 1, *image, channels), perm=[0, rank + 1, *range(1, rank + 1)])
    result = excited(m, depthwise(m, x, channels, 3, 1, rank), channels, 4, rank)
    result = m.add("Transpose", result, perm=[0, *range(2, rank + 2), 1])
    m.check(tmp_path, result, 2 + (precision != "fp32"), "sm_90a", precision)


@pytest.mark.parametrize("precision", LIMITS)
def test_stored_across(tmp_path, precision):
    """An image whose channels come first in memory: tiles are its cells all the same."""
    m = Model(5)
    x = m.add("Transpose", m.input("x", 1, 9, 14, 32), perm=[0, 3, 1, 2])
    result = excited(m, depthwise(m, x, 32, 3, 1), 32, 4)
    m.check(tmp_path, result, None, "sm_90a", precision)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize(
    "inside, channels, groups, window, height, width, kernels",
    [
        (32, 64, 1, 1, 7, 7, 2),  # the second cell ends behind the last row
        (64, 256, 1, 1, 56, 56, None),  # weights are the rows of the dot
        (48, 104, 13, 3, 14, 9, 2),  # of groups
        (16, 40, 1, 3, 5, 3, 2),
        (64, 256, 1, 1, 37, 41, 2),
        (512, 64, 1, 1, 8, 8, None),  # instances may share the terms
        (24, 33, 1, 1, 9, 11, 2),
        (24, 40, 1, 1, 1, 77, 2),
        (24, 40, 1, 1, 50, 1, 2),
        (8, 16, 1, 1, 1, 1, None),
    ],
)
def test_sums_of_products(tmp_path, target, precision, inside, channels, groups, window, height, width, kernels):
    """Cells are runs of a product's rows."""
    m = Model(channels + height)
    x = m.add("Transpose", m.input("x", 1, height, width, inside if groups == 1 else channels), perm=[0, 3, 1, 2])
    terms = (inside if groups == 1 else channels) // groups
    filters = m.weight(channels, terms, window, window, terms=terms * window * window)
    y = m.add("Relu", m.add("Conv", x, filters, m.weight(channels), group=groups, pads=[window // 2] * 4))
    result = m.add("Transpose", excited(m, y, channels, 4), perm=[0, 2, 3, 1])
    if kernels and precision != "fp32":
        kernels += 1  # of the input's cast
    m.check(tmp_path, result, kernels, target, precision)


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("between", ["gate", "pool", "softmax", "squeeze"])
def test_made_later(tmp_path, precision, between):
    """Sums of an image that another kernel than the convolution's gives."""
    m = Model(len(between))
    x = m.add("Transpose", m.input("x", 1, 9, 14, 32), perm=[0, 3, 1, 2])
    c = depthwise(m, x, 32, 3, 1)
    if between == "gate":
        squares = m.add("GlobalAveragePool", m.add("Mul", c, c))
        c = m.add("Mul", c, m.add("Sigmoid", squares))
    elif between == "pool":
        c = m.add("Add", c, m.add("AveragePool", c, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    elif between == "softmax":
        c = m.add("Mul", c, m.add("Softmax", c, axis=1))
    else:
        c = excited(m, c, 32, 4)
    m.check(tmp_path, m.add("Mul", c, m.add("GlobalAveragePool", c)), None, "sm_90a", precision)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("behind", ["cast", "slice"])
def test_windows_apart(tmp_path, target, behind):
    """A model's own sums of cells, where no contraction is in front."""
    m = Model(len(behind))
    x = m.input("x", 1, 32, 12, 14)
    if behind == "slice":
        bounds = [numpy_helper.from_array(np.array(v, np.int64), f"v{i}") for i, v in enumerate(([1, 2], [11, 14], [2, 3]))]
        m.weights += bounds
        x = m.add("Slice", depthwise(m, x, 32, 3, 1), *[v.name for v in bounds])
    x = m.add("LpPool", x, kernel_shape=[2, 2], strides=[2, 2], p=2)
    m.check(tmp_path, x, None, target, "fp16")
