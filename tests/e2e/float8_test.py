"""Floats of 8 bits: conversions as ml_dtypes has them, on every CPU and in the GPU's interpreter; products."""

from __future__ import annotations

import shutil

import harness
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from targets import runnable

TYPES = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}
GPUS = ["sm_80", "sm_90a"]
E4M3, E5M2 = TYPES["FLOAT8E4M3FN"], TYPES["FLOAT8E5M2"]


@pytest.fixture(params=["x86-64-v3", "x86-64-v4", *GPUS])
def target(request):
    return request.param if request.param in GPUS else runnable(request.param)


def run(tmp_path, nodes, feeds, outputs, target, constants=None, open_dims=(), precision="fp32"):
    """`feeds`: inputs by name; `outputs`: element types by name; the results by name, and the engine's dump."""
    path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype),
            [f"{name}{d}" if (name, d) in open_dims else n for d, n in enumerate(x.shape)],
        )
        for name, x in feeds.items()
    ]  # fmt: skip
    results = [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()]
    weights = [numpy_helper.from_array(x, n) for n, x in (constants or {}).items()]
    graph = helper.make_graph(nodes, "float8", infos, results, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path)
    gpu = target in GPUS
    shutil.rmtree(dump, ignore_errors=True)
    harness.compile_model(path, engine, target=target, precision=precision, dump=dump if gpu else None)
    how = dict(device="simt", dump=dump) if gpu else {}
    got = harness.run_engine(engine, feeds, list(outputs), tmp_path / "run", **how)
    return {
        name: harness.as_dtype(x, np.dtype(helper.tensor_dtype_to_np_dtype(outputs[name])))
        for name, x in zip(outputs, got)
    }, dump


def edges(dtype):
    """All numbers of a type, what lies half way between neighbours and next to that, and what is out of range."""
    codes = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    finite = np.unique(codes[np.isfinite(codes)])
    step = finite[-1] - finite[-2]
    beyond = [finite[-1] + step * f for f in (0.5, 1, 1.5, 40)]
    finite = np.concatenate([[-beyond[1]], finite, [beyond[1]]])
    middle = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    return np.concatenate([
        codes.astype(np.float32), middle, np.nextafter(middle, np.float32(np.inf)),
        np.nextafter(middle, np.float32(-np.inf)), np.float32(beyond), -np.float32(beyond),
        np.float32([0, -0.0, 1e-30, -1e-45, 3e38, np.inf, -np.inf, np.nan, -np.nan]),
    ])  # fmt: skip


def rounded(x, dtype, saturate):
    """As ONNX says: the nearest number, of two the even one, and where that is none, NaN, infinity, or
    the largest. (ml_dtypes rounds doubles twice.)"""
    x, largest = np.asarray(x, np.float64), float(ml_dtypes.finfo(dtype).max)
    table = np.arange(128, dtype=np.uint8).view(dtype).astype(np.float64)
    table = table[np.isfinite(table) & (table <= largest)]
    table = np.append(table, 2 * table[-1] - table[-2])  # what is rounded to that is too large
    if saturate:
        x = np.where(np.isnan(x), x, np.clip(x, -largest, largest))
    size = np.minimum(np.nan_to_num(np.abs(x)), table[-1])
    above = np.searchsorted(table, size).clip(1, len(table) - 1)
    middle = (table[above] + table[above - 1]) / 2  # exact
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    code = np.where(up, above, above - 1)
    value = np.where(code == len(table) - 1, np.inf, table[code])
    value = np.where(np.isnan(x), np.nan, np.copysign(value, x))
    with np.errstate(all="ignore"):
        return value.astype(dtype)


def same(want, got, what):
    """The same bits, but for those of NaN."""
    assert want.dtype == got.dtype, what
    numbers = ~np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), ~numbers, what)
    np.testing.assert_array_equal(got.view(np.uint8)[numbers], want.view(np.uint8)[numbers], what)


