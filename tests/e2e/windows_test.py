"""Large windows, which slide along one dimension after the other, and padding in front of windows.

Values against ONNX Runtime; what is launched, by the compiler's own list.
"""

from __future__ import annotations

import json

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper


def model_of(nodes, shape, constants=(), names=None, element=TensorProto.FLOAT, opset=19):
    made = [helper.make_tensor_value_info("y", element, None)]
    infos = [helper.make_tensor_value_info("x", element, names or list(shape))]
    weights = [numpy_helper.from_array(v, k) for k, v in dict(constants).items()]
    graph = helper.make_graph(nodes, "windows", infos, made, weights)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def launches(engine):
    report = json.loads(harness.invoke("inspect", engine, "--json").stdout)
    return [[op.split()[0] for op in kernel["ops"]] for kernel in report["programs"][0]["kernels"]]


def check(folder, proto, x, tolerance=2e-6, precision=None):
    """Compares with ONNX Runtime on each instruction set; the operators of each kernel."""
    path = folder / "m.onnx"
    onnx.save(proto, path)
    options = onnxruntime.SessionOptions()  # its own folding of padding is not right
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    for target in harness.cpu_targets():
        engine = folder / f"{target}.engine"
        harness.compile_model(path, engine, target=target, precision=precision)
        (value,) = harness.run_engine(engine, {"x": x}, ["y"], folder / "run")
        assert value.shape == expected.shape
        np.testing.assert_allclose(value, expected, 0, tolerance * max(np.abs(expected).max(), 1), err_msg=target)
    return launches(engine)


