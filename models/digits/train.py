#!/usr/bin/env python3
"""Trains the digit classifier and writes digits.onnx and the held-out test set.

Data: the 1797 images of 8x8 pixels that scikit-learn carries (from the UCI
Optical Recognition of Handwritten Digits set); a fifth of each class is held out
and never seen in training. Needs torch, scikit-learn, onnx and onnxruntime.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 7
EPOCHS = 60
BATCH = 64
REQUIRED_ACCURACY = 0.97


class Digits(nn.Module):
    """Two convolutions with batch normalization, a pool, two linear layers."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.4),
            nn.Linear(32 * 4 * 4, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )

    def forward(self, image):
        return self.classifier(self.features(image * (1 / 16)))


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Moves each image by at most one pixel in each direction."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    dy, dx = torch.randint(0, 3, (2, len(images)), generator=generator)
    rows = (dy[:, None] + torch.arange(8))[:, None, :, None]
    columns = (dx[:, None] + torch.arange(8))[:, None, None, :]
    return padded[torch.arange(len(images))[:, None, None, None], 0, rows, columns]


def train(images: np.ndarray, labels: np.ndarray) -> nn.Module:
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    model = Digits()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(x), generator=generator)
        total = 0.0
        for rows in order.split(BATCH):
            logits = model(augment(x[rows], generator))
            loss = nn.functional.cross_entropy(logits, y[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}: loss {total / len(x):.4f}")
    return model.eval()


def export(model: nn.Module, path: Path) -> None:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # PRESERVE keeps BatchNormalization nodes: folding them is the compiler's job.
        torch.onnx.export(
            model, torch.zeros(2, 1, 8, 8), buffer, dynamo=False, opset_version=17,
            training=torch.onnx.TrainingMode.PRESERVE,
            input_names=["image"], output_names=["logits"],
            dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
        )  # fmt: skip
    proto = onnx.load_from_string(buffer.getvalue())
    for node in proto.graph.node:
        node.doc_string = ""
    proto.producer_version = ""
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, path)


def main() -> None:
    torch.set_num_threads(1)  # the order of additions, and so the result, is fixed
    data = load_digits()
    images = data.images.astype(np.float32)[:, None]
    labels = data.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.2, random_state=SEED, stratify=labels
    )
    model = train(train_x, train_y)
    path = HERE / "digits.onnx"
    export(model, path)
    np.save(HERE / "test_images.npy", test_x)
    np.save(HERE / "test_labels.npy", test_y)

    runner = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (logits,) = runner.run(None, {"image": test_x})
    right = int((logits.argmax(1) == test_y).sum())
    print(f"held-out accuracy: {right}/{len(test_y)} = {right / len(test_y):.2%}")
    if right < REQUIRED_ACCURACY * len(test_y):
        raise SystemExit(f"below the required {REQUIRED_ACCURACY:.0%}")


if __name__ == "__main__":
    main()
