"""The GPU kernels of the compact models, run thread by thread by charonia-simt."""

from __future__ import annotations

import json
import re

import compact_test
import harness
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from simt_orders import ORDERS, check_banks

# Of the largest value of the reference output, which is of fp32.
LIMITS = {"fp32": 1e-4, "fp16": 1e-2}


def compile_for_gpu(folder, name, precision, found, extra=()):
    engine, dump = folder / f"{name}.engine", folder / "dump"
    harness.compile_model(
        compact_test.FOLDER / f"{name}.onnx", engine, target="sm_90",
        precision=precision, shapes=compact_test.ranges(found), dump=dump, extra=extra,
    )  # fmt: skip
    return engine, dump


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("name", compact_test.NAMES)
def test_compact_model(tmp_path, name, precision):
    """Right results and no finding, and the same results in every order."""
    found = compact_test.cases(name)
    engine, dump = compile_for_gpu(tmp_path, name, precision, found)
    smallest = sorted(found, key=lambda c: sum(v.size for v in found[c][0].values()))
    runs = [(smallest[0], order) for order in ORDERS]
    runs += [(case, ORDERS[1]) for case in smallest[1:2]]
    results = {}
    for case, (seed, copies) in runs:
        inputs, outputs = found[case]
        report = tmp_path / "report.json"
        got = harness.run_engine(
            engine, inputs, list(outputs), tmp_path / "run", device="simt", dump=dump,
            extra=["--seed", str(seed), "--copies", copies, "--report", report],
        )  # fmt: skip
        for (output, want), value in zip(outputs.items(), got):
            assert value.shape == want.shape and value.dtype == want.dtype
            error = np.abs(value - want).max() / np.abs(want).max()
            assert error <= LIMITS[precision], f"{case} {output}: {error:.2e}"
            # The order of sums is defined, so it does not depend on who comes first.
            first = results.setdefault((case, output), value)
            assert np.array_equal(first, value), f"{case} {output}: order matters"
        check_banks(json.loads(report.read_text())["banks"])


def test_findings_are_told(tmp_path):
    """A kernel without its barriers: the program says what is wrong, and fails."""
    found = compact_test.cases("vit")
    engine, dump = compile_for_gpu(tmp_path, "vit", "fp16", found)
    changed = 0
    for kernel in dump.glob("*-cuda-code/*/*attention*-thread.mlir"):
        text = kernel.read_text()
        changed += text.count("nvvm.barrier0")
        kernel.write_text(text.replace("nvvm.barrier0", ""))
    assert changed
    inputs, outputs = next(iter(found.values()))
    with pytest.raises(harness.CharoniaError) as caught:
        harness.run_engine(
            engine, inputs, list(outputs), tmp_path / "run", device="simt", dump=dump
        )
    stderr = caught.value.result.stderr
    assert "error: attention: race: nvvm.ldmatrix at sm_90.attention" in stderr
    assert caught.value.result.code == 1


WAIT = r"nvvm\.griddepcontrol +wait\n"


def wait_later(text: str) -> str:
    """Behind the access to a buffer that follows."""
    access = r"llvm\.(?:load|store) .*ptr<1>|(?:ld|st)\.global|cp\.async\.shared"
    return re.sub(rf"( *{WAIT})((?:.*\n)*?)(.*(?:{access}).*\n)", r"\2\3\1", text, count=1)


@pytest.mark.parametrize(
    "change, found_there",
    [(lambda text: re.sub(WAIT, "", text), {"early access", "never waited", "early start"}),
     (wait_later, {"early access"})],
    ids=["never", "late"],
)  # fmt: skip
def test_kernels_that_overtake_are_told(tmp_path, change, found_there):
    """Each kernel waits where it must, and not a load later (those of waves, which wait at their ends, apart)."""
    found = compact_test.cases("bert")
    engine, dump = compile_for_gpu(tmp_path, "bert", "fp16", found, ["--no-waves"])
    kernels = list(dump.glob("*-cuda-code/*/*-thread.mlir"))
    for kernel in kernels:
        text = kernel.read_text()
        assert len(re.findall(WAIT, text)) == 1
        kernel.write_text(change(text))
        assert kernel.read_text() != text
    report = tmp_path / "report.json"
    result = invoke_simt(engine, dump, "--report", report)
    assert result.code == 1, result.stderr
    findings = json.loads(report.read_text())["findings"]
    assert {f["kind"] for f in findings} == found_there
    names = {k.parent.name.split("-", 1)[1].replace(".", "_") for k in kernels}
    early = {f["kernel"] for f in findings if f["kind"] == "early access"}
    assert len(early) == len(names), names - early


def recurrence(op, direction):
    """Without an initial state, which is then zeros of as many rows as there are sequences."""
    steps, size, hidden = 3, 8, 8
    rng = np.random.default_rng(5)
    gates, directions = {"GRU": 3, "LSTM": 4}[op], 1 + (direction == "bidirectional")
    weights = [
        numpy_helper.from_array((rng.standard_normal(shape) * 0.3).astype(np.float32), name)
        for name, shape in (("w", (directions, gates * hidden, size)), ("r", (directions, gates * hidden, hidden)))
    ]  # fmt: skip
    node = helper.make_node(op, ["x", "w", "r"], ["y", "h"], hidden_size=hidden, direction=direction)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, "b", size])]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yh"]
    graph = helper.make_graph([node], op, inputs, outputs, weights)
    x = rng.standard_normal((steps, 3, size)).astype(np.float32)
    return graph, {"x": x}


