"""Sizes that are sums and quotients of others, in equations, and of few bits."""

from __future__ import annotations

import numpy as np
from constraint_model import BOOL, Case, FLOAT, INT64, dims_of, node
from onnx import TensorProto, helper

CASES = {
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
