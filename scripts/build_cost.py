#!/usr/bin/env python3
"""What building and loading engines costs: time, peak memory, size.

    build_cost.py --models DIR [NAME...] [--target cpu,sm_90] [--json out.json]

Peak memory is the largest resident set of the compiler's process, beside the bound
of twice the weights + 500 MB; the page cache of memory-mapped weight files counts
in it. Loading is compared with reading the engine file's bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import harness
from model_subjects import (
    FULL, compact_models, full_models, shape_ranges,
)  # fmt: skip

TIME_LIMIT = 60.0
LOAD_LIMIT = 0.1
EXTRA_MEMORY = 500e6


def weight_bytes(path: Path) -> int:
    return sum(f.stat().st_size for f in path.parent.glob(path.name + "*"))


def load_seconds(engine: Path, repeat: int = 5) -> float:
    """`inspect` loads and checks the engine without running it."""
    times = []
    for _ in range(repeat):
        result = harness.invoke("inspect", engine, "--json")
        if result.kind != "ok":
            raise harness.CharoniaError("inspect", result)
        times.append(result.seconds)
    return min(times)


def read_seconds(path: Path) -> float:
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(16 << 20)
        while file.readinto(buffer):
            pass
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--models", type=Path, default=os.environ.get("CHARONIA_MODELS"))
    add("--compact", action="store_true")
    add("--target", default="cpu")
    add("--precision")
    add("--json", type=Path)
    options = parser.parse_args()
    found = compact_models() if options.compact else []
    if options.models and not options.compact:
        found = full_models(Path(options.models))
    found = [s for s in found if not options.names or s.name in options.names]
    if not found:
        sys.exit(f"nothing to build; models are {', '.join(FULL)}, in --models DIR")
    rows, records, good = [], [], True
    with tempfile.TemporaryDirectory(prefix="charonia-cost-") as name:
        folder = Path(name)
        for subject in found:
            engine = folder / "model.engine"
            shapes = shape_ranges(subject, (1, 8), (1, 128))
            arguments = ["compile", subject.path, "-o", engine, "--target", options.target]
            arguments += ["--cache-dir", folder / "cache" / subject.name]
            if options.precision:
                arguments += ["--precision", options.precision]
            for key, dims in shapes.items():
                arguments += ["--shape", f"{key}={harness.shape_text(dims)}"]
            # The first build finds an empty kernel cache, the second a full one.
            cold = harness.invoke(*arguments)
            if cold.kind != "ok":
                print(f"{subject.name}: {cold.kind}: {cold.message}", flush=True)
                rows.append([subject.name, *["-"] * 7, "failed"])
                records.append(dict(model=subject.name, failure=cold.message))
                good = False
                continue
            warm = harness.invoke(*arguments)
            weights = weight_bytes(subject.path)
            allowed = 2 * weights + EXTRA_MEMORY
            load = load_seconds(engine)
            read = read_seconds(engine)
            targets = len(options.target.split(","))
            fine = (
                cold.seconds <= TIME_LIMIT * targets and cold.peak_bytes <= allowed
                and load <= LOAD_LIMIT + read
            )  # fmt: skip
            good &= fine
            rows.append([
                subject.name, f"{weights / 1e6:.1f}", f"{cold.seconds:.1f}",
                f"{warm.seconds:.1f}", f"{cold.peak_bytes / 1e6:.0f}", f"{allowed / 1e6:.0f}",
                f"{engine.stat().st_size / 1e6:.1f}", f"{load * 1e3:.0f}",
                "ok" if fine else "OVER",
            ])  # fmt: skip
            records.append(dict(
                model=subject.name, weights=weights, seconds=cold.seconds,
                cached_seconds=warm.seconds, peak=cold.peak_bytes, allowed=allowed,
                engine=engine.stat().st_size, load_seconds=load, read_seconds=read,
            ))  # fmt: skip
            print(" ".join(rows[-1]), flush=True)
            engine.unlink()
    header = ["model", "weights MB", "build s", "cached s", "peak MB", "allowed MB",
              "engine MB", "load ms", "verdict"]
    print(f"\ntarget {options.target}, {os.cpu_count()} cores; load is a whole `inspect` process")
    print(harness.table(header, rows))
    harness.write_json(options.json, records)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
