"""Sequences and optional values that are gone once a model is read, constants of 4 bits, and numbers that look random."""

from __future__ import annotations

import harness
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

HEADER = '<ir_version: 9, opset_import: ["" : 18]>\nagraph '


def build(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def run(model, feeds, names, folder, **options):
    onnx.save(model, folder / "m.onnx")
    harness.compile_model(folder / "m.onnx", folder / "m.engine", **options)
    return harness.run_engine(folder / "m.engine", feeds, names, folder)


SEQUENCES = {
    "construct-at": """(float[n, 3] x, float[n, 3] y) => (float[n, 3] z) <int64 last = {-1}, int64 zero = {0}> {
        s = SequenceConstruct (x, y) a = SequenceAt (s, last) b = SequenceAt (s, zero) z = Sub (a, b) }""",
    "insert": """(float[n, 3] x, float[n, 3] y) => (float[m, 3] z, int64 l) <int64 one = {1}, int64 two = {2}> {
        e = SequenceEmpty <dtype = 1> () s = SequenceInsert (e, x) t = SequenceInsert (s, y) w = Neg (x)
        u = SequenceInsert (t, w, one) v = SequenceInsert (u, y, two) d = SequenceErase (v, one)
        z = ConcatFromSequence <axis = 0> (d) l = SequenceLength (v) }""",
    "at-by-data": """(float[n, 3] x, float[n, 3] y) => (float[n, 3] z) <float big = {1000}, int64 two = {2}> {
        s = SequenceConstruct (x, y, x) m = ReduceMax <keepdims = 0> (x) g = Less (m, big) one = Cast <to = 7> (g)
        back = Sub (one, two) w = Neg (y) t = SequenceConstruct (x, w) a = SequenceAt (s, one) b = SequenceAt (t, back)
        z = Sub (a, b) }""",
    "new-axis": """(float[n, 3] x, float[n, 3] y) => (float[n, 2, 3] z) {
        s = SequenceConstruct (x, y) i = Identity (s) z = ConcatFromSequence <axis = 1, new_axis = 1> (i) }""",
    "split-each": """(float[5, 4] x) => (float[4] z) <int64 at = {3}> {
        s = SplitToSequence <keepdims = 0> (x) z = SequenceAt (s, at) }""",
    "split-chunks": """(float[n, 7] x) => (float[n, 7] z) <int64 k = {3}, int64 first = {0}, int64 last = {2}, int64 mid = {1}> {
        s = SplitToSequence <axis = 1> (x, k) a = SequenceAt (s, last) b = SequenceAt (s, mid) c = SequenceAt (s, first)
        z = Concat <axis = 1> (a, b, c) }""",
    "split-open": """(float[4, n] x) => (float[4] z, int64 l, float[4, n] w) <int64 last = {-1}> {
        s = SplitToSequence <axis = 1, keepdims = 0> (x) z = SequenceAt (s, last) l = SequenceLength (s)
        t = SplitToSequence <axis = 1> (x) w = ConcatFromSequence <axis = 1> (t) }""",
    "split-by-one": """(float[4, n] x) => (float[4] z, float[n] w, float[1, n] v, float[1, n] u) <int64 k = {1}, int64 last = {-1}, int64[4] ones = {1, 1, 1, 1}> {
        s = SplitToSequence <axis = 1, keepdims = 0> (x, k) z = SequenceAt (s, last)
        t = SplitToSequence <keepdims = 0> (x, k) w = SequenceAt (t, last)
        q = SplitToSequence <keepdims = 0> (x, ones) v = SequenceAt (q, last)
        r = SplitToSequence <keepdims = 1> (x, k) u = SequenceAt (r, last) }""",
    "loop": """(float[n] x) => (float[n] z) <int64 two = {2}, int64 last = {-1}, bool go = {1}> {
        s = SequenceConstruct (x)
        r = Loop (two, go, s) <body = b (int64 k, bool d, seq(float[n]) t) => (bool e, seq(float[n]) u) {
            e = Identity (d) y = SequenceAt (t, k) v = Add (y, x) u = SequenceInsert (t, v) }>
        z = SequenceAt (r, last) }""",
    "split-sizes": """(float[n, 7] x) => (float[n, 5] z) <int64[2] k = {2, 5}, int64 last = {-1}> {
        s = SplitToSequence <axis = -1> (x, k) z = SequenceAt (s, last) }""",
    "optional": """(float[n, 3] x) => (float[n, 3] z, bool h, bool g) {
        o = Optional (x) z = OptionalGetElement (o) h = OptionalHasElement (o) g = OptionalHasElement () }""",
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(tmp_path, name):
    model = build(SEQUENCES[name])
    rng = np.random.default_rng(1)
    shape = [d.dim_value or 2 for d in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {i.name: rng.standard_normal(shape).astype(np.float32) for i in model.graph.input}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in model.graph.output]
    for want, got in zip(session.run(names, feeds), run(model, feeds, names, tmp_path)):
        np.testing.assert_array_equal(got, want)


def test_axis_that_shape_inference_keeps(tmp_path):
    """As PyTorch's exporter writes `x.unbind(1)`: outputs are declared by onnx's inference."""
    model = build("""(float[b, n, 3] x) => (float[p, q, r] z) <int64 k = {1}, int64 at = {0}> {
        s = SplitToSequence <axis = 1, keepdims = 0> (x, k) y = SequenceAt (s, at) z = Neg (y) }""")
    x = np.random.default_rng(1).standard_normal((2, 5, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(model, {"x": x}, ["z"], tmp_path)[0], -x[:, 0])


FIRST = """<domain: "local", opset_import: ["" : 18]>
first (x) => (y) { k = Constant <value_int = 1> () at = Constant <value_int = 0> ()
    s = SplitToSequence <axis = 1, keepdims = 0> (x, k) y = SequenceAt (s, at) }"""
CALL = """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
agraph (float[b, n, 3] x) => (float[p, q, r] z, float[{dims}] w) {{ y = local.first (x) z = Neg (y) w = Exp (x) }}
"""


def test_axis_that_a_function_drops(tmp_path):
    """What inference keeps in the functions of a model is as in its graph; other outputs are what they are declared."""
    model = onnx.parser.parse_model(CALL.format(dims="b, n, 3") + FIRST)
    x = np.random.default_rng(1).standard_normal((2, 5, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(model, {"x": x}, ["z", "w"], tmp_path)[0], -x[:, 0])
    onnx.save(onnx.parser.parse_model(CALL.format(dims="b, n, 3, 1") + FIRST), tmp_path / "m.onnx")
    with pytest.raises(harness.CharoniaError, match="output 'w' is declared with 4 dimensions"):
        harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")


REFUSED = {
    "place-by-data": ("""(float[n] x, float[m] y, int64 i) => (float[k] z) { s = SequenceConstruct (x, y) z = SequenceAt (s, i) }""",
        "a place in a sequence is not supported unless it follows from constants"),
    "no-place": ("""(float[n] x) => (float[n] z) <int64 i = {2}> { s = SequenceConstruct (x, x) z = SequenceAt (s, i) }""",
        "place 2 is not in a sequence of 2 tensors"),
    "open-length": ("""(float[n] x) => (int64 z) <int64 k = {2}> { s = SplitToSequence (x, k) z = SequenceLength (s) }""",
        "a sequence of parts of n elements is not supported: how many there are has to be known"),
    "insert-open": ("""(float[n] x) => (int64 z) { s = SplitToSequence (x) t = SequenceInsert (s, x) z = SequenceLength (t) }""",
        "a sequence whose length is open is not supported here"),
    "output": ("""(float[n] x) => (seq(float[n]) z) { z = SequenceConstruct (x, x) }""",
        "output 'z' is a sequence, which is not supported as an output"),
    "loop-of-another": ("""(float[n, 3] x) => (float[m] z) <int64[1] first = {0}, bool c = {1}> {
        s = SequenceConstruct (x) t = SequenceConstruct (x) k = Shape <end = 1> (x) trips = Squeeze (k, first)
        u, v = Loop (trips, c, s, t) <body = b (int64 i, bool d, seq(float[n, 3]) p, seq(float[n, 3]) q) => (bool e, seq(float[n, 3]) r, seq(float[n, 3]) o) {
            e = Identity (d) r = SequenceInsert (p, x) o = Identity (p) }>
        z = ConcatFromSequence <axis = 0> (v) }""", "a sequence that the first step leaves as long as it is gets another length in others"),
    "loop": ("""(float[n] x, bool c) => (float[n] z) <int64 two = {2}, int64 i = {0}> {
        s = SequenceConstruct (x)
        r = Loop (two, c, s) <body = b (int64 k, bool d, seq(float[n]) t) => (bool e, seq(float[n]) u) {
            e = Identity (d) u = SequenceInsert (t, x) }>
        z = SequenceAt (r, i) }""", "data may end the loop, and how long a sequence is that it makes is not known then"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    text, message = REFUSED[name]
    onnx.save(build(text), tmp_path / "m.onnx")
    with pytest.raises(harness.CharoniaError, match=message) as error:
        harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    assert error.value.kind in ("refused", "failed")


def test_loop_that_data_ends(tmp_path):
    """Of at most five steps, as many as an input says, and while a sum is below another."""
    model = build("""(float[n, 3] x, int64 count, bool go, float limit) => (float[n, 3] y, float sum)
        <int64 five = {5}, float zero = {0}, float half = {0.5}> {
        trips = Min (count, five)
        y, sum = Loop (trips, go, x, zero) <body = step (int64 k, bool c, float[n, 3] a, float t) => (bool more, float[n, 3] b, float u) {
            f = Cast <to = 1> (k) m = Mul (a, half) b = Add (m, f)
            s = ReduceSum <keepdims = 0> (b) u = Add (t, s) more = Less (u, limit) }> }""")
    onnx.save(model, tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(2).random((2, 3), np.float32)
    for count, go, limit in ((3, True, 1e9), (9, True, 1e9), (5, True, 20.0), (5, False, 1e9), (0, True, 1e9), (-1, True, 1.0)):
        feeds = {"x": x, "count": np.int64(count), "go": np.bool_(go), "limit": np.float32(limit)}
        got = harness.run_engine(tmp_path / "m.engine", feeds, ["y", "sum"], tmp_path)
        for want, value in zip(session.run(["y", "sum"], {k: np.asarray(v) for k, v in feeds.items()}), got):
            np.testing.assert_allclose(value, want, rtol=1e-6)


@pytest.mark.parametrize("trips, message", [(8, None), (2**40, "number of steps follows from data")])
def test_loop_of_known_trips_that_data_ends(tmp_path, trips, message):
    """`for i in range(8): ...; if ...: break`."""
    model = build(f"""(float[n, 3] x, float limit) => (float[n, 3] y)
        <int64 trips = {{{trips}}}, bool go = {{1}}, float half = {{0.5}}> {{
        y = Loop (trips, go, x) <body = step (int64 k, bool c, float[n, 3] a) => (bool more, float[n, 3] b) {{
            f = Cast <to = 1> (k) m = Mul (a, half) b = Add (m, f)
            s = ReduceSum <keepdims = 0> (b) more = Less (s, limit) }}> }}""")
    onnx.save(model, tmp_path / "m.onnx")
    if message:
        with pytest.raises(harness.CharoniaError, match=message):
            harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
        return
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(2).random((2, 3), np.float32)
    for limit in (1e9, 20.0, 0.0):
        feeds = {"x": x, "limit": np.float32(limit)}
        (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path)
        np.testing.assert_allclose(got, session.run(None, {k: np.asarray(v) for k, v in feeds.items()})[0], rtol=1e-6)


def test_optional_value_that_is_not_there(tmp_path):
    nodes = [
        helper.make_node("Optional", [], ["o"], type=helper.make_tensor_type_proto(1, [2])),
        helper.make_node("OptionalGetElement", ["o"], ["z"]),
    ]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("z", 1, [2])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "m.onnx")
    with pytest.raises(harness.CharoniaError, match="the optional value has no element"):
        harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")


# --- Constants of 4 and 2 bits --------------------------------------------------


def narrow(name, kind, shape, raw, rng):
    low, high = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3)}[kind]
    values = rng.integers(low, high + 1, shape)
    code = getattr(TensorProto, kind)
    array = values.astype(getattr(ml_dtypes, kind.lower()))
    if raw:
        return onnx.numpy_helper.from_array(array, name), values
    return helper.make_tensor(name, code, shape, values.flatten()), values


@pytest.mark.parametrize("raw", (False, True), ids=("fields", "raw"))
@pytest.mark.parametrize("kind", ("INT4", "UINT4", "INT2", "UINT2"))
def test_narrow_weights(tmp_path, kind, raw):
    """A product with weights in blocks of 4, of an odd number of elements."""
    rng = np.random.default_rng(3)
    weights, w = narrow("w", kind, (12, 7), raw, rng)
    zeros, z = narrow("z", kind, (3, 7), raw, rng)
    scale = rng.uniform(0.1, 1, (3, 7)).astype(np.float32)
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("Transpose", ["t"], ["u"]),
        helper.make_node("DequantizeLinear", ["u", "s", "z"], ["d"], axis=0, block_size=4),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 12])], [helper.make_tensor_value_info("y", 1, ["n", 7])],
        [weights, zeros, onnx.numpy_helper.from_array(scale, "s")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25 if "2" in kind else 21)], ir_version=10)
    x = rng.standard_normal((5, 12)).astype(np.float32)
    (got,) = run(model, {"x": x}, ["y"], tmp_path)
    want = x @ ((w - np.repeat(z, 4, 0)) * np.repeat(scale, 4, 0))
    np.testing.assert_allclose(got, want, 1e-4, 1e-4)


