#!/usr/bin/env python3
"""The same engines on the same inputs by charonia-simt and by a GPU, bit for bit.

    simt_beside_gpu.py --prepare DIR     where charonia and charonia-simt are: needs no GPU
    simt_beside_gpu.py --compare DIR     where a GPU and charonia are: needs numpy alone

DIR holds engines, inputs and charonia-simt's results in between, some megabytes. Cases
are the compact models and a random case of every operator, of fp32 and fp16.

A case is exact where its kernels hold nothing whose rounding is the hardware's own or
ptxas' choice: approximate functions, products of tensor cores, operations that may be
contracted. Then all sums are in an order that the kernel defines, and results have to be the
same bit for bit. Of others the largest difference is told, in ulps of the output's largest
value in the program's precision, and has to be within LIMITS.
Exit status 0 if all is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# Ulps of the largest value: bits of the precision's mantissa, and how many.
BITS = {"fp32": 23, "fp16": 10}
LIMITS = {"fp32": 64, "fp16": 8}
INEXACT = re.compile(r"\.approx\.|div\.full|\bmma\b|mma_async")
# A product and a sum that ptxas may make one operation, which rounds once.
PRODUCT = re.compile(r"\b(mulf|fmul) .*contract")
SUM = re.compile(r"\b(addf|subf|fadd|fsub) .*contract")


def is_exact(kernel: str) -> bool:
    contracts = PRODUCT.search(kernel) and SUM.search(kernel)
    return not contracts and not INEXACT.search(kernel)


class Writer:
    """Compiles cases, runs them by charonia-simt, and keeps what --compare takes."""

    def __init__(self, folder: Path, target: str):
        self.folder, self.target = folder, target
        self.cases: list[dict] = []
        self.failures: list[str] = []

    def add(self, name: str, model: Path, precision: str, shapes, runs) -> None:
        """`runs`: the inputs of each run, by name."""
        import harness

        engine = self.folder / "engines" / f"{name}.engine"
        engine.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as temporary:
            dump = Path(temporary) / "dump"
            try:
                harness.compile_model(
                    model, engine, target=self.target, precision=precision, shapes=shapes,
                    extra=["--no-cache"], dump=dump,
                )  # fmt: skip
                for number, inputs in enumerate(runs):
                    self.run(f"{name}.{number}", engine, dump, precision, inputs)
            except harness.CharoniaError as error:
                self.failures.append(f"{name}: {error}")

    def run(self, name: str, engine: Path, dump: Path, precision: str, inputs) -> None:
        import harness

        files = {}
        for index, (key, value) in enumerate(inputs.items()):
            path = self.folder / "inputs" / f"{name}.{index}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            harness.save_array(path, value)
            files[key] = path
        out = self.folder / "simt" / name
        arguments = [engine, "--dump-dir", dump, "--output-dir", out]
        for key, path in files.items():
            arguments += ["--input", f"{key}={path}"]
        result = harness.invoke(*arguments, program="charonia-simt")
        if result.kind != "ok":
            raise harness.CharoniaError("run", result)
        kernels = [k.read_text() for k in dump.glob("*cuda-code/*/*-thread.mlir")]
        relative = lambda path: str(path.relative_to(self.folder))
        self.cases.append(
            dict(name=name, precision=precision, engine=relative(engine), simt=relative(out),
                 inputs={k: relative(p) for k, p in files.items()},
                 exact=all(map(is_exact, kernels)))
        )  # fmt: skip


def prepare(options) -> int:
    sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "scripts")]
    import compact_test
    import onnx
    import op_model
    from op_cases import REGISTRY

    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    writer = Writer(options.folder.resolve(), options.target)

    def compact(name: str, precision: str) -> None:
        found = compact_test.cases(name)
        smallest = min(found, key=lambda c: sum(v.size for v in found[c][0].values()))
        writer.add(
            f"{name}-{precision}", compact_test.FOLDER / f"{name}.onnx", precision,
            compact_test.ranges(found), [found[smallest][0]],
        )  # fmt: skip

    def operator(op: str, precision: str) -> None:
        drawn = op_model.draw(op, max(21, REGISTRY[op].since), options.seed, 0)
        drawn.round_to(precision)
        try:
            op_model.ask_oracle(drawn)
        except ValueError:
            return  # no case by any reading of the operator
        pack = op_model.Pack([drawn])
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "model.onnx"
            onnx.save(pack.model, path)
            runs = [pack.run_inputs(run) for run in range(pack.run_count())]
            writer.add(f"{op}-{precision}", path, precision, pack.shapes, runs)

    jobs = []
    for precision in LIMITS:
        jobs += [(compact, name, precision) for name in compact_test.NAMES]
        jobs += [(operator, op, precision) for op in options.op or sorted(REGISTRY)]
    if options.op:
        jobs = [job for job in jobs if job[0] is operator]
    with ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(*job) for job in jobs]:
            future.result()
    writer.cases.sort(key=lambda case: case["name"])
    (writer.folder / "cases.json").write_text(json.dumps(writer.cases, indent=1))
    size = sum(f.stat().st_size for f in writer.folder.rglob("*") if f.is_file())
    exact = sum(case["exact"] for case in writer.cases)
    print(f"{len(writer.cases)} cases, {exact} of them exact, {size / 1e6:.1f} MB")
    for failure in writer.failures:
        print(f"not prepared: {failure}")
    return 0 if writer.cases and not writer.failures else 1


def load(path: Path) -> tuple[np.ndarray, int]:
    """A tensor, and the bits of its type's mantissa. NumPy has no bfloat16."""
    value = np.load(path)
    if value.dtype == np.dtype("V2"):
        return (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32), 7
    return value, np.finfo(value.dtype).nmant if value.dtype.kind == "f" else 0


