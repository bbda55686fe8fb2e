#!/usr/bin/env python3
"""CPU speed beside ONNX Runtime, in alternating rounds of one run.

    bench_cpu.py --models DIR [NAME...] [--threads 2] [--rounds 5] [--json out.json]

Prints the median latency of each side over the rounds, the ratio, and the
geometric mean. A ratio above 1 means that charonia is faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import harness
from latency import charonia_latency, geomean, onnxruntime_latency
from model_subjects import (
    FULL, compact_models, full_models, make_inputs, scaled_error, shape_ranges,
    onnxruntime_session,
)  # fmt: skip

# Batch and sequence length that are measured.
SHAPES = {"bert-base": (1, 128), "gpt2": (1, 128)}


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"


def measure(subject, options, folder: Path) -> dict:
    batch, seq = SHAPES.get(subject.name, (1, 37 if "bert" in subject.name or "gpt" in subject.name else 0))
    if options.batch:
        batch = options.batch
    inputs = make_inputs(subject, batch, seq)
    engine = options.engines / f"{subject.name}.engine" if options.engines else None
    if engine is None or not engine.exists():
        engine = folder / f"{subject.name}.engine"
        harness.compile_model(
            subject.path, engine, precision=options.precision,
            shapes=shape_ranges(subject, (batch,), (seq,)),
        )  # fmt: skip
    session = onnxruntime_session(subject.path, options.threads)
    names = [o.name for o in session.get_outputs()]
    want = session.run(None, inputs)
    got = harness.run_engine(engine, inputs, names, folder)
    error = max(scaled_error(w, g) for w, g in zip(want, got))
    del session
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(
            charonia_latency(engine, inputs, threads=options.threads, seconds=options.seconds)
        )
        theirs.append(
            onnxruntime_latency(subject.path, inputs, threads=options.threads, seconds=options.seconds)
        )
    a, b = statistics.median(ours), statistics.median(theirs)
    return dict(
        model=subject.name, batch=batch, seq=seq, charonia_ms=a * 1e3,
        onnxruntime_ms=b * 1e3, ratio=b / a, error=error,
        charonia_rounds_ms=[v * 1e3 for v in ours],
        onnxruntime_rounds_ms=[v * 1e3 for v in theirs],
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--models", type=Path, default=os.environ.get("CHARONIA_MODELS"))
    add("--compact", action="store_true")
    add("--engines", type=Path, help="folder with NAME.engine files to use")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=2.0, help="length of each measurement")
    add("--batch", type=int, default=0)
    add("--precision")
    add("--json", type=Path)
    options = parser.parse_args()
    found = compact_models() if options.compact else []
    if options.models and not options.compact:
        found = full_models(Path(options.models))
    found = [s for s in found if not options.names or s.name in options.names]
    if not found:
        sys.exit(f"nothing to measure; models are {', '.join(FULL)}, in --models DIR")
    records, rows = [], []
    with tempfile.TemporaryDirectory(prefix="charonia-bench-") as name:
        for subject in found:
            try:
                record = measure(subject, options, Path(name))
            except harness.CharoniaError as error:
                print(f"{subject.name}: {error}", flush=True)
                records.append(dict(model=subject.name, failure=str(error)))
                rows.append([subject.name, "", "-", "-", "-", "failed"])
                continue
            records.append(record)
            shape = f"b{record['batch']}" + (f" s{record['seq']}" if record["seq"] else "")
            rows.append([
                subject.name, shape, f"{record['charonia_ms']:.3f}",
                f"{record['onnxruntime_ms']:.3f}", f"{record['ratio']:.2f}x",
                f"{record['error']:.1e}",
            ])  # fmt: skip
            print(" ".join(rows[-1]), flush=True)
    import onnxruntime

    print(f"\n{cpu_name()}, {options.threads} threads, fp32, {options.rounds} alternating rounds, "
          f"onnxruntime {onnxruntime.__version__}")
    print(harness.table(["model", "shape", "charonia ms", "onnxruntime ms", "speed", "error"], rows))
    ratios = [r["ratio"] for r in records if "ratio" in r]
    print(f"geometric mean {geomean(ratios):.2f}x, worst {min(ratios, default=float('nan')):.2f}x")
    harness.write_json(options.json, dict(cpu=cpu_name(), threads=options.threads, models=records))
    return int(len(ratios) != len(found))


if __name__ == "__main__":
    sys.exit(main())
