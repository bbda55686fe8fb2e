"""What is said of programs that are damaged, or that ask for what is not supported: what is there, and what helps."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import harness
import pytest
from pt2_tables_test import BOOL, FLOAT, LONG, refusal, save

RELU = ("relu.default", {"self": "x"}, (FLOAT, [2]))


def edited(path: Path, *changes: tuple[str, str]) -> Path:
    """The program with its text changed."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name).decode() for name in file.namelist()}
    for old, new in changes:
        assert old in entries["m/models/model.json"]
        entries["m/models/model.json"] = entries["m/models/model.json"].replace(old, new)
    with zipfile.ZipFile(path, "w") as file:
        for name, text in entries.items():
            file.writestr(name, text)
    return path


@pytest.mark.parametrize("code", [2**31, 2**32 + FLOAT, 2**62, -1])
def test_codes_that_are_none(tmp_path: Path, code: int) -> None:
    """Not cut to 32 bits, in which one of them is that of float32."""
    path = edited(save(tmp_path / "m.pt2", [RELU], [2]), (f'"dtype": {FLOAT}', f'"dtype": {code}'))
    assert f"dtype is {code}, which is no code" in refusal(path)


@pytest.mark.parametrize("size", [-1, -(2**63)])
def test_sizes_that_are_none(tmp_path: Path, size: int) -> None:
    path = edited(save(tmp_path / "m.pt2", [RELU], [2]), ('{"as_int": 2}', f'{{"as_int": {size}}}'))
    text = refusal(path)
    assert f"is {size}, which is no size" in text and "affine_map" not in text


def test_named_constants_are_shown_as_they_are(tmp_path: Path) -> None:
    path = edited(save(tmp_path / "m.pt2", [RELU], [2]), ('{"as_int": 2}', '{"as_expr": {"expr_str": "Mod(s0, 0)", "hint": null}}'))
    text = refusal(path)
    assert "Mod(s0, 0)" in text and "s0()" not in text


def test_bytes_behind_a_program(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt2", [RELU], [2])
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"x" * 1000)
    text = refusal(path)
    assert f"the zip file ends at byte {size}, but there are 1000 behind that" in text and "cut short" not in text
    path.write_bytes(path.read_bytes()[: size - 40])
    assert "cut short: it has no directory at its end" in refusal(path)


@pytest.mark.parametrize(
    "op, given, result, said",
    [
        ("arange.start_step", {"start": 2, "end": 12, "step": 3}, (LONG, [5]), "gives [4], but the file says [5]"),
        ("arange.start_step", {"start": 12, "end": 2, "step": -3}, (LONG, [9]), "gives [4], but the file says [9]"),
        ("arange.default", {"end": 7}, (LONG, [2**30]), "gives [7], but the file says [1073741824]"),
        ("eye.default", {"n": 3}, (FLOAT, [3, 4]), "gives [3, 3], but the file says [3, 4]"),
        ("eye.m", {"n": 3, "m": 5}, (FLOAT, [5, 3]), "gives [3, 5], but the file says [5, 3]"),
    ],
)
def test_stated_lengths(tmp_path: Path, op: str, given: dict, result, said: str) -> None:
    assert said in refusal(save(tmp_path / "m.pt2", [(op, given, result)], [2]))


@pytest.mark.parametrize("op, given, result", [
    ("arange.start_step", {"start": 2, "end": 12, "step": 3}, (LONG, [4])),
    ("arange.start_step", {"start": 12, "end": 2, "step": -3}, (LONG, [4])),
    ("arange.start_step", {"start": 0.5, "end": 2.0, "step": 0.5}, (FLOAT, [3])),
    ("arange.start", {"start": -2, "end": 2}, (LONG, [4])),
    ("eye.m", {"n": 3, "m": 5}, (FLOAT, [3, 5])),
])  # fmt: skip
def test_lengths_that_agree(tmp_path: Path, op: str, given: dict, result) -> None:
    harness.compile_model(save(tmp_path / "m.pt2", [(op, given, result)], [2]), tmp_path / "m.engine")


def test_overloads_that_are_taken_apart(tmp_path: Path) -> None:
    text = refusal(save(tmp_path / "m.pt2", [("linspace.Tensor_Tensor", {"start": "x", "end": "x", "steps": 5}, (FLOAT, [5]))], [2]))
    assert "operator aten.linspace.Tensor_Tensor is not supported" in text
    assert "try program.run_decompositions() before saving" in text


