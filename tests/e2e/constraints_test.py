"""What a model needs of its sizes is proved, or checked when shapes are bound.

Each case compiles a model whose inputs name their sizes differently, runs it on
shapes that fit beside numpy, and on shapes that do not: the message has to name the
inputs, the dimensions and the node. `charonia compile` says what it assumed.
"""

from __future__ import annotations

import re

import constraint_cases
import constraint_sum_cases
import harness
import numpy as np
import pytest
from constraint_model import Case, build, dims_of, node, random_inputs, refused, run
from onnx import TensorProto, helper

CASES = {**constraint_cases.CASES, **constraint_sum_cases.CASES}


@pytest.mark.parametrize("name", CASES)
def test_sizes(tmp_path, name):
    case = CASES[name]
    kinds = build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu", *case.extra
    )
    assert done.kind == "ok", done.stderr
    # One note, that names what was assumed.
    assert done.stderr.count("note:") == 1, done.stderr
    assert f"  {case.note}\n" in done.stderr
    needs = harness.invoke("inspect", engine).stdout
    assert "  needs " in needs
    for number, shapes in enumerate(case.good):
        inputs = random_inputs(kinds, shapes)
        result = run(engine, tmp_path / f"good{number}", inputs)
        assert result.kind == "ok", result.stderr
        got = np.load(tmp_path / f"good{number}" / "out" / "y.npy")
        want = case.reference(*inputs.values())
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5)
    for number, (shapes, message) in enumerate(case.bad):
        result = run(engine, tmp_path / f"bad{number}", random_inputs(kinds, shapes))
        assert result.kind == "failed", f"{result.kind}: {result.stderr}"
        assert message in result.stderr


def test_integers_that_may_wrap(tmp_path):
    case = CASES["narrow_integers"]
    case = Case(case.nodes, case.inputs, None, [], [], "", case.weights, ("--shape", "x=1..8..30000"))
    message = refused(tmp_path, case)
    assert "node 'cut' (Slice, opset 17): a size is computed in 32 bits, which may not hold it" in message
    assert "narrow the ranges with --shape" in message


def bad_matmul(a, b, *shapes) -> Case:
    extra = tuple(part for shape in shapes for part in ("--shape", shape))
    return Case(
        [node("MatMul", ["a", "b"], "fc1")], {"a": a, "b": b}, None, [], [], "", {}, extra
    )


