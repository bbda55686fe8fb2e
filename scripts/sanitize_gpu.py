#!/usr/bin/env python3
"""Runs the compact models under compute-sanitizer's memcheck and racecheck.

    sanitize_gpu.py [NAME...] [--tools memcheck,racecheck] [--precision fp16]

Exit status 0: clean; 1: errors found; 77: the tool does not work on this machine
(some hosts forbid it to containers; then try on another).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
from model_subjects import compact_models, dims_of, make_inputs, shape_ranges

# What the tool prints when it cannot attach to the device.
REFUSED = re.compile(
    r"(?i)device not supported|unable to (?:initialize|find)|permission|"
    r"failed to (?:initialize|connect)|not supported on this (?:device|platform)"
)


def check(subject, tool: str, engine: Path, options, folder: Path) -> tuple[str, str]:
    has_sequence = any("seq" in dims_of(info) for info in subject.input_infos())
    inputs = make_inputs(subject, 2, 9 if has_sequence else 0)
    arguments = ["run", str(engine), "--device", "cuda", "--output-dir", str(folder / "out")]
    for index, (name, value) in enumerate(inputs.items()):
        path = folder / f"in{index}.npy"
        harness.save_array(path, value)
        arguments += ["--input", f"{name}={path}"]
    done = subprocess.run(
        [options.sanitizer, "--tool", tool, "--error-exitcode", "99", "--print-limit", "5",
         str(harness.binary()), *arguments],
        capture_output=True, text=True, timeout=options.timeout,
    )  # fmt: skip
    text = done.stdout + done.stderr
    found = re.search(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", text)
    if found is None and (done.returncode or REFUSED.search(text)):
        return "unusable", text.strip()[-600:]
    count = int(next((g for g in found.groups() if g), 0)) if found else 0
    if done.returncode == 0 and count == 0 and found:
        return "clean", ""
    return "errors", text.strip()[-3000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--tools", default="memcheck,racecheck")
    add("--precision", default="fp16")
    add("--target", default="sm_90a")
    add("--sanitizer", default=shutil.which("compute-sanitizer")
        or "/usr/local/cuda/bin/compute-sanitizer")
    add("--timeout", type=float, default=300)
    options = parser.parse_args()
    if not Path(options.sanitizer).exists():
        print("compute-sanitizer is not installed")
        return 77
    rows, states = [], set()
    with tempfile.TemporaryDirectory(prefix="charonia-sanitize-") as name:
        folder = Path(name)
        for subject in compact_models():
            if options.names and subject.name not in options.names:
                continue
            engine = folder / f"{subject.name}.engine"
            harness.compile_model(
                subject.path, engine, target=options.target, precision=options.precision,
                shapes=shape_ranges(subject, (1, 2, 8), (1, 9, 64)),
            )  # fmt: skip
            for tool in options.tools.split(","):
                state, text = check(subject, tool, engine, options, folder)
                states.add(state)
                rows.append([subject.name, tool, state])
                print(f"{subject.name} {tool}: {state}\n{text}", flush=True)
                if state == "unusable":
                    return 77
    print(harness.table(["model", "tool", "result"], rows))
    return int("errors" in states)


if __name__ == "__main__":
    sys.exit(main())
