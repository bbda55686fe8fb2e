"""What makes the exported programs of tests/e2e/pt2 (needs torch); pt2_<family>_cases.py beside it are run:

    pt2_<family>_cases.py [NAME...]

Each case is a module of operators with awkward attributes, exported as it is
(NAME.pt2) and after run_decompositions() (NAME-core.pt2). Inputs, of other sizes than
those that it was traced at, and the results of PyTorch, in float64 where the types
do not matter, lie in the folder `extra` of NAME.pt2 (in0.npy, out0.npy ...). Entries are deflated and
stack traces are left out, so that the files are small.
"""

from __future__ import annotations

import copy
import io
import json
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

FOLDER = Path(__file__).resolve().parent / "pt2"
BATCH = torch.export.Dim("batch", min=1, max=8)
LENGTH = torch.export.Dim("length", min=4, max=64)


class Case(nn.Module):
    """`inputs(b, n)` are tensors of batch b and length n, `dims` what is dynamic."""

    dims: tuple = ({0: BATCH},)
    exact = False  # types matter: the reference is computed in them
    core = True
    grad = False  # exported with gradients, so that no_grad stays in the program

    def inputs(self, b: int, n: int):
        return (torch.randn(b, 4, 9, 7),)


# What a file makes: set by each.
CASES: dict[str, type[Case]] = {}


def array(value: torch.Tensor) -> np.ndarray:
    value = value.detach()
    return (value.float() if value.dtype == torch.float64 else value).contiguous().numpy()


def reference(module: Case, inputs) -> list[np.ndarray]:
    if not module.exact:
        module = copy.deepcopy(module).double()
        inputs = [v.double() if v.is_floating_point() else v for v in inputs]
        torch.set_default_dtype(torch.float64)
    with torch.no_grad():
        result = module(*[v.clone() for v in inputs])
    torch.set_default_dtype(torch.float32)
    return [array(v) for v in torch.utils._pytree.tree_leaves(result) if v is not None]


def strip(text: bytes) -> bytes:
    """Without what only people read."""
    root = json.loads(text)
    for node in root["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
    return json.dumps(root).encode()


def write(path: Path, program, inputs, outputs) -> None:
    packed = io.BytesIO()
    torch.export.save(program, packed)
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        top = names[0].split("/")[0]
        entries = {n: old.read(n) for n in names if "/sample_inputs/" not in n}
        for name in entries:
            if "/models/" in name:
                entries[name] = strip(entries[name])
        for kind, values in (("in", inputs), ("out", outputs)):
            for i, value in enumerate(values):
                data = io.BytesIO()
                np.save(data, value)
                entries[f"{top}/extra/{kind}{i}.npy"] = data.getvalue()
        for name, data in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data, compresslevel=9)


def make(name: str) -> None:
    torch.manual_seed(1)
    module = CASES[name]().eval()
    example = module.inputs(2, 5)
    inputs = module.inputs(3, 9)
    outputs = reference(module, inputs)
    with torch.set_grad_enabled(module.grad):
        program = torch.export.export(copy.deepcopy(module), example, dynamic_shapes=module.dims)
        arrays = [array(v) for v in inputs]
        write(FOLDER / f"{name}.pt2", program, arrays, outputs)
        if module.core:
            write(FOLDER / f"{name}-core.pt2", program.run_decompositions(), [], [])
    sizes = [p.stat().st_size for p in FOLDER.glob(f"{name}*.pt2")]
    print(f"{name}: {len(outputs)} results, {sizes} bytes", flush=True)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or CASES:
        make(name)
    total = sum(p.stat().st_size for p in FOLDER.glob("*.pt2"))
    print(f"{total} bytes in all")
