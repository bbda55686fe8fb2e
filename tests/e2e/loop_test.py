"""`Loop` over a number of steps that follows from an open size, beside ONNX Runtime."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto
from steps_model import body, check, info, node

I64, BOOL = TensorProto.INT64, TensorProto.BOOL
NUMBERS = {"zero": np.int64(0), "one": np.int64(1), "two": np.int64(2), "true": np.bool_(True), "axis0": np.int64([0])}
STEP = [info("i", kind=I64), info("go", kind=BOOL)]
GOES_ON = info("next_go", kind=BOOL)


def extent(x, axis, result):
    return [node("Shape", [x], [f"{x}_dims"]), node("Gather", [f"{x}_dims", axis], [result])]


def loop(nodes, states, results, tests=False, trips="n", go="true"):
    """A node and what is before it: states as (in the body, behind it, shape) and so outputs, (in the body, shape)."""
    goes_on = [] if tests else [node("Identity", ["go"], ["next_go"])]
    step = body(nodes + goes_on, STEP + [a for a, _, _ in states], [GOES_ON] + [b for _, b, _ in states] + results)
    return lambda outputs: node("Loop", [trips, go] + [s for _, _, s in states], outputs, body=step)


def row(x, axis, place, result):
    return node("Gather", [x, place], [result], axis=axis)


def plain(at="i"):
    return [row("a", 1, at, "x"), node("Add", ["s", "x"], ["sum"]), node("Tanh", ["sum"], ["next"]),
            node("Mul", ["next", "x"], ["out"])]  # fmt: skip


STATE = (("s", 3), ("next", 3), "h")


def test_a_range_over_a_size(tmp_path):
    steps = loop(plain(), [STATE], [("out", 3)])
    check(tmp_path, [*extent("a", "one", "n"), steps(["y", "z"])], [("h", 3), ("a", 3, "t")], ["y", "z"], NUMBERS)


def test_a_range_that_may_be_empty(tmp_path):
    """One step less than the size; each reads the element behind its own."""
    nodes = [node("Add", ["i", "one"], ["behind"]), *plain("behind")]
    steps = loop(nodes, [STATE], [("out", 3)])
    outer = [*extent("a", "one", "all"), node("Sub", ["all", "one"], ["n"]), steps(["y", "z"])]
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y", "z"], NUMBERS)


def test_more_steps_than_are_written_out(tmp_path):
    steps = loop(plain(), [STATE], [("out", 3)])
    check(tmp_path, [steps(["y", "z"])], [("h", 3), ("a", 3, 9000)], ["y", "z"], NUMBERS | {"n": np.int64(9000)}, (0,))


@pytest.mark.parametrize("first, stride, trips", [("zero", "one", "n"), ("zero", "two", "half"), ("last", "minus", "n")])
def test_states_that_count(tmp_path, first, stride, trips):
    """They are places, and what they are in the end is right."""
    counts = (info("c", kind=I64), info("next_c", kind=I64), first)
    steps = loop([*plain("c"), node("Add", ["c", stride], ["next_c"])], [STATE, counts], [("out", 3)], trips=trips)
    outer = [*extent("a", "one", "n"), node("Sub", ["n", "one"], ["last"]), node("Div", ["n", "two"], ["half"])]
    results = ["y", info("last_c", kind=I64), "z"]
    numbers = NUMBERS | {"minus": np.int64(-1)}
    check(tmp_path, [*outer, steps(["y", "last_c", "z"])], [("h", 3), ("a", 3, "t")], results, numbers)


def test_a_condition_that_says_how_many(tmp_path):
    """As TensorFlow's loops are: a counter is compared with a size."""
    counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
    nodes = [*plain("c"), node("Add", ["c", "one"], ["next_c"]), node("Less", ["next_c", "all"], ["less"]),
             node("And", ["less", "go"], ["next_go"])]  # fmt: skip
    steps = loop(nodes, [STATE, counts], [("out", 3)], tests=True, trips="", go="first")
    outer = [*extent("a", "one", "all"), node("Less", ["zero", "all"], ["first"]), steps(["y", "c_end", "z"])]
    results = ["y", info("c_end", kind=I64), "z"]
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], results, NUMBERS, (1, 2, 7))


def test_data_that_ends_it(tmp_path):
    """No more steps than the size says; states stay what they were, and what counts does, too."""
    counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
    nodes = [row("a", 1, "i", "x"), node("Add", ["s", "x"], ["next"]), node("Add", ["c", "one"], ["next_c"]),
             node("ReduceMax", ["next"], ["top"], keepdims=0), node("Less", ["top", "bound"], ["next_go"])]  # fmt: skip
    steps = loop(nodes, [STATE, counts], [], tests=True)
    outer = [*extent("a", "one", "n"), steps(["y", "c_end"])]
    inputs, results = [("h", 3), ("a", 3, "t")], ["y", info("c_end", kind=I64)]
    check(tmp_path, outer, inputs, results, NUMBERS | {"bound": np.float32(0.9)}, (1, 2, 7, 40))


@pytest.mark.parametrize("name", ["new axis", "old axis", "two a step", "behind others", "one of them", "length"])
def test_sequences_that_grow(tmp_path, name):
    """What a loop of PyTorch collects in a list."""
    first = [node("SequenceEmpty", [], ["list"])]
    if name == "behind others":
        first = [node("SequenceConstruct", ["h"], ["list"])]
    sequence = onnx.helper.make_tensor_sequence_value_info
    adds = [node("SequenceInsert", ["l", "out"], ["next_l"])]
    if name == "two a step":
        adds = [node("SequenceInsert", ["l", "out"], ["l1"]), node("SequenceInsert", ["l1", "next"], ["next_l"])]
    lists = (sequence("l", TensorProto.FLOAT, None), sequence("next_l", TensorProto.FLOAT, None), "list")
    steps = loop([*plain(), *adds], [STATE, lists], [])
    joins = {"one of them": node("SequenceAt", ["all", "minus"], ["z"]), "length": node("SequenceLength", ["all"], ["z"])}
    join = joins.get(name, node("ConcatFromSequence", ["all"], ["z"], axis=0 if name == "old axis" else 1,
                                new_axis=int(name != "old axis")))  # fmt: skip
    results = ["y", info("z", kind=I64) if name == "length" else "z"]
    outer = [*extent("a", "one", "n"), *first, steps(["y", "all"]), join]
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], results, NUMBERS | {"minus": np.int64(-1)})