def ulps(want: np.ndarray, got: np.ndarray, bits: int) -> float:
    """The largest difference, in units of the last of `bits` bits of the largest value."""
    if want.dtype.kind != "f":
        return float("inf")
    a, b = want.astype(np.float64), got.astype(np.float64)
    known = np.isfinite(a)
    if not np.array_equal(np.where(known, 0, a), np.where(known, 0, b), equal_nan=True):
        return float("inf")
    largest = np.abs(a[known]).max(initial=0)
    unit = 2.0 ** (np.floor(np.log2(largest)) - bits) if largest else 2.0**-149
    return float(np.abs(a[known] - b[known]).max(initial=0) / unit)


def same_bits(want: np.ndarray, got: np.ndarray) -> bool:
    """All NaN are one."""
    if want.dtype.kind != "f":
        return np.array_equal(want, got)
    bits = lambda x: np.where(np.isnan(x), np.nan, x).astype(x.dtype).tobytes()
    return bits(want) == bits(got)


def compare(options) -> int:
    folder = options.folder.resolve()
    cases = json.loads((folder / "cases.json").read_text())
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary)
        batch = [
            dict(engine=str(folder / case["engine"]), output_dir=str(out / case["name"]),
                 inputs={k: str(folder / v) for k, v in case["inputs"].items()})
            for case in cases
        ]  # fmt: skip
        (out / "batch.json").write_text(json.dumps(batch))
        sys.path.insert(0, str(ROOT / "scripts"))
        import harness

        process = subprocess.run(
            [harness.binary(), "run", "--batch", out / "batch.json", "--device", options.device],
            capture_output=True, text=True,
        )  # fmt: skip
        lines = [json.loads(line) for line in process.stdout.splitlines()]
        if len(lines) != len(cases):
            print(process.stderr, file=sys.stderr)
            return 1
        return report(folder, out, cases, lines)


def report(folder: Path, out: Path, cases, lines) -> int:
    failures, equal, worst = [], {True: 0, False: 0}, {}
    for case, line in zip(cases, lines):
        if not line["ok"]:
            failures.append(f"{case['name']}: {line['error']}")
            continue
        same, most = True, 0.0
        for file in sorted((folder / case["simt"]).glob("*.npy")):
            (want, bits), (got, _) = load(file), load(out / case["name"] / file.name)
            if want.shape != got.shape or want.dtype != got.dtype:
                same, most = False, float("inf")
            elif not same_bits(want, got):
                same = False
                most = max(most, ulps(want, got, min(bits, BITS[case["precision"]])))
        equal[case["exact"]] += same
        if not case["exact"]:
            worst[case["precision"]] = max(
                worst.get(case["precision"], (0.0, "")), (most, case["name"])
            )
        if not same and (case["exact"] or most > LIMITS[case["precision"]]):
            kind = "exact, but " if case["exact"] else ""
            failures.append(f"{case['name']}: {kind}{most:.3g} ulps apart")
    exact = sum(case["exact"] for case in cases)
    devices = {line.get("device") for line in lines if line["ok"]}
    print(f"on {', '.join(map(str, devices))}: of {exact} exact cases {equal[True]} are equal bit "
          f"for bit, of {len(cases) - exact} others {equal[False]}")  # fmt: skip
    for precision, (most, name) in sorted(worst.items()):
        print(f"{precision}: at most {most:.3g} ulps apart ({name}), {LIMITS[precision]} allowed")
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prepare", type=Path, dest="prepare", metavar="DIR")
    what.add_argument("--compare", type=Path, dest="compare", metavar="DIR")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--device", default="cuda", help="of charonia run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", type=lambda t: t.split(","), help="these operators alone")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.folder = options.prepare or options.compare
    return prepare(options) if options.prepare else compare(options)


if __name__ == "__main__":
    sys.exit(main())
