"""`Scan` over an open number of steps, whose body is repeated, beside ONNX Runtime."""

from __future__ import annotations

import harness
import numpy as np
import pytest
from steps_model import body, check, node


def plain():
    nodes = [node("Add", ["s", "x"], ["sum"]), node("Tanh", ["sum"], ["next"]), node("Mul", ["next", "x"], ["out"])]
    return body(nodes, [("s", 4), ("x", 4)], [("next", 4), ("out", 4)])


WAYS = {
    "along the first axis": ({}, ("a", "t", 4)),
    "along another axis": (dict(scan_input_axes=[1], scan_output_axes=[-1]), ("a", 4, "t")),
    "backward": (dict(scan_input_directions=[1], scan_output_directions=[1]), ("a", "t", 4)),
    "more steps than are written out": ({}, ("a", 9000, 4)),
}


@pytest.mark.parametrize("name", WAYS)
def test_ways(tmp_path, name):
    attributes, scanned = WAYS[name]
    scan = node("Scan", ["h", "a"], ["y", "z"], body=plain(), num_scan_inputs=1, **attributes)
    check(tmp_path, [scan], [("h", 4), scanned], ["y", "z"])


def test_states_that_trade_places(tmp_path):
    """All of what is carried is read before any of it is written; what passes through is no copy."""
    nodes = [node("Identity", ["s2"], ["n1"]), node("Identity", ["s1"], ["n2"]), node("Identity", ["s3"], ["n3"]),
             node("Add", ["s1", "x"], ["out"]), node("Identity", ["s2"], ["seen"])]  # fmt: skip
    step = body(nodes, [("s1", 3), ("s2", 3), ("s3", 3), ("x", 3)], [(n, 3) for n in ("n1", "n2", "n3", "out", "seen")])
    scan = node("Scan", ["h1", "h2", "h3", "a"], ["y1", "y2", "y3", "z", "w"], body=step, num_scan_inputs=1)
    check(tmp_path, [scan], [("h1", 3), ("h2", 3), ("h3", 3), ("a", "t", 3)], ["y1", "y2", "y3", "z", "w"])


def test_what_is_passed_on_and_given(tmp_path):
    """A step computes nothing: what it is given is stored twice."""
    nodes = [node("Identity", ["x"], ["next"]), node("Identity", ["x"], ["out"])]
    step = body(nodes, [("s", 3, 4), ("x", 3, 4)], [("next", 3, 4), ("out", 3, 4)])
    for attributes in ({}, {"scan_input_directions": [1]}):
        scan = node("Scan", ["h", "a"], ["y", "z"], body=step, num_scan_inputs=1, **attributes)
        check(tmp_path, [scan], [("h", 3, 4), ("a", "t", 3, 4)], ["y", "z"])


def test_memory_that_steps_update(tmp_path):
    """What all steps find alike is not written to, nor what is carried before the step's end."""
    nodes = [node("ScatterElements", ["base", "places", "x"], ["changed"], axis=0, reduction="add"),
             node("Add", ["changed", "s"], ["out"]), node("ScatterElements", ["s", "places", "x"], ["next"], axis=0)]  # fmt: skip
    step = body(nodes, [("s", 60), ("x", 30)], [("next", 60), ("out", 60)])
    outer = [node("Exp", ["k"], ["base"]), node("Scan", ["h", "a"], ["y", "z"], body=step, num_scan_inputs=1),
             node("Add", ["base", "y"], ["w"])]  # fmt: skip
    places = np.random.default_rng(1).permutation(60)[:30]
    check(tmp_path, outer, [("h", 60), ("a", "t", 30), ("k", 60)], ["y", "z", "w"], {"places": places})


def test_attention_inside_of_steps(tmp_path):
    """Products with what is outside, rows that are normalized, numbers without a dimension as outputs."""
    nodes = [node("MatMul", ["s", "keys"], ["scores"]), node("Softmax", ["scores"], ["shares"]),
             node("MatMul", ["shares", "memory"], ["read"]), node("Add", ["read", "x"], ["sum"]),
             node("LayerNormalization", ["sum", "scale"], ["next"]), node("ReduceMax", ["shares"], ["out"], keepdims=0)]  # fmt: skip
    step = body(nodes, [("s", 3, 16), ("x", 3, 16)], [("next", 3, 16), ("out",)])
    outer = [node("Transpose", ["memory"], ["keys"]), node("Scan", ["h", "a"], ["y", "z"], body=step, num_scan_inputs=1),
             node("Softmax", ["z"], ["w"], axis=0)]  # fmt: skip
    check(tmp_path, outer, [("h", 3, 16), ("a", "t", 3, 16), ("memory", 20, 16)], ["y", "w"], {"scale": np.ones(16, np.float32)})


def test_a_state_that_grows_is_refused(tmp_path):
    nodes = [node("Concat", ["s", "x"], ["next"], axis=0), node("Identity", ["x"], ["out"])]
    step = body(nodes, [("s", None), ("x", 4)], [("next", None), ("out", 4)])
    scan = node("Scan", ["h", "a"], ["y", "z"], body=step, num_scan_inputs=1)
    with pytest.raises(harness.CharoniaError, match=r"a step makes float32\[8\] of a state of float32\[4\]"):
        check(tmp_path, [scan], [("h", 4), ("a", "t", 4)], ["y", "z"])