def image(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


POOLS = {
    "max 5": ("MaxPool", dict(kernel_shape=[5, 5], pads=[2] * 4), 2),
    "max 13": ("MaxPool", dict(kernel_shape=[13, 13], pads=[6] * 4), 2),
    "max 4x9, strides": ("MaxPool", dict(kernel_shape=[4, 9], strides=[1, 2], pads=[1, 3, 2, 5]), 2),
    "max, dilated, ceil": ("MaxPool", dict(kernel_shape=[5, 6], strides=[2, 1], dilations=[2, 3], ceil_mode=1, pads=[3] * 4), 2),
    "average 7": ("AveragePool", dict(kernel_shape=[7, 7], pads=[3] * 4), 2),
    "average 7, padding counts": ("AveragePool", dict(kernel_shape=[7, 7], pads=[3, 1, 2, 3], count_include_pad=1), 2),
    "average, ceil": ("AveragePool", dict(kernel_shape=[8, 5], strides=[3, 1], pads=[2] * 4, ceil_mode=1), 2),
    "average, ceil, padding counts": ("AveragePool", dict(kernel_shape=[8, 5], strides=[1, 3], pads=[2] * 4, ceil_mode=1, count_include_pad=1), 2),
    "norm 6": ("LpPool", dict(kernel_shape=[6, 6], p=2, pads=[1] * 4), 2),
    "stride of the window": ("MaxPool", dict(kernel_shape=[5, 5], strides=[5, 5]), 1),
    "3": ("MaxPool", dict(kernel_shape=[3, 3], pads=[1] * 4), 1),
    "along one dimension": ("MaxPool", dict(kernel_shape=[1, 25], pads=[0, 12, 0, 12]), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("is_open", [False, True])
def test_large_windows(tmp_path, name, is_open):
    op, attributes, count = POOLS[name]
    x = image(1, 24, 43, 37)
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    names = ["b", 24, "h", "w"] if is_open else None
    # ONNX Runtime counts padding that rounding up adds; LpPool takes roots.
    kernels = check(tmp_path, model_of([node], x.shape, names=names), x, 1e-5)
    assert len([k for k in kernels if "pool" in k]) == count, kernels


CEILED = {
    "max": ("MaxPool", {}),
    "max, dilated": ("MaxPool", dict(kernel_shape=[2, 2], dilations=[2, 2])),
    "average": ("AveragePool", {}),
    "average, padded": ("AveragePool", dict(kernel_shape=[5, 5], strides=[3, 3], pads=[1, 0, 0, 1])),
    "average, padding counts": (
        "AveragePool",
        dict(kernel_shape=[5, 5], strides=[3, 3], pads=[1, 0, 0, 1], count_include_pad=1),
    ),
    "norm": ("LpPool", {}),
    "max, valid": ("MaxPool", dict(auto_pad="VALID")),
    "average, valid": ("AveragePool", dict(auto_pad="VALID", count_include_pad=1)),
    "norm, valid": ("LpPool", dict(auto_pad="VALID")),
}


@pytest.mark.parametrize("name", CEILED)
@pytest.mark.parametrize("is_open", [False, True])
def test_sizes_that_are_rounded_up(tmp_path, name, is_open):
    """Of images that are smaller than the window, and of those that a last window leaves."""
    op, attributes = CEILED[name]
    attributes = dict(dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), **attributes)
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    for i, size in enumerate([(2, 5), (4, 2), (8, 8)]):
        folder = tmp_path / str(i)
        folder.mkdir()
        x = image(2, 3, *size)
        names = ["b", 3, "h", "w"] if is_open else None
        check(folder, model_of([node], x.shape, names=names), x, 1e-6)


def pooled(x, kernel, strides, dilations, upper, op):
    """A pool whose padding keeps the size, padding left out, by the text of the operator."""
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations)):
        size, reach = x.shape[2 + axis], (k - 1) * d + 1
        count = -(-size // s)
        total = max((count - 1) * s + reach - size, 0)
        low = total // 2 if upper else total - total // 2
        width = [(0, 0)] * x.ndim
        width[2 + axis] = (low, total - low)
        x = np.pad(x, width, constant_values=np.nan)
        taps = [np.take(x, np.arange(count) * s + i * d, 2 + axis) for i in range(k)]
        x = np.stack(taps, -1)
    axes = tuple(range(4, x.ndim))
    return np.nanmax(x, axes) if op == "MaxPool" else np.nanmean(x, axes)


KEPT = {
    "overlap": dict(kernel_shape=[3, 4], strides=[2, 3], dilations=[1, 1]),
    "dilated": dict(kernel_shape=[3, 5], strides=[2, 2], dilations=[2, 1]),
    "apart": dict(kernel_shape=[2, 5], strides=[3, 8], dilations=[1, 1]),
    "far apart": dict(kernel_shape=[3, 1], strides=[9, 2], dilations=[2, 1]),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("side", ["UPPER", "LOWER"])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_padding_that_keeps_an_open_size(tmp_path, name, side, op):
    """At each remainder of the strides; ONNX Runtime forgets dilations and takes no negative padding."""
    node = helper.make_node(op, ["x"], ["y"], auto_pad=f"SAME_{side}", **KEPT[name])
    onnx.save(model_of([node], (), names=["b", 2, "h", "w"]), tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    for h, w in [(1, 9), (5, 8), (19, 31)]:
        x = image(2, 2, h, w)
        (value,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path / "run")
        wanted = pooled(x.astype(np.float64), *KEPT[name].values(), side == "UPPER", op)
        assert value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("element, value", [(np.float32, 1), (np.float32, 0.1), (np.float16, 65504)])
def test_averages_of_one_number(tmp_path, element, value):
    """What is inside is counted, and divided by once: the average of equal numbers is that number."""
    node = helper.make_node("AveragePool", ["x"], ["y"], auto_pad="SAME_UPPER", kernel_shape=[7, 6], strides=[2, 3])
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    onnx.save(model_of([node], (), names=[1, 1, "h", "w"], element=kind), tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    x = np.full((1, 1, 23, 26), value, element)
    (y,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path / "run")
    if value == 0.1:  # the sum of such is rounded
        np.testing.assert_allclose(y, np.full_like(y, value), 1e-6)
    else:
        np.testing.assert_array_equal(y, np.full_like(y, value))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_inferred_sizes_that_are_rounded_up(tmp_path, op):
    x = image(1, 2, 8)
    node = helper.make_node(
        op, ["x"], ["y"], kernel_shape=[3], strides=[2], ceil_mode=1, auto_pad="VALID"
    )
    proto = onnx.shape_inference.infer_shapes(model_of([node], x.shape))
    dims = proto.graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [1, 2, 4]
    check(tmp_path, proto, x)


def test_places_of_sizes_that_are_rounded_up(tmp_path):
    x = image(1, 2, 2, 5)
    window = dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    node = helper.make_node("MaxPool", ["x"], ["m", "y"], **window)
    proto = model_of([node], x.shape)
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    check(tmp_path, proto, x)


def test_large_windows_of_three_dimensions(tmp_path):
    x = image(1, 4, 20, 21, 22)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[5, 4, 6], pads=[2, 1, 3, 2, 2, 2])
    kernels = check(tmp_path, model_of([node], x.shape), x, 0)
    assert len([k for k in kernels if "pool" in k]) == 3, kernels


def test_chained_windows(tmp_path):
    """The end of YOLO's backbone: windows over windows, concatenated with what they began with."""
    names = ["x", "a", "b", "c"]
    pool = dict(kernel_shape=[5, 5], pads=[2] * 4)
    nodes = [helper.make_node("MaxPool", [i], [o], **pool) for i, o in zip(names, names[1:])]
    nodes.append(helper.make_node("Concat", names, ["y"], axis=1))
    x = image(1, 64, 20, 20)
    check(tmp_path, model_of(nodes, x.shape), x, 0)
    check(tmp_path, model_of(nodes, x.shape, names=["b", "c", "h", "w"]), x, 0)


def test_not_a_number_in_a_large_window(tmp_path):
    """It reaches all windows that it is in, whichever dimension comes first."""
    x = np.full((1, 16, 40, 40), 2, np.float32)
    x[0, 3, 7, 9] = np.nan
    x[0, 5, 0, 39] = -np.inf
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[7, 7], pads=[3] * 4)
    onnx.save(model_of([node], x.shape), path)
    harness.compile_model(path, engine)
    (value,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run")
    expected = np.full_like(x, 2)
    expected[0, 3, 4:11, 6:13] = np.nan
    np.testing.assert_array_equal(value, expected)


def test_means_of_large_windows_in_half_precision(tmp_path):
    """What lies between the two dimensions is not rounded: a mean of means is as exact as one."""
    x = image(1, 32, 40, 40) + 8
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[9, 9], pads=[4] * 4)
    check(tmp_path, model_of([node], x.shape), x, 6e-4, precision="fp16")


def test_windows_of_bytes(tmp_path):
    x = np.random.default_rng(1).integers(0, 255, (1, 16, 40, 40)).astype(np.uint8)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[6, 6], pads=[2, 3, 3, 2])
    check(tmp_path, model_of([node], x.shape, element=TensorProto.UINT8), x, 0)


PADDED = {
    "convolution": ("Conv", dict(pads=[1, 0, 2, 1]), 0.0, True),
    "convolution, other value": ("Conv", {}, 1.0, False),
    "average": ("AveragePool", dict(kernel_shape=[3, 3]), 0.0, True),
    "average that counts its own": ("AveragePool", dict(kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1), 0.0, True),
    "average that leaves its own out": ("AveragePool", dict(kernel_shape=[3, 3], pads=[1] * 4), 0.0, False),
    "average, rounded up": ("AveragePool", dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), 0.0, False),
    "maximum of zeros": ("MaxPool", dict(kernel_shape=[3, 3], strides=[2, 2]), 0.0, True),
    "maximum of a number": ("MaxPool", dict(kernel_shape=[5, 5]), 1.5, True),
    "maximum of nothing": ("MaxPool", dict(kernel_shape=[5, 5], pads=[1] * 4), -np.inf, True),
    "maximum of zeros and nothing": ("MaxPool", dict(kernel_shape=[3, 3], pads=[1] * 4), 0.0, False),
}  # fmt: skip


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("is_open", [False, True])
def test_padding_in_front_of_a_window(tmp_path, name, is_open):
    op, attributes, value, folds = PADDED[name]
    x = image(1, 24, 33, 28) - 1
    constants = {"p": np.array([0, 0, 1, 2, 0, 0, 2, 1]), "v": np.float32(value)}
    inputs = ["t"]
    if op == "Conv":
        constants["w"] = image(16, 24, 3, 3, seed=2) / 15
        inputs.append("w")
    nodes = [helper.make_node("Pad", ["x", "p", "v"], ["t"]), helper.make_node(op, inputs, ["y"], **attributes)]
    names = ["b", 24, "h", "w"] if is_open else None
    kernels = check(tmp_path, model_of(nodes, x.shape, constants, names), x)
    assert any("pad" in k for k in kernels) != folds, kernels


def test_padding_of_an_image_that_has_channels_last(tmp_path):
    """As Keras has it: transposes around the window, the padding outside of them."""
    x = image(1, 32, 30, 16)
    constants = {"p": np.array([0, 1, 1, 0, 0, 1, 1, 0]), "v": np.float32(0)}
    nodes = [
        helper.make_node("Pad", ["x", "p", "v"], ["t"]),
        helper.make_node("Transpose", ["t"], ["u"], perm=[0, 3, 1, 2]),
        helper.make_node("MaxPool", ["u"], ["z"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("Transpose", ["z"], ["y"], perm=[0, 2, 3, 1]),
    ]
    kernels = check(tmp_path, model_of(nodes, x.shape, constants), x, 0)
    assert len(kernels) == 1 and "pad" not in kernels[0], kernels
