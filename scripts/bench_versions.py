#!/usr/bin/env python3
"""CPU speed of one build of charonia beside another's, in alternating rounds of one run.

    bench_versions.py OLD NEW [NAME...] --models DIR [--threads 2] [--rounds 9] [--json out.json]

OLD and NEW are `charonia` programs, each of which compiles the models and runs its own engines. The
least and the median latency of each over the rounds, and old / new of the least: above 1 the new
one is faster. Fails where a model's ratio is below --floor.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
from bench_cpu import SHAPES, cpu_name
from latency import geomean
from model_subjects import FULL, full_models, make_inputs, shape_ranges


def call(program: Path, *arguments) -> None:
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{program} {arguments[0]}: {result.stderr.strip()}")


def latency(program: Path, engine: Path, inputs: list[str], options) -> float:
    """Milliseconds: the median of the runs of one period."""
    report = engine.with_suffix(".json")
    call(program, "bench", engine, *inputs, "--threads", options.threads, "--duration", options.seconds,
         "--no-profile", "--json", report)  # fmt: skip
    return json.loads(report.read_text())["latency_ms"]["p50"]


def measure(subject, programs: dict[str, Path], options, folder: Path) -> dict[str, list[float]]:
    batch, seq = SHAPES.get(subject.name, (1, 0))
    shapes, inputs, engines = [], [], {}
    for name, dims in shape_ranges(subject, (batch,), (seq,)).items():
        shapes += ["--shape", f"{name}={harness.shape_text(dims)}"]
    for i, (name, value) in enumerate(make_inputs(subject, batch, seq).items()):
        harness.save_array(folder / f"{i}.npy", value)
        inputs += ["--input", f"{name}={folder / f'{i}.npy'}"]
    for key, program in programs.items():
        engines[key] = folder / f"{subject.name}-{key}.engine"
        call(program, "compile", subject.path, "-o", engines[key], "--target", "cpu",
             "--cache-dir", folder / f"cache-{key}", *shapes)  # fmt: skip
    rounds = {key: [] for key in programs}
    for number in range(options.rounds):
        order = list(programs) if number % 2 else list(reversed(programs))
        for key in order:
            rounds[key].append(latency(programs[key], engines[key], inputs, options))
    return rounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("old", type=Path)
    add("new", type=Path)
    add("names", nargs="*", metavar="NAME")
    add("--models", type=Path, default=os.environ.get("CHARONIA_MODELS"))
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=9)
    add("--seconds", type=float, default=1.0, help="length of each measurement")
    add("--floor", type=float, default=0.0)
    add("--json", type=Path)
    options = parser.parse_args()
    if not options.models:
        sys.exit(f"--models DIR has the models {', '.join(FULL)}")
    programs = {"old": options.old, "new": options.new}
    records, rows = [], []
    for subject in full_models(options.models):
        if options.names and subject.name not in options.names:
            continue
        with tempfile.TemporaryDirectory(prefix="charonia-bench-") as folder:
            rounds = measure(subject, programs, options, Path(folder))
        least = {key: min(values) for key, values in rounds.items()}
        middle = {key: statistics.median(values) for key, values in rounds.items()}
        ratio = least["old"] / least["new"]
        records.append(dict(model=subject.name, ratio=ratio, rounds_ms=rounds))
        rows.append([
            subject.name, f"{least['old']:.3f}", f"{least['new']:.3f}", f"{ratio:.3f}",
            f"{middle['old']:.3f}", f"{middle['new']:.3f}",
        ])  # fmt: skip
        print(" ".join(rows[-1]), flush=True)
    ratios = [r["ratio"] for r in records]
    print(f"\n{cpu_name()}, {options.threads} threads, fp32, {options.rounds} alternating rounds")
    print(harness.table(["model", "old ms", "new ms", "old/new", "old median", "new median"], rows))
    print(f"geometric mean {geomean(ratios):.3f}x, worst {min(ratios, default=float('nan')):.3f}x")
    harness.write_json(options.json, dict(cpu=cpu_name(), threads=options.threads, models=records))
    return int(any(r < options.floor for r in ratios))


if __name__ == "__main__":
    sys.exit(main())
