#!/usr/bin/env python3
"""GPU speed beside PyTorch eager replayed as a CUDA graph, in one run.

    bench_gpu.py --models DIR [NAME...] [--precision fp16] [--rounds 5] [--json out.json]
    bench_gpu.py --gemm [4096x4096x4096,...]      one GEMM beside cuBLAS

Needs PyTorch, transformers and torchvision (models/zoo.py builds the modules) and
an NVIDIA GPU. A ratio above 1 means that charonia is faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import harness
import numpy as np
import onnx
from latency import TorchGraph, charonia_latency, geomean
from model_subjects import FULL, full_models, make_inputs, scaled_error, shape_ranges
from onnx import TensorProto, helper

# Batch and sequence length of each measurement.
SHAPES = {"bert-base": (1, 128), "gpt2": (1, 512)}
GEMMS = "4096x4096x4096,2048x2048x2048,1024x1024x1024,128x3072x768,128x768x3072,1x4096x4096"


def torch_dtype(precision: str):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    return dict(fp16=torch.float16, bf16=torch.bfloat16).get(precision, torch.float32)


def rounds(engine, inputs, peer: TorchGraph, options) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(
            charonia_latency(engine, inputs, device="cuda", seconds=options.seconds)
        )
        theirs.append(peer.latency(options.seconds))
    return ours, theirs


def bench_model(subject, options, folder: Path) -> dict:
    import torch
    import zoo

    batch, seq = SHAPES.get(subject.name, (1, 0))
    batch = options.batch or batch
    inputs = make_inputs(subject, batch, seq)
    engine = options.engines / f"{subject.name}.engine" if options.engines else None
    if engine is None or not engine.exists():
        engine = folder / f"{subject.name}.engine"
        harness.compile_model(
            subject.path, engine, target=options.target, precision=options.precision,
            shapes=shape_ranges(subject, (batch,), (seq,)),
        )  # fmt: skip
    dtype = torch_dtype(options.precision)
    exact = zoo.build(zoo.FULL[subject.name])
    torch.set_num_threads(os.cpu_count() or 1)
    with torch.no_grad():
        reference = exact(*(torch.from_numpy(v) for v in inputs.values()))
    module = exact.to("cuda", dtype)
    tensors = [torch.from_numpy(v).cuda() for v in inputs.values()]
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    peer = TorchGraph(module, tensors)
    peer.graph.replay()
    torch.cuda.synchronize()
    results = peer.outputs if isinstance(peer.outputs, tuple) else (peer.outputs,)
    reference = reference if isinstance(reference, tuple) else (reference,)
    names = list(zoo.FULL[subject.name].outputs)
    got = harness.run_engine(engine, inputs, names, folder, device="cuda")
    wants = [r.numpy() for r in reference]
    error = max(scaled_error(w, g.astype(np.float32)) for w, g in zip(wants, got))
    torch_error = max(scaled_error(w, r.float().cpu().numpy()) for w, r in zip(wants, results))
    ours, theirs = rounds(engine, inputs, peer, options)
    a, b = statistics.median(ours), statistics.median(theirs)
    return dict(
        name=subject.name, shape=f"b{batch}" + (f" s{seq}" if seq else ""),
        charonia_ms=a * 1e3, torch_ms=b * 1e3, ratio=b / a,
        error=error, torch_error=torch_error,
    )  # fmt: skip


def bench_gemm(text: str, options, folder: Path) -> dict:
    """C = A·Wᵀ, all of the measured precision, W a weight of the model."""
    import torch

    m, n, k = map(int, text.split("x"))
    dtype = torch_dtype(options.precision)
    kinds = dict(fp16=(TensorProto.FLOAT16, np.float16))
    kind, array_type = kinds.get(options.precision, (TensorProto.FLOAT, np.float32))
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((n, k)) * k**-0.5).astype(array_type)
    node = helper.make_node("Gemm", ["a", "w"], ["c"], transB=1)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "gemm", [info("a", kind, [m, k])], [info("c", kind, [m, n])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path, engine = folder / f"{text}.onnx", folder / f"{text}.engine"
    onnx.save(model, path)
    harness.compile_model(path, engine, target=options.target, precision=options.precision)
    a = rng.standard_normal((m, k)).astype(array_type)
    left = torch.from_numpy(a).cuda().to(dtype)
    right = torch.from_numpy(weight).cuda().to(dtype)
    peer = TorchGraph(lambda x: torch.matmul(x, right.t()), [left])
    (got,) = harness.run_engine(engine, {"a": a}, ["c"], folder, device="cuda")
    exact = left.double() @ right.double().t()
    want = exact.float().cpu().numpy()
    peer.graph.replay()
    torch.cuda.synchronize()
    ours, theirs = rounds(engine, {"a": a}, peer, options)
    x, y = statistics.median(ours), statistics.median(theirs)
    return dict(
        name=f"gemm {text}", shape=f"{2e-12 * m * n * k / x:.0f} TFLOP/s",
        charonia_ms=x * 1e3, torch_ms=y * 1e3, ratio=y / x,
        error=scaled_error(want, got.astype(np.float32)),
        torch_error=scaled_error(want, peer.outputs.float().cpu().numpy()),
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--models", type=Path, default=os.environ.get("CHARONIA_MODELS"))
    add("--engines", type=Path, help="folder with NAME.engine files to use")
    add("--gemm", nargs="?", const=GEMMS, help="MxNxK,...")
    add("--precision", default="fp16")
    add("--target", default="sm_90a")
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=1.0)
    add("--batch", type=int, default=0)
    add("--json", type=Path)
    options = parser.parse_args()
    import torch

    work = []
    if options.models and not (options.gemm and not options.names):
        found = [s for s in full_models(Path(options.models))
                 if not options.names or s.name in options.names]
        work += [(s.name, bench_model, s) for s in found]
    if options.gemm:
        work += [(text, bench_gemm, text) for text in options.gemm.split(",")]
    if not work:
        sys.exit(f"nothing to measure; models are {', '.join(FULL)}, in --models DIR")
    records, rows = [], []
    with tempfile.TemporaryDirectory(prefix="charonia-bench-") as name:
        for title, function, subject in work:
            try:
                record = function(subject, options, Path(name))
            except harness.CharoniaError as error:
                print(f"{title}: {error}", flush=True)
                records.append(dict(name=title, failure=str(error)))
                rows.append([title, "", "-", "-", "-", "-", "failed"])
                continue
            records.append(record)
            rows.append([
                record["name"], record["shape"], f"{record['charonia_ms']:.4f}",
                f"{record['torch_ms']:.4f}", f"{record['ratio']:.2f}x",
                f"{record['error']:.1e}", f"{record['torch_error']:.1e}",
            ])  # fmt: skip
            print(" ".join(rows[-1]), flush=True)
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.precision}, "
          f"{options.rounds} alternating rounds; torch replays a CUDA graph")
    header = ["", "shape", "charonia ms", "torch ms", "speed", "error", "torch error"]
    print(harness.table(header, rows))
    ratios = [r["ratio"] for r in records if "ratio" in r]
    print(f"geometric mean {geomean(ratios):.2f}x, worst {min(ratios, default=float('nan')):.2f}x")
    harness.write_json(options.json, dict(device=torch.cuda.get_device_name(), results=records))
    return int(len(ratios) != len(work))


if __name__ == "__main__":
    sys.exit(main())
