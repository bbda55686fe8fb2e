"""Files that are no model, operators and graphs that are refused."""

from __future__ import annotations

import re

import harness
import numpy as np
import pytest
from manner import (
    DIGITS, INT64, check_manner, compile_bad, info, listing, make, relu_model, says, weights, write,
)  # fmt: skip
from onnx import TensorProto, helper


# --- Files that are no model ---------------------------------------------------


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.3, 0.5, 0.9, 0.999])
def test_truncated_file(tmp_path, kept):
    whole = DIGITS.read_bytes()
    result = compile_bad(tmp_path, whole[: int(len(whole) * kept)])
    says(result, r"model\.onnx")


@pytest.mark.parametrize("seed", range(6))
def test_garbage_file(tmp_path, seed):
    noise = np.random.RandomState(seed).bytes(3000)
    if seed >= 3:  # begins like a model
        noise = DIGITS.read_bytes()[: 40 * seed] + noise
    says(compile_bad(tmp_path, noise), r"model\.onnx")


@pytest.mark.parametrize("seed", range(40))
def test_damaged_file_never_crashes(tmp_path, seed):
    """A few bytes of a good file changed: an engine or a message, nothing else."""
    rng = np.random.RandomState(seed)
    data = bytearray(DIGITS.read_bytes())
    # The structure is at the two ends; the middle is weights.
    for _ in range(3):
        at = rng.randint(0, 1500)
        data[at if rng.rand() < 0.5 else -1 - at] = rng.randint(0, 256)
    path = tmp_path / "model.onnx"
    path.write_bytes(bytes(data))
    result = harness.invoke(
        "compile", path, "-o", tmp_path / "model.engine", "--target", "cpu"
    )
    if result.code != 0:
        check_manner(result)
        says(result, r"^error: .*model\.onnx: ")
        assert listing(tmp_path) == ["model.onnx"]
    else:
        inspected = harness.invoke("inspect", tmp_path / "model.engine", "--verify")
        assert inspected.code == 0, inspected.stderr


def test_missing_file(tmp_path):
    says(compile_bad(tmp_path, None), r"model\.onnx", r"no such file|not exist|not found")


def test_folder_instead_of_file(tmp_path):
    (tmp_path / "model.onnx").mkdir()
    says(compile_bad(tmp_path, None), r"model\.onnx", r"director|folder|not a .*file")


def test_text_file(tmp_path):
    says(compile_bad(tmp_path, b"<html>404 not found</html>\n" * 20), r"model\.onnx")


# --- Operators ---------------------------------------------------------------


UNKNOWN = (
    r"node 'frob_1' \(Frobnicate, opset 17\): there is no operator Frobnicate in opset 17"
)


def test_unknown_operator(tmp_path):
    model = make(
        [helper.make_node("Frobnicate", ["x"], ["y"], name="frob_1")],
        [info("x", [2, 3])], [info("y", [2, 3])],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), UNKNOWN)


def test_unknown_domain(tmp_path):
    node = helper.make_node("Fancy", ["x"], ["y"], name="n0", domain="com.example")
    model = make(
        [node], [info("x", [2])], [info("y", [2])], domains=["com.example"]
    )
    says(compile_bad(tmp_path, model), r"com\.example", "Fancy")


def test_all_unsupported_nodes_are_listed(tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="fine"),
        helper.make_node("NonZero", ["m"], ["b"], name="first_bad"),
        helper.make_node("NonZero", ["a"], ["c"], name="second_bad"),
        helper.make_node("Unique", ["a"], ["d"], name="third_bad"),
    ]
    model = make(
        nodes, [info("x", [6, 5]), info("m", [4, 4])],
        [info("b", [2, "j"], INT64), info("c", [2, "k"], INT64), info("d", ["u"])],
    )  # fmt: skip
    result = compile_bad(tmp_path, model)
    assert result.kind == "refused", result.stderr
    for node, op, operand in (
        ("first_bad", "NonZero", "m: float32[4, 4]"),
        ("second_bad", "NonZero", "a: float32[6, 5]"),
        ("third_bad", "Unique", "a: float32[6, 5]"),
    ):
        name, what = operand.split(":")[0], "shapes that depend on data are not supported"
        head = f"node '{node}' ({op}, opset 17): {what}: the result is as large as the values of input 0 ('{name}') say"
        says(result, re.escape(f"{head}\n  inputs: {operand}\n"))
    assert "fine" not in result.stderr


def test_place_in_a_sequence_by_data_is_refused(tmp_path):
    node = helper.make_node("SequenceConstruct", ["x", "z"], ["s"], name="seq")
    at = helper.make_node("SequenceAt", ["s", "i"], ["y"], name="at")
    model = make(
        [node, at], [info("x", [3]), info("z", [4]), info("i", [], INT64)], [info("y", ["n"])]
    )
    says(
        compile_bad(tmp_path, model), r"'at' \(SequenceAt", "a place in a sequence is not supported unless it follows",
        "s: a sequence of 2 tensors",
    )  # fmt: skip


def test_string_tensor_is_refused(tmp_path):
    model = make(
        [helper.make_node("Identity", ["x"], ["y"], name="id")],
        [info("x", [3], TensorProto.STRING)], [info("y", [3], TensorProto.STRING)],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), "string", r"\bx\b|id")


