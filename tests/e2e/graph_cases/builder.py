"""A graph that grows step by step, and the model that it becomes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper
from op_cases.base import Rng, chance, choose

BATCH = "n"
OPSET = 18
SIZES = (1, 2, 3, 4, 7, 8, 16, 17, 24, 31, 32, 33, 48, 64, 65)
LIMIT = 60000  # elements of one value


class Size:
    """A size that depends on the model's symbols. Sizes written alike are the same."""

    def __init__(self, text: str):
        self.text = text

    def at(self, symbols: dict[str, int]) -> int:
        return eval(self.text, {}, symbols)

    def __add__(self, other) -> Size:
        return Size(f"({self.text} + {other})")

    def __radd__(self, other) -> Size:
        return Size(f"({other} + {self.text})")

    def __sub__(self, other) -> Size:
        return Size(f"({self.text} - {other})")

    def __mul__(self, other) -> Size:
        return Size(f"({self.text} * {other})")

    def __floordiv__(self, other) -> Size:
        return Size(f"({self.text} // {other})")

    def __eq__(self, other) -> bool:
        return isinstance(other, Size) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


class Value:
    """A tensor of the graph: its name and its shape. Sizes are numbers, or Size where
    the model leaves them open."""

    def __init__(self, name: str, shape: tuple):
        self.name = name
        self.shape = shape

    @property
    def rank(self) -> int:
        return len(self.shape)


class Graph:
    """Nodes, weights and values, of which a model is made."""

    # What each symbol of the model is in each run; the first run's are the optimum.
    sizes: list[dict[str, int]]

    def __init__(self, rng: Rng):
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.inputs: list[Value] = []
        self.values: list[Value] = []
        self.serial = 0

    def grow(self, count: int, steps) -> None:
        """Takes `count` steps: functions (builder, value) -> value, or None where they
        do not apply."""
        for _ in range(count):
            step = choose(self.rng, steps)
            source = self.pick()
            before = len(self.nodes)
            result = step(self, source)
            if result is None:
                del self.nodes[before:]
            elif self.elements(result) <= LIMIT:
                self.values.append(result)

    def elements(self, value: Value) -> int:
        """Of the largest run."""
        return max(
            int(np.prod([d.at(run) if isinstance(d, Size) else d for d in value.shape]))
            for run in self.sizes
        )

    def name(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}{self.serial}"

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
        result = Value(
            self.name(op.lower()), tuple(d if isinstance(d, Size) else int(d) for d in shape)
        )
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

    def declared(self, value: Value, axis: int) -> int | str | None:
        """What the model says of a dimension: a number, a symbol, or nothing."""
        raise NotImplementedError

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
            dims = [self.declared(value, axis) for axis in range(value.rank)]
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


class GraphBuilder(Graph):
    """A random graph of known sizes, except perhaps that of axis 0: the batch."""

    def __init__(self, rng: Rng):
        super().__init__(rng)
        self.dynamic = chance(rng, 0.6)
        self.batch = choose(rng, (1, 2, 3, 5))
        batches = (self.batch, 1, self.batch + 3) if self.dynamic else (self.batch,)
        self.sizes = [{BATCH: n} for n in batches]
        for _ in range(int(rng.integers(1, 4))):
            self.add_input()

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

    def reshape(self, x: Value, shape) -> Value:
        """shape[0] is the batch, copied whatever it is."""
        return self.node("Reshape", [x, self.constant([0, *shape[1:]])], shape)

    def declared(self, value: Value, axis: int) -> int | str:
        return BATCH if self.dynamic and axis == 0 else value.shape[axis]