def test_to_float8(tmp_path, target):
    rng = np.random.default_rng(5)
    drawn = rng.standard_normal(500) * np.exp(rng.uniform(-14, 8, 500))
    for name, dtype in TYPES.items():
        x = np.concatenate([edges(dtype), drawn.astype(np.float32)])
        # Next to what is half way, by less than f32 has.
        middle = edges(dtype)[256:700].astype(np.float64)
        doubles = np.concatenate([x, middle * (1 + 1e-12), middle * (1 - 1e-12)]).astype(np.float64)
        with np.errstate(all="ignore"):
            feeds = {"f": x, "h": x.astype(np.float16), "b": x.astype(ml_dtypes.bfloat16), "d": doubles,
                     "i": np.arange(-600, 600, dtype=np.int32)}  # fmt: skip
        nodes, outputs, want = [], {}, {}
        for source, value in feeds.items():
            for saturate in (0, 1):
                key = f"{source}{saturate}"
                nodes.append(
                    helper.make_node("Cast", [source], [key], to=getattr(TensorProto, name), saturate=saturate)
                )
                outputs[key] = getattr(TensorProto, name)
                want[key] = rounded(value.astype(np.float64), dtype, saturate)
        got, _ = run(tmp_path, nodes, feeds, outputs, target)
        for key, value in want.items():
            same(value, got[key], f"{name} {key}")


def test_from_float8(tmp_path, target):
    wide = {"FLOAT": np.float32, "FLOAT16": np.float16, "BFLOAT16": ml_dtypes.bfloat16, "DOUBLE": np.float64}
    for name, dtype in TYPES.items():
        x = np.arange(256, dtype=np.uint8).view(dtype).reshape(2, 128)
        nodes, outputs = [], {}
        for to in wide:
            nodes.append(helper.make_node("Cast", ["x"], [to], to=getattr(TensorProto, to)))
            outputs[to] = getattr(TensorProto, to)
        # Elements that only move stay what they are.
        nodes.append(helper.make_node("Transpose", ["x"], ["moved"], perm=[1, 0]))
        outputs["moved"] = getattr(TensorProto, name)
        for other in TYPES:
            nodes.append(helper.make_node("Cast", ["x"], [other], to=getattr(TensorProto, other)))
            outputs[other] = getattr(TensorProto, other)
        got, _ = run(tmp_path, nodes, {"x": x}, outputs, target)
        for to, want in wide.items():
            np.testing.assert_array_equal(got[to].astype(np.float64), x.astype(want).astype(np.float64), f"{name} {to}")
        same(np.ascontiguousarray(x.T), got["moved"], name)
        for other, want in TYPES.items():
            expected = x if want == dtype else rounded(x.astype(np.float32), want, True)
            same(expected, got[other], f"{name} to {other}")


@pytest.mark.parametrize("kind", ["tensor", "axis", "block"])
def test_quantize(tmp_path, target, kind):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((6, 32)) * 300).astype(np.float32)
    shape = {"tensor": (), "axis": (32,), "block": (6, 4)}[kind]
    scale = rng.uniform(0.3, 3, shape).astype(np.float32)
    how = {"tensor": {}, "axis": dict(axis=1), "block": dict(axis=1, block_size=8)}[kind]
    spread = np.repeat(scale, 8, 1) if kind == "block" else scale
    for name in ("FLOAT8E4M3FN", "FLOAT8E5M2"):
        zero = np.zeros(shape, TYPES[name])
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **how),
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q0"], saturate=0, **how),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **how),
        ]
        to = getattr(TensorProto, name)
        got, _ = run(tmp_path, nodes, {"x": x}, {"q": to, "q0": to, "y": TensorProto.FLOAT}, target,
                     {"s": scale, "z": zero})  # fmt: skip
        q = rounded(x / spread, TYPES[name], True)
        same(q, got["q"], name)
        same(rounded(x / spread, TYPES[name], False), got["q0"], name)
        np.testing.assert_array_equal(got["y"], q.astype(np.float32) * spread)


def random8(rng, shape, dtype):
    return (rng.standard_normal(shape) * 2).astype(dtype)


