#!/usr/bin/env python3
"""Exports the models of zoo.py with torch.export, as .pt2 files.

    export_pt2.py --output-dir DIR [NAME...]      full-size models (default: all six)
    export_pt2.py --compact --output-dir DIR ...  the small ones
    export_pt2.py --core ...                      after run_decompositions(): core ATen

Needs torch, torchvision and transformers. A model NAME becomes DIR/NAME/model.pt2
and DIR/NAME/<input>.npy; batch and sequence length are dynamic.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import zoo

HERE = Path(__file__).resolve().parent


def export_program(spec: zoo.ModelSpec, module: torch.nn.Module):
    """The exported program of `module`, traced at batch 2 and 24 tokens."""
    arrays = zoo.sample_inputs(spec, 2, 24)
    args = tuple(torch.from_numpy(a) for a in arrays.values())
    shapes = zoo.dynamic_shapes(spec, module)
    return torch.export.export(module, args, dynamic_shapes=shapes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--compact", action="store_true")
    parser.add_argument("--core", action="store_true", help="core ATen operators")
    parser.add_argument("--output-dir", type=Path, default=HERE.parent / "build/models")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    # The fused multi-head attention of PyTorch's inference path hides the layer.
    torch.backends.mha.set_fastpath_enabled(False)
    table = zoo.COMPACT if options.compact else zoo.FULL
    for name in options.names or table:
        if name not in table:
            sys.exit(f"no model named {name!r}; there are: {', '.join(table)}")
        spec, start = table[name], time.time()
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = export_program(spec, zoo.build(spec))
            if options.core:
                program = program.run_decompositions()
        path = options.output_dir / name / "model.pt2"
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.export.save(program, path)
        for key, value in zoo.sample_inputs(spec, 1, spec.bench_sequence).items():
            np.save(path.parent / f"{key}.npy", value)
        nodes = sum(n.op == "call_function" for n in program.graph.nodes)
        print(
            f"{name}: {nodes} nodes, {path.stat().st_size / 1e6:.1f} MB, "
            f"{time.time() - start:.0f} s: {path}",
            flush=True,
        )


if __name__ == "__main__":
    main()
