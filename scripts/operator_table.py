#!/usr/bin/env python3
"""Writes the tables of operators into docs/operators.md, from the importers' rows.

    operator_table.py [--check]     --check: exit status 1 if they are not up to date

An ONNX operator without a row of its own is imported if ONNX defines it by a function
body in which every node is. Bodies that depend on a node's attributes and types are
instantiated with float inputs and default attributes.
"""

import re
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, defs, helper

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r'\{"([\w.]*)",\s*"(\w+)",\s*(\d+),\s*(\d+),')


def rows():
    """{(domain, operator): [(first, last)]} as the importer's tables say."""
    found = {}
    for file in sorted((ROOT / "frontends/onnx/ops").glob("*.cpp")):
        for domain, op, first, last in ROW.findall(file.read_text()):
            found.setdefault((domain, op), []).append((int(first), int(last)))
    if not found:
        raise SystemExit("operator_table: no rows in frontends/onnx/ops")
    return found


def families(framework):
    """{family: operators} in the tables of a framework whose rows begin with a name alone."""
    row = re.compile(r'^ +(?:\w+\()?\{(?:\.op = )?"([\w.]+)",', re.M)
    files = sorted((ROOT / "frontends" / framework / "ops").glob("*.cpp"))
    found = {file.stem: set(row.findall(file.read_text())) for file in files}
    if not any(found.values()):
        raise SystemExit(f"operator_table: no rows in frontends/{framework}/ops")
    return {family: ops for family, ops in found.items() if ops}


def simple_rows(framework):
    return set().union(*families(framework).values())


def body(schema):
    """The nodes of an operator's function body, or None."""
    if schema.has_function:
        return schema.function_body.node
    if not schema.has_context_dependent_function:
        return None
    inputs = [f"x{i}" for i in range(max(schema.min_input, 1))]
    attributes = {
        name: {"INT": 1, "FLOAT": 1.0, "INTS": [1], "FLOATS": [1.0], "STRING": "x"}[a.type.name]
        for name, a in schema.attributes.items()
        if a.required and a.type.name in ("INT", "FLOAT", "INTS", "FLOATS", "STRING")
    }
    node = helper.make_node(schema.name, inputs, ["y"], **attributes)
    types = [helper.make_tensor_type_proto(TensorProto.FLOAT, [4, 4]) for _ in inputs]
    try:
        text = schema.get_context_dependent_function(
            node.SerializeToString(), [t.SerializeToString() for t in types]
        )
    except Exception:  # the body refuses these types
        return None
    return onnx.FunctionProto.FromString(text).node if text else None


def expandable(table):
    """Operators that are imported by their function bodies alone."""
    known = {op for domain, op in table if domain == ""}
    schemas = {
        s.name: s for s in defs.get_all_schemas() if s.domain == "" and not s.deprecated
    }
    bodies = {}
    for name, schema in schemas.items():
        if name not in known and (nodes := body(schema)):
            bodies[name] = {n.op_type for n in nodes}
    by_body, size = set(), -1
    while size != len(by_body):
        size = len(by_body)
        by_body |= {n for n, used in bodies.items() if used <= known | by_body}
    return sorted(by_body)


def since(ranges):
    """The first opset that has the operator."""
    first = min(first for first, _ in ranges)
    return f"from {first}" if first > 1 else "all"


def onnx_table():
    found = rows()
    groups = {}
    for (domain, op), ranges in found.items():
        groups.setdefault(domain or since(ranges), []).append(op)
    lines = ["| opset | operators with a rule of their own |", "| --- | --- |"]
    order = sorted(groups, key=lambda g: (g != "all", int(g.split()[-1]) if g.startswith("from") else g != "all" and 99))
    lines += [f"| {group} | {', '.join(sorted(groups[group]))} |" for group in order]
    by_body = ", ".join(expandable(found))
    lines += ["", f"By the function body that ONNX defines, besides models' own functions: {by_body}."]
    return lines


def family_table(framework, short):
    lines = ["| family | operators |", "| --- | --- |"]
    for family, ops in families(framework).items():
        lines.append(f"| {family} | {', '.join(sorted({short(op) for op in ops}, key=str.lower))} |")
    return lines


def plain(op):
    """PyTorch's name without namespace and overload."""
    return "`" + op.removeprefix("aten.").rpartition(".")[0] + "`"


def text():
    torch, tensorflow = len(simple_rows("pytorch")), len(simple_rows("tensorflow"))
    lines = [
        "# Operators that can be imported",
        "",
        "By `scripts/operator_table.py`, from the importers' rows. What is not here is refused by name.",
        "",
        "## PyTorch",
        "",
        f"{torch} overloads, here without their overloads' names; each also in place (`add_`) where PyTorch has that.",
        "Regions: `no_grad`, autocast and `cond`, as [importing.md](importing.md) says.",
        "",
        *family_table("pytorch", plain),
        "",
        "## TensorFlow",
        "",
        f"{tensorflow} operators, besides calls, branches and loops.",
        "",
        *family_table("tensorflow", str),
        "",
        "## ONNX",
        "",
        *onnx_table(),
        "",
    ]
    return "\n".join(lines)


def main():
    page = ROOT / "docs/operators.md"
    wanted = text()
    if "--check" in sys.argv[1:]:
        if not page.exists() or page.read_text() != wanted:
            print("docs/operators.md is not up to date: run scripts/operator_table.py")
            return 1
        return 0
    page.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
