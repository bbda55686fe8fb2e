#!/usr/bin/env python3
"""Checks ONNX models against ONNX Runtime at three sizes, on the CPU in fp32.

    check_onnx.py FILE.onnx|FOLDER...        folders are searched

Each is compiled once. Sizes that the model leaves open take three values; inputs are like
those of NAME.npz beside the file, where there is one: integers stay below its largest,
masks have padded rows; sizes of images are its own and 32 less and more. Floats are multiples of 1/32. The error is the largest absolute
difference divided by the expected output's largest value. Exits 1 unless all are right.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import harness
import numpy as np
import onnx
import onnxruntime

LIMIT = 1e-4
BATCHES, LENGTHS = (1, 3, 2), (5, 37, 12)
DEFAULT_HIGH = 100


class Subject:
    def __init__(self, path: Path):
        self.path = path
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        beside = path.with_suffix(".npz")
        self.examples = dict(np.load(beside)) if beside.exists() else {}
        model = onnx.load(path, load_external_data=False)
        given = {i.name for i in model.graph.initializer}
        self.inputs = {
            i.name: (onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type),
                     [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim])
            for i in model.graph.input if i.name not in given
        }  # fmt: skip

    def settings(self) -> list[dict[str, int]]:
        """By name of a size."""
        batches = {dims[0] for _, dims in self.inputs.values() if dims}
        symbols = {d for _, dims in self.inputs.values() for d in dims if isinstance(d, str)}
        cases = [
            {s: (BATCHES if s in batches else LENGTHS)[i] for s in sorted(symbols)} for i in range(3)
        ]  # fmt: skip
        for name, (_, dims) in self.inputs.items():
            example = self.examples.get(name)
            for axis in range(2, len(dims) if example is not None and len(dims) >= 4 else 0):
                if isinstance(dims[axis], str):
                    for case, step in zip(cases, (-32, 32, 0)):
                        case[dims[axis]] = example.shape[axis] + step * (axis - 1)
        return cases if symbols else cases[:1]

    def make_inputs(self, sizes: dict[str, int], seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return {
            name: array_like(rng, [sizes.get(d, d) for d in dims], dtype, self.examples.get(name))
            for name, (dtype, dims) in self.inputs.items()
        }


def array_like(rng, shape, dtype, example) -> np.ndarray:
    high = DEFAULT_HIGH if example is None or example.dtype.kind not in "iu" else int(example.max(initial=0))
    return harness.draw_input(rng, shape, dtype, high)


def check(path: Path, options) -> list[list]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="charonia-onnx-") as scratch:
        folder = Path(scratch)
        try:
            start = time.time()
            harness.compile_model(path, folder / "m.engine", target=options.target, timeout=options.timeout)
            seconds = time.time() - start
            subject = Subject(path)
            names = [o.name for o in subject.session.get_outputs()]
            for seed, sizes in enumerate(subject.settings()):
                inputs = subject.make_inputs(sizes, seed)
                want = subject.session.run(names, inputs)
                got = harness.run_engine(folder / "m.engine", inputs, names, folder / str(seed))
                errors = [harness.scaled_error(w, g) for w, g in zip(want, got)]
                case = " ".join(f"{k}={v}" for k, v in sizes.items())
                verdict = "ok" if max(errors) <= LIMIT else "TOO LARGE"
                rows.append([path.stem, f"{seconds:.1f}", case, f"{max(errors):.1e}", verdict])
        except Exception as error:  # noqa: BLE001: each file gets its row
            print(f"{path.stem}: {str(error)[: options.words]}", flush=True)
            rows.append([path.stem, "", "", "", "FAILED: " + str(error).split("\n")[0][:120]])
    print(f"{path.stem}: {rows[-1][-1]}", flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE|FOLDER")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--words", type=int, default=2000, help="of a failure's message")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = [f for p in options.paths for f in (sorted(p.rglob("*.onnx")) if p.is_dir() else [p])]
    rows = [row for file in files for row in check(file, options)]
    print(harness.table(["model", "compile s", "sizes", "error", "verdict"], rows))
    failed = sorted({row[0] for row in rows if row[-1] != "ok"})
    print(f"{len(files) - len(failed)} of {len(files)} right")
    harness.write_json(options.json, rows)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
