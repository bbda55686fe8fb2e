"""Bad models and bad calls: each gets a message that helps, and nothing else.

Every case checks the exit status, that no signal or assertion ended the program,
what the message names, and that no file is left behind.
"""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
DIGITS = harness.ROOT / "models/digits/digits.onnx"


def info(name, dims, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def weights(name, *dims):
    values = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)
    return onnx.numpy_helper.from_array(values, name)


def make(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
    graph = helper.make_graph(nodes, "bad", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def relu_model():
    return make(
        [helper.make_node("Relu", ["x"], ["y"], name="relu")],
        [info("x", ["n", 4])], [info("y", ["n", 4])],
    )  # fmt: skip


def compile_bad(folder: Path, model, *extra) -> harness.Result:
    """Compiles a model that must be refused; checks the manner, returns the result."""
    path = folder / "model.onnx"
    if isinstance(model, bytes):
        path.write_bytes(model)
    elif model is not None:
        path.write_bytes(model.SerializeToString())
    before = listing(folder)
    result = harness.invoke(
        "compile", path, "-o", folder / "model.engine", "--target", "cpu", *extra,
        timeout=120,
    )  # fmt: skip
    check_manner(result)
    assert listing(folder) == before, "files were left behind"
    return result


def check_manner(result: harness.Result) -> None:
    text = f"exit {result.code}\n{result.stdout}\n{result.stderr}"
    assert result.kind in ("failed", "refused"), f"{result.kind}: {text}"
    assert result.code != 0, text
    assert result.stderr.strip(), "no message on standard error"
    assert len(result.stderr) < 20000, "an endless message"


def listing(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def says(result: harness.Result, *patterns: str) -> None:
    """Each pattern (a regular expression, any case) must be in the message."""
    for pattern in patterns:
        assert re.search(pattern, result.stderr, re.IGNORECASE | re.DOTALL), (
            f"no {pattern!r} in:\n{result.stderr}"
        )


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
        assert listing(tmp_path) == ["model.onnx"]


def test_missing_file(tmp_path):
    says(compile_bad(tmp_path, None), r"model\.onnx", r"no such file|not exist|not found")


def test_folder_instead_of_file(tmp_path):
    (tmp_path / "model.onnx").mkdir()
    says(compile_bad(tmp_path, None), r"model\.onnx", r"director|folder|not a .*file")


def test_text_file(tmp_path):
    says(compile_bad(tmp_path, b"<html>404 not found</html>\n" * 20), r"model\.onnx")


# --- Operators ---------------------------------------------------------------


def test_unknown_operator(tmp_path):
    model = make(
        [helper.make_node("Frobnicate", ["x"], ["y"], name="frob_1")],
        [info("x", [2, 3])], [info("y", [2, 3])],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), "Frobnicate", "frob_1", "17")


def test_unknown_domain(tmp_path):
    node = helper.make_node("Fancy", ["x"], ["y"], name="n0", domain="com.example")
    model = make(
        [node], [info("x", [2])], [info("y", [2])], domains=["com.example"]
    )
    says(compile_bad(tmp_path, model), r"com\.example", "Fancy")


def test_all_unsupported_nodes_are_listed(tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="fine"),
        helper.make_node("Det", ["m"], ["b"], name="first_bad"),
        helper.make_node("NonZero", ["a"], ["c"], name="second_bad"),
        helper.make_node("Unique", ["a"], ["d"], name="third_bad"),
    ]
    model = make(
        nodes, [info("x", [6, 5]), info("m", [4, 4])],
        [info("b", []), info("c", [2, "k"], INT64), info("d", ["u"])],
    )  # fmt: skip
    result = compile_bad(tmp_path, model)
    assert result.kind == "refused", result.stderr
    says(result, "first_bad", "second_bad", "third_bad")
    says(result, "Det", "NonZero", "Unique")
    says(result, "17", "4x4|4, ?4", "6x5|6, ?5", "f32|float")
    assert "fine" not in result.stderr


def test_sequence_type_is_refused(tmp_path):
    node = helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="seq")
    at = helper.make_node("SequenceAt", ["s", "i"], ["y"], name="at")
    model = make(
        [node, at], [info("x", [3]), info("i", [], INT64)], [info("y", [3])]
    )
    says(compile_bad(tmp_path, model), "SequenceConstruct")


def test_string_tensor_is_refused(tmp_path):
    model = make(
        [helper.make_node("Identity", ["x"], ["y"], name="id")],
        [info("x", [3], TensorProto.STRING)], [info("y", [3], TensorProto.STRING)],
    )  # fmt: skip
    says(compile_bad(tmp_path, model), "string", r"\bx\b|id")


@pytest.mark.parametrize("opset", [6, 1, 1000])
def test_opset_out_of_range(tmp_path, opset):
    model = relu_model()
    model.opset_import[0].version = opset
    says(compile_bad(tmp_path, model), "opset", str(opset), r"\b7\b", r"\b28\b")


def test_missing_opset(tmp_path):
    model = relu_model()
    del model.opset_import[:]
    says(compile_bad(tmp_path, model), "opset")


