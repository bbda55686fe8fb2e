"""The GPU kernels of the compact models, run thread by thread by charonia-simt."""

from __future__ import annotations

import json

import compact_test
import harness
import numpy as np
import pytest

# Of the largest value of the reference output, which is of fp32.
LIMITS = {"fp32": 1e-4, "fp16": 1e-2}
ORDERS = [(0, "late"), (1, "seeded"), (2, "early")]


def compile_for_gpu(folder, name, precision, found):
    engine, dump = folder / f"{name}.engine", folder / "dump"
    harness.compile_model(
        compact_test.FOLDER / f"{name}.onnx", engine, target="sm_90",
        precision=precision, shapes=compact_test.ranges(found), dump=dump,
    )  # fmt: skip
    return engine, dump


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("name", compact_test.NAMES)
def test_compact_model(tmp_path, name, precision):
    """Right results and no finding, in orders that are not the same."""
    found = compact_test.cases(name)
    engine, dump = compile_for_gpu(tmp_path, name, precision, found)
    smallest = sorted(found, key=lambda c: sum(v.size for v in found[c][0].values()))
    results = {}
    for number, (seed, copies) in enumerate(ORDERS):
        case = smallest[number % 2]
        inputs, outputs = found[case]
        report = tmp_path / "report.json"
        got = harness.run_engine(
            engine, inputs, list(outputs), tmp_path / "run", device="simt", dump=dump,
            extra=["--seed", str(seed), "--copies", copies, "--report", report],
        )  # fmt: skip
        for (output, want), value in zip(outputs.items(), got):
            assert value.shape == want.shape and value.dtype == want.dtype
            error = np.abs(value - want).max() / np.abs(want).max()
            assert error <= LIMITS[precision], f"{case} {output}: {error:.2e}"
            # The order of sums is defined, so it does not depend on who comes first.
            first = results.setdefault((case, output), value)
            assert np.array_equal(first, value), f"{case} {output}: order matters"
        check_banks(json.loads(report.read_text())["banks"])


def check_banks(banks) -> None:
    """Swizzles promise that rows of ldmatrix and copies never meet in a bank."""
    for access in banks:
        if access["operation"].startswith(("nvvm.ldmatrix", "nvvm.cp.async")):
            text = f"{access['kernel']}: {access['operation']}"
            assert access["maximum"] == 1, f"{text}: {access['maximum']} ways"


def test_findings_are_told(tmp_path):
    """A kernel without its barriers: the program says what is wrong, and fails."""
    found = compact_test.cases("vit")
    engine, dump = compile_for_gpu(tmp_path, "vit", "fp16", found)
    changed = 0
    for kernel in dump.glob("*-cuda-code/*/*attention*-thread.mlir"):
        text = kernel.read_text()
        changed += text.count("nvvm.barrier0")
        kernel.write_text(text.replace("nvvm.barrier0", ""))
    assert changed
    inputs, outputs = next(iter(found.values()))
    with pytest.raises(harness.CharoniaError) as caught:
        harness.run_engine(
            engine, inputs, list(outputs), tmp_path / "run", device="simt", dump=dump
        )
    stderr = caught.value.result.stderr
    assert "error: attention: race: nvvm.ldmatrix at sm_90.attention" in stderr
    assert caught.value.result.code == 1
