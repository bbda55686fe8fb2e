"""The compact models as ONNX Runtime saves them: optimized, quantized."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime import quantization

COMPACT = harness.ROOT / "models/compact"
LEVELS = onnxruntime.GraphOptimizationLevel


def session(path, level=LEVELS.ORT_DISABLE_ALL, save=None) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    if save:
        options.optimized_model_filepath = str(save)
    return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])


def extended(source, folder):
    session(source, LEVELS.ORT_ENABLE_EXTENDED, folder / "extended.onnx")
    return folder / "extended.onnx"


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, inputs: dict):
        self.rows = iter([inputs])

    def get_next(self):
        return next(self.rows, None)


# Weights of 7 bits (reduce_range): on a CPU without VNNI two products of 8 bits saturate ONNX Runtime's sums of 16.
def static(source, folder, inputs, form):
    quantization.quantize_static(
        str(source), str(folder / "static.onnx"), Calibration(inputs), quant_format=form, reduce_range=True)
    return folder / "static.onnx"


def dynamic(source, folder):
    quantization.quantize_dynamic(str(source), str(folder / "dynamic.onnx"), reduce_range=True)
    return folder / "dynamic.onnx"


def runtime_operators(path) -> set[str]:
    nodes = onnx.load(path).graph.node
    return {n.op_type for n in nodes if n.domain == "com.microsoft"} | {n.op_type for n in nodes if "Q" in n.op_type or "Integer" in n.op_type}


# model: how it is saved, what has to be in it (else the case shows nothing), bound of the difference
FORMS = quantization.QuantFormat
CASES = {
    "resnet-extended": ("resnet", lambda s, f, i: extended(s, f), "FusedConv", 1e-4),
    "mobilenet-extended": ("mobilenet_v2", lambda s, f, i: extended(s, f), "FusedConv", 1e-4),
    "bert-extended": ("bert", lambda s, f, i: extended(s, f), "SkipLayerNormalization", 1e-4),
    "bert-legacy-extended": ("bert_legacy", lambda s, f, i: extended(s, f), "BiasGelu", 1e-4),
    "gpt2-extended": ("gpt2", lambda s, f, i: extended(s, f), "FusedMatMul", 1e-4),
    "vit-extended": ("vit", lambda s, f, i: extended(s, f), "SkipLayerNormalization", 1e-4),
    "resnet-qdq": ("resnet", lambda s, f, i: static(s, f, i, FORMS.QDQ), "QuantizeLinear", 0.05),
    "resnet-qoperator": ("resnet", lambda s, f, i: static(s, f, i, FORMS.QOperator), "QLinearConv", 0.05),
    "resnet-qdq-extended": ("resnet", lambda s, f, i: extended(static(s, f, i, FORMS.QDQ), f), "QLinearConv", 0.05),
    "bert-dynamic": ("bert", lambda s, f, i: dynamic(s, f), "MatMulInteger", 0.05),
    "bert-dynamic-extended": ("bert", lambda s, f, i: extended(dynamic(s, f), f), "DynamicQuantizeMatMul", 0.05),
}


def runs(model: str) -> list[dict]:
    """The inputs of each stored run, "in.<run>.<input>"."""
    found: dict[str, dict] = {}
    for key, value in np.load(COMPACT / f"{model}.npz").items():
        kind, run, name = key.split(".", 2)
        if kind == "in":
            found.setdefault(run, {})[name] = value
    return list(found.values())


@pytest.mark.parametrize("name", CASES)
def test_saved_model(tmp_path, name):
    model, save, operator, bound = CASES[name]
    inputs = runs(model)
    path = save(COMPACT / f"{model}.onnx", tmp_path, inputs[-1])
    assert operator in runtime_operators(path)
    names = [o.name for o in onnx.load(path).graph.output]
    harness.compile_model(path, tmp_path / "m.engine")
    for feeds in inputs:
        wanted = session(path).run(names, feeds)
        for got, want in zip(harness.run_engine(tmp_path / "m.engine", feeds, names, tmp_path), wanted):
            assert got.shape == want.shape
            assert np.abs(got - want).max() <= bound * max(1, np.abs(want).max())
