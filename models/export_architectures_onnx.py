#!/usr/bin/env python3
"""Exports the architectures of export_architectures.py as ONNX, by torch.onnx's exporter.

    export_architectures_onnx.py --output-dir DIR [LIBRARY | LIBRARY/NAME]...

A file is DIR/LIBRARY/NAME.onnx, beside NAME.npz with the inputs that it was traced with.
Batch (and length) are dynamic as far as the architecture and the exporter let them.
scripts/check_onnx.py compares engines of them with ONNX Runtime.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from pathlib import Path

import export_architectures as architectures
import numpy as np
import torch


def write(library: str, name: str, folder: Path) -> str:
    torch.manual_seed(0)
    model, sample, dims = architectures.MAKERS[library](name)
    path = folder / library / f"{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        exported, kind = architectures.export(model.eval(), sample, dims)
        program = torch.onnx.export(exported, dynamo=True, optimize=True, verbose=False)
        program.save(path)
    names = [value.name for value in program.model.graph.inputs]
    np.savez(path.with_suffix(".npz"), **{n: v.numpy() for n, v in zip(names, sample)})
    return kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="LIBRARY[/NAME]")
    parser.add_argument("--output-dir", type=Path, required=True)
    options = parser.parse_args()
    every = [f"{library}/{name}" for library, names in architectures.NAMES.items() for name in names]
    chosen = [n for n in every if not options.names or n in options.names or n.split("/")[0] in options.names]
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.backends.mha.set_fastpath_enabled(False)
    failed = 0
    for label in chosen:
        start = time.time()
        try:
            kind = write(*label.split("/"), options.output_dir)
            print(f"{label}: {kind}, {time.time() - start:.0f} s", flush=True)
        except Exception as error:  # noqa: BLE001: each model gets its line
            failed += 1
            print(f"{label}: NOT EXPORTED: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
