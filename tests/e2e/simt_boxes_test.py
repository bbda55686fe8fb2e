"""Kernels whose operands the copy engine brings, run thread by thread by charonia-simt."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from simt_conv_test import check, convolution
from simt_orders import in_orders

ORDERS = [(0, "early"), (1, "late"), (2, "seeded")]


def programs(dump) -> str:
    return "".join(p.read_text() for p in sorted(dump.glob("*-cuda-code/*/*-simt.mlir")))


def product(rows, n, k, transposed):
    """x W + b with W of the other order where it is `transposed`; and W, b."""
    rng = np.random.default_rng(n + k)
    w = (rng.standard_normal((n, k) if transposed else (k, n)) * k**-0.5).astype(np.float32)
    b = rng.standard_normal(n).astype(np.float32)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=int(transposed))], "product",
        [info("x", TensorProto.FLOAT, [rows, k])], [info("y", TensorProto.FLOAT, [rows, n])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), w, b


@pytest.mark.parametrize("precision", ["fp16", "bf16", "tf32"])
@pytest.mark.parametrize(
    "rows, n, k, transposed",
    [(1024, 512, 320, False), (1031, 520, 456, True), (700, 192, 2056, True), (129, 3080, 776, False),
     (64, 1024, 4608, True), (197, 1600, 1032, False), (1225, 330, 832, True)],
)  # fmt: skip
def test_products(tmp_path, rows, n, k, transposed, precision):
    """Sizes that are no multiple of a tile, in rows, columns and terms; parts of long sums."""
    model, w, b = product(rows, n, k, transposed)
    path, engine, dump = (tmp_path / name for name in ("m.onnx", "m.engine", "dump"))
    onnx.save(model, path)
    harness.compile_model(path, engine, target="sm_90a", precision=precision, dump=dump)
    if precision == "tf32" and not transposed:
        assert "warpgroup_dot" not in programs(dump)  # which wants neighbouring terms
        return
    assert "simt.copy_box" in programs(dump)
    x = np.random.default_rng(1).standard_normal((rows, k)).astype(np.float32)
    want = x.astype(np.float64) @ (w.T if transposed else w) + b
    # Programs of other types differ in their instructions alone, not in what waits for what.
    orders = ORDERS if precision == "fp16" else [ORDERS[k % len(ORDERS)]]
    for got in in_orders(engine, {"x": x}, tmp_path, dump, orders):
        assert np.abs(got - want).max() <= 8e-3 * np.abs(want).max()


@pytest.mark.parametrize(
    "rows, n, k, transposed", [(4352, 1104, 128, True), (4300, 1104, 320, False), (5000, 1096, 456, True)]
)
def test_instances_that_stay(tmp_path, rows, n, k, transposed):
    """Several tiles each, of fewer terms than a ring has slots and of more; what ends a tile beside the next copies."""
    model, w, b = product(rows, n, k, transposed)
    graph, half = model.graph, TensorProto.FLOAT16
    graph.node[0].output[0] = "product"
    graph.node.extend(
        [helper.make_node("Cast", ["r"], ["wide"], to=TensorProto.FLOAT), helper.make_node("Relu", ["product"], ["relu"]),
         helper.make_node("Add", ["wide", "relu"], ["sum"]), helper.make_node("Cast", ["sum"], ["y"], to=half)]
    )  # fmt: skip
    graph.input.append(helper.make_tensor_value_info("r", half, [rows, n]))
    graph.output[0].type.tensor_type.elem_type = half
    path, engine, dump = (tmp_path / name for name in ("m.onnx", "m.engine", "dump"))
    onnx.save(model, path)
    harness.compile_model(path, engine, target="sm_90a", precision="fp16", dump=dump)
    text = programs(dump)
    assert "tile.grid = affine_map<() -> (132)>" in text and "simt.tiles" in text and "simt.copy_box" in text
    rng = np.random.default_rng(1)
    x, r = rng.standard_normal((rows, k)).astype(np.float32), rng.standard_normal((rows, n)).astype(np.float16)
    want = np.maximum(x.astype(np.float64) @ (w.T if transposed else w) + b, 0) + r
    for got in in_orders(engine, {"x": x, "r": r}, tmp_path, dump, ORDERS[k % 3 :]):
        assert np.abs(got - want).max() <= 3e-3 * np.abs(want).max()


@pytest.mark.parametrize("before, after", [(0, 59), (3, 0)])
def test_padded_rows(tmp_path, before, after):
    """Rows of a tile outside of what is multiplied that are results nevertheless: of zeros, then of the bias."""
    rows, n, k = 197, 320, 1024
    model, w, b = product(rows, n, k, True)
    shape = model.graph.output[0].type.tensor_type.shape.dim[0]
    shape.dim_value = rows + before + after
    pads = numpy_helper.from_array(np.array([before, 0, after, 0]), "pads")
    model.graph.initializer.append(pads)
    model.graph.node.insert(0, helper.make_node("Pad", ["x", "pads"], ["padded"]))
    model.graph.node[1].input[0] = "padded"
    path, engine, dump = (tmp_path / name for name in ("m.onnx", "m.engine", "dump"))
    onnx.save(model, path)
    harness.compile_model(path, engine, target="sm_90a", precision="fp16", dump=dump)
    x = np.random.default_rng(1).standard_normal((rows, k)).astype(np.float32)
    want = np.pad(x.astype(np.float64), ((before, after), (0, 0))) @ w.T + b
    for got in in_orders(engine, {"x": x}, tmp_path, dump, ORDERS):
        assert np.abs(got - want).max() <= 3e-3 * np.abs(want).max()


def test_open_rows(tmp_path):
    """A tensor map has the sizes that are bound."""
    model, w, b = product("rows", 520, 328, True)
    path, engine, dump = (tmp_path / name for name in ("m.onnx", "m.engine", "dump"))
    onnx.save(model, path)
    harness.compile_model(
        path, engine, target="sm_90a", precision="fp16", shapes={"x": ["1..1024..2000", 328]}, dump=dump
    )
    assert "simt.copy_box" in programs(dump)
    for rows in (1, 63, 129, 1100):
        x = np.random.default_rng(rows).standard_normal((rows, 328)).astype(np.float32)
        want = x.astype(np.float64) @ w.T + b
        (got,) = harness.run_engine(
            engine, {"x": x}, ["y"], tmp_path / "run", device="simt", dump=dump, extra=["--copies", "seeded"]
        )
        assert np.abs(got - want).max() <= 3e-3 * np.abs(want).max()


@pytest.mark.parametrize(
    "image, filters, window, how",
    [
        ((12, (17, 15), 64), 128, 3, {}), ((8, (30, 27), 64), 192, 3, dict(stride=2)),
        ((4, (41, 43), 64), 320, 5, dict(stride=2, pads=[1, 2, 3, 0])), ((6, (19, 23), 64), 192, 3, dict(dilation=2)),
        ((4, (28, 28), 256), 512, 1, dict(stride=2)), ((1, (14, 14), 256), 256, 3, {}),
        ((2, (33, 31), 64), 64, 7, dict(pads=[3, 3, 0, 5])), ((3, (33, 31), 64), 128, 3, dict(pads=[2, 1, 0, 2])),
        ((1, (37, 41), 64), 320, 3, {}), ((5, (33, 29), 128), 320, 3, dict(stride=2)),
    ],
)  # fmt: skip
def test_windows(tmp_path, image, filters, window, how):
    """Columns of pixels: several images in a tile, strides, dilation, uneven padding, one image."""
    n, size, channels = image
    model, x = convolution(n, size, channels, filters, window, **how)
    check(tmp_path, model, x, "sm_90a")
    assert "simt.copy_box" in programs(tmp_path / "dump")
