"""Weights that are not there or not right, and engines that cannot be written."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess

import harness
import pytest
from manner import (
    DIGITS, FLOAT, check_manner, compile_bad, info, listing, make, relu_model, says, weights, write,
)  # fmt: skip
from onnx import TensorProto, helper


# --- Initializers and external data ---------------------------------------------


def test_initializer_with_too_little_data(tmp_path):
    tensor = weights("w", 3)
    tensor.raw_data = tensor.raw_data[:5]
    model = make(
        [helper.make_node("Add", ["x", "w"], ["y"], name="a")],
        [info("x", [3])], [info("y", [3])], [tensor],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), r"\bw\b", r"\b5\b|size|bytes", r"12|3")


def test_initializer_with_huge_shape(tmp_path):
    tensor = weights("w", 3)
    tensor.dims[:] = [2**33, 2**33]
    model = make(
        [helper.make_node("Add", ["x", "w"], ["y"], name="a")],
        [info("x", [3])], [info("y", [3])], [tensor],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), r"\bw\b")


def external_model(location="weights.bin", offset=None, length=None, count=64):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[count])
    tensor.data_location = TensorProto.EXTERNAL
    entries = dict(location=location, offset=offset, length=length)
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return make(
        [helper.make_node("Add", ["x", "w"], ["y"], name="a")],
        [info("x", [count])], [info("y", [count])], [tensor],
    )  # fmt: skip


def test_external_data_missing(tmp_path):
    says(compile_bad(tmp_path, external_model()), r"weights\.bin", r"\bw\b")


def test_external_data_without_location(tmp_path):
    says(compile_bad(tmp_path, external_model(None)), r"\bw\b", "location|external")


@pytest.mark.parametrize(
    "location",
    ["../outside.bin", "a/../../outside.bin", "ABSOLUTE", "LINK", "/dev/zero", "/etc/passwd"],
)
def test_external_data_outside_the_folder(tmp_path, location):
    outside = tmp_path / "outside.bin"
    outside.write_bytes(bytes(256))
    folder = tmp_path / "model"
    (folder / "a").mkdir(parents=True)
    if location == "ABSOLUTE":
        location = str(outside)
    if location == "LINK":
        location = "link.bin"
        (folder / location).symlink_to(outside)
    result = compile_bad(folder, external_model(location))
    says(result, "outside|folder|director|absolute")
    assert location in result.stderr


@pytest.mark.parametrize(
    "present, offset, length",
    [
        (100, None, None), (255, None, 256), (300, 100, 256), (256, 4, None),
        (256, -4, 256), (256, 2**63 - 1, 256), (256, 0, 2**62), (256, "abc", 256),
        (256, 2**64 - 4, 256), (512, 0, 128), (0, None, None),
    ],
)  # fmt: skip
def test_external_data_too_short(tmp_path, present, offset, length):
    (tmp_path / "weights.bin").write_bytes(bytes(present))
    result = compile_bad(tmp_path, external_model(offset=offset, length=length))
    says(result, r"weights\.bin|offset|length", r"\bw\b")


def test_external_data_is_a_folder(tmp_path):
    (tmp_path / "weights.bin").mkdir()
    says(compile_bad(tmp_path, external_model()), r"weights\.bin")


# --- Writing ---------------------------------------------------------------------


def test_output_folder_missing(tmp_path):
    path = write(tmp_path, relu_model())
    target = tmp_path / "no" / "such" / "model.engine"
    result = harness.invoke("compile", path, "-o", target, "--target", "cpu")
    check_manner(result)
    says(result, r"model\.engine|such", "no such|not exist|cannot|create|open")
    assert listing(tmp_path) == ["model.onnx"]


def test_output_not_writable_leaves_the_old_engine(tmp_path):
    """A write that fails half-way keeps the file that was there."""
    out = tmp_path / "out"
    out.mkdir()
    engine = out / "model.engine"
    engine.write_bytes(b"the old engine")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    done = subprocess.run(
        [harness.binary(), "compile", DIGITS, "-o", engine, "--target", "cpu"],
        capture_output=True, text=True, preexec_fn=limit, timeout=300,
    )  # fmt: skip
    assert 0 < done.returncode < 128, (done.returncode, done.stderr)
    assert re.search(r"model\.engine|writ", done.stderr), done.stderr
    assert engine.read_bytes() == b"the old engine"
    assert listing(out) == ["model.engine"]


def test_disk_full(tmp_path):
    """The same on a file system that is really full."""
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    mount = tmp_path / "small"
    mount.mkdir()
    script = (
        f"mount -t tmpfs -o size=32k none {mount} || exit 77; "
        f"'{harness.binary()}' compile '{DIGITS}' -o {mount}/model.engine --target cpu;"
        f" code=$?; echo left: $(ls -A {mount}); exit $code"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=300
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("may not mount a file system here")
    assert 0 < done.returncode < 128, (done.returncode, done.stderr)
    assert re.search("no space|full|writ", done.stderr, re.IGNORECASE), done.stderr
    assert done.stdout.strip().splitlines()[-1] == "left:", done.stdout
