"""What 16 bits would lose stays in 32 up to where it is of use: tiny numbers that a quotient needs, squares and exponentials
in front of their sum."""

from __future__ import annotations

import harness
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from rounding_test import model, node

# What a tiny constant keeps from being 0, and how models write it: the constant in front, among two, chosen by a sign,
# behind what leads to it alone, moved on the way.
POSITIVE = node("Less", "x zero", "negative")
GUARDED_SQUARE = [node("Mul", "x x", "xx"), node("Add", "xx least", "w")]
GUARDS = {
    "largest": [node("Abs", "x", "n"), node("Max", "n least", "m"), node("Div", "x m", "y")],
    "sum": [node("Abs", "x", "n"), node("Add", "least n", "m"), node("Div", "x m", "y")],
    "clip": [node("Abs", "x", "n"), node("Clip", "n least two", "m"), node("Div", "x m", "y")],
    "root": [*GUARDED_SQUARE, node("Sqrt", "w", "s"), node("Div", "x s", "y")],
    "factor": [*GUARDED_SQUARE, node("Pow", "w minus", "f"), node("Mul", "x f", "y")],
    "reciprocal": [*GUARDED_SQUARE, node("Sqrt", "w", "s"), node("Reciprocal", "s", "f"), node("Mul", "x f", "y")],
    "norm of one": [node("ReduceL2", "x last", "n", keepdims=1), node("Max", "n least", "m"), node("Div", "x m", "y")],
    "logarithm": [node("Abs", "x", "n"), node("Add", "n least", "m"), node("Log", "m", "y")],
    "sign": [
        POSITIVE, node("Where", "negative less least", "e"), node("Add", "x e", "m"), node("Div", "x m", "y"),
    ],
    "chosen": [
        node("Abs", "x", "n"), node("Less", "n epsilon", "e"), node("Where", "e least x", "m"), node("Div", "x m", "y"),
    ],
    "among two": [
        node("Abs", "x", "n"), node("Add", "n least", "v"), node("Add", "v n", "m"), node("Div", "n m", "y"),
    ],
    "moved": [
        node("Abs", "x", "n"), node("Max", "n least", "m"), node("Transpose", "m", "t", perm=[1, 0]),
        node("Concat", "t t", "u", axis=0), node("Gather", "u places", "v", axis=0), node("Transpose", "v", "w", perm=[1, 0]),
        node("Div", "x w", "y"),
    ],
    "a vector": [node("Abs", "x", "n"), node("Add", "n leasts", "m"), node("Div", "x m", "y")],
    "pooled": [
        node("Abs", "x", "n"), node("Max", "n least", "m"), node("Unsqueeze", "m zeroth", "u"),
        node("MaxPool", "u", "v", kernel_shape=[1]), node("Squeeze", "v zeroth", "w"), node("Div", "x w", "y"),
    ],
    "multiplied": [node("Abs", "x", "n"), node("Max", "n least", "m"), node("MatMul", "m same", "w"), node("Div", "x w", "y")],
    "rows of some": [node("Abs", "x", "n"), node("Concat", "n n", "m", axis=1), node("Add", "m some", "v"), node("Div", "x v", "y")],
    "rows of one": [
        node("Abs", "x", "n"), node("Add", "n q", "b"), node("Concat", "n b", "m", axis=1), node("Add", "m one_of", "v"), node("Div", "x v", "y"),
    ],
    "one or": [
        node("Less", "x zero", "negative"), node("Where", "negative q least", "e"), node("Abs", "x", "n"), node("Add", "n e", "v"),
        node("Div", "x v", "y"),
    ],
    "halved": [node("Abs", "x", "n"), node("Max", "n least", "m"), node("Mul", "m p", "h"), node("Div", "x h", "y")],
}  # fmt: skip


