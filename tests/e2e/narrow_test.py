"""Operators on bytes and halves whose rows end inside of a register: some CPUs load neither under
a mask, and kernels of bytes alone take four times as many of them at once."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import helper
from targets import runnable

TARGETS = ["x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"]
BOOL, U8, F16, F32 = np.bool_, np.uint8, np.float16, np.float32
SHAPES = [(1, 1), (7, 61), (3, 1013), (64, 128), (33, 1)]
# Operator, its attributes, types of its inputs, what it computes.
CASES = [
    ("And", {}, [BOOL, BOOL], np.logical_and),
    ("Not", {}, [BOOL], np.logical_not),
    ("Max", {}, [U8, U8], np.maximum),
    ("Equal", {}, [U8, U8], np.equal),
    ("BitwiseXor", {}, [U8, U8], np.bitwise_xor),
    ("Where", {}, [BOOL, U8, U8], np.where),
    ("Where", {}, [BOOL, F32, F32], np.where),
    ("Cast", {"to": onnx.TensorProto.FLOAT}, [U8], lambda x: x.astype(F32)),
    ("Cast", {"to": onnx.TensorProto.UINT8}, [F32], lambda x: x.astype(U8)),
    ("Relu", {}, [F16], lambda x: np.maximum(x, F16(0))),
    ("Add", {}, [F16, F16], lambda x, y: x + y),
]


def draw(rng, shape, dtype):
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    if dtype == U8:
        return rng.integers(0, 256, shape).astype(U8)
    return (rng.random(shape) * 100).astype(dtype) - dtype(20 * (dtype == F16))


@pytest.fixture(params=TARGETS)
def target(request):
    return runnable(request.param, extended=True)


def check(tmp_path, target, case, shapes, broadcast=None):
    """One engine for all shapes, of open sizes where there are several; `broadcast` gives the
    shape of the last operand."""
    op, attributes, types, compute = case
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    last = broadcast or (lambda shape: shape)
    names = [f"x{i}" for i in range(len(types))]
    fixed = len(shapes) == 1
    sizes = shapes[0] if fixed else ("a", "b")
    dims = [sizes] * (len(types) - 1) + [last(sizes)]
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in types]
    inputs = [helper.make_tensor_value_info(*x) for x in zip(names, kinds, dims)]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.UNDEFINED, None)
    output.ClearField("type")
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], "narrow", inputs, [output])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    harness.compile_model(path, engine, target=target)
    for shape in shapes:
        rng = np.random.default_rng(shape[1])
        feeds = {name: draw(rng, shape, t) for name, t in zip(names, types)}
        feeds[names[-1]] = draw(rng, last(shape), types[-1])
        actual = harness.run_engine(engine, feeds, ["y"], tmp_path)[0]
        np.testing.assert_array_equal(actual, compute(*feeds.values()))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0] + "_".join(t.__name__ for t in c[2]))
def test_open_sizes(tmp_path, target, case):
    check(tmp_path, target, case, SHAPES)


@pytest.mark.parametrize("shape", [(7, 61), (3, 1013)])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0] + "_".join(t.__name__ for t in c[2]))
def test_fixed_sizes(tmp_path, target, case, shape):
    check(tmp_path, target, case, [shape])


@pytest.mark.parametrize("shapes", [[(7, 61)], [(128, 64)], SHAPES], ids=["odd", "whole", "open"])
@pytest.mark.parametrize("along", [0, 1])
def test_broadcast(tmp_path, target, shapes, along):
    def last(shape):
        return tuple(1 if d == along else n for d, n in enumerate(shape))

    check(tmp_path, target, CASES[0], shapes, last)
    check(tmp_path, target, CASES[5], shapes, last)
