"""The compact models against the committed reference outputs of ONNX Runtime."""

from __future__ import annotations

import re

import harness
import numpy as np
import pytest

FOLDER = harness.ROOT / "models/compact"
DIGITS = harness.ROOT / "models/digits"
NAMES = sorted(path.stem for path in FOLDER.glob("*.onnx"))
LIMIT = 1e-4  # of the largest value of the reference output


def cases(name: str):
    """case name -> (inputs, outputs), from NAME.npz."""
    found: dict[str, tuple[dict, dict]] = {}
    with np.load(FOLDER / f"{name}.npz") as data:
        for key in data.files:
            kind, case, tensor = key.split(".", 2)
            pair = found.setdefault(case, ({}, {}))
            pair[kind == "out"][tensor] = data[key]
    return found


def ranges(found) -> dict[str, list]:
    """The --shape of each input that covers all its cases."""
    shapes: dict[str, list] = {}
    for inputs, _ in found.values():
        for name, value in inputs.items():
            shapes.setdefault(name, []).append(value.shape)
    return {
        name: [
            dims[0] if len(set(dims)) == 1 else (min(dims), max(dims), max(dims))
            for dims in zip(*seen)
        ]
        for name, seen in shapes.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_compact_model(tmp_path, name):
    found = cases(name)
    assert len(found) >= 3
    engine = tmp_path / f"{name}.engine"
    harness.compile_model(FOLDER / f"{name}.onnx", engine, target="cpu", shapes=ranges(found))
    for case, (inputs, outputs) in found.items():
        got = harness.run_engine(engine, inputs, list(outputs), tmp_path / case)
        for (output, want), value in zip(outputs.items(), got):
            assert value.shape == want.shape and value.dtype == want.dtype
            scale = np.abs(want).max()
            error = np.abs(value - want).max() / scale
            assert error <= LIMIT, f"{case} {output}: error {error:.2e} of the scale"


def test_digits_accuracy(tmp_path):
    """The accuracy that models/digits/README.md states."""
    text = (DIGITS / "README.md").read_text()
    right, total = map(int, re.search(r"accuracy: (\d+) of (\d+)", text).groups())
    engine = tmp_path / "digits.engine"
    images = np.load(DIGITS / "test_images.npy")
    labels = np.load(DIGITS / "test_labels.npy")
    assert len(images) == len(labels) == total
    harness.compile_model(
        DIGITS / "digits.onnx", engine, shapes={"image": [(1, 1, 512), 1, 8, 8]}
    )
    (logits,) = harness.run_engine(engine, {"image": images}, ["logits"], tmp_path)
    assert int((logits.argmax(1) == labels).sum()) == right


def test_engine_bytes_are_reproducible(tmp_path):
    for name in ("a", "b"):
        harness.compile_model(DIGITS / "digits.onnx", tmp_path / f"{name}.engine")
    assert (tmp_path / "a.engine").read_bytes() == (tmp_path / "b.engine").read_bytes()
