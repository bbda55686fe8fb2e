"""The GPU kernels of the compact models, run thread by thread by charonia-simt."""

from __future__ import annotations

import json
import re

import cliffs_test
import compact_test
import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from simt_orders import ORDERS, in_orders

# Of the largest value of the reference output, which is of fp32.
LIMITS = {"fp32": 1e-4, "fp16": 1e-2}


def compile_for_gpu(folder, name, precision, found, extra=()):
    engine, dump = folder / f"{name}.engine", folder / "dump"
    harness.compile_model(
        compact_test.FOLDER / f"{name}.onnx", engine, target="sm_90",
        precision=precision, shapes=compact_test.ranges(found), dump=dump, extra=extra,
    )  # fmt: skip
    return engine, dump


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("name", compact_test.NAMES)
def test_compact_model(tmp_path, name, precision):
    """Right results and no finding, and the same results in every order."""
    found = compact_test.cases(name)
    engine, dump = compile_for_gpu(tmp_path, name, precision, found)
    smallest = sorted(found, key=lambda c: sum(v.size for v in found[c][0].values()))
    runs = [(smallest[0], order) for order in ORDERS]
    runs += [(case, ORDERS[1]) for case in smallest[1:2]]
    results = {}
    for case, (seed, copies) in runs:
        inputs, outputs = found[case]
        report = tmp_path / "report.json"
        got = harness.run_engine(
            engine, inputs, list(outputs), tmp_path / "run", device="simt", dump=dump,
            extra=["--seed", str(seed), "--copies", copies, "--report", report],
        )  # fmt: skip
        for (output, want), value in zip(outputs.items(), got):
            assert value.shape == want.shape and value.dtype == want.dtype
            error = np.abs(value - want).max() / np.abs(want).max()
            assert error <= LIMITS[precision], f"{case} {output}: {error:.2e}"
            # The order of sums is defined, so it does not depend on who comes first.
            first = results.setdefault((case, output), value)
            assert np.array_equal(first, value), f"{case} {output}: order matters"
        check_banks(json.loads(report.read_text())["banks"])


@pytest.mark.parametrize("name", ["96-8-14", "60-6-15-open", "softmax"])
def test_rows_that_tiles_overhang(tmp_path, name):
    """What a tile has past the end of its row is thrown away."""
    m, output = cliffs_test.overhanging(name)
    proto, path = m.proto(output), tmp_path / "model.onnx"
    onnx.save(proto, path)
    engine, dump = tmp_path / "model.engine", tmp_path / "dump"
    harness.compile_model(path, engine, target="sm_80", dump=dump)
    value = harness.run_engine(engine, m.feeds, [output], tmp_path / "run", device="simt", dump=dump)[0]
    want = cliffs_test.in_float64(proto, m.feeds)
    assert np.abs(value - want).max() <= 1e-5 * np.abs(want).max()


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


def check_banks(banks) -> None:
    """Swizzles promise that rows of ldmatrix and copies never meet in a bank."""
    for access in banks:
        if access["operation"].startswith(("nvvm.ldmatrix", "nvvm.cp.async")):
            text = f"{access['kernel']}: {access['operation']}"
            assert access["maximum"] == 1, f"{text}: {access['maximum']} ways"


def test_findings_are_told(tmp_path):
    """A kernel without its barriers: the program says what is wrong, and fails."""
    found = compact_test.cases("vit")
    engine, dump = compile_for_gpu(tmp_path, "vit", "fp16", found)
    changed = 0
    for kernel in dump.glob("*-cuda-code/*/*attention*-thread.mlir"):
        text = kernel.read_text()
        changed += text.count("nvvm.barrier0")
        kernel.write_text(text.replace("nvvm.barrier0", ""))
    assert changed
    inputs, outputs = next(iter(found.values()))
    with pytest.raises(harness.CharoniaError) as caught:
        harness.run_engine(
            engine, inputs, list(outputs), tmp_path / "run", device="simt", dump=dump
        )
    stderr = caught.value.result.stderr
    assert "error: attention: race: nvvm.ldmatrix at sm_90.attention" in stderr
    assert caught.value.result.code == 1


WAIT = r"nvvm\.griddepcontrol +wait\n"


def wait_later(text: str) -> str:
    """Behind the access to a buffer that follows."""
    access = r"llvm\.(?:load|store) .*ptr<1>|(?:ld|st)\.global|cp\.async\.shared"
    return re.sub(rf"( *{WAIT})((?:.*\n)*?)(.*(?:{access}).*\n)", r"\2\3\1", text, count=1)