def test_what_always_holds_is_no_need(tmp_path):
    """A multiple of 2, which turns out to be 4, and n >= n / 2."""
    case = Case(
        [
            helper.make_node("Split", ["x"], ["top", "bottom"], axis=0, name="halves"),
            helper.make_node("Add", ["top", "bottom"], ["sum"]),
            helper.make_node("MatMul", ["w", "x"], ["product"], name="fc"),
            helper.make_node("Shape", ["z"], ["n"]),
            helper.make_node("Div", ["n", "two"], ["half"]),
            helper.make_node("Slice", ["z", "zero", "half"], ["cut"], name="front"),
            helper.make_node("ReduceSum", ["cut"], ["total"]),
            helper.make_node("Add", ["sum", "product"], ["both"]),
            node("Add", ["both", "total"], "all"),
        ],
        {"x": ["s", 3], "z": ["n"]}, None, [], [], "",
        {"w": np.ones((2, 4), np.float32), "two": np.array([2]), "zero": np.array([0])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert done.kind == "ok", done.stderr
    needs = re.findall(r"^  needs (.*)$", harness.invoke("inspect", engine).stdout, re.MULTILINE)
    assert needs == ["dimension 0 of x (s) = 4, as MatMul 'fc' multiplies over them"], needs
    assert "multiple of" not in done.stderr and ">=" not in done.stderr, done.stderr


@pytest.mark.parametrize("end, step", [(2**31 - 1, 2), (-(2**31 - 1), -2), (2**63 - 1, 2)])
def test_slices_to_the_end(tmp_path, end, step):
    """ONNX recommends the largest integers for the end of a dimension that is not known."""
    case = Case(
        [
            helper.make_node("Reshape", ["x", "flat"], ["f"]),
            node("Slice", ["f", "start", "end", "axis", "step"], "cut"),
        ],
        {"x": ["b", "s"]}, None, [], [], "",
        {"flat": np.array([-1]), "start": np.array([0 if step > 0 else 2**31 - 1]),
         "end": np.array([end]), "axis": np.array([0]), "step": np.array([step])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert done.kind == "ok", done.stderr
    assert "note" not in done.stderr, done.stderr
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert run(engine, tmp_path / "run", {"x": x}).kind == "ok"
    np.testing.assert_array_equal(
        np.load(tmp_path / "run" / "out" / "y.npy"), x.reshape(-1)[::step]
    )


MOST = {
    "the first": ((0, 40), lambda x: x[:, :40]),
    "the last": ((-40, 2**31 - 1), lambda x: x[:, -40:]),
    "behind the first": ((40, 2**31 - 1), lambda x: x[:, 40:]),
    "without the last": ((0, -40), lambda x: x[:, :-40]),
    "between": ((20, 60), lambda x: x[:, 20:60]),
}


@pytest.mark.parametrize("name", MOST)
def test_slices_of_at_most(tmp_path, name):
    """Where a range says that there may be fewer elements than are taken, bounds are clamped."""
    bounds, reference = MOST[name]
    weights = {"b": np.array(bounds[:1]), "e": np.array(bounds[1:]), "a": np.array([1])}
    nodes = [helper.make_node("Slice", ["x", "b", "e", "a"], ["cut"]), node("Exp", ["cut"], "y")]
    case = Case(nodes, {"x": ["n", "s"]}, None, [], [], "", weights)
    kinds = build(case, tmp_path / "m.onnx")
    done = harness.compile_model(
        tmp_path / "m.onnx", tmp_path / "m.engine", extra=["--shape", "x=?x1..64..500"]
    )
    assert "note:" not in done.stderr
    for size in (1, 19, 20, 39, 40, 41, 61, 300):
        folder = tmp_path / str(size)
        inputs = random_inputs(kinds, [(3, size)])
        result = run(tmp_path / "m.engine", folder, inputs)
        assert result.kind == "ok", result.stderr
        got, want = np.load(folder / "out" / "y.npy"), np.exp(reference(inputs["x"]))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_what_is_at_most_a_constant_and_has_to_be_that(tmp_path):
    weights = {"b": np.array([0]), "e": np.array([40]), "a": np.array([1]), "w": np.ones((40, 3), np.float32)}
    nodes = [helper.make_node("Slice", ["x", "b", "e", "a"], ["cut"]), node("MatMul", ["cut", "w"], "y")]
    case = Case(nodes, {"x": ["n", "s"]}, None, [], [], "", weights)
    kinds = build(case, tmp_path / "m.onnx")
    harness.compile_model(
        tmp_path / "m.onnx", tmp_path / "m.engine", extra=["--shape", "x=?x1..64..500"]
    )
    assert run(tmp_path / "m.engine", tmp_path / "good", random_inputs(kinds, [(3, 41)])).kind == "ok"
    result = run(tmp_path / "m.engine", tmp_path / "bad", random_inputs(kinds, [(3, 39)]))
    assert "x is float32 [n = 3, s = 39]: 40 must equal min(40, s) = 39" in result.stderr


def test_errors_of_passes_name_sizes(tmp_path):
    """Verifiers and passes print s0, s1; people read the names that the model has."""
    kind = "tensor<?x?x4x4x{}, affine_map<()[s0, s1] -> (s0, s1, 4, 4)>>"
    result = "tensor<?x?x8x8x{}, affine_map<()[s0, s1] -> (s0, s1, 8, 8)>>"
    (tmp_path / "m.mlir").write_text(
        'module attributes {graph.symbols = [{name = "batch", min = 1, opt = 2, max = 8, divisor = 1}, '
        '{name = "channels", min = 1, opt = 2, max = 8, divisor = 1}]} {\n'
        f"  func.func @main(%x: {kind.format('i32')} {{graph.name = \"x\"}}) -> "
        f"({result.format('i32')} {{graph.name = \"y\"}}) {{\n"
        "    %0 = graph.resize linear %x {axes = array<i64: 2, 3>, scales = array<f64: 2.0, 2.0>, "
        "coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = 0.0 : f64} "
        f": ({kind.format('i32')}) -> {result.format('i32')}\n"
        f"    return %0 : {result.format('i32')}\n  }}\n}}\n"
    )
    result = harness.invoke(
        "compile", tmp_path / "m.mlir", "-o", tmp_path / "m.engine", "--target", "cpu"
    )
    assert result.code == 1, result.stderr
    assert "interpolation of integers is not supported" in result.stderr
    assert "giving int32[batch, channels, 8, 8]" in result.stderr, result.stderr


def test_a_position_that_is_never_inside(tmp_path):
    case = Case(
        [dims_of("x", "shape"), helper.make_node("Gather", ["shape", "one"], ["length"]),
         node("Gather", ["x", "length"], "pick", axis=1)],
        {"x": ["n", "s"]}, lambda x: x, [], [], "", {"one": np.array([1])},
    )  # fmt: skip
    text = refused(tmp_path, case)
    assert "node 'pick' (Gather" in text, text
    assert "position s lies outside of the s elements of dimension 1" in text, text
    assert "correct the index in the model" in text, text


@pytest.mark.parametrize("op", ["Gather", "GatherND", "ScatterND", "GatherElements"])
@pytest.mark.parametrize("index", [6, -7, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("dim", [6, "n"])
def test_a_written_position_outside(tmp_path, op, index, dim):
    """Also of sizes that are known, which nothing is assumed of."""
    operands = ["a", "i", *(["u"] if op == "ScatterND" else [])]
    shape = [2] if op == "GatherElements" else [2, 1]
    case = Case(
        [node(op, operands, "pick")], {"a": [dim]}, None, [], [], "",
        {"i": np.array([3, index]).reshape(shape), "u": np.array([7, 8], np.float32)},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", tmp_path / "m.engine", "--target", "cpu",
        *([] if dim == 6 else ["--shape", "a=1..4..6"]),
    )  # fmt: skip
    assert done.kind == "failed", done.stderr
    ranges = "" if dim == 6 else ", for n in 1..6"
    assert f"index {index} is out of range for the {dim} elements of dimension 0{ranges}\n" in done.stderr, done.stderr
    assert "correct the index in the model" in done.stderr, done.stderr


@pytest.mark.parametrize("op", ["Gather", "GatherND"])
@pytest.mark.parametrize("options", [[], ["--shape", "a=1..4..64"]])
def test_a_position_in_a_branch_that_may_not_be_taken(tmp_path, op, options):
    """It is no need of the model: outside of the table it reads 0."""
    pick = helper.make_node(op, ["a", "i"], ["t"])
    one = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
    branches = {
        "then_branch": helper.make_graph([pick], "then", [], [one("t")]),
        "else_branch": helper.make_graph([helper.make_node("Identity", ["none"], ["e"])], "else", [], [one("e")]),
    }
    case = Case(
        [helper.make_node("Greater", ["a", "none"], ["more"]),
         helper.make_node("Cast", ["more"], ["bits"], to=TensorProto.INT64),
         helper.make_node("ReduceMax", ["bits"], ["any"], keepdims=0),
         helper.make_node("Cast", ["any"], ["c"], to=TensorProto.BOOL),
         node("If", ["c"], "choose", **branches)],
        {"a": ["n"]}, None, [], [], "",
        {"i": np.array([5] if op == "Gather" else [[5]]), "none": np.array([-2], np.float32)},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu", *options)
    assert done.kind == "ok", done.stderr
    assert "n >=" not in done.stderr, done.stderr
    for n, first, expected in [(3, 0, 0), (9, 0, 5), (3, -40, -2)]:
        a = np.arange(first, first + n, dtype=np.float32)
        (y,) = harness.run_engine(engine, {"a": a}, ["y"], tmp_path)
        assert y == [expected], (n, y)


@pytest.mark.parametrize("op", ["Gather", "GatherND", "ScatterND"])
def test_written_positions_in_declared_ranges(tmp_path, op):
    """No size that is too small for them is one of the model's, whatever is declared; ranges stay."""
    operands = ["a", "i", *(["u"] if op == "ScatterND" else [])]
    case = Case(
        [node(op, operands, "pick")], {"a": ["n"]}, None, [], [], "",
        {"i": np.array([[5], [-2]]), "u": np.array([7, 8], np.float32)},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu", "--shape", "a=1..4..64"
    )
    assert done.kind == "ok", done.stderr
    reason = f"so that positions lie inside their table ({op} 'pick')"
    assert f"n >= 6, {reason}" in done.stderr, done.stderr
    # Four were named to optimize for.
    moved = "are declared (n = 4), but does take n = 6, which the engine is tuned for"
    assert moved in done.stderr, done.stderr
    refused = run(engine, tmp_path / "bad", {"a": np.arange(5, dtype=np.float32)})
    assert f"dimension 0 of a (n = 5) must be at least 6, {reason}" in refused.stderr, refused.stderr
    assert run(engine, tmp_path / "good", {"a": np.arange(6, dtype=np.float32)}).kind == "ok"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu", "--shape", "a=1..4..5"
    )
    assert done.kind != "ok"
    assert "index 5 is out of range for the n elements of dimension 0, for n in 1..5" in done.stderr, done.stderr


def test_declared_ranges_that_disagree(tmp_path):
    text = refused(
        tmp_path, bad_matmul([4, "m"], ["n", 5], "a=4x1..2..8", "b=1..2..16x5")
    )
    assert "node 'fc1' (MatMul" in text
    assert (
        "size 'm' is declared as 1..8 and size 'n' is declared as 1..16, but they have "
        "to be equal" in text
    )
    assert "matmul of [4, m] and [n, 5]" in text


def test_declared_range_of_a_size_that_is_one_number(tmp_path):
    text = refused(tmp_path, bad_matmul([4, "m"], [6, 5], "a=4x1..2..8"))
    assert "size 'm' has to be 6, but is declared as 1..8" in text


def test_sizes_that_can_never_be_equal(tmp_path):
    text = refused(
        tmp_path, bad_matmul([4, "m"], ["n", 5], "a=4x1..2..8", "b=9..10..16x5")
    )
    assert "matmul of [4, m] and [n, 5]: inner dimensions differ" in text


def test_equal_declared_ranges_are_accepted(tmp_path):
    case = bad_matmul([4, "m"], ["n", 5], "a=4x1..2..8", "b=1..2..8x5")
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    harness_args = ("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert harness.invoke(*harness_args, *case.extra).kind == "ok"
    inputs = {"a": np.ones((4, 3), np.float32), "b": np.ones((4, 5), np.float32)}
    assert "must equal dimension 0 of b (n = 4)" in run(
        engine, tmp_path / "bad", inputs
    ).stderr


def test_a_sum_keeps_the_range_that_proofs_used(tmp_path):
    """A table cut to a length that, by its range, it holds; the length is a sum."""
    rows = 1_500_000
    case = Case(
        [
            dims_of("mask", "length"),
            helper.make_node("Slice", ["table", "start", "length", "start"], ["cut"]),
            helper.make_node("Concat", ["k", "x"], ["c"], axis=0),
            helper.make_node("Mul", ["c", "mask"], ["m"], name="masked"),
            node("Add", ["m", "cut"], "plus"),
        ],
        {"k": ["past"], "x": ["seq"], "mask": ["total"]}, None, [], [], "",
        {"table": np.arange(rows, dtype=np.float32), "start": np.array([0])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke("compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu")
    assert done.kind == "ok", done.stderr
    inputs = {"k": np.ones(900_000, np.float32), "x": np.ones(900_000, np.float32)}
    inputs["mask"] = np.ones(1_800_000, np.float32)
    result = run(engine, tmp_path / "long", inputs)
    assert result.kind == "failed", result.stderr
    assert "makes total 1800000; the engine was built for total in 1..1048576" in result.stderr
    inputs = {name: value[:4] for name, value in inputs.items()}
    inputs["mask"] = np.ones(8, np.float32)
    assert run(engine, tmp_path / "short", inputs).kind == "ok"
    got = np.load(tmp_path / "short" / "out" / "y.npy")
    np.testing.assert_array_equal(got, 1 + np.arange(8))


def test_the_declared_optimum_of_a_sum_is_kept(tmp_path):
    case = CASES["sum_with_a_declared_minimum"]
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu",
        "--shape", "mask=1x1..64..128",
    )  # fmt: skip
    assert done.kind == "ok", done.stderr
    assert "at past = 32, seq = 32, total = 64" in harness.invoke("inspect", engine).stdout


def test_no_sizes_to_optimize_for(tmp_path):
    """The declared ones do not fit: said, and no reason to refuse the model."""
    case = CASES["in_proportion"]
    build(case, tmp_path / "m.onnx")
    engine = tmp_path / "m.engine"
    done = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", engine, "--target", "cpu",
        "--shape", "x=1..1..8x2", "--shape", "z=1..5..8x3",
    )  # fmt: skip
    assert done.kind == "ok", done.stderr
    assert (
        "no sizes to optimize for were found that satisfy what the model needs; the last "
        "were n = 1, m = 5, which the engine is tuned for\n  remedy: name such sizes with "
        "--shape, as MIN..OPT..MAX" in done.stderr
    ), done.stderr
    inputs = {"x": np.ones((3, 2), np.float32), "z": np.ones((2, 3), np.float32)}
    assert run(engine, tmp_path / "good", inputs).kind == "ok"
    assert harness.invoke("inspect", engine).kind == "ok"


@pytest.mark.parametrize("count", [125, 300])
def test_many_sizes_in_one_equation(tmp_path, count):
    """What took minutes, and was refused: each size was tried, and each time all were added."""
    names = {side: [f"{side}{i}" for i in range(count)] for side in "xz"}
    inputs = {name: [f"n{name}", 2 if name[0] == "x" else 3] for side in "xz" for name in names[side]}
    case = Case(
        [
            helper.make_node("Concat", names["x"], ["cx"], axis=0),
            helper.make_node("Concat", names["z"], ["cz"], axis=0),
            helper.make_node("Reshape", ["cx", "flat"], ["f"]),
            helper.make_node("Reshape", ["cz", "flat"], ["g"]),
            node("Add", ["f", "g"], "both"),
        ],
        inputs, None, [], [], "", {"flat": np.array([-1])},
    )  # fmt: skip
    build(case, tmp_path / "m.onnx")
    done = harness.invoke("compile", tmp_path / "m.onnx", "--stop-after", "import", timeout=60)
    assert done.kind == "ok", done.stderr
    assert "no sizes to optimize for" not in done.stderr, done.stderr[-2000:]


def test_dumped_stages_keep_constraints(tmp_path):
    build(CASES["matmul"], tmp_path / "m.onnx")
    dump = tmp_path / "dump"
    first = harness.invoke(
        "compile", tmp_path / "m.onnx", "-o", tmp_path / "a.engine", "--target", "cpu",
        "--dump-dir", dump,
    )  # fmt: skip
    assert first.kind == "ok", first.stderr
    stages = sorted(dump.glob("*.mlir"))
    assert len(stages) > 3
    for stage in stages:
        assert "graph.constraints" in stage.read_text(), stage.name
    again = harness.invoke(
        "compile", stages[-1], "-o", tmp_path / "b.engine", "--target", "cpu"
    )
    assert again.kind == "ok", again.stderr
    inputs = {"a": np.ones((4, 3), np.float32), "b": np.ones((6, 5), np.float32)}
    result = run(tmp_path / "b.engine", tmp_path / "bad", inputs)
    assert CASES["matmul"].bad[0][1] in result.stderr
