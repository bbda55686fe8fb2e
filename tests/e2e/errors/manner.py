"""Models that are wrong, and how the command has to answer bad calls.

Every case checks the exit status, that no signal or assertion ended the program,
what the message names, and that no file is left behind.
"""

from __future__ import annotations

import re
from pathlib import Path

import harness
import numpy as np
import onnx
from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
DIGITS = harness.ROOT / "models/digits/digits.onnx"


def info(name, dims, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def weights(name, *dims):
    values = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    return onnx.numpy_helper.from_array(values, name)


def make(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
    graph = helper.make_graph(nodes, "bad", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def relu_model():
    return make(
        [helper.make_node("Relu", ["x"], ["y"], name="relu")],
        [info("x", ["n", 4])], [info("y", ["n", 4])],
    )  # fmt: skip


def compile_bad(folder: Path, model, *extra) -> harness.Result:
    """Compiles a model that must be refused; checks the manner, returns the result."""
    path = folder / "model.onnx"
    if isinstance(model, bytes):
        path.write_bytes(model)
    elif model is not None:
        path.write_bytes(model.SerializeToString())
    before = listing(folder)
    result = harness.invoke(
        "compile", path, "-o", folder / "model.engine", "--target", "cpu", *extra,
        timeout=120,
    )  # fmt: skip
    check_manner(result)
    assert listing(folder) == before, "files were left behind"
    return result


def check_manner(result: harness.Result) -> None:
    text = f"exit {result.code}\n{result.stdout}\n{result.stderr}"
    assert result.kind in ("failed", "refused"), f"{result.kind}: {text}"
    assert result.code != 0, text
    assert result.stderr.strip(), "no message on standard error"
    assert len(result.stderr) < 20000, "an endless message"


def listing(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def says(result: harness.Result, *patterns: str) -> None:
    """Each pattern (a regular expression, any case) must be in the message.

    Folders are left out: pytest's hold the test's own words, and digits.
    """
    message = re.sub(r"(?<![\w.])/(?:[^\s/:'\"]+/)+", "", result.stderr)
    for pattern in patterns:
        assert re.search(pattern, message, re.IGNORECASE | re.DOTALL), (
            f"no {pattern!r} in:\n{message}"
        )


def write(folder: Path, model) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path
