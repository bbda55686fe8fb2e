"""What a model needs of its sizes is proved, or checked when shapes are bound.

Each case compiles a model whose inputs name their sizes differently, runs it on
shapes that fit beside numpy, and on shapes that do not: the message has to name the
inputs, the dimensions and the node. `charonia compile` says what it assumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import harness
import numpy as np
import onnx
import pytest
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


def node(op, inputs, name, **attributes):
    return helper.make_node(op, inputs, ["y"], name=name, **attributes)


def table(rows):
    return np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)


def dims_of(x, name="s"):
    return helper.make_node("Shape", [x], [name])


CASES = {
    "matmul": Case(
        [node("MatMul", ["a", "b"], "fc1")],
        {"a": [4, "m"], "b": ["n", 5]},
        lambda a, b: a @ b,
        [[(4, 3), (3, 5)], [(4, 200), (200, 5)]],
        [
            (
                [(4, 3), (6, 5)],
                "a is float32 [4, 3] and b is float32 [6, 5]: dimension 1 of a "
                "(m = 3) must equal dimension 0 of b (n = 6), as MatMul 'fc1' "
                "multiplies over them",
            )
        ],
        "m = n, as MatMul 'fc1' multiplies over them",
    ),
    "matmul_with_weights": Case(
        [node("MatMul", ["a", "w"], "fc")],
        {"a": ["n", "m"]},
        lambda a: a @ table(6),
        [[(3, 6)], [(1, 6)]],
        [([(3, 5)], "dimension 1 of a (m = 5) must equal 6, as MatMul 'fc'")],
        "m = 6, as MatMul 'fc' multiplies over them",
        {"w": table(6)},
    ),
    "batches": Case(
        [node("MatMul", ["a", "b"], "each")],
        {"a": ["p", 2, 3], "b": ["q", 3, 2]},
        lambda a, b: a @ b,
        [[(4, 2, 3), (4, 3, 2)]],
        [
            (
                [(4, 2, 3), (5, 3, 2)],
                "dimension 0 of a (p = 4) must equal dimension 0 of b (q = 5)",
            )
        ],
        "p = q, as MatMul 'each' combines their elements",
    ),
    "add": Case(
        [node("Add", ["a", "b"], "sum")],
        {"a": ["n", 4], "b": ["m", 4]},
        lambda a, b: a + b,
        [[(3, 4), (3, 4)], [(1, 4), (1, 4)]],
        [
            (
                [(3, 4), (2, 4)],
                "dimension 0 of a (n = 3) must equal dimension 0 of b (m = 2), as "
                "Add 'sum' combines their elements",
            ),
            ([(3, 4), (1, 4)], "must equal dimension 0 of b (m = 1)"),
        ],
        "n = m, as Add 'sum' combines their elements",
    ),
    "where": Case(
        [node("Where", ["c", "a", "b"], "pick")],
        {"c": (["k"], BOOL), "a": [2, "n"], "b": [2, "m"]},
        np.where,
        [[(5,), (2, 5), (2, 5)]],
        [
            ([(5,), (2, 5), (2, 6)], "(m = 6), as Where 'pick'"),
            ([(4,), (2, 5), (2, 5)], "dimension 0 of c (k = 4) must equal dimension 1 of a (n = 5), as Where 'pick'"),
        ],
        "k = n, as Where 'pick' combines their elements",
    ),
    "concat": Case(
        [node("Concat", ["a", "b"], "join", axis=1)],
        {"a": ["n", 4], "b": ["m", 2]},
        lambda a, b: np.concatenate([a, b], 1),
        [[(3, 4), (3, 2)]],
        [
            (
                [(3, 4), (2, 2)],
                "a is float32 [3, 4] and b is float32 [2, 2]: dimension 0 of a (n = "
                "3) must equal dimension 0 of b (m = 2), as Concat 'join' joins them "
                "side by side",
            )
        ],
        "n = m, as Concat 'join' joins them side by side",
    ),
    "reshape_to_the_shape_of_another": Case(
        [dims_of("b"), node("Reshape", ["a", "s"], "like")],
        {"a": ["n", 6], "b": ["m", 2, 3]},
        lambda a, b: a.reshape(b.shape),
        [[(4, 6), (4, 2, 3)]],
        [
            (
                [(4, 6), (5, 2, 3)],
                "dimension 0 of a (n = 4) must equal dimension 0 of b (m = 5), as "
                "Reshape 'like' keeps the number of elements",
            )
        ],
        "n = m, as Reshape 'like' keeps the number of elements",
    ),
    "reshape_divides": Case(
        [node("Reshape", ["a", "s"], "split")],
        {"a": ["n", 6]},
        lambda a: a.reshape(-1, 4),
        [[(4, 6)], [(2, 6)]],
        [
            (
                [(3, 6)],
                "a is float32 [3, 6]: dimension 0 of a (n = 3) must be a multiple of "
                "2, as Reshape 'split' keeps the number of elements",
            )
        ],
        "n is a multiple of 2, as Reshape 'split' keeps the number of elements",
        {"s": np.array([-1, 4], np.int64)},
    ),
    "reshape_divides_declared": Case(
        [node("Reshape", ["a", "s"], "split")],
        {"a": ["n", 6]},
        lambda a: a.reshape(-1, 4),
        [[(4, 6)], [(2, 6)]],
        [([(3, 6)], "dimension 0 of a (n = 3) must be a multiple of 2")],
        "n is a multiple of 2, as Reshape 'split' keeps the number of elements",
        {"s": np.array([-1, 4], np.int64)},
        ("--shape", "a=1..4..8x6"),
    ),
    "split": Case(
        [
            helper.make_node("Split", ["a"], ["p", "q"], name="halve", axis=0),
            node("Add", ["p", "q"], "sum"),
        ],
        {"a": ["n", 3]},
        lambda a: a[: len(a) // 2] + a[len(a) // 2 :],
        [[(6, 3)], [(2, 3)]],
        [
            (
                [(5, 3)],
                "dimension 0 of a (n = 5) must be a multiple of 2, as Split 'halve' "
                "splits all of it",
            )
        ],
        "n is a multiple of 2, as Split 'halve' splits all of it",
    ),
    "slice_by_another_size": Case(
        [dims_of("b"), node("Slice", ["a", "zero", "s"], "cut")],
        {"a": ["n"], "b": ["m"]},
        lambda a, b: a[: len(b)],
        [[(6,), (4,)], [(6,), (6,)]],
        [
            (
                [(3,), (4,)],
                "dimension 0 of a (n = 3) must be at least dimension 0 of b (m = 4), "
                "so that a slice ends inside its tensor (Slice 'cut')",
            )
        ],
        "n >= m, so that a slice ends inside its tensor (Slice 'cut')",
        {"zero": np.array([0], np.int64)},
    ),
    "table": Case(
        [dims_of("b"), node("Slice", ["t", "zero", "s"], "positions")],
        {"b": ["n"]},
        lambda b: table(40)[: len(b)],
        [[(40,)], [(1,)]],
        [
            (
                [(41,)],
                "b is float32 [41]: dimension 0 of b (n = 41) must be at most 40, so "
                "that a slice ends inside its tensor (Slice 'positions')",
            )
        ],
        "n <= 40, so that a slice ends inside its tensor (Slice 'positions')",
        {"t": table(40), "zero": np.array([0], np.int64)},
    ),
    "index_into_a_size": Case(
        [node("Gather", ["a", "i"], "pick", axis=0)],
        {"a": ["n", 2]},
        lambda a: a[[4, -2]],
        [[(5, 2)], [(9, 2)]],
        [
            (
                [(4, 2)],
                "dimension 0 of a (n = 4) must be at least 5, so that positions lie "
                "inside their table (Gather 'pick')",
            )
        ],
        "n >= 5, so that positions lie inside their table (Gather 'pick')",
        {"i": np.array([4, -2], np.int64)},
    ),
    "window": Case(
        [node("MaxPool", ["a"], "pool", kernel_shape=[7])],
        {"a": [1, 1, "n"]},
        lambda a: np.stack([a[..., i : i + 7].max(-1) for i in range(a.shape[2] - 6)], 2),
        [[(1, 1, 7)], [(1, 1, 12)]],
        [
            (
                [(1, 1, 6)],
                "dimension 2 of a (n = 6) must be at least 7, so that a window fits "
                "into the input (MaxPool 'pool')",
            )
        ],
        "n >= 7, so that a window fits into the input (MaxPool 'pool')",
    ),
    "gather_elements": Case(
        [node("GatherElements", ["a", "i"], "pick", axis=1)],
        {"a": ["n", 4], "i": (["m", 4], INT64)},
        lambda a, i: np.take_along_axis(a[: len(i)], i, 1),
        [[(3, 4), (3, 4)], [(3, 4), (2, 4)]],
        [
            (
                [(3, 4), (5, 4)],
                "dimension 0 of a (n = 3) must be at least dimension 0 of i (m = 5), "
                "so that indices lie inside the tensor (GatherElements 'pick')",
            )
        ],
        "n >= m, so that indices lie inside the tensor (GatherElements 'pick')",
    ),
    "expand": Case(
        [dims_of("b"), node("Expand", ["a", "s"], "spread")],
        {"a": ["n"], "b": [2, "m"]},
        lambda a, b: np.broadcast_to(a, b.shape),
        [[(3,), (2, 3)]],
        [([(3,), (2, 4)], "(m = 4), as Expand 'spread' combines their elements")],
        "n = m, as Expand 'spread' combines their elements",
    ),
    "einsum": Case(
        [node("Einsum", ["a", "b"], "mix", equation="ij,jk->ik")],
        {"a": [2, "m"], "b": ["n", 3]},
        lambda a, b: a @ b,
        [[(2, 5), (5, 3)]],
        [([(2, 5), (4, 3)], "(n = 4), as Einsum 'mix' names them alike")],
        "m = n, as Einsum 'mix' names them alike",
    ),
    "channels": Case(
        [node("Conv", ["a", "w"], "conv")],
        {"a": [1, "c", 8]},
        lambda a: a.sum(1, keepdims=True),
        [[(1, 3, 8)]],
        [([(1, 4, 8)], "dimension 1 of a (c = 4) must equal 3, as Conv 'conv'")],
        "c = 3, as Conv 'conv' multiplies over the channels",
        {"w": np.ones((1, 3, 1), np.float32)},
    ),
    # The mask of a decoder with a cache: its length is the sum of two others.
    "sum_of_sizes": Case(
        [
            helper.make_node("Concat", ["past", "x"], ["keys"], axis=0, name="cache"),
            node("Mul", ["keys", "mask"], "masked"),
        ],
        {"past": ["p", 4], "x": ["s", 4], "mask": ["total", 1]},
        lambda past, x, mask: np.concatenate([past, x]) * mask,
        [[(5, 4), (1, 4), (6, 1)], [(1, 4), (3, 4), (4, 1)]],
        [
            (
                [(5, 4), (2, 4), (6, 1)],
                "past is float32 [p = 5, 4], x is float32 [s = 2, 4] and mask is float32 "
                "[total = 6, 1]: p + s = 7 must equal dimension 0 of mask (total = 6), as Mul "
                "'masked' combines their elements",
            )
        ],
        "p + s = total, as Mul 'masked' combines their elements",
    ),
    # Equal sizes of which none becomes the other: passes rely on the record.
    "sums_on_both_sides": Case(
        [
            helper.make_node("Concat", ["a", "b"], ["k"], axis=0),
            helper.make_node("Concat", ["c", "d"], ["l"], axis=0),
            node("Add", ["k", "l"], "sum"),
        ],
        {"a": ["p", 4], "b": ["s", 4], "c": ["t", 4], "d": ["q", 4]},
        lambda a, b, c, d: np.concatenate([a, b]) + np.concatenate([c, d]),
        [[(3, 4), (2, 4), (4, 4), (1, 4)], [(1, 4), (1, 4), (1, 4), (1, 4)]],
        [([(3, 4), (2, 4), (4, 4), (2, 4)], "as Add 'sum' combines their elements")],
        "p + s = t + q, as Add 'sum' combines their elements",
    ),
    "batches_that_are_sums": Case(
        [
            helper.make_node("Concat", ["a", "b"], ["k"], axis=0),
            helper.make_node("Concat", ["c", "d"], ["l"], axis=0),
            node("MatMul", ["k", "l"], "each"),
        ],
        {"a": ["p", 2, 3], "b": ["s", 2, 3], "c": ["t", 3, 2], "d": ["q", 3, 2]},
        lambda a, b, c, d: np.concatenate([a, b]) @ np.concatenate([c, d]),
        [[(3, 2, 3), (2, 2, 3), (1, 3, 2), (4, 3, 2)]],
        [([(3, 2, 3), (2, 2, 3), (1, 3, 2), (3, 3, 2)], "as MatMul 'each'")],
        "p + s = t + q, as MatMul 'each' combines their elements",
    ),
    "halved_and_doubled": Case(
        [
            helper.make_node("MaxPool", ["x"], ["d"], kernel_shape=[3], strides=[2], pads=[1, 1]),
            helper.make_node("Resize", ["d", "", "scales"], ["u"], mode="nearest"),
            node("Add", ["u", "x"], "skip"),
        ],
        {"x": [1, 1, "n"]},
        lambda x: x + np.repeat([max(x[0, 0, max(0, i - 1):i + 2]) for i in range(0, x.shape[2], 2)], 2),
        [[(1, 1, 8)], [(1, 1, 2)], [(1, 1, 126)]],
        [([(1, 1, 7)], "as Add 'skip' combines their elements")],
        "n = ((n + 1) / 2)*2, as Add 'skip' combines their elements",
        {"scales": np.array([1, 1, 2], np.float32)},
    ),
    "sum_with_a_declared_minimum": Case(
        [
            helper.make_node("Concat", ["k", "x"], ["c"], axis=1),
            node("Mul", ["c", "mask"], "masked"),
        ],
        {"k": [2, "past"], "x": [2, "seq"], "mask": [1, "total"]},
        lambda k, x, mask: np.concatenate([k, x], 1) * mask,
        [[(2, 30), (2, 2), (1, 32)], [(2, 1), (2, 15), (1, 16)]],
        [([(2, 3), (2, 2), (1, 6)], "total = 6"), ([(2, 30), (2, 3), (1, 32)], "as Mul 'masked'")],
        "past + seq = total, as Mul 'masked' combines their elements",
        {},
        ("--shape", "k=2x1..32..512", "--shape", "x=2x1..32..512", "--shape", "mask=1x16..64..1024"),
    ),
    # -1 is what is left of the quotient that the model computes.
    "windows": Case(
        [
            dims_of("x"),
            helper.make_node("Gather", ["s", "one"], ["length"]),
            helper.make_node("Div", ["length", "window"], ["windows"]),
            helper.make_node("Concat", ["minus_one", "windows", "window"], ["shape"], axis=0),
            node("Reshape", ["x", "shape"], "cut"),
        ],
        {"x": ["b", "s"]},
        lambda x: x.reshape(x.shape[0], -1, 8),
        [[(3, 16)], [(1, 8)]],
        [([(3, 12)], "must be a multiple of 8, as Reshape 'cut' keeps the number of elements")],
        "s is a multiple of 8, as Reshape 'cut' keeps the number of elements",
        {"one": np.array([1]), "window": np.array([8]), "minus_one": np.array([-1])},
    ),
    # A model written with one size for each dimension: view(ids.shape[0], -1).
    "reshaped_by_another": Case(
        [
            dims_of("ids"),
            helper.make_node("Gather", ["s", "zero"], ["batch"]),
            helper.make_node("Concat", ["batch", "minus_one"], ["shape"], axis=0),
            node("Reshape", ["x", "shape"], "view"),
        ],
        {"x": ["b", "h", 4], "ids": ["p", 1]},
        lambda x, ids: x.reshape(len(ids), -1),
        [[(3, 2, 4), (3, 1)]],
        [([(4, 2, 4), (2, 1)], "as Reshape 'view' keeps the number of elements")],
        "b = p, as Reshape 'view' keeps the number of elements",
        {"zero": np.array([0]), "minus_one": np.array([-1])},
    ),
    # Read 0 without a word where the tensor ended.
    "position_by_a_size": Case(
        [
            dims_of("z", "t"),
            helper.make_node("Sub", ["t", "one"], ["last"]),
            node("Gather", ["x", "last"], "pick", axis=1),
        ],
        {"x": ["n", "s"], "z": ["t"]},
        lambda x, z: x[:, [len(z) - 1]],
        [[(3, 20), (5,)], [(1, 10), (10,)]],
        [([(1, 10), (11,)], "so that positions lie inside their table (Gather 'pick')")],
        "s >= t, so that positions lie inside their table (Gather 'pick')",
        {"one": np.array([1])},
    ),
    # Leading dimensions are tuned for 1 and 1, which does not fit, nor does one changed.
    "in_proportion": Case(
        [
            helper.make_node("Reshape", ["x", "flat"], ["f"]),
            helper.make_node("Reshape", ["z", "flat"], ["g"]),
            node("Add", ["f", "g"], "both"),
        ],
        {"x": ["n", 2], "z": ["m", 3]},
        lambda x, z: x.reshape(-1) + z.reshape(-1),
        [[(3, 2), (2, 3)], [(6, 2), (4, 3)]],
        [([(3, 2), (3, 3)], "n * 2 = 6 must equal m * 3 = 9, as Add 'both'")],
        "n*2 = m*3, as Add 'both' combines their elements",
        {"flat": np.array([-1])},
    ),
    # No default size to optimize for fits: 128 and 128, and 128 halved five times.
    "multiple_of_a_sum": Case(
        [
            helper.make_node("Concat", ["a", "b"], ["k"], axis=1),
            node("Reshape", ["k", "rows"], "split"),
        ],
        {"a": [2, "m"], "b": [2, "n"]},
        lambda a, b: np.concatenate([a, b], 1).reshape(-1, 5),
        [[(2, 3), (2, 2)], [(2, 11), (2, 4)]],
        [([(2, 3), (2, 3)], "must be a multiple of 5, as Reshape 'split'")],
        "m*2 + n*2 is a multiple of 5, as Reshape 'split' keeps the number of elements",
        {"rows": np.array([-1, 5])},
    ),
    "window_behind_halvings": Case(
        [
            *[
                helper.make_node("MaxPool", [a], [b], kernel_shape=[2], strides=[2])
                for a, b in zip("xabcd", "abcde")
            ],
            node("MaxPool", ["e"], "last", kernel_shape=[7]),
        ],
        {"x": [1, 1, "n"]},
        lambda x: np.array([[[x[0, 0, 32 * i : 32 * (i + 7)].max() for i in range(x.shape[2] // 32 - 6)]]]),
        [[(1, 1, 224)], [(1, 1, 300)]],
        [([(1, 1, 223)], "so that a window fits into the input (MaxPool 'last')")],
        "n / 32 >= 7, so that a window fits into the input (MaxPool 'last')",
    ),
    # int32 wraps from 21475 on, where the rest would be another one.
    "narrow_integers": Case(
        [
            dims_of("x"),
            helper.make_node("Cast", ["s"], ["narrow"], to=TensorProto.INT32),
            helper.make_node("Mul", ["narrow", "many"], ["product"]),
            helper.make_node("Mod", ["product", "three"], ["rest"]),
            helper.make_node("Cast", ["rest"], ["start"], to=INT64),
            node("Slice", ["x", "start", "end"], "cut"),
        ],
        {"x": ["n"]},
        lambda x: x[len(x) * 100000 % 3 :],
        [[(5,)], [(21473,)]],
        [([(21475,)], "so that 32 bits hold it (Slice 'cut')")],
        "n <= 21474, so that 32 bits hold it (Slice 'cut')",
        {
            "many": np.array([100000], np.int32),
            "three": np.array([3], np.int32),
            "end": np.array([1 << 40]),
        },
    ),
    # The same of a size that a program defines, and of one used as it is.
    "narrow_choices": Case(
        [
            dims_of("x"),
            helper.make_node("Cast", ["s"], ["narrow"], to=TensorProto.INT32),
            helper.make_node("Max", ["narrow", "few"], ["larger"]),
            helper.make_node("Mul", ["larger", "many"], ["end"]),
            node("Slice", ["x", "start", "end"], "cut"),
        ],
        {"x": ["n"]},
        lambda x: x[: max(len(x), 5) * 100000],
        [[(3,)], [(21474,)]],
        [([(21475,)], "so that 32 bits hold it (Slice 'cut')")],
        "size0 <= 21474, so that 32 bits hold it (Slice 'cut')",
        {
            "many": np.array([100000], np.int32),
            "few": np.array([5], np.int32),
            "start": np.array([0], np.int32),
        },
    ),
    "branch": Case(
        [
            helper.make_node(
                "If", ["c"], ["y"], name="pick",
                then_branch=helper.make_graph(
                    [helper.make_node("MatMul", ["a", "b"], ["p"])], "t", [],
                    [helper.make_tensor_value_info("p", FLOAT, [4, 5])]),
                else_branch=helper.make_graph(
                    [helper.make_node("Identity", ["z"], ["r"])], "e", [],
                    [helper.make_tensor_value_info("r", FLOAT, [4, 5])]),
            )
        ],
        {"c": ([], BOOL), "a": [4, "m"], "b": ["n", 5], "z": [4, 5]},
        lambda c, a, b, z: a @ b if c else z,
        [[(), (4, 3), (3, 5), (4, 5)]],
        [([(), (4, 3), (2, 5), (4, 5)], "as If 'pick' in one of its branches multiplies over them")],
        "m = n, as If 'pick' in one of its branches multiplies over them",
    ),
}


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
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
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


@pytest.mark.parametrize("name", CASES)
def test_sizes(tmp_path, name):
    case = CASES[name]
    kinds = build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu", *case.extra
    )
    assert done.kind == "ok", done.stderr
    # One note, that names what was assumed.
    assert done.stderr.count("note:") == 1, done.stderr
    assert f"  {case.note}\n" in done.stderr
    needs = harness.invoke("inspect", engine).stdout
    assert "  needs " in needs
    for number, shapes in enumerate(case.good):
        inputs = random_inputs(kinds, shapes)
        result = run(engine, tmp_path / f"good{number}", inputs)
        assert result.kind == "ok", result.stderr
        got = np.load(tmp_path / f"good{number}" / "out" / "y.npy")
        want = case.reference(*inputs.values())
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5)
    for number, (shapes, message) in enumerate(case.bad):
        result = run(engine, tmp_path / f"bad{number}", random_inputs(kinds, shapes))
        assert result.kind == "failed", f"{result.kind}: {result.stderr}"
        assert message in result.stderr


def refused(tmp_path, case: Case) -> str:
    build(case, tmp_path / "m.onnx")
    result = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", tmp_path / "m.engine", "--target", "cpu",
        *case.extra,
    )  # fmt: skip
    assert result.kind in ("failed", "refused"), result.stderr
    assert not (tmp_path / "m.engine").exists()
    return result.stderr


def test_integers_that_may_wrap(tmp_path):
    case = CASES["narrow_integers"]
    case = Case(case.nodes, case.inputs, None, [], [], "", case.weights, ("--shape", "x=1..8..30000"))
    message = refused(tmp_path, case)
    assert "node 'cut' (Slice, opset 17): a size is computed in 32 bits, which may not hold it" in message
    assert "narrow the ranges with --shape" in message


def bad_matmul(a, b, *shapes) -> Case:
    extra = tuple(part for shape in shapes for part in ("--shape", shape))
    return Case(
        [node("MatMul", ["a", "b"], "fc1")], {"a": a, "b": b}, None, [], [], "", {}, extra
    )


def test_what_always_holds_is_no_need(tmp_path):
    """A multiple of 2, which turns out to be 4, and n >= n / 2."""
    case = Case(
        [
            helper.make_node("Split", ["x"], ["top", "bottom"], axis=0, name="halves"),
            helper.make_node("Add", ["top", "bottom"], ["sum"]),
            helper.make_node("MatMul", ["w", "x"], ["product"], name="fc"),
            helper.make_node("Shape", ["z"], ["n"]),
            helper.make_node("Div", ["n", "two"], ["half"]),
            helper.make_node("Slice", ["z", "zero", "half"], ["cut"], name="front"),
            helper.make_node("ReduceSum", ["cut"], ["total"]),
            helper.make_node("Add", ["sum", "product"], ["both"]),
            node("Add", ["both", "total"], "all"),
        ],
        {"x": ["s", 3], "z": ["n"]}, None, [], [], "",
        {"w": np.ones((2, 4), np.float32), "two": np.array([2]), "zero": np.array([0])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert done.kind == "ok", done.stderr
    needs = re.findall(r"^  needs (.*)$", harness.invoke("inspect", engine).stdout, re.MULTILINE)
    assert needs == ["dimension 0 of x (s) = 4, as MatMul 'fc' multiplies over them"], needs
    assert "multiple of" not in done.stderr and ">=" not in done.stderr, done.stderr


@pytest.mark.parametrize("end, step", [(2**31 - 1, 2), (-(2**31 - 1), -2), (2**63 - 1, 2)])
def test_slices_to_the_end(tmp_path, end, step):
    """ONNX recommends the largest integers for the end of a dimension that is not known."""
    case = Case(
        [
            helper.make_node("Reshape", ["x", "flat"], ["f"]),
            node("Slice", ["f", "start", "end", "axis", "step"], "cut"),
        ],
        {"x": ["b", "s"]}, None, [], [], "",
        {"flat": np.array([-1]), "start": np.array([0 if step > 0 else 2**31 - 1]),
         "end": np.array([end]), "axis": np.array([0]), "step": np.array([step])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert done.kind == "ok", done.stderr
    assert "note" not in done.stderr, done.stderr
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert run(engine, tmp_path / "run", {"x": x}).kind == "ok"
    np.testing.assert_array_equal(
        np.load(tmp_path / "run" / "out" / "y.npy"), x.reshape(-1)[::step]
    )


def test_errors_of_passes_name_sizes(tmp_path):
    """Verifiers and passes print s0, s1; people read the names that the model has."""
    kind = "tensor<?x?x4x4x{}, affine_map<()[s0, s1] -> (s0, s1, 4, 4)>>"
    result = "tensor<?x?x8x8x{}, affine_map<()[s0, s1] -> (s0, s1, 8, 8)>>"
    (tmp_path / "m.mlir").write_text(
        'module attributes {graph.symbols = [{name = "batch", min = 1, opt = 2, max = 8, divisor = 1}, '
        '{name = "channels", min = 1, opt = 2, max = 8, divisor = 1}]} {\n'
        f"  func.func @main(%x: {kind.format('i32')} {{graph.name = \"x\"}}) -> "
        f"({result.format('i32')} {{graph.name = \"y\"}}) {{\n"
        "    %0 = graph.resize linear %x {axes = array<i64: 2, 3>, scales = array<f64: 2.0, 2.0>, "
        "coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = 0.0 : f64} "
        f": ({kind.format('i32')}) -> {result.format('i32')}\n"
        f"    return %0 : {result.format('i32')}\n  }}\n}}\n"
    )
    result = harness.invoke(
        "compile", tmp_path / "m.mlir", "-o", tmp_path / "m.engine", "--target", "cpu"
    )
    assert result.code == 1, result.stderr
    assert "interpolation of integers is not supported" in result.stderr
    assert "giving int32[batch, channels, 8, 8]" in result.stderr, result.stderr


def test_a_position_that_is_never_inside(tmp_path):
    case = Case(
        [dims_of("x", "shape"), helper.make_node("Gather", ["shape", "one"], ["length"]),
         node("Gather", ["x", "length"], "pick", axis=1)],
        {"x": ["n", "s"]}, lambda x: x, [], [], "", {"one": np.array([1])},
    )  # fmt: skip
    text = refused(tmp_path, case)
    assert "node 'pick' (Gather" in text, text
    assert "position s may lie outside of the s elements of dimension 1" in text, text


def test_declared_ranges_that_disagree(tmp_path):
    text = refused(
        tmp_path, bad_matmul([4, "m"], ["n", 5], "a=4x1..2..8", "b=1..2..16x5")
    )
    assert "node 'fc1' (MatMul" in text
    assert (
        "size 'm' is declared as 1..8 and size 'n' is declared as 1..16, but they have "
        "to be equal" in text
    )
    assert "matmul of [4, m] and [n, 5]" in text


def test_declared_range_of_a_size_that_is_one_number(tmp_path):
    text = refused(tmp_path, bad_matmul([4, "m"], [6, 5], "a=4x1..2..8"))
    assert "size 'm' has to be 6, but is declared as 1..8" in text


def test_sizes_that_can_never_be_equal(tmp_path):
    text = refused(
        tmp_path, bad_matmul([4, "m"], ["n", 5], "a=4x1..2..8", "b=9..10..16x5")
    )
    assert "matmul of [4, m] and [n, 5]: inner dimensions differ" in text


def test_equal_declared_ranges_are_accepted(tmp_path):
    case = bad_matmul([4, "m"], ["n", 5], "a=4x1..2..8", "b=1..2..8x5")
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    harness_args = ("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert harness.invoke(*harness_args, *case.extra).kind == "ok"
    inputs = {"a": np.ones((4, 3), np.float32), "b": np.ones((4, 5), np.float32)}
    assert "must equal dimension 0 of b (n = 4)" in run(
        engine, tmp_path / "bad", inputs
    ).stderr


def test_a_sum_keeps_the_range_that_proofs_used(tmp_path):
    """A table cut to a length that, by its range, it holds; the length is a sum."""
    rows = 1_500_000
    case = Case(
        [
            dims_of("mask", "length"),
            helper.make_node("Slice", ["table", "start", "length", "start"], ["cut"]),
            helper.make_node("Concat", ["k", "x"], ["c"], axis=0),
            helper.make_node("Mul", ["c", "mask"], ["m"], name="masked"),
            node("Add", ["m", "cut"], "plus"),
        ],
        {"k": ["past"], "x": ["seq"], "mask": ["total"]}, None, [], [], "",
        {"table": np.arange(rows, dtype=np.float32), "start": np.array([0])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert done.kind == "ok", done.stderr
    inputs = {"k": np.ones(900_000, np.float32), "x": np.ones(900_000, np.float32)}
    inputs["mask"] = np.ones(1_800_000, np.float32)
    result = run(engine, tmp_path / "long", inputs)
    assert result.kind == "failed", result.stderr
    assert "makes total 1800000; the engine was built for total in 1..1048576" in result.stderr
    inputs = {name: value[:4] for name, value in inputs.items()}
    inputs["mask"] = np.ones(8, np.float32)
    assert run(engine, tmp_path / "short", inputs).kind == "ok"
    got = np.load(tmp_path / "short" / "out" / "y.npy")
    np.testing.assert_array_equal(got, 1 + np.arange(8))


def test_the_declared_optimum_of_a_sum_is_kept(tmp_path):
    case = CASES["sum_with_a_declared_minimum"]
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu",
        "--shape", "mask=1x1..64..128",
    )  # fmt: skip
    assert done.kind == "ok", done.stderr
    assert "at past = 32, seq = 32, total = 64" in harness.invoke("inspect", engine).stdout


def test_no_sizes_to_optimize_for(tmp_path):
    """The declared ones do not fit: said, and no reason to refuse the model."""
    case = CASES["in_proportion"]
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu",
        "--shape", "x=1..1..8x2", "--shape", "z=1..5..8x3",
    )  # fmt: skip
    assert done.kind == "ok", done.stderr
    assert (
        "no sizes to optimize for were found that satisfy what the model needs; the last "
        "were n = 1, m = 5, which the engine is tuned for\n  remedy: name such sizes with "
        "--shape, as MIN..OPT..MAX" in done.stderr
    ), done.stderr
    inputs = {"x": np.ones((3, 2), np.float32), "z": np.ones((2, 3), np.float32)}
    assert run(engine, tmp_path / "good", inputs).kind == "ok"
    assert harness.invoke("inspect", engine).kind == "ok"


@pytest.mark.parametrize("count", [125, 300])
def test_many_sizes_in_one_equation(tmp_path, count):
    """What took minutes, and was refused: each size was tried, and each time all were added."""
    names = {side: [f"{side}{i}" for i in range(count)] for side in "xz"}
    inputs = {name: [f"n{name}", 2 if name[0] == "x" else 3] for side in "xz" for name in names[side]}
    case = Case(
        [
            helper.make_node("Concat", names["x"], ["cx"], axis=0),
            helper.make_node("Concat", names["z"], ["cz"], axis=0),
            helper.make_node("Reshape", ["cx", "flat"], ["f"]),
            helper.make_node("Reshape", ["cz", "flat"], ["g"]),
            node("Add", ["f", "g"], "both"),
        ],
        inputs, None, [], [], "", {"flat": np.array([-1])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    done = harness.invoke("compile", tmp_path / "m.onnx", "--stop-after", "import", timeout=60)
    assert done.kind == "ok", done.stderr
    assert "no sizes to optimize for" not in done.stderr, done.stderr[-2000:]


def test_dumped_stages_keep_constraints(tmp_path):
    build(CASES["matmul"], tmp_path / "m.onnx")
    dump = tmp_path / "dump"
    first = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", tmp_path / "a.engine", "--target", "cpu",
        "--dump-dir", dump,
    )  # fmt: skip
    assert first.kind == "ok", first.stderr
    stages = sorted(dump.glob("*.mlir"))
    assert len(stages) > 3
    for stage in stages:
        assert "graph.constraints" in stage.read_text(), stage.name
    again = harness.invoke(
        "compile", stages[-1], "-o", tmp_path / "b.engine", "--target", "cpu"
    )
    assert again.kind == "ok", again.stderr
    inputs = {"a": np.ones((4, 3), np.float32), "b": np.ones((6, 5), np.float32)}
    result = run(tmp_path / "b.engine", tmp_path / "bad", inputs)
    assert CASES["matmul"].bad[0][1] in result.stderr
