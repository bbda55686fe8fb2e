"""Attributes, shapes and options that contradict the model."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from manner import (
    INT64, check_manner, compile_bad, info, listing, make, relu_model, says, weights, write,
)  # fmt: skip
from onnx import TensorProto, helper


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


DECLARED = r"output 'y' is declared with size 9 in dimension 1, but is float32\[5, 4\]"


def test_declared_output_contradicts(tmp_path):
    model = relu_model()
    model.graph.input[0].CopyFrom(info("x", [5, 4]))
    model.graph.output[0].CopyFrom(info("y", [5, 9]))
    says(compile_bad(tmp_path, model), DECLARED)


def test_declared_output_type_contradicts(tmp_path):
    model = relu_model()
    model.graph.output[0].CopyFrom(info("y", ["n", 4], INT64))
    says(compile_bad(tmp_path, model), r"\by\b", "int64|i64", "float|f32")


def test_operand_types_contradict(tmp_path):
    node = helper.make_node("Add", ["x", "i"], ["y"], name="mixed")
    model = make([node], [info("x", [3]), info("i", [3], INT64)], [info("y", [3])])
    says(compile_bad(tmp_path, model), "mixed", "Add", "int64|i64")


@pytest.mark.parametrize("opset", [11, 19])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_window_that_shape_inference_counts(tmp_path, op, opset):
    """Up to opset 21 onnx's inference counts a window that would begin outside; ONNX Runtime computes without it."""
    nodes = [
        helper.make_node(op, ["x"], ["p"], kernel_shape=[1], strides=[2], ceil_mode=1),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    model = onnx.shape_inference.infer_shapes(make(nodes, [info("x", [1, 3, 16])], [info("y", None)], opset=opset))
    assert model.graph.output[0].type.tensor_type.shape.dim[2].dim_value == 9
    onnx.save(model, tmp_path / "m.onnx")
    result = harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    says(result, r"warning: .*output 'y' is declared with size 9 in dimension 2, but is float32\[1, 3, 8\]: .*shape_inference")
    x = np.arange(48, dtype=np.float32).reshape(1, 3, 16)
    (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path / "run")
    np.testing.assert_array_equal(got, x[:, :, ::2])


def rounded_up(declared):
    """A pool of which inference counts a window too many, values behind it, and one beside it."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", "i"], kernel_shape=[1], strides=[2], ceil_mode=1),
        helper.make_node("Relu", ["p"], ["y"]),
        helper.make_node("Concat", ["y", "x"], ["c"], axis=2),
        helper.make_node("ReduceMax", ["c"], ["r"], axes=[2]),
        helper.make_node("Relu", ["x"], ["z"]),
    ]
    elements = {"i": INT64}
    outputs = [info(name, shape, elements.get(name, TensorProto.FLOAT)) for name, shape in declared.items()]
    return make(nodes, [info("x", [1, 3, 16])], outputs, opset=13)


def test_sizes_behind_a_window_that_shape_inference_counts(tmp_path):
    declared = {"i": [1, 3, 9], "y": [1, 3, 9], "c": [1, 3, 25], "r": [1, 3, 1], "z": [1, 3, 16]}
    onnx.save(rounded_up(declared), tmp_path / "m.onnx")
    says(harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine"), "'i'.*shape_inference", "'c'.*shape_inference")


@pytest.mark.parametrize("name, shape", [("z", [1, 3, 99]), ("y", [1, 3, 10]), ("y", [1, 4, 9]), ("c", [1, 3, 26]), ("r", [1, 3, 2])])
def test_other_sizes_behind_such_a_window(tmp_path, name, shape):
    """Only what inference gives behind such a pool is a warning: not a size beside it, and no other one."""
    result = compile_bad(tmp_path, rounded_up({"y": [1, 3, 9], name: shape}))
    says(result, f"error: .*output '{name}' is declared with size", "contradicts itself")


@pytest.mark.parametrize(
    "node, texts",
    [
        (helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3]),
         (r"a window of 3 may not fit into the padded size h for h in 1\.\.512", "narrow the range with --shape so that h >= 3")),
        (helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[5, 5], pads=[1, 1, 1, 1]),
         (r"a window of 5 may not fit into the padded size .*h.* for h in 1\.\.512", r"narrow the range with --shape so that .*h.* >= 5")),
        (helper.make_node("Pad", ["x", "p"], ["y"], mode="reflect"),
         (r"cannot pad size h by 2 in mode reflect for all of h in 1\.\.512", "narrow the range with --shape")),
        (helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[600, 3]),
         (r"a window of 600 does not fit into the padded size h",)),
    ],
)  # fmt: skip
def test_range_that_begins_too_low(tmp_path, node, texts):
    """What fits at some sizes of a declared range is not said to fit at none."""
    pads = onnx.numpy_helper.from_array(np.array([0, 0, 2, 2, 0, 0, 2, 2], np.int64), "p")
    model = make([node], [info("x", ["n", 3, "h", "w"])], [info("y", None)], [pads], opset=18)
    result = compile_bad(tmp_path, model, "--shape", "x=1..8..64x3x1..64..512x1..64..512")
    says(result, *texts)


RESHAPED = r"float32\[4, 6\] does not have as many elements as \[5, 7\]"


def test_reshape_to_other_size(tmp_path):
    shape = onnx.numpy_helper.from_array(np.array([5, 7], np.int64), "shape")
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="view")
    model = make([node], [info("x", [4, 6])], [info("y", [5, 7])], [shape])
    says(compile_bad(tmp_path, model), "view", RESHAPED)


INDICES_OUTSIDE = np.array([0, 9, -9], np.int64)
PICK = helper.make_node("Gather", ["x", "index"], ["y"], name="pick")


def test_index_out_of_range(tmp_path):
    """Nothing is read there: the result is 0."""
    model = make([PICK], [info("x", [4, 6]), info("index", [3], INT64)], [info("y", None)])
    engine = tmp_path / "model.engine"
    harness.compile_model(write(tmp_path, model), engine)
    feeds = {"x": np.arange(1, 25, dtype=np.float32).reshape(4, 6), "index": INDICES_OUTSIDE}
    (y,) = harness.run_engine(engine, feeds, ["y"], tmp_path / "run")
    np.testing.assert_array_equal(y, [feeds["x"][0], np.zeros(6), np.zeros(6)])


def test_written_index_out_of_range(tmp_path):
    index = onnx.numpy_helper.from_array(INDICES_OUTSIDE, "index")
    model = make([PICK], [info("x", [4, 6])], [info("y", None)], [index])
    says(compile_bad(tmp_path, model), "pick", "Gather", "index 9", "4 elements of dimension 0", "correct the index")


def test_huge_dimensions(tmp_path):
    model = relu_model()
    huge = [2**40, 2**40]
    model.graph.input[0].CopyFrom(info("x", huge))
    model.graph.output[0].CopyFrom(info("y", huge))
    says(compile_bad(tmp_path, model), r"\bx\b|\by\b|relu", "overflow|large|bytes|elements")


def test_negative_dimension(tmp_path):
    model = relu_model()
    model.graph.input[0].CopyFrom(info("x", [-5, 4]))
    says(compile_bad(tmp_path, model), r"^error: .*input 'x': dimension 0 is declared as -5")


@pytest.mark.parametrize("first", ["n", -1])
def test_dimension_without_range(tmp_path, first):
    """An open dimension of the model, which old exporters write as -1, takes any size."""
    model = relu_model()
    model.graph.input[0].CopyFrom(info("x", [first, 4]))
    engine = tmp_path / "model.engine"
    harness.compile_model(write(tmp_path, model), engine)
    for rows in (1, 5):
        x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
        (y,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run")
        np.testing.assert_array_equal(y, np.maximum(x, 0))


@pytest.mark.parametrize(
    "text, pattern",
    [
        ("x=3x5", "input 'x': the model fixes dimension 1 to 4"),
        ("nosuch=1x4", "'nosuch', which is no input.*the inputs are: x"),
        ("x=1x4x4", "input 'x': --shape gives 3 dimensions, the model 2"),
        ("x=8..4..2x4", r"--shape: x=8\.\.4\.\.2x4: '8\.\.4\.\.2' is not ascending"),
        ("x", "--shape: x: an input name and '=' are missing"),
        ("x=-1x4", "--shape: x=-1x4: '-1' is not a size"),
        ("x=99999999999999999999x4", "'99999999999999999999' is not a size"),
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


# --- Sizes that are computed ----------------------------------------------------


def sized_model(steps, constants, node, dims=("b", "n")):
    """`n`, [1], the second size of x; `steps` compute `e`, and `node` needs it."""
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    agraph (float[{",".join(dims)}] x) => (float[] y) <int64[1] at = {{1}}, int64[1] zero = {{0}}, {constants}>
    {{ shape = Shape (x)
    n = Gather (shape, at)
    {steps}
    [the_node] y = {node} }}"""
    return onnx.parser.parse_model(text)


def test_sizes_by_functions_that_round_as_they_like(tmp_path):
    model = sized_model(
        "f = Cast <to = 1> (n)\n g = Log (f)\n e = Cast <to = 7> (g)", "int64[1] one = {1}", "Slice (x, zero, e, one)"
    )
    result = compile_bad(tmp_path, model)
    says(result, "the_node", "'e'", r"follows from sizes, but Log '\w*' computes it", "--shape")


@pytest.mark.parametrize("rows, pattern", [("8, 8", "up to 6 rows"), ("3, 4", "not square"), ("n, n", "has to be known")])
def test_determinants(tmp_path, rows, pattern):
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    agraph (float[{rows}] x) => (float y) {{ [the_node] y = Det (x) }}"""
    result = compile_bad(tmp_path, onnx.parser.parse_model(text))
    says(result, "the_node", "Det", pattern)
    assert ("--shape" in result.stderr) == (rows == "n, n"), result.stderr


def test_filters_by_computed_scales(tmp_path):
    model = sized_model(
        "f = Cast <to = 1> (n)\n q = Div (goal, f)\n s = Concat <axis = 0> (one, q)",
        "float[1] goal = {9}, float[1] one = {1}", 'Resize <mode = "linear", antialias = 1> (x, , s)',
    )  # fmt: skip
    says(compile_bad(tmp_path, model), "the_node", "Resize", "scales that are known", "--shape")


def test_what_is_computed_is_written_out(tmp_path):
    """No message has a name that nobody gave: neither at compile time nor where shapes are bound."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    agraph (float[n] x, float[k] z) => (float[m] y) <int64[1] ten = {10}>
    { n = Shape (x)
    m = Min (n, ten)
    w = ConstantOfShape <value = float[1] {2}> (m)
    y = Add (w, z) }"""
    path, engine = write(tmp_path, onnx.parser.parse_model(text)), tmp_path / "m.engine"
    note = harness.invoke("compile", path, "-o", engine).stderr
    assert "where size0 = min(n, 10)" in note, note
    with pytest.raises(harness.CharoniaError, match=r"min\(n, 10\) = 10") as raised:
        harness.run_engine(engine, {"x": np.ones(20, np.float32), "z": np.ones(7, np.float32)}, ["y"], tmp_path)
    assert "size0" not in str(raised.value)
    harness.run_engine(engine, {"x": np.ones(7, np.float32), "z": np.ones(7, np.float32)}, ["y"], tmp_path)