@pytest.mark.parametrize(
    "change, found_there",
    [(lambda text: re.sub(WAIT, "", text), {"early access", "never waited", "early start"}),
     (wait_later, {"early access"})],
    ids=["never", "late"],
)  # fmt: skip
def test_kernels_that_overtake_are_told(tmp_path, change, found_there):
    """Each kernel waits where it must, and not a load later (those of waves, which wait at their ends, apart)."""
    found = compact_test.cases("bert")
    engine, dump = compile_for_gpu(tmp_path, "bert", "fp16", found, ["--no-waves"])
    kernels = list(dump.glob("*-cuda-code/*/*-thread.mlir"))
    for kernel in kernels:
        text = kernel.read_text()
        assert len(re.findall(WAIT, text)) == 1
        kernel.write_text(change(text))
        assert kernel.read_text() != text
    report = tmp_path / "report.json"
    result = invoke_simt(engine, dump, "--report", report)
    assert result.code == 1, result.stderr
    findings = json.loads(report.read_text())["findings"]
    assert {f["kind"] for f in findings} == found_there
    names = {k.parent.name.split("-", 1)[1].replace(".", "_") for k in kernels}
    early = {f["kernel"] for f in findings if f["kind"] == "early access"}
    assert len(early) == len(names), names - early


def compile_nodes(folder, nodes, inputs, outputs, *, targets=("sm_90",)):
    """A model of [8] of the given types: its engine and its dump."""

    def infos(values):
        return [helper.make_tensor_value_info(n, t, [8]) for n, t in values.items()]

    graph = helper.make_graph(nodes, "small", infos(inputs), infos(outputs))
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    engine, dump = folder / "model.engine", folder / "dump"
    harness.compile_model(path, engine, target=",".join(targets), dump=dump)
    return engine, dump


def one_node(folder, **options):
    node = helper.make_node("Exp", ["x"], ["y"])
    kind = TensorProto.FLOAT
    return compile_nodes(folder, [node], {"x": kind}, {"y": kind}, **options)


def invoke_simt(engine, dump, *extra) -> harness.Result:
    return harness.invoke(
        engine, "--dump-dir", dump, *extra, program="charonia-simt", timeout=120
    )


def test_outputs_that_would_share_a_file(tmp_path):
    nodes = [helper.make_node(o, ["x"], [n]) for o, n in (("Neg", "a/b"), ("Abs", "a_b"))]
    kinds = dict.fromkeys(("a/b", "a_b"), TensorProto.FLOAT)
    engine, dump = compile_nodes(tmp_path, nodes, {"x": TensorProto.FLOAT}, kinds)
    x = np.arange(8, dtype=np.float32)
    first, second = harness.run_engine(
        engine, {"x": x}, list(kinds), tmp_path / "run", device="simt", dump=dump
    )
    np.testing.assert_array_equal(first, -x)
    np.testing.assert_array_equal(second, x)


def test_one_program_is_run_and_named(tmp_path):
    engine, dump = one_node(tmp_path, targets=("sm_80", "sm_90"))
    result = invoke_simt(engine, dump)
    assert result.code == 1
    assert "several of its programs for GPUs (" in result.stderr
    assert "sm_80, fp32" in result.stderr and "sm_90, fp32" in result.stderr
    result = invoke_simt(engine, dump, "--arch", "sm_80")
    assert result.kind == "ok", result.stderr
    assert "note: running sm_80, fp32\n" in result.stderr
    result = invoke_simt(engine, dump, "--arch", "sm_80", "--precision", "fp16")
    assert result.code == 1 and "none of its programs for GPUs (" in result.stderr


@pytest.mark.parametrize("rows, terms, columns", [(256, 2048, 640), (512, 4608, 512)])
def test_each_chip_has_a_program_of_its_own(tmp_path, rows, terms, columns):
    """Products that the chips split differently: other scratch memory, or none."""
    random = np.random.default_rng(3)
    x, weight = (random.standard_normal(s, np.float32) for s in ((rows, terms), (terms, columns)))
    weight /= np.sqrt(np.float32(terms))
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, [rows, columns])],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
    path.write_bytes(model.SerializeToString())
    harness.compile_model(path, engine, target="sm_80,sm_90a", precision="fp16", dump=dump)
    notes = json.loads(harness.invoke("inspect", engine, "--json").stdout)["build"]["notes"]
    peaks = {key for key in notes if key.endswith(".arena.peak")}
    assert peaks == {"sm_80-cuda.arena.peak", "sm_90a-cuda.arena.peak"}
    fusion = harness.invoke("inspect", engine, "--fusion").stdout
    assert fusion.count("matmul_cast  products copy their operands from memory") == 2, fusion
    # Both read one copy of the weights.
    assert engine.stat().st_size < 1.5 * 2 * weight.size + 1e6
    for arch in ("sm_80", "sm_90a"):
        (y,) = harness.run_engine(
            engine, {"x": x}, ["y"], tmp_path / arch, device="simt", dump=dump,
            extra=["--arch", arch],
        )  # fmt: skip
        want = x.astype(np.float64) @ weight
        assert np.abs(y - want).max() <= 1e-2 * np.abs(want).max()


