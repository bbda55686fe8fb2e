"""Exported programs of PyTorch (pt2_cases.py makes them) against PyTorch's results."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import harness
import numpy as np
import operator_table
import pytest

FILES = sorted((Path(__file__).resolve().parent / "pt2").glob("*.pt2"))

# What has to be known of sizes.
SHAPES = {"branch": ["--shape", "x=?x7..64x6"]}
assert FILES


def arrays(path: Path, kind: str) -> list[np.ndarray]:
    """Those of NAME.pt2 are for NAME-core.pt2 too."""
    path = path.with_name(path.name.replace("-core", ""))
    with zipfile.ZipFile(path) as file:
        names = [n for n in file.namelist() if f"/extra/{kind}" in n]
        names.sort(key=lambda n: int(n.rpartition(kind)[2].removesuffix(".npy")))
        return [np.load(io.BytesIO(file.read(n))) for n in names]


def input_names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as file:
        [entry] = [n for n in file.namelist() if "/models/" in n]
        module = json.loads(file.read(entry))["graph_module"]
    specs = zip(module["signature"]["input_specs"], module["graph"]["inputs"])
    return [arg["as_tensor"]["name"] for spec, arg in specs if "user_input" in spec]


def check(want: np.ndarray, got: np.ndarray) -> str:
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return "" if (got == want).all() else f"{got} is not {want}"
    limit = 2e-3 if want.dtype == np.float16 else 1e-5
    a, b = want.astype(np.float64), got.astype(np.float64)
    scale = max(1.0, np.abs(a[np.isfinite(a)]).max(initial=0))
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= limit * scale)
    return "" if same.all() else f"differs by {np.abs(a - b).max()}: {got} is not {want}"


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_program(path: Path, tmp_path: Path) -> None:
    engine = tmp_path / "m.engine"
    harness.compile_model(path, engine, extra=SHAPES.get(path.stem, []))
    inputs = dict(zip(input_names(path), arrays(path, "in"), strict=True))
    wanted = arrays(path, "out")
    out = tmp_path / "out"
    arguments = ["run", engine, "--output-dir", out]
    for index, (name, value) in enumerate(inputs.items()):
        np.save(tmp_path / f"in{index}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / f'in{index}.npy'}"]
    result = harness.invoke(*arguments)
    assert result.kind == "ok", result.stderr
    lines = [line.rpartition(f": {out}/") for line in result.stdout.splitlines()]
    got = {name: np.load(out / file) for name, found, file in lines if found}
    assert len(got) == len(wanted)
    wrong = {
        name: text for (name, value), want in zip(got.items(), wanted)
        if (text := check(want, value))
    }  # fmt: skip
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


def test_branch_of_an_open_size(tmp_path: Path) -> None:
    path = Path(__file__).resolve().parent / "pt2/branch.pt2"
    result = harness.invoke("compile", path, "-o", tmp_path / "m.engine")
    assert result.kind == "refused"
    assert "higher_order.cond is not supported: which branch is taken depends on sizes" in result.stderr
    assert "narrow the ranges with --shape, so that it does not" in result.stderr


def test_file_of_several_programs(tmp_path: Path) -> None:
    folder = Path(__file__).resolve().parent
    both = tmp_path / "both.pt2"
    with zipfile.ZipFile(both, "w") as out:
        for name in ("pool", "arithmetic"):
            with zipfile.ZipFile(folder / f"pt2/{name}.pt2") as file:
                [entry] = [n for n in file.namelist() if "/models/" in n]
                out.writestr(f"both/models/{name}.json", file.read(entry))
    engine = tmp_path / "m.engine"
    harness.compile_model(both, engine, extra=["--program", "pool"])
    assert "input x: float32 [x_dim0, 4, 9, 7]" in harness.invoke("inspect", engine).stdout.replace("  ", " ")
    for extra, words in (
        ([], "holds several programs: arithmetic, pool\n  remedy: choose one with --program NAME"),
        (["--program", "none"], "has no program 'none', but arithmetic, pool"),
    ):
        result = harness.invoke("compile", both, "-o", engine, *extra)
        assert result.code == 1 and words in result.stderr
    model = folder.parent.parent / "models/digits/digits.onnx"
    result = harness.invoke("compile", model, "-o", engine, "--program", "pool")
    assert result.code == 1
    assert "holds one model, so 'pool' cannot be chosen from it" in result.stderr


def targets(graph: dict) -> set[str]:
    """The operators of a graph and of those inside of it; in place as not in place."""
    found = set()
    for node in graph["nodes"]:
        namespace, _, rest = node["target"].removeprefix("torch.ops.").partition(".")
        name, _, overload = rest.rpartition(".")
        found |= {f"{namespace}.{name}.{overload}", f"{namespace}.{name.removesuffix('_')}.{overload}"}
        for argument in node["inputs"]:
            if inner := argument["arg"].get("as_graph"):
                found |= targets(inner["graph"])
    return found


def test_every_row_is_tested() -> None:
    used = set()
    for path in FILES:
        with zipfile.ZipFile(path) as file:
            for entry in (n for n in file.namelist() if "/models/" in n):
                used |= targets(json.loads(file.read(entry))["graph_module"]["graph"])
    rows = operator_table.simple_rows("pytorch")
    assert len(rows) > 300
    assert not rows - used, f"in no file of pt2_cases.py: {sorted(rows - used)}"
