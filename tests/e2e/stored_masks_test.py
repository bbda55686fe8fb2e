"""Masks and positions that a model stores, as older exporters do: what attention computes with them is what NumPy does,
and where they lie along the diagonal it has no mask left.

    pytest stored_masks_test.py
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

LEAST = np.finfo(np.float32).min
LENGTHS = [1, 7, 64, 129]


def softmax(x):
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def compile_attention(folder, nodes, weights, length):
    """softmax of masked scores by values, of two heads of 16; `nodes` make m of s and weights."""
    shape = [2, 2, length, 16]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "qkv"]
    first = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
    ]
    last = [
        helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    stored = [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph(first + nodes + last, "stored", inputs, [output], stored)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, folder / "m.onnx")
    harness.compile_model(folder / "m.onnx", folder / "m.engine", dump=folder / "dump")
    layout = next((folder / "dump").glob("*-layout.mlir")).read_text()
    assert layout.count("graph.attention") == 1
    return layout


def check(folder, masked, length):
    rng = np.random.default_rng(length)
    feeds = {name: rng.uniform(-2, 2, (2, 2, length, 16)).astype(np.float32) for name in "qkv"}
    (got,) = harness.run_engine(folder / "m.engine", feeds, ["y"], folder / "run")
    q, k, v = (feeds[name].astype(np.float64) for name in "qkv")
    want = softmax(masked(q @ k.swapaxes(-1, -2))) @ v
    np.testing.assert_allclose(got, want, 0, 5e-6)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_slice_of_a_buffer(tmp_path, length):
    """GPT-2's: bool, of all positions, cut to those that there are."""
    buffer = np.tril(np.ones((1, 1, 160, 160), bool))
    nodes = [
        helper.make_node("Slice", ["buffer", "starts", "ends", "axes"], ["keep"]),
        helper.make_node("Where", ["keep", "s", "least"], ["m"]),
    ]
    weights = dict(buffer=buffer, starts=[0, 0], ends=[length, length], axes=[2, 3], least=LEAST)
    layout = compile_attention(tmp_path, nodes, weights, length)
    assert ("causal" in layout) == (length > 1) and " mask " not in layout
    check(tmp_path, lambda s: np.where(buffer[..., :length, :length], s, LEAST), length)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float16])
def test_numbers(tmp_path, dtype):
    """1 and 0 of another type, cast where they are read."""
    length, buffer = 65, np.tril(np.ones((1, 1, 160, 160), dtype))
    nodes = [
        helper.make_node("Slice", ["buffer", "starts", "ends", "axes"], ["cut"]),
        helper.make_node("Cast", ["cut"], ["keep"], to=TensorProto.BOOL),
        helper.make_node("Where", ["keep", "s", "least"], ["m"]),
    ]
    weights = dict(buffer=buffer, starts=[0, 0], ends=[length, length], axes=[2, 3], least=LEAST)
    layout = compile_attention(tmp_path, nodes, weights, length)
    assert "causal" in layout and " mask " not in layout
    check(tmp_path, lambda s: np.where(buffer[..., :length, :length] != 0, s, LEAST), length)


