"""A model's own sums and differences are rounded as it says: a product in front of one is not part of it.

So a value is the same number wherever it is computed: the distance of an element from the largest one is 0 at that
one, and nowhere below.
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper


def model(path, nodes, columns):
    constants = {
        "c": np.float32(0.1), "a": np.array([1]), "zero": np.float32(0), "p": np.float32(0.7), "q": np.float32(1.3),
    }  # fmt: skip
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", columns])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "rounding", infos, outputs, weights)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


SCALED = [node("Mul", "x c", "t"), node("ReduceMax", "t a", "m", keepdims=1)]
BODIES = {
    "sqrt": [*SCALED, node("Sub", "m t", "d"), node("Sqrt", "d", "y")],
    "negated": [*SCALED, node("Neg", "t", "u"), node("Add", "m u", "d"), node("Sqrt", "d", "y")],
    "mask": [*SCALED, node("Sub", "t m", "d"), node("Equal", "d zero", "e"), node("Cast", "e", "y", to=1)],
    "scaled twice": [
        *SCALED, node("Mul", "m q", "mq"), node("Mul", "t q", "tq"), node("Sub", "mq tq", "d"), node("Sqrt", "d", "y"),
    ],
    "alike": [
        node("Mul", "x p", "l"), node("Mul", "x p", "r"), node("Abs", "l", "s"), node("Abs", "r", "t"),
        node("Sub", "s t", "d"), node("Sqrt", "d", "y"),
    ],
    # What is read beside the sum keeps its product whole there, and not where only the sum is asked for.
    "sum": [
        node("Mul", "x p", "l"), node("Add", "l q", "t"), node("ReduceMax", "t a", "m", keepdims=1),
        node("Sub", "m t", "d"), node("Sqrt", "d", "y"),
    ],
    "sum beside its product": [
        node("Mul", "x p", "l"), node("Add", "l q", "t"), node("ReduceMax", "t a", "m", keepdims=1),
        node("Sub", "m t", "d"), node("Sqrt", "d", "r"), node("Abs", "l", "k"), node("Min", "r k", "y"),
    ],
    "sum of two products": [
        node("Mul", "x p", "l"), node("Mul", "x c", "s"), node("Add", "l s", "t"), node("Add", "s l", "u"),
        node("Sub", "t u", "d"), node("Sqrt", "d", "y"),
    ],
    "mask of a sum": [
        node("Mul", "x p", "l"), node("Add", "l q", "t"), node("ReduceMax", "t a", "m", keepdims=1),
        node("Equal", "t m", "e"), node("Cast", "e", "y", to=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("columns", [100, "l"])
@pytest.mark.parametrize("body", BODIES)
def test_what_a_product_goes_into(tmp_path, body, columns):
    path = model(tmp_path / "m.onnx", BODIES[body], columns)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(5)
    for target in harness.cpu_targets():
        engine = tmp_path / f"{target}.engine"
        harness.compile_model(path, engine, target=target)
        for rows, width in ((1, 100), (50, 100), (7, 1 if columns == "l" else 100)):
            x = rng.standard_normal((rows, width)).astype(np.float32)
            (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run")
            (want,) = session.run(None, {"x": x})
            assert not np.isnan(want).any()
            np.testing.assert_allclose(got, want, 1e-6, 1e-6, err_msg=f"{target}, {rows} rows")


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("op", ["RoiAlign", "GridSample"])
def test_places_between_elements(tmp_path, op, precision):
    """Of a wide image the place between two elements is as exact as in a small one, whatever activations are."""
    wide = 2000
    rng = np.random.default_rng(wide)
    ramp = np.where(np.arange(wide) % 2 == 0, 0, 1).astype(np.float32)  # exact in each type, steep everywhere
    feeds = {"x": np.broadcast_to(ramp, (1, 1, 4, wide)).copy()}
    if op == "RoiAlign":
        left = rng.integers(1000, wide - 20, 7) + 0.125
        feeds["r"] = np.stack([left, np.full(7, 0.5), left + 1.25, np.full(7, 2.5)], 1).astype(np.float32)
        feeds["b"] = np.zeros(7, np.int64)
        one = helper.make_node(op, ["x", "r", "b"], ["y"], output_height=1, output_width=1, sampling_ratio=1)
    else:
        across = 2 * (rng.integers(1000, wide - 20, (1, 1, 9)) + 0.375) / wide - 1
        feeds["r"] = np.stack([across, np.zeros_like(across)], -1).astype(np.float32)
        one = helper.make_node(op, ["x", "r"], ["y"])
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
    graph = helper.make_graph([one], "places", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 16)]), path)
    (want,) = onnxruntime.InferenceSession(path).run(None, feeds)
    harness.compile_model(path, tmp_path / "m.engine", precision=precision)
    (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "run")
    np.testing.assert_allclose(got, want, 0, 1e-2)