@pytest.mark.parametrize("kind", ("INT4", "UINT4", "INT2", "UINT2"))
@pytest.mark.parametrize("domain", ("", "com.microsoft"))
def test_quantized_to_narrow(tmp_path, kind, domain):
    """What is quantized to 4 or 2 bits saturates there, by a zero point's type or by the type that is asked for."""
    if domain and "2" in kind:
        pytest.skip("ONNX Runtime's own has none of 2 bits")
    zero, z = narrow("z", kind, (), True, np.random.default_rng(1))
    low, high = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3)}[kind]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain=domain), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], domain=domain)]
    if not domain:
        nodes += [helper.make_node("QuantizeLinear", ["x", "s"], ["p"], output_dtype=getattr(TensorProto, kind)), helper.make_node("Cast", ["p"], ["t"], to=1)]
    outputs = ["y"] if domain else ["y", "t"]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, ["n"])], [helper.make_tensor_value_info(o, 1, ["n"]) for o in outputs],
        [zero, onnx.numpy_helper.from_array(np.float32(0.5), "s")],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17 if domain else 25), helper.make_opsetid("com.microsoft", 1)]
    x = np.linspace(-9, 9, 73, dtype=np.float32)
    got = run(helper.make_model(graph, opset_imports=imports, ir_version=10), {"x": x}, outputs, tmp_path)
    np.testing.assert_array_equal(got[0], (np.clip(np.rint(x * 2) + z, low, high) - z) * np.float32(0.5))
    if not domain:
        np.testing.assert_array_equal(got[1], np.clip(np.rint(x * 2), low, high))


