"""Small sums that each program instance of a GPU computes again, run by charonia-simt."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from simt_orders import in_orders

LIMITS = {"fp32": 1e-5, "fp16": 2e-3, "bf16": 1e-2}


class Model:
    """Nodes one after the other, with weights drawn for them."""

    limits = LIMITS

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs = [], [], {}
        self.open, self.shapes = {}, {}  # of inputs with open sizes
        self.opset = 20

    def input(self, name: str, *shape: int) -> str:
        self.inputs[name] = self.rng.standard_normal(shape).astype(np.float32)
        return name

    def weight(self, *shape: int, terms: int = 1) -> str:
        value = self.rng.standard_normal(shape) * terms**-0.5
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, op: str, *operands: str, **attributes) -> str:
        result = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [result], **attributes))
        return result

    def check(
        self, tmp_path, result: str, kernels: int | None, target: str, precision: str, want=None, limit=None, also=()
    ):
        """`want`: the result where one in single precision is not exact enough; `also`: other results of the model."""
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "sums",
            [info(n, TensorProto.FLOAT, self.open.get(n, v.shape)) for n, v in self.inputs.items()],
            [info(r, TensorProto.FLOAT, None) for r in (result, *also)], self.weights,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
        onnx.save(model, path)
        harness.compile_model(
            path, engine, target=target, precision=precision, dump=dump, shapes=self.shapes
        )  # fmt: skip
        (stage,) = dump.glob("*-kernels.mlir")
        assert kernels in (None, stage.read_text().count("graph.kernel"))
        if want is None:
            (want,) = onnxruntime.InferenceSession(path).run([result], self.inputs)
        results = []
        for got in in_orders(engine, self.inputs, tmp_path, dump, output=result):
            error = np.abs(got - want).max() / np.abs(want).max()
            assert error <= (limit or self.limits[precision]), f"{error:.2e}"
            results.append(got)
        assert all(np.array_equal(results[0], r) for r in results)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize(
    "channels, few, height, width, last, kernels",
    [
        (96, 4, 9, 13, False, 2),
        (33, 1, 5, 7, False, 1),
        (96, 4, 9, 13, True, 2),
        (33, 1, 5, 7, True, 1),
        (240, 10, 14, 14, True, 2),
        (144, 6, 1, 31, True, 1),
        (1152, 48, 7, 7, True, 3),  # the first product is too large to be computed again
        (513, 129, 3, 3, True, 2),
    ],
)
def test_squeeze_and_excite(tmp_path, target, precision, channels, few, height, width, last, kernels):
    """A mean, two products of one row and what they scale."""
    m = Model(channels + few)
    if last:
        x = m.add("Transpose", m.input("x", 1, height, width, channels), perm=[0, 3, 1, 2])
    else:
        x = m.input("x", 1, channels, height, width)
    first = m.weight(few, channels, 1, 1, terms=channels), m.weight(few)
    second = m.weight(channels, few, 1, 1, terms=few), m.weight(channels)
    squeezed = m.add("Conv", m.add("GlobalAveragePool", x), *first)
    squeezed = m.add("Mul", squeezed, m.add("Sigmoid", squeezed))
    scale = m.add("Sigmoid", m.add("Conv", squeezed, *second))
    result = m.add("Mul", x, scale)
    if last:
        result = m.add("Transpose", result, perm=[0, 2, 3, 1])
    m.check(tmp_path, result, kernels, target, precision)


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("batch, channels, few", [(1, 96, 4), (3, 96, 4), (2, 40, 10)])
def test_open_batch(tmp_path, precision, last, batch, channels, few):
    """Each image has a scale of its own: tiles lie in one, however many there are."""
    m = Model(channels)
    shape = [9, 7, channels] if last else [channels, 9, 7]
    x = m.input("x", batch, *shape)
    m.open["x"] = ["n", *shape]
    m.shapes = {"x": ["1..1..4", *shape]}
    if last:
        x = m.add("Transpose", x, perm=[0, 3, 1, 2])
    first = m.weight(few, channels, 1, 1, terms=channels), m.weight(few)
    second = m.weight(channels, few, 1, 1, terms=few), m.weight(channels)
    squeezed = m.add("Relu", m.add("Conv", m.add("GlobalAveragePool", x), *first))
    result = m.add("Mul", x, m.add("Sigmoid", m.add("Conv", squeezed, *second)))
    if last:
        result = m.add("Transpose", result, perm=[0, 2, 3, 1])
    m.check(tmp_path, result, 1, "sm_90a", precision)


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("sides", [2, 3])
def test_sums_side_by_side(tmp_path, precision, sides):
    """A step of a recurrent cell: products of one row meet, each a sum of its own, in what is computed element by element."""
    m = Model(sides)
    total = None
    for side in range(sides):
        x = m.input(f"x{side}", 1, 4 + 3 * side)
        product = m.add("MatMul", x, m.weight(4 + 3 * side, 5, terms=4))
        total = product if total is None else m.add("Add", total, product)
    casts = 0 if precision == "fp32" else sides  # of the inputs
    m.check(tmp_path, m.add("Tanh", total), sides + casts, "sm_90a", precision)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("before", [0, 8, 17])
@pytest.mark.parametrize("columns", [5, 16, 32])
def test_row_of_all_warps(tmp_path, target, precision, before, columns):
    """A row that its own sums are taken of lies in every warp; of the product behind, each warp has other terms."""
    m = Model(before + columns)
    x = m.input("x", 1, before or columns)
    if before:
        x = m.add("MatMul", x, m.weight(before, columns, terms=before))
    row = m.add("Sub", x, m.add("ReduceMean", x, axes=[-1]))
    deviation = m.add("Sqrt", m.add("ReduceMean", m.add("Mul", row, row), axes=[-1]))
    m.opset = 17  # axes are an attribute
    result = m.add("MatMul", m.add("Div", row, deviation), m.weight(columns, 24, terms=columns))
    m.check(tmp_path, result, None, target, precision)