def test_truths_that_pass_as_numbers(tmp_path):
    """As exporters without Slice of bool write it."""
    length, places = 70, np.arange(70)
    nodes = [
        helper.make_node("LessOrEqual", ["keys", "rows"], ["b"]),
        helper.make_node("Cast", ["b"], ["number"], to=TensorProto.UINT8),
        helper.make_node("Unsqueeze", ["number", "axes"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["keep"], to=TensorProto.BOOL),
        helper.make_node("Where", ["keep", "s", "least"], ["m"]),
    ]
    weights = dict(keys=places, rows=places[:, None], axes=[0, 1], least=LEAST)
    layout = compile_attention(tmp_path, nodes, weights, length)
    assert "causal" in layout and " mask " not in layout
    check(tmp_path, lambda s: np.where(places <= places[:, None], s, LEAST), length)


@pytest.mark.parametrize("kept, fill", [(0.0, -np.inf), (0.0, LEAST), (-0.0, LEAST)], ids=["inf", "least", "product"])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_mask_that_is_added(tmp_path, length, kept, fill):
    """Also what exporters fold of 1 and 0 times a number, which keeps where it is -0."""
    added = np.where(np.tri(length, dtype=bool), np.float32(kept), np.float32(fill))
    layout = compile_attention(
        tmp_path, [helper.make_node("Add", ["s", "added"], ["m"])], dict(added=added), length
    )
    # A mask of fewer elements is a bias as it is.
    if length >= 7:
        assert "causal" in layout and " bias " not in layout
    check(tmp_path, lambda s: s + added, length)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_mask_of_another_type(tmp_path, dtype):
    added = np.triu(np.full((33, 33), -np.inf, dtype), 1)
    nodes = [
        helper.make_node("Cast", ["added"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["s", "wide"], ["m"]),
    ]
    layout = compile_attention(tmp_path, nodes, dict(added=added), 33)
    assert "causal" in layout and " bias " not in layout
    check(tmp_path, lambda s: s + added.astype(np.float64), 33)


@pytest.mark.parametrize("before, behind", [(5, 0), (0, 4), (3, 3), (40, 1)])
@pytest.mark.parametrize("length", [65, 129])
def test_a_window(tmp_path, length, before, behind):
    places = np.arange(length)
    ahead = places[None, :] - places[:, None]
    keep = (ahead >= -before) & (ahead <= behind)
    nodes = [helper.make_node("Where", ["keep", "s", "least"], ["m"])]
    compile_attention(tmp_path, nodes, dict(keep=keep, least=np.float32(-np.inf)), length)
    check(tmp_path, lambda s: np.where(keep, s, -np.inf), length)


def test_others_stay(tmp_path):
    """Blocks, a hole in a band, two numbers, and one above 0."""
    rng = np.random.default_rng(3)
    blocks = np.kron(np.eye(4, dtype=bool), np.ones((16, 16), bool))
    hole = np.tril(np.ones((64, 64), bool))
    hole[40, 20] = False
    two = np.where(np.tril(np.ones((64, 64), bool)), 0, -rng.integers(1, 3, (64, 64))).astype(np.float32)
    above = np.triu(np.ones((64, 64), np.float32), 1)
    for number, mask in enumerate((blocks, hole, two, above)):
        folder = tmp_path / str(number)
        folder.mkdir()
        if mask.dtype == bool:
            nodes = [helper.make_node("Where", ["mask", "s", "least"], ["m"])]
        else:
            nodes = [helper.make_node("Add", ["s", "mask"], ["m"])]
        layout = compile_attention(folder, nodes, dict(mask=mask, least=np.float32(-np.inf)), 64)
        assert "causal" not in layout
        check(folder, lambda s: np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask, 64)


def test_rows_that_keep_nothing(tmp_path):
    """Their softmax is of -inf alone: NaN, as in NumPy."""
    keep = np.tril(np.ones((32, 32), bool), -3)
    nodes = [helper.make_node("Where", ["keep", "s", "least"], ["m"])]
    compile_attention(tmp_path, nodes, dict(keep=keep, least=np.float32(-np.inf)), 32)
    check(tmp_path, lambda s: np.where(keep, s, -np.inf), 32)


def test_one_that_keeps_all(tmp_path):
    keep = np.ones((1, 1, 65, 65), bool)
    nodes = [helper.make_node("Where", ["keep", "s", "least"], ["m"])]
    layout = compile_attention(tmp_path, nodes, dict(keep=keep, least=LEAST), 65)
    assert "causal" not in layout and " mask " not in layout
    check(tmp_path, lambda s: s, 65)


@pytest.mark.parametrize(
    "places", [np.arange(30, 130), np.zeros(100, int), np.full(100, 7), np.arange(199, -1, -2)],
    ids=["upwards", "zeros", "sevens", "downwards"],
)  # fmt: skip
def test_positions(tmp_path, places):
    """A table read at stored positions is a part of it."""
    table = np.random.default_rng(4).standard_normal((200, 8)).astype(np.float32)
    places = places[None]
    nodes = [
        helper.make_node("Gather", ["table", "places"], ["e"], axis=0),
        helper.make_node("Add", ["x", "e"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "positions", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 100, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 100, 8])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(places, "places")],
    )  # fmt: skip
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", dump=tmp_path / "dump")
    assert "graph.gather" not in next((tmp_path / "dump").glob("*-simplify.mlir")).read_text()
    x = np.random.default_rng(5).standard_normal((2, 100, 8)).astype(np.float32)
    (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path / "run")
    np.testing.assert_array_equal(got, x + table[places])