PRODUCTS = [
    # m, k, n, scales of a and b, weights, open dimensions.
    (1, 64, 40, "tensor", "tensor", True, ()),
    (37, 96, 65, "row", "column", True, (("a", 0),)),
    (129, 200, 72, "tensor", "column", True, ()),
    (64, 130, 64, "row", "tensor", False, ()),
    (70, 256, 130, "none", "column", "turned", ()),
    (16, 512, 264, "row", "column", True, (("a", 0),)),
    (130, 130, 96, "none", "tensor", True, ()),
    (300, 400, 200, "tensor", "column", "turned", ()),
    # Terms of the right side that lie apart.
    (128, 256, 144, "none", "tensor", False, ()),
    # Several instances share the terms of a tile; columns that fill no tile.
    (64, 2048, 128, "none", "tensor", True, ()),
    (129, 4112, 65, "none", "tensor", True, ()),
    (520, 128, 520, "none", "column", True, ()),
]


@pytest.mark.parametrize("left, right", [(E4M3, E4M3), (E5M2, E4M3)])
@pytest.mark.parametrize("m, k, n, scale_a, scale_b, weights, open_dims", PRODUCTS)
def test_products(tmp_path, target, left, right, m, k, n, scale_a, scale_b, weights, open_dims):
    rng = np.random.default_rng(m + k)
    a, b = random8(rng, (m, k), left), random8(rng, (k, n), right)
    sizes = {"none": (), "tensor": (), "row": (m, 1), "column": (1, n)}
    s, t = (rng.uniform(0.2, 3, sizes[kind]).astype(np.float32) for kind in (scale_a, scale_b))
    nodes = [helper.make_node("Cast", ["a"], ["a32"], to=TensorProto.FLOAT)]
    left_name = "a32"
    if scale_a != "none":
        nodes.append(helper.make_node("Mul", ["a32", "s"], ["as"]))
        left_name = "as"
    else:
        s = np.float32(1)
    turned = weights == "turned"  # as a linear layer has them
    nodes.append(helper.make_node(
        "DequantizeLinear", ["b", "t"], ["b32"], **({} if t.ndim == 0 else dict(axis=0 if turned else 1))
    ))  # fmt: skip
    if turned:
        nodes.append(helper.make_node("Transpose", ["b32"], ["bt"], perm=[1, 0]))
    nodes.append(helper.make_node("MatMul", [left_name, "bt" if turned else "b32"], ["y"]))
    stored = np.ascontiguousarray(b.T) if turned else b
    feeds, constants = {"a": a}, {"t": t.reshape(-1) if t.ndim else t}
    if scale_a == "row":
        feeds["s"] = s
        open_dims = (*open_dims, *((("s", 0),) if open_dims else ()))
    elif scale_a == "tensor":
        constants["s"] = s
    (constants if weights else feeds)["b"] = stored
    if open_dims:
        for d in open_dims:
            assert d[1] == 0
    got, dump = run(tmp_path, nodes, feeds, {"y": TensorProto.FLOAT}, target, constants, open_dims)
    # Weights lie as the instruction takes them.
    if target == "sm_90a" and left == right and weights and m > 1 and k % 16 == 0:
        ptx = "".join(p.read_text() for p in dump.glob("*-cuda-code/*/*.ptx"))
        assert "wgmma.mma_async.sync.aligned.m64" in ptx and "k32.f32.e4m3.e4m3" in ptx
    want = (a.astype(np.float64) @ b.astype(np.float64)) * s * t
    np.testing.assert_allclose(got["y"], want, rtol=0, atol=2e-6 * k * np.abs(want).max())


