"""Products and attention of warpgroups, run thread by thread by charonia-simt."""

from __future__ import annotations

import json
import re

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from simt_orders import ORDERS, check_banks, check_finds, in_orders


def group(axis: int, tile: int, own: int) -> str:
    return f"{{dims = array<i64: {axis}>, tile = {tile} : i64, own = {own} : i64}}"


@pytest.mark.parametrize(
    "rows, columns, terms, along, tile",
    [
        # Columns and rows of a tile, of these its own, warps, stages, parts.
        pytest.param(150, 192, 320, True, (64, 128, 104, 4, 4, 1), id="104"),
        pytest.param(150, 192, 320, False, (64, 128, 104, 4, 4, 1), id="104-across"),
        pytest.param(97, 256, 448, False, (128, 64, 40, 8, 5, 2), id="40-parts"),
        pytest.param(393, 130, 200, True, (128, 256, 192, 8, 4, 1), id="192-ragged"),
        pytest.param(33, 64, 128, True, (64, 64, 0, 4, 3, 1), id="64"),
    ],
)
def test_products_with_rows_as_columns(tmp_path, rows, columns, terms, along, tile):
    """A schedule may put a product's columns on the side of 64 rows of wgmma."""
    wide, high, own, warps, stages, parts = tile
    rng = np.random.default_rng(rows)
    feeds = {
        "x": rng.standard_normal((rows, terms)).astype(np.float16),
        "w": (rng.standard_normal((columns, terms) if along else (terms, columns)) / 16).astype(np.float16),
        "r": rng.standard_normal((rows, columns)).astype(np.float16),
    }  # fmt: skip
    infos = [helper.make_tensor_value_info(k, TensorProto.FLOAT16, v.shape) for k, v in feeds.items()]
    nodes = [helper.make_node("Gemm", ["x", "w"], ["t"], transB=int(along)), helper.make_node("Add", ["t", "r"], ["y"])]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT16, [rows, columns])
    model = helper.make_model(helper.make_graph(nodes, "product", infos, [result]), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, tmp_path / "model.onnx")
    engine, dump = tmp_path / "model.engine", tmp_path / "dump"
    how = dict(target="sm_90a", precision="fp16")
    harness.compile_model(tmp_path / "model.onnx", engine, dump=tmp_path / "first", **how)
    text = next((tmp_path / "first").glob("*-kernels.mlir")).read_text()
    schedule = (
        f"{{groups = [{group(1, wide, 0)}, {group(0, high, own)}], axes = array<i64: 1, 0>, k_tile = 64 : i64, "
        f"warps = {warps} : i64, stages = {stages} : i64, splits = {parts} : i64, swap = true}}"
    )
    text, count = re.subn(r'(graph\.kernel "[^"]*"\([^)]*\))( attributes \{[^}]*\})?', rf"\1 attributes {{schedule = {schedule}}}", text)
    assert count == 1
    (tmp_path / "model.mlir").write_text(text)
    harness.compile_model(tmp_path / "model.mlir", engine, dump=dump, **how)
    (ptx,) = dump.glob("*/*/*.ptx")
    assert f"m64n{own or high}k16" in ptx.read_text()
    weights = feeds["w"].T if along else feeds["w"]
    want = feeds["x"].astype(np.float32) @ weights.astype(np.float32) + feeds["r"]
    for got in in_orders(engine, feeds, tmp_path, dump, report=tmp_path / "report.json"):
        assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()
    check_banks(json.loads((tmp_path / "report.json").read_text())["banks"])