@pytest.mark.parametrize("opset", [0, -1, 1000])
def test_opset_out_of_range(tmp_path, opset):
    model = relu_model()
    model.opset_import[0].version = opset
    says(compile_bad(tmp_path, model), f"opset {opset} of domain '' is not supported: 1 to 28 are")


def test_missing_opset(tmp_path):
    model = relu_model()
    del model.opset_import[:]
    says(compile_bad(tmp_path, model), "opset")


def test_ir_version_missing(tmp_path):
    model = relu_model()
    model.ClearField("ir_version")
    says(compile_bad(tmp_path, model), r"^error: .*model\.onnx: not an ONNX model: it holds no ir_version")


def write(folder: Path, model) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


# --- Graphs that make no sense ------------------------------------------------


def test_cycle(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "c"], ["a"], name="add_a"),
        helper.make_node("Relu", ["a"], ["b"], name="relu_b"),
        helper.make_node("Neg", ["b"], ["c"], name="neg_c"),
    ]
    model = make(nodes, [info("x", [3])], [info("c", [3])])
    says(compile_bad(tmp_path, model), "cycl|cycle", "add_a|neg_c|relu_b")


def test_self_loop(tmp_path):
    nodes = [helper.make_node("Add", ["x", "y"], ["y"], name="loop")]
    model = make(nodes, [info("x", [3])], [info("y", [3])])
    says(compile_bad(tmp_path, model), "loop", "cycl|duplicate|defined")


def test_unsorted_but_acyclic_nodes(tmp_path):
    """ONNX demands topological order; what some exporters write is sorted."""
    nodes = [
        helper.make_node("Exp", ["a"], ["y"], name="late"),
        helper.make_node("Neg", ["x"], ["a"], name="early"),
    ]
    model = make(nodes, [info("x", [3])], [info("y", [3])])
    engine = tmp_path / "model.engine"
    harness.compile_model(write(tmp_path, model), engine)
    x = np.array([-1, 0, 2], np.float32)
    (y,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run")
    np.testing.assert_allclose(y, np.exp(-x), rtol=1e-6)


def test_undefined_input(tmp_path):
    nodes = [helper.make_node("Add", ["x", "ghost"], ["y"], name="add")]
    model = make(nodes, [info("x", [3])], [info("y", [3])])
    says(compile_bad(tmp_path, model), "ghost", "add")


def test_undefined_output(tmp_path):
    model = relu_model()
    model.graph.output[0].name = "nowhere"
    says(compile_bad(tmp_path, model), "nowhere")


def test_duplicate_value_names(tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="first"),
        helper.make_node("Neg", ["x"], ["y"], name="second"),
    ]
    model = make(nodes, [info("x", [3])], [info("y", [3])])
    says(compile_bad(tmp_path, model), r"\by\b", "first|second", "twice|duplicate|already|more than once|unique")


def test_duplicate_inputs(tmp_path):
    model = make(
        [helper.make_node("Relu", ["x"], ["y"], name="r")],
        [info("x", [3]), info("x", [4])], [info("y", [3])],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), r"\bx\b", "twice|duplicate|already|more than once|unique")


def test_duplicate_initializers(tmp_path):
    model = make(
        [helper.make_node("Add", ["x", "w"], ["y"], name="a")],
        [info("x", [3])], [info("y", [3])], [weights("w", 3), weights("w", 3)],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), r"\bw\b", "twice|duplicate|already|more than once|unique")


def test_too_few_inputs(tmp_path):
    nodes = [helper.make_node("Add", ["x"], ["y"], name="lonely")]
    model = make(nodes, [info("x", [3])], [info("y", [3])])
    says(compile_bad(tmp_path, model), "lonely", "Add", "input")


def test_too_many_inputs(tmp_path):
    nodes = [helper.make_node("Relu", ["x", "x", "x"], ["y"], name="crowded")]
    model = make(nodes, [info("x", [3])], [info("y", [3])])
    says(compile_bad(tmp_path, model), "crowded", "Relu", "input")


# --- Functions ----------------------------------------------------------------


def test_recursive_function(tmp_path):
    body = [helper.make_node("Self", ["a"], ["b"], domain="local", name="again")]
    function = helper.make_function(
        "local", "Self", ["a"], ["b"], body,
        [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
    )  # fmt: skip
    node = helper.make_node("Self", ["x"], ["y"], domain="local", name="start")
    model = make([node], [info("x", [3])], [info("y", [3])], domains=["local"])
    model.functions.append(function)
    says(compile_bad(tmp_path, model), "Self", "recurs|itself|cycl|deep")


def test_function_bomb(tmp_path):
    """Functions that double: 2^40 nodes after expansion."""
    model = make(
        [helper.make_node("F40", ["x"], ["y"], domain="local", name="start")],
        [info("x", [3])], [info("y", [3])], domains=["local"],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    for level in range(41):
        inner = f"F{level - 1}" if level else "Relu"
        domain = "local" if level else ""
        nodes = [
            helper.make_node(inner, ["a"], ["m"], domain=domain),
            helper.make_node(inner, ["m"], ["b"], domain=domain),
        ]
        model.functions.append(
            helper.make_function("local", f"F{level}", ["a"], ["b"], nodes, opsets)
        )
    says(compile_bad(tmp_path, model), "large|many|limit|nodes|deep")
