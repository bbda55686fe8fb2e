"""Tensors without an element in kernels for GPUs, interpreted."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

CASES = {
    "negated": "(float[16,0,7,1] x) => (float[16,0,7,1] y) { y = Neg (x) }",
    "spread": "(float[33,0,1] x) => (float[33,0,3] y) <float[3] w = {1, 2, 3}> { y = Add (x, w) }",
    "turned": "(float[5,0,9] x) => (float[9,0,5] y) { y = Transpose <perm = [2, 1, 0]> (x) }",
    "summed": "(float[40,0] x) => (float[40] y) <int64[1] a = {1}> { y = ReduceSum <keepdims = 0> (x, a) }",
    "rows": "(float[0,40] x) => (float[0,40] y) { y = Softmax (x) }",
    "product": "(float[17,0] x) => (float[17,8] y) <float[0,8] w = {}> { y = MatMul (x, w) }",
    "joined": "(float[4,0] x) => (float[4,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { y = Concat <axis = 1> (x, w) }",
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_no_element(tmp_path, name, target):
    model = parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g ' + CASES[name])
    onnx.save(model, tmp_path / "m.onnx")
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": np.zeros(shape, np.float32)}
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", target=target, dump=tmp_path / "dump")
    (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "run", device="simt", dump=tmp_path / "dump")
    (want,) = ReferenceEvaluator(model).run(None, feeds)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)