def product(m, n, k, *, batch=(), bias=False, gelu=False, residual=False, transposed=False):
    """act(a W + b) + r and its inputs, in float32."""
    rng = np.random.default_rng(m + n + k)
    shape = (n, k) if transposed else (k, n)
    weights = {"w": (rng.standard_normal(shape) * k**-0.5).astype(np.float32)}
    inputs = {"a": rng.standard_normal((*batch, m, k)).astype(np.float32)}
    nodes = [helper.make_node("MatMul", ["a", "w"], ["t0"])]
    if transposed:
        nodes = [helper.make_node("Gemm", ["a", "w"], ["t0"], transB=1)]

    def step(op, *more):
        nodes.append(helper.make_node(op, [f"t{len(nodes) - 1}", *more], [f"t{len(nodes)}"]))

    if bias:
        weights["b"] = rng.standard_normal(n).astype(np.float32)
        step("Add", "b")
    if gelu:
        step("Gelu")
    if residual:
        inputs["r"] = rng.standard_normal((*batch, m, n)).astype(np.float32)
        step("Add", "r")
    graph = helper.make_graph(
        nodes, "product",
        [helper.make_tensor_value_info(i, TensorProto.FLOAT, x.shape) for i, x in inputs.items()],
        [helper.make_tensor_value_info(f"t{len(nodes) - 1}", TensorProto.FLOAT, [*batch, m, n])],
        [numpy_helper.from_array(x, i) for i, x in weights.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), inputs


@pytest.mark.parametrize(
    "precision, size, form",
    [
        ("fp16", (513, 130, 129), dict(bias=True, gelu=True)),
        ("bf16", (385, 328, 320), dict(bias=True, gelu=True, residual=True)),
        ("fp16", (100, 264, 65), dict(batch=(5,), residual=True)),
        ("fp16", (127, 1030, 64), dict(bias=True)),
        ("tf32", (1030, 261, 132), dict(transposed=True, bias=True, gelu=True)),
        ("tf32", (1025, 391, 64), dict(transposed=True, residual=True)),
    ],
)
def test_products_of_warpgroups(tmp_path, precision, size, form):
    """Fused contractions of sm_90a: right and in order, whatever order that is."""
    model, inputs = product(*size, **form)
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    path.write_bytes(model.SerializeToString())
    output = model.graph.output[0].name
    harness.compile_model(path, engine, target="sm_90a", precision=precision, dump=dump)
    code = "".join(p.read_text() for p in dump.glob("*-cuda-code/*/*-thread.mlir"))
    assert "nvvm.wgmma.mma_async" in code
    (want,) = ReferenceEvaluator(model).run(None, inputs)
    results = []
    for got in in_orders(engine, inputs, tmp_path, dump, output=output):
        error = np.abs(got - want).max() / np.abs(want).max()
        assert error <= {"fp16": 1e-2, "bf16": 3e-2, "tf32": 2e-3}[precision]
        results.append(got)
    assert all(np.array_equal(results[0], r) for r in results)


@pytest.mark.parametrize(
    "columns, rows, rest, axis",
    [
        ("tile = 64", "tile = 64", "warps = 4 : i64, splits = 2 : i64", 1),
        ("tile = 64", "tile = 16", "warps = 4 : i64, splits = 8 : i64", 1),
        ("tile = 128", "tile = 128", "warps = 8 : i64, splits = 4 : i64, swap = true", 1),
        # Widths that are no power of two are not shared out, and warps have the rows.
        ("tile = 128 : i64, own = 96", "tile = 64", "warps = 4 : i64, splits = 2 : i64", 0),
        ("tile = 128", "tile = 128 : i64, own = 104", "warps = 8 : i64, splits = 4 : i64, swap = true", 0),
    ],
)  # fmt: skip
def test_parts_of_a_cluster(tmp_path, columns, rows, rest, axis):
    """Parts of a sum that each store their share of a tile."""
    model, inputs = product(150, 192, 640, bias=True, gelu=True, residual=True)
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    path.write_bytes(model.SerializeToString())
    harness.compile_model(path, engine, target="sm_90a", precision="fp16", dump=dump)
    (stage,) = dump.glob("*-kernels.mlir")
    schedule = (
        f"groups = [{{dims = array<i64: 1>, {columns} : i64}}, {{dims = array<i64: 0>, {rows} : i64}}],"
        f" axes = array<i64: 1, 0>, k_tile = 64 : i64, stages = 4 : i64, {rest}"
    )
    text, count = re.subn(
        r'(graph.kernel "[^"]*"\([^)]*\))( :.*-> tensor<150x192xf)',
        rf"\1 attributes {{schedule = {{{schedule}}}}}\2", stage.read_text(), count=1,
    )  # fmt: skip
    assert count == 1
    stage.write_text(text)
    again = tmp_path / "again"
    harness.compile_model(stage, engine, target="sm_90a", precision="fp16", dump=again)
    code = "".join(p.read_text() for p in again.glob("*-cuda-code/*/*.mlir"))
    assert f"shared_axis = {axis} : i64" in code and "tile.cluster = " in code
    (want,) = ReferenceEvaluator(model).run(None, inputs)
    results = []
    for got in in_orders(engine, inputs, tmp_path, again, output=model.graph.output[0].name):
        assert np.abs(got - want).max() <= 1e-2 * np.abs(want).max()
        results.append(got)
    assert all(np.array_equal(results[0], r) for r in results)


def attention(folder, b, heads, groups, s, t, d, causal):
    """fp16 attention at sm_90a: the engine, its dump, inputs, and the result in float64."""
    rng = np.random.default_rng(s + t + d)
    shapes = {"q": (b, heads, s, d), "k": (b, groups, t, d), "v": (b, groups, t, d)}
    feeds = {n: rng.standard_normal(x).astype(np.float16) for n, x in shapes.items()}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, x) for n, x in shapes.items()]
    graph = helper.make_graph(
        [helper.make_node("Attention", list(shapes), ["y"], is_causal=int(causal))],
        "attention", infos,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, shapes["q"])],
    )  # fmt: skip
    model = helper.make_model(
        graph, ir_version=11, opset_imports=[helper.make_opsetid("", 23)]
    )
    path, engine, dump = folder / "model.onnx", folder / "model.engine", folder / "dump"
    path.write_bytes(model.SerializeToString())
    harness.compile_model(path, engine, target="sm_90a", precision="fp16", dump=dump)
    q, k, v = (x.astype(np.float64) for x in feeds.values())
    k, v = (np.repeat(x, heads // groups, 1) for x in (k, v))
    scores = q @ np.swapaxes(k, 2, 3) / np.sqrt(d)
    if causal:
        scores = np.where(np.tri(s, t, dtype=bool), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return engine, dump, feeds, e / e.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(
    "b, heads, groups, s, t, d, causal",
    [
        (1, 2, 2, 300, 300, 64, False),  # steps of 128 keys, tiles of 64 rows
        (1, 2, 1, 300, 300, 64, True),
        (1, 1, 1, 129, 577, 64, False),
        (1, 1, 1, 65, 257, 128, False),  # steps of 64 keys
        (1, 1, 1, 257, 257, 80, True),
        (1, 1, 1, 260, 260, 256, True),
        (2, 67, 67, 65, 65, 128, True),  # tiles of 128 rows
        (1, 1, 1, 63, 320, 96, False),
    ],
)  # fmt: skip
def test_attention_of_warpgroups(tmp_path, b, heads, groups, s, t, d, causal):
    """Probabilities go from one product's registers to the next."""
    engine, dump, feeds, want = attention(tmp_path, b, heads, groups, s, t, d, causal)
    (code,) = dump.glob("*-cuda-code/*/*-thread.mlir")
    assert "wgmma.mma_async.sync.aligned.m64n" in code.read_text()  # registers by shared
    assert "nvvm.wgmma.mma_async" in code.read_text()
    for order in ORDERS[: 1 if heads > 8 else None]:
        (got,) = harness.run_engine(
            engine, feeds, ["y"], tmp_path / "run", device="simt", dump=dump,
            extra=["--seed", str(order[0]), "--copies", order[1]],
        )  # fmt: skip
        assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()


@pytest.mark.parametrize(
    "pattern, text, finding",
    [
        (r"wgmma\.wait_group\.sync\.aligned 0", "wgmma.wait_group.sync.aligned 1", "race"),
        (r"nvvm\.wgmma\.fence\.aligned\n", "\n", "missing fence"),
        (r"nvvm\.fence\.proxy .*\n", "\n", "missing fence"),
        (r"nvvm\.barrier0\n", "\n", "race"),
        (r"nvvm\.cp\.async\.wait\.group \d+\n", "\n", "unfinished copy"),
    ],
)  # fmt: skip
def test_what_orders_its_products_is_missed(tmp_path, pattern, text, finding):
    engine, dump, feeds, _ = attention(tmp_path, 1, 1, 1, 300, 300, 60, False)
    run = lambda: harness.run_engine(engine, feeds, ["y"], tmp_path / "run", device="simt", dump=dump)
    check_finds(dump, pattern, text, finding, run)
