"""Shapes that nodes compute through floats, and by which of two sizes is larger: the same at every size as in ONNX Runtime."""

from __future__ import annotations

import re

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
    # Of one element the rest is 3: nothing is left.
    "slice-from-rest": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, int64[1] four = {{4}}, int64[1] end = {{1000000000}}>
        {{ {SIZE} d = Neg (n)
        start = Mod (d, four)
        y = Slice (x, start, end) }}""", (1, 2, 3, 4, 5, 9)),
    "slice-between-rests": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, int64[1] four = {{4}}, int64[1] k = {{7}}>
        {{ {SIZE} start = Mod (n, four)
        end = Mod (n, k)
        y = Slice (x, start, end) }}""", range(1, 30)),
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
    "choice": (size_of("""c = Greater (n, k)
        m = Where (c, k, five)""", "int64[1] k = {20}, int64[1] five = {5}"), (1, 19, 20, 21, 50)),
    "choice-of-open": (size_of("""c = LessOrEqual (n, k)
        o = Greater (n, five)
        b = Not (o)
        both = Or (c, b)
        a = Sub (n, five)
        m = Where (both, n, a)""", "int64[1] k = {20}, int64[1] five = {5}"), (1, 5, 6, 20, 21, 50)),
    "choice-of-floats": (size_of("""f = Cast <to = 1> (n)
        c = Less (f, k)
        h = Mul (f, more)
        g = Where (c, h, f)
        m = Cast <to = 7> (g)""", "float[1] k = {10.5}, float[1] more = {1.7}"), (1, 5, 6, 10, 11, 15)),
    "equality": (size_of("""f = Cast <to = 1> (n)
        s = Sqrt (f)
        r = Floor (s)
        c = Equal (s, r)
        m = Where (c, k, n)""", "int64[1] k = {3}"), (1, 3, 4, 8, 9, 16, 24, 25)),
    "rest-of-negative": (size_of("""a = Neg (n)
        b = Mod <fmod = 1> (a, k)
        c = Neg (b)
        m = Add (c, one)""", "int64[1] k = {7}"), (1, 6, 7, 8, 14, 19)),
    "rest-of-either": (size_of("""d = Sub (n, k)
        b = Mod <fmod = 1> (d, five)
        m = Add (b, k)""", "int64[1] k = {7}, int64[1] five = {5}"), (1, 2, 6, 7, 8, 11, 12, 13, 19)),
    "rest-of-floats": (size_of("""f = Cast <to = 1> (n)
        b = Mod <fmod = 1> (f, k)
        c = Mul (b, two)
        m = Cast <to = 7> (c)""", "float[1] k = {7.5}, float[1] two = {2}"), (1, 7, 8, 15, 16, 23, 39)),
    "bits": (size_of("""a = BitwiseAnd (n, k)
        b = BitwiseOr (n, k)
        c = BitwiseXor (n, k)
        d = BitwiseAnd (n, high)
        u = Cast <to = 13> (n)
        v = BitShift <direction = "RIGHT"> (u, two)
        w = Cast <to = 7> (v)
        ab = Add (a, b)
        cd = Add (c, d)
        e = Add (ab, cd)
        m = Add (e, w)""",
        "int64[1] k = {13}, int64[1] high = {-8}, uint64[1] two = {2}"), (1, 7, 8, 12, 13, 15, 16, 39)),
    "least-of-all": (size_of("""both = Concat <axis = 0> (n, k)
        a = ReduceMin <keepdims = 1> (both)
        f = Cast <to = 1> (both)
        g = ReduceMax <keepdims = 1> (f)
        h = Sqrt (g)
        c = Cast <to = 7> (h)
        m = Add (a, c)""", "int64[1] k = {20}"), (1, 19, 20, 21, 26)),
    "slice-either-way": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, int64[1] k = {{10}}>
        {{ {SIZE} end = Sub (n, k)
        y = Slice (x, zero, end) }}""", (1, 4, 9, 10, 11, 20)),
    "slice-from-either": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, int64[1] k = {{10}}, int64[1] big = {{9223372036854775807}}>
        {{ {SIZE} start = Sub (n, k)
        y = Slice (x, start, big) }}""", (1, 4, 5, 6, 9, 10, 11, 20)),
    "slice-beyond": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, float[1] k = {{1.7}}, int64[1] big = {{9223372036854775807}}>
        {{ {SIZE} f = Cast <to = 1> (n)
        s = Mul (f, k)
        r = Floor (s)
        start = Cast <to = 7> (r)
        y = Slice (x, start, big) }}""", (1, 2, 5)),
    "rest-of-reshape": (f"""(float[n] x) => (float[a,b] y) <{CONSTANTS}, int64[1] rest = {{-1}}>
        {{ {SIZE} f = Cast <to = 1> (n)
        s = Sqrt (f)
        r = Cast <to = 7> (s)
        sizes = Concat <axis = 0> (r, rest)
        y = Reshape (x, sizes) }}""", (1, 2, 3, 16, 20, 10000)),
    "range-of-floats": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, float k = {{0.7}}, float from = {{0.5}}, float by = {{0.3}}, int64 first = {{0}}>
        {{ shape = Shape (x)
        n = Gather (shape, first)
        f = Cast <to = 1> (n)
        limit = Mul (f, k)
        y = Range (from, limit, by) }}""", (1, 2, 5, 11, 19)),
    "range-of-a-little-more": (f"""(float[n] x) => (float[m] y) <{CONSTANTS}, float from = {{-1e-9}}, float by = {{0.5}}, int64 first = {{0}}>
        {{ shape = Shape (x)
        n = Gather (shape, first)
        limit = Cast <to = 1> (n)
        y = Range (from, limit, by) }}""", (1, 2, 3)),
}  # fmt: skip


