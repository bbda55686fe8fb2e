"""Products of all kinds on a GPU, run thread by thread by charonia-simt."""

from __future__ import annotations

import json

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


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
