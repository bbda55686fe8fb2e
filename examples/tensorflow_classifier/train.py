#!/usr/bin/env python3
"""Trains a classifier of digits in Keras and exports it as a SavedModel.

    train.py [FOLDER]          default: digits, beside this file

Data: what models/digits/train.py uses, with the same images held out (they are
models/digits/test_images.npy). Beside the SavedModel lies logits.npy, TensorFlow's
results for them. Needs tensorflow-cpu, keras and scikit-learn; half a minute on one core.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parents[1] / "models" / "digits"
SEED = 7
EPOCHS = 30
REQUIRED_ACCURACY = 0.97


def build() -> keras.Model:
    image = keras.Input((8, 8, 1), name="image")
    x = layers.Rescaling(1 / 16)(image)
    for filters in (16, 32):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(48, 3, strides=2, padding="same", activation="relu")(x)
    x = layers.Dropout(0.4)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Dense(10, name="logits")(x))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "digits"
    keras.utils.set_random_seed(SEED)
    data = load_digits()
    images = data.images.astype(np.float32)[..., None]
    train_x, test_x, train_y, _ = train_test_split(
        images, data.target, test_size=0.2, stratify=data.target, random_state=SEED
    )
    held_out = np.load(DIGITS / "test_images.npy").reshape(-1, 8, 8, 1)
    labels = np.load(DIGITS / "test_labels.npy")
    assert np.array_equal(np.sort(test_x, 0), np.sort(held_out, 0)), "other images are held out"
    model = build()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(4e-3, EPOCHS * 23)), loss)
    model.fit(train_x, train_y, batch_size=64, epochs=EPOCHS, verbose=0)
    logits = model.predict(held_out, batch_size=len(held_out), verbose=0)
    accuracy = float((logits.argmax(1) == labels).mean())
    print(f"{model.count_params()} parameters, held-out accuracy {accuracy:.4f}")
    assert accuracy >= REQUIRED_ACCURACY
    shutil.rmtree(folder, ignore_errors=True)
    model.export(folder, verbose=False)
    # What no reader needs.
    (folder / "fingerprint.pb").unlink()
    shutil.rmtree(folder / "assets", ignore_errors=True)
    np.save(folder / "logits.npy", logits)


if __name__ == "__main__":
    main()
