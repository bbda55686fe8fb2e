"""Products with weights whose other operand has its terms in another order than memory: on a CPU, and run by charonia-simt.
ONNX Runtime computes what they should give."""

from __future__ import annotations

import re

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from simt_sums_test import LIMITS, Model

# Channels, height and width of what is flattened.
IMAGES = [(3, 1, 1), (3, 3, 5), (7, 3, 5), (24, 7, 7), (24, 1, 1), (64, 2, 2), (16, 1, 9)]
KINDS = ["gemm_t", "gemm", "matmul"]
OPEN = ("batch", (1, 3, 8))


def image(m: Model, batch: int, channels: int, height: int, width: int, is_open=False) -> str:
    """What a convolution gives, whose channels are innermost in memory."""
    x = m.input("x", batch, 4, height, width)
    if is_open:
        m.open[x] = ["batch", 4, height, width]
        m.shapes[x] = [OPEN[1], 4, height, width]
    y = m.add("Conv", x, m.weight(channels, 4, 3, 3, terms=36), m.weight(channels), pads=[1, 1, 1, 1])
    return m.add("Relu", y)


def linear(m: Model, x: str, terms: int, columns: int, kind: str) -> str:
    if kind == "matmul":
        return m.add("Add", m.add("MatMul", x, m.weight(terms, columns, terms=terms)), m.weight(columns))
    turned = kind == "gemm_t"
    weight = m.weight(*((columns, terms) if turned else (terms, columns)), terms=terms)
    return m.add("Gemm", x, weight, m.weight(columns), transB=int(turned))


def classifier(batch, channels, height, width, kind, is_open=False) -> tuple[Model, str]:
    m = Model(batch + channels)
    flat = m.add("Flatten", image(m, batch, channels, height, width, is_open))
    return m, linear(m, flat, channels * height * width, 40, kind)


def read_in_order(stage: str) -> bool:
    """Whether no product reads what a transpose gives in another shape."""
    assert "graph.matmul" in stage
    moved = re.findall(r"(%\w+) = graph\.transpose .*\n\s*(%\w+) = graph\.reshape \1 ", stage)
    return not any(f"graph.matmul {flat}," in stage for _, flat in moved)


def check(m: Model, tmp_path, result: str, target: str, precision: str, ordered=True, want=None) -> None:
    if target.startswith("sm"):
        m.check(tmp_path, result, None, target, precision, want=want)
    else:
        check_cpu(m, tmp_path, result, precision, want)
    (stage,) = tmp_path.glob("dump/*-kernels.mlir")
    assert not ordered or read_in_order(stage.read_text())


def proto(m: Model, result: str) -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        m.nodes, "terms",
        [info(n, TensorProto.FLOAT, m.open.get(n, v.shape)) for n, v in m.inputs.items()],
        [info(result, TensorProto.FLOAT, None)], m.weights,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", m.opset)], ir_version=9)


def run_peer(m: Model, result: str) -> np.ndarray:
    return onnxruntime.InferenceSession(proto(m, result).SerializeToString()).run([result], m.inputs)[0]


def check_cpu(m: Model, tmp_path, result: str, precision: str, want=None) -> None:
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(proto(m, result), path)
    harness.compile_model(path, engine, precision=precision, shapes=m.shapes, dump=tmp_path / "dump")
    want = run_peer(m, result) if want is None else want
    (got,) = harness.run_engine(engine, m.inputs, [result], tmp_path / "run")
    assert np.abs(got - want).max() <= LIMITS[precision] * np.abs(want).max()


TARGETS = [("sm_90a", "fp16"), ("sm_80", "bf16"), ("sm_90a", "fp32"), ("cpu", "fp32"), ("cpu", "fp16")]


@pytest.mark.parametrize("shape", IMAGES)
@pytest.mark.parametrize("batch, kind, is_open", [(1, "gemm_t", False), (5, "gemm", False), (2, "matmul", True)])
def test_flattened(tmp_path, shape, batch, kind, is_open):
    # The targets take turns, so that every shape meets all of them.
    first = len(KINDS) * IMAGES.index(shape) + KINDS.index(kind)
    for number in (first, first + 2):
        target, precision = TARGETS[number % len(TARGETS)]
        m, result = classifier(batch, *shape, kind, is_open)
        folder = tmp_path / f"{target}-{precision}"
        folder.mkdir()
        check(m, folder, result, target, precision)