def resize_by(attributes: str, scales: str) -> str:
    return f"""(float[1,1,n,w] x) => (float[1,1,h,v] y) <{CONSTANTS}, float[2] goal = {{14, 9}}, float[1] edge = {{32}}, float[2] ones = {{1, 1}}, int64[2] places = {{2, 3}}>
        {{ shape = Shape (x)
        spatial = Gather (shape, places)
        f = Cast <to = 1> (spatial)
        {scales}
        scales = Concat <axis = 0> (ones, q)
        y = Resize <{attributes}> (x, , scales) }}"""


GOAL, EDGE = "q = Div (goal, f)", "least = ReduceMin <keepdims = 1> (f)\n p = Div (edge, least)\n q = Concat <axis = 0> (p, p)"
for name, attributes in {
    "nearest": 'mode = "nearest"',
    "nearest-floor": 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"',
    "nearest-up": 'mode = "nearest", coordinate_transformation_mode = "align_corners", nearest_mode = "round_prefer_ceil"',
    "linear": 'mode = "linear"',
    "linear-pytorch": 'mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"',
    "cubic": 'mode = "cubic", cubic_coeff_a = -0.5, exclude_outside = 1',
    "cubic-symmetric": 'mode = "cubic", coordinate_transformation_mode = "half_pixel_symmetric"',
}.items():
    CASES[f"resize-{name}"] = (resize_by(attributes, GOAL), (3, 7, 10, 33))
    CASES[f"resize-edge-{name}"] = (resize_by(attributes, EDGE), (5, 8, 20, 33))
CASES["resize-fraction"] = (resize_by('mode = "linear"', "q = Div (goal, tenth)").replace("float[1] edge", "float[2] tenth = {10.5, 14.3}, float[1] edge"), (3, 7, 10, 33))


# Divisors that are 0 or negative where they are not asked for.
GUARD = """f = Cast <to = 1> (n)
    h = Sub (f, ten)
    c = Greater (h, nil)
    {0}
    r = Floor (d)
    i = Cast <to = 7> (r)
    m = Add (i, one)"""
