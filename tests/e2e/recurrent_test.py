"""Recurrent layers over sequences of open length, whose steps are repeated, beside ONNX Runtime."""

from __future__ import annotations

import json

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from simt_orders import in_orders

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


class Layer:
    """A layer over x [t, b, features], optionally with lengths and first states, as a model."""

    def __init__(self, op, hidden, features, seed=0, lengths=False, states=False, **attributes):
        self.rng = np.random.default_rng(seed)
        self.op, self.hidden, self.features = op, hidden, features
        self.sides = 2 if attributes.get("direction") == "bidirectional" else 1
        self.lengths, self.states = lengths, states
        self.weights = {}
        rows = GATES[op] * hidden
        operands = ["x", self.weight("w", self.sides, rows, features), self.weight("r", self.sides, rows, hidden),
                    self.weight("bias", self.sides, 2 * rows), "lengths" if lengths else ""]  # fmt: skip
        names = ["hidden"] + (["cell"] if op == "LSTM" else [])
        operands += names if states else []
        self.firsts = names if states else []
        self.results = ["y", "last"] + (["lastcell"] if op == "LSTM" else [])
        self.nodes = [helper.make_node(op, operands, self.results, hidden_size=hidden, **attributes)]

    def weight(self, name, *shape):
        self.weights[name] = self.rng.standard_normal(shape).astype(np.float32) / 2
        return name

    def save(self, path, batch="b", steps="t"):
        info = helper.make_tensor_value_info
        inputs = [info("x", TensorProto.FLOAT, [steps, batch, self.features])]
        if self.lengths:
            inputs.append(info("lengths", TensorProto.INT32, [batch]))
        inputs += [info(n, TensorProto.FLOAT, [self.sides, batch, self.hidden]) for n in self.firsts]
        outputs = [info(n, TensorProto.FLOAT, None) for n in self.results]
        weights = [numpy_helper.from_array(v, k) for k, v in self.weights.items()]
        graph = helper.make_graph(self.nodes, "recurrent", inputs, outputs, weights)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)]), path)

    def feeds(self, steps, batch):
        def normal(*shape):
            return self.rng.standard_normal(shape).astype(np.float32)

        feeds = {"x": normal(steps, batch, self.features)}
        if self.lengths:
            feeds["lengths"] = self.rng.integers(1, steps + 1, batch).astype(np.int32)
        return feeds | {name: normal(self.sides, batch, self.hidden) for name in self.firsts}

    def check(self, folder, sizes=((1, 1), (2, 3), (7, 1), (19, 2)), precision=None, tolerance=1e-5):
        self.save(folder / "m.onnx")
        harness.compile_model(folder / "m.onnx", folder / "m.engine", precision=precision)
        session = onnxruntime.InferenceSession(str(folder / "m.onnx"), providers=["CPUExecutionProvider"])
        for steps, batch in sizes:
            feeds = self.feeds(steps, batch)
            wanted = session.run(self.results, feeds)
            values = harness.run_engine(folder / "m.engine", feeds, self.results, folder / "run")
            for name, value, want in zip(self.results, values, wanted):
                assert value.shape == want.shape
                np.testing.assert_allclose(value, want, tolerance, tolerance, err_msg=f"{name} of {steps}, {batch}")


CASES = {
    "lstm": dict(op="LSTM", hidden=8, features=5),
    "lstm from states, lengths": dict(op="LSTM", hidden=7, features=3, states=True, lengths=True),
    "lstm, both ways": dict(op="LSTM", hidden=16, features=4, direction="bidirectional", lengths=True),
    "lstm, forget joined, clip": dict(op="LSTM", hidden=9, features=4, input_forget=1, clip=0.5, direction="reverse"),
    "gru": dict(op="GRU", hidden=33, features=6, states=True),
    "gru, reset late": dict(op="GRU", hidden=16, features=1, linear_before_reset=1, direction="bidirectional"),
    "rnn": dict(op="RNN", hidden=1, features=4, direction="reverse", lengths=True),
}

# Lists of parameters have an entry for each function that takes one.
PARAMETERS = {"Affine": (0.6, 0.1), "LeakyRelu": (0.2,), "ThresholdedRelu": (0.3,), "ScaledTanh": (0.9, 0.7), "HardSigmoid": (0.3, 0.6),
              "Elu": (0.7,), "Softsign": (), "Softplus": (), "Relu": ()}  # fmt: skip


def with_parameters(*functions):
    alpha = [p[0] for f in functions if (p := PARAMETERS[f])]
    beta = [p[1] for f in functions if len(p := PARAMETERS[f]) == 2]
    lists = {"activation_alpha": alpha, "activation_beta": beta}
    return {"activations": functions} | {name: values for name, values in lists.items() if values}


