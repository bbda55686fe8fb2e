"""Runs, engines and command lines that cannot be right."""

from __future__ import annotations

import shutil
from pathlib import Path

import harness
import numpy as np
import pytest
from manner import DIGITS, check_manner, says


# --- Running ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("engine")
    path = folder / "digits.engine"
    harness.compile_model(DIGITS, path, shapes={"image": [(1, 4, 8), 1, 8, 8]})
    return path


def run_bad(tmp_path, engine, *inputs, extra=()) -> harness.Result:
    arguments = []
    for number, (name, value) in enumerate(inputs):
        path = tmp_path / f"in{number}.npy"
        if isinstance(value, bytes):
            path.write_bytes(value)
        else:
            np.save(path, value)
        arguments += ["--input", f"{name}={path}"]
    result = harness.invoke(
        "run", engine, *arguments, "--output-dir", tmp_path / "out", *extra, timeout=60
    )
    check_manner(result)
    left = list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else []
    assert not left, "outputs of a failed run were left behind"
    return result


def image(*dims, dtype=np.float32):
    return np.zeros(dims or (1, 1, 8, 8), dtype)


def test_run_with_unknown_input(tmp_path, engine):
    result = run_bad(tmp_path, engine, ("picture", image()))
    says(result, "picture", "image")


def test_run_with_wrong_type(tmp_path, engine):
    result = run_bad(tmp_path, engine, ("image", image(dtype=np.float64)))
    says(result, "image", "f64|float64|double", "f32|float")


@pytest.mark.parametrize("dims", [(9, 1, 8, 8), (0, 1, 8, 8), (1, 1, 8, 9), (1, 8, 8), ()])
def test_run_with_wrong_shape(tmp_path, engine, dims):
    value = np.zeros(dims, np.float32)
    result = run_bad(tmp_path, engine, ("image", value))
    says(result, "image")
    if len(dims) == 4 and dims[0] in (0, 9):
        says(result, r"1\D+8")  # the range that would be right


def test_run_with_same_input_twice(tmp_path, engine):
    says(run_bad(tmp_path, engine, ("image", image()), ("image", image())), "image")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY", b"not an array", b"\x93NUMPY\x01\x00\xff\xff{'descr'",
     b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }".ljust(117) + b"\n" + bytes(10),
     b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }".ljust(117) + b"\n",
     b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 1, 8, 8), }".ljust(117) + b"\n" + bytes(512)],
)  # fmt: skip
def test_run_with_damaged_array_file(tmp_path, engine, content):
    says(run_bad(tmp_path, engine, ("image", content)), r"in0\.npy")


def test_run_with_fortran_order(tmp_path, engine):
    """Column-major arrays are read right or refused, never misread."""
    rng = np.random.RandomState(0)
    value = rng.standard_normal((3, 1, 8, 8)).astype(np.float32)
    (want,) = harness.run_engine(engine, {"image": value}, ["logits"], tmp_path / "c")
    try:
        (got,) = harness.run_engine(
            engine, {"image": np.asfortranarray(value)}, ["logits"], tmp_path / "f"
        )
    except harness.CharoniaError as error:
        assert error.kind in ("failed", "refused")
        says(error.result, "fortran|order")
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_run_without_gpu(tmp_path, engine):
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    result = run_bad(tmp_path, engine, ("image", image()), extra=["--device", "cuda"])
    says(result, "cuda|gpu|nvidia|sm_")


def test_run_missing_engine(tmp_path):
    result = harness.invoke("run", tmp_path / "none.engine", "--output-dir", tmp_path / "o")
    check_manner(result)
    says(result, r"none\.engine")


def test_run_an_onnx_file_as_engine(tmp_path):
    result = harness.invoke("run", DIGITS, "--output-dir", tmp_path / "o")
    check_manner(result)
    says(result, r"digits\.onnx", "engine")


@pytest.mark.parametrize("part", range(24))
def test_truncated_engine(tmp_path, engine, part):
    whole = engine.read_bytes()
    path = tmp_path / "cut.engine"
    sizes = [0, 1, 7, 8, 16, 31, 32, 63, 64, 100, 200, 4095, 4096, 4097]
    kept = sizes[part] if part < len(sizes) else len(whole) * (part - 13) // 11 - 1
    path.write_bytes(whole[:kept])
    result = harness.invoke("inspect", path)
    check_manner(result)
    says(result, r"cut\.engine")


def test_engine_with_flipped_header_bytes(tmp_path, engine):
    whole = engine.read_bytes()
    path = tmp_path / "flipped.engine"
    accepted = []
    # A quarter of them; BadInputTest flips every bit of a header.
    for at in sorted(np.random.RandomState(1).choice(128, 32, replace=False)):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(bytes(damaged))
        result = harness.invoke("inspect", path)
        if result.kind == "ok":
            accepted.append(at)
            continue
        check_manner(result)
        says(result, r"flipped\.engine")
    assert not accepted, f"bytes {accepted} of the header may change unnoticed"


def test_engine_with_random_damage(tmp_path, engine):
    """Anywhere in the file: a message that says so, or the right result (between
    sections there are bytes that nobody reads); never a crash or a wrong result."""
    whole = engine.read_bytes()
    path = tmp_path / "damaged.engine"
    rng = np.random.RandomState(3)
    inputs = {"image": rng.standard_normal((1, 1, 8, 8)).astype(np.float32)}
    (want,) = harness.run_engine(engine, inputs, ["logits"], tmp_path / "right")
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 5)):
            damaged[rng.randint(len(damaged))] ^= rng.randint(1, 256)
        path.write_bytes(bytes(damaged))
        try:
            (got,) = harness.run_engine(path, inputs, ["logits"], tmp_path / "run")
        except harness.CharoniaError as error:
            check_manner(error.result)
            says(error.result, r"damaged\.engine' cannot be used: ")
            refused += 1
        else:
            np.testing.assert_array_equal(got, want)
    assert refused > 50


def test_help_names_every_command():
    result = harness.invoke("--help")
    assert result.code == 0
    for word in ("compile", "run", "bench", "compare", "inspect"):
        assert word in result.stdout


@pytest.mark.parametrize("arguments", [[], ["fly"], ["compile"], ["run"], ["compile", "--x"]])
def test_bad_command_line(arguments):
    result = harness.invoke(*arguments)
    assert result.code == 2
    assert result.stderr.startswith("error: ")