@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_sequence_of_all_parts(tmp_path, keepdims):
    shape = (3,) if not keepdims else (3, 1)
    nodes = [node("SequenceAt", ["parts", "i"], ["x"]), node("Add", ["s", "x"], ["next"])]
    steps = loop(nodes, [(("s", *shape), ("next", *shape), "h")], [])
    outer = [node("SplitToSequence", ["a"], ["parts"], axis=1, keepdims=keepdims),
             node("SequenceLength", ["parts"], ["n"]), steps(["y"])]  # fmt: skip
    check(tmp_path, outer, [("h", *shape), ("a", 3, "t")], ["y"], NUMBERS)


@pytest.mark.parametrize("name", ["i == 0", "i > 0", "max(i, 1)", "clamped", "bool"])
def test_what_the_first_step_is_told(tmp_path, name):
    """A step's number may be 0, unlike all other sizes."""
    told = {
        "i == 0": [node("Equal", ["i", "zero"], ["is"]), node("Where", ["is", "x", "sum"], ["v"])],
        "i > 0": [node("Greater", ["i", "zero"], ["is"]), node("Where", ["is", "x", "sum"], ["v"])],
        "max(i, 1)": [node("Max", ["i", "one"], ["most"]), node("Cast", ["most"], ["f"], to=TensorProto.FLOAT), node("Mul", ["sum", "f"], ["v"])],
        "clamped": [node("Sub", ["i", "one"], ["before"]), node("Max", ["before", "zero"], ["at"]), row("a", 1, "at", "p"), node("Add", ["sum", "p"], ["v"])],
        "bool": [node("Cast", ["i"], ["is"], to=BOOL), node("Where", ["is", "x", "sum"], ["v"])],
    }  # fmt: skip
    nodes = [row("a", 1, "i", "x"), node("Add", ["s", "x"], ["sum"]), *told[name], node("Tanh", ["v"], ["next"])]
    steps = loop(nodes, [STATE], [("v", 3)])
    check(tmp_path, [*extent("a", "one", "n"), steps(["y", "z"])], [("h", 3), ("a", 3, "t")], ["y", "z"], NUMBERS)


@pytest.mark.parametrize("size", [1, 3])
def test_no_step_at_all(tmp_path, size):
    """What counts, and how many outputs there are, is 0 then; also where the number is known."""
    counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
    steps = loop([*plain(), node("Add", ["c", "one"], ["next_c"])], [STATE, counts], [("out", 3)])
    outer = [*extent("a", "one", "all"), node("Sub", ["all", "three"], ["less"]), node("Max", ["less", "zero"], ["n"]),
             steps(["y", "c_end", "z"]), node("Equal", ["c_end", "zero"], ["none"]), node("Shape", ["z"], ["z_dims"])]  # fmt: skip
    results = ["y", info("c_end", kind=I64), "z", info("none", kind=BOOL), info("z_dims", 2, kind=I64)]
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], results, NUMBERS | {"three": np.int64(3)}, (size, 5))
    check(tmp_path, [steps(["y", "c_end", "z"])], [("h", 3), ("a", 3, 4)], results[:3], NUMBERS | {"n": np.int64(0)}, (0,))


def test_conditions_of_other_forms(tmp_path):
    """`while not i >= n - 1`, and a first condition that data decides."""
    counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
    nodes = [*plain("c"), node("Add", ["c", "one"], ["next_c"]), node("GreaterOrEqual", ["next_c", "last"], ["ge"]), node("Not", ["ge"], ["next_go"])]
    steps = loop(nodes, [STATE, counts], [("out", 3)], tests=True, trips="", go="first")
    outer = [*extent("a", "one", "all"), node("Sub", ["all", "one"], ["last"]), node("Less", ["zero", "last"], ["first"]), steps(["y", "c_end", "z"])]
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y", info("c_end", kind=I64), "z"], NUMBERS)
    steps = loop(plain(), [STATE], [], go="first")
    outer = [*extent("a", "one", "n"), node("ReduceMax", ["h"], ["top"], keepdims=0), node("Less", ["top", "bound"], ["first"]), steps(["y"])]
    for bound in (-9, 9):
        check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y"], NUMBERS | {"bound": np.float32(bound)})


def test_a_state_that_says_where_data_was(tmp_path):
    """It is an integer that does not count, and its place cannot be told before the number of steps is."""
    best = (info("b", kind=I64), info("next_b", kind=I64), "zero")
    top = (("m",), ("next_m",), "low")
    nodes = [row("a", 0, "i", "x"), node("Greater", ["x", "m"], ["is"]), node("Where", ["is", "x", "m"], ["next_m"]), node("Where", ["is", "i", "b"], ["next_b"])]
    steps = loop(nodes, [best, top], [])
    results = [info("best", kind=I64), "top"]
    check(tmp_path, [*extent("a", "zero", "n"), steps(["best", "top"])], [("a", "t")], results, NUMBERS | {"low": np.float32(-9)})


