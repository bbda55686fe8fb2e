"""Weights of 8 bits and less stay packed in an engine for a CPU, and products of them are right, beside numpy."""

from __future__ import annotations

import harness
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from targets import runnable

F32, I8, U8 = np.float32, np.int8, np.uint8
I4, U4 = ml_dtypes.int4, ml_dtypes.uint4
TARGETS = ["x86-64-v3", "x86-64-v4"]


@pytest.fixture(params=TARGETS)
def target(request):
    return runnable(request.param)


def weight_bytes(engine) -> int:
    """What the engine's weights take, as inspect says it."""
    text = harness.invoke("inspect", engine).stdout
    number, unit = text.split("weights ")[1].split(",")[0].split()
    return round(float(number) * {"B": 1, "kB": 1e3, "MB": 1e6}[unit])


class Model:
    """A graph of one product, its weights as floats of 64 bits, and what they take packed."""

    def __init__(self, seed=3):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op, names, result, domain="", **attributes):
        self.nodes.append(helper.make_node(op, names, [result], domain=domain, **attributes))
        return result

    def save(self, path, x, y_type=onnx.TensorProto.FLOAT, rows=None):
        dims = [rows or x.shape[0], *x.shape[1:]]
        inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), dims)]
        y = helper.make_tensor_value_info("y", y_type, None)
        graph = helper.make_graph(self.nodes, "packed", inputs, [y], self.constants)
        imports = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=11), path)


def check(tmp_path, model, x, want, target, limit=None, *, tolerance=3e-6, rows=None, precision=None):
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    model.save(path, x, rows=rows)
    harness.compile_model(path, engine, target=target, precision=precision)
    got = harness.run_engine(engine, {"x": x}, ["y"], tmp_path)[0]
    scale = np.abs(want).max()
    assert np.abs(got.astype(np.float64) - want).max() <= tolerance * scale
    if limit is not None:
        assert weight_bytes(engine) <= limit
    return engine


def packed_bits(values, bits):
    """The last dimension in bytes, the first in the low bits."""
    per = 8 // bits
    left = -values.shape[-1] % per
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, left)])
    parts = values.reshape(*values.shape[:-1], -1, per)
    return np.bitwise_or.reduce(parts << (np.arange(per, dtype=U8) * bits).astype(U8), -1).astype(U8)


