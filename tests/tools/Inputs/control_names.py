"""A model whose names hold what a terminal obeys, and two sizes that are no UTF-8."""

import sys

from onnx import TensorProto, helper

info = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
escape = "\x1b[31m"
nodes = [
    helper.make_node("MatMul", ["a", "b"], ["c"], name=f"node{escape}"),
    helper.make_node("Add", ["c", "d"], ["y"]),
]
inputs = [info("a", [4, f"m{escape}"]), info("b", [f"n{escape}\nerror: x", 5]), info("d", ["sQ1", 5])]
graph = helper.make_graph(nodes, "control", [*inputs, info("e", ["sQ2"])], [info("y", [4, 5])])
graph.node.append(helper.make_node("Neg", ["e"], ["z"]))
graph.output.append(info("z", ["sQ2"]))
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
data = model.SerializeToString().replace(b"Q1", b"\xfe\xfe").replace(b"Q2", b"\xff\xff")
open(sys.argv[1], "wb").write(data)