def test_products_of_a_layer_scaled_at_run_time(tmp_path, target):
    """As exporters write a linear layer in float8: the scale of the activations is computed of them."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((45, 128)).astype(np.float32) * 3
    w = random8(rng, (96, 128), E4M3)
    nodes = [
        helper.make_node("Abs", ["x"], ["size"]),
        helper.make_node("ReduceMax", ["size"], ["most"], keepdims=0),
        helper.make_node("Div", ["most", "largest"], ["s"]),
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=TensorProto.FLOAT8E4M3FN),
        helper.make_node("DequantizeLinear", ["q", "s"], ["dq"]),
        helper.make_node("DequantizeLinear", ["w", "t"], ["dw"], axis=0),
        helper.make_node("Transpose", ["dw"], ["wt"], perm=[1, 0]),
        helper.make_node("MatMul", ["dq", "wt"], ["p"]),
        helper.make_node("Add", ["p", "bias"], ["y"]),
    ]
    t = rng.uniform(0.01, 0.02, 96).astype(np.float32)
    bias = rng.standard_normal(96).astype(np.float32)
    constants = {"largest": np.float32(448), "w": w, "t": t, "bias": bias}
    got, _ = run(tmp_path, nodes, {"x": x}, {"y": TensorProto.FLOAT, "q": TensorProto.FLOAT8E4M3FN}, target, constants)
    s = np.abs(x).max() / np.float32(448)
    q = rounded(x / s, E4M3, True)
    same(q, got["q"], "q")
    want = (q.astype(np.float64) @ w.astype(np.float64).T) * s * t + bias
    np.testing.assert_allclose(got["y"], want, rtol=0, atol=2e-5 * np.abs(want).max())


def test_attention(tmp_path, target):
    """Of queries, keys and values that are float8, each with a scale."""
    rng = np.random.default_rng(12)
    feeds = {"q": random8(rng, (2, 3, 40, 32), E4M3), "k": random8(rng, (2, 3, 50, 32), E4M3), "v": random8(rng, (2, 3, 50, 32), E4M3)}
    nodes = [helper.make_node("DequantizeLinear", [x, f"s{x}"], [f"d{x}"]) for x in feeds]
    nodes += [
        helper.make_node("Transpose", ["dk"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["dq", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "dv"], ["y"]),
    ]
    scales = {"sq": np.float32(0.1), "sk": np.float32(0.2), "sv": np.float32(0.3)}
    got, _ = run(tmp_path, nodes, feeds, {"y": TensorProto.FLOAT}, target, scales)
    q, k, v = (feeds[x].astype(np.float64) * scales[f"s{x}"] for x in "qkv")
    p = np.exp(q @ k.swapaxes(2, 3))
    want = p / p.sum(3, keepdims=True) @ v
    np.testing.assert_allclose(got["y"], want, rtol=0, atol=2e-6 * np.abs(want).max())


def test_what_moves_and_asks(tmp_path, target):
    """Constants, views, questions and conversions of integers."""
    x, z = np.arange(256, dtype=np.uint8).view(E4M3).reshape(16, 16), np.arange(256, dtype=np.uint8).view(E5M2)
    kept, whole = np.array([1.5, 448, -2, np.nan], E4M3), np.array([1, 3, 1000, 100000, -7, 2**40], np.int64)
    make = helper.make_node
    nodes = [
        make("Constant", [], ["c"], value=numpy_helper.from_array(kept)), make("Identity", ["c"], ["kept"]),
        make("ConstantOfShape", ["sizes"], ["same"], value=numpy_helper.from_array(np.array([0.75], E4M3))),
        make("Reshape", ["x", "shape"], ["view"]), make("IsNaN", ["x"], ["nan"]), make("IsInf", ["z"], ["inf"]),
        make("Cast", ["x"], ["i"], to=TensorProto.INT32), make("Cast", ["x"], ["b"], to=TensorProto.BOOL),
        make("Cast", ["whole"], ["f"], to=TensorProto.FLOAT8E5M2),
    ]  # fmt: skip
    to = TensorProto
    outputs = {
        "kept": to.FLOAT8E4M3FN, "same": to.FLOAT8E4M3FN, "view": to.FLOAT8E4M3FN, "nan": to.BOOL, "inf": to.BOOL,
        "i": to.INT32, "b": to.BOOL, "f": to.FLOAT8E5M2,
    }  # fmt: skip
    constants = {"sizes": np.array([3, 5], np.int64), "shape": np.array([4, 64], np.int64)}
    got, _ = run(tmp_path, nodes, {"x": x, "z": z, "whole": whole}, outputs, target, constants)
    same(kept, got["kept"], "constant")
    same(np.full((3, 5), 0.75, E4M3), got["same"], "fill")
    same(x.reshape(4, 64), got["view"], "view")
    numbers = x.astype(np.float32)
    known = ~np.isnan(numbers)
    np.testing.assert_array_equal(got["nan"], ~known)
    np.testing.assert_array_equal(got["inf"], np.isinf(z.astype(np.float32)))
    np.testing.assert_array_equal(got["i"][known], numbers[known].astype(np.int32))
    np.testing.assert_array_equal(got["b"], numbers != 0)
    same(rounded(whole, E5M2, True), got["f"], "integers")