def test_ir_version_missing(tmp_path):
    model = relu_model()
    model.ClearField("ir_version")
    # ONNX's checker demands it, and yet the model is otherwise readable.
    harness_result = harness.invoke(
        "compile", write(tmp_path, model), "-o", tmp_path / "e", "--target", "cpu"
    )
    assert harness_result.kind in ("ok", "failed", "refused")


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
    """ONNX demands topological order; either outcome is fair, but no crash."""
    nodes = [
        helper.make_node("Relu", ["a"], ["y"], name="late"),
        helper.make_node("Neg", ["x"], ["a"], name="early"),
    ]
    model = make(nodes, [info("x", [3])], [info("y", [3])])
    result = harness.invoke(
        "compile", write(tmp_path, model), "-o", tmp_path / "e", "--target", "cpu"
    )
    assert result.kind in ("ok", "failed"), result.stderr


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


# --- Attributes ---------------------------------------------------------------


def attribute_model(op="Softmax", **attributes):
    node = helper.make_node(op, ["x"], ["y"], name="the_node", **attributes)
    return make([node], [info("x", [4, 6])], [info("y", [4, 6])])


@pytest.mark.parametrize(
    "op, attributes, named",
    [
        ("Softmax", dict(axis=1.5), "axis"),
        ("Softmax", dict(axis="one"), "axis"),
        ("Softmax", dict(axis=[1]), "axis"),
        ("Transpose", dict(perm=1), "perm"),
        ("LeakyRelu", dict(alpha="big"), "alpha"),
    ],
)
def test_attribute_of_wrong_type(tmp_path, op, attributes, named):
    result = compile_bad(tmp_path, attribute_model(op, **attributes))
    says(result, "the_node", op, named, "int|float")


def test_unknown_attribute(tmp_path):
    result = compile_bad(tmp_path, attribute_model("Softmax", spin=3))
    says(result, "the_node", "spin")


def test_missing_required_attribute(tmp_path):
    node = helper.make_node("Concat", ["x", "x"], ["y"], name="cat")
    model = make([node], [info("x", [4])], [info("y", [8])])
    says(compile_bad(tmp_path, model), "cat", "axis")


@pytest.mark.parametrize(
    "op, attributes, pattern",
    [
        ("Softmax", dict(axis=2), "axis"),
        ("Softmax", dict(axis=-3), "axis"),
        ("Transpose", dict(perm=[0, 0]), "perm"),
        ("Transpose", dict(perm=[0, 1, 2]), "perm"),
        ("Transpose", dict(perm=[0, 7]), "perm"),
        ("Flatten", dict(axis=9), "axis"),
    ],
)
def test_attribute_value_out_of_range(tmp_path, op, attributes, pattern):
    says(compile_bad(tmp_path, attribute_model(op, **attributes)), "the_node", pattern)


@pytest.mark.parametrize(
    "attributes, named",
    [
        (dict(strides=[0, 1]), "stride"),
        (dict(strides=[-1, 1]), "stride"),
        (dict(dilations=[0, 1]), "dilation"),
        (dict(pads=[1, 1]), "pads"),
        (dict(pads=[-9, 0, 0, 0]), "pad"),
        (dict(group=0), "group"),
        (dict(group=3), "group"),
        (dict(kernel_shape=[5, 5]), "kernel"),
        (dict(auto_pad="SIDEWAYS"), "auto_pad|SIDEWAYS"),
        (dict(strides=[2**62, 1], pads=[2**62, 0, 2**62, 0]), "stride|pad|large|overflow"),
    ],
)
def test_conv_attributes_out_of_range(tmp_path, attributes, named):
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv7", **attributes)
    model = make(
        [node], [info("x", [1, 4, 8, 8])], [info("y", None)], [weights("w", 6, 4, 3, 3)]
    )
    says(compile_bad(tmp_path, model), "conv7", named)


# --- Shapes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "op, left, right",
    [
        ("Add", [2, 3], [4]),
        ("MatMul", [2, 3], [4, 5]),
        ("MatMul", [2, 4, 3], [3, 3, 5]),
        ("Gemm", [2, 3], [4, 5]),
        ("Gemm", [2, 3, 4], [4, 5]),
        ("Conv", [1, 3, 8, 8], [4, 5, 3, 3]),
        ("Conv", [1, 3, 8, 8], [4, 3, 9, 9]),
        ("Conv", [1, 3, 8], [4, 3, 3, 3]),
        ("PRelu", [2, 3], [7]),
        ("Where", [2, 3], [5]),
    ],
)
def test_contradictory_operand_shapes(tmp_path, op, left, right):
    operands = ["b", "l", "r"] if op == "Where" else ["l", "r"]
    node = helper.make_node(op, operands, ["y"], name="clash")
    inputs = [info("l", left), info("r", right)]
    if op == "Where":
        inputs.append(info("b", [1], TensorProto.BOOL))
    model = make([node], inputs, [info("y", None)])
    result = compile_bad(tmp_path, model)
    sizes = (f"{left[0]}.{{1,3}}{left[1]}",)
    says(result, "clash", op, *sizes)