GUARD_NUMBERS = "float[1] ten = {10}, float[1] nil = {0}, float[1] few = {3}, float[1] many = {100}"
GUARDED = (1, 9, 10, 11, 12, 43, 110, 111)
CASES["guarded-divisor"] = (size_of(GUARD.format("g = Where (c, h, few)\n d = Div (many, g)"), GUARD_NUMBERS), GUARDED)
CASES["guarded-quotient"] = (size_of(GUARD.format("q = Div (many, h)\n d = Where (c, q, few)"), GUARD_NUMBERS), GUARDED)
CASES["guarded-otherwise"] = (size_of(GUARD.format("""o = LessOrEqual (h, nil)
    a = Sqrt (h)
    q = Div (many, a)
    d = Where (o, few, q)"""), GUARD_NUMBERS), GUARDED)
CASES["guarded-zero"] = (size_of("""k = Mod (n, five)
    e = Equal (k, zero)
    g = Where (e, one, k)
    d = Div (n, g)
    m = Add (d, one)""", "int64[1] five = {5}"), range(1, 13))


# Products that wrap, and sums of them that do not.
CASES["narrow-there-and-back"] = (size_of("""c = Cast <to = 6> (n)
    p = Mul (c, k)
    q = Mul (c, l)
    d = Sub (p, q)
    m = Cast <to = 7> (d)""", "int32[1] k = {100000}, int32[1] l = {99999}"), (1, 21474, 21475, 30000))


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


def test_halves_that_stay_exact(tmp_path):
    """As 2048 is the last whole number that all before it are, a range beyond is refused."""
    text = HEADER + size_of("""f = Cast <to = 10> (n)
        s = Mul (f, k)
        r = Ceil (s)
        m = Cast <to = 7> (r)""", "float16[1] k = {14336}")
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine, extra=["--shape", "x=1..8..2048"])
    for n in (1, 2, 7, 2047):
        (y,) = harness.run_engine(engine, {"x": np.ones(n, np.float32)}, ["y"], tmp_path)
        assert y.shape == ((n + 1) // 2,)
    with pytest.raises(harness.CharoniaError, match="follows from sizes, but Cast 'f' computes it in a way"):
        harness.compile_model(path, engine)


def test_sizes_are_named_as_they_were_asked_for(tmp_path):
    """What may be below 0 is kept with a number added: notes say it without."""
    text = HEADER + f"""(float[n] x) => (float[m] y) <{CONSTANTS}, float[1] k = {{0.6}}, float[1] two = {{2}}>
    {{ {SIZE} f = Cast <to = 1> (n)
    s = Mul (f, k)
    d = Sub (f, s)
    h = Div (d, two)
    i = Cast <to = 7> (h)
    r = Range (zero0, i0, one0)
    i0 = Squeeze (i)
    p = Cast <to = 1> (r)
    y = Neg (p) }}""".replace("float[1] two", "int64 zero0 = {0}, int64 one0 = {1}, float[1] two")
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    done = harness.invoke("compile", path, "-o", tmp_path / "m.engine")
    print(done.stderr)
    assert "  size0 >= 0, so that" in done.stderr and "where size0 = int(single((single((single(float(n))" in done.stderr


def test_sizes_to_optimize_for_follow_what_is_computed(tmp_path):
    """Of 1.7 n columns only those of n = 1 are there: a sum over them needs n >= int(1.7 n)."""
    text = HEADER + f"""(float[n] x, float[n] z) => (float[m] y, float[m] w) <{CONSTANTS}, float[1] k = {{1.7}}>
    {{ {SIZE} f = Cast <to = 1> (n)
    s = Mul (f, k)
    i = Cast <to = 7> (s)
    y = Expand (one1, i)
    w = Add (y, z) }}""".replace("float[1] k", "float[1] one1 = {1}, float[1] k")
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(onnx.parser.parse_model(text), path)
    done = harness.invoke("compile", path, "-o", engine)
    assert "n = size0, as Add 'w'" in done.stderr and "size0 = int(single((single(float(n)) * 1.7" in done.stderr
    y, w = harness.run_engine(engine, {"x": np.ones(1, np.float32), "z": np.ones(1, np.float32)}, ["y", "w"], tmp_path)
    assert w.tolist() == [2]


def test_determinant_of_nothing(tmp_path):
    text = HEADER + "(float[b,0,0] x) => (float[b] y) { y = Det (x) }"
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine)
    (y,) = harness.run_engine(engine, {"x": np.zeros((3, 0, 0), np.float32)}, ["y"], tmp_path)
    assert y.tolist() == [1, 1, 1]


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


