"""Shapes that nodes compute through floats, and by which of two sizes is larger: the same at every size as in ONNX Runtime."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest

HEADER = '<ir_version: 9, opset_import: ["" : 18]>\nagraph '
SIZE = """shape = Shape (x)
    n = Gather (shape, at)
"""
CONSTANTS = "int64[1] at = {0}, int64[1] one = {1}, int64[1] zero = {0}"


def size_of(steps: str, constants: str = "") -> str:
    """A model of x, [n], whose result has `m` elements: x repeated or cut."""
    return f"""(float[n] x) => (float[m] y) <{CONSTANTS}{", " + constants if constants else ""}>
{{
    {SIZE}
    {steps}
    zeros = ConstantOfShape <value = float[1] {{2}}> (m)
    last = Slice (x, zero, one)
    y = Mul (zeros, last)
}}"""


# The sizes that are computed, and at which n.
CASES = {
    "float-fraction": (size_of("""f = Cast <to = 1> (n)
        s = Mul (f, k)
        r = Floor (s)
        m = Cast <to = 7> (r)""", "float[1] k = {0.7}"), range(2, 64)),
    "float-quotient": (size_of("""f = Cast <to = 1> (n)
        s = Div (f, k)
        r = Ceil (s)
        m = Cast <to = 7> (r)""", "float[1] k = {3}"), range(1, 40)),
    "float-power-of-two": (size_of("""f = Cast <to = 1> (n)
        s = Div (f, k)
        r = Ceil (s)
        m = Cast <to = 7> (r)""", "float[1] k = {8}"), range(1, 40)),
    "double-root": (size_of("""f = Cast <to = 11> (n)
        s = Sqrt (f)
        r = Round (s)
        m = Cast <to = 7> (r)"""), range(1, 50)),
    "least": (size_of("m = Min (n, k)", "int64[1] k = {10}"), (1, 9, 10, 11, 50)),
    "largest": (size_of("m = Max (n, k)", "int64[1] k = {10}"), (1, 9, 10, 11, 50)),
    "negative-quotient": (size_of("""a = Sub (n, k)
        b = Div (a, two)
        m = Add (b, two)""", "int64[1] k = {3}, int64[1] two = {2}"), range(1, 12)),
    "rest": (size_of("""a = Sub (n, k)
        m = Mod (a, five)""", "int64[1] k = {7}, int64[1] five = {5}"), range(3, 20)),
    "chain": (size_of("""a = Min (n, k)
        f = Cast <to = 1> (a)
        s = Mul (f, h)
        c = Cast <to = 7> (s)
        m = Max (c, one)""", "int64[1] k = {20}, float[1] h = {0.3}"), (1, 2, 3, 10, 19, 20, 21, 60)),
    "slice": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, int64[1] k = {{10}}>
        {{ {SIZE} end = Min (n, k)
        y = Slice (x, zero, end) }}""", (1, 9, 10, 11, 50)),
    "pad": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, int64[1] k = {{10}}>
        {{ {SIZE} d = Sub (k, n)
        more = Max (d, zero)
        pads = Concat <axis = 0> (zero, more)
        y = Pad (x, pads) }}""", (1, 9, 10, 11, 50)),
    "resize": (f"""(float[1,1,n,w] x) => (float[1,1,h,v] y) <{CONSTANTS}, float[2] k = {{1.3, 0.6}}, int64[2] places = {{2, 3}}>
        {{ shape = Shape (x)
        spatial = Gather (shape, places)
        f = Cast <to = 1> (spatial)
        s = Mul (f, k)
        r = Floor (s)
        c = Cast <to = 7> (r)
        ones = Concat <axis = 0> (one, one)
        sizes = Concat <axis = 0> (ones, c)
        y = Resize <mode = "linear"> (x, , , sizes) }}""", (4, 5, 7, 10, 33)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sizes(tmp_path, name):
    text, sizes = CASES[name]
    model = onnx.parser.parse_model(HEADER + text)
    onnx.save(model, tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rank = len(model.graph.input[0].type.tensor_type.shape.dim)
    for n in sizes:
        shape = (n,) if rank == 1 else (1, 1, n, n + 2)
        x = np.random.default_rng(n).standard_normal(shape).astype(np.float32)
        (want,) = session.run(None, {"x": x})
        (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
        assert got.shape == want.shape, n
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_computed_sizes_are_shown_and_checked(tmp_path):
    text, _ = CASES["chain"]
    onnx.save(onnx.parser.parse_model(HEADER + text), tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", extra=["--shape", "x=1..8..64"])
    shown = harness.invoke("inspect", tmp_path / "m.engine").stdout
    assert "  computes size0 = min(n, 20)\n" in shown
    assert "  computes size1 = int(single((single(float(size0)) * 0.3" in shown
    with pytest.raises(harness.CharoniaError, match=r"makes n 65; the engine was built for n in 1\.\.64"):
        harness.run_engine(tmp_path / "m.engine", {"x": np.zeros(65, np.float32)}, ["y"], tmp_path)


def test_needed_size_is_checked(tmp_path):
    """A root that has to be whole: the elements of [n] as a square."""
    text = f"""(float[n] x) => (float[a,b] y) <{CONSTANTS}>
    {{ {SIZE} f = Cast <to = 1> (n)
    s = Sqrt (f)
    m = Cast <to = 7> (s)
    square = Concat <axis = 0> (m, m)
    y = Reshape (x, square) }}"""
    onnx.save(onnx.parser.parse_model(HEADER + text), tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    x = np.arange(49, dtype=np.float32)
    (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
    np.testing.assert_array_equal(got, x.reshape(7, 7))
    with pytest.raises(harness.CharoniaError, match="must equal"):
        harness.run_engine(tmp_path / "m.engine", {"x": x[:48]}, ["y"], tmp_path)


@pytest.mark.parametrize("target", harness.cpu_targets())
def test_reflection_of_open_sizes(tmp_path, target):
    """Rows that end in any lane of a vector, padded by as much as they can be."""
    text = HEADER + """(float[h,w] x) => (float[p,q] y) <int64[4] pads = {2, 5, 1, 4}>
        { y = Pad <mode = "reflect"> (x, pads) }"""
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine, target=target, shapes={"x": ((3, 20, 90), (6, 40, 90))})
    for h, w in [(3, 6), (4, 7), (20, 40), (9, 64), (90, 33), (5, 90)]:
        x = np.arange(h * w, dtype=np.float32).reshape(h, w)
        (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path)
        np.testing.assert_array_equal(got, np.pad(x, ((2, 1), (5, 4)), mode="reflect"))


def test_a_size_that_is_computed_again(tmp_path):
    """Exporters write a computation once a use; what was learned in between changes nothing."""
    chain = """{0}s = Shape (x)
        {0}f = Cast <to = 1> ({0}s)
        {0}m = Mul ({0}f, k)
        {0}u = Sub ({0}m, four)
        {0}i = Cast <to = 7> ({0}u)"""
    text = HEADER + f"""(float[n] x) => (float[p] y, float[q] z, float[r] w)
    <float k = {{0.3}}, float four = {{4}}, float[1] one = {{1}}, int64[2] pads = {{20, 20}}>
    {{ {chain.format("a")}
        y = Expand (one, ai)
        w = Pad <mode = "reflect"> (x, pads)
        {chain.format("b")}
        z = Expand (one, bi) }}"""
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine)
    x = np.arange(40, dtype=np.float32)
    y, z = harness.run_engine(engine, {"x": x}, ["y", "z"], tmp_path)
    assert y.shape == z.shape == (8,)


# Parts of x, [n,4], whose k = n % 3 rows are none for some n; their elements are counted by k.
EMPTY_PARTS = {
    "rows": """part = Slice (x, zero, k, zero)
        turned = Transpose (part)
        flat = Reshape (turned, all)
        every = Reshape (x, all)
        joined = Concat <axis = 0> (flat, every)
        y = Relu (joined)""",
    "columns": """across = Concat <axis = 0> (four, n)
        wide = Reshape (x, across)
        part = Slice (wide, zero, k, one)
        y = ReduceSum <keepdims = 0> (part)""",
    "padded": """part = Slice (x, zero, k, zero)
        turned = Transpose (part)
        flat = Reshape (turned, all)
        y = Pad (flat, ends)""",
    "repeated": """part = Slice (x, zero, k, zero)
        twice = Tile (part, times)
        y = Concat <axis = 0> (twice, x)""",
}


@pytest.mark.parametrize("name", EMPTY_PARTS)
def test_parts_that_are_empty_at_some_sizes(tmp_path, name):
    """No element of them is asked for, and nothing divides by their size."""
    constants = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] three = {3}, int64[1] four = {4},
        int64[1] all = {-1}, int64[2] times = {2, 1}, int64[2] ends = {1, 1}"""
    shape = {"columns": "", "repeated": "[p,4]"}.get(name, "[p]")
    model = onnx.parser.parse_model(HEADER + f"""(float[n,4] x) => (float{shape} y) <{constants}>
        {{ s = Shape (x)
        n = Gather (s, zero)
        k = Mod (n, three)
        {EMPTY_PARTS[name]} }}""")  # fmt: skip
    onnx.save(model, tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for n in (1, 2, 3, 4, 5, 6):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        (want,) = session.run(None, {"x": x})
        (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
        np.testing.assert_allclose(got, want, 1e-5, 1e-5, err_msg=f"n = {n}")
