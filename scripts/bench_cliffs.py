#!/usr/bin/env python3
"""Graphs whose kernels once did their work many times over, on the CPU beside ONNX Runtime.

    bench_cliffs.py [NAME...] [--before PROGRAM] [--model M.onnx]... [--threads 2]
                    [--rounds 5] [--seconds 0.3] [--json out.json]

The table of the review that found them, diffusion U-Nets and decoders of images in small, and
models of one's own (with inputs in M.npz, else of fixed sizes). PROGRAM is a `charonia` of before. Sides run in
alternating rounds; a side's time is the least of all its runs. Above 1 charonia is faster.
Prints seconds to compile without the kernel cache and the largest difference, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
import numpy as np
import onnx
from bench_cpu import cpu_name
from bench_ops import difference
from latency import SESSIONS, geomean, onnxruntime_latency
from onnx_graph import Model

# A program of before may take minutes.
LIMIT_S = 300


def normalized(channels, groups, size):
    """A block of Stable Diffusion: convolution, group normalization, SiLU, convolution."""
    m = Model()
    y = m.conv(m.input("x", 1, channels, size, size), channels, channels)
    return m, m.conv(m.silu(m.group_norm(y, channels, groups)), channels, channels)


def concatenated():
    m = Model()
    y = m.node("Concat", m.input("x", 1, 64, 32, 32), m.input("z", 1, 32, 32, 32), axis=1)
    return m, m.conv(m.silu(m.group_norm(y, 96, 8)), 32, 96)


def before_product():
    m = Model()
    y = m.group_norm(m.conv(m.input("x", 1, 32, 16, 16), 64, 32, 1), 64, 8)
    y = m.node("Transpose", m.node("Reshape", y, m.constant([1, 64, 256], np.int64)), perm=[0, 2, 1])
    return m, m.node("MatMul", y, m.weight(64, 64))


def assigned():
    """x[:, :, 1:, 1:] += r; softmax(x, -1) as torch.export writes it."""
    m = Model()
    x, r = m.input("x", 1, 1, 129, 129), m.input("r", 1, 1, 128, 128)
    ends = [m.constant(v, np.int64) for v in ([1, 1], [129, 129], [2, 3])]
    part = m.node("Add", m.node("Slice", x, *ends), r)
    rows = m.constant(np.arange(1, 129)[:, None], np.int64)
    inner = m.node("Slice", x, *(m.constant(v, np.int64) for v in ([1], [129], [2])))
    side = m.node("ScatterND", m.node("Transpose", inner, perm=[3, 0, 1, 2]), rows, m.node("Transpose", part, perm=[3, 0, 1, 2]))
    turned = m.node("Transpose", m.node("Transpose", side, perm=[1, 2, 3, 0]), perm=[2, 0, 1, 3])
    y = m.node("ScatterND", m.node("Transpose", x, perm=[2, 0, 1, 3]), rows, turned)
    return m, m.node("Softmax", m.node("Transpose", y, perm=[1, 2, 0, 3]), axis=-1)


def one(op, *shape, constants=(), **attributes):
    m = Model()
    x = m.input("x", *shape)
    return m, m.node(op, x, *(m.constant(c, np.asarray(c).dtype) for c in constants), **attributes)


def scattered(elements: bool):
    m = Model()
    rows = m.rng.integers(0, 1000, (5000, 1))
    x, u = m.input("x", 1000, 64), m.input("u", 5000 if elements else 500, 64)
    if elements:
        return m, m.node("ScatterElements", x, m.constant(np.broadcast_to(rows, (5000, 64)), np.int64), u, axis=0, reduction="add")
    return m, m.node("ScatterND", x, m.constant(rows[:500], np.int64), u, reduction="add")


def chosen(count, length):
    m = Model()
    x = m.input("x", 1, length)
    m.nodes.append(onnx.helper.make_node("TopK", [x, m.constant([count], np.int64)], ["values", "places"]))
    return m, "values"


def transposed(channels, outputs, size, kernel, stride):
    m = Model()
    pad = (kernel - stride) // 2
    x = m.input("x", 1, channels, size, size)
    return m, m.node("ConvTranspose", x, m.weight(channels, outputs, kernel, kernel), strides=[stride] * 2, pads=[pad] * 4)


def grouped(channels, groups, size, kernel=3):
    m = Model()
    return m, m.conv(m.input("x", 1, channels, size, size), channels, channels, kernel, group=groups)


def residual(m, x, channels, outputs, groups=32):
    y = m.conv(m.silu(m.group_norm(x, channels, groups)), outputs, channels)
    y = m.conv(m.silu(m.group_norm(y, outputs, groups)), outputs, outputs)
    return m.node("Add", y, x if channels == outputs else m.conv(x, outputs, channels, 1))


def attention(m, x, channels, size, groups=32):
    """Of pixels, with one head, as decoders of images have it."""
    y = m.node("Reshape", m.group_norm(x, channels, groups), m.constant([1, channels, -1], np.int64))
    y = m.node("Transpose", y, perm=[0, 2, 1])
    q, k, v = (m.node("MatMul", y, m.weight(channels, channels)) for _ in range(3))
    scores = m.node("MatMul", q, m.node("Transpose", k, perm=[0, 2, 1]))
    p = m.node("Softmax", m.node("Mul", scores, m.constant(np.float32(channels**-0.5))), axis=-1)
    y = m.node("MatMul", m.node("MatMul", p, v), m.weight(channels, channels))
    y = m.node("Reshape", m.node("Transpose", y, perm=[0, 2, 1]), m.constant([1, channels, size, size], np.int64))
    return m.node("Add", y, x)


def enlarged(m, x, channels):
    y = m.node("Resize", x, "", m.constant([1, 1, 2, 2], np.float32), mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    return m.conv(y, channels, channels)


def unet(widths=(64, 128, 256), size=32):
    m = Model()
    x = m.conv(m.input("x", 1, 4, size, size), widths[0], 4)
    skips, channels = [(x, widths[0])], widths[0]
    for level, width in enumerate(widths):
        for _ in range(2):
            x, channels = residual(m, x, channels, width), width
            skips.append((x, channels))
        if level + 1 < len(widths):
            x, size = m.conv(x, width, width, strides=[2, 2]), size // 2
            skips.append((x, channels))
    x = residual(m, attention(m, residual(m, x, channels, channels), channels, size), channels, channels)
    for level, width in reversed(list(enumerate(widths))):
        for _ in range(3):
            skip, more = skips.pop()
            x, channels = residual(m, m.node("Concat", x, skip, axis=1), channels + more, width), width
        if level:
            x = enlarged(m, x, channels)
    return m, m.conv(m.silu(m.group_norm(x, channels, 32)), 4, channels)


def decoder(widths=(256, 128, 64), size=16):
    """Of a variational autoencoder: latents of 4 channels to an image."""
    m = Model()
    channels = widths[0]
    x = m.conv(m.input("x", 1, 4, size, size), channels, 4)
    x = residual(m, attention(m, residual(m, x, channels, channels), channels, size), channels, channels)
    for level, width in enumerate(widths):
        for _ in range(2):
            x, channels = residual(m, x, channels, width), width
        if level + 1 < len(widths):
            x = enlarged(m, x, channels)
    return m, m.conv(m.silu(m.group_norm(x, channels, 32)), 3, channels)


CASES = {
    "Conv, GN 64/8, SiLU, Conv 32x32": lambda: normalized(64, 8, 32),
    "Conv, GN 96/8, SiLU, Conv 32x32": lambda: normalized(96, 8, 32),
    "Conv, GN 256/32, SiLU, Conv 28x28": lambda: normalized(256, 32, 28),
    "Conv, GN 320/32, SiLU, Conv 32x32": lambda: normalized(320, 32, 32),
    "Concat 64+32, GN 96/8, SiLU, Conv": concatenated,
    "Conv 1x1, GN 64/8, Transpose, MatMul": before_product,
    "slice assignment, softmax 129x129": assigned,
    "CumSum of 16,000": lambda: one("CumSum", 16000, constants=[np.int64(0)]),
    "CumSum of 64,000": lambda: one("CumSum", 64000, constants=[np.int64(0)]),
    "ScatterElements add, 5000x64": lambda: scattered(True),
    "ScatterND add, 500 rows of 64": lambda: scattered(False),
    "TopK 100 of 8400": lambda: chosen(100, 8400),
    "ConvTranspose 16 to 3, k4 s2, 64x64": lambda: transposed(16, 3, 64, 4, 2),
    "ConvTranspose 64 to 32, k2 s2, 64x64": lambda: transposed(64, 32, 64, 2, 2),
    "depthwise 31x31, 64 channels, 56x56": lambda: grouped(64, 64, 56, 31),
    "3x3 in groups of 8, 64 channels, 56x56": lambda: grouped(64, 8, 56),
    "3x3 in groups of 16, 64 channels, 56x56": lambda: grouped(64, 4, 56),
    "diffusion U-Net 64-128-256, 32x32": unet,
    "decoder of images 256-128-64, 16x16 to 64x64": decoder,
}  # fmt: skip


def foreign(path: Path):
    """A model of the user's, with the inputs of M.npz, or random ones of its sizes."""
    model, rng, kinds = onnx.load(path), np.random.default_rng(3), {1: np.float32, 7: np.int64, 6: np.int32, 9: np.bool_}
    weights = {w.name for w in model.graph.initializer}
    given = path.with_suffix(".npz")
    if given.exists():
        return path, dict(np.load(given)), [o.name for o in model.graph.output]
    feeds = {}
    for value in (v for v in model.graph.input if v.name not in weights):
        tensor = value.type.tensor_type
        if tensor.elem_type not in kinds:
            sys.exit(f"{path}: input {value.name} has elements of a kind that this script does not make")
        dims = [d.dim_value for d in tensor.shape.dim]
        if 0 in dims:
            sys.exit(f"{path}: input {value.name} has open sizes: put inputs into {given.name} beside it")
        made = rng.standard_normal(dims) if tensor.elem_type == 1 else rng.integers(0, 2, dims)
        feeds[value.name] = made.astype(kinds[tensor.elem_type])
    return path, feeds, [o.name for o in model.graph.output]


