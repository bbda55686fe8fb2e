#!/usr/bin/env python3
"""Small graphs on a GPU beside PyTorch eager replayed as a CUDA graph, in one run.

    bench_gpu_ops.py [NAME...] [--copies 8] [--rounds 3] [--seconds 0.2] [--json out.json]

What has an order (scans, selections, scatters), normalizations of groups between
convolutions, transposed convolutions, and a large case of single operators of each family
(gpu_op_cases.py). A graph holds the case
several times, each on inputs of its own, so that the start of a run weighs little; times
are of one. A ratio above 1 means that charonia is faster. Every result is compared with
PyTorch's of the same inputs in fp32. Engines are compiled first, side by side. Needs PyTorch and an
NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
import numpy as np
import onnx
from gpu_op_cases import CASES, Case
from latency import TorchGraph, charonia_latency, geomean
from model_subjects import scaled_error
from onnx import helper, numpy_helper


def model(case: Case, arrays: list[list[np.ndarray]]) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype
    nodes, inputs, outputs = [], [], []
    for copy, values in enumerate(arrays):
        names = [f"x{copy}_{i}" for i in range(len(values))]
        for name, value in zip(names, values):
            inputs.append(helper.make_tensor_value_info(name, kind(value.dtype), value.shape))
        nodes += case.nodes(names, f"y{copy}", f"t{copy}_")
        result = case.result or float_type(case)
        outputs.append(helper.make_tensor_value_info(f"y{copy}", kind(np.dtype(result)), None))
    weights = [numpy_helper.from_array(in_precision(case, v), name) for name, v in case.weights.items()]
    graph = helper.make_graph(nodes, "case", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)


def float_type(case: Case) -> type:
    return np.float16 if case.precision == "fp16" else np.float32


def in_precision(case: Case, value: np.ndarray) -> np.ndarray:
    return value.astype(float_type(case)) if value.dtype == np.float32 else value


def copies_of(case: Case, options) -> list[list[np.ndarray]]:
    """Inputs of each copy; of large ones fewer, but more than a cache holds."""
    rng = np.random.default_rng(2)
    draw = lambda: [in_precision(case, v) for v in case.inputs(rng)]
    arrays = [draw()]
    count = (256 << 20) // sum(v.nbytes for v in arrays[0])
    return arrays + [draw() for _ in range(1, max(2, min(options.copies, count)))]


def compile_case(case: Case, folder: Path, options) -> str:
    """The error, if it fails."""
    folder.mkdir()
    onnx.save(onnx.shape_inference.infer_shapes(model(case, copies_of(case, options))), folder / "case.onnx")
    try:
        harness.compile_model(
            folder / "case.onnx", folder / "case.engine", target=options.target, precision=case.precision
        )
    except harness.CharoniaError as error:
        return str(error)
    return ""


def measure(case: Case, options, folder: Path) -> dict:
    import torch

    arrays, engine = copies_of(case, options), folder / "case.engine"
    copies = len(arrays)
    place = lambda v: torch.from_numpy(v).cuda()
    exactly = lambda v: (lambda t: t.float() if t.is_floating_point() else t)(place(v))
    weights = {name: place(in_precision(case, value)) for name, value in case.weights.items()}
    exact = {name: exactly(in_precision(case, value)) for name, value in case.weights.items()}
    placed = [[place(v) for v in values] for values in arrays]
    wants = [case.torch(torch, exact, *(exactly(v) for v in values)).float().cpu().numpy() for values in arrays]
    peer = TorchGraph(lambda: [case.torch(torch, weights, *values) for values in placed], [])
    inputs = {f"x{c}_{i}": v for c, values in enumerate(arrays) for i, v in enumerate(values)}
    got = harness.run_engine(engine, inputs, [f"y{c}" for c in range(copies)], folder, device="cuda")
    error = max(scaled_error(w, g.astype(np.float32)) for w, g in zip(wants, got))
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(charonia_latency(engine, inputs, device="cuda", seconds=options.seconds))
        theirs.append(peer.latency(options.seconds))
    a, b = (statistics.median(side) * 1e6 / copies for side in (ours, theirs))
    return dict(name=case.name, copies=copies, charonia_us=a, torch_us=b, ratio=b / a, error=error)


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
        folders = [Path(name) / re.sub(r"\W+", "_", case.name) for case in cases]
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool:
            failures = list(pool.map(lambda x: compile_case(*x, options), zip(cases, folders)))
        for case, folder, failure in zip(cases, folders, failures):
            try:
                if failure:
                    raise RuntimeError(failure)
                record = measure(case, options, folder)
            except (RuntimeError, harness.CharoniaError) as error:
                record = dict(name=case.name, failure=str(error))
                print(f"{case.name}: {error}", flush=True)
            else:
                print(f"{case.name}: {record['charonia_us']:.2f} {record['torch_us']:.2f} us "
                      f"{record['ratio']:.2f}x error {record['error']:.1e}", flush=True)
            records.append(record)
            shutil.rmtree(folder)
            torch.cuda.empty_cache()
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
