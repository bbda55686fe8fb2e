#!/usr/bin/env python3
"""Exports the architectures of export_architectures.py as ONNX, by torch.onnx's exporter.

    export_architectures_onnx.py --output-dir DIR [LIBRARY | LIBRARY/NAME]...

A file is DIR/LIBRARY/NAME.onnx, beside NAME.npz with the inputs that it was traced with.
Batch, length, and of convolutional networks height and width are dynamic as far as the
architecture and the exporter let them.
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
from torch.export import Dim

# Networks of images of any size.
ANY_SIZE = {
    "torchvision": (
        "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "fcn_resnet50", "googlenet", "mnasnet0_5",
        "mobilenet_v2", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnext50_32x4d",
        "shufflenet_v2_x0_5", "squeezenet1_1",
    ),
    "timm": (
        "convmixer_768_32", "convnextv2_atto", "cspdarknet53", "densenet121", "dla34", "dpn68", "efficientnet_b0",
        "fastvit_t8", "ghostnet_100", "hgnetv2_b0", "hrnet_w18_small", "inception_next_tiny", "lcnet_050",
        "mobilenetv4_conv_small", "mobileone_s0", "nf_resnet50", "poolformer_s12", "regnety_002", "repvit_m0_9",
        "res2net50_14w_8s", "resnest14d", "rexnet_100", "seresnet50", "skresnet18", "xception41",
    ),
}  # fmt: skip


def export(library: str, name: str, model, sample, dims):
    """As dynamic as it can be had, and what that is called."""
    if name in ANY_SIZE.get(library, ()):
        height, width = (Dim(n, min=64, max=512) for n in ("height", "width"))
        shapes = ({0: architectures.BATCH, 2: height, 3: width},)
        for kind, wanted in (("sizes", shapes), ("auto sizes", architectures.automatic(shapes))):
            try:
                return torch.export.export(model, sample, dynamic_shapes=wanted), kind
            except Exception:  # noqa: BLE001: whatever it is, fewer sizes are tried
                continue
    return architectures.export(model, sample, dims)


def write(library: str, name: str, folder: Path) -> str:
    torch.manual_seed(0)
    model, sample, dims = architectures.MAKERS[library](name)
    path = folder / library / f"{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        exported, kind = export(library, name, model.eval(), sample, dims)
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