@pytest.mark.parametrize(
    "pattern, text, message",
    [
        (r"nvvm\.reqntid = array<i32: \d+>", "nvvm.reqntid = array<i32: 96>",
         r"has blocks of 96 threads, the engine's of \d+"),
        (r"(llvm\.func .*?)@\w+\(", r"\1@another(", r"another stands in the place of another, the engine's is \w+"),
        (r"nvvm\.reqntid", "nvvm.cluster_dim = array<i32: 2, 1, 1>, nvvm.reqntid",
         "runs in clusters of blocks"),
    ],
)  # fmt: skip
def test_dump_of_another_engine(tmp_path, pattern, text, message):
    engine, dump = one_node(tmp_path)
    (kernel,) = dump.glob("*-cuda-code/*/*-thread.mlir")
    changed, count = re.subn(pattern, text, kernel.read_text(), count=1)
    assert count == 1
    kernel.write_text(changed)
    result = invoke_simt(engine, dump)
    assert result.code == 1
    assert re.search(message, result.stderr), result.stderr


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


THIN = [(m, n, k) for m in (1, 3, 130) for n in (1, 3, 130) for k in (1, 4, 300) if 1 in (m, n, k)]


@pytest.mark.parametrize("target", ["sm_90", "sm_90a"])
def test_products_of_one_row_column_or_term(tmp_path, target):
    """Each result is stored once. One column and K = 1 were stored by every column of a tile."""
    rng, info = np.random.default_rng(0), helper.make_tensor_value_info
    inputs, nodes, wants = {}, [], {}
    for i, (m, n, k) in enumerate(THIN):
        # As a product of inputs, with the left one transposed, and of three at once.
        for form, batch in ("plain", ()), ("transposed", ()), ("batch", (3,)):
            a, b, y = (f"{letter}{i}_{form}" for letter in "aby")
            lhs = rng.standard_normal((*batch, m, k)).astype(np.float32)
            inputs[b] = rng.standard_normal((*batch, k, n)).astype(np.float32)
            wants[y] = lhs @ inputs[b]
            if form == "transposed":
                inputs[a] = np.ascontiguousarray(lhs.T)
                nodes.append(helper.make_node("Gemm", [a, b], [y], transA=1))
            else:
                inputs[a] = lhs
                nodes.append(helper.make_node("MatMul", [a, b], [y]))
    graph = helper.make_graph(
        nodes, "thin",
        [info(i, TensorProto.FLOAT, x.shape) for i, x in inputs.items()],
        [info(o, TensorProto.FLOAT, x.shape) for o, x in wants.items()],
    )  # fmt: skip
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    harness.compile_model(path, engine, target=target, dump=dump)
    found = harness.run_engine(engine, inputs, list(wants), tmp_path / "run", device="simt", dump=dump)
    for (name, want), got in zip(wants.items(), found):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * max(1, np.abs(want).max()), err_msg=name)


