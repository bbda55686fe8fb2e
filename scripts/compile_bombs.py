#!/usr/bin/env python3
"""Models that are small to write down and were slow to compile.

    compile_bombs.py [NAME...] [--target cpu] [--output-dir DIR] [--json out.json]

For each: size of the file, processor seconds of one compilation without the
kernel cache, peak memory, and whether the results agree with onnxruntime. Fails where
one is not compiled, or not refused, in time, or where results differ.
`--output-dir` keeps the models. docs/performance.md has the table and the bound.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import harness
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, dims, dtype: int = FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


@dataclass
class Graph:
    """Nodes and weights as they are written down; `op` gives the result's name."""

    seed: int = 0
    nodes: list = field(default_factory=list)
    weights: list = field(default_factory=list)

    def __post_init__(self):
        self.rng = np.random.RandomState(self.seed)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(
            helper.make_node(kind, inputs, names, name=f"n{len(self.nodes)}", **attributes)
        )
        return names[0] if outputs == 1 else names

    def constant(self, values, dtype=np.int64) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def weight(self, *dims: int) -> str:
        scale = 1 / np.sqrt(max(1, dims[0]))
        return self.constant(self.rng.uniform(-scale, scale, dims), np.float32)

    def linear(self, x: str, k: int, n: int) -> str:
        return self.op("Add", self.op("MatMul", x, self.weight(k, n)), self.weight(n))

    def norm(self, x: str, n: int) -> str:
        return self.op("LayerNormalization", x, self.weight(n), self.weight(n), axis=-1)

    def gelu(self, x: str) -> str:
        half, root = self.constant(0.5, np.float32), self.constant(2**0.5, np.float32)
        one = self.constant(1, np.float32)
        inner = self.op("Add", self.op("Erf", self.op("Div", x, root)), one)
        return self.op("Mul", self.op("Mul", x, inner), half)

    def heads(self, x: str, shape: list[int], order: list[int]) -> str:
        return self.op("Transpose", self.op("Reshape", x, self.constant(shape)), perm=order)

    def model(self, inputs, outputs, opset: int = 17):
        graph = helper.make_graph(self.nodes, "bomb", inputs, outputs, self.weights)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )


# --- The compiler's own bombs ---------------------------------------------------


