"""TensorFlow's files (tf_cases.py makes them) against TensorFlow's results."""

from __future__ import annotations

from pathlib import Path

import harness
import numpy as np
import pytest

FOLDERS = sorted(p.parent for p in (Path(__file__).resolve().parent / "tf").glob("*/out.npz"))
assert FOLDERS


def arrays(folder: Path, kind: str) -> dict[str, np.ndarray]:
    with np.load(folder / f"{kind}.npz") as file:
        return dict(file)


def check(want: np.ndarray, got: np.ndarray) -> str:
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return "" if (got == want).all() else f"{got} is not {want}"
    a, b = want.astype(np.float64), got.astype(np.float64)
    scale = max(1.0, np.abs(a[np.isfinite(a)]).max(initial=0))
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 1e-5 * scale)
    return "" if same.all() else f"differs by {np.abs(a - b).max()}: {got} is not {want}"


@pytest.mark.parametrize("folder", FOLDERS, ids=[f.name for f in FOLDERS])
def test_model(folder: Path, tmp_path: Path) -> None:
    engine, options = tmp_path / "m.engine", folder / "options.txt"
    graphs = [folder / name for name in ("graph.pb", "graph.pbtxt") if (folder / name).exists()]
    extra = options.read_text().split() if options.exists() else []
    harness.compile_model(graphs[0] if graphs else folder, engine, extra=extra)
    got = harness.run_all_outputs(engine, arrays(folder, "in"), tmp_path)
    wanted = arrays(folder, "out")
    assert sorted(got) == sorted(wanted)
    problems = {name: check(want, got[name]) for name, want in wanted.items()}
    assert not any(problems.values()), {k: v for k, v in problems.items() if v}
