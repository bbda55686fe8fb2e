"""Random graphs of operators and of the blocks that real networks are made of.

They test what one-node models cannot: fusion, layouts, values with several uses,
memory reuse, recognition of decomposed patterns. Axis 0 may be symbolic; then no
operator touches it. Only well-conditioned operators are used, so that a rounding
error stays a rounding error.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper
from op_cases.base import Rng, chance, choose

BATCH = "n"
OPSET = 18
SIZES = (1, 2, 3, 4, 7, 8, 16, 17, 24, 31, 32, 33, 48, 64, 65)
LIMIT = 60000  # elements of one value


class Value:
    """A tensor of the graph: its name and its shape with the sample batch size."""

    def __init__(self, name: str, shape: tuple[int, ...]):
        self.name = name
        self.shape = shape

    @property
    def rank(self) -> int:
        return len(self.shape)


class GraphBuilder:
    """Grows a random graph; `steps` maps step names to methods."""

    def __init__(self, rng: Rng, size: int):
        self.rng = rng
        self.dynamic = chance(rng, 0.6)
        self.batch = choose(rng, (1, 2, 3, 5))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.inputs: list[Value] = []
        self.values: list[Value] = []
        self.serial = 0
        for _ in range(int(rng.integers(1, 4))):
            self.add_input()
        for _ in range(size):
            step = choose(rng, STEPS)
            source = self.pick()
            before = len(self.nodes)
            result = step(self, source)
            if result is None:
                del self.nodes[before:]
                continue
            if int(np.prod(result.shape)) <= LIMIT:
                self.values.append(result)

    # --- pieces ---------------------------------------------------------------

    def name(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}{self.serial}"

    def add_input(self) -> None:
        kind = choose(self.rng, ("image", "sequence", "matrix", "any"))
        size = lambda limit: choose(self.rng, [s for s in SIZES if s <= limit])
        shape = {
            "image": (size(33), size(17), size(17)),
            "sequence": (size(65), choose(self.rng, (16, 24, 32, 64))),
            "matrix": (size(65),),
            "any": tuple(size(17) for _ in range(int(self.rng.integers(0, 4)))),
        }[kind]
        value = Value(self.name("x"), (self.batch, *shape))
        self.inputs.append(value)
        self.values.append(value)

    def pick(self, rank: int | None = None) -> Value | None:
        """A value, the later the likelier, so that graphs grow deep."""
        values = [v for v in self.values if rank is None or v.rank == rank]
        if not values:
            return None
        back = min(int(self.rng.geometric(0.35)), len(values))
        return values[-back]

    def weight(self, *shape: int, scale: float = 1.0, shift: float = 0.0) -> str:
        name = self.name("w")
        value = self.rng.standard_normal(shape) * scale + shift
        self.weights[name] = value.astype(np.float32)
        return name

    def constant(self, value, dtype=np.int64) -> str:
        name = self.name("c")
        self.weights[name] = np.asarray(value, dtype)
        return name

    def node(self, op: str, inputs, shape, **attributes) -> Value:
        names = [i.name if isinstance(i, Value) else i for i in inputs]
        result = Value(self.name(op.lower()), tuple(int(d) for d in shape))
        self.nodes.append(
            helper.make_node(op, names, [result.name], name=result.name + "_n", **attributes)
        )
        return result

    def nodes_out(self, op: str, inputs, shapes, **attributes) -> list[Value]:
        names = [i.name if isinstance(i, Value) else i for i in inputs]
        results = [Value(self.name(op.lower()), tuple(s)) for s in shapes]
        outs = [r.name for r in results]
        self.nodes.append(
            helper.make_node(op, names, outs, name=outs[0] + "_n", **attributes)
        )
        return results

    def reshape(self, x: Value, shape) -> Value:
        """shape[0] is the batch, copied whatever it is."""
        return self.node("Reshape", [x, self.constant([0, *shape[1:]])], shape)

    # --- the finished model -----------------------------------------------------

    def model(self) -> onnx.ModelProto:
        used = {name for node in self.nodes for name in node.input}
        ends = [v for v in self.values if v.name not in used and v not in self.inputs]
        extra = [v for v in self.values if v.name in used and v not in self.inputs]
        if extra and chance(self.rng, 0.4):
            ends.append(choose(self.rng, extra))
        if not ends:
            ends = [self.node("Neg", [self.inputs[0]], self.inputs[0].shape)]
        fed = {name for node in self.nodes for name in node.input}
        inputs = [v for v in self.inputs if v.name in fed]

        def info(value):
            dims = list(value.shape)
            if self.dynamic:
                dims[0] = BATCH
            return helper.make_tensor_value_info(value.name, TensorProto.FLOAT, dims)

        graph = helper.make_graph(
            self.nodes, "random", [info(v) for v in inputs], [info(v) for v in ends],
            [onnx.numpy_helper.from_array(v, k) for k, v in self.weights.items() if k in fed],
        )  # fmt: skip
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8
        )
        onnx.checker.check_model(model, full_check=True)
        return model


# --- Steps: (builder, value) -> value or None where they do not apply -------------


def unary(b: GraphBuilder, x: Value):
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


def pool(b, x):
    if x.rank != 4 or min(x.shape[2:]) < 3:
        return None
    if chance(b.rng, 0.3):
        return b.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))
    op = choose(b.rng, ("MaxPool", "AveragePool"))
    n, c, h, w = x.shape
    shape = (n, c, (h + 2 - 3) // 2 + 1, (w + 2 - 3) // 2 + 1)
    return b.node(op, [x], shape, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def squeeze_excite(b, x):
    if x.rank != 4:
        return None
    c = x.shape[1]
    gate = b.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))
    gate = b.node("Conv", [gate, b.weight(c, c, 1, 1, scale=c**-0.5), b.weight(c)], gate.shape)
    gate = b.node("Sigmoid", [gate], gate.shape)
    return b.node("Mul", [x, gate], x.shape)


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


def gather(b, x):
    if x.rank < 2:
        return None
    axis = int(b.rng.integers(1, x.rank))
    count = choose(b.rng, (1, 3, 8))
    index = b.constant(b.rng.integers(-x.shape[axis], x.shape[axis], count))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return b.node("Gather", [x, index], shape, axis=axis)


def resize(b, x):
    if x.rank != 4:
        return None
    scales = b.constant([1, 1, 2, 2], np.float32)
    shape = (*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])
    mode = choose(b.rng, ("nearest", "linear"))
    return b.node("Resize", [x, "", scales], shape, mode=mode)


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


def cumulative(b, x):
    if x.rank < 2 or int(np.prod(x.shape)) > 4000:
        return None
    axis = int(b.rng.integers(1, x.rank))
    if x.shape[axis] > 32:
        return None
    flags = {k: 1 for k in ("exclusive", "reverse") if chance(b.rng, 0.3)}
    small = b.node("Mul", [x, b.constant(0.2, np.float32)], x.shape)
    return b.node("CumSum", [small, b.constant(axis)], x.shape, **flags)


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


STEPS = (
    rows_of_batch, turn_batch, choose_best, gather_elements, cumulative, mirror_pad,
    tile, reverse, scatter, conv_other, norm_of_channels, pool_other, shuffle, einsum,
    several, shaped_mask,
    unary, unary, binary, binary, clip, residual, scale_shift, where, reduce, reduce,
    softmax, layer_norm, gelu, linear, linear, batched_matmul, attention, conv, conv,
    conv, pool, squeeze_excite, transpose, transpose, flatten, unfold, slice_,
    split_gate, concat, pad, expand, gather, resize,
)  # fmt: skip


def build(seed: int, index: int) -> GraphBuilder:
    rng = np.random.default_rng([seed, index])
    return GraphBuilder(rng, int(rng.integers(1, 14)))