@pytest.mark.parametrize("op, helps", [
    ("mvlgamma.default", True), ("renorm.default", True), ("trapezoid.dx", True), ("svd.default", False), ("linalg_pinv.default", False), ("matrix_exp.default", False), ("special_log_ndtr.default", False), ("combinations.default", False),
])  # fmt: skip
def test_what_decomposing_leaves(tmp_path: Path, op: str, helps: bool) -> None:
    """It is not told to decompose where that leaves operators that are not supported either."""
    text = refusal(save(tmp_path / "m.pt2", [(op, {"self": "x"}, (FLOAT, [2]))], [2]))
    assert f"operator aten.{op} is not supported" in text and ("run_decompositions()" in text) == helps, text


def test_masks_that_are_data(tmp_path: Path) -> None:
    nodes = [("isnan.default", {"self": "x"}, (BOOL, [2])), ("index.Tensor", {"self": "x", "indices": ["y0"]}, (FLOAT, [2]))]
    text = refusal(save(tmp_path / "m.pt2", nodes, [2]))
    assert "index 'y0' is a mask, and no constant" in text and "where(mask, x, 0) for x[mask]" in text


def with_token(path: Path, operator: str, results: list[dict]) -> Path:
    """The program with a call that a token orders, as run_decompositions() leaves them, in front of its first node."""
    call = {
        "target": "torch.ops.higher_order.with_effects", "metadata": {}, "outputs": [{"as_tensor": {"name": "later"}}, *results],
        "inputs": [{"name": "", "arg": arg, "kind": 1} for arg in ({"as_tensor": {"name": "token"}}, {"as_operator": operator}, {"as_tensor": {"name": "x"}})],
    }  # fmt: skip
    return edited(
        path, ('"inputs": [{"as_tensor"', '"inputs": [{"as_tensor": {"name": "token"}}, {"as_tensor"'), ('"nodes": [', f'"nodes": [{json.dumps(call)}, '),
        ('"input_specs": [', '"input_specs": [{"token": {"arg": {"name": "token"}}}, '), ('"output_specs": [', '"output_specs": [{"token": {"arg": {"name": "later"}}}, '),
        ('"outputs": [{"as_tensor": {"name": "y0"}}], "sym', '"outputs": [{"as_tensor": {"name": "later"}}, {"as_tensor": {"name": "y0"}}], "sym'),
    )  # fmt: skip


def test_calls_that_a_token_orders(tmp_path: Path) -> None:
    """What checks or prints is left out; of what gives something the operator is named."""
    path = with_token(save(tmp_path / "m.pt2", [RELU], [2]), "torch.ops.aten._linalg_check_errors.default", [{"as_none": True}])
    harness.compile_model(path, tmp_path / "m.engine")
    again = ("relu.default", {"self": "z"}, (FLOAT, [2]))
    text = refusal(with_token(save(tmp_path / "n.pt2", [again], [2]), "torch.ops.mine.logged.default", [{"as_tensor": {"name": "z"}}]))
    assert "operator mine.logged.default is not supported: it is of namespace 'mine'" in text, text


def test_calls_of_several_results_have_their_own_name(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt2", [("roi_pool.default", {"input": "x"}, (FLOAT, [2]))], [2])
    text = refusal(edited(path, ("torch.ops.aten.roi_pool", "torch.ops.torchvision.roi_pool"), ('"metadata": {}', '"metadata": {}, "name": "roi_pool_3"')))
    assert "node 'roi_pool_3' (torchvision.roi_pool.default)" in text, text


@pytest.mark.parametrize("length, near", [(8209, "8210 = "), (5003, "5004 = ")])
def test_transforms_that_are_too_long(tmp_path: Path, length: int, near: str) -> None:
    """The limit is told, and a length that is none; 40000 has small factors."""
    given = {"self": "x", "n": length}
    text = refusal(save(tmp_path / "m.pt2", [("fft_fft.default", given, (10, [length]))], [length]))
    assert f"a transform of length {length} is not supported: it takes a matrix of over 16777216 elements" in text
    assert f"use a shorter transform, or one of length {near}" in text


def test_weights_of_a_program(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt2", [RELU], [2])
    result = harness.invoke("compile", path, "-o", tmp_path / "m.engine", "--weights", path)
    assert result.code == 1
    assert "m.pt2: it is a program of torch.export\n" in result.stderr and 'torch.export.load("m.pt2").state_dict' in result.stderr
