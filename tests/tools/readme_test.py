"""The commands that README shows under "Use" do what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import harness
import operator_table
import numpy as np
import pytest

USE = (harness.ROOT / "README.md").read_text().split("\n## Use\n")[1].split("\n## ")[0]
COMMANDS = re.findall(r"^    (charonia .*)$", USE, re.MULTILINE)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """All commands, in a folder where `models` is the repository's."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "models").symlink_to(harness.ROOT / "models")
    env = {**os.environ, "CHARONIA_PYTHON": sys.executable}
    outputs = {}
    for command in COMMANDS:
        _, *arguments = shlex.split(command)
        done = subprocess.run(
            [harness.binary(), *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        outputs[command] = done.stdout
    return folder, outputs


def output_of(ran, start: str) -> str:
    (text,) = (out for command, out in ran[1].items() if command.startswith(start))
    return text


def test_every_command_is_shown():
    shown = {command.split()[1] for command in COMMANDS}
    assert shown == {"compile", "run", "bench", "compare", "inspect"}


def test_random_run_prints_a_summary(ran):
    assert re.search(r"^logits +float32 +1x10 ", ran[1]["charonia run digits.engine"], re.MULTILINE)


def test_run_on_files_classifies(ran):
    labels = np.load(harness.ROOT / "models/digits/test_labels.npy")
    logits = np.load(ran[0] / "out/logits.npy")
    assert (logits.argmax(1) == labels).mean() > 0.95


def test_bench_and_compare(ran):
    assert "reached" in ran[1]["charonia bench digits.engine"]
    record = json.loads((ran[0] / "bench.json").read_text())
    assert record["inputs"] == {"image": [64, 1, 8, 8]}
    assert re.search("x as fast as onnxruntime .* on the CPU", output_of(ran, "charonia compare"))


def test_engine_for_gpus(ran):
    result = harness.invoke("inspect", ran[0] / "gpu.engine")
    assert "batch in 1..64" in result.stdout
    assert "cpu, fp16 (x86-64-v4, x86-64-v3)" in result.stdout
    assert "cuda, fp16 (sm_80)" in result.stdout
    assert "cuda, fp16 (sm_90a)" in result.stdout


def test_digest(ran):
    assert re.search(r"sha256 [0-9a-f]{64}\n", output_of(ran, "charonia inspect digits.engine --verify"))


def test_cplusplus_compiles(tmp_path):
    compiler = shutil.which("c++") or shutil.which("clang++-22") or shutil.which("clang++")
    if not compiler:
        pytest.skip("no C++ compiler")
    (block,) = re.findall(r"^```cpp\n(.*?)^```", USE, re.MULTILINE | re.DOTALL)
    source = tmp_path / "readme.cpp"
    source.write_text(block)
    include = harness.ROOT / "runtime/include"
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", f"-I{include}", source], capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_operator_table() -> None:
    """docs/operators.md is what the importers' tables say."""
    assert (harness.ROOT / "docs/operators.md").read_text() == operator_table.text()
