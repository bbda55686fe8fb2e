"""Indices of GPU kernels: 64 bits for tensors of 2^31 elements and more, 32 else, and never too few.

charonia-simt runs the kernels thread by thread. Those that are compiled for large tensors run on small
ones here, since what is wrong with a width shows in the code: values of two widths that meet, truncation.
"""

from __future__ import annotations

import re

import harness
import numpy as np
import onnx
import pytest

RNG = np.random.default_rng


def build(tmp_path, text: str, shapes=None, target="sm_80", precision=None):
    graph = f'<ir_version: 9, opset_import: ["" : 18]>\nagraph ({text}'
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(onnx.parser.parse_model(graph), path)
    harness.compile_model(
        path, engine, target=target, shapes=shapes, dump=dump, precision=precision
    )
    return engine, dump


def run(tmp_path, built, inputs: dict, outputs: list[str]) -> list:
    engine, dump = built
    return harness.run_engine(engine, inputs, outputs, tmp_path / "run", device="simt", dump=dump)


def widths(dump) -> set[str]:
    texts = [path.read_text() for path in dump.glob("*-cuda-code/*/*.tile.mlir")]
    assert texts
    found = set()
    for text in texts:
        match = re.search(r"tile\.index_bits = (\d+)", text)
        found.add(match[1] if match else "32")
    return found


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


HUGE = (1, 30_000_000, 40_000_000)  # times 100 columns
WIDE = {
    # table of bytes, of which three rows are taken
    "gather": (
        """uint8[n,100] x, int64[3] i) => (uint8[3,100] y) { y = Gather <axis = 0> (x, i) }""",
        {"x": (HUGE, 100)},
        {"x": RNG(1).integers(0, 255, (77, 100)).astype(np.uint8), "i": np.array([76, -77, 5])},
        lambda f: f["x"][f["i"]],
    ),
    "scatter": (
        """float[n,100] x, int64[40,100] i, float[40,100] u) => (float[n,100] y)
        { y = ScatterElements <axis = 0, reduction = "add"> (x, i, u) }""",
        {"x": (HUGE, 100)},
        {
            "x": RNG(2).integers(0, 9, (33, 100)).astype(np.float32),
            "i": RNG(3).permuted(np.tile(np.arange(-33, 7)[:, None], 100), axis=0),
            "u": RNG(4).integers(0, 9, (40, 100)).astype(np.float32),
        },
        None,
    ),
    "softmax": (
        """float[n,100] x) => (float[n,100] y) { y = Softmax <axis = 1> (x) }""",
        {"x": (HUGE, 100)},
        {"x": RNG(5).standard_normal((67, 100)).astype(np.float32)},
        lambda f: softmax(f["x"]),
    ),
    "transpose": (
        """float[n,100] x) => (float[100,n] y) { t = Transpose (x)  y = Neg (t) }""",
        {"x": (HUGE, 100)},
        {"x": RNG(6).standard_normal((67, 100)).astype(np.float32)},
        lambda f: -f["x"].T,
    ),
    "product": (
        """float[n,4096] x, float[4096,64] w) => (float[n,64] y) { y = MatMul (x, w) }""",
        {"x": ((1, 600_000, 700_000), 4096)},
        {
            "x": RNG(7).standard_normal((70, 4096)).astype(np.float32) / 64,
            "w": RNG(8).standard_normal((4096, 64)).astype(np.float32),
        },
        lambda f: f["x"] @ f["w"],
    ),
    "conv": (
        """float[n,3,64,64] x, float[8,3,3,3] w) => (float[n,8,32,32] y)
        { y = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w) }""",
        {"x": ((1, 300_000, 400_000), 3, 64, 64)},
        {
            "x": RNG(9).standard_normal((1, 3, 64, 64)).astype(np.float32),
            "w": RNG(10).standard_normal((8, 3, 3, 3)).astype(np.float32),
        },
        None,
    ),
    "topk": (
        """float[n,100] x) => (float[n,7] y, int64[n,7] i) <int64[1] k = {7}>
        { y, i = TopK <axis = 1> (x, k) }""",
        {"x": (HUGE, 100)},
        {"x": RNG(11).standard_normal((5, 100)).astype(np.float32)},
        lambda f: -np.sort(-f["x"], axis=1)[:, :7],
    ),
    "sums": (
        """float[n,100] x) => (float[n,100] y) <int64 axis = {1}> { y = CumSum (x, axis) }""",
        {"x": (HUGE, 100)},
        {"x": RNG(12).standard_normal((5, 100)).astype(np.float32)},
        lambda f: np.cumsum(f["x"], axis=1),
    ),
}


def reference(case, model):
    text, _, feeds, formula = WIDE[case]
    if formula:
        return formula(feeds)
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["y"], feeds)[0]


@pytest.mark.parametrize("target, precision", [("sm_80", "fp32"), ("sm_90a", "fp16")])
@pytest.mark.parametrize("case", WIDE)
def test_wide_indices(tmp_path, case, target, precision):
    text, shapes, feeds, _ = WIDE[case]
    built = build(tmp_path, text, shapes, target, precision)
    assert "64" in widths(built[1])
    (got,) = run(tmp_path, built, feeds, ["y"])
    tolerance = 1e-5 if precision == "fp32" else 2e-2
    want = reference(case, tmp_path / "m.onnx")
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_narrow_indices_say_what_they_count(tmp_path):
    """Sizes of any range: 32 bits, and a shape that is too large for them is refused with the remedy."""
    text = "float[n,1] a, float[1,m] b) => (float[n,m] y) { y = Mul (a, b) }"
    built = build(tmp_path, text)
    assert widths(built[1]) == {"32"}

    def product(n, m):
        feeds = {"a": np.ones((n, 1), np.float32), "b": np.full((1, m), 2, np.float32)}
        return run(tmp_path, built, feeds, ["y"])

    np.testing.assert_array_equal(product(9, 70)[0], np.full((9, 70), 2, np.float32))
    with pytest.raises(harness.CharoniaError) as error:
        product(50000, 50000)
    assert (
        "kernel 'mul' has to tell 2500000000 elements apart at n = 50000, m = 50000 (its largest tensor is "
        "'y'), and was compiled to tell 2146435072; compile with a --shape whose optimum is that large"
    ) in str(error.value)
    # With that optimum it has other indices, and takes any size.
    wide = {"a": ((1, 50000, 100000), 1), "b": (1, (1, 50000, 100000))}
    assert widths(build(tmp_path, text, wide)[1]) == {"64"}


@pytest.mark.parametrize("fused", [False, True])
def test_sizes_as_numbers(tmp_path, fused):
    more = """c = Cast <to = 11> (q)  d = Cast <to = 11> (x)  y = Add (d, c)"""
    text = f"""float[n,3] x) => ({"double[n,3]" if fused else "int64[1]"} {"y" if fused else "q"})
        <int64 zero = {{0}}, int64[1] one = {{1}}, int64 big = {{1000000}}>
        {{ s = Shape (x)  n0 = Gather <axis = 0> (s, zero)  p = Mul (n0, big)  q = Expand (p, one)
        {more if fused else ""} }}"""
    built = build(tmp_path, text, {"x": ((1, 5000, 10000), 3)})
    for n in (5000, 7):
        x = np.ones((n, 3), np.float32)
        (got,) = run(tmp_path, built, {"x": x}, ["y" if fused else "q"])
        assert (got == n * 1000000 + (1 if fused else 0)).all()
