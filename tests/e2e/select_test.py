"""Operators whose results are as large as values say, where these are constants or follow from sizes, and rare ones that
undo or bound poolings, beside ONNX Runtime."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

F32, I64 = np.float32, np.int64


def save(path, nodes, inputs, outputs, constants, opset=18):
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_empty_tensor_value_info(o) for o in outputs],
        [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)]), path)


def check(tmp_path, path, feeds: list[dict]):
    """Results of one engine for each of the feeds."""
    harness.compile_model(path, tmp_path / "m.engine")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    for feed in feeds:
        for a, b in zip(harness.run_engine(tmp_path / "m.engine", feed, names, tmp_path), session.run(None, feed)):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def constant(rng, dtype, dims):
    """Few values, so that there are zeros and values that are alike."""
    values = rng.integers(0 if np.dtype(dtype).kind in "ub" else -3, 4, dims).astype(dtype)
    return values * dtype(0.25) if np.dtype(dtype).kind == "f" else values


@pytest.mark.parametrize("dims", [(1,), (9,), (3, 5), (2, 3, 4), (40, 3), (700,)], ids=str)
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, I64, F32])
def test_nonzero(tmp_path, dtype, dims):
    rng, path = np.random.default_rng(len(dims)), tmp_path / "m.onnx"
    values = constant(rng, dtype, dims)
    save(path, [helper.make_node("NonZero", ["c"], ["i"]), helper.make_node("Add", ["i", "x"], ["y"])],
         [("x", TensorProto.INT64, [1])], ["y"], {"c": values})  # fmt: skip
    check(tmp_path, path, [{"x": np.array([5])}])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("length", [3, 6, 150])
def test_compress(tmp_path, axis, length):
    """Of the flat tensor, and along an axis, which may be longer than the condition."""
    rng, path = np.random.default_rng(length), tmp_path / "m.onnx"
    attributes = {} if axis is None else {"axis": axis}
    dims = [length + 2] * 2
    save(path, [helper.make_node("Compress", ["x", "c"], ["y"], **attributes)], [("x", TensorProto.FLOAT, dims)], ["y"],
         {"c": rng.random(length) < 0.6})  # fmt: skip
    check(tmp_path, path, [{"x": rng.standard_normal(dims).astype(F32)}])


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("dims, axis", [((11,), None), ((4, 5), None), ((9, 2), 0), ((2, 12), 1), ((3, 8, 2), -2), ((300,), 0), ((1,), None)], ids=str)
@pytest.mark.parametrize("dtype", [np.int8, I64, F32, np.float64])
def test_unique(tmp_path, dtype, dims, axis, ordered):
    rng, path = np.random.default_rng(len(dims)), tmp_path / "m.onnx"
    attributes = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    outputs = ["y", "first", "inverse", "counts"]
    nodes = [helper.make_node("Unique", ["c"], outputs, **attributes)]
    nodes += [helper.make_node("Identity", [o], [f"{o}_out"]) for o in outputs]
    nodes += [helper.make_node("Add", ["first", "x"], ["z"])]
    save(path, nodes, [("x", TensorProto.INT64, [1])], [*(f"{o}_out" for o in outputs), "z"], {"c": constant(rng, dtype, dims)})
    check(tmp_path, path, [{"x": np.array([5])}])


@pytest.mark.parametrize("opset", [9, 10])
def test_old_arange(tmp_path, opset):
    """torch.arange of a length as PyTorch's exporter wrote it up to opset 10, for a table of positions."""
    rng, path = np.random.default_rng(7), tmp_path / "m.onnx"
    one = onnx.numpy_helper.from_array(np.array([1]))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "column"], ["n"]),
        helper.make_node("Unsqueeze", ["n"], ["dims"], axes=[0]),
        helper.make_node("ConstantOfShape", ["dims"], ["ones"], value=one),
        helper.make_node("NonZero", ["ones"], ["hits"]),
        helper.make_node("Transpose", ["hits"], ["rows"]),
        helper.make_node("Squeeze", ["rows"], ["range"], axes=[1]),
        helper.make_node("Gather", ["table", "range"], ["places"]),
        helper.make_node("Add", ["x", "places"], ["y"]),
    ]
    save(path, nodes, [("x", TensorProto.FLOAT, ["b", "n", 6])], ["y"],
         {"column": np.array(1), "table": rng.standard_normal((40, 6)).astype(F32)}, opset)  # fmt: skip
    check(tmp_path, path, [{"x": rng.standard_normal((b, n, 6)).astype(F32)} for b, n in ((1, 1), (2, 7), (3, 40))])


@pytest.mark.parametrize("fill", [2.5, 0.0])
def test_nonzero_of_one_number(tmp_path, fill):
    """Coordinates of all elements, of open sizes, or of none."""
    path = tmp_path / "m.onnx"
    one = onnx.numpy_helper.from_array(np.array([fill], F32))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["ones"], value=one),
        helper.make_node("NonZero", ["ones"], ["y"]),
    ]
    save(path, nodes, [("x", TensorProto.FLOAT, ["a", 3, "b"])], ["y"], {})
    check(tmp_path, path, [{"x": np.zeros(dims, F32)} for dims in ((1, 3, 1), (2, 3, 5), (4, 3, 1))])