def lstm(
    steps: int, hidden: int = 32, width: int = 16, directions: int = 1, lengths: bool = False,
    kind: str = "LSTM",
):  # fmt: skip
    """Or another recurrence of the same form, whose steps have `gates` products each."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    g = Graph()
    y, h, *_ = g.op(
        kind, "x", g.weight(directions, gates * hidden, width),
        g.weight(directions, gates * hidden, hidden), g.weight(directions, 2 * gates * hidden),
        *["lengths"] * lengths, outputs=3 if kind == "LSTM" else 2, hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward",
    )  # fmt: skip
    return g.model(
        [info("x", [steps, "batch", width])]
        + [info("lengths", ["batch"], TensorProto.INT32)] * lengths,
        [info(y, [steps, directions, "batch", hidden]), info(h, [directions, "batch", hidden])],
    )


def scan(steps: int):
    """A recurrence whose steps start at multiples of 64 bytes times the batch."""
    hidden, width = 32, 16
    step = Graph(1)
    x, h = step.linear("x_t", width, hidden), step.linear("h", hidden, hidden)
    after = step.op("Tanh", step.op("Add", x, h))
    y = step.op("Identity", after)
    body = helper.make_graph(
        step.nodes, "step",
        [info("h", ["batch", hidden]), info("x_t", ["batch", width])],
        [info(after, ["batch", hidden]), info(y, ["batch", hidden])], step.weights,
    )  # fmt: skip
    g = Graph()
    h, y = g.op("Scan", "h0", "x", outputs=2, body=body, num_scan_inputs=1)
    return g.model(
        [info("h0", ["batch", hidden]), info("x", [steps, "batch", width])],
        [info(h, ["batch", hidden]), info(y, [steps, "batch", hidden])],
    )


def symbolic_concat(count: int, before: tuple[int, ...] = (), behind: tuple[int, ...] = (4,)):
    """Inputs joined along an axis of open sizes, with `before` and `behind` around it."""
    g = Graph()
    names = [f"x{i}" for i in range(count)]
    y = g.op("Concat", *names, axis=len(before))
    inputs = [info(n, [*before, f"n{i}", *behind]) for i, n in enumerate(names)]
    return g.model(inputs, [info(y, [*before, None, *behind])])


def many_inputs(count: int):
    """Kernels that differ in the names of their sizes alone."""
    g = Graph()
    axes = g.constant([1])
    names = [f"x{i}" for i in range(count)]
    sums = [g.op("ReduceSum", name, axes, keepdims=0) for name in names]
    return g.model(
        [info(name, [f"n{i}", f"c{i}"]) for i, name in enumerate(names)],
        [info(y, [f"n{i}"]) for i, y in enumerate(sums)],
    )


def dead_loop(dead: int, outer: int, inner: int, ordered: bool = True, needed: int = 34):
    """A loop in a loop, whose body holds nodes that nothing needs; `ordered`: and lists
    those that are needed in the order of execution. Loops of up to 64 steps are written out."""

    def body(name: str, nodes, state: str):
        return helper.make_graph(
            nodes, name,
            [info(f"{name}_i", [], INT64), info(f"{name}_c", [], BOOL), info(f"{name}_x", [4])],
            [info(f"{name}_c", [], BOOL), info(state, [4])],
        )  # fmt: skip

    chain = [helper.make_node("Relu", ["b_x"], ["d0"])]
    chain += [helper.make_node("Relu", [f"d{i}"], [f"d{i + 1}"]) for i in range(dead)]
    names = ["b_x", *[f"h{i}" for i in range(needed - 1)], "b_y"]
    steps = [helper.make_node("Add", [x, "one"], [y], name="step") for x, y in zip(names, names[1:])]
    inside = body("b", [*(steps if ordered else reversed(steps)), *chain], "b_y")
    loop = helper.make_node("Loop", ["count", "", "a_x"], ["a_y"], name="inner", body=inside)
    around = body("a", [loop], "a_y")
    g = Graph()
    g.weights += [
        numpy_helper.from_array(np.array(inner, np.int64), "count"),
        numpy_helper.from_array(np.ones(4, np.float32), "one"),
    ]
    g.nodes.append(helper.make_node("Loop", [g.constant(outer), "", "x"], ["y"], name="outer", body=around))
    return g.model([info("x", [4])], [info("y", [4])])


def open_state(steps: int, kind: str, sized: bool = False):
    """A loop with a number of an open size that each step computes anew; `sized`: what is left is a size."""
    node = helper.make_node
    parts = {
        "squares": [node("Mul", ["s", "s"], ["p"]), node("Mod", ["p", "m"], ["after"])],
        "quotients": [node("Div", ["s", "three"], ["p"]), node("Add", ["p", "one"], ["after"])],
    }[kind]
    parts += [node("Mul", ["t", "factor"], ["moved"]), node("Identity", ["c"], ["goes"])]
    numbers = [numpy_helper.from_array(np.array(v), k) for k, v in (("m", 101), ("three", 3), ("one", 1))]
    body = helper.make_graph(
        parts, "step",
        [info("i", [], INT64), info("c", [], BOOL), info("s", [], INT64), info("t", None)],
        [info("goes", [], BOOL), info("after", [], INT64), info("moved", None)],
        [*numbers, numpy_helper.from_array(np.array(0.9, np.float32), "factor")],
    )  # fmt: skip
    g = Graph()
    first = g.op("Squeeze", g.op("Shape", "x", start=0, end=1))
    count, last = g.op("Loop", g.constant(steps), "", first, "x", outputs=2, body=body)
    outputs = [info(count, [], INT64), info(last, ["n", 8])]
    if sized:
        outputs.append(info(g.op("ConstantOfShape", g.op("Reshape", count, g.constant([-1]))), ["m"]))
    return g.model([info("x", ["n", 8])], outputs)


def chain(kind: str, count: int, dims=(16, 16)):
    g = Graph()
    x = "x"
    for _ in range(count):
        x = g.op(kind, x)
    return g.model([info("x", dims)], [info(x, dims)])


def matmul_chain(kind: str, count: int):
    """Behind a product, whose tile is many registers."""
    g = Graph()
    x = g.op("MatMul", "x", g.weight(64, 64))
    for _ in range(count):
        x = g.op(kind, x)
    return g.model([info("x", [56, 64])], [info(x, [56, 64])])


def shifts(count: int, length: int = 64):
    """x[:-k] + x[k:] with the k doubled: in one kernel, 2^count places of the input."""
    g = Graph()
    steps = [1 << min(i, 10) for i in range(count)]
    x, size = "x", length + sum(steps)
    dims = [size]
    for k in steps:
        end, zero, one = g.constant([size]), g.constant([0]), g.constant([0])
        left = g.op("Slice", x, zero, g.constant([size - k]), one)
        right = g.op("Slice", x, g.constant([k]), end, one)
        x = g.op("Mul", g.op("Add", left, right), g.constant(0.5, np.float32))
        size -= k
    return g.model([info("x", dims)], [info(x, [size])])


def doubling(count: int, dims=(64, 64)):
    """Each value is used twice by the next: a tree of 2^count leaves, if it were one."""
    g = Graph()
    x = "x"
    for _ in range(count):
        x = g.op("Mul", g.op("Tanh", x), g.op("Sigmoid", x))
    return g.model([info("x", dims)], [info(x, dims)])


def doubled_indices(count: int, indices: int, scatters: int):
    """Indices of scatters, each twice in the next: 2^count paths to a weight."""
    g = Graph()
    first = g.rng.randint(0, 3, (indices, 1))
    index = g.constant(first)
    for _ in range(count):
        index = g.op("Add", index, index)
    updates = g.weight(indices, 1)
    x = "x"
    for _ in range(scatters):
        x = g.op("ScatterND", x, index, updates, reduction="max")
    dims = (2 * 2**count + 1, 1)
    return g.model([info("x", dims)], [info(x, dims)], opset=18)


def doubling_shape(count: int):
    """A vector of 2^(count + 1) sizes: were it code, it would have a part for each."""
    g = Graph()
    x = g.op("Shape", "x")
    for _ in range(count):
        x = g.op("Concat", x, x, axis=0)
    y = g.op("ReduceSum", x, keepdims=0)
    return g.model([info("x", ["n", 4])], [info(y, [], INT64)])


def dag(count: int, seed: int, near: int = 1 << 30, dims=(32, 48)):
    """Random elementwise operators on random earlier values; half of them broadcast."""
    g = Graph(seed)
    unary = ("Sin", "Tanh", "Sigmoid", "Erf", "Neg", "Abs", "Softplus", "Cos")
    binary = ("Add", "Sub", "Mul", "Max", "Min")
    full, row = ["x"], ["r"]
    for _ in range(count):
        pick = lambda values: values[-1 - g.rng.randint(min(len(values), near))]
        if g.rng.rand() < 0.2:
            row.append(g.op(unary[g.rng.randint(len(unary))], pick(row)))
        elif g.rng.rand() < 0.4:
            full.append(g.op(unary[g.rng.randint(len(unary))], pick(full)))
        else:
            other = row if g.rng.rand() < 0.3 else full
            kind = binary[g.rng.randint(len(binary))]
            full.append(g.op("Tanh", g.op(kind, pick(full), pick(other))))
    used = {name for node in g.nodes for name in node.input}
    ends = [v for v in full if v not in used]
    return g.model(
        [info("x", dims), info("r", [1, dims[1]])], [info(v, dims) for v in ends]
    )


def transposes(count: int, dims=(24, 40)):
    """Views between the operators, so that every operand has its own coordinates."""
    g = Graph()
    x, shape = "x", list(dims)
    for i in range(count):
        y = g.op("Tanh", g.op("Transpose", x, perm=[1, 0]))
        x = g.op("Add", x, g.op("Transpose", y, perm=[1, 0])) if i % 2 else g.op("Sin", x)
    return g.model([info("x", shape)], [info(x, shape)])


def mirrored(count: int, dims=(32, 32)):
    """x + transpose(x) over and over: each demand asks for two of different coordinates."""
    g = Graph()
    x = "x"
    for _ in range(count):
        x = g.op("Tanh", g.op("Add", x, g.op("Transpose", x, perm=[1, 0])))
    return g.model([info("x", dims)], [info(x, dims)])


def concats(count: int):
    """Halves exchanged and joined again: indexing that reads indexing."""
    g = Graph()
    x = "x"
    for _ in range(count):
        a, b = g.op("Split", x, outputs=2, axis=1)
        x = g.op("Concat", g.op("Tanh", b), a, axis=1)
    return g.model([info("x", ["n", 64])], [info(x, ["n", 64])])


def open_concats(count: int):
    """The same of an open size, which grows: parts are told apart when they are known."""
    g = Graph()
    x = "x"
    for _ in range(count):
        x = g.op("Concat", g.op("Tanh", x), "x", axis=1)
    return g.model([info("x", ["n", "s"])], [info(x, ["n", f"s{count}"])])


def resizes(count: int, mode: str, scales: list[float]):
    """What lies between elements that lie between elements, at open sizes."""
    g = Graph()
    x, sizes = "x", ["n", 4, "h", "w"]
    for _ in range(count):
        x = g.op("Resize", x, "", g.constant([1, 1, *scales], np.float32), mode=mode)
    return g.model([info("x", sizes)], [info(x, [f"y{i}" for i in range(len(sizes))])], 18)


def regions_of_parts(parts: int):
    """Regions of what is joined along its rows: every sample looks at all parts."""
    g = Graph()
    z = g.op("Concat", *["x", g.op("Neg", "x")] * (parts // 2), axis=3)
    y = g.op(
        "RoiAlign", z, "regions", g.constant([0, 0, 0]), output_height=3, output_width=2,
        sampling_ratio=3, spatial_scale=0.5, coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    return g.model(
        [info("x", [2, 1, "h", "w"]), info("regions", [3, 4])], [info(y, [3, 1, 3, 2])], 18
    )


def pads(count: int):
    g = Graph()
    x, size = "x", 16
    for _ in range(count):
        x = g.op("Tanh", g.op("Pad", x, g.constant([0, 1, 0, 1]), mode="reflect"))
        size += 2
    return g.model([info("x", [8, 16])], [info(x, [8, size])])


def conv_transpose(kernel, strides, dilations, size, groups: int = 1):
    """Each residue of the strides has taps of its own."""
    g = Graph()
    rank = len(kernel)
    x = g.op(
        "ConvTranspose", "x", g.weight(4, 4 // groups, *kernel), strides=strides, dilations=dilations,
        group=groups, pads=[1] * rank + [0] * rank,
    )  # fmt: skip
    spatial = [f"d{i}" for i in range(rank)]
    return g.model([info("x", [1, 4, *size])], [info(x, [1, 4, *spatial])])


def depthwise(channels: int, kernel, strides, size):
    """A window is written out beside every element of a tile, with addresses of their own."""
    g = Graph()
    x = g.op("Conv", "x", g.weight(channels, 1, *kernel), strides=strides, group=channels, pads=[1] * 2 * len(kernel))
    spatial = [f"d{i}" for i in range(len(kernel))]
    return g.model([info("x", ["n", channels, *size])], [info(x, ["n", channels, *spatial])])


def shifted_views(count: int):
    """Paddings and transpositions in turn; all paddings share the constant that they fill with."""
    g = Graph()
    x, amounts = g.op("Sin", "x"), g.constant([0, 1, 0, -1])
    for i in range(count):
        x = g.op("Transpose", x) if i % 2 else g.op("Pad", x, amounts)
    return g.model([info("x", [2, 2])], [info(g.op("Sin", x), [2, 2])])


def tangle(count):
    """Transposes and reshapes in turn, whose coordinates resolve no division."""
    g = Graph()
    x = "x"
    for _ in range(count):
        x = g.op("Reshape", g.op("Transpose", x), g.constant([2, 3]))
    return g.model([info("x", [2, 3])], [info(g.op("Sin", x), [2, 3])])


def reshuffles(count: int, undone: bool = False):
    """Reshapes of open sizes around transposes: heads that are split, turned and merged as they
    come to lie, each another way; `undone`: and turned back before."""
    g = Graph(2)
    sizes = g.op("Shape", "x")
    batch, length = (g.op("Gather", sizes, g.constant([i])) for i in (0, 1))
    columns, rest = g.constant([64]), "x"
    for _ in range(count):
        heads = 2 ** g.rng.randint(1, 6)
        order = [int(d) for d in g.rng.permutation(4)]
        split = g.op("Concat", batch, length, g.constant([heads, 64 // heads]), axis=0)
        rest = g.op("Transpose", g.op("Reshape", rest, split), perm=order)
        if undone:
            rest = g.op("Transpose", rest, perm=[order.index(d) for d in range(4)])
        rest = g.op("Reshape", rest, g.op("Concat", batch, length, columns, axis=0))
    dims = ["batch", "length", 64]
    return g.model([info("x", dims)], [info(g.op("Relu", rest), dims)])


# --- What models looked like that took long ------------------------------------


def attention_of_columns(columns: int):
    """Attention whose values have as many columns as an image has pixels."""
    g = Graph()
    turned = g.op("Transpose", "x", perm=[0, 2, 1])
    weights = g.op("Softmax", g.op("MatMul", turned, "x"), axis=-1)
    result = g.op("MatMul", weights, turned)
    return g.model([info("x", [1, columns, 32])], [info(result, [1, 32, columns])])


def channel_attention(depth: int, tokens: int = 3136, width: int = 64, heads: int = 4):
    """Attention between channels (XCiT): its products run over the tokens."""
    g = Graph()
    x, part = "x", width // heads
    for _ in range(depth):
        n = g.norm(x, width)
        q, k, v = (
            g.heads(g.linear(n, width, width), [1, tokens, heads, part], [0, 2, 3, 1])
            for _ in range(3)
        )
        unit = lambda t: g.op("LpNormalization", t, axis=-1, p=2)
        scores = g.op("MatMul", unit(q), g.op("Transpose", unit(k), perm=[0, 1, 3, 2]))
        weights = g.op("Softmax", g.op("Mul", scores, g.weight(heads, 1, 1)), axis=-1)
        out = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 3, 1, 2])
        out = g.op("Reshape", out, g.constant([1, tokens, width]))
        x = g.op("Add", x, g.op("Mul", g.linear(out, width, width), g.weight(width)))
        # Between neighbours: two depthwise convolutions.
        side = int(tokens**0.5)
        image = g.op("Transpose", g.norm(x, width), perm=[0, 2, 1])
        image = g.op("Reshape", image, g.constant([1, width, side, side]))
        for _ in range(2):
            conv = g.op("Conv", image, g.weight(width, 1, 3, 3), g.weight(width),
                        group=width, pads=[1, 1, 1, 1])  # fmt: skip
            image = g.gelu(conv)
        image = g.op("Reshape", image, g.constant([1, width, tokens]))
        x = g.op("Add", x, g.op("Transpose", image, perm=[0, 2, 1]))
        mlp = g.linear(g.gelu(g.linear(g.norm(x, width), width, 4 * width)), 4 * width, width)
        x = g.op("Add", x, g.op("Mul", mlp, g.weight(width)))
    return g.model([info("x", [1, tokens, width])], [info(x, [1, tokens, width])])


def lstm_mixer(depth: int, side: int = 14, width: int = 32):
    """Two-directional LSTMs along rows and columns in place of attention (Sequencer)."""
    g = Graph()
    x = "x"
    hidden = width // 4

    def run(t: str) -> str:
        """LSTM over axis 0 of [side, side, width]."""
        y, _, _ = g.op(
            "LSTM", t, g.weight(2, 4 * hidden, width), g.weight(2, 4 * hidden, hidden),
            g.weight(2, 8 * hidden), outputs=3, hidden_size=hidden, direction="bidirectional",
        )  # fmt: skip
        y = g.op("Transpose", y, perm=[0, 2, 1, 3])
        return g.op("Reshape", y, g.constant([side, side, 2 * hidden]))

    for _ in range(depth):
        n = g.norm(x, width)
        rows = run(n)
        columns = g.op("Transpose", run(g.op("Transpose", n, perm=[1, 0, 2])), perm=[1, 0, 2])
        both = g.op("Concat", rows, columns, axis=2)
        x = g.op("Add", x, g.linear(both, width, width))
        mlp = g.linear(g.gelu(g.linear(g.norm(x, width), width, 3 * width)), 3 * width, width)
        x = g.op("Add", x, mlp)
    return g.model([info("x", [side, side, width])], [info(x, [side, side, width])])


def gated_attention(depth: int, tokens: int = 196, width: int = 64, heads: int = 4):
    """Content and position attention, mixed by a gate for each head (ConViT)."""
    g = Graph()
    x, part = "x", width // heads
    for _ in range(depth):
        n = g.norm(x, width)
        split = lambda: g.heads(
            g.op("MatMul", n, g.weight(width, width)), [1, tokens, heads, part], [0, 2, 1, 3]
        )
        q, k, v = split(), split(), split()
        scale = g.constant(part**-0.5, np.float32)
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        content = g.op("Softmax", g.op("Mul", scores, scale), axis=-1)
        place = g.op("MatMul", g.weight(1, tokens, tokens, 3), g.weight(3, heads))
        place = g.op("Softmax", g.op("Transpose", place, perm=[0, 3, 1, 2]), axis=-1)
        gate = g.op("Sigmoid", g.op("Reshape", g.weight(heads), g.constant([1, heads, 1, 1])))
        rest = g.op("Sub", g.constant(1, np.float32), gate)
        mixed = g.op("Add", g.op("Mul", rest, content), g.op("Mul", gate, place))
        total = g.op("ReduceSum", mixed, g.constant([-1]), keepdims=1)
        mixed = g.op("Div", mixed, total)
        out = g.op("Transpose", g.op("MatMul", mixed, v), perm=[0, 2, 1, 3])
        out = g.op("Reshape", out, g.constant([1, tokens, width]))
        x = g.op("Add", x, g.linear(out, width, width))
        mlp = g.linear(g.gelu(g.linear(g.norm(x, width), width, 4 * width)), 4 * width, width)
        x = g.op("Add", x, mlp)
    return g.model([info("x", [1, tokens, width])], [info(x, [1, tokens, width])])


BOMBS: dict[str, Callable[[], onnx.ModelProto]] = {
    "lstm-512-steps": lambda: lstm(512),
    "open-squares-5000": lambda: open_state(5000, "squares"),
    "open-quotients-512": lambda: open_state(512, "quotients"),
    "lstm-512-lengths": lambda: lstm(512, lengths=True),
    "lstm-512-both-ways": lambda: lstm(512, 16, 3, directions=2, lengths=True),
    "lstm-1024-both-ways": lambda: lstm(1024, 16, 3, directions=2, lengths=True),
    "gru-512-both-ways": lambda: lstm(512, 16, 3, directions=2, lengths=True, kind="GRU"),
    "rnn-512-both-ways": lambda: lstm(512, 16, 3, directions=2, lengths=True, kind="RNN"),
    "scan-300-steps": lambda: scan(300),
    "concat-500-sizes": lambda: symbolic_concat(500),
    "concat-500-vectors": lambda: symbolic_concat(500, (), ()),
    "concat-500-columns": lambda: symbolic_concat(500, (4,), ()),
    "inputs-2000": lambda: many_inputs(2000),
    "loop-2000-dead": lambda: dead_loop(2000, 64, 64),
    "loop-2000-unordered": lambda: dead_loop(2000, 64, 64, ordered=False),
    "sin-24": lambda: chain("Sin", 24),
    "sin-90": lambda: chain("Sin", 90),
    "tanh-400": lambda: chain("Tanh", 400),
    "erf-wide-90": lambda: chain("Erf", 90, (256, 1024)),
    "matmul-sin-24": lambda: matmul_chain("Sin", 24),
    "shifts-24": lambda: shifts(24),
    "doubling-48": lambda: doubling(48),
    "doubling-shape-12": lambda: doubling_shape(12),
    "dag-200": lambda: dag(200, 1),
    "dag-200-near": lambda: dag(200, 2, near=6),
    "dag-1000-near": lambda: dag(1000, 3, near=12),
    "transposes-60": lambda: transposes(60),
    "mirrored-40": lambda: mirrored(40),
    "concats-40": lambda: concats(40),
    "open-concats-12": lambda: open_concats(12),
    "cubic-3": lambda: resizes(3, "cubic", [1.6, 1.3]),
    "linear-5": lambda: resizes(5, "linear", [1.6, 1.3]),
    "regions-of-parts": lambda: regions_of_parts(4),
    "pads-40": lambda: pads(40),
    "conv-transpose-stride": lambda: conv_transpose([3], [1000000], [1], [3]),
    "conv-transpose-runs": lambda: conv_transpose([32, 32], [32, 32], [31, 31], [3, 3]),
    "conv-transpose-groups": lambda: conv_transpose([9, 9], [16, 9], [7, 4], [4, 3], groups=2),
    "depthwise-3d": lambda: depthwise(96, [3, 3, 3], [1, 2, 2], [8, 56, 56]),
    "shifted-views-60000": lambda: shifted_views(60000),
    "tangle-200": lambda: tangle(200),
    "reshuffles-25": lambda: reshuffles(25),
    "attention-2048-columns": lambda: attention_of_columns(2048),
    "channel-attention": lambda: channel_attention(4),
    "lstm-mixer": lambda: lstm_mixer(4),
    "gated-attention": lambda: gated_attention(6),
}


# What is refused, and the words of that.
REFUSED = dict.fromkeys(
    ("loop-2000-dead", "loop-2000-unordered"),
    "functions, loops and tables written out are over 131072 nodes",
)


def sample(model: onnx.ModelProto) -> Mapping[str, np.ndarray]:
    """Inputs with 3 for each size that is not given."""
    rng = np.random.RandomState(7)
    inputs = {}
    for value in model.graph.input:
        dims = [d.dim_value or 3 for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.INT32:  # lengths of sequences
            inputs[value.name] = rng.randint(1, 4, dims).astype(np.int32)
        else:
            inputs[value.name] = rng.uniform(-1, 1, dims).astype(np.float32)
    return inputs


def check(model: Path, engine: Path, folder: Path) -> str:
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    inputs = sample(onnx.load(model))
    got = harness.run_engine(engine, inputs, outputs, folder / "run")
    worst = 0.0
    for a, b in zip(got, session.run(outputs, inputs)):
        worst = max(worst, float(np.max(np.abs(a - b) / (1 + np.abs(b)), initial=0)))
    return f"{worst:.1e}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="of " + ", ".join(BOMBS))
    add("--target", default="cpu")
    add("--timeout", type=float, default=120)
    add("--output-dir", type=Path, help="folder that keeps the models")
    add("--only-write", action="store_true", help="write the models, compile nothing")
    add("--json", type=Path)
    options = parser.parse_args()
    unknown = set(options.names) - set(BOMBS)
    if unknown:
        sys.exit(f"no model is named {', '.join(sorted(unknown))}")
    rows, records, good = [], [], True
    with tempfile.TemporaryDirectory(prefix="charonia-bombs-") as temporary:
        folder = options.output_dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in BOMBS.items():
            if options.names and name not in options.names:
                continue
            path = folder / f"{name}.onnx"
            path.write_bytes(make().SerializeToString())
            if options.only_write:
                continue
            engine = Path(temporary) / "model.engine"
            before = os.times()
            result = harness.invoke(
                "compile", path, "-o", engine, "--target", options.target, "--no-cache",
                timeout=options.timeout,
            )  # fmt: skip
            after = os.times()
            used = after.children_user + after.children_system
            used -= before.children_user + before.children_system
            error = result.message
            good &= (REFUSED[name] in error) if name in REFUSED else result.kind == "ok"
            if result.kind == "ok":
                error = "-"
                if options.target in ("cpu", "x86-64-v3", "x86-64-v4"):
                    error = check(path, engine, Path(temporary))
                    good &= float(error) < 1e-4
                engine.unlink()
            size = path.stat().st_size
            rows.append([name, f"{size / 1e3:.1f}", f"{used:.1f}", f"{result.seconds:.1f}",
                         f"{result.peak_bytes / 1e6:.0f}", error])  # fmt: skip
            records.append(dict(model=name, bytes=size, cpu_seconds=used, peak=result.peak_bytes,
                                seconds=result.seconds, kind=result.kind, error=error))  # fmt: skip
            print(" ".join(rows[-1]), flush=True)
    header = ["model", "kB", "processor s", "elapsed s", "peak MB", "difference from onnxruntime"]
    print(f"\ntarget {options.target}, {os.cpu_count()} cores")
    print(harness.table(header, rows))
    harness.write_json(options.json, records)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
