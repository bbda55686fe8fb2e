"""Rows that are longer than a GPU's tiles, run thread by thread by charonia-simt."""

from __future__ import annotations

import re

import cliffs_test
import harness
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from simt_orders import ORDERS, in_orders
from simt_test import LIMITS


@pytest.mark.parametrize("name", ["96-8-14", "60-6-15-open", "softmax"])
def test_rows_that_tiles_overhang(tmp_path, name):
    """What a tile has past the end of its row is thrown away."""
    m, output = cliffs_test.overhanging(name)
    proto, path = m.proto(output), tmp_path / "model.onnx"
    onnx.save(proto, path)
    engine, dump = tmp_path / "model.engine", tmp_path / "dump"
    harness.compile_model(path, engine, target="sm_80", dump=dump)
    value = harness.run_engine(engine, m.feeds, [output], tmp_path / "run", device="simt", dump=dump)[0]
    want = cliffs_test.in_float64(proto, m.feeds)
    assert np.abs(value - want).max() <= 1e-5 * np.abs(want).max()


def test_long_rows_of_doubles(tmp_path):
    """What a lane copies itself where a row may end is words of 64 bits."""
    x = np.random.default_rng(1).standard_normal((3, 9001)) * 3
    text = '<ir_version: 9, opset_import: ["" : 17]>\nagraph (double[3,9001] x) => (double[3,9001] y) { y = Softmax(x) }'
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine, target="sm_80", dump=dump)
    (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run", device="simt", dump=dump)
    want = np.exp(x - x.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=1e-12)


LONG_ROWS = {
    "softmax": "x) => (FLOAT[R,N] y) { y = Softmax(x) }",
    "log": "x) => (FLOAT[R,N] y) { y = LogSoftmax(x) }",
    "mask": "x, FLOAT[N] m) => (FLOAT[R,N] y) { s = Add(x, m) y = Softmax(s) }",
    "norm": """x, FLOAT[R,N] z, FLOAT[N] g, FLOAT[N] b) => (FLOAT[R,N] y)
               { s = Add(x, z) y = LayerNormalization(s, g, b) }""",
    "max": "x) => (FLOAT[R,1] y) { y = ReduceMax <axes = [1]> (x) }",
}


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("columns", [8193, 20004, 30007])
@pytest.mark.parametrize("name", LONG_ROWS)
def test_long_rows(tmp_path, name, columns, precision):
    """Rows that begin anywhere are read by vectors, once; their ends element by element."""
    rows = 5
    text = LONG_ROWS[name].replace("FLOAT", "float").replace("R,", f"{rows},").replace("N]", f"{columns}]")
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 17]>\nagraph (float[{rows},{columns}] {text}'
    )
    rng = np.random.default_rng(columns)
    feeds = {
        i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in model.graph.input
    }
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(model, path)
    harness.compile_model(path, engine, target="sm_90a", precision=precision, dump=dump)
    if name == "softmax":
        code = "".join(p.read_text() for p in dump.glob("*-cuda-code/*/*-thread.mlir"))
        assert "nvvm.cp.async.shared.global" in code
        assert re.search(r"st\.global\.v4\.b32|llvm.store .*vector<[48]xf", code)
    (want,) = ReferenceEvaluator(model).run(None, feeds)
    for got in in_orders(engine, feeds, tmp_path, dump, ORDERS[:2]):
        assert harness.scaled_error(want, got.astype(np.float32)) <= LIMITS[precision]


@pytest.mark.parametrize("precision, limit", [("fp32", 1e-5), ("fp16", 1e-3)])
@pytest.mark.parametrize("columns", [8195, 12288, 20005])
def test_moments_of_long_rows(tmp_path, columns, precision, limit):
    """Mean and variance come from one walk, as exact where the mean is large; scale and shift
    begin elsewhere than the row."""
    rows, rng = 34, np.random.default_rng(columns)
    text = LONG_ROWS["norm"].replace("FLOAT", "float").replace("R,", f"{rows},").replace("N]", f"{columns}]")
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 17]>\nagraph (float[{rows},{columns}] {text}'
    )
    halves = lambda *shape: rng.standard_normal(shape).astype(np.float16).astype(np.float32)
    feeds = {"x": halves(rows, columns) * 4, "z": halves(rows, columns), "g": halves(columns), "b": halves(columns)}
    feeds["x"] += np.where(np.arange(rows) % 2, 1000, 0).astype(np.float32)[:, None]
    feeds["x"] = feeds["x"].astype(np.float16).astype(np.float32)
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(model, path)
    harness.compile_model(path, engine, target="sm_90a", precision=precision, dump=dump)
    (program,) = dump.glob("*-cuda-code/*/*0-tile.mlir")
    assert program.read_text().count("scf.for") == 2
    (got,) = harness.run_engine(engine, feeds, ["y"], tmp_path / "run", device="simt", dump=dump)
    s = feeds["x"].astype(np.float64) + feeds["z"]
    want = (s - s.mean(1, keepdims=True)) / np.sqrt(s.var(1, keepdims=True) + 1e-5) * feeds["g"] + feeds["b"]
    assert harness.scaled_error(want, got.astype(np.float64)) <= limit


@pytest.mark.parametrize("columns", [800, 8195, 20005])
def test_softmax_of_what_is_not_finite(tmp_path, columns):
    """As short rows: -inf has no share, rows with NaN, inf or nothing but -inf are NaN."""
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((6, columns)).astype(np.float32)
    x[0, : columns // 2] = -np.inf
    x[1, 3] = x[2, -1] = np.inf
    x[3, columns - 5] = np.nan
    x[4] = -np.inf
    text = f'<ir_version: 9, opset_import: ["" : 17]>\nagraph (float[6,{columns}] x) => (float[6,{columns}] y) {{ y = Softmax(x) }}'
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine, target="sm_90a", dump=dump)
    (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run", device="simt", dump=dump)
    with np.errstate(invalid="ignore"):
        want = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        want /= want.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
