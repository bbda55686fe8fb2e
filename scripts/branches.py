#!/usr/bin/env python3
"""Models with branches, whose kernels may run side by side on a GPU, as ONNX files: branches.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes by method calls; every value is float32."""

    def __init__(self, seed: int, x: list[int]):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.x = [], [], x

    def add(self, kind: str, *inputs: str, **attributes) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def weight(self, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def random(self, *shape: int, scale: float = 1) -> str:
        return self.weight((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def conv(self, x: str, channels: int, filters: int, window: int = 1, stride: int = 1) -> str:
        w = self.random(filters, channels, window, window, scale=(channels * window * window) ** -0.5)
        c = self.add("Conv", x, w, self.random(filters), strides=[stride] * 2, pads=[window // 2] * 4)
        return self.add("Relu", c)

    def gemm(self, x: str, terms: int, columns: int) -> str:
        return self.add("MatMul", x, self.random(terms, columns, scale=terms**-0.5))

    def model(self, *results: str) -> onnx.ModelProto:
        info = helper.make_tensor_value_info
        nodes = [*self.nodes]
        outputs = []
        for i, result in enumerate(results):
            name = "y" if i == 0 else f"y{i}"
            nodes.append(helper.make_node("Identity", [result], [name]))
            outputs.append(info(name, TensorProto.FLOAT, None))
        graph = helper.make_graph(nodes, "waves", [info("x", TensorProto.FLOAT, self.x)], outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def inception() -> onnx.ModelProto:
    """Two blocks of four branches each, side by side along the channels."""
    g = Graph(1, [1, 32, 14, 14])
    x, channels = "x", 32
    for _ in range(2):
        one = g.conv(x, channels, 24)
        two = g.conv(g.conv(x, channels, 16), 16, 32, 3)
        three = g.conv(g.conv(g.conv(x, channels, 8), 8, 16, 3), 16, 16, 3)
        four = g.conv(g.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4), channels, 8)
        x, channels = g.add("Concat", one, two, three, four, axis=1), 80
    return g.model(g.add("GlobalAveragePool", x), x)


def exchanging() -> onnx.ModelProto:
    """Images of three sizes that are computed side by side and give each other what they have."""
    g = Graph(2, [1, 16, 16, 16])
    images = ["x", g.conv("x", 16, 24, 3, 2)]
    images.append(g.conv(images[1], 24, 40, 3, 2))
    widths = [16, 24, 40]
    for _ in range(2):
        images = [g.conv(g.conv(v, c, c, 3), c, c, 3) for v, c in zip(images, widths)]
        mixed = []
        for i, to in enumerate(widths):
            parts = []
            for j, (value, of) in enumerate(zip(images, widths)):
                if j > i:
                    scales = g.weight(np.array([1, 1, 2 ** (j - i), 2 ** (j - i)], np.float32))
                    parts.append(g.add("Resize", g.conv(value, of, to), "", scales, mode="nearest"))
                else:
                    part, width = value, of
                    for k in range(j, i):
                        part, width = g.conv(part, width, widths[k + 1], 3, 2), widths[k + 1]
                    parts.append(part)
            mixed.append(g.add("Relu", g.add("Sum", *parts)))
        images = mixed
    return g.model(*images)


def rows() -> onnx.ModelProto:
    """Products in parts, normalizations, sums, sorted and scattered values of the same few rows."""
    g = Graph(3, [8, 2048])
    a = g.add("Softmax", g.gemm("x", 2048, 96), axis=-1)
    b = g.add("LayerNormalization", g.gemm("x", 2048, 80), g.random(80), g.random(80), axis=-1)
    c = g.add("CumSum", g.gemm("x", 2048, 96), g.weight(np.array(1, np.int64)))
    d = g.add("ReduceMax", "x", g.weight(np.array([1], np.int64)))
    g.nodes.append(helper.make_node("TopK", [b, g.weight(np.array([5], np.int64))], ["top", "at"], axis=-1))
    f = g.add("MatMul", c, g.random(96, 24, scale=0.1))  # before what it reads is updated in place
    e = g.add("ScatterElements", c, "at", "top", axis=1)
    joined = g.add("Concat", a, b, "top", e, f, d, axis=-1)
    return g.model(joined, g.add("MatMul", a, g.random(96, 8, scale=0.1)))


def drawn(seed: int) -> onnx.ModelProto:
    """Twenty operators, each of values that are there by then."""
    g = Graph(seed, [12, 48])
    values = ["x"]
    for _ in range(20):
        pick = lambda: values[g.rng.integers(max(0, len(values) - 6), len(values))]
        kind = g.rng.integers(7)
        if kind <= 2:
            value = g.add("Add", g.gemm(pick(), 48, 48), pick())
        elif kind == 3:
            value = g.add("Softmax", pick(), axis=int(g.rng.integers(2)))
        elif kind == 4:
            value = g.add("Tanh", g.add("Transpose", g.gemm(g.add("Transpose", pick(), perm=[1, 0]), 12, 12), perm=[1, 0]))
        elif kind == 5:
            value = g.add("CumSum", g.add("Tanh", pick()), g.weight(np.array(1, np.int64)), reverse=int(g.rng.integers(2)))
            value = g.add("Div", value, g.weight(np.array(7, np.float32)))
        else:
            value = g.add("Mul", g.add("Sigmoid", pick()), pick())
        values.append(value)
    return g.model(g.add("Tanh", g.add("Sum", *values[-6:])), values[-3])


if __name__ == "__main__":
    for build in (inception, exchanging, rows):
        onnx.save(build(), Path(sys.argv[1]) / f"{build.__name__}.onnx")
