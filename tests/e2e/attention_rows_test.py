"""Attention of many rows on CPUs, against NumPy: tiles of two vectors of queries with every rest behind them, steps that
do not divide the keys, and keys and values out of rows that lie far apart.

    pytest attention_rows_test.py
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

# Rows: below, at and behind whole tiles of 16 and 32, with 1, 4, 5, 16, 17 and more left.
ROWS = [(48, 64), (63, 65), (64, 64), (65, 100), (68, 77), (69, 129), (80, 64), (81, 197), (96, 63), (100, 257), (113, 66),
        (127, 101), (129, 300), (197, 197), (257, 33)]  # fmt: skip


def attention(q, k, v, keep):
    scores = np.where(keep, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def save(path, nodes, inputs, output, weights):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "rows", [info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [info("y", TensorProto.FLOAT, output)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)


def attention_nodes(masked):
    mask = [helper.make_node("Add", ["scaled", "mask"], ["added"])] if masked else []
    return [
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
        *mask,
        helper.make_node("Softmax", ["added" if masked else "scaled"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
    ]


def check(folder, feeds, want):
    for target in harness.cpu_targets():
        engine = folder / f"{target}.engine"
        harness.compile_model(folder / "m.onnx", engine, target=target)
        (got,) = harness.run_engine(engine, feeds, ["y"], folder / "run")
        np.testing.assert_allclose(got, want, 0, 5e-6, err_msg=target)


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "causal"])
@pytest.mark.parametrize("rows, keys", ROWS)
def test_rows(tmp_path, rows, keys, masked):
    width, values = (8, 24) if rows % 2 else (40, 64)
    rng = np.random.default_rng(rows)
    shapes = {"q": [1, 2, rows, width], "k": [1, 2, keys, width], "v": [1, 2, keys, values]}
    feeds = {name: rng.uniform(-2, 2, shape).astype(np.float32) for name, shape in shapes.items()}
    # Each row keeps its first keys, and all rows one at least.
    keep = np.tril(np.ones((rows, keys), bool), max(keys - rows, 0)) if masked else np.ones((rows, keys), bool)
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        *attention_nodes(masked),
        helper.make_node("Identity", ["o"], ["y"]),
    ]
    mask = np.where(keep, 0, -np.inf).astype(np.float32)
    weights = dict(scale=np.float32(width**-0.5), **(dict(mask=mask) if masked else {}))
    save(tmp_path / "m.onnx", nodes, shapes, [1, 2, rows, values], weights)
    q, k, v = (feeds[name].astype(np.float64) for name in "qkv")
    check(tmp_path, feeds, attention(q, k, v, keep))


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "causal"])
@pytest.mark.parametrize("batch, tokens, heads, width", [(1, 256, 16, 64), (2, 300, 8, 32), (1, 517, 4, 64)])
def test_heads_of_one_projection(tmp_path, batch, tokens, heads, width, masked):
    """Queries, keys and values of all heads are one row each."""
    rng = np.random.default_rng(tokens)
    wide = heads * width
    x = rng.uniform(-2, 2, (batch, tokens, 3 * wide)).astype(np.float32)
    keep = np.tril(np.ones((tokens, tokens), bool)) if masked else np.ones((tokens, tokens), bool)
    nodes = [helper.make_node("Split", ["x"], ["q0", "k0", "v0"], axis=2, num_outputs=3)]
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes.append(helper.make_node("Reshape", [f"{name}0", "apart"], [f"{name}1"]))
        nodes.append(helper.make_node("Transpose", [f"{name}1"], ["kt" if name == "k" else name], perm=order))
    nodes += attention_nodes(masked)
    nodes.append(helper.make_node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]))
    nodes.append(helper.make_node("Reshape", ["o1", "joined"], ["y"]))
    weights = dict(
        apart=np.array([batch, tokens, heads, width]), joined=np.array([batch, tokens, wide]),
        scale=np.float32(width**-0.5),
    )  # fmt: skip
    if masked:
        weights["mask"] = np.where(keep, 0, -np.inf).astype(np.float32)
    save(tmp_path / "m.onnx", nodes, {"x": x.shape}, [batch, tokens, wide], weights)
    q, k, v = (
        part.reshape(batch, tokens, heads, width).swapaxes(1, 2)
        for part in np.split(x.astype(np.float64), 3, axis=2)
    )
    want = attention(q, k, v, keep).swapaxes(1, 2).reshape(batch, tokens, wide)
    check(tmp_path, {"x": x}, want)