def test_ranges_of_a_counter_are_its_loop_s_own(tmp_path):
    """A loop of 9000 steps that its condition ends at 3 is looked at first: what it was taken for says nothing of the next."""
    counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
    nodes = [node("Tanh", ["s"], ["next"]), node("Add", ["c", "one"], ["next_c"]), node("Less", ["next_c", "three"], ["next_go"])]
    first = loop(nodes, [STATE, counts], [], tests=True, trips="many")
    second = loop([row("table", 0, "i", "w"), node("Add", ["s", "w"], ["next"])], [(("s", 3), ("next", 3), "y")], [])
    table = {"table": np.ones((50, 3), np.float32), "many": np.int64(9000), "three": np.int64(3)}
    outer, inputs = [first(["y", "c_end"]), *extent("a", "zero", "n"), second(["z"])], [("h", 3), ("a", "t", 1)]
    check(tmp_path, outer, inputs, ["z"], NUMBERS | table, (1, 50))
    with pytest.raises(harness.CharoniaError, match=r"t = 51\) must be at most 50"):
        check(tmp_path, outer, inputs, ["z"], NUMBERS | table, (51,))


def test_sequences_that_trade_places_are_refused(tmp_path):
    sequence = onnx.helper.make_tensor_sequence_value_info
    first = [node("SequenceEmpty", [], ["list"])]
    lists = [(sequence(a, TensorProto.FLOAT, None), sequence(b, TensorProto.FLOAT, None), "list") for a, b in (("l", "l2"), ("k", "k2"))]
    nodes = [*plain(), node("SequenceInsert", ["k", "out"], ["l2"]), node("Identity", ["l"], ["k2"])]
    steps = loop(nodes, [STATE, *lists], [])
    join = node("ConcatFromSequence", ["all"], ["z"], axis=0, new_axis=1)
    outer = [*extent("a", "one", "n"), *first, steps(["y", "all", "rest"]), join]
    with pytest.raises(harness.CharoniaError, match="a step makes another sequence of one"):
        check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y", "z"], NUMBERS)


@pytest.mark.parametrize("name", ["set", "new", "rolled", "traded"])
def test_lists_of_states(tmp_path, name):
    """A list that is as long behind a step: each of its tensors is a state. As stacked cells are written."""
    sequence = onnx.helper.make_tensor_sequence_value_info
    reads = [node("SequenceAt", ["l", "zero"], ["p"]), node("SequenceAt", ["l", "one"], ["q"]), row("a", 1, "i", "x"),
             node("Add", ["p", "x"], ["px"]), node("Tanh", ["px"], ["u"]), node("Sub", ["q", "u"], ["v"])]  # fmt: skip
    writes = {
        "set": [node("SequenceErase", ["l", "zero"], ["l1"]), node("SequenceInsert", ["l1", "u", "zero"], ["l2"]),
                node("SequenceErase", ["l2", "one"], ["l3"]), node("SequenceInsert", ["l3", "v"], ["next_l"])],
        "new": [node("SequenceConstruct", ["u", "v"], ["next_l"])],
        "rolled": [node("SequenceInsert", ["l", "v"], ["l1"]), node("SequenceErase", ["l1", "zero"], ["next_l"])],
        "traded": [node("SequenceConstruct", ["v", "p"], ["next_l"])],
    }  # fmt: skip
    lists = [(sequence("l", TensorProto.FLOAT, None), sequence("next_l", TensorProto.FLOAT, None), "list")]
    kept = (sequence("k", TensorProto.FLOAT, None), sequence("next_k", TensorProto.FLOAT, None), "none")
    adds = node("SequenceInsert", ["k", "v"], ["next_k"])
    steps = loop([*reads, *writes[name], adds], [*lists, kept], [("u", 3)])
    outer = [*extent("a", "one", "n"), node("Neg", ["h"], ["g"]), node("SequenceConstruct", ["h", "g"], ["list"]), node("SequenceEmpty", [], ["none"]),
             steps(["all", "grown", "us"]), node("SequenceAt", ["all", "zero"], ["y"]), node("SequenceAt", ["all", "one"], ["z"]),
             node("ConcatFromSequence", ["grown"], ["vs"], axis=0, new_axis=1)]  # fmt: skip
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y", "z", "us", "vs"], NUMBERS)


def test_memory_that_steps_write(tmp_path):
    """`out[i] = ...`, and the step's number as data."""
    nodes = [node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), row("a", 0, "i", "x"), node("Mul", ["x", "f"], ["v"]),
             node("Unsqueeze", ["v", "axis0"], ["update"]), node("Reshape", ["i", "shape"], ["place"]),
             node("ScatterND", ["s", "place", "update"], ["next"])]  # fmt: skip
    steps = loop(nodes, [(("s", "t", 4), ("next", "t", 4), "h")], [])
    numbers = NUMBERS | {"shape": np.int64([1, 1])}
    check(tmp_path, [*extent("a", "zero", "n"), steps(["y"])], [("h", "t", 4), ("a", "t", 4)], ["y"], numbers)


def test_a_loop_inside_of_steps(tmp_path):
    """Whose number of steps is known."""
    inner = body([row("x", 0, "j", "one_x"), node("Add", ["p", "one_x"], ["q"]), node("Identity", ["g"], ["next_g"])],
                 [info("j", kind=I64), info("g", kind=BOOL), ("p",)], [info("next_g", kind=BOOL), ("q",)])  # fmt: skip
    nodes = [row("a", 1, "i", "x"), node("Loop", ["two", "true", "s"], ["next"], body=inner)]
    steps = loop(nodes, [(("s",), ("next",), "h")], [])
    check(tmp_path, [*extent("a", "one", "n"), steps(["y"])], [("h",), ("a", 3, "t")], ["y"], NUMBERS)


def test_a_table_limits_the_steps(tmp_path):
    """What a step needs has to hold in the last one, too: no load leaves the table."""
    nodes = [row("table", 0, "i", "w"), *plain(), node("Add", ["out", "w"], ["more"])]
    steps = loop(nodes, [STATE], [("more", 3)])
    table = NUMBERS | {"table": np.random.default_rng(5).standard_normal((5, 3)).astype(np.float32)}
    outer, inputs = [*extent("a", "one", "n"), steps(["y", "z"])], [("h", 3), ("a", 3, "t")]
    check(tmp_path, outer, inputs, ["y", "z"], table, (1, 5))
    with pytest.raises(harness.CharoniaError, match=r"dimension 1 of a \(t = 6\) must be at most 5, so that positions lie inside their table"):
        check(tmp_path, outer, inputs, ["y", "z"], table, (6,))


