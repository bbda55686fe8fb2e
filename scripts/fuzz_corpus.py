#!/usr/bin/env python3
"""Writes what the fuzzers start from.

    fuzz_corpus.py import DIR     one small ONNX model for each operator and two opsets
    fuzz_corpus.py pytorch DIR    exported programs, and their texts
    fuzz_corpus.py engine DIR     manifests of small engines, for CPU and GPU
    fuzz_corpus.py tensorflow-graph | -text | -savedmodel | -bundle DIR
                                  that file of the models in tests/e2e/tf

Always the same files for the same compiler. Inputs that once failed are kept in
tests/fuzz/<fuzzer> and are used besides.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path

import harness

sys.path[:0] = [str(harness.ROOT / "tests/e2e")]

import fixed_test
import onnx
import op_model
from op_cases import REGISTRY

OPSETS = (13, 24)
LARGEST = 4096  # bytes of a model: longer ones are slow to change in every place
MANIFEST = 1  # the kind of section, runtime/engine/Engine.h


def write_models(folder: Path) -> int:
    count = 0
    for opset in OPSETS:
        for op in sorted(o for o in REGISTRY if REGISTRY[o].since <= opset):
            for index in range(20):
                drawn = op_model.draw(op, opset, 1, index)
                data = op_model.Pack([drawn]).model.SerializeToString()
                if len(data) <= LARGEST:
                    (folder / f"{op}-{opset}.onnx").write_bytes(data)
                    count += 1
                    break
    for name, text in fixed_test.MODELS.items():
        onnx.save(fixed_test.parse(text), folder / f"{name}.onnx")
    return count + len(fixed_test.MODELS)


def write_programs(folder: Path) -> int:
    """Files that are small enough, and the texts of all."""
    count = 0
    for path in sorted((harness.ROOT / "tests/e2e/pt2").glob("*.pt2")):
        with zipfile.ZipFile(path) as file:
            [entry] = [n for n in file.namelist() if "/models/" in n]
            text = file.read(entry)
        for name, data in ((path.name, path.read_bytes()), (path.stem + ".json", text)):
            if len(data) <= 4 * LARGEST:
                (folder / name).write_bytes(data)
                count += 1
    return count


# What each fuzzer of TensorFlow's models takes (tests/frontends/CMakeLists.txt).
TENSORFLOW_FILES = {"graph": "graph.pb", "text": "graph.pbtxt", "savedmodel": "saved_model.pb",
                    "bundle": "variables/variables.index"}


def write_tensorflow(file: str, folder: Path) -> int:
    count = 0
    for path in sorted((harness.ROOT / "tests/e2e/tf").glob(f"*/{file}")):
        if path.stat().st_size <= 8 * LARGEST:
            name = path.relative_to(harness.ROOT / "tests/e2e/tf").parts[0]
            (folder / name).write_bytes(path.read_bytes())
            count += 1
    return count


def manifest_of(engine: bytes) -> bytes:
    """docs/engine-format.md: 64 bytes of header, 64 for each section."""
    (sections,) = struct.unpack_from("<I", engine, 12)
    for number in range(sections):
        kind, _, offset, size = struct.unpack_from("<IIQQ", engine, 64 + 64 * number)
        if kind == MANIFEST:
            return engine[offset : offset + size]
    raise ValueError("an engine without a manifest")


def write_manifests(folder: Path) -> int:
    models = {k: fixed_test.parse(v) for k, v in fixed_test.MODELS.items()}
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        path, engine = Path(scratch, "m.onnx"), Path(scratch, "m.engine")
        for name, model in models.items():
            onnx.save(model, path)
            for target in ("cpu", "sm_80"):
                harness.compile_model(path, engine, target=target)
                (folder / f"{name}-{target}").write_bytes(manifest_of(engine.read_bytes()))
                count += 1
    return count


WRITERS = {"import": write_models, "pytorch": write_programs, "engine": write_manifests}
WRITERS |= {f"tensorflow-{kind}": partial(write_tensorflow, file) for kind, file in TENSORFLOW_FILES.items()}


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in WRITERS:
        sys.exit(__doc__)
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{folder}: {WRITERS[sys.argv[1]](folder)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