@pytest.mark.parametrize("rows, width", [(130, 100), (257, 192)])
def test_gates(tmp_path, rows, width):
    """silu(x G) * (x U): one kernel, or two where columns are no runs, of which one takes the other's result."""
    rng = np.random.default_rng(rows)
    terms = 72
    weights = {n: rng.standard_normal((terms, width)).astype(np.float16) for n in "GU"}
    info = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape)  # noqa: E731
    nodes = [
        helper.make_node("MatMul", ["x", "G"], ["g"]), helper.make_node("MatMul", ["x", "U"], ["u"]),
        helper.make_node("Sigmoid", ["g"], ["s"]), helper.make_node("Mul", ["g", "s"], ["silu"]),
        helper.make_node("Mul", ["silu", "u"], ["y"]),
    ]  # fmt: skip
    held = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, "g", [info("x", rows, terms)], [info("y", rows, width)], held)
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    harness.compile_model(path, engine, target="sm_90a", precision="fp16", dump=dump)
    listing = harness.invoke("inspect", engine, "--kernels").stdout
    assert ("2 kernel launches" if width % 8 else "1 kernel launch") in listing
    assert ("matmul_sigmoid" if width % 8 else "matmul_cell_part") in listing
    x = (rng.standard_normal((rows, terms)) / 8).astype(np.float16)
    (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run", device="simt", dump=dump)
    g, u = (x.astype(np.float64) @ weights[n].astype(np.float64) for n in "GU")
    assert harness.scaled_error(g / (1 + np.exp(-g)) * u, got.astype(np.float64)) <= 2e-3


def test_long_rows_of_doubles(tmp_path):
    """What a lane copies itself where a row may end is words of 64 bits."""
    x = np.random.default_rng(1).standard_normal((3, 9001)) * 3
    text = '<ir_version: 9, opset_import: ["" : 17]>\nagraph (double[3,9001] x) => (double[3,9001] y) { y = Softmax(x) }'
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine, target="sm_80", dump=dump)
    (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run", device="simt", dump=dump)
    want = np.exp(x - x.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=1e-12)


LONG_ROWS = {
    "softmax": "x) => (FLOAT[R,N] y) { y = Softmax(x) }",
    "log": "x) => (FLOAT[R,N] y) { y = LogSoftmax(x) }",
    "mask": "x, FLOAT[N] m) => (FLOAT[R,N] y) { s = Add(x, m) y = Softmax(s) }",
    "norm": """x, FLOAT[R,N] z, FLOAT[N] g, FLOAT[N] b) => (FLOAT[R,N] y)
               { s = Add(x, z) y = LayerNormalization(s, g, b) }""",
    "max": "x) => (FLOAT[R,1] y) { y = ReduceMax <axes = [1]> (x) }",
}


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("columns", [8193, 20004, 30007])
@pytest.mark.parametrize("name", LONG_ROWS)
def test_long_rows(tmp_path, name, columns, precision):
    """Rows that begin anywhere are read by vectors, once; their ends element by element."""
    rows = 5
    text = LONG_ROWS[name].replace("FLOAT", "float").replace("R,", f"{rows},").replace("N]", f"{columns}]")
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 17]>\nagraph (float[{rows},{columns}] {text}'
    )
    rng = np.random.default_rng(columns)
    feeds = {
        i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in model.graph.input
    }
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(model, path)
    harness.compile_model(path, engine, target="sm_90a", precision=precision, dump=dump)
    if name == "softmax":
        code = "".join(p.read_text() for p in dump.glob("*-cuda-code/*/*-thread.mlir"))
        assert "nvvm.cp.async.shared.global" in code
        assert re.search(r"st\.global\.v4\.b32|llvm.store .*vector<[48]xf", code)
    (want,) = ReferenceEvaluator(model).run(None, feeds)
    for got in in_orders(engine, feeds, tmp_path, dump, ORDERS[:2]):
        assert harness.scaled_error(want, got.astype(np.float32)) <= LIMITS[precision]


@pytest.mark.parametrize("precision, limit", [("fp32", 1e-5), ("fp16", 1e-3)])
@pytest.mark.parametrize("columns", [8195, 12288, 20005])
def test_moments_of_long_rows(tmp_path, columns, precision, limit):
    """Mean and variance come from one walk, as exact where the mean is large; scale and shift
    begin elsewhere than the row."""
    rows, rng = 34, np.random.default_rng(columns)
    text = LONG_ROWS["norm"].replace("FLOAT", "float").replace("R,", f"{rows},").replace("N]", f"{columns}]")
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 17]>\nagraph (float[{rows},{columns}] {text}'
    )
    halves = lambda *shape: rng.standard_normal(shape).astype(np.float16).astype(np.float32)
    feeds = {"x": halves(rows, columns) * 4, "z": halves(rows, columns), "g": halves(columns), "b": halves(columns)}
    feeds["x"] += np.where(np.arange(rows) % 2, 1000, 0).astype(np.float32)[:, None]
    feeds["x"] = feeds["x"].astype(np.float16).astype(np.float32)
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(model, path)
    harness.compile_model(path, engine, target="sm_90a", precision=precision, dump=dump)
    (program,) = dump.glob("*-cuda-code/*/*0-tile.mlir")
    assert program.read_text().count("scf.for") == 2
    (got,) = harness.run_engine(engine, feeds, ["y"], tmp_path / "run", device="simt", dump=dump)
    s = feeds["x"].astype(np.float64) + feeds["z"]
    want = (s - s.mean(1, keepdims=True)) / np.sqrt(s.var(1, keepdims=True) + 1e-5) * feeds["g"] + feeds["b"]
    assert harness.scaled_error(want, got.astype(np.float64)) <= limit


