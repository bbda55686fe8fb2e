"""Models of steps of an open number, built by hand, beside ONNX Runtime."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def info(name, *shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, list(shape) if shape != (None,) else None)


def body(nodes, inputs, outputs):
    """Of floats; other values are given as `info`."""
    as_info = [[i if isinstance(i, onnx.ValueInfoProto) else info(*i) for i in part] for part in (inputs, outputs)]
    return helper.make_graph(nodes, "step", *as_info)


def check(folder, nodes, inputs, results, weights=(), sizes=(1, 2, 7), options=()):
    """`inputs` are names and shapes, in which "t" is the number of steps."""
    held = [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(weights).items()]
    outputs = [r if isinstance(r, onnx.ValueInfoProto) else info(r, None) for r in results]
    graph = helper.make_graph(nodes, "steps", [info(*i) for i in inputs], outputs, held)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, folder / "m.onnx")
    harness.compile_model(folder / "m.onnx", folder / "m.engine", *options)
    names = [o.name for o in outputs]
    rng = np.random.default_rng(3)
    for size in sizes:
        shapes = {name: [size if d == "t" else d for d in shape] for name, *shape in inputs}
        feeds = {name: np.asarray(rng.standard_normal(shape) / 2, np.float32) for name, shape in shapes.items()}
        values = harness.run_engine(folder / "m.engine", feeds, names, folder / "run")
        session = onnxruntime.InferenceSession(str(folder / "m.onnx"), providers=["CPUExecutionProvider"])
        wanted = session.run(names, feeds)
        for name, value, want in zip(names, values, wanted):
            assert value.shape == want.shape and value.dtype == want.dtype
            np.testing.assert_allclose(value, want, 1e-5, 1e-6, err_msg=f"{name} of {size} steps")
