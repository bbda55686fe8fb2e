#!/usr/bin/env python3
"""Single operators on the CPU beside ONNX Runtime: every operator of the README's table,
a small and a large case of each.

    bench_ops.py [NAME...] [--threads 2] [--rounds 3] [--seconds 0.05] [--cases small,large]
                 [--json out.json] [--document docs/performance.md]

Both sides run in alternating rounds; a side's time is the least of all its runs, as the
machine may be busy with other work. Where charonia is four times as fast after one round there
are no more. A run of ONNX Runtime is a call from Python, which takes
some 2 us more. A ratio above 1 means that charonia is faster. Prints
the ratios, the geometric mean, the twenty worst, what either side refused, and where
results differ. With --document the summary and the twenty worst replace what the document has
between the lines "<!-- bench_ops -->" and "<!-- /bench_ops -->".
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
import numpy as np
import onnx
from latency import bench_record, geomean, onnxruntime_latency
from onnx import helper, numpy_helper
from open_cases import Open, POINTS, opened

F, I, B, U8 = np.float32, np.int64, np.bool_, np.uint8


class Case:
    """One node: inputs by shape or as constants, and how they are filled."""

    def __init__(self, op, *inputs, outputs=1, fill=None, dtype=F, opset=None, name=None, open=None, **attributes):
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.fill, self.dtype, self.attributes = fill, dtype, attributes
        self.opset, self.name, self.open = opset or 21, name or op, open


class Made:
    """An operand that a node makes of constants."""

    def __init__(self, op, *constants, **attributes):
        self.op, self.constants, self.attributes = op, constants, attributes


def const(values, dtype=I):
    return np.asarray(values, dtype)


def positive(rng, shape):
    return rng.uniform(0.1, 2, shape)


def within_one(rng, shape):
    return rng.uniform(-0.99, 0.99, shape)


def above_one(rng, shape):
    return rng.uniform(1.01, 4, shape)


def weight(*shape):
    """A constant of random values, scaled so that sums of products stay near 1."""
    rng = np.random.default_rng(1)
    return (rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(F)


def integers(bits, *shape):
    half = 1 << (bits - 1)
    return np.random.default_rng(1).integers(-half, half, shape).astype(np.int8)


SMALL, LARGE = (4, 64), (1024, 1024)
IMAGE = {"small": (1, 16, 14, 14), "large": (1, 64, 112, 112)}
FLAT = {"small": SMALL, "large": LARGE}
ROWS = {"small": (16, 256), "large": (2048, 1000)}

UNARY = {
    positive: "Log Sqrt Reciprocal",
    within_one: "Acos Asin Atanh",
    above_one: "Acosh",
    None: "Abs Asinh Atan Ceil Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN "
    "LeakyRelu Mish Neg Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Tan Tanh ThresholdedRelu Celu "
    "Shrink Swish",
}
BINARY = "Add Sub Mul Div Max Min Mean Sum PRelu Equal Less Greater GreaterOrEqual LessOrEqual"
LOGICAL = "And Or Xor"
BITWISE = "BitwiseAnd BitwiseOr BitwiseXor"
REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"


def elementwise(size):
    shape = FLAT[size]
    for fill, names in UNARY.items():
        for op in names.split():
            yield Case(op, shape, fill=fill, opset=24 if op == "Swish" else None)
    for op in BINARY.split():
        yield Case(op, shape, shape)
        if op == "Add":
            yield Case(op, shape, shape[1:], name="Add of a row")
            yield Case(op, shape, (shape[0], 1), name="Add of a column")
    for op in LOGICAL.split():
        yield Case(op, shape, shape, dtype=B)
    for op in BITWISE.split():
        yield Case(op, shape, shape, dtype=np.int32)
    yield Case("Not", shape, dtype=B)
    yield Case("BitwiseNot", shape, dtype=np.int32)
    yield Case("BitShift", shape, const(3, U8), dtype=U8, direction="LEFT")
    yield Case("Mod", shape, const(7, np.int32), dtype=np.int32)
    yield Case("Pow", shape, const(1.7, F), fill=positive)
    yield Case("Clip", shape, const(-0.5, F), const(0.5, F))
    yield Case("Where", (B, shape), (F, shape), (F, shape))
    yield Case("Cast", shape, to=onnx.TensorProto.INT32)
    yield Case("Cast", shape, to=onnx.TensorProto.FLOAT16, name="Cast to float16")
    yield Case("CastLike", shape, const(1, np.int32))
    yield Case("BitCast", shape, to=onnx.TensorProto.INT32, opset=26)
    yield Case("Dropout", shape)


def views(size):
    shape, image = FLAT[size], IMAGE[size]
    n, m = shape
    yield Case("Transpose", shape, perm=[1, 0])
    yield Case("Transpose", image, perm=[0, 2, 3, 1], name="Transpose to channels last")
    yield Case("Reshape", shape, const([m, n]))
    yield Case("Flatten", image)
    yield Case("Squeeze", (1, *shape), const([0]))
    yield Case("Unsqueeze", shape, const([0]))
    yield Case("Expand", (1, m), const([n, m]))
    yield Case("Tile", shape, const([2, 2]))
    yield Case("Concat", shape, shape, shape, axis=1)
    yield Case("Split", shape, outputs=2, axis=1, num_outputs=2)
    yield Case("Slice", shape, const([1, 3]), const([n, m - 1]), const([0, 1]))
    yield Case("Slice", shape, const([0]), const([m]), const([1]), const([2]), name="Slice of every second")
    yield Case("Pad", image, const([0, 0, 1, 1, 0, 0, 1, 1]))
    yield Case("Pad", image, const([0, 0, 1, 1, 0, 0, 1, 1]), mode="reflect", name="Pad by reflection")
    yield Case("DepthToSpace", image, blocksize=2)
    yield Case("SpaceToDepth", image, blocksize=2)
    yield Case("Trilu", shape)
    yield Case("EyeLike", shape)
    yield Case("Shape", shape)
    yield Case("Size", shape)
    yield Case("ReverseSequence", (n, m), const([n // 2 + 1] * m), time_axis=0, batch_axis=1)
    yield Case("CenterCropPad", shape, const([n // 2, m // 2]))


def reductions(size):
    n, m = ROWS[size]
    image = IMAGE[size]
    for op in REDUCTIONS.split():
        fill = positive if "Log" in op or op == "Prod" else None
        yield Case("Reduce" + op, (n, m), const([1]), fill=fill, keepdims=0)
    yield Case("ReduceSum", (n, m), const([0]), keepdims=0, name="ReduceSum of columns")
    yield Case("ReduceSum", (n * m,), const([0]), keepdims=0, name="ReduceSum of all")
    yield Case("ReduceMean", image, const([2, 3]), name="ReduceMean of images")
    yield Case("ReduceMean", image, const([0, 2, 3]), name="ReduceMean of channels")
    for op in ("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax"):
        yield Case(op, (n, m), axis=1)
    yield Case("Softmax", (n, m), axis=0, name="Softmax of columns")
    yield Case("LpNormalization", (n, m), axis=1)
    yield Case("LayerNormalization", (n, m), weight(m), weight(m))
    yield Case("RMSNormalization", (n, m), weight(m), opset=23)
    channels = image[1]
    yield Case("InstanceNormalization", image, weight(channels), weight(channels))
    yield Case("GroupNormalization", image, weight(channels), weight(channels), num_groups=8)
    yield Case("MeanVarianceNormalization", image)
    yield Case("BatchNormalization", image, weight(channels), weight(channels), weight(channels), np.abs(weight(channels)) + 1)
    yield Case("LRN", image, size=5)
    yield Case("CumSum", (n, m), const(1))
    yield Case("CumProd", (n, m), const(1), fill=positive, opset=26)
    yield Case("CumSum", (n * m // 8,), const(0), name="CumSum of one row")
    yield Case("TopK", (n, m), const([10]), outputs=2)
    yield Case("TopK", (1, n * m // 16), const([100]), outputs=2, name="TopK of one row")
    yield Case("NegativeLogLikelihoodLoss", (F, (n, m)), (I, (n,), m))
    yield Case("SoftmaxCrossEntropyLoss", (F, (n, m)), (I, (n,), m))


def indexing(size):
    n, m = ROWS[size]
    k = 8 if size == "small" else 1000
    yield Case("Gather", (F, (n, m)), (I, (k,), n))
    yield Case("Gather", (F, (n, m)), (I, (k,), m), axis=1, name="Gather of columns")
    yield Case("GatherElements", (F, (n, m)), (I, (n, m // 2), m), axis=1)
    yield Case("GatherND", (F, (n, m)), (I, (k, 1), n))
    yield Case("ScatterND", (F, (n, m)), (I, (k, 1), n), (F, (k, m)), reduction="add")
    yield Case("ScatterElements", (F, (n, m)), (I, (k, m), n), (F, (k, m)), axis=0, reduction="add")
    yield Case("ScatterND", (n, m), const(np.arange(k)[:, None]), (k, m), name="ScatterND of known rows")
    yield Case("OneHot", (I, (n,), m), const([m]), const([0, 1], F))
    yield Case("ConstantOfShape", const([n, m]), value=helper.make_tensor("v", 1, [1], [2.0]))
    yield Case("Range", const(0.0, F), const(float(n), F), const(1.0, F))
    c, h = (3, 16) if size == "small" else (32, 96)
    yield Case("Resize", (1, c, h, h), None, const([1, 1, 2, 2], F), mode="nearest")
    yield Case("Resize", (1, c, h, h), None, const([1, 1, 2, 2], F), mode="linear", name="Resize, linear")
    yield Case("Resize", (1, c, h, h), None, const([1, 1, 2, 2], F), mode="cubic", name="Resize, cubic")
    yield Case("Resize", (1, c, h, h), None, const([1, 1, 3, 3], F), mode="nearest", name="Resize, three times")
    yield Case("Resize", (1, c, h, h), None, const([1, 1, 3, 3], F), mode="linear", name="Resize, linear, three times")
    yield Case("Upsample", (1, c, h, h), const([1, 1, 2, 2], F), opset=9)
    yield Case("GridSample", (1, c, h, h), (F, (1, h, h, 2)))
    yield Case("AffineGrid", (1, 2, 3), const([1, 3, h, h]))


def windows(size):
    n, c, h, w = IMAGE[size]
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield Case(op, IMAGE[size], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield Case(op, IMAGE[size])
    small = size == "small"
    h = 14 if small else 56
    x = (1, c, h, h)
    yield Case("Conv", x, weight(c, c, 3, 3), pads=[1] * 4, name="Conv 3x3")
    yield Case("Conv", x, weight(4 * c, c, 1, 1), name="Conv 1x1")
    yield Case("Conv", x, weight(c, 1, 3, 3), pads=[1] * 4, group=c, name="Conv 3x3, depthwise")
    yield Case("Conv", x, weight(c, 1, 31, 31), pads=[15] * 4, group=c, name="Conv 31x31, depthwise")
    yield Case("Conv", x, weight(c, 8, 3, 3), pads=[1] * 4, group=c // 8, name="Conv 3x3, groups of 8")
    yield Case("Conv", x, weight(c, 16, 3, 3), pads=[1] * 4, group=c // 16, name="Conv 3x3, groups of 16")
    yield Case("Conv", (1, 3, 2 * h, 2 * h), weight(c, 3, 7, 7), pads=[3] * 4, strides=[2, 2], name="Conv 7x7 of 3 channels")
    yield Case("Conv", (1, c, h * h), weight(c, c, 3), pads=[1, 1], name="Conv of one dimension")
    yield Case("ConvTranspose", x, weight(c, 16, 4, 4), strides=[2, 2], pads=[1] * 4)
    yield Case("ConvInteger", (1, c, h, h), integers(8, c, c, 3, 3), dtype=U8)


def products(size):
    small = size == "small"
    m, k, n = (4, 64, 32) if small else (384, 1024, 1024)
    yield Case("MatMul", (m, k), weight(k, n))
    yield Case("MatMul", (m, k), (k, n), name="MatMul of two inputs")
    yield Case("MatMul", (1, k), weight(k, n), name="MatMul of one row")
    yield Case("MatMul", (8, m // 2, 64), (8, 64, m // 2), name="MatMul, batched", open=["ns.", "n.t"])
    yield Case("Gemm", (m, k), weight(n, k), weight(n), transB=1)
    yield Case("Einsum", (8, m // 2, 64), (8, m // 2, 64), equation="bid,bjd->bij", open=["ns.", "nt."])
    # 7 bits are what quantizers give a CPU without VNNI, where ONNX Runtime's sums of 8 saturate.
    yield Case("MatMulInteger", (m, k), integers(8, k, n), dtype=U8)
    yield Case("MatMulInteger", (m, k), integers(7, k, n), dtype=U8, name="MatMulInteger of 7 bits")
    q = [const(0.02, F), const(128, U8)]
    yield Case("QLinearMatMul", (m, k), *q, integers(8, k, n).astype(U8), *q, *q, dtype=U8)
    yield Case("QuantizeLinear", (m, k), const(0.02, F), const(128, U8))
    yield Case("DequantizeLinear", (m, k), const(0.02, F), const(128, U8), dtype=U8)
    yield Case("DynamicQuantizeLinear", (m, k), outputs=3)
    heads = 2 if small else 12
    yield Case("Attention", *[(1, heads, 16 if small else 256, 64)] * 3, opset=23, open=["n.s."] * 3)
    past = (1, heads, 48 if small else 1000, 64)
    yield Case("Attention", (1, heads, 1, 64), past, past, opset=23, name="Attention of one row", open=["n...", "n.s.", "n.s."])
    steps, width = (4, 16) if small else (32, 256)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = [weight(1, gates * width, width)] * 2
        yield Case(op, (steps, 1, width), *weights, hidden_size=width, open=[".n."])
    yield Case("DFT", (1, 64 if small else 512, 1), opset=17)
    frame, step, elements = (64, 16, 320) if small else (400, 160, 16000)
    yield Case("STFT", (1, elements, 1), const(step), weight(frame), const(frame), opset=17, onesided=1)
    yield Case("HannWindow", const(64 if small else 65536))


def packed_weights(size):
    """Weights of 4 and 8 bits beside products of few and of many rows."""
    shapes = [(1024, 1024), (768, 3072), (4096, 4096), (4096, 11008)] if size == "large" else [(128, 64)]
    rng = np.random.default_rng(1)
    for k, n in shapes:
        blocks, block = k // 32, 32
        scales = rng.uniform(0.001, 0.01, n * blocks).astype(F)
        nibbles = rng.integers(0, 256, (n, blocks, block // 2), U8)
        integers = rng.integers(-128, 128, (k, n)).astype(np.int8)
        for m in (1, 4, 32, 128):
            yield Case("MatMulNBits", (m, k), nibbles, scales, name=f"MatMulNBits {m}x{k}x{n}",
                       domain="com.microsoft", K=k, N=n, bits=4, block_size=block)  # fmt: skip
            columns = Made("DequantizeLinear", integers, scales[:n], axis=1)
            yield Case("MatMul", (m, k), columns, name=f"MatMul of int8 {m}x{k}x{n}")


# How ONNX Runtime multiplies by a weight behind DequantizeLinear, which it makes MatMulNBits of.
PEERS = {
    "x in 8 bits, the default": {},
    "x in float32": {"session.qdq_matmulnbits_accuracy_level": "1"},
    "widened when loaded": {"session.disable_quant_qdq": "1"},
}


def exact(case: Case, feeds):
    """The product by a dequantized weight in float64; None of another case."""
    made = case.inputs[1] if case.op == "MatMul" and len(case.inputs) == 2 else None
    if not isinstance(made, Made) or made.op != "DequantizeLinear" or made.attributes.get("axis") != 1:
        return None
    integers, scales = (np.asarray(c, np.float64) for c in made.constants)
    return feeds["x0"].astype(np.float64) @ (integers * scales)


def peers(case: Case, path: Path, feeds, options, got) -> list[dict]:
    """Times and errors of what ONNX Runtime can be asked for, where that is not one thing."""
    from latency import SESSIONS

    want = exact(case, feeds)
    if want is None:
        return []
    found = []
    for name, entries in PEERS.items():
        period = dict(threads=options.threads, seconds=options.seconds, of=min, entries=entries)
        seconds = min(onnxruntime_latency(path, feeds, **period) for _ in range(options.rounds))
        own = list(SESSIONS[(str(path), options.threads, *entries.items())].outputs().values())
        found.append(dict(name=name, us=seconds * 1e6, error=difference([want], own)))
    return [dict(name="charonia", error=difference([want], got)), *found]


FAMILIES = (elementwise, views, reductions, indexing, windows, products, packed_weights)



def make(case: Case, size: str, declare=None):
    """The model of a case and values for its inputs; `declare` opens sizes of the model."""
    rng = np.random.default_rng(5)
    infos, weights, feeds, names, nodes = [], [], {}, [], []
    for index, operand in enumerate(case.inputs):
        name = f"x{index}"
        if operand is None:
            names.append("")
            continue
        names.append(name)
        if isinstance(operand, Made):
            parts = [f"{name}_{i}" for i in range(len(operand.constants))]
            weights += [numpy_helper.from_array(c, p) for c, p in zip(operand.constants, parts)]
            nodes.append(helper.make_node(operand.op, parts, [name], **operand.attributes))
            continue
        if isinstance(operand, np.ndarray):
            weights.append(numpy_helper.from_array(operand, name))
            continue
        dtype, shape, below = case.dtype, operand, 100
        if operand and isinstance(operand[0], type):
            dtype, shape, below = operand[0], operand[1], operand[2] if len(operand) > 2 else 100
        if dtype in (F,):
            value = (case.fill or (lambda r, s: r.uniform(-2, 2, s)))(rng, shape).astype(F)
        elif dtype == B:
            value = rng.random(shape) < 0.5
        else:
            value = rng.integers(0, below, shape).astype(dtype)
        feeds[name] = value
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        infos.append(helper.make_tensor_value_info(name, kind, shape))
    results = [f"y{i}" for i in range(case.outputs)]
    nodes.append(helper.make_node(case.op, names, results, **case.attributes))
    if not feeds:  # so that neither side computes it beforehand
        nodes.append(helper.make_node("Add", [results[0], "zero"], ["sum"]))
        infos.append(helper.make_tensor_value_info("zero", onnx.TensorProto.FLOAT, [1]))
        feeds["zero"], results = np.zeros(1, F), ["sum"]
    outputs = [onnx.ValueInfoProto(name=r) for r in results]
    graph = helper.make_graph(nodes, f"{case.op}_{size}", infos, outputs, weights)
    opsets = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=10, opset_imports=opsets)
    if declare:
        declare(model)
    return onnx.shape_inference.infer_shapes(model), feeds


def difference(want, got) -> float:
    worst = 0.0
    for a, b in zip(want, got):
        if a.shape != b.shape:
            return float("inf")
        if a.size == 0:
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = np.abs(np.where(np.isfinite(a), a, 0)).max() or 1
        worst = max(worst, float(np.where(same, 0, np.abs(a - b)).max() / scale))
    return worst


def measure(case: Case, size: str, options, folder: Path) -> dict:
    from latency import SESSIONS

    row = dict(name=case.name, op=case.op, size=size)
    try:
        model, feeds = make(case, size)
    except Exception as error:
        return {**row, "failed": f"model: {error}"[:200]}
    path, engine = folder / "m.onnx", folder / "m.engine"
    onnx.save(model, path)
    SESSIONS.clear()
    try:
        onnxruntime_latency(path, feeds, threads=options.threads, seconds=0.001)
    except Exception as error:
        return {**row, "failed": f"ONNX Runtime: {error}"[:200]}
    try:
        compiled = harness.compile_model(path, engine, target=options.target, timeout=120)
        row["warning"] = "times the work" in compiled.stderr
        return {**row, **beside(path, [engine], feeds, options, folder, case)}
    except harness.CharoniaError as error:
        return {**row, "failed": str(error)[:200]}


def beside(path: Path, engines: list[Path], feeds, options, folder: Path, case: Case | None = None) -> dict:
    """Times of engines beside that of ONNX Runtime, which has run the model with these inputs. Of
    several engines the second is another one to compare the first with."""
    from latency import SESSIONS

    session = SESSIONS[(str(path), options.threads)]
    names = [o.name for o in session.session.get_outputs()]
    got = harness.run_engine(engines[0], feeds, names, folder / "run")
    row = dict(difference=difference(list(session.outputs().values()), got))
    ours, theirs = [float("inf")] * len(engines), float("inf")
    for _ in range(options.rounds):
        period = dict(threads=options.threads, seconds=options.seconds)
        for index, engine in enumerate(engines):
            record = bench_record(engine, feeds, warm_up=options.seconds / 5, **period)
            ours[index] = min(ours[index], record["latency_ms"]["min"] / 1e3)
        theirs = min(theirs, onnxruntime_latency(path, feeds, of=min, **period))
        if theirs > 4 * ours[0] and ours[0] < 1.2 * ours[-1]:
            break
    row.update(charonia_us=ours[0] * 1e6, onnxruntime_us=theirs * 1e6, ratio=theirs / ours[0])
    if case and (found := peers(case, path, feeds, options, got)):
        row.update(peers=found, difference=found[0]["error"])
    if len(engines) > 1:
        row.update(fixed_us=ours[1] * 1e6, slower=ours[0] / ours[1])
    return row


def measure_open(entry: Open, options, folder: Path) -> list[dict]:
    """A case with open sizes: one engine, run at several sizes, beside one of these sizes alone."""
    from latency import SESSIONS

    case = entry.case
    path, engine = folder / "open.onnx", folder / "open.engine"
    row = dict(name=case.name, op=case.op, size="open")
    optimum = dict(zip(("first", "later"), map(int, options.optimum.split(",")))) if options.optimum else None
    try:
        model, _ = make(entry.at(entry.sizes("large")), "open", entry.declare)
        onnx.save(model, path)
        shapes = entry.optimized_for(optimum) if optimum else None
        harness.compile_model(path, engine, target=options.target, timeout=120, shapes=shapes)
    except Exception as error:
        return [{**row, "failed": str(error)[:200]}]
    rows, seen = [], []
    SESSIONS.clear()
    for point in options.points.split(","):
        sizes = entry.sizes(point)
        if sizes in seen:
            continue
        seen.append(sizes)
        at = {**row, "size": point, "sizes": sizes}
        try:
            fixed, feeds = make(entry.at(sizes), point)
            onnxruntime_latency(path, feeds, threads=options.threads, seconds=0.001)
        except Exception as error:
            rows.append({**at, "refused": str(error)[:200]})  # no such sizes, as K of TopK
            continue
        try:
            onnx.save(fixed, folder / "fixed.onnx")
            alone = folder / "fixed.engine"
            harness.compile_model(folder / "fixed.onnx", alone, target=options.target, timeout=120)
            rows.append({**at, **beside(path, [engine, alone], feeds, options, folder)})
        except harness.CharoniaError as error:
            rows.append({**at, "failed": str(error)[:200]})
    return rows


def summary(rows: list[dict]) -> list[str]:
    done = [r for r in rows if "ratio" in r]
    lines = [f"{len(done)} cases, geometric mean {geomean(r['ratio'] for r in done):.2f}"]
    for size in ("small", "large"):
        some = [r["ratio"] for r in done if r["size"] == size]
        if some:
            below = sum(r < 0.5 for r in some)
            lines.append(f"{size}: {len(some)} cases, geometric mean {geomean(some):.2f}, {below} below 0.5")
    return lines


def worst(rows: list[dict], count: int = 20) -> list[list[str]]:
    some = sorted((r for r in rows if "ratio" in r), key=lambda r: r["ratio"])[:count]
    return [
        [r["name"], r["size"], f"{r['onnxruntime_us']:.1f}", f"{r['charonia_us']:.1f}", f"{r['ratio']:.2f}"] for r in some
    ]


def report(rows: list[dict]) -> None:
    print("", *summary(rows), "", "the twenty worst:", sep="\n")
    for line in worst(rows):
        print("  {:32} {:6} {:>10} {:>10} {:>7}".format(*line))
    done = [r for r in rows if "ratio" in r]
    for title, some in (
        ("not measured", [r for r in rows if "failed" in r]),
        ("results differ", [r for r in done if r["difference"] > 1e-3]),
        ("warned of repeated work", [r for r in done if r["warning"]]),
    ):
        if some:
            print(f"\n{title}:")
            for r in some:
                print(f"  {r['name']}, {r['size']}: {r.get('failed') or r['difference']}")


BEGIN, END = "<!-- bench_ops -->\n", "<!-- /bench_ops -->\n"


def section(rows: list[dict], options, loads: tuple[float, float]) -> str:
    """What the document says of a whole run."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=harness.ROOT, capture_output=True, text=True)
    threads = "one thread" if options.threads == 1 else f"{options.threads} threads"
    text = [
        f"{datetime.date.today()}, {commit.stdout.strip() or 'no commit'}, {threads}, load {loads[0]:.1f} before and {loads[1]:.1f} after; "
        + "; ".join(summary(rows))
        + ". The twenty worst, us:\n",
        "| operator | case | ONNX Runtime | ours | ratio |",
        "| --- | --- | ---: | ---: | ---: |",
        *("| " + " | ".join(line) + " |" for line in worst(rows)),
    ]
    return BEGIN + "\n".join(text) + "\n" + END


