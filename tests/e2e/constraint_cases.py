"""Sizes that have to be equal, to divide or to be inside."""

from __future__ import annotations

import numpy as np
import onnx
from constraint_model import BOOL, Case, INT64, dims_of, node, table
from onnx import helper
from onnx.reference import ReferenceEvaluator


def group_norm(x, scale):
    """Of groups of one channel, without a shift."""
    centered = x - x.mean(2, keepdims=True)
    return centered / np.sqrt((centered**2).mean(2, keepdims=True) + 1) * scale[:, None]


def heads_repeated(x):
    """Nodes that repeat each head of x."""
    return [
        helper.make_node("Unsqueeze", [x, "two"], [f"{x}5"]),
        helper.make_node("Expand", [f"{x}5", "twice"], [f"{x}e"]),
        helper.make_node("Reshape", [f"{x}e", "merged"], [f"{x}r"], name=f"merge_{x}"),
    ]


def put_at(a, places, values):
    a = a.copy()
    for place, value in zip(places, values):
        a[place] = value
    return a


CASES = {
    # The two products of heads and lengths agree, and meet again as lengths.
    "repeated_heads": Case(
        [
            *heads_repeated("k"), *heads_repeated("v"),
            helper.make_node("Transpose", ["kr"], ["kt"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["q", "kt"], ["scores"], name="qk"),
            node("MatMul", ["scores", "vr"], "pv"),
        ],
        {"q": [1, 6, "b", 8], "k": [1, "k1", "k2", 8], "v": [1, "v1", 5, 8]},
        lambda q, k, v: q @ np.repeat(k, 2, 1).swapaxes(2, 3) @ np.repeat(v, 2, 1),
        [[(1, 6, 4, 8), (1, 3, 5, 8), (1, 3, 5, 8)]],
        [([(1, 6, 4, 8), (1, 3, 4, 8), (1, 3, 5, 8)], "as MatMul 'pv' multiplies over them")],
        "(k1*k2) / 3 = (v1*5) / 3, as MatMul 'pv' multiplies over them",
        {"two": np.array([2]), "twice": np.array([1, 1, 2, 1, 1]), "merged": np.array([0, 6, -1, 8])},
    ),
    "grid": Case(
        [node("GridSample", ["x", "g"], "sample")],
        {"x": ["n", 1, 3, 3], "g": ["m", 2, 2, "c"]},
        lambda x, g: ReferenceEvaluator(onnx.parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> g (float[n,1,3,3] x, float[n,2,2,2] g) => (float[n,1,2,2] y) { y = GridSample (x, g) }'
        )).run(None, {"x": x, "g": g})[0],
        [[(2, 1, 3, 3), (2, 2, 2, 2)]],
        [([(2, 1, 3, 3), (2, 2, 2, 3)], "dimension 3 of g (c = 3) must equal 2, as GridSample 'sample'")],
        "c = 2, as GridSample 'sample' reads coordinates",
    ),
    "regions": Case(
        [node("RoiAlign", ["x", "r", "i"], "align", sampling_ratio=2, output_height=2)],
        {"x": [1, 2, 9, 9], "r": ["n", "k"], "i": (["n"], INT64)},
        None,
        [],
        [([(1, 2, 9, 9), (3, 5), (3,)], "dimension 1 of r (k = 5) must equal 4, as RoiAlign 'align'")],
        "k = 4, as RoiAlign 'align' reads bounds",
    ),
    "groups": Case(
        [node("GroupNormalization", ["x", "s", "z"], "norm", num_groups=3, epsilon=1.0)],
        {"x": ["n", "c", 5], "s": [3]},
        group_norm,
        [[(2, 3, 5), (3,)], [(1, 3, 5), (3,)]],
        [([(2, 6, 5), (3,)], "dimension 1 of x (c = 6) must equal 3, as GroupNormalization 'norm'")],
        "c = 3, as GroupNormalization 'norm' scales the channels",
        {"z": np.zeros(3, np.float32)},
        opset=21,
    ),
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
    "tuples_into_sizes": Case(
        [node("ScatterND", ["a", "i", "u"], "put")],
        {"a": ["n", "m"], "u": [2]},
        lambda a, u: put_at(a, [(4, 1), (0, 2)], u),
        [[(5, 3), (2,)], [(9, 7), (2,)]],
        [
            (
                [(4, 3), (2,)],
                "dimension 0 of a (n = 4) must be at least 5, so that positions lie "
                "inside their table (ScatterND 'put')",
            ),
            (
                [(5, 2), (2,)],
                "dimension 1 of a (m = 2) must be at least 3, so that positions lie "
                "inside their table (ScatterND 'put')",
            ),
        ],
        "n >= 5, so that positions lie inside their table (ScatterND 'put')",
        {"i": np.array([[4, 1], [0, 2]], np.int64)},
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
}
