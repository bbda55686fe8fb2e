"""The classifier of examples/tensorflow_classifier: its accuracy, and TensorFlow's logits."""

from __future__ import annotations

from pathlib import Path

import harness
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "examples" / "tensorflow_classifier" / "digits"
DIGITS = ROOT / "models" / "digits"


def test_classifier(tmp_path: Path) -> None:
    images = np.load(DIGITS / "test_images.npy").reshape(-1, 8, 8, 1)
    labels = np.load(DIGITS / "test_labels.npy")
    want = np.load(MODEL / "logits.npy")
    result = harness.compile_model(MODEL, tmp_path / "m.engine", shapes={"image": ((1, 64, 512), 8, 8, 1)})
    assert "warning" not in result.stderr, result.stderr
    (got,) = harness.run_all_outputs(tmp_path / "m.engine", {"image": images}, tmp_path).values()
    assert got.shape == want.shape and got.dtype == want.dtype
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()
    assert (got.argmax(1) == labels).mean() == (want.argmax(1) == labels).mean() >= 0.97


def test_batch_norms_are_folded(tmp_path: Path) -> None:
    harness.compile_model(MODEL, tmp_path / "m.engine")
    listed = harness.invoke("inspect", tmp_path / "m.engine", "--kernels")
    assert listed.kind == "ok", listed.stderr
    kernels = [line for line in listed.stdout.splitlines() if "float32[image_dim0" in line]
    # The scaled image, four convolutions, the mean, the product.
    assert len(kernels) == 7, listed.stdout
    assert "sqrt" not in listed.stdout and "sub" not in listed.stdout, listed.stdout
