"""The models with data that the onnx package carries: those that PyTorch's first
exporters wrote (opset 6 and newer), and small ones."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import harness
import node_cases
import onnx
import pytest

KINDS = ("pytorch-converted", "pytorch-operator", "simple")
# Strings, operators of training, inputs whose contents are a shape.
REFUSED = ("test_strnorm", "test_gradient", "test_expand_shape", "test_sequence_model8")


def folders() -> list[Path]:
    data = Path(os.path.dirname(onnx.__file__)) / "backend/test/data"
    return sorted(f for kind in KINDS for f in (data / kind).iterdir() if (f / "model.onnx").exists())


def read(folder: Path, what: str, count: int) -> list:
    files = [folder / f"{what}_{i}.pb" for i in range(count)]
    return [onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read_bytes())) for f in files]


SUPPORTED = [f for f in folders() if not f.name.startswith(REFUSED)]


@pytest.mark.parametrize("folder", SUPPORTED, ids=lambda f: f"{f.parent.name}-{f.name}")
def test_stored_model(tmp_path, folder):
    model = onnx.load(folder / "model.onnx")
    engine = tmp_path / "m.engine"
    harness.compile_model(folder / "model.onnx", engine, extra=["--cache-dir", tmp_path / "cache"])
    given = {i.name for i in model.graph.initializer}
    names = [o.name for o in model.graph.output]
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = read(data, "input", len(list(data.glob("input_*.pb"))))
        feeds = {i.name: v for i, v in zip(model.graph.input, inputs) if i.name not in given}
        got = harness.run_engine(engine, feeds, names, tmp_path / data.name)
        for name, want, value in zip(names, read(data, "output", len(names)), got):
            assert not (problem := node_cases.difference(want, value, 1e-3, 1e-5)), f"{name}: {problem}"


@pytest.mark.parametrize("folder", [f for f in folders() if f.name.startswith(REFUSED)], ids=lambda f: f.name)
def test_refused_model(tmp_path, folder):
    with pytest.raises(harness.CharoniaError) as error:
        harness.compile_model(folder / "model.onnx", tmp_path / "m.engine")
    assert error.value.kind == "refused"


def test_all_models_are_found():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        assert len(folders()) == sum(len(load_model_tests(kind=kind)) for kind in KINDS)
