"""Steps of images: convolutions, pools, resizing, channels."""

from __future__ import annotations

import numpy as np
from op_cases.base import chance, choose


def conv(b, x):
    if x.rank != 4 or min(x.shape[2:]) < 3:
        return None
    n, cin, h, w = x.shape
    depthwise = chance(b.rng, 0.3)
    kernel, stride = choose(b.rng, ((1, 1), (3, 1), (3, 2), (3, 1)))
    out = cin if depthwise else choose(b.rng, (4, 8, 16, 17, 32))
    group = cin if depthwise else 1
    pad = kernel // 2
    weight = b.weight(out, cin // group, kernel, kernel, scale=(kernel * kernel * cin // group) ** -0.5)
    shape = (n, out, (h + 2 * pad - kernel) // stride + 1, (w + 2 * pad - kernel) // stride + 1)
    operands = [x, weight] + ([b.weight(out)] if chance(b.rng, 0.5) else [])
    y = b.node(
        "Conv", operands, shape, kernel_shape=[kernel] * 2, strides=[stride] * 2,
        pads=[pad] * 4, group=group,
    )  # fmt: skip
    if chance(b.rng, 0.5):
        stats = [b.weight(out, scale=0.2, shift=1), b.weight(out), b.weight(out)]
        name = b.name("w")
        b.weights[name] = b.rng.uniform(0.5, 2, out).astype(np.float32)
        y = b.node("BatchNormalization", [y, *stats, name], shape)
    if y.shape == x.shape and chance(b.rng, 0.6):
        y = b.node("Add", [y, x], shape)
    if chance(b.rng, 0.6):
        y = b.node("Relu", [y], shape)
    return y


def conv_other(b, x):
    """Convolutions of one dimension, in groups, dilated, transposed."""
    if x.rank == 3 and x.shape[2] >= 5:
        n, cin, w = x.shape
        kernel, dilation = choose(b.rng, ((3, 1), (3, 2), (5, 1), (1, 1)))
        reach = (kernel - 1) * dilation
        group = choose(b.rng, [g for g in (1, 2, 4) if cin % g == 0])
        out = group * choose(b.rng, (1, 3, 8))
        weight = b.weight(out, cin // group, kernel, scale=(kernel * cin // group) ** -0.5)
        return b.node(
            "Conv", [x, weight, b.weight(out)], (n, out, w + 2 * (reach // 2) - reach),
            dilations=[dilation], pads=[reach // 2] * 2, group=group,
        )  # fmt: skip
    if x.rank == 4 and x.shape[1] <= 16 and max(x.shape[2:]) <= 17:
        n, cin, h, w = x.shape
        out, stride = choose(b.rng, (3, 8)), choose(b.rng, (1, 2))
        weight = b.weight(cin, out, 3, 3, scale=(9 * cin) ** -0.5)
        shape = (n, out, (h - 1) * stride + 1, (w - 1) * stride + 1)
        return b.node("ConvTranspose", [x, weight], shape, strides=[stride] * 2, pads=[1] * 4)
    return None


def pool(b, x):
    if x.rank != 4 or min(x.shape[2:]) < 3:
        return None
    if chance(b.rng, 0.3):
        return b.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))
    op = choose(b.rng, ("MaxPool", "AveragePool"))
    n, c, h, w = x.shape
    shape = (n, c, (h + 2 - 3) // 2 + 1, (w + 2 - 3) // 2 + 1)
    return b.node(op, [x], shape, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def pool_other(b, x):
    if x.rank != 4 or min(x.shape[2:]) < 4:
        return None
    n, c, h, w = x.shape
    if chance(b.rng, 0.5):
        shape = (n, c, -(-(h - 3) // 2) + 1, -(-(w - 3) // 2) + 1)
        return b.node("MaxPool", [x], shape, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    return b.node(
        "AveragePool", [x], (n, c, h, w), kernel_shape=[3, 3], pads=[1] * 4,
        count_include_pad=int(chance(b.rng, 0.5)),
    )  # fmt: skip


def squeeze_excite(b, x):
    if x.rank != 4:
        return None
    c = x.shape[1]
    gate = b.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))
    gate = b.node("Conv", [gate, b.weight(c, c, 1, 1, scale=c**-0.5), b.weight(c)], gate.shape)
    gate = b.node("Sigmoid", [gate], gate.shape)
    return b.node("Mul", [x, gate], x.shape)


def shuffle(b, x):
    """Channels in two groups, interleaved; or blocks of pixels as channels."""
    if x.rank != 4 or x.shape[1] % 2:
        return None
    n, c, h, w = x.shape
    if c % 4 == 0 and chance(b.rng, 0.5):
        return b.node("DepthToSpace", [x], (n, c // 4, h * 2, w * 2), blocksize=2)
    y = b.reshape(x, (n, 2, c // 2, h, w))
    y = b.node("Transpose", [y], (n, c // 2, 2, h, w), perm=[0, 2, 1, 3, 4])
    return b.reshape(y, x.shape)


def resize(b, x):
    if x.rank != 4:
        return None
    scales = b.constant([1, 1, 2, 2], np.float32)
    shape = (*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])
    mode = choose(b.rng, ("nearest", "linear"))
    return b.node("Resize", [x, "", scales], shape, mode=mode)
