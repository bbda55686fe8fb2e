"""Scatters, sorts and scans on a GPU, run thread by thread by charonia-simt, against NumPy.

charonia-simt takes warps in several orders and reports races, so updates that met without an atomic
operation, or a sort without a barrier, show whatever the values are.
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
import scan_cases

RNG = np.random.default_rng
ORDERS = [(0, "late"), (1, "seeded")]


def build(tmp_path, text: str, shapes=None, target="sm_80", opset=18):
    graph = f'<ir_version: 9, opset_import: ["" : {opset}]>\nagraph ({text}'
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(onnx.parser.parse_model(graph), path)
    harness.compile_model(path, engine, target=target, shapes=shapes, dump=dump)
    return engine, dump


def run(tmp_path, built, inputs: dict, outputs: list[str], order=ORDERS[0]) -> list:
    engine, dump = built
    extra = ["--seed", str(order[0]), "--copies", order[1]]
    return harness.run_engine(
        engine, inputs, outputs, tmp_path / "run", device="simt", dump=dump, extra=extra
    )


def reduced(kind, a, b):
    return {"none": b, "add": a + b, "mul": a * b, "max": np.maximum(a, b),
            "min": np.minimum(a, b)}[kind]  # fmt: skip


def scattered(x, index, updates, axis, kind):
    """In float64 for floats; indices outside are left out."""
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x.copy()
    size = x.shape[axis]
    with np.errstate(over="ignore", invalid="ignore"):
        for at in np.ndindex(index.shape):
            i = int(index[at])
            i += size if i < 0 else 0
            if 0 <= i < size:
                place = at[:axis] + (i,) + at[axis + 1 :]
                wide[place] = reduced(kind, wide[place], updates[at].astype(wide.dtype))
    return wide


TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "int32": np.int32,
         "int64": np.int64, "uint8": np.uint8, "uint32": np.uint32}  # fmt: skip


@pytest.mark.parametrize("kind", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", TYPES)
def test_updates_that_meet(tmp_path, kind, dtype):
    """Odd sizes, many updates of one place, negative indices and such as lie outside."""
    rng = RNG(len(kind) + len(dtype))
    x = rng.integers(1, 4, (13, 7)).astype(TYPES[dtype])
    index = rng.integers(-13, 13, (37, 5))
    index[::9, 0] = [13, -14, (1 << 32) + 5, -(1 << 32) + 2, 1 << 62]
    updates = rng.integers(1, 3, index.shape).astype(TYPES[dtype])
    if x.dtype.kind != "u":
        updates -= 2 * (rng.random(index.shape) < 0.3).astype(updates.dtype)
    text = f"""{dtype}[13,7] x, int64[37,5] i, {dtype}[37,5] u) => ({dtype}[13,7] y)
        {{ y = ScatterElements <axis = 0, reduction = "{kind}"> (x, i, u) }}"""
    built = build(tmp_path, text)
    want = scattered(x, index, updates, 0, kind)
    for order in ORDERS:
        feeds = {"x": x, "i": index, "u": updates}
        (got,) = run(tmp_path, built, feeds, ["y"], order)
        # Small whole numbers: exact in any order.
        np.testing.assert_array_equal(got, want.astype(x.dtype))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float", "float16", "uint8", "bool", "int64"])
def test_replaced(tmp_path, axis, dtype):
    """Each place once, in fewer lines than the input has."""
    rng = RNG(axis)
    shape, lines = (9, 10, 11), (7, 8, 9)
    dims = lambda s: ",".join(map(str, s))  # noqa: E731
    kind = bool if dtype == "bool" else TYPES[dtype]
    x = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(kind)
    updates = rng.integers(0, 2 if dtype == "bool" else 100, lines).astype(kind)
    order = np.argsort(rng.random((*lines[:axis], shape[axis], *lines[axis + 1 :])), axis)
    index = np.take(order, np.arange(lines[axis]), axis)
    index = np.where(rng.random(lines) < 0.5, index, index - shape[axis])
    text = f"""{dtype}[{dims(shape)}] x, int64[{dims(lines)}] i, {dtype}[{dims(lines)}] u)
        => ({dtype}[{dims(shape)}] y) {{ y = ScatterElements <axis = {axis}> (x, i, u) }}"""
    feeds = {"x": x, "i": index, "u": updates}
    (got,) = run(tmp_path, build(tmp_path, text), feeds, ["y"])
    np.testing.assert_array_equal(got, scattered(x, index, updates, axis, "none"))


def test_one_of_several_replaces(tmp_path):
    """ONNX leaves open which; it is one of them, whole, and no race."""
    index = np.repeat(np.arange(10), 30).reshape(300, 1)
    updates = np.arange(300, dtype=np.float32)
    text = """float[10] x, int64[300,1] i, float[300] u) => (float[10] y)
        { y = ScatterND (x, i, u) }"""
    feeds = {"x": np.zeros(10, np.float32), "i": index, "u": updates}
    (got,) = run(tmp_path, build(tmp_path, text), feeds, ["y"])
    np.testing.assert_array_equal(got // 30, np.arange(10))


@pytest.mark.parametrize("kind", ["add", "max"])
def test_slices(tmp_path, kind):
    """Slices by tuples, of which some meet; what feeds and what follows is fused."""
    rng = RNG(3)
    x = rng.integers(-50, 50, (6, 5, 33)).astype(np.float32)
    index = np.stack([rng.integers(-6, 6, (4, 9)), rng.integers(-5, 5, (4, 9))], -1)
    updates = rng.integers(-50, 50, (4, 9, 33)).astype(np.float32)
    text = f"""float[6,5,33] x, int64[4,9,2] i, float[4,9,33] u) => (float[6,5,33] y, float[6,5,33] z)
        {{ a = Neg(x) b = Neg(u) y = ScatterND <reduction = "{kind}"> (a, i, b) z = Add(y, a) }}"""
    want = -x.astype(np.float64)
    for at in np.ndindex(4, 9):
        place = tuple(index[at])
        want[place] = reduced(kind, want[place], -updates[at])
    feeds = {"x": x, "i": index, "u": updates}
    y, z = run(tmp_path, build(tmp_path, text), feeds, ["y", "z"])
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(z, want - x)


def test_a_chain_and_a_second_reader(tmp_path):
    """Scatters into scatters; an input that others read as well is left as it is."""
    rng = RNG(4)
    x = rng.integers(-9, 9, (20, 3)).astype(np.float32)
    i, j = rng.integers(0, 20, (2, 40, 3))
    u = rng.integers(-9, 9, (40, 3)).astype(np.float32)
    text = """float[20,3] x, int64[40,3] i, int64[40,3] j, float[40,3] u) => (float[20,3] a, float[20,3] y, float[20,3] z)
        { a = Abs(x)
          b = ScatterElements <reduction = "add"> (a, i, u)
          y = ScatterElements <reduction = "add"> (b, j, u)
          z = ScatterElements <reduction = "max"> (a, j, u) }"""
    a = np.abs(x)
    y = scattered(scattered(a, i, u, 0, "add").astype(np.float32), j, u, 0, "add")
    z = scattered(a, j, u, 0, "max")
    feeds = {"x": x, "i": i, "j": j, "u": u}
    got = run(tmp_path, build(tmp_path, text), feeds, ["a", "y", "z"])
    for value, want in zip(got, [a, y, z]):
        np.testing.assert_array_equal(value, want)


def test_small_floats_meet_in_wide_ones(tmp_path):
    """5000 ones: a sum of float16 would stop at 2048."""
    text = """float16[3,4] x, int64[5000,4] i, float16[5000,4] u) => (float16[3,4] y)
        { y = ScatterElements <reduction = "add"> (x, i, u) }"""
    feeds = {"x": np.zeros((3, 4), np.float16), "i": np.ones((5000, 4), np.int64),
             "u": np.ones((5000, 4), np.float16)}  # fmt: skip
    (got,) = run(tmp_path, build(tmp_path, text), feeds, ["y"])
    np.testing.assert_array_equal(got, np.array([[0], [5000], [0]]) * np.ones((1, 4)))


def test_open_sizes(tmp_path):
    text = """float[n,m] x, int64[k,m] i, float[k,m] u) => (float[n,m] y)
        { y = ScatterElements <reduction = "add"> (x, i, u) }"""
    built = build(tmp_path, text)
    for n, m, k in [(5, 3, 300), (100, 1, 1), (1, 70, 20)]:
        rng = RNG(n)
        x = rng.integers(-9, 9, (n, m)).astype(np.float32)
        i = rng.integers(-n, n, (k, m))
        u = rng.integers(-9, 9, (k, m)).astype(np.float32)
        (got,) = run(tmp_path, built, {"x": x, "i": i, "u": u}, ["y"])
        np.testing.assert_array_equal(got, scattered(x, i, u, 0, "add"))


@pytest.mark.parametrize("change", [("llvm.atomicrmw fadd", None), ("monotonic", "")], ids=["add", "replace"])
def test_updates_that_are_not_atomic_are_told(tmp_path, change):
    """The same kernel with plain stores: a race."""
    kind = "add" if change[1] is None else "none"
    text = f"""float[4] x, int64[64,1] i, float[64] u) => (float[4] y)
        {{ y = ScatterND <reduction = "{kind}"> (x, i, u) }}"""
    built = build(tmp_path, text)
    changed = 0
    for kernel in built[1].glob("*-cuda-code/*scatter*/*-thread.mlir"):
        lines = []
        for line in kernel.read_text().splitlines():
            words = line.split()
            if kind == "add" and "llvm.atomicrmw fadd" in line:
                pointer, value = words[4].rstrip(","), words[5]
                line = f"llvm.store {value}, {pointer} {{alignment = 4 : i64}} : f32, !llvm.ptr<1>"
                changed += 1
            elif kind == "none" and "atomic" in line and "llvm.store" in line:
                line = line.replace('atomic syncscope("device") monotonic', "")
                changed += 1
            lines.append(line)
        kernel.write_text("\n".join(lines))
    assert changed
    feeds = {"x": np.zeros(4, np.float32), "i": np.arange(64).reshape(64, 1) % 4,
             "u": np.arange(64, dtype=np.float32)}  # fmt: skip
    with pytest.raises(harness.CharoniaError) as caught:
        run(tmp_path, built, feeds, ["y"])
    assert "race: llvm.store" in caught.value.result.stderr


def positions(x, k: int, largest: bool):
    """Of the first k: NaN is larger than all others; of equal ones the first comes first."""
    nan = np.isnan(x)
    key = np.where(nan, 0, -x if largest else x)
    place = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    return np.lexsort((place, key, ~nan if largest else nan), axis=-1)[..., :k]


# Short rows, one of several parts, parts of parts (more survivors than a part has), all of a row.
@pytest.mark.parametrize("rows, length, k, largest",
                         [(5, 17, 3, 1), (3, 128, 128, 0), (2, 129, 1, 1), (2, 1000, 1000, 0),
                          (1, 8400, 100, 1), (2, 5003, 7, 0), (1, 21000, 500, 1), (1, 4500, 4500, 0),
                          # What is sorted at once, and one more; the most of small parts and of large ones.
                          (2, 4096, 512, 1), (2, 4097, 512, 0), (1, 4097, 513, 1), (1, 9000, 2048, 0),
                          (1, 9000, 2049, 1),
                          # By groups: the last of them whole or not, and of so many that they have groups.
                          (1, 8192, 16, 0), (2, 5003, 50, 1), (1, 100003, 100, 1)])  # fmt: skip
def test_selection(tmp_path, rows, length, k, largest):
    rng = RNG(length)
    x = np.round(rng.standard_normal((rows, length)) * 50).astype(np.float32) / 8
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    x = np.where(rng.random(x.shape) < 0.1, rng.choice(special, x.shape), x)
    text = f"""float[{rows},{length}] x) => (float[{rows},{k}] v, int64[{rows},{k}] i) <int64[1] k = {{{k}}}>
        {{ v, i = TopK <largest = {largest}> (x, k) }}"""
    built = build(tmp_path, text)
    want = positions(x, k, bool(largest))
    for order in ORDERS:
        values, places = run(tmp_path, built, {"x": x}, ["v", "i"], order)
        np.testing.assert_array_equal(places, want)
        np.testing.assert_array_equal(values, np.take_along_axis(x, want, -1))


def test_selection_of_open_length(tmp_path):
    text = """float[2,n] x) => (float[2,5] v, int64[2,5] i) <int64[1] k = {5}>
        { v, i = TopK (x, k) }"""
    built = build(tmp_path, text, shapes={"x": (2, (5, 9000, 20000))})
    for n in [5, 2048, 2049, 9000]:
        x = RNG(n).standard_normal((2, n)).astype(np.float32)
        _, places = run(tmp_path, built, {"x": x}, ["v", "i"])
        np.testing.assert_array_equal(places, positions(x, 5, True))


def test_a_sort_without_a_barrier_is_told(tmp_path):
    text = """float[1,300] x) => (float[1,300] v, int64[1,300] i) <int64[1] k = {300}>
        { v, i = TopK (x, k) }"""
    built = build(tmp_path, text)
    changed = 0
    for kernel in built[1].glob("*-cuda-code/*sort*/*-thread.mlir"):
        head, *rest = kernel.read_text().split("nvvm.barrier0\n")
        changed += len(rest)
        kernel.write_text(head + "nvvm.barrier0\n" + "".join(rest))
    assert changed
    x = RNG(1).standard_normal((1, 300)).astype(np.float32)
    with pytest.raises(harness.CharoniaError) as caught:
        run(tmp_path, built, {"x": x}, ["v", "i"])
    assert "race: llvm." in caught.value.result.stderr


@pytest.mark.parametrize("shape, axis", [((64000,), 0), ((3, 8193), 1), ((9000, 2), 0), ((5, 130), 1), ((2, 300, 9), 1)])
@pytest.mark.parametrize("flags", ["", "reverse = 1", "exclusive = 1", "exclusive = 1, reverse = 1"])
def test_sums(tmp_path, shape, axis, flags):
    x = RNG(axis).integers(-9, 9, shape).astype(np.float32)
    dims = ",".join(map(str, shape))
    attributes = f"<{flags}>" if flags else ""
    text = f"""float[{dims}] x) => (float[{dims}] y) <int64 axis = {{{axis}}}>
        {{ y = CumSum {attributes} (x, axis) }}"""
    (got,) = run(tmp_path, build(tmp_path, text), {"x": x}, ["y"])
    wide = np.flip(x, axis) if "reverse" in flags else x
    want = np.cumsum(wide, axis, dtype=np.float64)
    if "exclusive" in flags:
        want -= wide
    # Whole numbers below 2^24: exact.
    np.testing.assert_array_equal(got, np.flip(want, axis) if "reverse" in flags else want)


# sm_87 has 16 multiprocessors: rows, and columns of 256 side by side, are walked from there on.
@pytest.mark.parametrize("shape, axis, parts",
                         [((15, 8192), 1, True), ((16, 8192), 1, False), ((1, 8191), 1, False),
                          ((8193, 3), 0, True), ((5, 8192, 257), 1, True)])  # fmt: skip
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_as_many_rows_as_a_chip_has_room_for(tmp_path, shape, axis, parts, op):
    x = RNG(len(shape)).integers(-9, 9, shape).astype(np.int32)
    x[RNG(1).random(shape) < 0.5] = 1
    dims = ",".join(map(str, shape))
    text = f"""int32[{dims}] x) => (int32[{dims}] y) <int64 axis = {{{axis}}}>
        {{ y = {op} (x, axis) }}"""
    built = build(tmp_path, text, target="sm_87", opset=26)
    staged = harness.invoke(
        "compile", tmp_path / "m.onnx", "--target", "sm_87", "--stop-after", "kernels"
    ).stdout
    assert (staged.count("= graph.reduce "), staged.count("= graph.scan ")) == (parts, 1), staged
    if x.size > 200_000:
        return
    (got,) = run(tmp_path, built, {"x": x}, ["y"])
    want = (np.cumsum if op == "CumSum" else np.cumprod)(x, axis, dtype=np.int32)
    np.testing.assert_array_equal(got, want)


def test_the_largest_chip_says_how_many_rows_are_many(tmp_path):
    """One staged graph for all chips of an engine: 20 rows are many for 16 multiprocessors, not for 108."""
    text = "float[20,8192] x) => (float[20,8192] y) <int64 axis = {1}> { y = CumSum (x, axis) }"
    build(tmp_path, text, target="sm_87")
    counts = []
    for target in ("sm_87", "sm_80", "sm_87,sm_80"):
        staged = harness.invoke(
            "compile", tmp_path / "m.onnx", "--target", target, "--stop-after", "kernels"
        ).stdout
        counts.append(staged.count("= graph.reduce "))
    assert counts == [0, 1, 1]


def test_sums_of_open_length(tmp_path):
    text = """float[n] x) => (float[n] y) <int64 axis = {0}> { y = CumSum (x, axis) }"""
    built = build(tmp_path, text, shapes={"x": ((1, 20000, 50000),)})
    for n in [1, 1024, 1025, 20000]:
        x = RNG(n).integers(-9, 9, n).astype(np.float32)
        (got,) = run(tmp_path, built, {"x": x}, ["y"])
        np.testing.assert_array_equal(got, np.cumsum(x, dtype=np.float64))


@pytest.mark.parametrize("length", [40, 3000, 20000])
def test_products_are_those_from_the_front(tmp_path, length):
    """Whether a row is short, long, or one that sums would cut in parts."""
    names = [name for name in scan_cases.PRODUCTS if length > 40 or name != "halves"]
    x, want = scan_cases.products("float", length, names)
    text = "float[a,b] x) => (float[a,b] y) <int64 axis = {1}> { y = CumProd (x, axis) }"
    built = build(tmp_path, text, {"x": x.shape}, opset=26)
    (got,) = run(tmp_path, built, {"x": x}, ["y"])
    scan_cases.expect(got, want)


@pytest.mark.parametrize("length", [40, 20000])
def test_sums_that_are_not_finite(tmp_path, length):
    """Such as no neighbours overflow in: the rest is left open on a GPU."""
    names = ["nan", "infinity", "both-infinities", "overflow"]
    x, want = scan_cases.sums("float", length, names)
    text = "float[a,b] x) => (float[a,b] y) <int64 axis = {1}> { y = CumSum (x, axis) }"
    built = build(tmp_path, text, {"x": x.shape}, opset=26)
    (got,) = run(tmp_path, built, {"x": x}, ["y"])
    scan_cases.expect(got, want)



@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_nan_comes_first(tmp_path, kind):
    x = RNG(7).standard_normal((4, 300)).astype(np.float32)
    x[0] = np.nan
    x[1, [17, 200]] = np.nan
    x[2, 299] = np.nan
    text = f"""float[4,300] x) => (int64[4] y) {{ y = {kind} <axis = 1, keepdims = 0> (x) }}"""
    (got,) = run(tmp_path, build(tmp_path, text), {"x": x}, ["y"])
    np.testing.assert_array_equal(got, getattr(np, kind.lower())(x, 1))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype, shape, axis", [("float", (2, 50257), 1), ("float16", (40000,), 0), ("uint32", (3, 40000), 1),
                         ("float", (2, 21, 600), 1), ("int64", (1, 40000), 1)])  # fmt: skip
def test_best_places(tmp_path, kind, last, dtype, shape, axis):
    """Equal elements, a row of nothing but the worst, the first or last of several NaN."""
    x = RNG(len(shape)).integers(0, 50, shape).astype(TYPES[dtype])
    if x.dtype.kind == "f":
        flat = x.reshape(shape[0], -1) if axis else x[None]
        flat[0] = -np.inf if kind == "ArgMax" else np.inf
        flat[-1, [77, 9000]] = np.nan
    dims = ",".join(map(str, shape))
    text = f"""{dtype}[{dims}] x) => (int64[{",".join(map(str, shape[:axis] + shape[axis + 1 :]))}] y)
        {{ y = {kind} <axis = {axis}, keepdims = 0, select_last_index = {last}> (x) }}"""
    (got,) = run(tmp_path, build(tmp_path, text), {"x": x}, ["y"])
    best = getattr(np, kind.lower())
    want = x.shape[axis] - 1 - best(np.flip(x, axis), axis) if last else best(x, axis)
    np.testing.assert_array_equal(got, want)
