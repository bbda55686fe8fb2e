#!/usr/bin/env python3
"""Checks exported programs (.pt2) against PyTorch, on the CPU in fp32.

    check_pt2.py FILE.pt2|FOLDER...        folders are searched

Each is compiled once and run at sizes other than those it was traced at: the least
of every dynamic size, and others in between. The peer is the program itself, run by
torch: in float64, where all of it can be, so that torch's own error in the program's types
stands beside ours. Errors are the largest absolute difference divided by the expected
output's largest value. What torch computes badly itself measures nothing: such a program
counts as not measured. Needs torch, and what the programs' custom operators need.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
from pathlib import Path

import harness
import numpy as np
import torch
from torch_program import TorchProgram

LIMIT = 1e-4
# Of torch's own error, where that is above the limit.
FACTOR = 4
# Torch's own error from which on a program is no measure.
UNMEASURED = 1e-2
# What a size may be that the program leaves open, and where it is not traced.
OPEN_SIZE = 64
BATCHES, LENGTHS = (1, 3), (1, 37)


class Subject:
    """One program, its inputs and the sizes that may change."""

    def __init__(self, path: Path):
        self.path = path
        self.torch = TorchProgram(path)
        self.program = self.torch.program
        self.inputs = list(self.torch.inputs.items())
        flat = torch.utils._pytree.tree_leaves(self.torch.example)
        self.examples = [v for v in flat if isinstance(v, torch.Tensor)]
        self.ranges = {
            str(s): (int(r.lower) if r.lower > -1 << 40 else None, int(r.upper) if r.upper < 1 << 40 else None)
            for s, r in self.program.range_constraints.items()
        }

    def symbols(self) -> list[str]:
        """Plain symbols in the order in which inputs have them."""
        found = []
        for _, value in self.inputs:
            for size in value.shape:
                if isinstance(size, torch.SymInt) and str(size) not in found:
                    found.append(str(size))
        return found

    def is_batch(self, symbol: str) -> bool:
        return any(value.dim() and str(value.shape[0]) == symbol for _, value in self.inputs)

    def settings(self) -> list[dict[str, int]]:
        result = []
        for index in range(2):
            for more in range(4):  # sizes that the program's guards let through
                sizes = {}
                for symbol in self.symbols():
                    low, high = self.ranges.get(symbol, (1, None))
                    wanted = (BATCHES if self.is_batch(symbol) else LENGTHS)[index] + more
                    sizes[symbol] = min(max(wanted, low + more, 1), high or OPEN_SIZE)
                if self.guards_hold(sizes):
                    break
            if sizes not in result:
                result.append(sizes)
        return result

    def guards_hold(self, sizes: dict[str, int]) -> bool:
        try:
            run_program(self, self.program.module(), self.make_inputs(sizes), lambda v: v)
        except AssertionError as error:
            return "Guard failed" not in str(error)
        return True

    def make_inputs(self, sizes: dict[str, int]) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(7)
        arrays = {}
        for (name, value), example in zip(self.inputs, self.examples):
            shape = [sizes[str(s)] if isinstance(s, torch.SymInt) else s for s in value.shape]
            arrays[name] = make_array(rng, shape, example)
        return arrays

    def shape_options(self) -> list[str]:
        """`--shape`, where the program leaves a size open."""
        options = []
        for name, value in self.inputs:
            dims = []
            for size in value.shape:
                low, high = self.ranges.get(str(size), (1, 1))
                is_open = isinstance(size, torch.SymInt) and high is None
                dims.append(f"{max(low, 1)}..{OPEN_SIZE}" if is_open else "?")
            if any(d != "?" for d in dims):
                options += ["--shape", f"{name}=" + "x".join(dims)]
        return options


def make_array(rng, shape, example) -> np.ndarray:
    dtype = torch.zeros((), dtype=example.dtype).numpy().dtype
    high = int(example.max()) if dtype.kind in "iu" and example.numel() else 0
    return harness.draw_input(rng, shape, dtype, high)


def run_program(subject: Subject, module, inputs: dict[str, np.ndarray], convert) -> list[np.ndarray]:
    args, kwargs = subject.torch.arguments({n: convert(torch.from_numpy(a.copy())) for n, a in inputs.items()})
    with torch.no_grad():
        result = module(*args, **kwargs)
    return [v for v in torch.utils._pytree.tree_leaves(result) if isinstance(v, torch.Tensor)]


WIDER = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}  # fmt: skip


def widen(value):
    """Types and tensors in float64."""
    if isinstance(value, torch.Tensor):
        return value.to(WIDER.get(value.dtype, value.dtype))
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def widened(module):
    """A copy of the program that computes in float64."""
    module = copy.deepcopy(module)
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            for node in part.graph.nodes:
                node.args = torch.fx.node.map_aggregate(node.args, widen)
                node.kwargs = torch.fx.node.map_aggregate(node.kwargs, widen)
            part.recompile()
    return module.double()


def reference(subject: Subject, inputs: dict[str, np.ndarray]) -> tuple[list, list]:
    """What is right, and torch's results in the program's types."""
    own = run_program(subject, subject.program.module(), inputs, lambda v: v)
    try:
        torch.set_default_dtype(torch.float64)
        exact = run_program(subject, widened(subject.program.module()), inputs, widen)
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        print(f"  not in float64: {str(error).splitlines()[0][:100]}", flush=True)
        exact = own
    finally:
        torch.set_default_dtype(torch.float32)
    array = lambda v: (v.float() if v.dtype == torch.bfloat16 else v).numpy()
    return [array(v) for v in exact], [array(v) for v in own]


def verdict(own: np.ndarray, got: np.ndarray, error: float, theirs: float) -> str:
    kinds = own.dtype, got.dtype
    if own.dtype.kind != "f":
        same = own.shape == got.shape and kinds[0] == kinds[1] and (own == got).all()
        return "ok" if same else "DIFFERS"
    if kinds[0] != kinds[1]:
        return f"IS {got.dtype}, not {own.dtype}"
    if theirs > UNMEASURED:
        return "not measured"
    return "ok" if error <= max(LIMIT, FACTOR * theirs) else "TOO LARGE"


def check(path: Path, options) -> list[list]:
    rows = []
    name = path.stem if path.stem != "model" else path.parent.name
    with tempfile.TemporaryDirectory(prefix="charonia-pt2-") as scratch:
        folder = Path(scratch)
        try:
            subject = Subject(path)
            start = time.time()
            harness.compile_model(
                path, folder / "m.engine", target=options.target,
                extra=subject.shape_options(), timeout=options.timeout,
            )  # fmt: skip
            print(f"{name}: compiled in {time.time() - start:.1f} s", flush=True)
            for sizes in subject.settings():
                inputs = subject.make_inputs(sizes)
                want, own = reference(subject, inputs)
                got = list(harness.run_all_outputs(folder / "m.engine", inputs, folder).items())
                case = " ".join(f"{k}={v}" for k, v in sizes.items())
                if len(want) != len(got):
                    rows.append([name, case, "", "", "", "", f"{len(got)} OUTPUTS, not {len(want)}"])
                for w, o, (output, g) in zip(want, own, got):
                    error, theirs = harness.scaled_error(w, g), harness.scaled_error(w, o)
                    scale = f"{np.abs(w).max():.3g}" if w.size else ""
                    rows.append([name, case, output, scale, f"{error:.1e}", f"{theirs:.1e}",
                                 verdict(o, g, error, theirs)])  # fmt: skip
        except Exception as error:  # noqa: BLE001: each file gets its row
            print(f"{name}: {str(error)[: options.words]}", flush=True)
            rows.append([name, "", "", "", "", "", "FAILED: " + str(error).split("\n")[0][:120]])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE|FOLDER")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--words", type=int, default=2000, help="of a failure's message")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = [f for p in options.paths for f in (sorted(p.rglob("*.pt2")) if p.is_dir() else [p])]
    rows = [row for file in files for row in check(file, options)]
    print(harness.table(["model", "sizes", "output", "scale", "error", "torch's own", "verdict"], rows))
    failed = sorted({row[0] for row in rows if row[-1] != "ok"})
    print(f"{len(files) - len(failed)} of {len(files)} right")
    harness.write_json(options.json, rows)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