@pytest.mark.parametrize("op", ["Gather", "GatherND", "GatherElements", "ScatterND"])
@pytest.mark.parametrize("rows, text", [
    (50, r"(index 50 is out of range for|position step\d - 1 may lie outside of) the 50 elements of dimension 0"),
    ("t", r"dimension 0 of x \(t = 50\) must be at least 100, so that positions lie inside their table"),
])  # fmt: skip
def test_known_steps_behind_the_last_row(tmp_path, op, rows, text):
    """However the step names the row; whether steps are repeated or written out."""
    operands = ["x", "place", *(["one_state"] if op == "ScatterND" else [])]
    nodes = [node("Unsqueeze", ["i", "axis0" if op in ("Gather", "GatherND") else "axes01"], ["one_place"]),
             node("Expand", ["one_place", "row_shape"], ["place"]),
             node("Unsqueeze", ["s", "axis0"], ["one_state"]), node(op, operands, ["read"]),
             node("ReduceSum", ["read", "axis0"], ["sum"], keepdims=0),
             node("Mul", ["s", "sum"], ["out"]), node("Tanh", ["out"], ["next"])]  # fmt: skip
    shape = {"Gather": [1], "GatherND": [1, 1], "GatherElements": [1, 3], "ScatterND": [1, 1]}[op]
    numbers = NUMBERS | {"n": np.int64(100), "row_shape": np.int64(shape), "axes01": np.int64([0, 1])}
    steps = loop(nodes, [STATE], [])
    with pytest.raises(harness.CharoniaError, match=text):
        check(tmp_path, [steps(["y"])], [("h", 3), ("x", rows, 3)], ["y"], numbers, (50,))
    if rows == "t":
        check(tmp_path, [steps(["y"])], [("h", 3), ("x", rows, 3)], ["y"], numbers, (100, 120))


@pytest.mark.parametrize("form", ["gather", "tuples", "slice"])
@pytest.mark.parametrize("has_weights", [False, True])
def test_known_steps_that_read_where_they_take_a_branch(tmp_path, form, has_weights):
    """No more rows are needed than those that are read, though others were looked at to repeat the steps."""
    at = node("Reshape", ["i", "one_axis"], ["at"])
    read = {"gather": [row("x", 0, "i", "p")], "tuples": [at, node("GatherND", ["x", "at"], ["p"])],
            "slice": [at, node("Add", ["at", "one_axis"], ["to"]), node("Slice", ["x", "at", "to", "axis0"], ["rows"]),
                      node("Squeeze", ["rows", "axis0"], ["p"])]}  # fmt: skip
    nodes = [node("Less", ["i", "limit"], ["early"]),
             node("If", ["early"], ["read"], then_branch=body(read[form], [], [("p", 3)]),
                  else_branch=body([node("Identity", ["s"], ["same"])], [], [("same", 3)])),
             *([row("w", 0, "i", "own"), node("Neg", ["own"], ["weights"]), node("MatMul", ["read", "weights"], ["more"])]
               if has_weights else [node("Mul", ["read", "read"], ["more"])]),
             node("Add", ["more", "s"], ["sum"]), node("Tanh", ["sum"], ["next"])]  # fmt: skip
    held = {"n": np.int64(100), "limit": np.int64(50), "one_axis": np.int64([1])}
    weights = np.random.default_rng(4).standard_normal((100, 3, 3)).astype(np.float32) / 4
    steps = loop(nodes, [STATE], [])
    check(tmp_path, [steps(["y"])], [("h", 3), ("x", "t", 3)], ["y"], NUMBERS | held | {"w": weights}, (50, 70, 120))


def test_known_steps_whose_results_are_sizes(tmp_path):
    """A state of floats, and an output that follows from the number, of steps that carry another one, too."""
    nodes = [node("Add", ["f", "half"], ["next_f"]), node("Mul", ["i", "two"], ["twice"]), *plain()]
    steps = loop(nodes, [STATE, (("f",), ("next_f",), "start")], [("out", 3), info("twice", kind=I64)])
    cut = [node("Gather", ["places", "two"], ["from"]), node("Cast", ["last_f"], ["to"], to=I64),
           node("Unsqueeze", ["from", "axis0"], ["begin"]), node("Unsqueeze", ["to", "axis0"], ["end"]),
           node("Slice", ["z", "begin", "end", "axis0"], ["cut"])]  # fmt: skip
    held = {"n": np.int64(100), "half": np.float32(0.5), "start": np.float32(1)}
    check(tmp_path, [steps(["y", "last_f", "z", "places"]), *cut], [("h", 3), ("a", 3, 100)], ["y", "cut"],
          NUMBERS | held, (0,))  # fmt: skip


