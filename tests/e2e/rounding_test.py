"""What an operator of a model gives is rounded by itself, whatever reads it and whichever views are between: a product
is not part of the sum behind it, constants in a row stay apart where one would round otherwise, quotients are quotients.

So a value is the same number wherever it is computed: the distance of an element from the largest one is 0 at that
one, and nowhere below.
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper


def model(path, nodes, shapes, dtype=np.float32, more=None):
    constants = {
        "c": np.float32(0.1), "a": np.array([1]), "zero": np.float32(0), "p": np.float32(0.7), "q": np.float32(1.3),
        "three": np.float32(3), "two": np.float32(2), "split": np.array([0, -1, 1]), "joined": np.array([0, -1]),
        "last": np.array([-1]), "end": np.array([2**31]), "epsilon": np.float32(1e-5),
        "minus": np.float32(-0.5), **(more or {}),
    }  # fmt: skip
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [helper.make_tensor_value_info(name, element, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("y", element, None)]
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "rounding", infos, outputs, weights)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), output.split(), **attributes)


def beside(op, first, second):
    """The largest element less each one, once `first` and `second` have changed both; its root, which is read beside the
    changed maximum."""
    return [
        MAX, node(op, f"m {first}", "m1"), node(op, f"m1 {second}", "m2"), node(op, f"x {first}", "t"),
        node(op, f"t {second}", "u"), node("Sub", "m2 u", "d"), node("Sqrt", "d", "r"), node("Min", "r m1", "y"),
    ]  # fmt: skip


MAX = node("ReduceMax", "x a", "m", keepdims=1)
SQUARES = [node("Mul", "x x", "xx"), node("ReduceMean", "xx a", "v", keepdims=0), node("Sqrt", "v", "s")]
SCALED = [node("Mul", "x c", "t"), node("ReduceMax", "t a", "m", keepdims=1)]
ROOT = [
    node("Mul", "x x", "xx"), node("ReduceMean", "xx a", "v", keepdims=1), node("Add", "v epsilon", "w"), node("Sqrt", "w", "s"),
]  # fmt: skip
CENTERED = [node("ReduceMean", "x a", "mu", keepdims=1), node("Sub", "x mu", "c0")]


def normalized(element, *below):
    """The largest element in the root of the squares' mean less each one in it."""
    squares = [] if element == "x" else [*CENTERED, node("Mul", "c0 c0", "xx"), *ROOT[1:]]
    return [
        *(squares or ROOT), node("ReduceMax", f"{element} a", "m", keepdims=1), *below, node("Sub", "k t", "d"),
        node("Sqrt", "d", "y"),
    ]  # fmt: skip


