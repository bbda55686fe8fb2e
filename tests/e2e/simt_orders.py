"""Orders in which charonia-simt runs threads, and lets copies arrive that are under way; what its report has to say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import harness
import numpy as np
import onnx
import pytest

# Seeds of the threads' order, and when copies arrive.
ORDERS = [(0, "late"), (1, "seeded"), (2, "early")]


def save_of_batch(model: onnx.ModelProto, path: Path, batch: int) -> tuple[list[int], dict | None]:
    """Saves a model of one input `x`, and gives the shape to run it at and those to compile it for. `batch`: of 1 to 8, at
    which the model is open then, and compiled for 2; 0: the model's own."""
    dims = model.graph.input[0].type.tensor_type.shape.dim
    shape = [d.dim_value for d in dims]
    shapes = {"x": ["1..2..8", *shape[1:]]} if batch else None
    if batch:
        dims[0].dim_param = "n"
        shape[0] = batch
    onnx.save(model, path)
    return shape, shapes


def in_orders(engine, inputs, folder: Path, dump, orders=ORDERS, output="y", report=None) -> Iterator[np.ndarray]:
    """What one run in each order gives, of the engine whose programs lie in `dump`."""
    for seed, copies in orders:
        extra = ["--seed", str(seed), "--copies", copies, *(["--report", report] if report else [])]
        (got,) = harness.run_engine(engine, inputs, [output], folder / "run", device="simt", dump=dump, extra=extra)
        yield got


def check_finds(dump: Path, pattern: str, text: str, finding: str, run: Callable[[], None]) -> None:
    """An attention's program in which `text` takes the place of each `pattern` does not run without this finding."""
    (program,) = dump.glob("*-cuda-code/*attention*/*-thread.mlir")
    changed, count = re.subn(pattern, text, program.read_text())
    assert count
    program.write_text(changed)
    with pytest.raises(harness.CharoniaError) as caught:
        run()
    assert f": {finding}" in caught.value.result.stderr


def check_banks(banks) -> None:
    """Swizzles promise that rows of ldmatrix and copies never meet in a bank."""
    for access in banks:
        if access["operation"].startswith(("nvvm.ldmatrix", "nvvm.cp.async")):
            text = f"{access['kernel']}: {access['operation']}"
            assert access["maximum"] == 1, f"{text}: {access['maximum']} ways"