@pytest.mark.parametrize("steps", [100, 600])
@pytest.mark.parametrize("is_last_read", [True, False])
def test_states_and_outputs_that_follow_from_the_number(tmp_path, steps, is_last_read):
    """A factor that decays, numbers that are drawn by one another, rows of a table, truth values: read by each step."""
    nodes = [row("a", 1, "i", "x"), node("Mul", ["f", "decay"], ["next_f"]), node("Mul", ["c", "five"], ["c5"]),
             node("Add", ["c5", "i"], ["c6"]), node("Mod", ["c6", "seventeen"], ["next_c"]), node("Not", ["b"], ["next_b"]),
             node("Add", ["v", "f"], ["next_v"]), row("table", 0, "next_c", "w"),
             node("Where", ["b", "x", "w"], ["p"]), node("Mul", ["s", "f"], ["q"]), node("Add", ["p", "q"], ["sum"]),
             node("Add", ["sum", "v"], ["more"]), node("Tanh", ["more"], ["next"]), row("table", 0, "c", "rows")]  # fmt: skip
    states = [STATE, (("f",), ("next_f",), "start"), (info("c", kind=I64), info("next_c", kind=I64), "seed"),
              (info("b", kind=BOOL), info("next_b", kind=BOOL), "true"), (("v", 3), ("next_v", 3), "v0")]  # fmt: skip
    held = {"n": np.int64(steps), "decay": np.float32(0.99), "start": np.float32(1), "seed": np.int64(7),
            "five": np.int64(5), "seventeen": np.int64(17), "v0": np.float32([1, 2, 3]),
            "table": np.random.default_rng(6).standard_normal((17, 3)).astype(np.float32)}  # fmt: skip
    made = loop(nodes, states, [("rows", 3), info("next_c", kind=I64), ("x", 3)])
    results = ["y", *(["f_end", info("c_end", kind=I64), info("b_end", kind=BOOL), "v_end"] if is_last_read else []), "rows_all",
               info("c_all", steps, kind=I64), "x_all"]  # fmt: skip
    outer = [made(["y", "f_end", "c_end", "b_end", "v_end", "rows_all", "c_all", "x_all"])]
    check(tmp_path, outer, [("h", 3), ("a", 3, steps)], results, NUMBERS | held, (0,))


def test_positions_of_states_that_follow_lie_inside(tmp_path):
    nodes = [row("x", 0, "c", "p"), node("Add", ["s", "p"], ["sum"]), node("Tanh", ["sum"], ["next"]),
             node("Mul", ["c", "three"], ["c3"]), node("Mod", ["c3", "seven"], ["next_c"])]  # fmt: skip
    made = loop(nodes, [STATE, (info("c", kind=I64), info("next_c", kind=I64), "one")], [])
    held = NUMBERS | {"n": np.int64(100), "three": np.int64(3), "seven": np.int64(7)}
    check(tmp_path, [made(["y", "c_end"])], [("h", 3), ("x", 7, 3)], ["y"], held, (0,))
    with pytest.raises(harness.CharoniaError, match="index 6 is out of range for the 5 elements of dimension 0"):
        check(tmp_path, [made(["y", "c_end"])], [("h", 3), ("x", 5, 3)], ["y"], held, (0,))


@pytest.mark.parametrize("steps, elements", [(300, 8), (1500, 1)])
def test_last_states_that_follow_are_sizes(tmp_path, steps, elements):
    """However long the table of all steps is."""
    nodes = [row("a", 1, "i", "x"), node("Add", ["s", "x"], ["sum"]), node("Tanh", ["sum"], ["next"]),
             node("Add", ["v", "one"], ["more"]), node("Mod", ["more", "five"], ["next_v"])]  # fmt: skip
    made = loop(nodes, [STATE, (info("v", elements, kind=I64), info("next_v", elements, kind=I64), "seeds")], [])
    outer = [made(["y", "last"]), node("Slice", ["last", "axis0", "axis1", "axis0"], ["length"]),
             node("ConstantOfShape", ["length"], ["zeros"])]  # fmt: skip
    held = NUMBERS | {"n": np.int64(steps), "five": np.int64(5), "seeds": np.arange(elements) % 4 + 3, "axis1": np.array([1])}
    check(tmp_path, outer, [("h", 3), ("a", 3, steps)], ["y", "zeros"], held, (0,))


def test_states_that_follow_from_the_number_until_data_ends_it(tmp_path):
    nodes = [row("a", 1, "i", "x"), node("Mul", ["f", "decay"], ["next_f"]), node("Mul", ["x", "f"], ["p"]),
             node("Add", ["s", "p"], ["next"]), node("ReduceMax", ["next"], ["top"], keepdims=0),
             node("Less", ["top", "bound"], ["next_go"])]  # fmt: skip
    held = {"n": np.int64(600), "decay": np.float32(0.99), "start": np.float32(1), "bound": np.float32(2)}
    made = loop(nodes, [STATE, (("f",), ("next_f",), "start")], [], tests=True)
    check(tmp_path, [made(["y", "f_end"])], [("h", 3), ("a", 3, 600)], ["y", "f_end"], NUMBERS | held, (0,))


def test_states_that_follow_from_open_sizes(tmp_path):
    """Of steps that are repeated they are sizes behind the loop, too, and data."""
    nodes = [row("a", 1, "i", "x"), node("Add", ["s", "x"], ["sum"]), node("Tanh", ["sum"], ["next"]),
             node("Sub", ["c", "two"], ["less"]), node("Max", ["less", "one"], ["next_c"]), node("Add", ["f", "half"], ["next_f"])]  # fmt: skip
    states = [STATE, (info("c", kind=I64), info("next_c", kind=I64), "size"), (("f",), ("next_f",), "float")]
    outer = [*extent("z", "zero", "size"), node("Cast", ["size"], ["float"], to=TensorProto.FLOAT),
             loop(nodes, states, [])(["y", "c_end", "f_end"]),
             node("Cast", ["f_end"], ["whole"], to=I64), node("Sub", ["whole", "most"], ["back"]),
             node("Unsqueeze", ["c_end", "axis0"], ["begin"]), node("Unsqueeze", ["back", "axis0"], ["end"]),
             node("Slice", ["z", "begin", "end", "axis0"], ["cut"])]  # fmt: skip
    held = {"n": np.int64(70), "half": np.float32(0.5), "most": np.int64(36)}
    check(tmp_path, outer, [("h", 3), ("a", 3, 70), ("z", "t", 3)], ["y", "cut", info("c_end", kind=I64), "f_end"],
          NUMBERS | held, (300, 17, 4))  # fmt: skip


