"""Tensors without an element, on CPUs and in kernels for GPUs, interpreted."""

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
    "no columns": "(float[7,64] x, float[64,0] w) => (float[7,0] y) { y = MatMul (x, w) }",
    "no columns of weights": "(float[7,64] x) => (float[7,0] y) <float[64,0] w = {}> { y = MatMul (x, w) }",
    "no columns of few rows": "(float[2,64] x, float[0,64] w) => (float[2,0] y) { y = Gemm <transB = 1> (x, w) }",
    "no columns of a batch": "(float[3,7,64] x, float[3,64,0] w) => (float[3,7,0] y) { y = MatMul (x, w) }",
    "no columns of open rows": "(float[n,64] x, float[64,0] w) => (float[n,0] y) { y = MatMul (x, w) }",
    "no rows": "(float[0,64] x, float[64,7] w) => (float[0,7] y) { y = MatMul (x, w) }",
    "no filters": "(float[1,8,9,9] x, float[0,8,3,3] w) => (float[1,0,7,7] y) { y = Conv <kernel_shape = [3, 3]> (x, w) }",
    "no filters of points": "(float[1,8,9,9] x, float[0,8,1,1] w) => (float[1,0,9,9] y) { y = Conv (x, w) }",
    "no keys": """(float[2,7,64] x, float[2,64,0] k, float[2,0,64] v) => (float[2,7,64] y) {
        s = MatMul (x, k)  p = Softmax (s)  y = MatMul (p, v) }""",
    "no queries with a soft cap": """(float[2,3,0,16] q, float[2,3,4,16] k, float[2,3,4,8] v) => (float[2,3,0,8] y) {
        y = Attention <softcap = 2.0> (q, k, v) }""",
    "no keys with a soft cap": """(float[n,4,5,16] q, float[n,2,0,16] k, float[n,2,0,16] v, float[5,0] m) => (float[n,4,5,16] y) {
        y = Attention <softcap = 2.0> (q, k, v, m) }""",
    "no keys up to a row's own": """(float[2,q,32] q, float[2,0,32] k, float[2,0,32] v) => (float[2,q,32] y) {
        y = Attention <is_causal = 1, q_num_heads = 2, kv_num_heads = 2> (q, k, v) }""",
    "no columns of a window": "(float[1,0,9,9] x) => (float[1,0,4,4] y) { y = MaxPool <kernel_shape = [3,3], strides = [2,2]> (x) }",
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", *harness.cpu_targets()])
@pytest.mark.parametrize("name", CASES)
def test_no_element(tmp_path, name, target):
    model = parser.parse_model('<ir_version: 11, opset_import: ["" : 23]> g ' + CASES[name])
    onnx.save(model, tmp_path / "m.onnx")
    device, dump = ("simt", tmp_path / "dump") if target.startswith("sm_") else ("cpu", None)
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", target=target, dump=dump)

    def shape_of(value):
        return [5 if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]

    feeds = {i.name: np.zeros(shape_of(i), np.float32) for i in model.graph.input}
    (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "run", device=device, dump=dump)
    assert list(got.shape) == shape_of(model.graph.output[0])
    if got.size:
        attends = any(n.op_type == "Attention" for n in model.graph.node)  # whose reference fails
        want = 0 if attends else ReferenceEvaluator(model).run(None, feeds)[0]
        np.testing.assert_array_equal(got, want)
