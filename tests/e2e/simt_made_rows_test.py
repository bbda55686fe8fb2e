"""Long rows in whose place what is made of them is kept from one walk to the next, run by charonia-simt."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from simt_orders import ORDERS, in_orders

ROWS = 70  # more than the instances of a cluster share
TYPES = {"fp32": (np.float32, TensorProto.FLOAT), "fp16": (np.float16, TensorProto.FLOAT16)}
EPSILON = 1e-5


class Graph:
    """A model beside the same in float64. What is added or multiplied is rounded where the model's type is f16, if `rounds`."""

    def __init__(self, n: int, precision: str, middle: float = 0.0):
        self.n, self.precision, self.middle = n, precision, middle
        self.numpy, self.onnx = TYPES[precision]
        self.rng = np.random.default_rng(n)
        self.nodes, self.weights, self.inputs, self.values = [], [], {}, {}
        self.rounds = False

    def row(self) -> str:
        name = "xyzw"[len(self.inputs)]
        value = (self.middle + self.rng.standard_normal((ROWS, self.n))).astype(self.numpy)
        self.inputs[name], self.values[name] = value, value.astype(np.float64)
        return name

    def node(self, op: str, value: np.ndarray, *inputs: str, **attributes) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        self.values[name] = value
        return name

    def binary(self, op: str, a: str, b: str) -> str:
        x, y = self.values[a], self.values[b]
        value = x + y if op == "Add" else x * y
        if self.rounds and self.precision == "fp16":
            value = value.astype(np.float16).astype(np.float64)
        return self.node(op, value, a, b)

    def add(self, a: str, b: str) -> str:
        return self.binary("Add", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.binary("Mul", a, b)

    def norm(self, x: str) -> str:
        g, b = (self.rng.standard_normal(self.n).astype(self.numpy) for _ in range(2))
        names = [f"w{len(self.weights) + i}" for i in range(2)]
        self.weights += [numpy_helper.from_array(v, n) for v, n in zip((g, b), names)]
        v = self.values[x]
        deviation = np.sqrt(v.var(1, keepdims=True) + EPSILON)
        value = (v - v.mean(1, keepdims=True)) / deviation * g.astype(np.float64) + b.astype(np.float64)
        return self.node("LayerNormalization", value, x, *names, axis=-1, epsilon=EPSILON)

    def softmax(self, x: str) -> str:
        v = np.exp(self.values[x] - self.values[x].max(1, keepdims=True))
        return self.node("Softmax", v / v.sum(1, keepdims=True), x, axis=-1)

    def check(self, tmp_path, result: str, target: str, limit: float) -> str:
        """Says what the program does in shared memory."""
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "rows", [info(n, self.onnx, v.shape) for n, v in self.inputs.items()],
            [info(result, self.onnx, (ROWS, self.n))], self.weights,
        )  # fmt: skip
        path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path)
        harness.compile_model(path, engine, target=target, precision=self.precision, dump=dump)
        want = self.values[result]
        for got in in_orders(engine, self.inputs, tmp_path, dump, ORDERS[:2], output=result):
            error = np.abs(got.astype(np.float64) - want).max() / np.abs(want).max()
            assert error <= limit, f"{error:.2e}"
        return "".join(p.read_text() for p in dump.glob("*-cuda-code/*/*2-simt.mlir"))


def made(program: str) -> bool:
    """Whether a slot of a row that was copied ahead is written again."""
    slots = {line.split("=")[0].strip() for line in program.splitlines() if "simt.slot" in line}
    stores = [line.split("simt.store_shared")[1] for line in program.splitlines() if "simt.store_shared" in line]
    return any(store.split(":")[0].split(",")[1].strip() in slots for store in stores)


def residual(g: Graph) -> str:
    return g.norm(g.add(g.row(), g.row()))


def sum_of_three(g: Graph) -> str:
    return g.norm(g.add(g.add(g.row(), g.row()), g.row()))


def one_wanted_again(g: Graph) -> str:
    """No row less would be read."""
    x, y = g.row(), g.row()
    return g.mul(g.norm(g.add(x, y)), y)


def sum_wanted_again(g: Graph) -> str:
    s = g.add(g.row(), g.row())
    return g.add(g.norm(s), s)


def both_wanted_again(g: Graph) -> str:
    x, y = g.row(), g.row()
    return g.add(g.mul(g.norm(g.add(x, y)), x), y)


def one_row(g: Graph) -> str:
    """Nothing else would be read again."""
    x = g.row()
    return g.norm(g.mul(x, x))


@pytest.mark.parametrize("target, precision", [("sm_80", "fp16"), ("sm_90a", "fp16"), ("sm_90a", "fp32")])
@pytest.mark.parametrize("n", [8200, 12289])
@pytest.mark.parametrize(
    "body, is_made",
    [(residual, True), (sum_of_three, True), (sum_wanted_again, True),
     (one_wanted_again, False), (both_wanted_again, False), (one_row, False)],
)  # fmt: skip
def test_sums(tmp_path, target, precision, n, body, is_made):
    g = Graph(n, precision)
    g.rounds = is_made
    program = g.check(tmp_path, body(g), target, 1.5e-3 if precision == "fp16" else 1e-5)
    assert made(program) == is_made


def added_twice(g: Graph) -> str:
    """From (a + b) + b no other row is left when a + b stands in a's place."""
    a, b = g.row(), g.row()
    s = g.add(a, b)
    return g.add(g.norm(g.add(s, b)), s)


def multiplied_twice(g: Graph) -> str:
    a, b = g.row(), g.row()
    s = g.mul(a, b)
    return g.mul(g.softmax(g.mul(s, b)), s)


def norm_of_norm(g: Graph) -> str:
    """Three walks, of which two have scale and shift in common."""
    return g.norm(g.norm(g.row()))


def norm_of_sum_of_norm(g: Graph) -> str:
    x, y = g.row(), g.row()
    return g.norm(g.add(g.norm(x), y))


def softmax_of_norm(g: Graph) -> str:
    return g.softmax(g.norm(g.row()))


def two_norms(g: Graph) -> str:
    x, y, z = g.row(), g.row(), g.row()
    return g.add(g.norm(g.add(x, y)), g.norm(g.add(y, z)))


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("n", [8200, 20000, 20001])
@pytest.mark.parametrize(
    "body", [added_twice, multiplied_twice, norm_of_norm, norm_of_sum_of_norm, softmax_of_norm, two_norms]
)
def test_several_walks(tmp_path, precision, n, body):
    g = Graph(n, precision)
    g.check(tmp_path, body(g), "sm_90a", 4e-3 if precision == "fp16" else 1e-5)


def test_what_is_not_kept_is_not_rounded(tmp_path):
    """Rows around 300, whose sums have few places in f16."""
    g = Graph(8200, "fp16", middle=300.0)
    g.check(tmp_path, both_wanted_again(g), "sm_90a", 1e-3)


def test_rows_that_do_not_fit_are_not_rounded(tmp_path):
    g = Graph(120001, "fp16", middle=300.0)
    g.check(tmp_path, residual(g), "sm_90a", 1e-3)


def test_far_biases_leave_a_softmax_its_terms(tmp_path):
    g = Graph(8200, "fp16")
    x, y = g.row(), g.row()
    g.inputs[y][:] = -60000
    g.values[y][:] = -60000
    program = g.check(tmp_path, g.softmax(g.add(x, y)), "sm_90a", 5e-3)
    assert not made(program)