@pytest.mark.parametrize("last, refused", [("i", False), ("behind", True)])
def test_places_of_another_tensor(tmp_path, last, refused):
    """Two sizes that are given apart: the larger one has to be large enough, which is checked."""
    nodes = [node("Add", ["i", "one"], ["behind"]), row("b", 0, last, "w"), *plain(), node("Add", ["out", "w"], ["more"])]
    steps = loop(nodes, [STATE], [("more", 3)])
    outer, inputs = [*extent("a", "one", "n"), steps(["y", "z"])], [("h", 3), ("a", 3, "t"), ("b", "t", 3)]
    if not refused:
        check(tmp_path, outer, inputs, ["y", "z"], NUMBERS)
        return
    with pytest.raises(harness.CharoniaError, match=r"position step\d may lie outside of the t elements of dimension 0, for t in 1"):
        check(tmp_path, outer, inputs, ["y", "z"], NUMBERS)


def test_what_a_state_starts_from_is_read_by_others(tmp_path):
    """A kernel in front of the loop takes the value's memory for its result only behind the copy that the steps get."""
    nodes = [row("a", 0, "i", "x"), node("Sub", ["c", "p"], ["d"]), node("Add", ["d", "x"], ["e"]),
             node("Tanh", ["e"], ["next"]), node("Identity", ["c"], ["q"])]  # fmt: skip
    states = [(("p", 4), ("q", 4), "p0"), (("c", 4), ("next", 4), "c0")]
    outer = [*extent("a", "zero", "n"), row("a", 0, "zero", "p0"), node("ReduceMean", ["p0"], ["mean"]),
             node("Sub", ["p0", "mean"], ["c0"]), loop(nodes, states, [])(["p_end", "c_end"])]  # fmt: skip
    check(tmp_path, outer, [("a", "t", 4)], ["p_end", "c_end"], NUMBERS)


@pytest.mark.parametrize("form", ["i != 0 or i < m", "i < 0 or i < m", "i < n m m - 5", "few"])
def test_conditions_that_hold_again(tmp_path, form):
    """What is false in the first step, and not in others; a size that is too large to be told; a limit of few steps."""
    tests = {
        "i != 0 or i < m": [node("Equal", ["i", "zero"], ["same"]), node("Not", ["same"], ["other"]), node("Less", ["i", "m"], ["less"]), node("Or", ["other", "less"], ["next_go"])],
        "i < 0 or i < m": [node("Less", ["i", "zero"], ["other"]), node("Less", ["behind", "m"], ["less"]), node("Or", ["other", "less"], ["next_go"])],
        "i < n m m - 5": [node("Less", ["behind", "many"], ["next_go"])],
        "few": [node("Less", ["behind", "n"], ["next_go"])],
    }  # fmt: skip
    steps = loop([node("Add", ["i", "one"], ["behind"]), *plain(), *tests[form]], [STATE], [], tests=True, trips="ten" if form == "few" else "n")
    outer = [*extent("a", "one", "n"), *extent("b", "zero", "m"), node("Mul", ["n", "m"], ["nm"]), node("Mul", ["nm", "m"], ["nmm"]),
             node("Sub", ["nmm", "five"], ["many"]), steps(["y"])]  # fmt: skip
    numbers = NUMBERS | {"five": np.int64(5), "ten": np.int64(10)}
    for size in (1, 2, 4):
        check(tmp_path, outer, [("h", 3), ("a", 3, "t"), ("b", size, 1)], ["y"], numbers, (1, 2, 7))
    check(tmp_path, outer, [("h", 3), ("a", 3, "t"), ("b", "t", 1)], ["y"], numbers, (2, 3, 7))


@pytest.mark.parametrize("form", ["and", "not or", "branch"])
def test_sizes_or_data_end_it(tmp_path, form):
    """Without another limit: `while i < n and top < bound`, and what `break` becomes."""
    chosen = [onnx.helper.make_graph([node("Identity", [v], [v + "_in"])], "branch", [], [info(v + "_in", kind=BOOL)]) for v in ("false", "less")]
    ends = {
        "and": [node("Not", ["over"], ["under"]), node("And", ["less", "under"], ["next_go"])],
        "not or": [node("Not", ["less"], ["past"]), node("Or", ["over", "past"], ["end"]), node("Not", ["end"], ["next_go"])],
        "branch": [node("If", ["over"], ["next_go"], then_branch=chosen[0], else_branch=chosen[1])],
    }  # fmt: skip
    counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
    nodes = [row("a", 1, "c", "x"), node("Add", ["s", "x"], ["next"]), node("Add", ["c", "one"], ["next_c"]), node("ReduceMax", ["next"], ["top"], keepdims=0),
             node("Greater", ["top", "bound"], ["over"]), node("Less", ["next_c", "n"], ["less"])]  # fmt: skip
    steps = loop([*nodes, *ends[form]], [STATE, counts], [], tests=True, trips="")
    inputs, results = [("h", 3), ("a", 3, "t")], ["y", info("c_end", kind=I64)]
    for bound in (0.9, 99):
        numbers = NUMBERS | {"bound": np.float32(bound), "false": np.bool_(False)}
        check(tmp_path, [*extent("a", "one", "n"), steps(["y", "c_end"])], inputs, results, numbers, (1, 2, 7, 40))


def test_counters_of_a_size_that_wrap(tmp_path):
    """Whatever the size is, it is negative two steps of 2^30 behind that, in a loop that is written out."""
    counts = (info("c", kind=TensorProto.INT32), info("next_c", kind=TensorProto.INT32), "n32")
    nodes = [row("a", 1, "zero", "x"), node("Add", ["s", "x"], ["next"]), node("Add", ["c", "far"], ["next_c"]), node("Greater", ["next_c", "none"], ["next_go"])]
    steps = loop(nodes, [STATE, counts], [], tests=True, trips="few")
    numbers = NUMBERS | {"far": np.int32(2**30), "none": np.int32(0), "few": np.int64(20)}
    outer = [*extent("a", "one", "n"), node("Cast", ["n"], ["n32"], to=TensorProto.INT32), steps(["y", "c_end"])]
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y", info("c_end", kind=TensorProto.INT32)], numbers)


