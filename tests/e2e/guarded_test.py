"""Inputs and outputs that end where memory ends, of sizes at which what is computed of them is empty or short."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

TAIL = "t = Slice (x, from, to, axis)"
CONSTANTS = (
    "int64[1] from = {4}, int64[1] to = {2147483647}, int64[1] axis = {1}, int64[2] both = {0, 1}, int64[1] first = {0}, int64 zero = {0}, "
    "int64[1] flat = {-1}, int64[2] times = {2, 3}, int64[3] spread = {3, 1, 1}, int64[3] all = {0, 1, 2}, float nothing = {0}"
)
CASES = {
    "sum": "y = ReduceSum (t, both)",
    "max": "y = ReduceMax (t, both)",
    "length": "y = ReduceL2 (t, both)",
    "rows": "y = ReduceSum (t, axis)",
    "columns": "y = ReduceSum (t, first)",
    "flat": "r = Reshape (t, flat) y = ReduceSum (r, first)",
    "softmax": "r = Reshape (t, flat) y = Softmax <axis = 0> (r)",
    "softmax_rows": "y = Softmax (t)",
    "running": "r = Reshape (t, flat) y = CumSum (r, zero)",
    "tiled": "r = Tile (t, times) y = ReduceSum (r, both)",
    "tiled_rows": "r = Tile (t, times) y = ReduceSum (r, axis)",
    "spread": "u = Unsqueeze (t, first) r = Expand (u, spread) y = ReduceSum (r, all)",
    "chosen": "g = Greater (t, nothing) r = Where (g, t, nothing) y = ReduceSum (r, both)",
    "turned": "u = Transpose <perm = [1, 0]> (t) r = Reshape (u, flat) y = ReduceSum (r, first)",
}
SIZES = [(1, 4), (4, 4), (4, 5), (2, 3), (7, 4), (7, 7), (8, 8)]


def guarded_run(folder, engine, target, feeds):
    arguments = []
    for name, value in feeds.items():
        value.tofile(folder / name)
        arguments += [name, value.dtype.name, "x".join(map(str, value.shape)) or "-", folder / name]
    result = harness.invoke(engine, target, folder, *arguments, program="tests/guarded_run")
    assert result.kind == "ok", f"{[v.shape for v in feeds.values()]}: {result.message}"
    shapes = dict(line.split(" ", 1) if " " in line else (line, "") for line in result.stdout.splitlines())
    return {n: np.fromfile(folder / n, np.float32).reshape([int(e) for e in s.split()]) for n, s in shapes.items()}


@pytest.mark.parametrize("target", harness.cpu_targets())
@pytest.mark.parametrize("range_", [None, ((1, 8, 64), (1, 8, 512)), ((1, 4, 8), (1, 6, 8))], ids=["any", "long", "short"])
@pytest.mark.parametrize("start", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_empty_part(tmp_path, name, start, range_, target):
    """Of rows that a slice may leave nothing of, no element is read."""
    constants = CONSTANTS.replace("from = {4}", f"from = {{{start}}}")
    text = f'<ir_version: 10, opset_import: ["" : 18]> g (float[s,n] x) => (float y) <{constants}> {{ {TAIL} {CASES[name]} }}'
    model = parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    harness.compile_model(tmp_path / "m.onnx", engine, target=target, shapes={"x": range_} if range_ else None)
    rng = np.random.default_rng(start)
    for rows, columns in [*SIZES, (8, start), (3, start)]:
        if not range_:  # a slice of what is there
            columns = max(columns, start)
        feeds = {"x": rng.standard_normal((rows, columns)).astype(np.float32)}
        got = guarded_run(tmp_path, engine, target, feeds)["y"]
        (want,) = ReferenceEvaluator(model).run(None, feeds)
        np.testing.assert_allclose(got, want, 1e-5, 1e-5, err_msg=f"{rows} x {columns}")


@pytest.mark.parametrize("target", harness.cpu_targets())
@pytest.mark.parametrize("terms", [4, 31, 64, 129])
@pytest.mark.parametrize("left, right", [("0,K", "K"), ("0,K", "K,1"), ("K", "0,K,1"), ("1,K", "0,K,1"), ("3,0,K", "K"), ("0,K", "K,3")])
def test_product_without_rows(tmp_path, left, right, terms, target):
    """Rows that are none are no vector."""
    shapes = {name: [int(e) for e in text.replace("K", str(terms)).split(",")] for name, text in (("x", left), ("w", right))}
    infos = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in shapes.items()]
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["p"]), onnx.helper.make_node("Sigmoid", ["p"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", infos, [result])
    onnx.save(onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 18)]), tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", target=target)
    feeds = {n: np.ones(s, np.float32) for n, s in shapes.items()}
    got = guarded_run(tmp_path, tmp_path / "m.engine", target, feeds)["y"]
    assert got.shape == np.matmul(feeds["x"], feeds["w"]).shape


ENLARGED = {
    "floor": 'mode = "nearest", nearest_mode = "floor"',
    "ceil": 'mode = "nearest", nearest_mode = "ceil", coordinate_transformation_mode = "align_corners"',
    "nearest": 'mode = "nearest"',
    "linear": 'mode = "linear"',
    "corners": 'mode = "linear", coordinate_transformation_mode = "align_corners"',
    "cubic": 'mode = "cubic"',
}


@pytest.mark.parametrize("target", harness.cpu_targets())
@pytest.mark.parametrize("start, end", [(0, -2), (2, 2147483647)])
@pytest.mark.parametrize("mode", ENLARGED)
def test_enlarged_part(tmp_path, mode, start, end, target):
    """Rows of an image of which nothing may be left, enlarged, beside others: what is not there has no neighbour."""
    factor = 2 if mode == "linear" else 3
    constants = f"int64[1] from = {{{start}}}, int64[1] to = {{{end}}}, int64[1] axis = {{1}}, float[2] scales = {{1, {factor}}}"
    tail = f"t = Slice (x, from, to, axis) u = Resize <{ENLARGED[mode]}> (t, , scales) v = Resize <{ENLARGED[mode]}> (u, , scales)"
    text = f'<ir_version: 10, opset_import: ["" : 19]> g (float[s,n] x, float[s,m] z) => (float y) <{constants}> {{ {tail} y = Concat <axis = 1> (z, v, z) }}'
    model = parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", target=target)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(3)
    for rows, columns, others in [(8, 2, 2), (1, 2, 40), (32, 2, 8), (8, 3, 2), (3, 18, 5), (2, 130, 1)]:
        feeds = {"x": rng.standard_normal((rows, columns)).astype(np.float32), "z": rng.standard_normal((rows, others)).astype(np.float32)}
        got = guarded_run(tmp_path, tmp_path / "m.engine", target, feeds)["y"]
        want = session.run(None, feeds)[0] if columns > 2 else np.concatenate([feeds["z"]] * 2, 1)
        np.testing.assert_allclose(got, want, 1e-4, 1e-4, err_msg=f"{rows} x {columns}, {others}")
