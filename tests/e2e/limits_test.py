"""Limits of a compilation end it with a message that says where it was."""

from __future__ import annotations

import re

import compile_bombs as bombs
import harness
import pytest

SLOW = ("--no-cache", "--threads", "1")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(bombs.dag(400, 3, near=12).SerializeToString())
    return path


def check_given_up(folder, result, limit):
    assert result.code == 1, result.stderr
    assert re.match(
        r"error: \S*model\.onnx: compiling is over the " + limit, result.stderr
    ), result.stderr
    for text in ("at: stage '", "time so far: ", "remedy: raise the limit"):
        assert text in result.stderr, result.stderr
    assert [p.name for p in folder.iterdir()] == ["model.onnx"], "something was left behind"


@pytest.mark.parametrize("seconds", [0.01, 0.2])
def test_time_limit(tmp_path, model, seconds):
    result = harness.invoke("compile", model, *SLOW, "--time-limit", str(seconds))
    check_given_up(tmp_path, result, rf"time limit of {seconds}0* s\n")


def give_up_in_a_kernel(path, flag, limit, factor):
    """Raises the limit until the model is read, which takes an unknown part of it, and
    lowers it where all was done: the next run may take twice as long on a busy machine."""
    for _ in range(60):
        result = harness.invoke("compile", path, *SLOW, flag, f"{limit:.3f}")
        if "kernel sin_" in result.stderr:
            return result
        stage = re.search("at: stage '(.*?)'", result.stderr)
        early = result.code == 1 and stage and stage[1] != "writing"
        limit = limit * factor if early else limit / factor**2
        path.with_suffix(".engine").unlink(missing_ok=True)
    raise AssertionError(f"no {flag} ended in a kernel: {result.stderr}")


def check_kernel_is_named(result):
    assert "reading the model" in result.stderr, result.stderr
    assert re.search(
        r"at: stage '(work of )?kernels for (x86-64-v\d\S*)', kernel sin_\S* (for \2 )?"
        r"\(of nodes 'n\d+', 'n\d+', .*\) for", result.stderr
    ), result.stderr  # fmt: skip


@pytest.mark.parametrize(
    "flag, start, factor", [("--time-limit", 0.05, 1.3), ("--memory-limit", 8, 1.1)]
)
def test_limits_name_the_kernel(tmp_path, flag, start, factor):
    """Where a kernel is being compiled, it and the model's nodes are named."""
    path = tmp_path / "model.onnx"
    path.write_bytes(bombs.chain("Sin", 90).SerializeToString())
    result = give_up_in_a_kernel(path, flag, start, factor)
    check_given_up(tmp_path, result, flag[2:].replace("-", " "))
    check_kernel_is_named(result)


def test_memory_limit(tmp_path, model):
    result = harness.invoke("compile", model, *SLOW, "--memory-limit", "1")
    check_given_up(tmp_path, result, r"memory limit of 1 MB \([1-9]\d* MB are in use\)")
    assert "limit of 1 MB (1 MB" not in result.stderr


def test_limits_that_suffice(tmp_path, model):
    result = harness.invoke(
        "compile", model, "--time-limit", "3600", "--memory-limit", "100000", "--verbose"
    )
    assert result.code == 0, result.stderr
    for row in ("reading the model", "layout", "kernels for x86-64-v4", "slowest kernels"):
        assert re.search(rf"^\W*{row}", result.stderr, re.MULTILINE), result.stderr
    assert (tmp_path / "model.engine").exists()


@pytest.mark.parametrize("flag", ["--time-limit", "--memory-limit"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "x"])
def test_limits_are_checked(model, flag, value):
    result = harness.invoke("compile", model, flag, value)
    assert result.code == 2, result.stderr
    assert flag in result.stderr


@pytest.mark.parametrize("value", ["1e-7", "0.009", "100000001", "4e9", "inf"])
def test_memory_limit_is_sensible(model, value):
    """Less than a page would be no limit at all, and so would a number of bytes."""
    result = harness.invoke("compile", model, "--memory-limit", value)
    assert result.code == 2, result.stderr
    assert f"--memory-limit: '{value}' is not a number of MB from 0.01 to" in result.stderr