@pytest.mark.parametrize("columns", [800, 8195, 20005])
def test_softmax_of_what_is_not_finite(tmp_path, columns):
    """As short rows: -inf has no share, rows with NaN, inf or nothing but -inf are NaN."""
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((6, columns)).astype(np.float32)
    x[0, : columns // 2] = -np.inf
    x[1, 3] = x[2, -1] = np.inf
    x[3, columns - 5] = np.nan
    x[4] = -np.inf
    text = f'<ir_version: 9, opset_import: ["" : 17]>\nagraph (float[6,{columns}] x) => (float[6,{columns}] y) {{ y = Softmax(x) }}'
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    onnx.save(onnx.parser.parse_model(text), path)
    harness.compile_model(path, engine, target="sm_90a", dump=dump)
    (got,) = harness.run_engine(engine, {"x": x}, ["y"], tmp_path / "run", device="simt", dump=dump)
    with np.errstate(invalid="ignore"):
        want = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        want /= want.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


def recurrence(op, direction):
    """Without an initial state, which is then zeros of as many rows as there are sequences."""
    steps, size, hidden = 3, 8, 8
    rng = np.random.default_rng(5)
    gates, directions = {"GRU": 3, "LSTM": 4}[op], 1 + (direction == "bidirectional")
    weights = [
        numpy_helper.from_array((rng.standard_normal(shape) * 0.3).astype(np.float32), name)
        for name, shape in (("w", (directions, gates * hidden, size)), ("r", (directions, gates * hidden, hidden)))
    ]  # fmt: skip
    node = helper.make_node(op, ["x", "w", "r"], ["y", "h"], hidden_size=hidden, direction=direction)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, "b", size])]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yh"]
    graph = helper.make_graph([node], op, inputs, outputs, weights)
    x = rng.standard_normal((steps, 3, size)).astype(np.float32)
    return graph, {"x": x}


def dear():
    """Weights alone give what is added to the input, which takes too long to compute when the
    engine is written: kernels of it run before the last one."""
    rng = np.random.default_rng(6)
    weights = {
        "w": rng.standard_normal(900).astype(np.float32), "s": np.array([900, 900]), "axes": np.array([0]),
    }  # fmt: skip
    nodes = [
        helper.make_node("Expand", ["w", "s"], ["e"]), helper.make_node("Sin", ["e"], ["t"]),
        helper.make_node("MatMul", ["t", "t"], ["u"]),
        helper.make_node("ReduceSum", ["u", "axes"], ["q"], keepdims=0),
        helper.make_node("Add", ["x", "q"], ["y"]),
    ]  # fmt: skip
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 900]) for n in "xy"]
    initializers = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, "dear", values[:1], values[1:], initializers)
    return graph, {"x": rng.standard_normal((4, 900)).astype(np.float32)}


OF_WEIGHTS = {
    f"{op}_{direction}": lambda op=op, direction=direction: recurrence(op, direction)
    for op in ("GRU", "LSTM") for direction in ("forward", "bidirectional")
} | {"dear": dear}  # fmt: skip


@pytest.mark.parametrize("target, precision", [("sm_90", "fp32"), ("sm_90a", "fp16")])
@pytest.mark.parametrize("name", OF_WEIGHTS)
def test_results_of_weights_are_waited_for(tmp_path, name, target, precision):
    """Kernels that read nothing but weights overlap with their readers as all others do."""
    import onnxruntime

    graph, inputs = OF_WEIGHTS[name]()
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path, engine, dump = tmp_path / "m.onnx", tmp_path / "m.engine", tmp_path / "dump"
    path.write_bytes(model.SerializeToString())
    harness.compile_model(path, engine, target=target, precision=precision, dump=dump)
    outputs = [o.name for o in model.graph.output]
    got = harness.run_engine(
        engine, inputs, outputs, tmp_path / "run", device="simt", dump=dump
    )
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for value, want in zip(got, session.run(outputs, inputs)):
        error = np.abs(value - want).max() / np.abs(want).max()
        assert error <= LIMITS[precision], f"{name}: {error:.2e}"


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
    engine, dump, feeds, _ = attention(tmp_path, 1, 1, 1, 300, 300, 64, False)
    (kernel,) = dump.glob("*-cuda-code/*/*-thread.mlir")
    changed, count = re.subn(pattern, text, kernel.read_text())
    assert count
    kernel.write_text(changed)
    with pytest.raises(harness.CharoniaError) as caught:
        harness.run_engine(
            engine, feeds, ["y"], tmp_path / "run", device="simt", dump=dump
        )
    assert f": {finding}" in caught.value.result.stderr
