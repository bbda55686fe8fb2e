"""Products of an open number of rows on CPUs: one row, some rows, whole tiles and what is left behind them.

One engine for all sizes, values against float64 (bytes: against ONNX Runtime), and the compiler's own count of the work of
one row.
"""

from __future__ import annotations

import json

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROWS = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 17, 24, 25, 61, 197]


def save(path, nodes, shape, weights, outputs=("y",)):
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(v, k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "rows", infos, made, constants)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


def in_float64(path, feeds):
    """The model's own numbers, computed in float64."""
    model = onnx.load(path)
    for i, w in enumerate(model.graph.initializer):
        value = numpy_helper.to_array(w)
        if value.dtype == np.float32:
            model.graph.initializer[i].CopyFrom(numpy_helper.from_array(value.astype(np.float64), w.name))
    for value in list(model.graph.input) + list(model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return ReferenceEvaluator(model).run(None, {k: v.astype(np.float64) for k, v in feeds.items()})


def check(folder, path, sizes, shape_of, tolerance=1e-5, precision=None, peer=in_float64):
    rng = np.random.default_rng(len(sizes))
    for target in harness.cpu_targets():
        engine = folder / f"{target}.engine"
        harness.compile_model(path, engine, target=target, precision=precision)
        for size in sizes:
            feeds = {"x": rng.standard_normal(shape_of(size)).astype(np.float32)}
            want = peer(path, feeds)
            names = [o.name for o in onnx.load(path).graph.output]
            for got, expected in zip(harness.run_engine(engine, feeds, names, folder / "run"), want, strict=True):
                assert got.shape == expected.shape
                bound = tolerance * max(np.abs(expected).max(initial=0), 1)
                np.testing.assert_allclose(got, expected, 0, bound, err_msg=f"{target}, {size}")
    return engine


def linear(folder, terms, columns, lead=("n",)):
    rng = np.random.default_rng(terms)
    weights = {
        "w": (rng.standard_normal((terms, columns)) / np.sqrt(terms)).astype(np.float32),
        "b": rng.standard_normal(columns).astype(np.float32),
    }
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["s"])]
    nodes.append(helper.make_node("Sigmoid", ["s"], ["y"]))
    return save(folder / "m.onnx", nodes, [*lead, terms], weights)


@pytest.mark.parametrize("terms, columns", [(64, 96), (300, 77), (7, 33), (129, 2), (1, 40)])
def test_linear(tmp_path, terms, columns):
    check(tmp_path, linear(tmp_path, terms, columns), ROWS, lambda n: (n, terms))


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_linear_of_half_precision(tmp_path, precision):
    path = linear(tmp_path, 64, 80)
    check(tmp_path, path, [1, 3, 12, 29], lambda n: (n, 64), 2e-2, precision)


def test_rows_of_two_open_dimensions(tmp_path):
    path = linear(tmp_path, 40, 48, lead=("batch", "length"))
    sizes = [(1, 1), (1, 5), (3, 1), (2, 7), (5, 5), (1, 64), (13, 13)]
    check(tmp_path, path, sizes, lambda size: (*size, 40))


def test_rows_of_a_batch_of_images(tmp_path):
    """Rows are batch by height by width, and those of an image are no whole number of tiles."""
    rng = np.random.default_rng(5)
    weights = {"w": (rng.standard_normal((40, 8, 3, 3)) / 9).astype(np.float32), "b": rng.standard_normal(40).astype(np.float32)}
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1] * 4)
    path = save(tmp_path / "m.onnx", [node], ["batch", 8, "height", "width"], weights)
    sizes = [(1, 1, 1), (2, 1, 1), (1, 3, 5), (3, 2, 2), (1, 7, 13), (2, 9, 9)]
    check(tmp_path, path, sizes, lambda s: (s[0], 8, s[1], s[2]))


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("window, pads, groups", [([1], [1, 1], 1), ([1], [2, 0], 8), ([1, 3], [1, 2, 2, 0], 1), ([1, 1], [1, 0, 0, 2], 4)])
def test_windows_of_one_element_beside_padding(tmp_path, window, pads, groups, is_open):
    """A place of the padding is zero, also where it is the only row of a tile and the window has one element."""
    rng = np.random.default_rng(len(window))
    filters = 3 if groups == 1 else 16
    weights = {"w": rng.standard_normal((filters, 64 // groups, *window)).astype(np.float32)}
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=pads, group=groups)
    sizes = [(1, 7), (1, 1), (1, 10), (1, 11), (3, 7), (2, 24)]

    def shape_of(size):
        return (size[0], 64, *[size[1]] * len(window))

    if is_open:
        path = save(tmp_path / "m.onnx", [node], ["n", 64, *["h", "w"][: len(window)]], weights)
        check(tmp_path, path, sizes, shape_of)
        return
    for size in sizes:
        path = save(tmp_path / "m.onnx", [node], shape_of(size), weights)
        check(tmp_path, path, [size], shape_of)


def test_two_results(tmp_path):
    """What else the kernel writes follows from the rows of the first result."""
    rng = np.random.default_rng(7)
    weights = {"w": (rng.standard_normal((48, 64)) / 7).astype(np.float32)}
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["y"]), node("Tanh", ["p"], ["z"])]
    path = save(tmp_path / "m.onnx", nodes, ["n", 48], weights, ("y", "z"))
    check(tmp_path, path, [1, 2, 5, 12, 30], lambda n: (n, 48))


