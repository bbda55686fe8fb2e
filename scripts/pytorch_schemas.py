#!/usr/bin/env python3
"""What PyTorch says of the operators in the importer's table (needs torch, and expecttest for its samples).

    pytorch_schemas.py [--check] [--samples]

With --check the exit status is 1 if the files are not up to date. Samples take minutes.

Writes tests/frontends/pytorch/schemas.txt: each row of the table, and which argument its
results may be views of by its schema, "-" for none. ctest compares that with the rows'
Alias. With --samples PyTorch's own sample inputs show what schemas do not say: rows
that are views of something all the same are printed. And Decompositions.inc: operators
without a row that run_decompositions() replaces by some that have one, as it does in samples. And Outputs.inc: what
overloads with `out=` compute, where their names do not say which row that is.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from pathlib import Path

import torch
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import operator_table  # noqa: E402

SCHEMAS = ROOT / "tests/frontends/pytorch/schemas.txt"
DECOMPOSITIONS = ROOT / "frontends/pytorch/Decompositions.inc"
OUTPUTS = ROOT / "frontends/pytorch/Outputs.inc"


def overload(row: str):
    namespace, name, which = row.split(".")
    packet = getattr(getattr(torch.ops, namespace), name)
    return getattr(packet, which)


def viewed_by_schema(schema) -> str:
    """The argument that results are annotated to be views of."""
    for argument in schema.arguments:
        if argument.alias_info and not argument.alias_info.is_write:
            return argument.name
    return "-"


def storages(values) -> set[int]:
    found = set()
    for value in tree_leaves(values):
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel():
            found.add(value.untyped_storage().data_ptr())
    return found


def viewed_by_samples() -> set[str]:
    """Names of functions of which a sample's result shares memory with what it was given."""
    from torch.testing._internal.common_methods_invocations import op_db

    found = set()
    for op in op_db:
        if torch.float32 not in op.dtypes:
            continue
        name = op.aten_name or op.name.rpartition(".")[2]
        try:
            for sample in op.sample_inputs("cpu", torch.float32):
                given = (sample.input, sample.args, sample.kwargs)
                if storages(op(sample.input, *sample.args, **sample.kwargs)) & storages(given):
                    found.add(name)
                    break
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            continue  # such as those that need a library which is not there
    return found


def schemas() -> str:
    lines = []
    for row in sorted(operator_table.simple_rows("pytorch")):
        if row.startswith("aten."):
            lines.append(f"{row} {viewed_by_schema(overload(row)._schema)}")
    return "\n".join(lines) + "\n"


def outputs() -> str:
    """A row computes what an overload does that has its arguments, and behind them those that it writes to."""
    lines = []
    for row in operator_table.simple_rows("pytorch"):
        if not row.startswith("aten."):
            continue
        packet, own = getattr(torch.ops.aten, row.split(".")[1]), overload(row)._schema.arguments
        for which in packet.overloads():
            schema = getattr(packet, which)._schema
            given = [(a.name, str(a.type)) for a in schema.arguments if not (a.kwarg_only and a.alias_info)]
            if len(given) == len(schema.arguments) or given != [(a.name, str(a.type)) for a in own]:
                continue
            if (which.removesuffix("out").removesuffix("_") or "default") != row.split(".")[2] or not which.endswith("out"):
                lines.append(f'{{"{row.rpartition(".")[0]}.{which}", "{row}"}},')
    return "// Written by scripts/pytorch_schemas.py.\n" + "\n".join(sorted(lines)) + "\n"


def samples_by_name() -> dict[str, list]:
    """PyTorch's own sample inputs of operators, by all names that these have."""
    from torch.testing._internal.common_methods_invocations import op_db

    found = {}
    for op in op_db:
        if torch.float32 in op.dtypes and not op.variant_test_name:
            for name in {op.aten_name, op.name, *(alias.name for alias in op.aliases)}:
                found.setdefault(name.replace(".", "_").removeprefix("nn_functional_"), []).append(op)
    return found


def is_known(op: str, rows: set[str]) -> bool:
    """What is in place has the row of what is not; checks are left out."""
    name = op.split(".")[0]
    in_place = name.endswith("_") and any(row.split(".")[0] == name.removesuffix("_") for row in rows)
    return op in rows or in_place or name in ("lift_fresh", "_linalg_check_errors", "<built-in function getitem>")


def resolves(name: str, samples: dict[str, list], rows: set[str]) -> bool:
    """Whether what is left of a sample has rows alone. What there is no sample of is taken for that."""
    packet, tried = getattr(torch.ops.aten, name), 0
    for sample in (s for op in samples.get(name, []) for s in itertools.islice(op.sample_inputs("cpu", torch.float32), 60)):
        given = [v for v in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(v, torch.Tensor)]
        if tried == 6 or not all(v.numel() for v in given):
            continue
        try:
            with torch.no_grad():
                graph = make_fx(lambda: packet(sample.input, *sample.args, **sample.kwargs), decomposition_table=core_aten_decompositions())().graph
        except Exception:
            continue  # the operator's own arguments are others than the function's
        tried += 1
        left = [str(n.target).removeprefix("aten.").removesuffix(".default") for n in graph.nodes if n.op == "call_function"]
        if all(is_known(op, rows) for op in left):
            return True
    return tried == 0


def decompositions() -> str:
    rows = {row.removeprefix("aten.").removesuffix(".default") for row in operator_table.simple_rows("pytorch")}
    samples = samples_by_name()
    found = {str(op).removeprefix("aten.") for op in core_aten_decompositions() if str(op).startswith("aten.")}
    for full in torch._C._dispatch_get_all_op_names():
        name, _, which = full.removeprefix("aten::").partition(".")
        packet = getattr(torch.ops.aten, name, None) if full.startswith("aten::") else None
        if packet is not None and getattr(packet, which or "default")._can_decompose():
            found.add(f"{name}.{which}".rstrip("."))
    names = {op.split(".")[0] for op in found if op.removesuffix(".default") not in rows and not op.endswith(("_out", ".out"))}
    plain = (n for n in names if not n.endswith("_") and "backward" not in n and n not in ("sym_size", "sym_stride", "sym_numel"))
    lines = [f'"{name}",' for name in sorted(plain) if resolves(name, samples, rows)]
    return "// Written by scripts/pytorch_schemas.py.\n" + "\n".join(lines) + "\n"


def main() -> int:
    warnings.simplefilter("ignore")
    stale = 0
    if "--samples" in sys.argv:
        told = {line.split()[0].split(".")[1] for line in schemas().splitlines() if not line.endswith(" -")}
        rows = {row.split(".")[1] for row in operator_table.simple_rows("pytorch")}
        print("views that no schema tells of:", *sorted(viewed_by_samples() & rows - told))
    for path, text in ((SCHEMAS, schemas()), (DECOMPOSITIONS, decompositions()), (OUTPUTS, outputs())):
        if "--check" not in sys.argv:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path} is not what PyTorch {torch.__version__} says: run pytorch_schemas.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
