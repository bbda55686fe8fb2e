"""What cases of constraints are made of: a model whose inputs name their sizes differently."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import harness
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
DTYPES = {FLOAT: np.float32, INT64: np.int64, BOOL: np.bool_}
RNG = np.random.RandomState(5)


@dataclass
class Case:
    """A model, shapes of its inputs that fit and do not, and the words of both."""

    nodes: list
    inputs: dict  # name -> dims, or (dims, type)
    reference: object  # the inputs' arrays -> the output's
    good: list  # of shapes, one an input
    bad: list  # of (shapes, what the message says)
    note: str
    weights: dict = field(default_factory=dict)
    extra: tuple = ()
    opset: int = 17


def node(op, inputs, name, **attributes):
    return helper.make_node(op, inputs, ["y"], name=name, **attributes)


def table(rows):
    return np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)


def dims_of(x, name="s"):
    return helper.make_node("Shape", [x], [name])


def build(case: Case, path: Path) -> dict:
    kinds = {
        name: dims if isinstance(dims, tuple) else (dims, FLOAT)
        for name, dims in case.inputs.items()
    }
    graph = helper.make_graph(
        case.nodes,
        "sizes",
        [helper.make_tensor_value_info(n, t, d) for n, (d, t) in kinds.items()],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in case.weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8
    )
    path.write_bytes(model.SerializeToString())
    return {name: kind for name, (_, kind) in kinds.items()}


def random_inputs(kinds: dict, shapes) -> dict:
    return {
        name: RNG.randint(0, 2 if kind == BOOL else 4, shape).astype(DTYPES[kind])
        for (name, kind), shape in zip(kinds.items(), shapes)
    }


def run(engine: Path, folder: Path, inputs: dict) -> harness.Result:
    folder.mkdir()
    arguments = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    return harness.invoke("run", engine, *arguments, "--output-dir", folder / "out")


def refused(tmp_path, case: Case) -> str:
    build(case, tmp_path / "m.onnx")
    result = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", tmp_path / "m.engine", "--target", "cpu",
        *case.extra,
    )  # fmt: skip
    assert result.kind in ("failed", "refused"), result.stderr
    assert not (tmp_path / "m.engine").exists()
    return result.stderr
