"""`charonia compare` beside a peer: what it asks for, what it makes of the answers. The peer of
most tests is a script that answers with the engine's own results, moved by what a test says; with
torch itself, which ctest's Python need not have, the program of a .pt2 file runs."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import harness
import pytest

PROGRAM = Path(__file__).resolve().parent / "pt2/pool.pt2"

STUB = """#!{python}
import json, pathlib, subprocess, sys
import numpy as np
arguments = sys.argv[2:]
options = {{k: v for k, v in zip(arguments, arguments[1:]) if k.startswith("--")}}
inputs = [v for k, v in zip(arguments, arguments[1:]) if k == "--input"]
pathlib.Path({log!r}).write_text(json.dumps(dict(peer=pathlib.Path(sys.argv[1]).name, arguments=arguments)))
if {error!r}:
    print(json.dumps(dict(error={error!r})), flush=True)
    sys.exit(1)
out = pathlib.Path(options["--output-dir"])
subprocess.run([{program!r}, "run", {engine!r}, "--output-dir", str(out / "own")] + [a for i in inputs for a in ("--input", i)],
               check=True, stdout=subprocess.DEVNULL)
names = sorted((f.stem for f in (out / "own").glob("*.npy")), key=lambda n: int(n.rpartition("_")[2]))
for index, name in enumerate(names):
    np.save(out / f"{{index}}.npy", np.load(out / "own" / f"{{name}}.npy") + np.float32({moved}))
print(json.dumps(dict(peer="a stub", outputs=names[:{kept}])), flush=True)
for line in sys.stdin:
    if line.split()[0] == "quit":
        break
    print(json.dumps(dict(latency_ms=dict(min=1, mean=1, p50=1, p90=1, p99=1))), flush=True)