BODIES = {
    "sqrt": [*SCALED, node("Sub", "m t", "d"), node("Sqrt", "d", "y")],
    "negated": [*SCALED, node("Neg", "t", "u"), node("Add", "m u", "d"), node("Sqrt", "d", "y")],
    "mask": [*SCALED, node("Sub", "t m", "d"), node("Equal", "d zero", "e"), node("Cast", "e", "y", to=1)],
    "scaled twice": [
        *SCALED, node("Mul", "m q", "mq"), node("Mul", "t q", "tq"), node("Sub", "mq tq", "d"), node("Sqrt", "d", "y"),
    ],
    "alike": [
        node("Mul", "x p", "l"), node("Mul", "x p", "r"), node("Abs", "l", "s"), node("Abs", "r", "t"),
        node("Sub", "s t", "d"), node("Sqrt", "d", "y"),
    ],
    # What is read beside the sum keeps its product whole there, and not where only the sum is asked for.
    "sum": [
        node("Mul", "x p", "l"), node("Add", "l q", "t"), node("ReduceMax", "t a", "m", keepdims=1),
        node("Sub", "m t", "d"), node("Sqrt", "d", "y"),
    ],
    "sum beside its product": [
        node("Mul", "x p", "l"), node("Add", "l q", "t"), node("ReduceMax", "t a", "m", keepdims=1),
        node("Sub", "m t", "d"), node("Sqrt", "d", "r"), node("Abs", "l", "k"), node("Min", "r k", "y"),
    ],
    "sum of two products": [
        node("Mul", "x p", "l"), node("Mul", "x c", "s"), node("Add", "l s", "t"), node("Add", "s l", "u"),
        node("Sub", "t u", "d"), node("Sqrt", "d", "y"),
    ],
    "mask of a sum": [
        node("Mul", "x p", "l"), node("Add", "l q", "t"), node("ReduceMax", "t a", "m", keepdims=1),
        node("Equal", "t m", "e"), node("Cast", "e", "y", to=1),
    ],
    # Constants in a row, of which one that is between is read once more.
    "two factors": beside("Mul", "p", "q"),
    "two factors, one exact": beside("Mul", "two", "q"),
    "two summands": beside("Add", "p", "q"),
    "two differences": beside("Sub", "p", "q"),
    "two divisors": beside("Div", "three", "q"),
    "factors around a view": [
        MAX, node("Mul", "m p", "m1"), node("Mul", "m1 q", "m2"), node("Mul", "x p", "t"), node("Reshape", "t split", "v"),
        node("Mul", "v q", "u"), node("Reshape", "u joined", "w"), node("Sub", "m2 w", "d"), node("Sqrt", "d", "y"),
    ],
    # Quotients: of one element, and in front of what is not continuous.
    "quotient of one": [
        node("ReduceMax", "x", "m", keepdims=1), node("Div", "m three", "k"), node("Div", "x three", "t"),
        node("Sub", "k t", "d"), node("Sqrt", "d", "y"),
    ],
    "quotient below a floor": [
        MAX, node("Div", "m three", "k"), node("Floor", "k", "f"), node("Div", "x three", "t"), node("Sub", "k t", "d"),
        node("Sqrt", "d", "r"), node("Max", "r f", "y"),
    ],
    "root below a view": [
        *SQUARES, node("Unsqueeze", "s a", "s2"), node("Div", "x s2", "t"), node("ReduceMax", "x a", "m", keepdims=0),
        node("Div", "m s", "k"), node("Unsqueeze", "k a", "k2"), node("Less", "k2 t", "e"), node("Cast", "e", "y", to=1),
    ],
    # What looks like an operator that is one for us, something else reading what is inside.
    "rms normalization": normalized("x", node("Div", "x s", "t"), node("Div", "m s", "k")),
    "layer normalization": normalized("c0", node("Div", "c0 s", "t"), node("Div", "m s", "k")),
    "rms normalization by a reciprocal": normalized(
        "x", node("Reciprocal", "s", "r"), node("Mul", "x r", "t"), node("Mul", "m r", "k")
    ),
    "rms normalization by a power": normalized(
        "x", node("Pow", "w minus", "r"), node("Mul", "x r", "t"), node("Mul", "m r", "k")
    ),
    "softmax": [
        MAX, node("Sub", "x m", "c0"), node("Exp", "c0", "e0"), node("ReduceSum", "e0 a", "s", keepdims=1),
        node("Div", "e0 s", "t"), node("ReduceMax", "e0 a", "n", keepdims=1), node("Div", "n s", "k"),
        node("Sub", "k t", "d"), node("Sqrt", "d", "y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("columns", [100, "l"])
@pytest.mark.parametrize("body", BODIES)
def test_what_a_product_goes_into(tmp_path, body, columns):
    path = model(tmp_path / "m.onnx", BODIES[body], {"x": ["n", columns]})
    rng = np.random.default_rng(5)
    sizes = ((1, 100), (50, 100), (7, 1 if columns == "l" else 100))
    compare(path, [{"x": rng.standard_normal(size).astype(np.float32)} for size in sizes], tmp_path)


def compare(path, cases, folder):
    """An engine for each CPU beside ONNX Runtime without any optimization of its own."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    for target in harness.cpu_targets():
        engine = folder / f"{target}.engine"
        harness.compile_model(path, engine, target=target)
        for feeds in cases:
            (got,) = harness.run_engine(engine, feeds, ["y"], folder / "run")
            (want,) = session.run(None, feeds)
            assert not np.isnan(want).any()
            shapes = {name: value.shape for name, value in feeds.items()}
            np.testing.assert_allclose(got, want, 1e-6, 1e-6, err_msg=f"{target}, {shapes}")


# Products as terms of sums that are operators: parts of z times what it is conjugate to, (a + bi) (a - bi), whose
# imaginary part is b a - a b.
PRODUCT = node("Mul", "z w", "t")
SUMS = {
    "sum": [PRODUCT, node("ReduceSum", "t a", "s", keepdims=0), node("Sqrt", "s", "y")],
    "mask": [
        PRODUCT, node("ReduceSum", "t a", "s", keepdims=0), node("Equal", "s zero", "e"), node("Cast", "e", "y", to=1),
    ],
    "mean": [PRODUCT, node("ReduceMean", "t a", "s", keepdims=0), node("Sqrt", "s", "y")],
    "window": [
        node("Transpose", "z", "zt", perm=[0, 2, 1]), node("Transpose", "w", "wt", perm=[0, 2, 1]),
        node("Mul", "zt wt", "t"), node("AveragePool", "t", "s", kernel_shape=[2]), node("Sqrt", "s", "y"),
    ],
    "window of planes": [
        PRODUCT, node("Unsqueeze", "t a", "f"), node("AveragePool", "f", "s", kernel_shape=[2, 1]), node("Sqrt", "s", "y"),
    ],
    "running": [PRODUCT, node("CumSum", "t a", "r"), node("Slice", "r last end a", "s"), node("Sqrt", "s", "y")],
    # The same sum twice, of which one is an operator.
    "beside an Add": [
        PRODUCT, node("ReduceSum", "t a", "s", keepdims=1), node("Split", "t", "l r", axis=1, num_outputs=2),
        node("Add", "l r", "u"), node("Equal", "s u", "e"), node("Cast", "e", "y", to=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("columns", [33, "l"])
@pytest.mark.parametrize("body", SUMS)
def test_terms(tmp_path, body, columns):
    shape = ["n", 2, columns]
    path = model(tmp_path / "m.onnx", SUMS[body], {"z": shape, "w": shape})
    rng = np.random.default_rng(5)

    def parts(rows, width):
        a, b = rng.uniform(0.1, 2, (2, rows, 1, width)).astype(np.float32)
        return {"z": np.concatenate([a, b], 1), "w": np.concatenate([b, -a], 1)}

    sizes = ((1, 33), (50, 33), (7, 1 if columns == "l" else 33))
    compare(path, [parts(*size) for size in sizes], tmp_path)


def test_what_is_defined_otherwise(tmp_path):
    """What docs/importing.md names: powers by constants are products and roots, log(softmax) has numbers below those
    of probabilities. Other powers are the same number whether their exponent is a constant or data."""
    exponents = [3, -0.5, 2, 0.5, -1, 1.5, 4]
    nodes = [node("Pow", f"x c{i}", f"y{i}") for i in range(len(exponents))]
    nodes += [node("Pow", f"x e{i}", f"z{i}") for i in range(len(exponents))]
    nodes += [node("Softmax", "s", "p"), node("Log", "p", "l")]
    rng = np.random.default_rng(5)
    x = rng.uniform(0.1, 3, 1000).astype(np.float32)
    feeds = {"x": x, "s": np.array([[0, -200]], np.float32)}
    feeds |= {f"e{i}": np.full_like(x, e) for i, e in enumerate(exponents)}
    names = [f"{y}{i}" for y in "yz" for i in range(len(exponents))] + ["l"]
    graph = helper.make_graph(
        nodes, "powers",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in feeds.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names],
        [numpy_helper.from_array(np.float32(e), f"c{i}") for i, e in enumerate(exponents)],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    for target in harness.cpu_targets():
        harness.compile_model(path, tmp_path / "m.engine", target=target)
        got = dict(zip(names, harness.run_engine(tmp_path / "m.engine", feeds, names, tmp_path / "run")))
        np.testing.assert_array_equal(got["y0"], x * x * x)
        np.testing.assert_array_equal(got["y1"], 1 / np.sqrt(x))
        for i, e in enumerate(exponents):
            want = np.power(x.astype(np.float64), e).astype(np.float32)
            np.testing.assert_array_equal(got[f"z{i}"], want, f"x ^ {e}")
            if i > 1:
                np.testing.assert_array_equal(got[f"y{i}"], want, f"x ^ {e}, a constant")
        np.testing.assert_allclose(got["l"], feeds["s"])


# e − z·w by a negated factor, which is 0 where e is the product.
NEGATED = {
    "negated factor": [node("Neg", "w", "n"), node("Mul", "z n", "t"), node("Add", "e t", "d")],
    "other negated factor": [node("Neg", "w", "n"), node("Mul", "n z", "t"), node("Add", "t e", "d")],
    "less a negated factor": [node("Neg", "e", "v"), node("Neg", "w", "n"), node("Mul", "z n", "t"), node("Sub", "v t", "d")],
    "times -1": [node("Mul", "w minus", "n"), node("Mul", "z n", "t"), node("Add", "e t", "d")],
    "by -1": [node("Div", "w minus", "n"), node("Mul", "z n", "t"), node("Add", "e t", "d")],
    "from 0": [node("Sub", "zero w", "n"), node("Mul", "z n", "t"), node("Add", "e t", "d")],
    "two negated factors": [
        node("Neg", "w", "n"), node("Mul", "n z", "t"), node("Neg", "e", "v"), node("Mul", "v minus", "u"), node("Add", "t u", "d"),
    ],
    "sum of both": [
        node("Neg", "w", "n"), node("Mul", "z n", "t"), node("Unsqueeze", "t a", "p1"), node("Unsqueeze", "e a", "e1"),
        node("Concat", "e1 p1", "r", axis=1), node("ReduceSum", "r a", "d", keepdims=0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("body", NEGATED)
def test_negated_factors(tmp_path, body, dtype):
    constants = {"minus": dtype(-1), "zero": dtype(0)}
    nodes = [*NEGATED[body], node("Sqrt", "d", "y")]
    path = model(tmp_path / "m.onnx", nodes, {k: ["n"] for k in "ezw"}, dtype, constants)
    z, w = np.random.default_rng(5).uniform(0.1, 2, (2, 257)).astype(dtype)
    compare(path, [{"e": z * w, "z": z, "w": w}], tmp_path)


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("op", ["RoiAlign", "GridSample"])
def test_places_between_elements(tmp_path, op, precision):
    """Of a wide image the place between two elements is as exact as in a small one, whatever activations are."""
    wide = 2000
    rng = np.random.default_rng(wide)
    ramp = np.where(np.arange(wide) % 2 == 0, 0, 1).astype(np.float32)  # exact in each type, steep everywhere
    feeds = {"x": np.broadcast_to(ramp, (1, 1, 4, wide)).copy()}
    if op == "RoiAlign":
        left = rng.integers(1000, wide - 20, 7) + 0.125
        feeds["r"] = np.stack([left, np.full(7, 0.5), left + 1.25, np.full(7, 2.5)], 1).astype(np.float32)
        feeds["b"] = np.zeros(7, np.int64)
        one = helper.make_node(op, ["x", "r", "b"], ["y"], output_height=1, output_width=1, sampling_ratio=1)
    else:
        across = 2 * (rng.integers(1000, wide - 20, (1, 1, 9)) + 0.375) / wide - 1
        feeds["r"] = np.stack([across, np.zeros_like(across)], -1).astype(np.float32)
        one = helper.make_node(op, ["x", "r"], ["y"])
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
    graph = helper.make_graph([one], "places", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 16)]), path)
    (want,) = onnxruntime.InferenceSession(path).run(None, feeds)
    harness.compile_model(path, tmp_path / "m.engine", precision=precision)
    (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "run")
    np.testing.assert_allclose(got, want, 0, 1e-2)


# What is between two elements of a table, as models write it: weights of its neighbours at f and f + 1.
LOOKUP = [
    node("Floor", "x", "f"), node("Cast", "f", "i", to=7), node("Add", "i whole", "j"), node("Gather", "t i", "a"),
    node("Gather", "t j", "b"),
]  # fmt: skip
AFTER = node("Sub", "x f", "v")
WEIGHTS = {
    "one less the other": [AFTER, node("Sub", "one v", "u")],
    "the next place less this one": [AFTER, node("Add", "f one", "g"), node("Sub", "g x", "u")],
    "the next index less this place": [AFTER, node("Cast", "j", "g", to=1), node("Sub", "g x", "u")],
    "a sum with the negated floor": [
        node("Neg", "f", "g"), node("Add", "x g", "v"), node("Sub", "one v", "u"),
    ],
    "remainder": [node("Mod", "x one", "v", fmod=1), node("Sub", "one v", "u")],
    "in another shape": [
        node("Reshape", "x split", "x2"), node("Reshape", "f split", "f2"), node("Sub", "x2 f2", "v2"),
        node("Reshape", "v2 joined", "v"), node("Sub", "one v", "u"),
    ],
    "scaled": [
        node("Mul", "x half", "x2"), node("Mul", "f half", "f2"), node("Sub", "x2 f2", "v2"), node("Div", "v2 half", "v"),
        node("Sub", "one v", "u"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_between_elements(tmp_path, weights, precision):
    length = 4000
    constants = {
        "whole": np.int64(1), "one": np.float32(1), "half": np.float32(0.5), "split": np.array([8, 8]),
        "joined": np.array([-1]), "t": np.sin(np.arange(length) / 9).astype(np.float32),
    }  # fmt: skip
    mixed = [node("Mul", "a u", "p"), node("Mul", "b v", "q"), node("Add", "p q", "y")]
    graph = helper.make_graph(
        [*LOOKUP, *WEIGHTS[weights], *mixed],
        "places",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    feeds = {"x": np.linspace(3, length - 9.3, 64).astype(np.float32)}
    (want,) = onnxruntime.InferenceSession(path).run(None, feeds)
    harness.compile_model(path, tmp_path / "m.engine", precision=precision)
    (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "run")
    np.testing.assert_allclose(got, want, 0, 1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("op", ["Mul", "Div"])
def test_scales_that_weights_have_no_room_for(tmp_path, op, direction, dtype):
    """A scale behind a product goes into its weights where these stay numbers: neither infinite nor lost."""
    far = dtype(10) ** dtype({np.float32: 25, np.float64: 200, np.float16: 3}[dtype] * direction)
    scale = far if op == "Mul" else dtype(1) / far
    rng = np.random.default_rng(5)
    x = (rng.uniform(0.5, 1, (5, 8)) / np.float64(far)).astype(dtype)
    weights = {"weight": (rng.uniform(0.5, 1, (8, 3)) * np.float64(far)).astype(dtype), "scale": scale}
    nodes = [node("MatMul", "x weight", "product"), node(op, "product scale", "y")]
    path = model(tmp_path / "m.onnx", nodes, {"x": ["n", 8]}, dtype, weights)
    want = (x.astype(np.float64) @ weights["weight"].astype(np.float64)) * np.float64(far)
    for target in harness.cpu_targets():
        harness.compile_model(path, tmp_path / "m.engine", target=target)
        (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path / "run")
        np.testing.assert_allclose(got, want, 1e-2 if dtype == np.float16 else 1e-5, err_msg=target)


STATISTICS = {
    "norm": [node("ReduceL2", "x a", "n", keepdims=1), node("Max", "n least", "m"), node("Div", "x m", "y")],
    "deviation": [*CENTERED, node("Mul", "c0 c0", "xx"), node("ReduceMean", "xx a", "v", keepdims=1),
                  node("Add", "v least", "w"), node("Sqrt", "w", "s"), node("Div", "c0 s", "y")],
    "factor": [node("ReduceL2", "x a", "n", keepdims=1), node("Add", "n least", "m"), node("Reciprocal", "m", "f"),
               node("Mul", "x f", "y")],
}  # fmt: skip


@pytest.mark.parametrize("precision, tolerance", [("fp16", 2e-3), ("bf16", 2e-2)])
@pytest.mark.parametrize("body", STATISTICS)
def test_statistics_near_zero(tmp_path, body, precision, tolerance):
    """Rows of zeros, and of one value, divided by what is 1e-12 at least: that is no zero in 16 bits."""
    x = np.random.default_rng(11).standard_normal((5, 64)).astype(np.float32)
    x[1], x[3] = 0, 1.5
    path = model(tmp_path / "m.onnx", STATISTICS[body], {"x": [5, 64]}, more={"least": np.float32(1e-12)})
    harness.compile_model(path, tmp_path / "m.engine", precision=precision)
    got = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)[0].astype(np.float64)
    wide = x.astype(np.float64)
    if body == "deviation":
        wide -= wide.mean(1, keepdims=True)
    norm = np.linalg.norm(wide, axis=1, keepdims=True) / (np.sqrt(64) if body == "deviation" else 1)
    np.testing.assert_allclose(got, wide / np.maximum(norm, 1e-6), atol=tolerance)