def test_declared_output_contradicts(tmp_path):
    model = relu_model()
    model.graph.input[0].CopyFrom(info("x", [5, 4]))
    model.graph.output[0].CopyFrom(info("y", [5, 9]))
    says(compile_bad(tmp_path, model), r"\by\b", "9", "4")


def test_declared_output_type_contradicts(tmp_path):
    model = relu_model()
    model.graph.output[0].CopyFrom(info("y", ["n", 4], INT64))
    says(compile_bad(tmp_path, model), r"\by\b", "int64|i64", "float|f32")


def test_operand_types_contradict(tmp_path):
    node = helper.make_node("Add", ["x", "i"], ["y"], name="mixed")
    model = make([node], [info("x", [3]), info("i", [3], INT64)], [info("y", [3])])
    says(compile_bad(tmp_path, model), "mixed", "Add", "int64|i64")


def test_reshape_to_other_size(tmp_path):
    shape = onnx.numpy_helper.from_array(np.array([5, 7], np.int64), "shape")
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="view")
    model = make([node], [info("x", [4, 6])], [info("y", [5, 7])], [shape])
    says(compile_bad(tmp_path, model), "view", "24|4.{1,3}6", "35|5.{1,3}7")


def test_constant_index_out_of_range(tmp_path):
    index = onnx.numpy_helper.from_array(np.array([0, 9], np.int64), "index")
    node = helper.make_node("Gather", ["x", "index"], ["y"], name="pick")
    model = make([node], [info("x", [4, 6])], [info("y", None)], [index])
    # Refused now or clamped at run time, as documented; never a wild read.
    result = harness.invoke(
        "compile", write(tmp_path, model), "-o", tmp_path / "e", "--target", "cpu"
    )
    assert result.kind in ("ok", "failed", "refused"), result.stderr


def test_huge_dimensions(tmp_path):
    model = relu_model()
    huge = [2**40, 2**40]
    model.graph.input[0].CopyFrom(info("x", huge))
    model.graph.output[0].CopyFrom(info("y", huge))
    says(compile_bad(tmp_path, model), r"\bx\b|\by\b|relu", "overflow|large|bytes|elements")


def test_negative_dimension(tmp_path):
    model = relu_model()
    model.graph.input[0].CopyFrom(info("x", [-5, 4]))
    result = harness.invoke(
        "compile", write(tmp_path, model), "-o", tmp_path / "e", "--target", "cpu"
    )
    # Some exporters write -1 for an open dimension.
    assert result.kind in ("ok", "failed", "refused"), result.stderr


def test_dimension_without_range(tmp_path):
    """An open dimension of the model needs a --shape or gets a stated default."""
    result = harness.invoke(
        "compile", write(tmp_path, relu_model()), "-o", tmp_path / "e", "--target", "cpu"
    )
    assert result.kind in ("ok", "failed"), result.stderr
    if result.kind == "failed":
        says(result, "--shape", r"\bx\b")


@pytest.mark.parametrize(
    "text, pattern",
    [
        ("x=3x5", "4|5"), ("nosuch=1x4", "nosuch"), ("x=1x4x4", "rank|dimension"),
        ("x=8..4..2x4", "min|order|range|8"), ("x", "x"),
        ("x=-1x4", "-1"), ("x=99999999999999999999x4", "9999"),
    ],
)  # fmt: skip
def test_bad_shape_option(tmp_path, text, pattern):
    result = compile_bad(tmp_path, relu_model(), "--shape", text)
    says(result, pattern)


@pytest.mark.parametrize(
    "option, value",
    [("--target", "sm_12345"), ("--target", "toaster"), ("--precision", "fp7")],
)
def test_bad_option_value(tmp_path, option, value):
    path = write(tmp_path, relu_model())
    result = harness.invoke("compile", path, "-o", tmp_path / "e", option, value)
    check_manner(result)
    says(result, value)
    assert listing(tmp_path) == ["model.onnx"]


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
    says(result, re.escape(location), "outside|folder|director|absolute")


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


def test_run_without_input(tmp_path, engine):
    says(run_bad(tmp_path, engine), "image")


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
    for at in range(0, 128):
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
    """Anywhere in the file: a message or a run, never a crash."""
    whole = engine.read_bytes()
    path = tmp_path / "damaged.engine"
    np.save(tmp_path / "x.npy", image())
    rng = np.random.RandomState(3)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 5)):
            damaged[rng.randint(len(damaged))] = rng.randint(256)
        path.write_bytes(bytes(damaged))
        result = harness.invoke(
            "run", path, "--input", f"image={tmp_path / 'x.npy'}",
            "--output-dir", tmp_path / "out", timeout=60,
        )  # fmt: skip
        assert result.kind in ("ok", "failed", "refused"), result.stderr


def test_help_names_every_command():
    result = harness.invoke("--help")
    assert result.code == 0
    for word in ("compile", "run", "bench", "compare", "inspect"):
        assert word in result.stdout


@pytest.mark.parametrize("arguments", [[], ["fly"], ["compile"], ["run"], ["compile", "--x"]])
def test_bad_command_line(arguments):
    result = harness.invoke(*arguments)
    assert 0 < result.code < 128
    assert result.stderr.strip() or result.stdout.strip()
