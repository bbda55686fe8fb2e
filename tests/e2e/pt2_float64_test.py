"""Each row of the importer's table is tested, and where it gives floats against float64."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import operator_table
import pytest
from pt2_rows_test import NUMBERS

FILES = sorted((Path(__file__).resolve().parent / "pt2").glob("*.pt2"))
FLOATS = {6, 7, 8, 9, 10, 11, 13}  # the file's numbers of half, float, double, complex types and bfloat16
ROWS = operator_table.simple_rows("pytorch")
assert len(ROWS) > 300
# Random numbers have no reference, but a distribution.
DRAWN = {f"aten.{op}" for op, *_ in NUMBERS}
# Of floats of 8 bits, which PyTorch does not multiply in float64; float8_test.py does.
SMALL = {"aten._scaled_mm.default"}


def spellings(target: str) -> set[str]:
    """The rows that a node's target may be of: in place as not in place."""
    namespace, _, rest = target.removeprefix("torch.ops.").partition(".")
    name, _, overload = rest.rpartition(".")
    return {f"{namespace}.{name}.{overload}", f"{namespace}.{name.removesuffix('_')}.{overload}"}


def names(value) -> set[str]:
    """Of all tensors in an argument."""
    if isinstance(value, list):
        return set().union(*map(names, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = {value["as_tensor"]["name"]} if "as_tensor" in value else set()
    for kind in ("as_tensors", "as_nested_tensors"):
        found |= tensors(value.get(kind, []))
    return found | names([v for k, v in value.items() if k in ("arg", "as_optional_tensors")])


def tensors(value) -> set[str]:
    return {value["name"]} if isinstance(value, dict) else set().union(*map(tensors, value)) if value else set()


def floats(graph: dict, found: set[str]) -> set[str]:
    """Those of them that are: a position or a truth says little of what it came from."""
    values = graph["tensor_values"]  # a size that a loop is given is not among them
    return {name for name in found if name in values and values[name]["dtype"] in FLOATS}


def nodes(graph: dict, wanted: set[str] | None = None):
    """(node, whether it gives floats, whether a wanted result follows from these), also of graphs inside."""
    live = floats(graph, names(graph["outputs"]) if wanted is None else wanted)
    for node in reversed(graph["nodes"]):
        results = floats(graph, names(node["outputs"]))
        reaches = bool(results & live)
        if reaches:
            live |= floats(graph, names(node["inputs"]))
        yield node, bool(results), reaches
        for argument in node["inputs"]:
            if inner := argument["arg"].get("as_graph"):
                yield from nodes(inner["graph"], None if reaches else set())


def program(path: Path) -> dict:
    with zipfile.ZipFile(path) as file:
        [entry] = [n for n in file.namelist() if "/models/" in n]
        return json.loads(file.read(entry))["graph_module"]


def in_float64(path: Path, module: dict) -> set[str]:
    """The names of those results whose reference is PyTorch's in float64; NAME.pt2 has those of NAME-core.pt2."""
    path = path.with_name(path.name.replace("-core", ""))
    with zipfile.ZipFile(path) as file:
        entries = [n for n in file.namelist() if n.endswith("/extra/float64.json")]
        places = json.loads(file.read(entries[0])) if entries else []
    specs = [s["user_output"]["arg"] for s in module["signature"]["output_specs"] if "user_output" in s]
    results = [a["as_tensor"]["name"] for a in specs if "as_tensor" in a]
    return {results[place] for place in places}


def test_every_row_is_tested() -> None:
    used = set()
    for path in FILES:
        for node, _, _ in nodes(program(path)["graph"]):
            used |= spellings(node["target"])
    missing = ROWS - used - DRAWN
    assert not missing, f"in no file of pt2_*_cases.py: {sorted(missing)}"


@pytest.mark.parametrize("core", [False, True], ids=["exported", "core"])
def test_floats_are_of_float64(core: bool) -> None:
    """Such a result follows from each row that gives floats, in each form of the IR in which it is."""
    given, reached = set(), set()
    for path in FILES:
        if path.stem.endswith("-core") == core:
            module = program(path)
            for node, gives, reaches in nodes(module["graph"], in_float64(path, module)):
                rows = spellings(node["target"]) & ROWS
                given |= rows if gives else set()
                reached |= rows if reaches else set()
    assert len(given) > 150
    missing = given - reached - SMALL
    assert not missing, f"no result in float64 follows from: {sorted(missing)}"
