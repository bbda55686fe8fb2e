"""Products of two inputs whose second one a CPU packs on the way, at known and open sizes, beside numpy."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

RANGES = {"a": ((1, 64, 200), (1, 1024, 1100)), "b": ((1, 1024, 1100), (1, 1024, 1100))}


def model(path, a, b, node_type=TensorProto.FLOAT, before=None):
    nodes = [helper.make_node(before, ["b"], ["c"])] if before else []
    nodes.append(helper.make_node("MatMul", ["a", "c" if before else "b"], ["y"]))
    inputs = [helper.make_tensor_value_info(n, node_type, s) for n, s in (("a", a), ("b", b))]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", node_type, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def is_packed(engine) -> bool:
    return "transpose" in harness.invoke("inspect", "--kernels", engine).stdout


def check(engine, a, b, tmp_path, limit=2e-6, before=lambda b: b):
    got = harness.run_engine(engine, {"a": a, "b": b}, ["y"], tmp_path)[0].astype(np.float64)
    want = a.astype(np.float64) @ before(b.astype(np.float64))
    assert got.shape == want.shape
    if want.size:
        assert np.abs(got - want).max() <= limit * max(np.abs(want).max(), 1)


@pytest.mark.parametrize("precision, kind, limit", [("fp32", np.float32, 2e-6), ("fp16", np.float16, 2e-3)])
@pytest.mark.parametrize("sizes", [(64, 1024, 1024), (33, 2100, 640), (3, 35, 1027, 512)])
def test_known_sizes(tmp_path, sizes, precision, kind, limit):
    *rows, k, n = sizes
    rng = np.random.default_rng(1)
    a = rng.standard_normal((*rows, k)).astype(kind)
    b = rng.standard_normal((*rows[:-1], k, n)).astype(kind)
    model(tmp_path / "m.onnx", a.shape, b.shape, helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", precision=precision)
    assert is_packed(tmp_path / "m.engine")
    check(tmp_path / "m.engine", a, b, tmp_path, limit)


@pytest.mark.parametrize("before", [None, "Abs"])
def test_open_sizes(tmp_path, before):
    model(tmp_path / "m.onnx", ("m", "k"), ("k", "n"), before=before)
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", shapes=RANGES)
    assert is_packed(tmp_path / "m.engine")
    rng = np.random.default_rng(2)
    for m, k, n in [(1, 1, 1), (64, 1024, 1024), (7, 61, 31), (32, 64, 32), (33, 1000, 33), (200, 17, 1100)]:
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        check(tmp_path / "m.engine", a, b, tmp_path, before=np.abs if before else lambda b: b)


@pytest.mark.parametrize("sizes", [(64, 1024, 1000), (16, 1024, 1024), (64, 64, 1024)])
def test_others_are_read_where_they_lie(tmp_path, sizes):
    m, k, n = sizes
    model(tmp_path / "m.onnx", (m, k), (k, n))
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    assert not is_packed(tmp_path / "m.engine")