@pytest.mark.parametrize("dims, window", [
    ((2, 3, 9), dict(kernel_shape=[3], strides=[2])), ((2, 2, 8, 6), dict(kernel_shape=[2, 2], strides=[2, 2])), ((1, 2, 7, 9), dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
    ((2, 1, 4, 6, 5), dict(kernel_shape=[2, 3, 1], strides=[2, 3, 1])), ((1, 2, 7, 9), dict(kernel_shape=[2, 2], strides=[2, 2])),
])  # fmt: skip
@pytest.mark.parametrize("sized", [False, True], ids=["window", "sizes"])
def test_max_unpool(tmp_path, dims, window, sized):
    """Behind the MaxPool that it inverts, also where that leaves elements out, with an open batch."""
    strides, kernel = window["strides"], window["kernel_shape"]
    pads = window.get("pads", [0] * 2 * len(kernel))
    exact = all((d + pads[i] + pads[i + len(kernel)] - kernel[i]) % strides[i] == 0 for i, d in enumerate(dims[2:]))
    if not sized and not exact:
        pytest.skip("places lie outside of what the window needs")
    path = tmp_path / "m.onnx"
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m", "places"], **window),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("MaxUnpool", ["m", "places", *(["shape"] if sized else [])], ["y"], **window),
    ]
    # Of places that windows share the last one stays; all have the same value.
    save(path, nodes, [("x", TensorProto.FLOAT, ["n", *dims[1:]])], ["y"], {})
    check(tmp_path, path, [{"x": np.random.default_rng(n).standard_normal((n, *dims[1:])).astype(F32)} for n in (1, dims[0], 5)])


@pytest.mark.parametrize("bins, scale", [([2, 2], 1.0), ([7, 7], 0.25), ([1, 3], 0.5), ([5, 1], 1.0)], ids=str)
@pytest.mark.parametrize("single", [False, True], ids=["images", "image"])
def test_max_roi_pool(tmp_path, bins, scale, single):
    """Regions inside, partly and wholly outside, turned around and of one element, with open numbers of images and regions."""
    path = tmp_path / "m.onnx"
    node = helper.make_node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=bins, spatial_scale=scale)
    save(path, [node], [("x", TensorProto.FLOAT, [1 if single else "n", 3, "h", "w"]), ("r", TensorProto.FLOAT, ["k", 5])], ["y"], {})
    feeds, rng = [], np.random.default_rng(4)
    for images, regions, height, width in ((1, 1, 5, 8), (3, 30, 9, 13), (2, 100, 16, 7)):
        images = 1 if single else images
        bounds = rng.uniform(-4, 20, (regions, 4)) / scale
        bounds[::3] = np.round(bounds[::3] * 2) / 2
        bounds[0, :2] = np.float32(0.49999997) / scale  # not half
        bounds[: regions // 2, 2:] = bounds[: regions // 2, :2] + rng.uniform(0, 9, (regions // 2, 2)) / scale
        regions = np.concatenate([rng.integers(0, images, (regions, 1)), bounds], 1).astype(F32)
        feeds.append({"x": rng.standard_normal((images, 3, height, width)).astype(F32), "r": regions})
    check(tmp_path, path, feeds)


def test_compress_by_more_than_there_is(tmp_path):
    """What the condition says beyond the axis counts for nothing."""
    path = tmp_path / "m.onnx"
    save(path, [helper.make_node("Compress", ["x", "c"], ["y"], axis=0)], [("x", TensorProto.FLOAT, [3, 2])], ["y"],
         {"c": np.array([0, 1, 1, 1, 0, 1], bool)})  # fmt: skip
    check(tmp_path, path, [{"x": np.arange(6, dtype=F32).reshape(3, 2)}])


@pytest.mark.parametrize("bins, length, rate, low, high", [(20, 64, 16000, 20, 7600), (80, 400, 16000, 0, 8000), (8, 16, 8192, 0, 4096), (128, 2048, 22050, 30, 11025), (3, 5, 100, 1, 40)])  # fmt: skip
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_mel_weights(tmp_path, element, bins, length, rate, low, high):
    """Beside ONNX's reference."""
    path = tmp_path / "m.onnx"
    nodes = [helper.make_node("MelWeightMatrix", list("abcde"), ["m"], output_datatype=element), helper.make_node("MatMul", ["x", "m"], ["y"])]
    constants = {"a": np.int64(bins), "b": np.int64(length), "c": np.int64(rate), "d": F32(low), "e": F32(high)}
    save(path, nodes, [("x", element, ["n", length // 2 + 1])], ["y"], constants)
    harness.compile_model(path, tmp_path / "m.engine")
    x = np.eye(length // 2 + 1, dtype=helper.tensor_dtype_to_np_dtype(element))
    got = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)[0]
    want = ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})[0]
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
