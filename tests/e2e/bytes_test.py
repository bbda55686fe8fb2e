"""Products of bytes in all signs, with zero points and without: exact, on every CPU."""

from __future__ import annotations

import json

import harness
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from targets import runnable

I8, U8 = np.int8, np.uint8
VNNI = "x86-64-v4-vnni"
TARGETS = ["x86-64-v3", "x86-64-v4", VNNI]


@pytest.fixture(params=TARGETS)
def target(request):
    return runnable(request.param, extended=True)


def extremes(rng, shape, dtype):
    """Often the largest and the least, whose sums saturate where any may."""
    info = np.iinfo(dtype)
    drawn = rng.integers(info.min, info.max + 1, shape)
    return np.where(rng.random(shape) < 0.3, info.max, np.where(
        rng.random(shape) < 0.3, info.min, drawn)).astype(dtype)  # fmt: skip


def run(tmp_path, op, feeds, weights, target, open_dims=(), **attributes):
    """`feeds` are inputs, `weights` initializers, all by name in the order of the operands."""
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype),
            [f"{name}{d}" if d in open_dims else n for d, n in enumerate(x.shape)],
        )
        for name, x in feeds.items()
    ]  # fmt: skip
    names = [n if n in feeds or n in weights else "" for n in ("a", "b", "p", "q")]
    while not names[-1]:
        names.pop()
    node = helper.make_node(op, names, ["y"], **attributes)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    constants = [numpy_helper.from_array(x, n) for n, x in weights.items()]
    graph = helper.make_graph([node], "bytes", infos, [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    harness.compile_model(path, engine, target=target)
    return harness.run_engine(engine, feeds, ["y"], tmp_path)[0]


@pytest.mark.parametrize("points", ["none", "one", "each", "middle"])
@pytest.mark.parametrize("right", [I8, U8])
@pytest.mark.parametrize("left", [I8, U8])
def test_products(tmp_path, target, left, right, points):
    rng = np.random.default_rng(7)
    for shape, n, is_weight, open_dims in [
        ((37, 64), 40, True, ()),
        ((2, 29, 67), 33, True, (1,)),
        ((5, 30), 7, False, ()),
        ((33, 52), 70, False, (0, 1)),
        # A single row, and terms that no step of some at once divides.
        ((1, 129), 45, True, ()),
        ((1, 61), 1, True, ()),
        ((3, 1, 67), 37, False, ()),
        ((7, 101), 35, True, ()),
    ]:
        a, b = extremes(rng, shape, left), extremes(rng, (shape[-1], n), right)
        weights = {}
        if points == "middle":  # as quantizers of symmetric weights write them
            weights["q"] = np.array(128 if right == U8 else 0, right)
        elif points != "none":
            rows = (shape[-2],) if points == "each" and len(shape) == 2 else ()
            rows = () if 0 in open_dims else rows
            weights["p"] = extremes(rng, rows, left)
            weights["q"] = extremes(rng, (n,) if points == "each" else (), right)
        if points == "middle":
            weights["p"] = np.array(0, left)
        feeds = {"a": a, "b": b}
        if is_weight:
            weights["b"] = feeds.pop("b")
        got = run(tmp_path, "MatMulInteger", feeds, weights, target, open_dims)
        p, q = weights.get("p", np.zeros((), left)), weights.get("q", np.zeros((), right))
        rows = a.astype(np.int64) - (p[:, None] if p.ndim else p)
        want = rows @ (b.astype(np.int64) - q)
        np.testing.assert_array_equal(got, want.astype(np.int32), str((shape, n)))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("point", [None, 0, 128])
@pytest.mark.parametrize("left, right", [(U8, I8), (U8, U8), (I8, I8)])
def test_convolutions(tmp_path, target, left, right, point, groups):
    """Padding has the distance 0 from the zero point."""
    rng = np.random.default_rng(8)
    a = extremes(rng, (2, 8, 9, 11), left)
    b = extremes(rng, (12, 8 // groups, 3, 3), right)
    weights = {"b": b}
    if point is not None:
        weights["p"] = np.array(min(point, np.iinfo(left).max), left)
        weights["q"] = np.array(128 if right == U8 else 0, right)
    p, q = weights.get("p", 0), weights.get("q", 0)
    got = run(tmp_path, "ConvInteger", {"a": a}, weights, target, pads=[1] * 4, group=groups)
    wide = np.pad(a.astype(np.int64) - p, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    windows = windows.reshape(2, groups, 8 // groups, 9, 11, 3, 3)
    filters = (b.astype(np.int64) - q).reshape(groups, 12 // groups, 8 // groups, 3, 3)
    want = np.einsum("ngchwij,gocij->ngohw", windows, filters).reshape(2, 12, 9, 11)
    np.testing.assert_array_equal(got, want.astype(np.int32))


@pytest.mark.parametrize("left, right", [(U8, I8), (I8, I8), (I8, U8)])
def test_narrow_weights(tmp_path, target, left, right):
    """Of 7 bits, with and without the one value more whose pairs 16 bits do not hold."""
    rng = np.random.default_rng(10)
    most = 64 if right == I8 else 127
    for shape, n in [((37, 64), 40), ((2, 29, 67), 33), ((1, 129), 45), ((3, 5), 1), ((6, 1030), 17)]:
        for larger in (0, 1):
            a, b = extremes(rng, shape, left), extremes(rng, (shape[-1], n), right)
            b = np.clip(b, -most if right == I8 else 0, most).astype(right)
            b[:2, 0] = most + larger
            a[..., :2] = np.iinfo(left).max if right == I8 else np.iinfo(left).min
            got = run(tmp_path, "MatMulInteger", {"a": a}, {"b": b}, target)
            np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32), str((shape, n)))
    a = extremes(rng, (1, 5, 9, 11), left)
    b = np.clip(extremes(rng, (12, 5, 3, 3), right), -most if right == I8 else 0, most).astype(right)
    got = run(tmp_path, "ConvInteger", {"a": a}, {"b": b}, target)
    windows = np.lib.stride_tricks.sliding_window_view(a.astype(np.int32), (3, 3), (2, 3))
    np.testing.assert_array_equal(got, np.einsum("nchwij,ocij->nohw", windows, b.astype(np.int32)))


@pytest.mark.parametrize("pad", ["VALID", "SAME_UPPER", "SAME_LOWER"])
def test_padding_of_open_images(tmp_path, target, pad):
    """As many elements as the image, of any size, needs, which have the distance 0 from the zero point."""
    rng = np.random.default_rng(9)
    weights = {"b": extremes(rng, (3, 2, 3, 2), I8), "p": np.array(77, U8)}
    for height, width in ((9, 7), (8, 12)):
        a = extremes(rng, (1, 2, height, width), U8)
        got = run(tmp_path, "ConvInteger", {"a": a}, weights, target, (2, 3), auto_pad=pad, strides=[2, 1])
        wide = a.astype(np.int64) - 77
        if pad != "VALID":
            rows = max((-(-height // 2) - 1) * 2 + 3 - height, 0)
            upper = pad == "SAME_UPPER"
            ends = [(n // 2, n - n // 2) if upper else (n - n // 2, n // 2) for n in (rows, 1)]
            wide = np.pad(wide, ((0, 0), (0, 0), *ends))
        windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), (2, 3))[:, :, ::2]
        want = np.einsum("nchwij,ocij->nohw", windows, weights["b"].astype(np.int64))
        np.testing.assert_array_equal(got, want.astype(np.int32))


def archs(tmp_path, op, feeds, weights, target):
    run(tmp_path, op, feeds, weights, target)
    result = harness.invoke("inspect", tmp_path / "m.engine", "--json")
    programs = json.loads(result.stdout)["programs"]
    return [variant["arch"] for program in programs for variant in program["variants"]]


def test_variant_where_it_gains(tmp_path):
    """An engine has code of its own for VNNI where a kernel multiplies bytes."""
    rng = np.random.default_rng(9)
    a, b = extremes(rng, (8, 32), U8), {"b": extremes(rng, (32, 32), I8)}
    assert archs(tmp_path, "MatMulInteger", {"a": a}, b, "cpu") == [
        "x86-64-v4", VNNI, "x86-64-v3"]  # fmt: skip
    a, b = a.astype(np.int32), {"b": b["b"].astype(np.int32)}
    assert archs(tmp_path, "MatMul", {"a": a}, b, "cpu") == ["x86-64-v4", "x86-64-v3"]
