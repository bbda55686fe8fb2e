"""x - "x=a" with a file "a=b.npy", which reads as "x=a" and "b.npy"; entries for --batch."""

import json
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

folder = Path(sys.argv[1])
info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
graph = helper.make_graph(
    [helper.make_node("Sub", ["x", "x=a"], ["y"])], "equals", [info("x"), info("x=a")], [info("y")]
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
(folder / "equals.onnx").write_bytes(model.SerializeToString())
np.save(folder / "a=b.npy", np.array([1], np.float32))
np.save(folder / "b.npy", np.array([2], np.float32))


def entry(name: str, inputs: object) -> None:
    what = {"engine": str(folder / "equals.engine"), "inputs": inputs, "output_dir": "equals"}
    (folder / name).write_text(json.dumps([what]))


entry("equals.json", {"x": "a=b.npy", "x=a": "b.npy"})
entry("number.json", {"x": 1})
entry("list-inputs.json", ["x"])
