"""What makes the exported programs of tests/e2e/pt2 (needs torch); pt2_<family>_cases.py beside it are run:

    pt2_<family>_cases.py [--references] [NAME...]

Each case is a module of operators with awkward attributes, exported as it is
(NAME.pt2) and after run_decompositions() (NAME-core.pt2). Inputs, of other sizes than
those that it was traced at, and the results of PyTorch lie in the folder `extra` of NAME.pt2
(in0.npy, out0.npy ...). float64.json lists which of these are computed in float64 and rounded once, as
all floats are but those that types change (see `exact`). Entries are deflated and stack traces are left out, so that the files are small.

With --references the programs stay as they are, and their results alone are made anew.
"""

from __future__ import annotations

import contextlib
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
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves as leaves
from torch.utils._pytree import tree_map, tree_structure, tree_unflatten

FOLDER = Path(__file__).resolve().parent / "pt2"
BATCH = torch.export.Dim("batch", min=1, max=8)
WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64, torch.complex64: torch.complex128}
LENGTH = torch.export.Dim("length", min=4, max=64)


class Case(nn.Module):
    """`inputs(b, n)` are tensors of batch b and length n, `dims` what is dynamic."""

    dims: tuple = ({0: BATCH},)
    exact = False  # types matter: results that float64 changes are kept as they are in the program's own types
    core = True
    grad = False  # exported with gradients, so that no_grad stays in the program
    deferred = False  # exported with assertions in place of guards

    def inputs(self, b: int, n: int):
        return (torch.randn(b, 4, 9, 7),)


# What a file makes: set by each.
CASES: dict[str, type[Case]] = {}


def array(value: torch.Tensor) -> np.ndarray:
    value = value.detach()
    return (value.float() if value.dtype == torch.float64 else value).contiguous().numpy()


# In float64 what PyTorch has in narrower types alone.
INSTEAD = {}


class Wide(TorchDispatchMode):
    """Computes in float64 what a program computes in other floats, also where it names these."""

    supports_higher_order_operators = True  # what is inside of these has the default type

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = {k: WIDE.get(v, v) if isinstance(v, torch.dtype) else v for k, v in (kwargs or {}).items()}
        result = INSTEAD.get(func, func)(*args, **kwargs)
        if func is torch.ops.aten.lift_fresh.default and result.dtype in WIDE:
            return result.to(WIDE[result.dtype])
        return result


def run(module: Case, inputs, mode=None) -> list[torch.Tensor]:
    with torch.no_grad(), mode or contextlib.nullcontext():
        result = module(*tree_map(torch.clone, tuple(inputs)))
    return [v.detach().contiguous() for v in leaves(result) if v is not None]


def in_float64(module: Case, inputs, mode=None) -> list[torch.Tensor] | None:
    """None where PyTorch refuses that."""
    module = copy.deepcopy(module).double()
    inputs = tree_map(lambda v: v.double() if v.is_floating_point() else v, tuple(inputs))
    torch.set_default_dtype(torch.float64)
    try:
        return run(module, inputs, mode)
    except Exception as error:
        print(f"{type(module).__name__} not in float64: {error}"[:300])
        return None
    finally:
        torch.set_default_dtype(torch.float32)


def agrees(value: np.ndarray, wide: torch.Tensor) -> bool:
    """They differ by rounding alone, so that of the two the one that is rounded once is right."""
    if wide.dtype != torch.float64 or wide.shape != value.shape:
        return False
    other = wide.numpy()
    sizes = np.abs(other[np.isfinite(other) & (other != 0)])
    typical = min(1.0, np.median(sizes)) if sizes.size else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return np.allclose(value.astype(np.float64), other.astype(value.dtype).astype(np.float64), 1e-4, 1e-5 * typical, equal_nan=True)


def reference(module: Case, inputs) -> tuple[list[np.ndarray], list[int]]:
    """The results, and which of them are those in float64."""
    values = run(module, inputs) if module.exact else in_float64(module, inputs)
    wide = in_float64(module, inputs, Wide()) or []
    results = [array(v) for v in values]
    found = []
    for index, (value, other) in enumerate(zip(results, wide)):
        rounded = value.dtype == np.float32 or value.dtype == np.float16 and not module.exact
        if rounded and agrees(value, other):
            found.append(index)
            if module.exact:
                results[index] = other.numpy().astype(value.dtype)
    return results, found


def strip(text: bytes) -> bytes:
    """Without what only people read."""
    root = json.loads(text)
    for node in root["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
    return json.dumps(root).encode()


def extras(inputs, outputs, wide) -> dict[str, bytes]:
    entries = {}
    for kind, values in (("in", inputs), ("out", outputs)):
        for i, value in enumerate(values):
            data = io.BytesIO()
            np.save(data, value)
            entries[f"{kind}{i}.npy"] = data.getvalue()
    return entries | ({"float64.json": json.dumps(wide).encode()} if outputs else {})


def pack(path: Path, entries: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data, compresslevel=9)


def write(path: Path, program, extra: dict[str, bytes]) -> None:
    packed = io.BytesIO()
    torch.export.save(program, packed)
    with zipfile.ZipFile(packed) as old:
        names = old.namelist()
        entries = {n: old.read(n) for n in names if "/sample_inputs/" not in n}
    for name in entries:
        if "/models/" in name:
            entries[name] = strip(entries[name])
    top = names[0].split("/")[0]
    pack(path, entries | {f"{top}/extra/{name}": data for name, data in extra.items()})


def rewrite(path: Path, module: Case) -> list[int]:
    """The same program and inputs with results made anew."""
    with zipfile.ZipFile(path) as old:
        names = old.namelist()
        top = names[0].split("/")[0]
        count = sum("/extra/in" in n for n in names)
        inputs = [np.load(io.BytesIO(old.read(f"{top}/extra/in{i}.npy"))) for i in range(count)]
        entries = {n: old.read(n) for n in names if "/extra/" not in n}
    values = tree_unflatten([torch.from_numpy(v) for v in inputs], tree_structure(tuple(module.inputs(2, 5))))
    outputs, wide = reference(module, values)
    extra = extras(inputs, outputs, wide)
    pack(path, entries | {f"{top}/extra/{name}": data for name, data in extra.items()})
    return wide


def make(name: str) -> None:
    torch.manual_seed(1)
    module = CASES[name]().eval()
    example = module.inputs(2, 5)
    inputs = module.inputs(3, 9)
    outputs, wide = reference(module, inputs)
    with torch.set_grad_enabled(module.grad):
        program = torch.export.export(
            copy.deepcopy(module), example, dynamic_shapes=module.dims, prefer_deferred_runtime_asserts_over_guards=module.deferred
        )
        arrays = [array(v) for v in leaves(inputs)]
        write(FOLDER / f"{name}.pt2", program, extras(arrays, outputs, wide))
        if module.core:
            write(FOLDER / f"{name}-core.pt2", program.run_decompositions(), {})
    sizes = [p.stat().st_size for p in FOLDER.glob(f"{name}*.pt2")]
    print(f"{name}: {len(outputs)} results, {len(wide)} in float64, {sizes} bytes", flush=True)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    for name in [a for a in arguments if a != "--references"] or CASES:
        if "--references" in arguments:
            torch.manual_seed(1)
            rewrite(FOLDER / f"{name}.pt2", CASES[name]().eval())
        else:
            make(name)
    total = sum(p.stat().st_size for p in FOLDER.glob("*.pt2"))
    print(f"{total} bytes in all")
