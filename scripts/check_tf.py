#!/usr/bin/env python3
"""Checks TensorFlow's models against TensorFlow, on the CPU in fp32.

    check_tf.py FOLDER|FILE.pb...        SavedModels and frozen graphs; other folders
                                         are searched for such

Each is compiled once and run at two sizes of every open dimension. The peer is the
signature itself, or the graph from its placeholders to what nobody reads, run by
TensorFlow. The error is the largest absolute difference divided by the expected output's
largest value. Where it is too large, both are measured against the same graph in float64:
two sums of thousands of terms differ. Integers have to be equal. Needs tensorflow (tensorflow-cpu).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import harness
import numpy as np
from tensorflow_model import TensorFlowModel

LIMIT = 1e-4
# Of TensorFlow's own error, where that is above the limit. Of one image it says little:
# of 12 of an InceptionV3 ours was 0.2 to 8 times TensorFlow's, in 9 of them the smaller one.
FACTOR = 4
# What an open dimension is: the first of an input (batch), those of images and others.
BATCHES, LENGTHS, IMAGES = (1, 3), (7, 37), (96, 128)
# Indices stay below the least table that models here have.
MOST_INDEX = 80


class Subject:
    """One model: its function, its inputs by name, and the sizes to try."""

    def __init__(self, path: Path, signature: str):
        self.model = TensorFlowModel(path, signature)
        self.inputs = self.model.inputs

    def make_inputs(self, index: int, length: int | None) -> dict[str, np.ndarray]:
        rng = np.random.RandomState(7 + index)
        arrays = {}
        for name, spec in self.inputs.items():
            # [N, open, open, channels] is an image.
            lengths = IMAGES if len(spec.shape) == 4 else LENGTHS
            shape = [
                size if size is not None
                else BATCHES[index] if i == 0 else length or lengths[index]
                for i, size in enumerate(spec.shape)
            ]  # fmt: skip
            dtype = spec.dtype.as_numpy_dtype
            if np.issubdtype(dtype, np.integer):
                arrays[name] = rng.randint(0, MOST_INDEX, shape).astype(dtype)
            elif dtype == np.bool_:
                arrays[name] = rng.rand(*shape) < 0.7
            else:
                arrays[name] = rng.standard_normal(shape).astype(dtype)
        return arrays

    def reference(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        result = self.model.prepare(inputs)()
        return {name: value.numpy() for name, value in result.items()}


def beside_float64(exact: np.ndarray, found: np.ndarray, want: np.ndarray) -> str:
    """Right where not much further from the exact result than TensorFlow is, or than the limit."""
    ours, theirs = harness.scaled_error(exact, found), harness.scaled_error(exact, want)
    verdict = "ok" if ours <= max(LIMIT, FACTOR * theirs) else "TOO LARGE"
    return f"{verdict} (beside float64 {ours:.1e}, TensorFlow's own {theirs:.1e})"


def check(path: Path, options) -> list[list]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="charonia-tf-") as scratch:
        folder = Path(scratch)
        try:
            subject = Subject(path, options.signature)
            start = time.time()
            signature = ["--signature", options.signature] if options.signature else []
            harness.compile_model(path, folder / "m.engine", target=options.target,
                                  extra=signature + options.option, timeout=options.timeout)  # fmt: skip
            print(f"{path.name}: compiled in {time.time() - start:.1f} s", flush=True)
            for index in range(2):
                inputs = subject.make_inputs(index, options.length)
                got = harness.run_all_outputs(folder / "m.engine", inputs, folder)
                case = " ".join("x".join(map(str, v.shape)) for v in inputs.values())
                for name, want in subject.reference(inputs).items():
                    found = got.get(name)
                    is_same = found is not None and found.dtype == want.dtype
                    error = harness.scaled_error(want, found) if is_same else float("inf")
                    limit = LIMIT if want.dtype.kind == "f" else 0
                    verdict = "ok" if error <= limit else "TOO LARGE"
                    if is_same and limit and error > limit:
                        verdict = beside_float64(subject.model.run_float64(inputs)[name], found, want)
                    rows.append([path.name, case, name, f"{np.abs(want).max():.3g}",
                                 f"{error:.1e}", verdict])  # fmt: skip
        except Exception as error:  # noqa: BLE001: each model gets its row
            print(f"{path.name}: {str(error)[: options.words]}", flush=True)
            rows.append([path.name, "", "", "", "",
                         "FAILED: " + str(error).split("\n")[0][:120]])  # fmt: skip
    return rows


def find(path: Path) -> list[Path]:
    if (path / "saved_model.pb").exists() or path.is_file():
        return [path]
    return sorted(p.parent if p.name == "saved_model.pb" else p for p in path.rglob("*.pb")
                  if p.name in ("saved_model.pb", p.parent.name + ".pb") or p.parent.name in ("frozen", "lowered"))  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="FOLDER|FILE.pb")
    parser.add_argument("--signature", default="")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--words", type=int, default=2000, help="of a failure's message")
    parser.add_argument("--length", type=int, help="of open dimensions but the batch")
    parser.add_argument("--option", action="append", default=[], help="of charonia compile")
    options = parser.parse_args()
    rows = [row for path in options.paths for model in find(path) for row in check(model, options)]
    print(harness.table(["model", "inputs", "output", "scale", "error", ""], rows))
    return not all(row[-1].startswith("ok") for row in rows)


if __name__ == "__main__":
    sys.exit(main())