CASES |= {f"rnn of {f}": dict(op="RNN", hidden=4, features=3, **with_parameters(f)) for f in PARAMETERS}
CASES |= {
    "gru of parameters": dict(op="GRU", hidden=5, features=4, **with_parameters("HardSigmoid", "ScaledTanh")),
    "lstm of parameters, both ways": dict(op="LSTM", hidden=6, features=4, direction="bidirectional",
        **with_parameters("HardSigmoid", "ScaledTanh", "Softsign", "HardSigmoid", "Softsign", "ScaledTanh")),
    "gru of defaults": dict(op="GRU", hidden=5, features=4, activations=["HardSigmoid", "LeakyRelu"]),
}  # fmt: skip


def test_parameters_that_have_no_default(tmp_path):
    Layer("RNN", 4, 3, activations=["Affine"], activation_alpha=[0.5]).save(tmp_path / "m.onnx")
    with pytest.raises(harness.CharoniaError, match="activation 'affine' has no entry in 'activation_beta'"):
        harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")


@pytest.mark.parametrize("name", CASES)
def test_open_length(tmp_path, name):
    Layer(**CASES[name]).check(tmp_path)


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_small_types(tmp_path, precision):
    layer = Layer("LSTM", 32, 8, states=True, lengths=True)
    layer.check(tmp_path, precision=precision, tolerance=4e-3 if precision == "fp16" else 4e-2)


def test_layers_behind_each_other(tmp_path):
    """What one gives is read by the next, what is between is computed between."""
    layer = Layer("GRU", 12, 5, lengths=True)
    layer.weights["axis"] = np.array([1])
    layer.nodes += [
        helper.make_node("Squeeze", ["y", "axis"], ["z"]),
        helper.make_node("Softmax", ["z"], ["s"], axis=0),
        helper.make_node("LSTM", ["s", layer.weight("w2", 1, 28, 12), layer.weight("r2", 1, 28, 7)], ["y2", "last2"],
                         hidden_size=7, direction="reverse"),
        helper.make_node("Add", ["y2", "last2"], ["sum"]),
    ]  # fmt: skip
    layer.results = ["sum", "last", "z", "y2"]
    layer.check(tmp_path)


def test_one_program_for_all_lengths(tmp_path):
    """A step's kernels are there once, and no length is too long for the compiler."""
    layer = Layer("LSTM", 8, 4)
    layer.save(tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    report = json.loads(harness.invoke("inspect", tmp_path / "m.engine", "--json").stdout)
    (program,) = report["programs"]
    assert len(program["kernels"]) < 8 and len(program["steps"]) < 12
    (loop,) = program["repeats"]
    assert loop["count"] == "t" and 0 < loop["first"] < loop["last"] <= len(program["steps"])
    text = harness.invoke("inspect", tmp_path / "m.engine").stdout
    assert f"steps {loop['first']} to {loop['last'] - 1} run t times" in text
    # 2^20 steps in all are the most that one run takes.
    result = harness.invoke("run", tmp_path / "m.engine", "--shape", "x=1000000x1x4")
    assert result.kind == "failed" and "split the sequence" in result.stderr


def test_stages_can_be_dumped_and_resumed(tmp_path):
    layer = Layer("GRU", 8, 4, lengths=True)
    layer.save(tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", dump=tmp_path / "dump")
    wanted = (tmp_path / "m.engine").read_bytes()
    stages = sorted((tmp_path / "dump").glob("*simplify*.mlir")) + sorted((tmp_path / "dump").glob("*import*.mlir"))
    assert stages
    for stage in stages:
        harness.compile_model(stage, tmp_path / "again.engine")
        feeds = layer.feeds(5, 2)
        first = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "a")
        second = harness.run_engine(tmp_path / "again.engine", feeds, ["y"], tmp_path / "b")
        np.testing.assert_array_equal(first[0], second[0])
    assert wanted


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_steps_of_a_gpu(tmp_path, target, precision):
    """In the interpreter: what is carried, what lies among the outputs, sums that instances share."""
    layer = Layer("LSTM", 40, 12, states=True, lengths=True, direction="bidirectional")
    layer.save(tmp_path / "m.onnx")
    engine, dump = tmp_path / "m.engine", tmp_path / "dump"
    harness.compile_model(tmp_path / "m.onnx", engine, target=target, precision=precision, dump=dump)
    feeds = layer.feeds(5, 3)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    wanted = session.run(layer.results, feeds)
    for number, name in enumerate(layer.results):
        for value in in_orders(engine, feeds, tmp_path, dump, output=name):
            limit = 1e-5 if precision == "fp32" else 4e-3
            np.testing.assert_allclose(value, wanted[number], limit, limit)
