"""Elements of TensorFlow's lists that are not set, of several shapes."""

from __future__ import annotations

from pathlib import Path

import harness
import numpy as np
import pytest

FLOATS, INTS = "type: DT_FLOAT", "type: DT_INT32"


def node(name: str, op: str, inputs: str = "", **attributes: str) -> str:
    given = " ".join(f'input: "{i}"' for i in inputs.split())
    return f'node {{ name: "{name}" op: "{op}" {given} ' + " ".join(f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attributes.items()) + " }\n"


def constant(name: str, values: list[int], rank: int = 1) -> str:
    shape = f"dim {{ size: {len(values)} }}" if rank else ""
    tensor = f"dtype: DT_INT32 tensor_shape {{ {shape} }} " + " ".join(f"int_val: {v}" for v in values)
    return node(name, "Const", dtype=INTS, value=f"tensor {{ {tensor} }}")


def graph(reader: str) -> str:
    """A list of three, of which the first is x [2, 2]."""
    text = node("x", "Placeholder", dtype=FLOATS, shape="shape { dim { size: 2 } dim { size: 2 } }")
    text += constant("any", [-1], 0) + constant("n", [3], 0) + constant("zero", [0], 0) + constant("one", [1], 0)
    text += constant("five", [5]) + constant("open", [-1, -1]) + constant("places", [2, 1])
    text += node("l", "TensorListReserve", "any n", element_dtype=FLOATS, shape_type=INTS)
    return text + node("s", "TensorListSetItem", "l zero x", element_dtype=FLOATS) + reader


@pytest.mark.parametrize(
    "reader, shape",
    [
        (node("y", "TensorListGetItem", "s one five", element_dtype=FLOATS), (5,)),
        (node("y", "TensorListGetItem", "s one open", element_dtype=FLOATS), (2, 2)),
        (node("y", "TensorListGather", "s places open", element_dtype=FLOATS), (2, 2, 2)),
        (node("y", "TensorListGather", "s places five", element_dtype=FLOATS), (2, 5)),
    ],
    ids=["stated", "others", "gathered", "gathered stated"],
)
def test_elements_that_are_not_set(reader: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    """They are zeros of the shape that the reader states, else of the others' shape."""
    (tmp_path / "m.pbtxt").write_text(graph(reader))
    harness.compile_model(tmp_path / "m.pbtxt", tmp_path / "m.engine")
    got = harness.run_all_outputs(tmp_path / "m.engine", {"x": np.ones((2, 2), np.float32)}, tmp_path)["y"]
    np.testing.assert_array_equal(got, np.zeros(shape, np.float32))


@pytest.mark.parametrize("places, words", [("reverse", "sets elements of a list of size x_dim0, which is open, other than all of them"), ("range", None)])
def test_open_list_that_is_set_at_once(places: str, words: str | None, tmp_path: Path) -> None:
    """Of as many elements as x has rows: in order, or not."""
    text = node("x", "Placeholder", dtype=FLOATS, shape="shape { dim { size: -1 } dim { size: 2 } }")
    text += constant("zero", [0], 0) + constant("one", [1], 0) + constant("first", [0]) + constant("two", [2])
    text += node("shape", "Shape", "x", T=FLOATS, out_type=INTS) + node("n", "GatherV2", "shape zero zero", Tparams=INTS, Tindices=INTS, Taxis=INTS)
    text += node("range", "Range", "zero n one", Tidx=INTS) + node("reverse", "ReverseV2", "range first", T=INTS, Tidx=INTS)
    text += node("l", "TensorListScatterV2", f"x {places} two n", element_dtype=FLOATS, shape_type=INTS)
    (tmp_path / "m.pbtxt").write_text(text + node("y", "TensorListStack", "l two", element_dtype=FLOATS))
    if words:
        with pytest.raises(harness.CharoniaError, match=words):
            harness.compile_model(tmp_path / "m.pbtxt", tmp_path / "m.engine")
        return
    harness.compile_model(tmp_path / "m.pbtxt", tmp_path / "m.engine")
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(harness.run_all_outputs(tmp_path / "m.engine", {"x": x}, tmp_path)["y"], x)
