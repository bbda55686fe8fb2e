#!/usr/bin/env python3
"""Makes the models of tests/e2e/tf (needs tensorflow, keras and tf_keras).

    tf_cases.py [NAME...]

Each case is a function of operators with awkward attributes, a small Keras model, or
one of the forms that files have: a SavedModel, or graph.pb and graph.pbtxt; options.txt
has what `charonia compile` is told.
Its inputs, of other sizes than those that it was traced at, and TensorFlow's results lie
beside the model's files: in.npz, out.npz. What no reader needs is left out.
The cases are in tensorflow_cases, by family.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from tensorflow_cases import control, images, numbers, shapes  # noqa: F401
from tensorflow_cases.common import CASES, FROZEN, Weights, draw, freeze, frozen_name, write_arrays
from tensorflow_cases.files import FILES
from tensorflow_cases.models import MODELS

FOLDER = Path(__file__).resolve().parent / "tf"


def save_frozen(folder: Path, function, specs, arrays) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "graph.pb").write_bytes(freeze(function, False))
    feeds = draw({s.name: s for s in specs}, arrays)
    results = function(*(tf.constant(feeds[s.name]) for s in specs))
    write_arrays(folder, feeds, {frozen_name(i): results[k].numpy() for i, k in enumerate(sorted(results))})


def save(name: str, model, function=None, specs=(), arrays=None) -> None:
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    if function is None:
        rng = np.random.RandomState(5)
        for w in model.weights:
            w.assign(rng.uniform(0.3, 0.9, w.shape))
        # Keras 2 has no verbosity to set; its save() adds functions for training.
        model.export(folder, **({} if name.startswith("keras2") else {"verbose": False}))
    else:
        tf.saved_model.save(model, folder, signatures={"serving_default": function})
    (folder / "fingerprint.pb").unlink()
    shutil.rmtree(folder / "assets", ignore_errors=True)
    loaded = tf.saved_model.load(str(folder))
    signature = loaded.signatures["serving_default"]
    feeds = draw(signature.structured_input_signature[1], arrays or {})
    results = signature(**{k: tf.constant(v) for k, v in feeds.items()})
    write_arrays(folder, feeds, {k: v.numpy() for k, v in results.items()})


def main() -> None:
    for name in sys.argv[1:] or [*CASES, *MODELS, *FILES]:
        tf.keras.utils.set_random_seed(0)
        if name in FILES:
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            (FOLDER / name).mkdir(parents=True)
            FILES[name](FOLDER / name)
            for extra in ("fingerprint.pb", "assets"):
                path = FOLDER / name / extra
                path.unlink(missing_ok=True) if path.suffix else shutil.rmtree(path, ignore_errors=True)
            continue
        if name in MODELS:
            save(name, MODELS[name]())
            continue
        function, specs, arrays = CASES[name]
        module = Weights()
        sample = [tf.cast(tf.ones([3 if d is None else d for d in s.shape]), s.dtype) for s in specs]
        function(module, *[tf.constant(arrays[s.name], s.dtype) if s.name in arrays else v
                           for s, v in zip(specs, sample)])  # fmt: skip
        bound = tf.function(lambda *a, f=function, m=module: f(m, *a), input_signature=specs)
        if name in FROZEN:
            save_frozen(FOLDER / name, bound, specs, arrays)
        else:
            save(name, module, bound, specs, arrays)


if __name__ == "__main__":
    main()