"""


def compare(tmp_path: Path, *extra, moved: float = 0.0, error: str = "", kept: int = 99):
    """The result, what the peer was called with, and the report."""
    engine, log, report = tmp_path / "m.engine", tmp_path / "log.json", tmp_path / "report.json"
    if not engine.exists():
        harness.compile_model(PROGRAM, engine)
    stub = tmp_path / "stub.py"
    fields = dict(python=sys.executable, log=str(log), engine=str(engine), program=str(harness.binary()), moved=moved, error=error, kept=kept)
    stub.write_text(STUB.format(**fields))
    stub.chmod(0o755)
    result = harness.invoke("compare", PROGRAM, engine, "--with", "torch", "--python", stub, "--rounds", 1, "--duration", 0.01,
                            "--json", report, *extra)  # fmt: skip
    return result, json.loads(log.read_text()), json.loads(report.read_text()) if report.exists() else {}


@pytest.mark.parametrize("name, needed", [("pt2/pool.pt2", "torch"), ("tf/details", "tensorflow")])
def test_which_peer_runs_it(tmp_path: Path, name: str, needed: str) -> None:
    """ONNX Runtime does not read these: its message would be of damaged files."""
    model = PROGRAM.parent.parent / name
    harness.compile_model(model, tmp_path / "m.engine")
    result = harness.invoke("compare", model, tmp_path / "m.engine", "--python", sys.executable)
    assert result.code == 1 and f"use --with {needed}" in result.stderr, result.stderr


def test_what_the_peer_is_asked_for(tmp_path: Path) -> None:
    result, called, report = compare(tmp_path, "--peer-mode", "compile", "--program", "model", "--threads", 1, "--shape", "x=3x4x9x7")
    assert result.kind == "ok", result.stderr
    assert called["peer"] == "peer.py" and called["arguments"][0] == str(PROGRAM)
    words = " ".join(called["arguments"])
    for part in ("--with torch", "--device cpu", "--threads 1", "--program model", "--peer-mode compile", "--serve", "--input x="):
        assert part in words
    assert report["inputs"] == {"x": [3, 4, 9, 7]} and report["peer_ms"] == 1
    assert len(report["outputs"]) == 11 and all(o["max_error"] == 0 for o in report["outputs"])
    assert "as fast as a stub" in result.stdout


def test_differences_are_told(tmp_path: Path) -> None:
    result, called, report = compare(tmp_path, moved=0.25)
    assert result.kind == "ok", result.stderr
    assert "--peer-mode" not in called["arguments"]
    assert all(abs(o["max_error"] - 0.25) < 1e-5 for o in report["outputs"])
    result, _, _ = compare(tmp_path, kept=10)
    assert result.code == 1 and "the engine gives 'output_10', but the model has no such output" in result.stderr
    result, _, _ = compare(tmp_path, error="torch 0 cannot load it")
    assert result.code == 1 and "torch 0 cannot load it" in result.stderr


def test_several_programs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: scripts/requirements.txt leaves it out")
    from torch_program import TorchProgram

    both = tmp_path / "both.pt2"
    with zipfile.ZipFile(both, "w") as file:
        for name in ("pool", "conv"):
            file.writestr(f"both/models/{name}.json", "{}")
    with pytest.raises(ValueError, match="holds several programs: conv, pool; choose one with --program NAME"):
        TorchProgram(both)


@pytest.mark.parametrize("mode", ["eager", "compile"])
def test_beside_torch(mode: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: scripts/requirements.txt leaves it out")
    batch = torch.export.Dim("batch", min=1, max=8)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.GELU()).eval()
    for name, dtype, error in (("float", torch.float32, 1e-5), ("half", torch.float16, 2e-3), ("bfloat", torch.bfloat16, 1e-2)):
        path, engine = tmp_path / f"{name}.pt2", tmp_path / f"{name}.engine"
        example = (torch.randn(2, 6, dtype=dtype),)
        torch.export.save(torch.export.export(model.to(dtype), example, dynamic_shapes=({0: batch},)), path)
        harness.compile_model(path, engine)
        report = tmp_path / f"{name}.json"
        result = harness.invoke("compare", path, engine, "--with", "torch", "--peer-mode", mode, "--python", sys.executable, "--rounds", 1,
                                "--duration", 0.05, "--shape", "input=5x6", "--json", report)  # fmt: skip
        assert result.kind == "ok", result.stderr
        [output] = json.loads(report.read_text())["outputs"]
        assert output["shape"] == [5, 5] and output["relative_error"] < error


def test_results_that_are_sizes(tmp_path: Path) -> None:
    """An engine gives a size among the results as a tensor; numbers that are known it does not give."""
    torch = pytest.importorskip("torch", reason="torch is not installed: scripts/requirements.txt leaves it out")

    class Model(torch.nn.Module):
        def forward(self, x):
            return {"z": x + 1, "a": [x * 2, None, 3, True, 2.5], "n": x.shape[0]}

    path, engine, report = tmp_path / "m.pt2", tmp_path / "m.engine", tmp_path / "report.json"
    batch = torch.export.Dim("batch", min=1, max=8)
    torch.export.save(torch.export.export(Model(), (torch.randn(2, 6),), dynamic_shapes=({0: batch},)), path)
    harness.compile_model(path, engine)
    result = harness.invoke("compare", path, engine, "--with", "torch", "--python", sys.executable, "--rounds", 1, "--duration", 0.05,
                            "--shape", "x=5x6", "--json", report)  # fmt: skip
    assert result.kind == "ok", result.stderr
    outputs = json.loads(report.read_text())["outputs"]
    assert [(o["name"], o["scale"]) for o in outputs[2:]] == [("n", 5)] and all(o["relative_error"] < 1e-6 for o in outputs)


def test_results_of_a_class(tmp_path: Path) -> None:
    """PyTorch reads a class of results (transformers') where the module that has it is imported: the peer imports it."""
    torch = pytest.importorskip("torch", reason="torch is not installed: scripts/requirements.txt leaves it out")
    outputs = pytest.importorskip("transformers.modeling_outputs", reason="transformers is not installed")

    class Model(torch.nn.Module):
        def forward(self, x):
            return outputs.BaseModelOutput(last_hidden_state=torch.tanh(x))

    path, engine, report = tmp_path / "m.pt2", tmp_path / "m.engine", tmp_path / "report.json"
    torch.export.save(torch.export.export(Model(), (torch.randn(2, 6),)), path)
    harness.compile_model(path, engine)
    result = harness.invoke("compare", path, engine, "--with", "torch", "--python", sys.executable, "--rounds", 1, "--duration", 0.05,
                            "--json", report)  # fmt: skip
    assert result.kind == "ok", result.stderr
    [output] = json.loads(report.read_text())["outputs"]
    assert output["name"] == "last_hidden_state" and output["relative_error"] < 1e-5