def write_document(path: Path, text: str) -> None:
    old = path.read_text()
    head, begin, rest = old.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no lines {BEGIN.strip()} and {END.strip()}")
    path.write_text(head + text + tail)


def pairs(family):
    """The small and the large case of each operator; of several large ones that follow each other
    beside the same small ones, all."""
    small, large = list(family("small")), list(family("large"))
    assert len(large) % len(small) == 0, family.__name__
    return zip(small * (len(large) // len(small)), large)


def main_open(options) -> int:
    rows = []
    with tempfile.TemporaryDirectory(prefix="charonia-ops-") as name:
        for family in FAMILIES:
            for small, large in pairs(family):
                if options.names and not any(small.op == n or small.name.startswith(n) for n in options.names):
                    continue
                entry = opened(small, large, options.open == "first")
                for row in measure_open(entry, options, Path(name)) if entry else ():
                    rows.append(row)
                    print(open_line(row), flush=True)
    done = [r for r in rows if "ratio" in r]
    print(f"\n{len(done)} cases, geometric mean {geomean(r['ratio'] for r in done):.2f}")
    print("below .7 of ONNX Runtime, or 1.5 times as long as with fixed sizes:")
    for row in sorted(done, key=lambda r: r["ratio"]):
        if row["ratio"] < 0.7 or (row["slower"] > 1.5 and row["charonia_us"] > 3):
            print(open_line(row))
    print("failed, or results differ:")
    for row in rows:
        if "failed" in row or row.get("difference", 0) > 1e-3:
            print(row["name"], row["size"], row.get("failed") or row["difference"])
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


def open_line(row: dict) -> str:
    head = f"{row['name']:32} {row['size']:8} "
    if "ratio" not in row:
        return head + row.get("failed", row.get("refused", ""))[:120]
    sizes = " ".join(str(s) for s in row["sizes"].values())
    return head + f"{row['ratio']:7.2f} {row['slower']:6.2f} {row['charonia_us']:10.1f} {row['fixed_us']:10.1f} {row['onnxruntime_us']:10.1f}  {sizes}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operators, or beginnings of cases' names")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of a round and side")
    parser.add_argument("--cases", default="small,large")
    parser.add_argument("--target", default="native")
    parser.add_argument("--open", choices=("all", "first"), help="cases with open sizes, at several each; first: no sizes but what comes first in an input")
    parser.add_argument("--points", default=",".join(POINTS), help="with --open: at which sizes")
    parser.add_argument("--optimum", help="with --open: to optimize for, of what comes first and later: 16,128")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--document", type=Path, help="a Markdown file")
    options = parser.parse_args()
    if options.document and BEGIN not in options.document.read_text():
        raise SystemExit(f"{options.document} has no line {BEGIN.strip()}")
    rows, load = [], os.getloadavg()[0]
    if options.open:
        return main_open(options)
    with tempfile.TemporaryDirectory(prefix="charonia-ops-") as name:
        for size in options.cases.split(","):
            for case in (c for family in FAMILIES for c in family(size)):
                if options.names and not any(case.op == n or case.name.startswith(n) for n in options.names):
                    continue
                row = measure(case, size, options, Path(name))
                rows.append(row)
                ratio = f"{row['ratio']:7.2f}  {row['charonia_us']:10.1f} us, {row['onnxruntime_us']:10.1f} us" if "ratio" in row else row["failed"]
                print(f"{case.name:32} {size:6} {ratio}", flush=True)
                for peer in row.get("peers", ()):
                    time = f"{peer['us'] / row['charonia_us']:7.2f}  {peer['us']:10.1f} us" if "us" in peer else " " * 23
                    print(f"    {peer['name']:35} {time}, error {peer['error']:.1e} of the largest", flush=True)
    report(rows)
    if options.document:
        write_document(options.document, section(rows, options, (load, os.getloadavg()[0])))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