COLUMNS = [1, 2, 7, 15, 16, 17, 33, 50]


@pytest.mark.parametrize("rows, terms", [(77, 300), (5, 64), (256, 129), (1, 40), (13, 7), (24, 1100)])
@pytest.mark.parametrize("turned", [False, True])
def test_columns(tmp_path, rows, terms, turned):
    """A single one of an open number of columns has its terms as lanes, however the columns lie."""
    rng = np.random.default_rng(terms)
    weights = {
        "w": (rng.standard_normal((rows, terms)) / np.sqrt(terms)).astype(np.float32),
        "b": rng.standard_normal((rows, 1)).astype(np.float32),
    }
    node = helper.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0])] if turned else []
    nodes += [node("MatMul", ["w", "t" if turned else "x"], ["p"]), node("Add", ["p", "b"], ["s"]), node("Sigmoid", ["s"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, ["n", terms] if turned else [terms, "n"], weights)
    check(tmp_path, path, COLUMNS, lambda n: (n, terms) if turned else (terms, n))


@pytest.mark.parametrize("batch", ["b", 3])
def test_columns_beside_what_else_is_open(tmp_path, batch):
    """Rows, terms and columns of one size each; the one column's product is scaled by a row of its own."""
    node = helper.make_node
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["x", "t"], ["p"]),
        node("MatMul", ["t", "x"], ["q"]),
        node("ReduceMax", ["p"], ["m"], keepdims=1),
        node("Mul", ["q", "m"], ["y"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, [batch, "m", "k"], {})
    sizes = [(1, 1), (1, 64), (64, 1), (13, 1), (1, 13), (33, 70), (5, 17)]
    check(tmp_path, path, sizes, lambda s: (3, *s), 1e-4)


def test_bytes(tmp_path):
    """Products of bytes take their terms by fours, of a single row too."""
    rng = np.random.default_rng(9)
    weights = {
        "w": rng.integers(-100, 100, (64, 48), np.int8),
        "scale": np.array(0.02, np.float32),
        "zero": np.array(3, np.uint8),
        "side": np.array(0.01, np.float32),
        "none": np.array(0, np.int8),
    }
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("DequantizeLinear", ["w", "side", "none"], ["v"]),
        node("MatMul", ["d", "v"], ["y"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, ["n", 64], weights)

    def peer(path, feeds):
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)

    check(tmp_path, path, [1, 2, 7, 12, 31], lambda n: (n, 64), 1e-4, peer=peer)


def test_work_of_one_row(tmp_path):
    """At the default optimum of one row a kernel does the work of one row."""
    engine = check(tmp_path, linear(tmp_path, 256, 256), [1], lambda n: (n, 256))
    report = json.loads(harness.invoke("inspect", engine, "--json").stdout)
    for variant in report["programs"][0]["variants"]:
        (kernel,) = variant["kernels"]
        assert kernel["operations"] < 1.2 * kernel["needed_operations"], kernel


@pytest.mark.parametrize("optimum", [4, 5, 7, 8, 13, 15])
def test_fewer_rows_than_lanes_are_tuned(tmp_path, optimum):
    """Doubles whose rows are lanes: what is left is no longer than a tile (a schedule said otherwise)."""
    rng = np.random.default_rng(optimum)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["t", "w"], ["p"]),
        helper.make_node("Transpose", ["p"], ["y"], perm=[1, 0]),
    ]
    weight = rng.standard_normal((3, 16))
    infos = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name, shape in (("x", [3, "n"]), ("y", None))]
    graph = helper.make_graph(nodes, "lanes", infos[:1], infos[1:], [numpy_helper.from_array(weight, "w")])
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    for target in harness.cpu_targets():
        options = ["--target", target, "--shape", f"x=3x1..{optimum}..1000", "--tune=1", "--no-cache"]
        result = harness.invoke("compile", path, "-o", engine, *options)
        assert result.kind == "ok", result
        for size in (1, optimum, optimum + 1, 37):
            x = rng.standard_normal((3, size))
            (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run")
            np.testing.assert_allclose(got, weight.T @ x, 0, 1e-13, err_msg=f"{target}, {size}")