def compiled(program: Path, model: Path, engine: Path, feeds) -> float | None:
    """Seconds, or nothing where there is no engine in time."""
    shapes = [a for k, v in feeds.items() for a in ("--shape", f"{k}={harness.shape_text(v.shape)}")] if feeds else []
    start = time.monotonic()
    command = [program, "compile", model, "-o", engine, "--target", "cpu", "--cache-dir", engine.with_suffix(".cache"), *shapes]
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        print(done.stderr.strip()[:300], file=sys.stderr)
        return None
    return time.monotonic() - start


def least(program: Path, engine: Path, arrays: list[str], options) -> float:
    report = engine.with_suffix(".json")
    command = [program, "bench", engine, *arrays, "--threads", options.threads, "--duration", options.seconds, "--no-profile", "--json", report]
    subprocess.run([str(c) for c in command], check=True, capture_output=True, timeout=LIMIT_S)
    return json.loads(report.read_text())["latency_ms"]["min"]


def measure(name: str, path: Path, feeds, outputs, programs: dict[str, Path], options, folder: Path) -> dict:
    row = dict(name=name)
    arrays = []
    for index, (key, value) in enumerate(feeds.items()):
        harness.save_array(folder / f"{index}.npy", value)
        arrays += ["--input", f"{key}={folder / f'{index}.npy'}"]
    engines = {key: folder / f"{key}.engine" for key in programs}
    for key, program in programs.items():
        row[f"{key}_compile_s"] = compiled(program, path, engines[key], feeds)
    SESSIONS.clear()
    row["onnxruntime_ms"] = onnxruntime_latency(path, feeds, threads=options.threads, seconds=0.01, of=min) * 1e3
    if row["now_compile_s"] is not None:
        got = harness.run_engine(engines["now"], feeds, outputs, folder / "run")
        row["difference"] = difference(list(SESSIONS[(str(path), options.threads)].outputs().values()), got)
    for _ in range(options.rounds):
        for key, program in programs.items():
            if row[f"{key}_compile_s"] is not None:
                ms = least(program, engines[key], arrays, options)
                row[f"{key}_ms"] = min(row.get(f"{key}_ms", ms), ms)
        theirs = onnxruntime_latency(path, feeds, threads=options.threads, seconds=options.seconds, of=min) * 1e3
        row["onnxruntime_ms"] = min(row["onnxruntime_ms"], theirs)
    return row


