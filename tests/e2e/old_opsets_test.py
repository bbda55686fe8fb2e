"""Definitions of operators that hold up to opset 6, against NumPy: ONNX Runtime has none of them."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.uniform(0.1, 2, shape).astype(np.float32)


def make(op: str, opset: int, inputs: list, attributes: dict, outputs: int = 1, fixed=()) -> onnx.ModelProto:
    names = [f"i{i}" for i in range(len(inputs))]
    results = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="n", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in zip(names, inputs)
    ]
    graph = helper.make_graph(
        [node], "g", [i for n, i in enumerate(infos) if n not in fixed],
        [helper.make_empty_tensor_value_info(r) for r in results],
        [onnx.numpy_helper.from_array(inputs[i], names[i]) for i in fixed],
    )  # fmt: skip
    return helper.make_model(graph, ir_version=3, opset_imports=[helper.make_opsetid("", opset)])


def run(tmp_path, model: onnx.ModelProto, inputs: list) -> list:
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(model, path)
    harness.compile_model(path, engine)
    feeds = {i.name: inputs[int(i.name[1:])] for i in model.graph.input}
    return harness.run_engine(engine, feeds, [o.name for o in model.graph.output], tmp_path)


A, B, C = floats(2, 3, 4, 5), floats(3, 4), floats(5)
BATCH = [floats(2, 3, 4), *(floats(3) for _ in range(4))]


def normalized(x, scale, shift, mean, variance):
    along = (slice(None), None)
    return (x - mean[along]) / np.sqrt(variance[along] + 1e-5) * scale[along] + shift[along]


def per_channel(x, slope):
    return np.where(x < 0, x * slope[:, None, None], x)


TRUTH = A > 1
# operator, opset, inputs, attributes, result; and which inputs are initializers
CASES = {
    "add-middle": ("Add", 6, [A, B], {"broadcast": 1, "axis": 1}, A + B[None, :, :, None]),
    "add-suffix": ("Add", 6, [A, C], {"broadcast": 1}, A + C),
    "add-first": ("Add", 1, [A, floats(2)], {"broadcast": 1, "axis": 0, "consumed_inputs": [0, 0]}, None),
    "sub-negative-axis": ("Sub", 6, [A, B], {"broadcast": 1, "axis": -3}, A - B[None, :, :, None]),
    "mul-scalar": ("Mul", 1, [A, np.float32(3)], {"broadcast": 1}, A * 3),
    "div-equal": ("Div", 6, [A, A], {}, A / A),
    "pow-suffix": ("Pow", 1, [A, C], {"broadcast": 1}, A**C),
    "less-middle": ("Less", 1, [A, B], {"broadcast": 1, "axis": 1}, A < B[None, :, :, None]),
    "equal-middle": ("Equal", 1, [(A * 3).astype(np.int32), (B * 3).astype(np.int32)],
                     {"broadcast": 1, "axis": 1}, (A * 3).astype(np.int32) == (B * 3).astype(np.int32)[None, :, :, None]),
    "and-middle": ("And", 1, [TRUTH, B > 1], {"broadcast": 1, "axis": 1}, TRUTH & (B > 1)[None, :, :, None]),
    "relu": ("Relu", 1, [A - 1], {"consumed_inputs": [0]}, np.maximum(A - 1, 0)),
    "max": ("Max", 1, [A, A * A], {"consumed_inputs": [0, 0]}, np.maximum(A, A * A)),
    "clip": ("Clip", 1, [A], {"min": 0.5, "max": 1.0, "consumed_inputs": [0]}, np.clip(A, 0.5, 1)),
    "cast": ("Cast", 1, [A * 3], {"to": "INT32"}, (A * 3).astype(np.int32)),
    "concat": ("Concat", 1, [A, A], {}, np.concatenate([A, A], 1)),
    "reshape": ("Reshape", 1, [A], {"shape": [0, -1, 10]}, A.reshape(2, 6, 10)),
    "pad": ("Pad", 1, [C], {"paddings": [1, 2], "value": 3.0}, np.pad(C, (1, 2), constant_values=3)),
    "tile": ("Tile", 1, [A, np.float32([3]), np.float32([1])], {}, np.tile(A, (1, 3, 1, 1)), (1, 2)),
    "top-k": ("TopK", 1, [C], {"k": 2}, np.sort(C)[::-1][:2]),
    "upsample": ("Upsample", 1, [A], {"height_scale": 2.0, "width_scale": 3.0}, A.repeat(2, 2).repeat(3, 3)),
    "average-pool": ("AveragePool", 1, [A], {"kernel_shape": [4, 5]}, A.mean((2, 3), keepdims=True)),
    "lp-pool": ("LpPool", 1, [A], {"kernel_shape": [4, 5], "p": 3.0}, ((A**3).sum((2, 3), keepdims=True)) ** (1 / 3)),
    "global-lp-pool": ("GlobalLpPool", 1, [A], {"p": 1.5}, ((A**1.5).sum((2, 3), keepdims=True)) ** (1 / 1.5)),
    "batch-norm": ("BatchNormalization", 1, BATCH, {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]}, normalized(*BATCH)),
    "batch-norm-6": ("BatchNormalization", 6, BATCH, {"is_test": 1}, normalized(*BATCH)),
    "dropout": ("Dropout", 6, [A], {"is_test": 1}, A),
    "p-relu": ("PRelu", 6, [A - 1, floats(3)], {}, None),
    "p-relu-single": ("PRelu", 1, [A - 1, np.float32([0.25])], {}, np.where(A < 1, (A - 1) * 0.25, A - 1)),
    "gemm": ("Gemm", 6, [floats(2, 3), floats(3, 4), floats(4)], {"broadcast": 1}, None),
    "split": ("Split", 1, [A, np.float32([1, 3])], {"axis": 2}, A[:, :, :1], (1,)),
}  # fmt: skip
for name, expect in {
    "add-first": lambda a, b: a + b[:, None, None, None],
    "p-relu": per_channel,
    "gemm": lambda a, b, c: a @ b + c,
}.items():
    op, opset, inputs, attributes, _ = CASES[name]
    CASES[name] = op, opset, inputs, attributes, expect(*inputs)


@pytest.mark.parametrize("name", CASES)
def test_old_definition(tmp_path, name):
    op, opset, inputs, attributes, want, *fixed = CASES[name]
    inputs = [np.asarray(v) for v in inputs]
    outputs = {"TopK": 2, "Split": 2}.get(op, 1)
    got = run(tmp_path, make(op, opset, inputs, attributes, outputs, *fixed), inputs)[0]
    assert got.shape == want.shape
    assert got.dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)


@pytest.mark.parametrize("layer, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_old_recurrence(tmp_path, layer, gates):
    """Opset 1's layers compute what opset 7's do."""
    inputs = [floats(5, 2, 3), floats(1, 4 * gates, 3) - 1, floats(1, 4 * gates, 4) - 1]
    attributes = {"hidden_size": 4}
    now = run(tmp_path, make(layer, 7, inputs, attributes, 2), inputs)
    then = run(tmp_path, make(layer, 1, inputs, {**attributes, "output_sequence": 1}, 2), inputs)
    for a, b in zip(then, now):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "op, opset, inputs, attributes, words",
    [
        ("Dropout", 6, [A], {}, "is_test = 0, training mode, is not supported"),
        ("BatchNormalization", 6, BATCH, {}, "is_test = 0, training mode, is not supported"),
        ("Cast", 1, [A], {"to": "FLOAT7"}, "attribute 'to' may not be 'FLOAT7'"),
        ("Add", 6, [C, A], {"broadcast": 1}, "float32[2, 3, 4, 5] does not broadcast to the first operand, float32[5]"),
        ("Add", 6, [A, B], {"broadcast": 1, "axis": 3}, "float32[3, 4] from axis 3 on does not fit into float32[2, 3, 4, 5]"),
        ("Reshape", 1, [A], {}, "attribute 'shape' is missing"),
        ("GlobalLpPool", 1, [A], {"p": 0.5}, "attribute 'p' may not be 0.5"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)  # fmt: skip
def test_refused(tmp_path, op, opset, inputs, attributes, words):
    with pytest.raises(harness.CharoniaError) as error:
        run(tmp_path, make(op, opset, inputs, attributes), inputs)
    assert words in str(error.value)
    assert f"node 'n' ({op}, opset {opset})" in str(error.value)