def dear():
    """Weights alone give what is added to the input, which takes too long to compute when the
    engine is written: kernels of it run before the last one."""
    rng = np.random.default_rng(6)
    weights = {
        "w": rng.standard_normal(900).astype(np.float32), "s": np.array([900, 900]), "axes": np.array([0]),
    }  # fmt: skip
    nodes = [
        helper.make_node("Expand", ["w", "s"], ["e"]), helper.make_node("Sin", ["e"], ["t"]),
        helper.make_node("MatMul", ["t", "t"], ["u"]),
        helper.make_node("ReduceSum", ["u", "axes"], ["q"], keepdims=0),
        helper.make_node("Add", ["x", "q"], ["y"]),
    ]  # fmt: skip
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 900]) for n in "xy"]
    initializers = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, "dear", values[:1], values[1:], initializers)
    return graph, {"x": rng.standard_normal((4, 900)).astype(np.float32)}


OF_WEIGHTS = {
    f"{op}_{direction}": lambda op=op, direction=direction: recurrence(op, direction)
    for op in ("GRU", "LSTM") for direction in ("forward", "bidirectional")
} | {"dear": dear}  # fmt: skip


@pytest.mark.parametrize("target, precision", [("sm_90", "fp32"), ("sm_90a", "fp16")])
@pytest.mark.parametrize("name", OF_WEIGHTS)
def test_results_of_weights_are_waited_for(tmp_path, name, target, precision):
    """Kernels that read nothing but weights overlap with their readers as all others do."""
    import onnxruntime

    graph, inputs = OF_WEIGHTS[name]()
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    path.write_bytes(model.SerializeToString())
    harness.compile_model(path, engine, target=target, precision=precision, dump=dump)
    outputs = [o.name for o in model.graph.output]
    got = harness.run_engine(
        engine, inputs, outputs, tmp_path / "run", device="simt", dump=dump
    )
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for value, want in zip(got, session.run(outputs, inputs)):
        error = np.abs(value - want).max() / np.abs(want).max()
        assert error <= LIMITS[precision], f"{name}: {error:.2e}"


def compile_nodes(folder, nodes, inputs, outputs, *, targets=("sm_90",)):
    """A model of [8] of the given types: its engine and its dump."""

    def infos(values):
        return [helper.make_tensor_value_info(n, t, [8]) for n, t in values.items()]

    graph = helper.make_graph(nodes, "small", infos(inputs), infos(outputs))
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    engine, dump = folder / "model.engine", folder / "dump"
    harness.compile_model(path, engine, target=",".join(targets), dump=dump)
    return engine, dump


def one_node(folder, **options):
    node = helper.make_node("Exp", ["x"], ["y"])
    kind = TensorProto.FLOAT
    return compile_nodes(folder, [node], {"x": kind}, {"y": kind}, **options)


def invoke_simt(engine, dump, *extra) -> harness.Result:
    return harness.invoke(
        engine, "--dump-dir", dump, *extra, program="charonia-simt", timeout=120
    )


def test_outputs_that_would_share_a_file(tmp_path):
    nodes = [helper.make_node(o, ["x"], [n]) for o, n in (("Neg", "a/b"), ("Abs", "a_b"))]
    kinds = dict.fromkeys(("a/b", "a_b"), TensorProto.FLOAT)
    engine, dump = compile_nodes(tmp_path, nodes, {"x": TensorProto.FLOAT}, kinds)
    x = np.arange(8, dtype=np.float32)
    first, second = harness.run_engine(
        engine, {"x": x}, list(kinds), tmp_path / "run", device="simt", dump=dump
    )
    np.testing.assert_array_equal(first, -x)
    np.testing.assert_array_equal(second, x)


def test_one_program_is_run_and_named(tmp_path):
    engine, dump = one_node(tmp_path, targets=("sm_80", "sm_90"))
    result = invoke_simt(engine, dump)
    assert result.code == 1
    assert "several of its programs for GPUs (" in result.stderr
    assert "sm_80, fp32" in result.stderr and "sm_90, fp32" in result.stderr
    result = invoke_simt(engine, dump, "--arch", "sm_80")
    assert result.kind == "ok", result.stderr
    assert "note: running sm_80, fp32\n" in result.stderr
    result = invoke_simt(engine, dump, "--arch", "sm_80", "--precision", "fp16")
    assert result.code == 1 and "none of its programs for GPUs (" in result.stderr


@pytest.mark.parametrize(
    "pattern, text, message",
    [
        (r"nvvm\.reqntid = array<i32: \d+>", "nvvm.reqntid = array<i32: 96>",
         r"has blocks of 96 threads, the engine's of \d+"),
        (r"(llvm\.func .*?)@\w+\(", r"\1@another(", r"another stands in the place of another, the engine's is \w+"),
        (r"nvvm\.reqntid", "nvvm.cluster_dim = array<i32: 2, 1, 1>, nvvm.reqntid",
         "runs in clusters of blocks"),
    ],
)  # fmt: skip
def test_dump_of_another_engine(tmp_path, pattern, text, message):
    engine, dump = one_node(tmp_path)
    (kernel,) = dump.glob("*-cuda-code/*/*-thread.mlir")
    changed, count = re.subn(pattern, text, kernel.read_text(), count=1)
    assert count == 1
    kernel.write_text(changed)
    result = invoke_simt(engine, dump)
    assert result.code == 1
    assert re.search(message, result.stderr), result.stderr
