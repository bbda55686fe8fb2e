"""Products of weights of 4 and 8 bits in kernels for GPUs, interpreted: packed weights are read and widened by the product's own kernel."""

from __future__ import annotations

import dataclasses
import re

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass
class Case:
    """A product [m, k] x [k, n]; `block`: terms that share a scale, 0: those of a column do."""

    m: int
    k: int
    n: int
    bits: int = 4
    block: int = 32
    points: bool = False
    dtype: type = np.float16
    blocked: bool = True  # MatMulNBits, else DequantizeLinear and MatMul


def element(dtype):
    return TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT


def save(nodes, case, initializers, path):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element(case.dtype), [case.m, case.k])],
        [helper.make_tensor_value_info("y", element(case.dtype), [case.m, case.n])],
        initializers,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def packed(numbers, bits):
    """The lowest bits of a byte first, rows to whole bytes."""
    parts = 8 // bits
    rows = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % parts)])
    rows = rows.reshape(*rows.shape[:-1], -1, parts)
    return (rows << (np.arange(parts) * bits)).sum(-1).astype(np.uint8)


def blocked_model(case, rng, path):
    """MatMulNBits; returns the weight [k, n] in double precision."""
    blocks = -(-case.k // case.block)
    most = 2**case.bits
    numbers = rng.integers(0, most, (case.n, blocks, case.block))
    scales = (rng.uniform(0.5, 1.5, (case.n, blocks)) * 0.1).astype(case.dtype)
    points = rng.integers(0, most, (case.n, blocks)) if case.points else np.full((case.n, blocks), most // 2)
    named = {"B": packed(numbers, case.bits), "S": scales.reshape(-1)}
    if case.points:
        named["Z"] = packed(points, case.bits).reshape(-1)
    node = helper.make_node(
        "MatMulNBits", ["x", *named], ["y"], domain="com.microsoft", K=case.k, N=case.n, bits=case.bits, block_size=case.block
    )
    save([node], case, [numpy_helper.from_array(v, k) for k, v in named.items()], path)
    weight = (numbers - points[..., None]) * scales.astype(np.float64)[..., None]
    return weight.reshape(case.n, -1)[:, : case.k].T


def dequantized_model(case, rng, path):
    """DequantizeLinear of a constant in front of MatMul."""
    half = 2 ** (case.bits - 1)
    kind = {8: TensorProto.INT8, 4: TensorProto.INT4}[case.bits]
    shape = (-(-case.k // case.block), case.n) if case.block else (case.n,)
    numbers = rng.integers(-half, half, (case.k, case.n))
    scales = (rng.uniform(0.5, 1.5, shape) * 0.1).astype(case.dtype)
    points = rng.integers(-half, half, shape) if case.points else np.zeros(shape, np.int64)
    held = [helper.make_tensor("W", kind, numbers.shape, numbers.ravel()), numpy_helper.from_array(scales, "S")]
    if case.points:
        held.append(helper.make_tensor("Z", kind, shape, points.ravel()))
    block = {"axis": 0, "block_size": case.block} if case.block else {"axis": 1}
    nodes = [
        helper.make_node("DequantizeLinear", [h.name for h in held], ["w"], **block),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    save(nodes, case, held, path)
    spread = lambda a: np.repeat(a, case.block, 0)[: case.k] if case.block else a[None]  # noqa: E731
    return (numbers - spread(points)) * spread(scales.astype(np.float64))


CASES = {
    # Single rows: K is no multiple of a block or of a tile, N odd.
    "row": Case(1, 512, 96),
    "row-odd": Case(1, 417, 33),
    "row-points": Case(1, 330, 37, block=16, points=True),
    "row-128": Case(1, 1300, 65, block=128, points=True),
    "row-8": Case(1, 417, 33, bits=8, points=True),
    "row-2": Case(1, 100, 33, bits=2, block=16),
    "row-f32": Case(1, 417, 33, dtype=np.float32),
    "row-columns": Case(1, 301, 65, bits=8, block=0, blocked=False),
    # Columns side by side: the weight is turned when it is built.
    "row-columns-long": Case(1, 2304, 64, bits=8, block=0, blocked=False),
    "row-columns-long-odd": Case(1, 1301, 65, bits=8, block=0, points=True, blocked=False),
    "row-columns-long-f32": Case(1, 1301, 65, bits=8, block=0, blocked=False, dtype=np.float32),
    "row-columns-blocks": Case(1, 320, 64, bits=8, block=32, points=True, blocked=False),
    "row-int4": Case(1, 320, 64, bits=4, block=32, blocked=False),
    # Few rows and many, on tensor cores.
    "rows-3": Case(3, 417, 65, points=True),
    "rows-17": Case(17, 512, 96),
    "rows-17-odd": Case(17, 300, 33, block=16, points=True),
    "rows-17-8": Case(17, 417, 65, bits=8),
    "rows-64": Case(64, 512, 128, block=128),
    "rows-64-points": Case(64, 1000, 136, points=True),
    "rows-64-f32": Case(64, 417, 65, dtype=np.float32),
    "rows-64-columns": Case(64, 320, 136, bits=8, block=0, points=True, blocked=False),
    "rows-64-columns-odd": Case(65, 301, 65, bits=8, block=0, blocked=False),
    "rows-200": Case(200, 256, 256),
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_packed(tmp_path, name, target):
    case = CASES[name]
    rng = np.random.default_rng(len(name))
    weight = (blocked_model if case.blocked else dequantized_model)(case, rng, tmp_path / "m.onnx")
    x = rng.standard_normal((case.m, case.k)).astype(case.dtype)
    precision = "fp16" if case.dtype == np.float16 else "fp32"
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", precision=precision, target=target, dump=tmp_path / "dump")
    engine = tmp_path / "m.engine"
    (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run", device="simt", dump=tmp_path / "dump")
    want = x.astype(np.float64) @ weight
    limit = {"fp16": 4e-3, "fp32": 1e-5}[precision]
    assert np.abs(got - want).max() <= limit * np.abs(want).max()
    listing = harness.invoke("inspect", engine, "--kernels").stdout
    assert int(re.search(r"(\d+) kernel launches", listing).group(1)) == 1, listing
    # Where ptxas is found it says what does not stay in registers.
    spilled = re.search(r"^launches.*\n +(?:\d+ +){5}(\d+|-)", listing, re.M)
    assert spilled and spilled.group(1) in ("0", "-"), listing
    # Packed weights are what the engine has of them, beside scales and zero points.
    held = case.k * case.n * (case.bits if case.blocked else 8) / 8
    small = 8 * case.n * (-(-case.k // (case.block or case.k)) + 8)
    assert engine_weights(listing) <= 1.1 * held + small + 4096


def engine_weights(listing):
    """Bytes of weights as `inspect` says them."""
    number, unit = re.search(r"weights ([\d.]+) (\w+)", listing).groups()
    return float(number) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_layer(tmp_path, rows):
    """A layer as PyTorch has it, [n, k] of int8, with a bias and an activation."""
    rng = np.random.default_rng(rows)
    k, n = 331, 77
    numbers = rng.integers(-128, 128, (n, k)).astype(np.int8)
    scales = rng.uniform(0.01, 0.03, n).astype(np.float16)
    bias = rng.standard_normal(n).astype(np.float16)
    nodes = [
        helper.make_node("DequantizeLinear", ["W", "S"], ["w"], axis=0),
        helper.make_node("Gemm", ["x", "w", "b"], ["t"], transB=1),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    held = [numpy_helper.from_array(v, name) for name, v in {"W": numbers, "S": scales, "b": bias}.items()]
    save(nodes, Case(rows, k, n), held, tmp_path / "m.onnx")
    x = rng.standard_normal((rows, k)).astype(np.float16)
    want = np.maximum(x.astype(np.float64) @ (numbers * scales.astype(np.float64)[:, None]).T + bias, 0)
    check_one_kernel(tmp_path, x, want)


@pytest.mark.parametrize("window", [1, 3])
def test_filter(tmp_path, window):
    """Filters of int8: right with and without a window."""
    rng = np.random.default_rng(window)
    c, k, size = 24, 40, 7
    numbers = rng.integers(-128, 128, (k, c, window, window)).astype(np.int8)
    scales = rng.uniform(0.01, 0.03, k).astype(np.float16)
    nodes = [
        helper.make_node("DequantizeLinear", ["W", "S"], ["w"], axis=0),
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[window // 2] * 4),
    ]
    held = [numpy_helper.from_array(numbers, "W"), numpy_helper.from_array(scales, "S")]
    value = lambda name, channels: helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, channels, size, size])  # noqa: E731
    graph = helper.make_graph(nodes, "g", [value("x", c)], [value("y", k)], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "m.onnx")
    x = rng.standard_normal((1, c, size, size)).astype(np.float16)
    filters = numbers * scales.astype(np.float64)[:, None, None, None]
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + [(window // 2,) * 2] * 2)
    want = sum(
        np.einsum("nchw,kc->nkhw", wide[:, :, i : i + size, j : j + size], filters[:, :, i, j])
        for i in range(window)
        for j in range(window)
    )
    check_one_kernel(tmp_path, x, want, kernels=None)


def check_one_kernel(folder, x, want, kernels=1):
    harness.compile_model(folder / "m.onnx", folder / "m.engine", precision="fp16", target="sm_90a", dump=folder / "dump")
    (got,) = harness.run_engine(folder / "m.engine", {"x": x}, ["y"], folder / "run", device="simt", dump=folder / "dump")
    assert np.abs(got - want).max() <= 4e-3 * np.abs(want).max()
    listing = harness.invoke("inspect", folder / "m.engine", "--kernels").stdout
    assert kernels in (None, int(re.search(r"(\d+) kernel launches", listing).group(1))), listing