def branch(nodes, result):
    return onnx.helper.make_graph(nodes, "branch", [], [info(result, kind=BOOL)])


def test_states_that_begin_alike(tmp_path):
    """They are not one: a branch of another state than the test's is no `and` of both."""
    chosen = {"then_branch": branch([node("Identity", ["less"], ["u"])], "u"), "else_branch": branch([node("Identity", ["t_over"], ["v"])], "v")}
    nodes = [row("b", 0, "i", "raw"), node("Abs", ["raw"], ["x"]), node("Sub", ["s", "x"], ["next"]), node("Add", ["t", "x"], ["next_t"]),
             node("ReduceSum", ["s"], ["s_sum"], keepdims=0), node("Greater", ["s_sum", "low"], ["s_over"]),
             node("ReduceSum", ["t"], ["t_sum"], keepdims=0), node("Greater", ["t_sum", "low"], ["t_over"]),
             node("Less", ["i", "m"], ["less"]), node("If", ["s_over"], ["next_go"], **chosen)]  # fmt: skip
    steps = loop(nodes, [(("s", 3), ("next", 3), "h"), (("t", 3), ("next_t", 3), "h")], [], tests=True)
    outer = [*extent("b", "zero", "n"), *extent("a", "zero", "m"), steps(["y", "z"])]
    for size in (1, 2, 9):
        check(tmp_path, outer, [("h", 3), ("b", "t", 3), ("a", size, 1)], ["y", "z"], NUMBERS | {"low": np.float32(-0.5)}, (4, 7))
    check(tmp_path, outer, [("h", 3), ("b", 9, 3), ("a", "t", 1)], ["y", "z"], NUMBERS | {"low": np.float32(-99)}, (1, 2, 12))


@pytest.mark.parametrize("trips", ["n", "few", "many"])
def test_counters_that_wrap(tmp_path, trips):
    """Of 32 bits, 7 steps from the largest number: it is negative behind that, and ends the loop."""
    counts = (info("c", kind=TensorProto.INT32), info("next_c", kind=TensorProto.INT32), "high")
    nodes = [row("a", 1, "first", "x"), node("Add", ["s", "x"], ["next"]), node("Add", ["c", "one32"], ["next_c"]), node("Greater", ["next_c", "none"], ["next_go"])]
    steps = loop(nodes, [STATE, counts], [], tests=True, trips=trips)
    numbers = NUMBERS | {"high": np.int32(2**31 - 8), "one32": np.int32(1), "none": np.int32(0), "first": np.int64(0), "few": np.int64(20), "many": np.int64(600)}
    outer, inputs, results = [*extent("a", "one", "n"), steps(["y", "c_end"])], [("h", 3), ("a", 3, "t")], ["y", info("c_end", kind=TensorProto.INT32)]
    check(tmp_path, outer, inputs, results, numbers, (1, 3, 7))
    if trips == "n":
        with pytest.raises(harness.CharoniaError, match="t = 20.* must be at most 7, so that 32 bits hold it"):
            check(tmp_path, outer, inputs, results, numbers, (20,))


CONDITIONS = {
    "either size": [node("Or", ["less_n", "less_m"], ["next_go"])],
    "either, one known": [node("Or", ["less_n", "less_5"], ["next_go"])],
    "both, one known": [node("And", ["less_n", "less_5"], ["next_go"])],
    "data, then known": [node("If", ["under"], ["next_go"], then_branch=branch([node("Identity", ["less_5"], ["u"])], "u"), else_branch=branch([node("Identity", ["no"], ["v"])], "v"))],
    "known, then data": [node("If", ["less_5"], ["next_go"], then_branch=branch([node("Identity", ["under"], ["u"])], "u"), else_branch=branch([node("Identity", ["no"], ["v"])], "v"))],
    "not over, then size": [node("Not", ["over"], ["ok"]),
                            node("If", ["ok"], ["next_go"], then_branch=branch([node("Identity", ["less_n"], ["u"])], "u"), else_branch=branch([node("Not", ["over"], ["v"])], "v"))],
    "one size or the other": [node("If", ["over"], ["next_go"], then_branch=branch([node("Identity", ["less_n"], ["u"])], "u"), else_branch=branch([node("Identity", ["less_m"], ["v"])], "v"))],
    "a bound of data": [node("ReduceSum", ["h"], ["sum_h"], keepdims=0), node("Exp", ["sum_h"], ["high"]), node("Cast", ["high"], ["most"], to=I64),
                        node("Min", ["most", "n"], ["end"]), node("Less", ["next_c", "end"], ["next_go"])],
    "other than true": [node("Or", ["less_n", "less_5"], ["go_on"]), node("Xor", ["go_on", "true"], ["end"]), node("Xor", ["end", "true"], ["next_go"])],
}  # fmt: skip


@pytest.mark.parametrize("form", CONDITIONS)
def test_conditions_in_any_order(tmp_path, form):
    """No trip count: how many steps there are, at most, is seen whichever part comes first."""
    counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
    nodes = [node("Mod", ["i", "n"], ["at"]), row("a", 1, "at", "x"), node("Add", ["s", "x"], ["next"]), node("Add", ["c", "one"], ["next_c"]),
             node("ReduceMax", ["next"], ["top"], keepdims=0), node("Greater", ["top", "bound"], ["over"]), node("Not", ["over"], ["under"]),
             *(node("Less", ["next_c", size], ["less_" + size]) for size in ("n", "m", "5")), *CONDITIONS[form]]  # fmt: skip
    steps = loop(nodes, [STATE, counts], [], tests=True, trips="")
    outer = [*extent("a", "one", "n"), *extent("b", "zero", "m"), steps(["y", "c_end"])]
    for bound in (0.9, 99):
        numbers = NUMBERS | {"bound": np.float32(bound), "5": np.int64(5), "no": np.bool_(False)}
        check(tmp_path, outer, [("h", 3), ("a", 3, "t"), ("b", "t", 1)], ["y", info("c_end", kind=I64)], numbers, (1, 2, 9))
        check(tmp_path, outer, [("h", 3), ("a", 3, "t"), ("b", 4, 1)], ["y", info("c_end", kind=I64)], numbers, (1, 2, 9))