# What makes a difference of c, [1] and int32, where c * 100000 wraps.
WRAPPING = {
    "rest": "r = Mod (p, three)",
    "quotient": "r = Div (p, three)",
    "order": """b = Greater (p, three)
        r = Where (b, three, c)""",
    "larger": """t = Max (p, three)
        r = Sub (t, p)""",
    "mask": """h = Cast <to = 6> (x)
        b = Less (p, h)
        r = Cast <to = 6> (b)""",
    "wider": """w = Cast <to = 7> (p)
        v = Mod (w, seven)
        r = Cast <to = 6> (v)""",
    "bits": "r = BitwiseAnd (p, three)",
    "several": """t = Concat <axis = 0> (p, c)
        u = Reshape (t, column)
        q = Mod (u, three)
        r = Reshape (q, all)""",
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPING)
def test_numbers_that_wrap_are_computed(tmp_path, name):
    """Sizes as data, in 32 bits: what a model makes of them is as they wrapped."""
    text = f"""(float[n] x) => (int32[k] r) <{CONSTANTS}, int32[1] many = {{100000}}, int32[1] three = {{3}},
        int64[1] seven = {{7}}, int64[1] all = {{-1}}, int64[2] column = {{2, 1}}>
    {{ {SIZE} c = Cast <to = 6> (n)
        p = Mul (c, many)
        {WRAPPING[name]} }}"""
    model = onnx.parser.parse_model(HEADER + text)
    onnx.save(model, tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for n in (1, 7, 21474, 21475, 30000, 50000):
        x = np.zeros(n, np.float32)
        (want,) = session.run(None, {"x": x})
        (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["r"], tmp_path)
        assert got.tolist() == want.tolist(), n


REVERSED = [("3,0,-1", "1,1,-1"), ("-2,3,-1", "-2147483647,1,3"), ("-2,5,1", "-1,2,-2"), ("-2,5,1", "1,2,1")]
REVERSED += [(first, second) for first in ("0,-2,1", "0,-2,3", "3,2147483647,1", "2,5,1")
            for second in ("-1,-2147483647,-1", "-1,-2147483647,-2", "-2,-2147483647,-1", "-2147483647,-2147483647,-1", "1,-2147483647,-1", "0,2147483647,2")]  # fmt: skip


@pytest.mark.parametrize("range_", [None, [2, (1, 8, 64)]], ids=["assumed", "declared"])
@pytest.mark.parametrize("first, second", REVERSED)
def test_reversed_part_that_is_empty(tmp_path, first, second, range_):
    """Of nothing a slice from the last element to the first has nothing."""
    constants = ", ".join(
        f"int64[1] {name}{i} = {{{value}}}"
        for i, slice_ in enumerate((first, second)) for name, value in zip(("b", "e", "s"), slice_.split(","))
    )  # fmt: skip
    text = f"""(float[2,n] x) => (float[2,m] y) <int64[1] a = {{1}}, {constants}>
    {{ t = Slice (x, b0, e0, a, s0) y = Slice (t, b1, e1, a, s1) }}"""
    model = onnx.parser.parse_model(HEADER + text)
    onnx.save(model, tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine", shapes={"x": range_} if range_ else None)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for n in (1, 2, 3, 4, 5, 6, 9):
        feeds = {"x": np.arange(1, 2 * n + 1, dtype=np.float32).reshape(2, n)}
        (want,) = session.run(None, feeds)
        try:
            (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "run")
        except harness.CharoniaError as error:  # of fewer or more elements than was assumed
            assert range_ is None and re.search("must be at (least|most)", str(error))
            continue
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)
