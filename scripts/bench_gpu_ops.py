#!/usr/bin/env python3
"""Small graphs on a GPU beside PyTorch eager replayed as a CUDA graph, in one run.

    bench_gpu_ops.py [NAME...] [--copies 8] [--rounds 3] [--seconds 0.2] [--json out.json]

What has an order (scans, selections, scatters), normalizations of groups between
convolutions, transposed convolutions, reductions of long rows. A graph holds the case
several times, each on inputs of its own, so that the start of a run weighs little; times
are of one. A ratio above 1 means that charonia is faster. Every result is compared with
PyTorch's. Needs PyTorch and an NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import harness
import numpy as np
import onnx
from latency import TorchGraph, charonia_latency, geomean
from model_subjects import scaled_error
from onnx import helper, numpy_helper


@dataclass
class Case:
    name: str
    # The case's inputs: an array each, of float32 what is of the measured precision.
    inputs: Callable[[np.random.Generator], list[np.ndarray]]
    # nodes(inputs, output, prefix): the nodes from the named inputs to the output.
    nodes: Callable[[list[str], str, str], list]
    # The same in PyTorch; weights are tensors by name.
    torch: Callable
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    precision: str = "fp32"


def normal(*shape):
    return lambda rng: [rng.standard_normal(shape, np.float32)]


def weight(*shape, fan: int):
    rng = np.random.default_rng(1)
    return (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)


def constant(value, dtype=np.int64):
    return np.asarray(value, dtype)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def cumsum(shape, axis):
    return Case(
        f"CumSum {list(shape)} axis {axis}", normal(*shape),
        lambda i, o, p: [node("CumSum", [i[0], "axis"], [o])],
        lambda torch, w, x: torch.cumsum(x, axis), dict(axis=constant(axis)),
    )  # fmt: skip


def topk(rows, columns, count):
    def inputs(rng):
        values = np.stack([rng.permutation(columns) for _ in range(rows)])
        return [values.astype(np.float32)]

    return Case(
        f"TopK {count} of {columns}, {rows} rows", inputs,
        lambda i, o, p: [node("TopK", [i[0], "k"], [o, f"{p}indices"])],
        lambda torch, w, x: torch.topk(x, count).values, dict(k=constant([count])),
    )  # fmt: skip


def scatter_elements(rows, updates, columns, reduction):
    def inputs(rng):
        # Distinct places of a column where the last one wins in no order.
        if reduction == "none":
            places = np.stack([rng.permutation(rows)[:updates] for _ in range(columns)], 1)
        else:
            places = rng.integers(0, rows, (updates, columns))
        return [
            rng.standard_normal((rows, columns), np.float32), places.astype(np.int64),
            rng.standard_normal(places.shape, np.float32),
        ]  # fmt: skip

    def run(torch, w, x, i, u):
        return x.scatter_add(0, i, u) if reduction == "add" else x.scatter(0, i, u)

    return Case(
        f"ScatterElements {reduction} {updates}x{columns} into {rows}x{columns}", inputs,
        lambda i, o, p: [node("ScatterElements", i, [o], axis=0, reduction=reduction)], run,
    )  # fmt: skip


def scatter_nd(rows, updates, columns):
    inner = [columns] if columns else []

    def inputs(rng):
        return [
            rng.standard_normal([rows, *inner], np.float32),
            rng.integers(0, rows, (updates, 1)).astype(np.int64),
            rng.standard_normal([updates, *inner], np.float32),
        ]

    return Case(
        f"ScatterND add {updates} of {rows}" + f"x{columns}" * bool(columns), inputs,
        lambda i, o, p: [node("ScatterND", i, [o], reduction="add")],
        lambda torch, w, x, i, u: x.index_add(0, i[:, 0], u),
    )  # fmt: skip


def group_norm(channels, groups, size, precision):
    weights = dict(
        w0=weight(channels, channels, 3, 3, fan=9 * channels),
        w1=weight(channels, channels, 3, 3, fan=9 * channels),
        scale=weight(channels, fan=1), shift=weight(channels, fan=4),
    )  # fmt: skip

    def nodes(i, o, p):
        t = lambda name: p + name
        pads = dict(pads=[1, 1, 1, 1])
        return [
            node("Conv", [i[0], "w0"], [t("a")], **pads),
            node("GroupNormalization", [t("a"), "scale", "shift"], [t("b")], num_groups=groups),
            node("Sigmoid", [t("b")], [t("c")]), node("Mul", [t("b"), t("c")], [t("d")]),
            node("Conv", [t("d"), "w1"], [o], **pads),
        ]  # fmt: skip

    def run(torch, w, x):
        f = torch.nn.functional
        y = f.group_norm(f.conv2d(x, w["w0"], padding=1), groups, w["scale"], w["shift"])
        return f.conv2d(f.silu(y), w["w1"], padding=1)

    return Case(
        f"Conv, GroupNorm {channels}/{groups}, SiLU, Conv {size}x{size} {precision}",
        normal(1, channels, size, size), nodes, run, weights, precision,
    )  # fmt: skip


def conv_transpose(inner, outer, kernel, size, precision, **extra):
    weights = dict(w=weight(inner, outer, kernel, kernel, fan=inner * kernel))
    pads = 1 if kernel > 2 else 0
    return Case(
        f"ConvTranspose {inner}to{outer} k{kernel} s2 {size}x{size} {precision}",
        normal(1, inner, size, size),
        lambda i, o, p: [node("ConvTranspose", [i[0], "w"], [o], strides=[2, 2], pads=[pads] * 4)],
        lambda torch, w, x: torch.nn.functional.conv_transpose2d(x, w["w"], stride=2, padding=pads),
        weights, precision,
    )  # fmt: skip


def reduction(op, shape, axis, run, **attributes):
    return Case(
        f"{op} {list(shape)} axis {axis}", normal(*shape),
        lambda i, o, p: [node(op, [i[0]], [o], axis=axis, **attributes)], run,
    )  # fmt: skip


CASES = [
    cumsum((16000,), 0), cumsum((64000,), 0), cumsum((8, 512, 256), 1), cumsum((1024, 4096), 1),
    topk(1, 8400, 100), topk(32, 300, 10), topk(256, 64, 8), topk(64, 50257, 50),
    scatter_elements(1000, 5000, 64, "add"), scatter_elements(5000, 1000, 64, "none"),
    scatter_elements(100000, 50000, 64, "add"),
    scatter_nd(1000, 5000, 0), scatter_nd(1000, 500, 64),
    group_norm(320, 32, 32, "fp16"), group_norm(320, 32, 64, "fp16"), group_norm(64, 8, 32, "fp32"),
    conv_transpose(16, 3, 4, 64, "fp16"), conv_transpose(64, 64, 3, 32, "fp16"),
    conv_transpose(128, 64, 4, 16, "fp16"), conv_transpose(64, 32, 2, 64, "fp16"),
    conv_transpose(512, 256, 2, 64, "fp16"),
    reduction("ArgMax", (2048, 1000), 1, lambda torch, w, x: x.argmax(1, keepdim=True)),
    reduction("ArgMax", (1, 21, 512, 512), 1, lambda torch, w, x: x.argmax(1, keepdim=True)),
    reduction("ArgMax", (1, 50257), 1, lambda torch, w, x: x.argmax(1, keepdim=True)),
    reduction("Softmax", (2048, 1000), 1, lambda torch, w, x: x.softmax(1)),
    reduction("LogSoftmax", (2048, 1000), 1, lambda torch, w, x: x.log_softmax(1)),
]  # fmt: skip


def model(case: Case, arrays: list[list[np.ndarray]]) -> onnx.ModelProto:
    types = {np.dtype(np.float32): onnx.TensorProto.FLOAT, np.dtype(np.int64): onnx.TensorProto.INT64}
    nodes, inputs, outputs = [], [], []
    for copy, values in enumerate(arrays):
        names = [f"x{copy}_{i}" for i in range(len(values))]
        for name, value in zip(names, values):
            inputs.append(helper.make_tensor_value_info(name, types[value.dtype], value.shape))
        nodes += case.nodes(names, f"y{copy}", f"t{copy}_")
        kind = types[np.dtype(np.int64 if "ArgMax" in case.name else np.float32)]
        outputs.append(helper.make_tensor_value_info(f"y{copy}", kind, None))
    weights = [numpy_helper.from_array(value, name) for name, value in case.weights.items()]
    graph = helper.make_graph(nodes, "case", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def measure(case: Case, options, folder: Path) -> dict:
    import torch

    rng = np.random.default_rng(2)
    arrays = [case.inputs(rng) for _ in range(options.copies)]
    path, engine = folder / "case.onnx", folder / "case.engine"
    onnx.save(onnx.shape_inference.infer_shapes(model(case, arrays)), path)
    harness.compile_model(path, engine, target=options.target, precision=case.precision)
    dtype = torch.float16 if case.precision == "fp16" else torch.float32
    place = lambda v: (lambda t: t.to(dtype) if t.is_floating_point() else t)(torch.from_numpy(v).cuda())
    weights = {name: place(value) for name, value in case.weights.items()}
    placed = [[place(v) for v in values] for values in arrays]
    exact = {name: torch.from_numpy(value).cuda() for name, value in case.weights.items()}
    wants = [case.torch(torch, exact, *(torch.from_numpy(v).cuda() for v in values)) for values in arrays]
    peer = TorchGraph(lambda: [case.torch(torch, weights, *values) for values in placed], [])
    inputs = {f"x{c}_{i}": v for c, values in enumerate(arrays) for i, v in enumerate(values)}
    names = [f"y{c}" for c in range(options.copies)]
    got = harness.run_engine(engine, inputs, names, folder, device="cuda")
    error = max(scaled_error(w.float().cpu().numpy(), g.astype(np.float32)) for w, g in zip(wants, got))
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(charonia_latency(engine, inputs, device="cuda", seconds=options.seconds))
        theirs.append(peer.latency(options.seconds))
    a, b = (statistics.median(side) * 1e6 / options.copies for side in (ours, theirs))
    return dict(name=case.name, charonia_us=a, torch_us=b, ratio=b / a, error=error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="cases whose name contains one of these")
    add("--copies", type=int, default=8)
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=0.2)
    add("--target", default="sm_90a")
    add("--json", type=Path)
    options = parser.parse_args()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    cases = [c for c in CASES if not options.names or any(n in c.name for n in options.names)]
    records = []
    with tempfile.TemporaryDirectory(prefix="charonia-ops-") as name:
        for case in cases:
            try:
                record = measure(case, options, Path(name))
            except harness.CharoniaError as error:
                record = dict(name=case.name, failure=str(error))
                print(f"{case.name}: {error}", flush=True)
            else:
                print(f"{case.name}: {record['charonia_us']:.2f} {record['torch_us']:.2f} us "
                      f"{record['ratio']:.2f}x error {record['error']:.1e}", flush=True)
            records.append(record)
    done = [r for r in records if "ratio" in r]
    rows = [[r["name"], f"{r['charonia_us']:.2f}", f"{r['torch_us']:.2f}", f"{r['ratio']:.2f}",
             f"{r['error']:.1e}"] for r in done]  # fmt: skip
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}, medians of {options.rounds} rounds")
    print(harness.table(["case", "charonia us", "torch us", "ratio", "error"], rows))
    print(f"geometric mean {geomean(r['ratio'] for r in done):.2f}")
    harness.write_json(options.json, records)
    return int(len(done) != len(cases))


if __name__ == "__main__":
    sys.exit(main())