@pytest.mark.parametrize("target, precision", TARGETS)
def test_two_heads_behind_relu(tmp_path, target, precision):
    """Operators element by element stand behind the flatten; two products read it."""
    m = Model(1)
    y = m.add("Flatten", m.add("MaxPool", image(m, 3, 12, 6, 10), kernel_shape=[2, 2], strides=[2, 2]))
    y = m.add("LeakyRelu", m.add("Mul", y, m.weight(180)), alpha=0.1)
    result = m.add("Concat", linear(m, y, 180, 24, "gemm_t"), linear(m, y, 180, 9, "matmul"), axis=1)
    check(m, tmp_path, result, target, precision, ordered=False)


@pytest.mark.parametrize("target, precision", TARGETS)
@pytest.mark.parametrize("perm", [(0, 2, 4, 3, 5, 1), (0, 4, 2, 1, 5, 3), (0, 2, 4, 5, 1, 3)])
def test_patches(tmp_path, target, precision, perm):
    """Patches of an image, whose elements come in any order."""
    m = Model(2)
    x = m.input("x", 2, 3, 16, 24)
    for name, shape in (("cut", [2, 3, 4, 4, 3, 8]), ("rows", [24, 96])):
        m.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(shape)], shape))
    rows = m.add("Reshape", m.add("Transpose", m.add("Reshape", x, "cut"), perm=list(perm)), "rows")
    check(m, tmp_path, linear(m, rows, 96, 32, "matmul"), target, precision, ordered=False)


@pytest.mark.parametrize("target, precision", TARGETS)
def test_shuffled_channels(tmp_path, target, precision):
    m = Model(3)
    for name, shape in (("cut", [1, 2, 12, 6, 6]), ("joined", [1, 24, 6, 6])):
        m.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(shape)], shape))
    y = m.add("Transpose", m.add("Reshape", image(m, 1, 24, 6, 6), "cut"), perm=[0, 2, 1, 3, 4])
    y = m.add("Reshape", y, "joined")
    result = m.add("Conv", y, m.weight(16, 24, 3, 3, terms=216))
    check(m, tmp_path, result, target, precision, ordered=False)


@pytest.mark.parametrize("target, precision", [("sm_90a", "fp16"), ("cpu", "fp32")])
def test_shared_weights(tmp_path, target, precision):
    """One weight of two products, in two orders."""
    m = Model(4)
    flat = m.add("Flatten", image(m, 2, 12, 4, 4))
    rows = m.add("Add", flat, m.input("r", 2, 192))
    weight = m.weight(192, 24, terms=192)
    result = m.add("Add", m.add("MatMul", flat, weight), m.add("MatMul", m.add("Sigmoid", m.input("s", 2, 192)), weight))
    result = m.add("Add", result, m.add("ReduceSum", rows, keepdims=1))
    check(m, tmp_path, result, target, precision, ordered=False)


@pytest.mark.parametrize("target, precision", [("sm_90a", "fp16"), ("cpu", "fp32")])
@pytest.mark.parametrize("rows", [2, 300])
def test_narrow_weights(tmp_path, target, precision, rows):
    """Bytes with a scale for each column, which stay bytes. ONNX Runtime would multiply bytes."""
    m = Model(5)
    flat = m.add("Flatten", image(m, rows, 8, 3, 4))
    q, s = m.rng.integers(-128, 128, (96, 40)).astype(np.int8), (m.rng.random(40) * 1e-3).astype(np.float32)
    for name, value in (("q", q), ("s", s)):
        m.weights.append(numpy_helper.from_array(value, name))
    want = run_peer(m, flat) @ (q * s)
    result = m.add("MatMul", flat, m.add("DequantizeLinear", "q", "s", axis=1))
    check(m, tmp_path, result, target, precision, ordered=False, want=want)


def test_no_weights(tmp_path):
    """What is no weight stays in its order: the kernel in front stores its rows in the product's."""
    m = Model(6)
    flat = m.add("Flatten", image(m, 64, 24, 7, 7))
    m.check(tmp_path, m.add("MatMul", flat, m.input("w", 1176, 1024)), None, "sm_90a", "fp16")
    (stage,) = tmp_path.glob("dump/*-kernels.mlir")
    assert read_in_order(stage.read_text())
