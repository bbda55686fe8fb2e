"""Convolutions on a GPU, run thread by thread by charonia-simt, against ONNX Runtime."""

from __future__ import annotations

import re

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from simt_orders import in_orders

ORDERS = [(0, "late"), (1, "seeded")]


def convolution(n, size, channels, filters, window, *, groups=1, stride=1, pads=None, dilation=1):
    """relu(conv(x) + b) of channels-last images, and its input, in float32."""
    rng = np.random.default_rng(filters + window)
    height, width = size
    pads = [window // 2 * dilation] * 4 if pads is None else pads
    terms = channels // groups * window * window
    w = rng.standard_normal((filters, channels // groups, window, window)) * terms**-0.5
    nodes = [
        helper.make_node("Transpose", ["x"], ["i"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["i", "w", "b"], ["c"], group=groups, strides=[stride] * 2, pads=pads,
                         dilations=[dilation] * 2),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 3, 1]),
    ]
    weights = [
        numpy_helper.from_array(v.astype(np.float32), k)
        for k, v in {"w": w, "b": rng.standard_normal(filters)}.items()
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "convolution", [info("x", TensorProto.FLOAT, [n, height, width, channels])],
        [info("y", TensorProto.FLOAT, None)], weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    x = rng.standard_normal((n, height, width, channels)).astype(np.float32)
    return model, x


def check(tmp_path, model, x, target, precision="fp16", limit=2e-3):
    """The PTX of all kernels, once the values are right in several orders."""
    path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
    onnx.save(model, path)
    harness.compile_model(path, engine, target=target, precision=precision, dump=dump)
    (want,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    for got in in_orders(engine, {"x": x}, tmp_path, dump, ORDERS):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        scale = np.abs(want[np.isfinite(want)]).max()
        np.testing.assert_allclose(got, want, rtol=0, atol=limit * scale)
    return "".join(p.read_text() for p in sorted(dump.glob("*-cuda-code/*/*.ptx")))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("groups, each, filters", [(2, 64, 96), (3, 16, 24), (2, 24, 120), (4, 8, 8), (2, 32, 48)])
def test_columns_of_a_group_are_a_tile(tmp_path, target, groups, each, filters):
    """Whatever a group's width is, its columns are multiplied on tensor cores."""
    model, x = convolution(1, (9, 11), groups * each, groups * filters, 3, groups=groups)
    ptx = check(tmp_path, model, x, target)
    assert "mma." in ptx


@pytest.mark.parametrize(
    "image, filters, window, stride",
    [((6, (224, 224), 3), 64, 5, 2), ((1, (263, 265), 128), 64, 1, 1), ((1, (157, 163), 192), 256, 1, 1),
     ((1, (157, 163), 128), 320, 1, 1)],
)  # fmt: skip
def test_instances_with_several_tiles(tmp_path, image, filters, window, stride):
    """Many tiles of few terms: filters stay in shared memory, those of a block of columns where there
    are several, and the next tile's copies are under way while one is stored. The last tile is not
    whole, and not all instances have one more."""
    n, size, channels = image
    model, x = convolution(n, size, channels, filters, window, stride=stride)
    ptx = check(tmp_path, model, x, "sm_90a")
    assert "wgmma" in ptx
    (program,) = (tmp_path / "dump").glob("*-cuda-code/*/*conv*-simt.mlir")
    assert "simt.tiles" in program.read_text()


@pytest.mark.parametrize("target, precision", [("sm_80", "fp16"), ("sm_90a", "fp16"), ("sm_90a", "bf16")])
@pytest.mark.parametrize("image, filters, window, how", [
    ((1, (13, 15), 128), 72, 3, dict(stride=2)), ((2, (7, 7), 192), 200, 3, dict(dilation=2)),
    ((1, (9, 31), 128), 65, 1, dict()), ((1, (4, 1), 64), 1, 3, dict()),
])  # fmt: skip
def test_windows_of_many_channels(tmp_path, target, precision, image, filters, window, how):
    n, size, channels = image
    model, x = convolution(n, size, channels, filters, window, **how)
    check(tmp_path, model, x, target, precision, limit=2e-3 if precision == "fp16" else 2e-2)


STEMS = [
    # An image, filters, window, stride, pads.
    ((2, (16, 20), 3), 24, 7, 2, [3, 3, 3, 3]),
    ((1, (17, 22), 3), 8, 3, 2, [1, 1, 1, 1]),
    ((1, (15, 19), 3), 16, 3, 2, [0, 1, 1, 0]),
    ((1, (12, 13), 4), 16, 5, 2, [2, 1, 1, 2]),
    ((1, (11, 24), 2), 64, 5, 4, [0, 0, 0, 0]),
    ((1, (9, 10), 3), 16, 3, 1, [1, 1, 1, 1]),
]


@pytest.mark.parametrize("target, precision", [("sm_80", "fp16"), ("sm_90a", "fp16"), ("sm_90a", "fp32")])
@pytest.mark.parametrize("image, filters, window, stride, pads", STEMS)
def test_images_of_few_channels(tmp_path, target, precision, image, filters, window, stride, pads):
    """A row of the window is one run of memory, with zeros behind it where it ends between accesses."""
    model, x = convolution(*image, filters, window, stride=stride, pads=pads)
    check(tmp_path, model, x, target, precision, 2e-3 if precision == "fp16" else 1e-5)


def test_beside_a_window_nothing_is_read(tmp_path):
    """What a run has beyond the window's columns is not even multiplied by zero."""
    model, x = convolution(1, (16, 20), 3, 24, 7, stride=2)
    del model.graph.node[2]
    model.graph.node[2].input[0] = "c"
    x[0, 5, 9, 1] = np.inf
    ptx = check(tmp_path, model, x, "sm_90a")
    assert re.search(r"cp\.async\.c[ag]\.shared\.global \[[^,]*\], \[[^,]*\], 16, %r", ptx)


# Elements enough that each thread of the chip's 16 multiprocessors has eight.
@pytest.mark.parametrize(
    "size, channels, window, how, terms",
    [((30, 29), 64, 3, {}, 9), ((24, 25), 64, 7, {}, 7), ((49, 51), 96, 5, dict(stride=2), 5),
     ((26, 24), 64, 3, dict(dilation=3), 9), ((23, 31), 64, 17, {}, 17),
     ((31, 40), 48, 5, dict(pads=[0, 1, 3, 4]), 5)],
)  # fmt: skip
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_neighbours_of_a_window_share_loads(tmp_path, size, channels, window, how, terms, precision):
    """Of one channel a group: a thread has four neighbours, and reads what they have in common once."""
    model, x = convolution(1, size, channels, channels, window, groups=channels, **how)
    ptx = check(tmp_path, model, x, "sm_87", precision, 2e-3 if precision == "fp16" else 1e-6)
    assert ptx.count("ld.global") < 4 * terms


@pytest.mark.parametrize(
    "size, channels, window, how",
    [((14, 14), 96, 5, {}), ((7, 9), 320, 7, {}), ((15, 13), 40, 5, dict(stride=2)),
     ((9, 9), 64, 5, dict(dilation=2, pads=[0, 3, 1, 4]))],
)  # fmt: skip
@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
def test_rows_of_a_window_at_once(tmp_path, size, channels, window, how, precision):
    """Where threads have few elements, filters are loaded before the wait for the predecessor, and no
    row of the window waits for the one before it."""
    model, x = convolution(1, size, channels, channels, window, groups=channels, **how)
    limit = {"fp16": 2e-3, "bf16": 1e-2, "fp32": 1e-6}[precision]
    ptx = check(tmp_path, model, x, "sm_90a", precision, limit)
    (code,) = re.findall(r"\.entry conv\w*\((.*?)\n}", ptx, re.DOTALL)
    # Forty-nine terms of two words each would be too many registers.
    assert ("bra" in code) == (window == 7 and precision == "fp32")
    assert code.index("ld.global.nc") < code.index("griddepcontrol.wait")