@pytest.mark.parametrize("precision, tolerance", [("fp16", 2e-3), ("bf16", 2e-2)])
@pytest.mark.parametrize("body", GUARDS)
def test_guards_against_zero(tmp_path, body, precision, tolerance):
    """What is 1e-12 at least is no 0 in 16 bits, whatever of it is a kernel's result."""
    x = np.array([[0], [1], [-0.5], [0], [1.5], [2.0**-12], [-(2.0**-13)]], np.float32)
    more = {
        "least": np.float32(1e-12), "less": np.float32(-1e-12), "places": np.array([1]),
        "leasts": np.array([1e-12], np.float32), "some": np.array([1e-12, 1e-3], np.float32),
        "one_of": np.array([1e-12, 0], np.float32), "same": np.array([[1]], np.float32), "zeroth": np.array([0]),
    }  # fmt: skip
    path = model(tmp_path / "m.onnx", GUARDS[body], {"x": list(x.shape)}, more=more)
    (want,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    assert np.isfinite(want).all()
    harness.compile_model(path, tmp_path / "m.engine", precision=precision)
    (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


NORM = [node("MatMul", "x w", "h"), node("Mul", "h h", "hh"), node("ReduceSum", "hh last", "ss", keepdims=1)]
NORMS = {
    "divided": [*NORM, node("Sqrt", "ss", "n"), node("Div", "h n", "y")],
    "guarded": [*NORM, node("Sqrt", "ss", "n"), node("Max", "n least", "m"), node("Div", "h m", "y")],
    "alone": [*NORM, node("Sqrt", "ss", "n"), node("Div", "n x", "y")],
    "scaled": [
        node("MatMul", "x w", "h"), node("Mul", "h h", "hh"), node("Mul", "hh seventh", "s"), node("Neg", "s", "m"),
        node("ReduceMin", "m last", "ss", keepdims=1), node("Abs", "ss", "b"), node("Sqrt", "b", "n"), node("Div", "h n", "y"),
    ],
    "added": [
        node("MatMul", "x w", "h"), node("Mul", "h h", "hh"), node("Abs", "h", "b"), node("Add", "hh b", "s"),
        node("ReduceSum", "s last", "ss", keepdims=1), node("Sqrt", "ss", "n"), node("Div", "h n", "y"),
    ],
    "moved": [
        node("MatMul", "x w", "h"), node("Mul", "h h", "hh"), node("Concat", "h hh", "u", axis=1),
        node("Transpose", "u", "t", perm=[1, 0]), node("ReduceMax", "t first", "ss", keepdims=1), node("Transpose", "ss", "r", perm=[1, 0]),
        node("Sqrt", "r", "n"), node("Div", "h n", "y"),
    ],
    "squares": [*NORM, node("Div", "hh ss", "y")],
    "roots": [*NORM, node("Sqrt", "hh", "b"), node("Sqrt", "ss", "n"), node("Div", "b n", "y")],
    "running": [*NORM, node("CumSum", "hh one", "u"), node("Div", "u ss", "y")],
    "power": [
        node("MatMul", "x w", "h"), node("Pow", "h two", "hh"), node("ReduceMean", "hh last", "ss", keepdims=1),
        node("Sqrt", "ss", "n"), node("Div", "h n", "y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("scale", [1e-4, 1.0, 300.0, 5000.0])
@pytest.mark.parametrize("body", NORMS)
def test_squares_behind_a_product(tmp_path, body, scale):
    """Squares that are read in full alone leave the range of 16 bits where what they are of does not."""
    x = (np.random.default_rng(3).choice([-1, 1], (5, 32)) * scale).astype(np.float32)
    more = {"w": np.eye(32, dtype=np.float32), "least": np.float32(1e-6), "seventh": np.float32(1 / 7)}
    more |= {"first": np.array([0]), "one": np.int64(1)}
    path = model(tmp_path / "m.onnx", NORMS[body], {"x": list(x.shape)}, more=more)
    (want,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    harness.compile_model(path, tmp_path / "m.engine", precision="fp16")
    (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
    np.testing.assert_allclose(got, want, rtol=2e-3)


SHARES = {
    "exponentials": [
        node("MatMul", "x w", "h"), node("Exp", "h", "e"), node("ReduceSum", "e last", "s", keepdims=1), node("Div", "e s", "y"),
    ],
    "themselves": [
        node("MatMul", "x w", "h"), node("ReduceSum", "h last", "t", keepdims=1), node("Add", "t tiny", "s"), node("Div", "h s", "y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("body", SHARES)
def test_shares_of_a_sum(tmp_path, body):
    """What is divided by the sum of it all is in that sum as it was computed: past the range of 16 bits, or cancelled."""
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(s).astype(np.float16).astype(np.float32) for s in ((16, 64), (64, 64)))
    path = model(tmp_path / "m.onnx", SHARES[body], {"x": list(x.shape)}, more={"w": w, "tiny": np.float32(1e-8)})
    (want,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    harness.compile_model(path, tmp_path / "m.engine", precision="fp16")
    (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("steps", [3, 64, 70])
def test_squares_summed_by_steps(tmp_path, steps):
    """Steps that are repeated carry a sum as those that are written out add it up."""
    shape = [4, 32]
    x = np.random.default_rng(7).uniform(100, 300, shape).astype(np.float32)
    values = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("g", "next")}
    flags = [helper.make_tensor_value_info(n, TensorProto.BOOL, []) for n in ("on", "still")]
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    body = [node("Identity", "on", "still"), node("Mul", "x x", "xx"), node("Add", "g xx", "next")]
    step = helper.make_graph(body, "step", [count, flags[0], values["g"]], [flags[1], values["next"]])
    nodes = [
        node("Mul", "x zero", "none"), node("Loop", "steps always none", "s", body=step),
        node("Sqrt", "s", "n"), node("Div", "x n", "y"),
    ]  # fmt: skip
    path = model(tmp_path / "m.onnx", nodes, {"x": shape}, more={"steps": np.int64(steps), "always": np.bool_(True)})
    (want,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    harness.compile_model(path, tmp_path / "m.engine", precision="fp16")
    (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
    np.testing.assert_allclose(got, want, rtol=2e-3)
