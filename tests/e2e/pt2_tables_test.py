"""Exported programs that ask in a few bytes for much, and those whose sizes are not what they say."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import harness
import pytest

FLOAT, LONG, BOOL = 7, 5, 12


def tensor(name: str) -> dict:
    return {"as_tensor": {"name": name}}


def meta(dtype: int, sizes: list[int]) -> dict:
    strides = [1] * len(sizes)
    for d in range(len(sizes) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(sizes[d + 1], 1)
    number = [[{"as_int": n} for n in values] for values in (sizes, strides)]
    return {
        "dtype": dtype, "sizes": number[0], "strides": number[1], "requires_grad": False, "layout": 7,
        "device": {"type": "cpu", "index": None}, "storage_offset": {"as_int": 0},
    }  # fmt: skip


def argument(value) -> dict:
    if isinstance(value, str):
        return tensor(value)
    if isinstance(value, list):
        return {"as_tensors": [{"name": v} for v in value]} if isinstance(value[0], str) else {"as_ints": value}
    kind = "as_bool" if isinstance(value, bool) else "as_int" if isinstance(value, int) else "as_float"
    return {kind: value}


def save(path: Path, nodes: list[tuple[str, dict, tuple[int, list[int]]]], x: list[int]) -> Path:
    """A program of operators with their arguments and results, all of which are given back."""
    names = [f"y{i}" for i in range(len(nodes))]
    graph = {
        "inputs": [tensor("x")], "outputs": [tensor(n) for n in names], "sym_int_values": {},
        "nodes": [
            {"target": f"torch.ops.aten.{op}", "metadata": {}, "outputs": [tensor(name)],
             "inputs": [{"name": k, "arg": argument(v), "kind": 1} for k, v in given.items()]}
            for name, (op, given, _) in zip(names, nodes)
        ],
        "tensor_values": {"x": meta(FLOAT, x), **{name: meta(*result) for name, (_, _, result) in zip(names, nodes)}},
    }  # fmt: skip
    signature = {
        "input_specs": [{"user_input": {"arg": tensor("x")}}],
        "output_specs": [{"user_output": {"arg": tensor(n)}} for n in names],
    }  # fmt: skip
    program = {
        "graph_module": {"graph": graph, "signature": signature, "module_call_graph": []},
        "range_constraints": {}, "schema_version": {"major": 8, "minor": 20}, "torch_version": "2.15.0",
    }  # fmt: skip
    entries = {
        "archive_format": "pt2", "archive_version": "0", "byteorder": "little", "models/model.json": json.dumps(program),
        "data/weights/model_weights_config.json": '{"config": {}}', "data/constants/model_constants_config.json": '{"config": {}}',
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as file:
        for name, text in entries.items():
            file.writestr(f"m/{name}", text)
    return path


def refusal(path: Path) -> str:
    result = harness.invoke("compile", path, "-o", path.with_suffix(".engine"))
    assert result.code == 1, result.stderr
    return result.stderr


@pytest.mark.parametrize("steps", [2**26, 2**33, 2**40, 2**62])
def test_linspace_of_many_steps(steps: int, tmp_path: Path) -> None:
    node = ("linspace.default", {"start": 0.0, "end": 1.0, "steps": steps}, (FLOAT, [steps]))
    text = refusal(save(tmp_path / "m.pt2", [node], [2]))
    assert "(aten.linspace.default): " in text
    assert steps == 2**62 or f"needs a table of {steps} elements of 4 bytes; tables of up to 64 MiB are made" in text


def test_one_table(tmp_path: Path) -> None:
    rows = 2100
    node = ("tril_indices.default", {"row": rows, "col": rows}, (LONG, [2, rows * (rows + 1) // 2]))
    text = refusal(save(tmp_path / "m.pt2", [node], [2]))
    assert f"(aten.tril_indices.default): needs a table of {2 * rows * rows} elements of 8 bytes" in text


def test_all_tables_together(tmp_path: Path) -> None:
    """Each is small enough; four of 64 MiB are all that is made."""
    nodes = [("tril_indices.default", {"row": 2048, "col": 2048, "offset": i}, (LONG, [2, 0])) for i in range(5)]
    for i, (_, _, result) in enumerate(nodes):
        result[1][1] = sum(min(2048, r + i + 1) for r in range(2048))
    text = refusal(save(tmp_path / "m.pt2", nodes, [2]))
    assert "(aten.tril_indices.default): functions, loops and tables written out are over 131072 nodes with these 32768" in text
    assert "shorter transforms and windows" in text


def test_small_tables_are_counted(tmp_path: Path) -> None:
    """Of a file of 1 MB they would be gigabytes."""
    nodes = [("linspace.default", {"start": float(i), "end": 1.0, "steps": 2**22}, (FLOAT, [2**22])) for i in range(17)]
    text = refusal(save(tmp_path / "m.pt2", nodes, [2]))
    assert "(aten.linspace.default): functions, loops and tables written out are over 131072 nodes with these 8192" in text


@pytest.mark.parametrize("length", [1, 3, 100000])
def test_diagonal_is_as_long_as_its_matrix(length: int, tmp_path: Path) -> None:
    """The file's size is compared with what follows from the matrix."""
    node = ("diagonal.default", {"self": "x"}, (FLOAT, [length]))
    text = refusal(save(tmp_path / "m.pt2", [node], [2, 4]))
    assert "(aten.diagonal.default): " in text and f"float32[2], but the file says float32[{length}]" in text


@pytest.mark.parametrize("name, given", [("fft_fftfreq.default", {"n": 8}), ("fft_rfftfreq.default", {"n": 14})])
def test_frequencies_are_as_many_as_is_asked(name: str, given: dict, tmp_path: Path) -> None:
    text = refusal(save(tmp_path / "m.pt2", [(name, given, (FLOAT, [9]))], [2]))
    assert f"(aten.{name}): " in text and "float32[8], but the file says float32[9]" in text


@pytest.mark.parametrize("window", ["hann", "hamming", "blackman", "kaiser", "bartlett"])
@pytest.mark.parametrize("length", [0, 8, -1])
def test_windows_are_as_long_as_is_asked(window: str, length: int, tmp_path: Path) -> None:
    text = refusal(save(tmp_path / "m.pt2", [(f"{window}_window.default", {"window_length": length}, (FLOAT, [9]))], [2]))
    told = f"float32[{length}], but the file says float32[9]" if length >= 0 else "a window of -1 elements"
    assert f"(aten.{window}_window.default): " in text and told in text