def test_a_number_of_steps_that_only_its_ranges_tell(tmp_path):
    """min(1, n) + 3 is 4, which are written out; so where the body says it."""
    for trips in (True, False):
        counts = (info("c", kind=I64), info("next_c", kind=I64), "zero")
        ends = [] if trips else [node("Less", ["next_c", "four"], ["next_go"])]
        nodes = [row("a", 1, "zero", "x"), node("Add", ["s", "x"], ["next"]), node("Add", ["c", "one"], ["next_c"]), *ends]
        steps = loop(nodes, [STATE, counts], [], tests=not trips, trips="four" if trips else "")
        outer = [*extent("a", "one", "n"), node("Min", ["one", "n"], ["least"]), node("Add", ["least", "three"], ["four"]), steps(["y", "c_end"])]
        check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y", info("c_end", kind=I64)], NUMBERS | {"three": np.int64(3)})


def test_remainders_that_are_no_more_than_their_dividends(tmp_path):
    """a[i mod m] of n rows in n steps, whatever m is."""
    steps = loop([node("Mod", ["i", "m"], ["at"]), *plain("at")], [STATE], [("out", 3)])
    outer = [*extent("a", "one", "n"), *extent("b", "zero", "m"), steps(["y", "z"])]
    for size in (1, 3, 9):
        check(tmp_path, outer, [("h", 3), ("a", 3, "t"), ("b", size, 1)], ["y", "z"], NUMBERS, (1, 3, 7))
    check(tmp_path, outer, [("h", 3), ("a", 3, 4), ("b", "t", 1)], ["y", "z"], NUMBERS, (1, 4, 9))


@pytest.mark.parametrize("by", ["n", "three"])
def test_places_that_go_round(tmp_path, by):
    steps = loop([node("Mul", ["i", "two"], ["twice"]), node("Mod", ["twice", by], ["at"]), *plain("at")], [STATE], [("out", 3)])
    numbers = NUMBERS | {"three": np.int64(3)}
    check(tmp_path, [*extent("a", "one", "n"), steps(["y", "z"])], [("h", 3), ("a", 3, "t")], ["y", "z"], numbers, (3, 4, 7))


def test_nothing_is_asked_of_sizes_without_a_step(tmp_path):
    """Windows of four: fewer elements than a window holds are no step."""
    nodes = [node("Add", ["i", "three"], ["end"]), *plain("end")]
    outer = [*extent("a", "one", "all"), node("Sub", ["all", "three"], ["n"]), loop(nodes, [STATE], [])(["y"])]
    check(tmp_path, outer, [("h", 3), ("a", 3, "t")], ["y"], NUMBERS | {"three": np.int64(3)}, (1, 2, 3, 4, 7))


def test_steps_tried_in_vain_ask_nothing_of_sizes(tmp_path):
    """One state grows, so that all steps are written out; the other takes another size, which they may."""
    grows = (info("g", None), info("next_g", None), "h")
    nodes = [row("a", 0, "zero", "x"), node("Concat", ["g", "one_more"], ["next_g"], axis=0), node("Identity", ["x"], ["next"])]
    steps = loop(nodes, [(("s", None), ("next", None), "b"), grows], [], trips="many")
    numbers = NUMBERS | {"many": np.int64(600), "one_more": np.ones(1, np.float32)}
    check(tmp_path, [steps(["y", "z"])], [("h", 2), ("a", 2, "t"), ("b", 5)], ["y", "z"], numbers, (2, 3))


@pytest.mark.parametrize("trips", ["ten", "many"])
def test_outputs_of_a_loop_that_data_ends_are_refused(tmp_path, trips):
    """Their number is not known, however many steps there are at most."""
    nodes = [*plain("zero"), node("ReduceMax", ["next"], ["top"], keepdims=0), node("Less", ["top", "bound"], ["next_go"])]
    steps = loop(nodes, [STATE], [("out", 3)], tests=True, trips=trips)
    numbers = NUMBERS | {"bound": np.float32(0.9), "ten": np.int64(10), "many": np.int64(600)}
    with pytest.raises(harness.CharoniaError, match="data may end the loop before its last step, so that the number of outputs of steps is not known"):
        check(tmp_path, [steps(["y", "z"])], [("h", 3), ("a", 3, "t")], ["y", "z"], numbers)


REFUSED = {
    "grows": ([node("Concat", ["s", "x"], ["next"], axis=0)], r"a step makes float32\[6\] of a state of float32\[3\]"),
    "sizes": (
        [node("Reshape", ["i", "line"], ["end"]), node("Slice", ["a", "axis0", "end", "axis1"], ["part"]),
         node("ReduceSum", ["part"], ["sums"], keepdims=0), node("Add", ["s", "sums"], ["next"])],
        r"size step\d - 1 of float32\[3, step\d - 1\] differs from step to step of a loop",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path, name):
    nodes, message = REFUSED[name]
    steps = loop([row("a", 1, "i", "x"), *nodes], [STATE], [])
    numbers = NUMBERS | {"line": np.int64([1]), "axis1": np.int64([1])}
    with pytest.raises(harness.CharoniaError, match=message):
        check(tmp_path, [*extent("a", "one", "n"), steps(["y"])], [("h", 3), ("a", 3, "t")], ["y"], numbers)
