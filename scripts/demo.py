#!/usr/bin/env python3
"""The demo: compiles the digit classifier, classifies the held-out images, and
prints accuracy and latency beside ONNX Runtime in the same run.

    demo.py [--rounds 5] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import harness
import numpy as np
import onnxruntime
from latency import charonia_latency, onnxruntime_latency

FOLDER = harness.ROOT / "models/digits"


def picture(image: np.ndarray) -> list[str]:
    shades = " .:-=+*#%@"
    return ["".join(shades[int(v * 9 / 16)] * 2 for v in row) for row in image]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for engine and outputs")
    options = parser.parse_args()
    images = np.load(FOLDER / "test_images.npy")
    labels = np.load(FOLDER / "test_labels.npy")
    model = FOLDER / "digits.onnx"
    with tempfile.TemporaryDirectory(prefix="charonia-demo-") as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        engine = folder / "digits.engine"
        built = harness.compile_model(
            model, engine, shapes={"image": [(1, 1, 512), 1, 8, 8]}
        )
        size = engine.stat().st_size
        print(f"compiled {model.name} in {built.seconds:.1f} s: {engine} ({size / 1e3:.0f} kB)")
        (ours,) = harness.run_engine(engine, {"image": images}, ["logits"], folder)
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        (theirs,) = session.run(None, {"image": images})

        for row in zip(*(picture(images[i, 0]) for i in range(4))):
            print("   ".join(row))
        said = "   ".join(f"said {ours[i].argmax()}, is {labels[i]}".ljust(16) for i in range(4))
        print(said)

        rows = []
        for batch in (1, len(images)):
            inputs = {"image": np.ascontiguousarray(images[:batch])}
            mine, other = [], []
            for _ in range(options.rounds):  # alternating, so drift hits both alike
                mine.append(charonia_latency(engine, inputs, threads=options.threads, seconds=0.2))
                other.append(onnxruntime_latency(model, inputs, threads=options.threads, seconds=0.2))
            a, b = np.median(mine), np.median(other)
            rows.append([f"batch {batch}", f"{a * 1e6:.1f}", f"{b * 1e6:.1f}", f"{b / a:.2f}x"])
    mine_right, their_right = ((v.argmax(1) == labels).sum() for v in (ours, theirs))
    print(f"\nheld-out images: {len(labels)}")
    print(f"accuracy: charonia {mine_right / len(labels):.2%}, onnxruntime {their_right / len(labels):.2%}")
    error = np.abs(ours - theirs).max() / np.abs(theirs).max()
    print(f"largest difference of the logits: {error:.1e} of their scale")
    print(f"\nlatency in microseconds, {options.threads} thread(s), median of {options.rounds} rounds:")
    print(harness.table(["", "charonia", "onnxruntime", "speed"], rows))
    return int(mine_right < 0.97 * len(labels) or error > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
