"""Scans, sorts and scatters of thousands of elements, against NumPy.

What ONNX Runtime leaves open is fixed here: NaN is larger than every number, zeros of
both signs are equal, of equal elements the first comes first, and updates of one place
happen in the order of the indices.
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
import scan_cases
from targets import runnable

RNG = np.random.default_rng


def run(tmp_path, text: str, inputs: dict, outputs: list[str], target: str, opset=18) -> list:
    graph = f'<ir_version: 9, opset_import: ["" : {opset}]>\nagraph ({text}'
    model = onnx.parser.parse_model(graph)
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(model, path)
    harness.compile_model(path, engine, target=target)
    return harness.run_engine(engine, inputs, outputs, tmp_path)


@pytest.fixture(params=["x86-64-v3", "x86-64-v4"])
def target(request):
    return runnable(request.param)


@pytest.mark.parametrize("shape, axis", [((64000,), 0), ((3, 5003), 1), ((1025, 67), 0)])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_long_sums(tmp_path, target, shape, axis, exclusive, reverse):
    x = RNG(1).standard_normal(shape).astype(np.float32)
    dims = ",".join(f"d{i}" for i in range(len(shape)))
    text = f"""float[{dims}] x) => (float[{dims}] y) <int64 axis = {{{axis}}}>
        {{ y = CumSum <exclusive = {exclusive}, reverse = {reverse}> (x, axis) }}"""
    (got,) = run(tmp_path, text, {"x": x}, ["y"], target)
    wide = np.flip(x, axis) if reverse else x
    want = np.cumsum(wide, axis, dtype=np.float64)
    if exclusive:
        want -= wide
    want = np.flip(want, axis) if reverse else want
    assert np.abs(got - want).max() < 2e-4 * max(1, np.abs(want).max() / 100)


def ordered(x, k: int, largest: bool):
    """Positions of the first k: by value with NaN last of all, then by position."""
    key = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    place = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    if largest:
        # ~ turns integers around without overflow.
        key = -key if x.dtype.kind == "f" else ~key
        nan = ~nan
    return np.lexsort((place, key, nan), axis=-1)[..., :k]


TYPES = {"float": np.float32, "float16": np.float16, "double": np.float64, "int32": np.int32,
         "int64": np.int64, "uint64": np.uint64}  # fmt: skip


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_sums_are_finite_where_those_from_the_front_are(tmp_path, target, across, dtype):
    x, want = scan_cases.sums(dtype)
    (got,) = run_scan(tmp_path, "CumSum", x, across, target)
    scan_cases.expect(got, want)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_products_are_those_from_the_front(tmp_path, target, across, dtype):
    x, want = scan_cases.products(dtype)
    (got,) = run_scan(tmp_path, "CumProd", x, across, target)
    scan_cases.expect(got, want)


def run_scan(tmp_path, op, x, across, target):
    """Of each row of x; `across`: where rows lie across memory."""
    kind = {"float32": "float", "float64": "double"}[x.dtype.name]
    text = f"""{kind}[a,b] x) => ({kind}[a,b] y) <int64 axis = {{{0 if across else 1}}}>
        {{ y = {op} (x, axis) }}"""
    fed = np.ascontiguousarray(x.T) if across else x
    return [r.T if across else r for r in run(tmp_path, text, {"x": fed}, ["y"], target, 26)]



@pytest.mark.parametrize("length, k", [(7, 7), (16, 3), (17, 7), (128, 128), (129, 1), (1000, 1000), (8400, 100)])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("largest", [0, 1])
def test_selection(tmp_path, length, k, kind, largest):
    rng, dtype = RNG(length), np.dtype(TYPES[kind])
    if dtype.kind == "f":
        x = np.round(rng.standard_normal((3, length)) * 50).astype(dtype) / dtype.type(8)
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan], dtype)
        hits = rng.random(x.shape) < 0.2
        x = np.where(hits, rng.choice(special, x.shape), x)
    else:
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, (3, length), dtype, endpoint=True)
        x = np.where(rng.random(x.shape) < 0.5, rng.choice(x[0, :5], x.shape), x)
    text = f"""{kind}[3,{length}] x) => ({kind}[3,{k}] v, int64[3,{k}] i) <int64[1] k = {{{k}}}>
        {{ v, i = TopK <largest = {largest}> (x, k) }}"""
    values, places = run(tmp_path, text, {"x": x}, ["v", "i"], "x86-64-v3")
    want = ordered(x, k, bool(largest))
    np.testing.assert_array_equal(places, want)
    chosen = np.take_along_axis(x, want, -1)
    np.testing.assert_array_equal(values, chosen)
    if dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(values), np.signbit(chosen))


def test_selection_of_open_length(tmp_path, target):
    text = """float[2,n] x) => (float[2,5] v, int64[2,5] i) <int64[1] k = {5}>
        { v, i = TopK (x, k) }"""
    x = RNG(3).standard_normal((2, 3001)).astype(np.float32)
    _, places = run(tmp_path, text, {"x": x}, ["v", "i"], target)
    np.testing.assert_array_equal(places, ordered(x, 5, True))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_last_update_of_a_place_stays(tmp_path, target, axis):
    rng = RNG(axis)
    x = np.zeros((40, 37), np.float32)
    shape = (500, 37) if axis == 0 else (40, 500)
    index = rng.integers(-x.shape[axis], x.shape[axis], shape)
    updates = rng.standard_normal(shape).astype(np.float32)
    u = "500,37" if axis == 0 else "40,500"
    text = f"""float[40,37] x, int64[{u}] i, float[{u}] u) => (float[40,37] y)
        {{ y = ScatterElements <axis = {axis}> (x, i, u) }}"""
    (got,) = run(tmp_path, text, {"x": x, "i": index, "u": updates}, ["y"], target)
    want = x.copy()
    for at in np.ndindex(shape):
        place = list(at)
        place[axis] = index[at]
        want[tuple(place)] = updates[at]
    np.testing.assert_array_equal(got, want)


def test_updates_outside_are_left_out(tmp_path, target):
    """As before there were many of them: nothing else is written."""
    x = np.arange(40 * 3, dtype=np.float32).reshape(40, 3)
    index = np.array([[40], [-41], [1 << 40], [7]] * 10)
    updates = np.ones((40, 3), np.float32)
    text = """float[40,3] x, int64[40,1] i, float[40,3] u) => (float[40,3] y)
        { y = ScatterND <reduction = "add"> (x, i, u) }"""
    (got,) = run(tmp_path, text, {"x": x, "i": index, "u": updates}, ["y"], target)
    x[7] += 10
    np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_terms_meet_in_f32(tmp_path, target, dtype):
    """A sum of float16 ones would stop at 2048."""
    kind = {np.float16: "float16", np.float32: "float"}[dtype]
    text = f"""{kind}[3,4] x, int64[5000,4] i, {kind}[5000,4] u) => ({kind}[3,4] y)
        {{ y = ScatterElements <reduction = "add"> (x, i, u) }}"""
    feeds = {"x": np.zeros((3, 4), dtype), "i": np.ones((5000, 4), np.int64),
             "u": np.ones((5000, 4), dtype)}  # fmt: skip
    (got,) = run(tmp_path, text, feeds, ["y"], target)
    np.testing.assert_array_equal(got, np.array([[0], [5000], [0]]) * np.ones((1, 4)))


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_nan_is_before_all_others(tmp_path, target, kind, axis, last):
    """As in NumPy and PyTorch the first NaN, or, asked for the last, the last one."""
    x = RNG(7).standard_normal((70, 67)).astype(np.float32)
    x[0] = x[:, 1] = np.nan
    x[[3, 40, 66], [20, 30, 66]] = np.nan
    text = f"""float[70,67] x) => (int64[n] y)
        {{ y = {kind} <axis = {axis}, keepdims = 0, select_last_index = {last}> (x) }}"""
    (got,) = run(tmp_path, text, {"x": x}, ["y"], target)
    best = getattr(np, kind.lower())
    want = x.shape[axis] - 1 - best(np.flip(x, axis), axis) if last else best(x, axis)
    np.testing.assert_array_equal(got, want)