@pytest.mark.parametrize("points", [None, "packed", "float"])
@pytest.mark.parametrize(
    "bits, block, depth, columns",
    [(4, 32, 256, 96), (4, 16, 200, 70), (4, 128, 300, 64), (8, 32, 256, 96), (8, 128, 130, 40), (2, 32, 192, 64)],
)
def test_blocks(tmp_path, target, bits, block, depth, columns, points):
    for rows in (1, 3, 5, 37):
        model = Model(rows)
        blocks = -(-depth // block)
        q = model.rng.integers(0, 1 << bits, (columns, blocks, block), U8)
        scales = (model.rng.random((columns, blocks)) * 0.1 + 0.01).astype(F32)
        zero = np.full((columns, blocks), 1 << (bits - 1), U8)
        names = ["x", model.constant("q", packed_bits(q, bits)), model.constant("s", scales)]
        if points:
            zero = model.rng.integers(0, 1 << bits, (columns, blocks), U8)
            given = packed_bits(zero, bits) if points == "packed" else zero.astype(F32)
            names.append(model.constant("z", given))
        model.node("MatMulNBits", names, "y", "com.microsoft", N=columns, K=depth, bits=bits, block_size=block)
        x = model.rng.standard_normal((rows, depth)).astype(F32)
        w = (q.astype(float) - zero[..., None]) * scales[..., None]
        want = x.astype(float) @ w.reshape(columns, -1)[:, :depth].T
        # Columns and terms are padded to whole panels and words.
        padded = -(-columns // 32) * 32 * -(-depth // 32) * 32
        limit = padded * bits / 8 + 8 * -(-columns // 32) * 32 * blocks
        check(tmp_path, model, x, want, target, 1.1 * limit + 8192)


def dequantized(model, dtype, shape, form, axis, with_zero, domain=""):
    """A node that dequantizes a constant, and its result."""
    info = ml_dtypes.iinfo(dtype)
    q = model.rng.integers(info.min, info.max + 1, shape).astype(dtype)
    scale_shape = {"tensor": (), "axis": (shape[axis],)}.get(form)
    attributes = {"axis": axis} if form != "tensor" else {}
    if scale_shape is None:
        blocks = list(shape)
        blocks[axis] = -(-shape[axis] // form)
        scale_shape, attributes["block_size"] = tuple(blocks), form
    scales = (model.rng.random(scale_shape) * 0.1 + 0.01).astype(F32)
    names = [model.constant("q", q), model.constant("s", np.asarray(scales))]
    zero = np.zeros(scale_shape)
    if with_zero:
        given = model.rng.integers(info.min // 4, info.max // 4 + 1, scale_shape).astype(dtype)
        names.append(model.constant("z", np.asarray(given)))
        zero = np.asarray(given).astype(float)
    model.node("DequantizeLinear", names, "w", domain, **attributes)
    s = scales.astype(float)
    if form == "axis":
        along = [1] * len(shape)
        along[axis] = -1
        s, zero = s.reshape(along), np.reshape(zero, along)
    elif form != "tensor":
        cut = tuple(slice(n) for n in shape)
        s, zero = (np.repeat(v, form, axis)[cut] for v in (s, zero))
    return (q.astype(float) - zero) * s


@pytest.mark.parametrize("dtype", [I8, U8, I4, U4])
@pytest.mark.parametrize("form, axis", [("tensor", 0), ("axis", 1), ("axis", 0), (32, 0), (16, 1)])
def test_dequantized(tmp_path, target, dtype, form, axis):
    bits = 4 if dtype in (I4, U4) else 8
    depth, columns = 256, 160
    for with_zero, transposed, rows in [(False, False, 1), (True, False, 4), (True, True, 1), (False, True, 33)]:
        model = Model(rows)
        shape = (columns, depth) if transposed else (depth, columns)
        # ONNX Runtime's own, which its quantizers write below opset 21, has no blocks.
        domain = "com.microsoft" if not isinstance(form, int) and rows != 1 else ""
        w = dequantized(model, dtype, shape, form, axis, with_zero, domain)
        if transposed:
            w = w.T
            bias = model.constant("c", model.rng.standard_normal(columns).astype(F32))
            model.node("Gemm", ["x", "w", bias], "y", transB=1)
        else:
            model.node("MatMul", ["x", "w"], "y")
        x = model.rng.standard_normal((rows, depth)).astype(F32)
        want = x.astype(float) @ w
        if transposed:
            want = want + numpy_helper.to_array(model.constants[-1])
        parts = {"tensor": 1, "axis": max(shape)}.get(form, depth * columns // form if isinstance(form, int) else 0)
        limit = depth * columns * bits / 8 + 8 * parts + 8192
        check(tmp_path, model, x, want, target, limit)


@pytest.mark.parametrize("precision, tolerance", [("fp16", 2e-3), ("bf16", 2e-2)])
def test_in_small_floats(tmp_path, target, precision, tolerance):
    for rows in (1, 4, 40):
        model = Model(rows)
        w = dequantized(model, I8, (256, 192), "axis", 1, True)
        model.node("MatMul", ["x", "w"], "y")
        x = model.rng.standard_normal((rows, 256)).astype(F32)
        want = x.astype(float) @ w
        check(tmp_path, model, x, want, target, 256 * 192 + 16384, tolerance=tolerance, precision=precision)


def test_points_of_a_convolution(tmp_path, target):
    model = Model()
    w = dequantized(model, I8, (96, 64, 1, 1), "axis", 0, False)
    model.node("Conv", ["x", "w"], "y")
    x = model.rng.standard_normal((2, 64, 7, 7)).astype(F32)
    want = np.einsum("nchw,oc->nohw", x.astype(float), w[:, :, 0, 0])
    check(tmp_path, model, x, want, target, 96 * 64 + 8192)


def test_open_rows(tmp_path, target):
    """Any number of rows at run time."""
    model = Model()
    w = dequantized(model, U8, (160, 96), 32, 0, True)
    model.node("MatMul", ["x", "w"], "y")
    x = model.rng.standard_normal((1, 160)).astype(F32)
    engine = check(tmp_path, model, x, x.astype(float) @ w, target, 160 * 96 + 32768, rows="m")
    for rows in (2, 13, 30):
        x = model.rng.standard_normal((rows, 160)).astype(F32)
        got = harness.run_engine(engine, {"x": x}, ["y"], tmp_path)[0]
        want = x.astype(float) @ w
        assert np.abs(got - want).max() <= 3e-6 * np.abs(want).max()


def test_shared(tmp_path, target):
    """Two products of one weight each widen it by themselves."""
    model = Model()
    w = dequantized(model, I8, (128, 128), "axis", 1, True)
    model.node("MatMul", ["x", "w"], "h")
    model.node("Tanh", ["h"], "t")
    model.node("MatMul", ["t", "w"], "y")
    x = (model.rng.standard_normal((3, 128)) * 0.01).astype(F32)
    want = np.tanh(x.astype(float) @ w) @ w
    engine = check(tmp_path, model, x, want, target, 128 * 128 + 16384, tolerance=2e-5)
    kernels = harness.invoke("inspect", engine, "--kernels").stdout
    assert "2 kernel launches" in kernels


@pytest.mark.parametrize("rows, depth", [(15, 128), (40, 203), (65, 96), (130, 600), (257, 133)])
def test_many_rows(tmp_path, target, rows, depth):
    """Columns are widened once for them, some terms at a time; what is left behind whole steps, and few terms of it."""
    columns, model, other = 544, Model(rows), Model(rows)
    w = dequantized(model, I8, (depth, columns), "axis", 1, True)
    model.node("MatMul", ["x", "w"], "p")
    model.node("Relu", ["p"], "y")
    x = model.rng.standard_normal((rows, depth)).astype(F32)
    check(tmp_path, model, x, np.maximum(x.astype(float) @ w, 0), target, 1.1 * columns * (depth + 4) + 8192)
    blocks = -(-depth // 32)
    q = other.rng.integers(0, 16, (columns, blocks, 32), U8)
    scales = (other.rng.random((columns, blocks)) * 0.1 + 0.01).astype(F32)
    names = ["x", other.constant("q", packed_bits(q, 4)), other.constant("s", scales)]
    other.node("MatMulNBits", names, "y", "com.microsoft", N=columns, K=depth, bits=4, block_size=32)
    w = ((q.astype(float) - 8) * scales[..., None]).reshape(columns, -1)[:, :depth]
    check(tmp_path, other, x, x.astype(float) @ w.T, target)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_scales_that_are_no_numbers(tmp_path, target, odd):
    """An infinite scale makes NaN of a zero, as the operators say."""
    model = Model()
    q = np.ones((64, 32), I8)
    q[3, 1] = 0
    scales = np.full(32, 0.5, F32)
    scales[:2] = odd
    names = [model.constant("q", q), model.constant("s", scales)]
    model.node("DequantizeLinear", names, "w", axis=1)
    model.node("MatMul", ["x", "w"], "y")
    x = np.ones((1, 64), F32)
    model.save(tmp_path / "m.onnx", x)
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", target=target)
    got = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)[0]
    with np.errstate(invalid="ignore"):
        want = x @ (q.astype(F32) * scales)
    np.testing.assert_array_equal(got, want)