def test_narrow_elsewhere(tmp_path):
    """Nothing else takes integers of 4 bits for such of 8."""
    weights, _ = narrow("w", "INT4", (5, 3), True, np.random.default_rng(0))
    graph = helper.make_graph(
        [helper.make_node("Size", ["w"], ["y"])], "g", [], [helper.make_tensor_value_info("y", 7, [])], [weights],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10), tmp_path / "m.onnx")
    with pytest.raises(harness.CharoniaError, match="elements of type int4 are not supported here"):
        harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")


@pytest.mark.parametrize("lie", ("short", "long"))
def test_narrow_lies(tmp_path, lie):
    weights, _ = narrow("w", "INT4", (5, 3), True, np.random.default_rng(0))
    weights.raw_data = weights.raw_data[:-1] if lie == "short" else weights.raw_data + b"x"
    graph = helper.make_graph(
        [helper.make_node("Cast", ["w"], ["y"], to=1)], "g", [], [helper.make_tensor_value_info("y", 1, [5, 3])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "m.onnx")
    with pytest.raises(harness.CharoniaError, match=r"holds \d bytes, but its shape and type take 8"):
        harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")


# --- Random numbers ---------------------------------------------------------------

DRAWS = {
    "RandomNormal": ("RandomNormal <shape = [100, 300], mean = 2.0, scale = 3.0, SEED> ()", 2, 9),
    "RandomUniform": ("RandomUniform <shape = [100, 300], low = -1.0, high = 5.0, SEED> ()", 2, 3),
    "RandomNormalLike": ("RandomNormalLike <SEED> (x)", 0, 1),
    "RandomUniformLike": ("RandomUniformLike <SEED> (x)", 0.5, 1 / 12),
}  # fmt: skip


def draw(name, seed, tmp_path, count=1):
    text = DRAWS[name][0].replace("SEED", f"seed = {seed}" if seed is not None else "").replace(", >", ">").replace("<>", "")
    names = [f"y{i}" for i in range(count)]
    outputs = ", ".join(f"float[n, m] {n}" for n in names)
    model = build(f"(float[n, 300] x) => ({outputs}) {{ {' '.join(f'{n} = {text}' for n in names)} }}")
    return run(model, {"x": np.zeros((100, 300), np.float32)}, names, tmp_path)


@pytest.mark.parametrize("name", DRAWS)
def test_random(tmp_path, name):
    _, mean, variance = DRAWS[name]
    first, second = draw(name, 7.0, tmp_path, count=2)
    again = draw(name, 7.0, tmp_path)[0]
    other = draw(name, 8.0, tmp_path)[0]
    np.testing.assert_array_equal(first, again)
    for values in (first, second, other):
        deviation = np.sqrt(variance / values.size)
        assert abs(values.mean() - mean) < 5 * deviation
        assert abs(values.var() / variance - 1) < 0.05
        # Neighbours, rows and columns know nothing of one another.
        for shifted in (values[:, 1:] * values[:, :-1], values[1:] * values[:-1]):
            assert abs(shifted.mean() - mean * mean) < 6 * (variance + mean * mean) / np.sqrt(values.size)
    for a, b in ((first, second), (first, other)):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.03


def test_random_numbers_cover_their_range(tmp_path):
    (values,) = draw("RandomUniform", None, tmp_path)
    counts, _ = np.histogram(values, 30, (-1, 5))
    assert values.min() >= -1 and values.max() < 5
    assert (abs(counts - 1000) < 6 * np.sqrt(1000)).all()


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_random_numbers_of_few_bits_stay_below_one(tmp_path, kind):
    """Of 24 bits some would be rounded to 1."""
    text = f"(float[n] x) => (float[300, 1000] y) {{ r = RandomUniform <shape = [300, 1000], dtype = {kind}> () y = Cast <to = 1> (r) }}"
    (values,) = run(build(text), {"x": np.zeros(1, np.float32)}, ["y"], tmp_path)
    assert values.min() == 0 and 0.99 < values.max() < 1
    assert abs(values.mean() - 0.5) < 0.005


def test_random_without_a_seed_is_told(tmp_path):
    onnx.save(build("(float[n] x) => (float[n] y) { r = RandomUniformLike (x) y = Add (x, r) }"), tmp_path / "m.onnx")
    told = harness.invoke("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.engine").stderr
    assert "draws the same numbers in each run of the engine" in told


def test_bernoulli_and_multinomial(tmp_path):
    text = """(float[n, 3] p) => (double[n, 3] b, int32[n, 40] k) {
        b = Bernoulli <dtype = 11, seed = 1.0> (p) l = Log (p) k = Multinomial <sample_size = 40, seed = 2.0> (l) }"""
    p = np.tile(np.float32([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]]), (400, 1))
    bits, kinds = run(build(text), {"p": p}, ["b", "k"], tmp_path)
    assert bits.dtype == np.float64 and kinds.dtype == np.int32
    for row in (0, 1):
        np.testing.assert_allclose(bits[row::2].mean(0), p[row], atol=0.1)
        shares = np.bincount(kinds[row::2].ravel(), minlength=3) / kinds[row::2].size
        np.testing.assert_allclose(shares, p[row], atol=0.02)
        assert not shares[p[row] == 0].any()


# --- An axis that is data ------------------------------------------------------------


@pytest.mark.parametrize("axis", (-2, -1, 0, 1))
def test_cumulative_axis_by_data(tmp_path, axis):
    model = build("(float[n, 5] x, int64 axis) => (float[n, 5] y) { y = CumSum <reverse = 1> (x, axis) }")
    x = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
    feeds = {"x": x, "axis": np.int64(axis)}
    (got,) = run(model, feeds, ["y"], tmp_path)
    (want,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)
