#!/usr/bin/env python3
"""CPU speed beside TensorFlow's own kernels (oneDNN), in alternating rounds of one run.

    bench_tf.py FOLDER|FILE.pb... [--threads 2] [--rounds 5] [--json out.json]

Compiles each model at batch 1 and lets `charonia compare --with tensorflow` measure both
sides. A speed above 1 means that charonia is faster. models/export_keras.py makes models.
CHARONIA_PYTHON, or this interpreter, has tensorflow.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import harness
from latency import geomean


def measure(path: Path, options, folder: Path) -> dict:
    engine, report = folder / "m.engine", folder / "compare.json"
    harness.compile_model(path, engine, timeout=options.timeout)
    result = harness.invoke(
        "compare", path, engine, "--with", "tensorflow", "--threads", str(options.threads),
        "--rounds", str(options.rounds), "--duration", str(options.seconds), "--json", report,
        env={"CHARONIA_PYTHON": os.environ.get("CHARONIA_PYTHON", sys.executable)}, timeout=options.timeout,
    )  # fmt: skip
    if result.kind != "ok":
        raise harness.CharoniaError("compare", result)
    return json.loads(report.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="FOLDER|FILE.pb")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=2.0, help="length of each measurement")
    add("--timeout", type=float, default=900)
    add("--json", type=Path)
    options = parser.parse_args()
    rows, records = [], []
    for path in options.paths:
        with tempfile.TemporaryDirectory(prefix="charonia-bench-") as name:
            try:
                record = measure(path, options, Path(name))
            except harness.CharoniaError as error:
                print(f"{path.name}: {error}", flush=True)
                rows.append([path.name, "-", "-", "failed"])
                continue
        records.append(dict(record, model=path.name))
        rows.append([path.name, f"{record['charonia_ms']:.3f}", f"{record['peer_ms']:.3f}", f"{record['speed']:.2f}x"])
        print(" ".join(rows[-1]), flush=True)
    print(harness.table(["model", "charonia ms", "tensorflow ms", "speed"], rows))
    speeds = [r["speed"] for r in records]
    print(f"geometric mean {geomean(speeds):.2f}x, worst {min(speeds, default=float('nan')):.2f}x")
    harness.write_json(options.json, dict(threads=options.threads, models=records))
    return int(len(records) != len(options.paths))


if __name__ == "__main__":
    sys.exit(main())
