"""A model whose names are not UTF-8, and of which two would go to one file."""

import sys

from onnx import TensorProto, helper

info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])
# Each output has values of its own; the marks stand for bytes that Python refuses.
nodes = [
    helper.make_node("Neg", ["iQ1"], ["a/b"]),
    helper.make_node("Abs", ["iQ1"], ["a_b"]),
    helper.make_node("Exp", ["iQ1"], ["oQ2"]),
    helper.make_node("Sin", ["iQ1"], ["oQ1"]),
]
graph = helper.make_graph(
    nodes, "odd", [info("iQ1")], [info(name) for name in ("a/b", "a_b", "oQ2", "oQ1")]
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
data = model.SerializeToString().replace(b"Q1", b"\xfe\xfe").replace(b"Q2", b"\xff\xff")
open(sys.argv[1], "wb").write(data)
