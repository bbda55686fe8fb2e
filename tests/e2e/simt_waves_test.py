"""Models with branches, whose kernels may run side by side on a GPU, run thread by thread by charonia-simt: those of a
wave in any order, in memory that is filled with NaN where a value's life begins."""

from __future__ import annotations

import json

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from branches import drawn, exchanging, inception, rows
from simt_orders import save_of_batch

ORDERS = [(0, "late"), (1, "seeded"), (2, "early"), (3, "seeded"), (4, "late")]


def check(tmp_path, model: onnx.ModelProto, precision="fp16", limit=6e-3, target="sm_90a", extra=(), batch=0, arch="") -> int:
    """How many launches may run beside the one before them, once the values are right in all orders. `batch`: of a model
    that takes 1 to 8 and is compiled for 2; 0: of the model's own."""
    path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
    shape, shapes = save_of_batch(model, path, batch)
    harness.compile_model(path, engine, target=target, precision=precision, dump=dump, extra=extra, shapes=shapes)
    x = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    names = [o.name for o in model.graph.output]
    wants = onnxruntime.InferenceSession(path).run(names, {"x": x})
    runs = []
    for seed, copies in ORDERS:
        order = ["--seed", str(seed), "--copies", copies, *(["--arch", arch] if arch else [])]
        runs.append(harness.run_engine(engine, {"x": x}, names, tmp_path / "run", device="simt", dump=dump, extra=order))
    for run in runs:
        for got, again, want in zip(runs[0], run, wants):
            np.testing.assert_array_equal(got, again)  # whatever ran first
            np.testing.assert_allclose(got, want, rtol=0, atol=limit * np.abs(want).max())
    return besides(engine)


def besides(engine) -> int:
    result = harness.invoke("inspect", engine, "--json")
    assert result.kind == "ok", result
    return sum(program["launches_beside"] for program in json.loads(result.stdout)["programs"])


@pytest.mark.parametrize("precision, limit", [("fp16", 6e-3), ("bf16", 5e-2), ("tf32", 6e-3)])
@pytest.mark.parametrize("build, least", [(inception, 6), (exchanging, 12), (rows, 4)])
def test_branches(tmp_path, build, least, precision, limit):
    assert check(tmp_path, build(), precision, limit) >= least


def test_drawn(tmp_path):
    counts = []
    for seed in range(12):
        (tmp_path / str(seed)).mkdir()
        counts.append(check(tmp_path / str(seed), drawn(seed), "fp32", 1e-4))
    assert sum(count > 0 for count in counts) >= 8, counts


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("build, least", [(inception, 6), (exchanging, 12)])
def test_open_batch(tmp_path, build, least, batch):
    assert check(tmp_path, build(), batch=batch) >= least


def test_two_chips(tmp_path):
    """One program for both: the older one's kernels do not overlap."""
    assert check(tmp_path, inception(), target="sm_80,sm_90a", arch="sm_80") >= 6
    assert check(tmp_path, inception(), target="sm_80,sm_90a", arch="sm_90a") >= 6


@pytest.mark.parametrize("target, extra", [("sm_80", []), ("sm_90a", ["--no-waves"])])
def test_one_after_another(tmp_path, target, extra):
    """For chips without dependent launch, and where it is asked for."""
    assert check(tmp_path, inception(), target=target, extra=extra) == 0