def line(row: dict, keys) -> str:
    def text(value, digits):
        return "none" if value is None else f"{value:.{digits}g}"

    cells = [row["name"], *(text(row.get(f"{key}_ms"), 3) for key in keys), text(row["onnxruntime_ms"], 3)]
    ratio = row["onnxruntime_ms"] / row["now_ms"] if "now_ms" in row else None
    cells += [text(ratio, 3), *(text(row[f"{key}_compile_s"], 2) for key in keys), text(row.get("difference"), 2)]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of cases")
    parser.add_argument("--before", type=Path, metavar="PROGRAM")
    parser.add_argument("--model", type=Path, action="append", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    programs = {"before": options.before} if options.before else {}
    programs["now"] = harness.binary()
    print(f"{cpu_name()}, {options.threads} threads, fp32, {options.rounds} alternating rounds, least, load {os.getloadavg()[0]:.1f}\n")
    print("| graph | " + "".join(f"{key} ms | " for key in programs) + "ONNX Runtime ms | ratio | " + "".join(f"{key} compile s | " for key in programs) + "difference |")
    print("| --- |" + " ---: |" * (2 * len(programs) + 3), flush=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="charonia-cliffs-") as name:
        folder = Path(name)
        chosen_cases = [k for k in CASES if not options.names or any(n in k for n in options.names)]
        for case in chosen_cases + options.model:
            if isinstance(case, Path):
                path, feeds, outputs = foreign(case)
            else:
                model, output = CASES[case]()
                path, feeds, outputs = folder / "m.onnx", model.feeds, [output]
                onnx.save(model.proto(output), path)
            rows.append(measure(str(getattr(case, "stem", case)), path, feeds, outputs, programs, options, folder))
            print(line(rows[-1], programs), flush=True)
    ratios = [r["onnxruntime_ms"] / r["now_ms"] for r in rows if "now_ms" in r]
    if ratios:
        print(f"\n{len(ratios)} graphs: geometric mean {geomean(ratios):.2f}, least {min(ratios):.2f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if len(ratios) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
