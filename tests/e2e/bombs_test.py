"""Models that are small to write down and once took minutes, or failed, to compile.

ctest runs scripts/compile_bombs.py, which has more, as e2e.compile_bombs. Each of these took work that
grew exponentially, or was refused, so that a relapse shows without a clock.
"""

from __future__ import annotations

import json
import re

import compile_bombs as bombs
import harness
import numpy as np
import onnx
import pytest

CASES = {
    # The sum of all sizes, a statistic, was longer than an engine's expressions.
    "symbolic_concat": lambda: bombs.symbolic_concat(200),
    # Sums of sizes in every address: LLVM's analyses of loops took minutes of 128.
    "symbolic_concat_vectors": lambda: bombs.symbolic_concat(200, (), ()),
    "symbolic_concat_columns": lambda: bombs.symbolic_concat(200, (4,), ()),
    "lstm_dynamic_batch": lambda: bombs.lstm(512),
    "scan_dynamic_batch": lambda: bombs.scan(300),
    "odd_lstm": lambda: bombs.lstm(30, hidden=7, width=5),
    "lstm_both_ways": lambda: bombs.lstm(9, 8, 3, directions=2, lengths=True),
    "gru_both_ways": lambda: bombs.lstm(9, 8, 3, directions=2, lengths=True, kind="GRU"),
    "rnn_both_ways": lambda: bombs.lstm(9, 8, 3, directions=2, lengths=True, kind="RNN"),
    # Each value is read twice by the next one.
    "doubling": lambda: bombs.doubling(40),
    "doubled_indices": lambda: bombs.doubled_indices(15, 60_000, 2),
    "doubling_shape": lambda: bombs.doubling_shape(10),
    "mirrored": lambda: bombs.mirrored(24),
    "shifts": lambda: bombs.shifts(24),
    "matmul_sines": lambda: bombs.matmul_chain("Sin", 12),
    "pads": lambda: bombs.pads(24),
    "dag": lambda: bombs.dag(60, 5, near=6),
    # Composed maps of open sizes double in length with each pair.
    "reshuffles": lambda: bombs.reshuffles(25),
    # One convolution for each run of residues, or one for all.
    "conv_transpose_stride": lambda: bombs.conv_transpose([3], [100000], [1], [3]),
    "conv_transpose_runs": lambda: bombs.conv_transpose([32, 32], [32, 32], [31, 31], [3, 3]),
    "depthwise_3d": lambda: bombs.depthwise(32, [3, 3, 3], [1, 2, 2], [5, 28, 28]),
    "conv_transpose_groups": lambda: bombs.conv_transpose([9, 9], [16, 9], [7, 4], [4, 3], groups=2),
}


@pytest.mark.parametrize("name", CASES)
def test_compiles_and_is_right(tmp_path, name):
    import onnxruntime

    model = tmp_path / "model.onnx"
    model.write_bytes(CASES[name]().SerializeToString())
    engine = tmp_path / "model.engine"
    harness.compile_model(model, engine, extra=["--no-cache"], timeout=300)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    inputs = bombs.sample(onnx.load(model))
    got = harness.run_engine(engine, inputs, outputs, tmp_path / "run")
    for name, a, b in zip(outputs, got, session.run(outputs, inputs)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("kind", ["squares", "quotients"])
@pytest.mark.parametrize("steps", [16, 65, 300, 513, 5000])
def test_states_of_open_sizes_stay_short(tmp_path, steps, kind, sized):
    """Each step's number is an expression around the one before: they took minutes, whoever asked for
    them. The limit is far above what is needed now."""
    import onnxruntime

    model, engine = tmp_path / "model.onnx", tmp_path / "model.engine"
    model.write_bytes(bombs.open_state(steps, kind, sized).SerializeToString())
    if sized and (steps, kind) == (5000, "squares"):
        with pytest.raises(harness.CharoniaError, match="shapes that depend on data are not supported"):
            harness.compile_model(model, engine, extra=["--no-cache", "--time-limit", "20"])
        return
    harness.compile_model(model, engine, extra=["--no-cache", "--time-limit", "20"])
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    for n in (1, 3, 40):
        inputs = {"x": np.full((n, 8), 0.5, np.float32)}
        got = harness.run_engine(engine, inputs, outputs, tmp_path / f"run{n}")
        for name, a, b in zip(outputs, got, session.run(outputs, inputs)):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=name)


def test_products_that_leave_64_bits_are_no_sizes(tmp_path):
    """9 divides the factor, but not what is left of the product in 64 bits."""
    g = bombs.Graph()
    product = g.op("Mul", g.op("Shape", "x", start=0, end=1), g.constant([9 * 2**59]))
    y = g.op("ConstantOfShape", g.op("Mod", product, g.constant([9])))
    path = tmp_path / "model.onnx"
    path.write_bytes(g.model([bombs.info("x", ["n", 4])], [bombs.info(y, ["m"])]).SerializeToString())
    with pytest.raises(harness.CharoniaError) as caught:
        harness.compile_model(path, tmp_path / "model.engine")
    said = caught.value.result.stderr
    assert re.search(r"follows from sizes, but Mul 'n1' .*sizes that are open", said), said


def test_a_long_vector_of_sizes_is_no_code(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(bombs.doubling_shape(10).SerializeToString())
    harness.compile_model(path, tmp_path / "model.engine", target="x86-64-v4")
    assert (tmp_path / "model.engine").stat().st_size < 40_000


def test_kernels_carry_their_own_sizes_alone(tmp_path):
    """Each carried those of all inputs, so none was another's, and 2000 took a minute."""
    count, path, engine = 500, tmp_path / "model.onnx", tmp_path / "model.engine"
    model = bombs.many_inputs(count)
    path.write_bytes(model.SerializeToString())
    harness.compile_model(path, engine)
    program = json.loads(harness.invoke("inspect", engine, "--json").stdout)["programs"][0]
    assert (len(program["kernels"]), len(program["steps"])) == (1, count)
    # Named as its first launch has them.
    assert "n0" in program["kernels"][0]["flops"], program["kernels"][0]
    assert program["steps"][3]["symbols"] == ["n3", "c3"]
    rng = np.random.RandomState(2)
    inputs = {
        value.name: rng.uniform(-1, 1, (1 + i % 7, 1 + i % 11)).astype(np.float32)
        for i, value in enumerate(model.graph.input)
    }
    outputs = [value.name for value in model.graph.output]
    got = harness.run_engine(engine, inputs, outputs, tmp_path / "run")
    for (name, x), y in zip(inputs.items(), got):
        np.testing.assert_allclose(y, x.sum(1), rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("undone", [False, True])
def test_views_of_open_sizes_are_few_kernels(tmp_path, undone):
    """Of 25 pairs a map is stored once it is long; those that are undone are no kernel at all."""
    path, engine = tmp_path / "model.onnx", tmp_path / "model.engine"
    path.write_bytes(bombs.reshuffles(25, undone).SerializeToString())
    harness.compile_model(path, engine, target="x86-64-v4")
    program = json.loads(harness.invoke("inspect", engine, "--json").stdout)["programs"][0]
    assert len(program["steps"]) <= (1 if undone else 12)


def test_work_on_weights_alone_is_told(tmp_path):
    """2^40 numbers are not added up while the model is compiled, but in every run."""
    g = bombs.Graph()
    one = g.op("Expand", g.constant(1, np.float32), g.constant([2**40]))
    y = g.op("Add", "x", g.op("ReduceSum", one, keepdims=0))
    path = tmp_path / "model.onnx"
    path.write_bytes(g.model([bombs.info("x", [3])], [bombs.info(y, [3])]).SerializeToString())
    result = harness.compile_model(path, tmp_path / "model.engine")
    assert re.search(
        r"warning: \S*model.onnx: node 'n\d'.*: every run does \d(\.\d)?e\+12 operations on "
        "weights alone, too many to be done once while the engine is built\n"
        "  remedy: compute what follows from constants before the model is exported",
        result.stderr,
    ), result.stderr


def test_sizes_of_too_many_terms(tmp_path):
    """Named with the node and the way out, and at once: not when the engine is written."""
    path = tmp_path / "model.onnx"
    path.write_bytes(bombs.symbolic_concat(2100).SerializeToString())
    with pytest.raises(harness.CharoniaError) as caught:
        harness.compile_model(path, tmp_path / "model.engine", target="x86-64-v3")
    said = caught.value.result.stderr
    assert re.search(
        r"error: \S*model.onnx: node .*: the size of the result is an expression of \d{4} terms, and "
        r"an engine holds 4096\n  remedy: fix some of the sizes with --shape, or join fewer",
        said,
    ), said


def test_many_products_that_share_their_terms(tmp_path):
    """Each has counters in one buffer, behind those of all before it: 4500 terms once."""
    g = bombs.Graph()
    w, v = (g.constant(np.zeros(s), np.float32) for s in ((64, 8192), (8192, 64)))
    y = "x"
    for _ in range(450):
        y = g.op("Tanh", g.op("MatMul", g.op("Tanh", g.op("MatMul", y, w)), v))
    path, engine = tmp_path / "model.onnx", tmp_path / "model.engine"
    path.write_bytes(
        g.model([bombs.info("x", ["n", 64])], [bombs.info(y, ["n", 64])]).SerializeToString()
    )
    harness.compile_model(path, engine, target="sm_80", precision="fp16")
    program = json.loads(harness.invoke("inspect", engine, "--json").stdout)["programs"][0]
    assert any(buffer["name"] == "counters" for buffer in program["buffers"])


LARGE = 2**28
LARGE_TENSORS = {
    "ConstantOfShape": lambda g: g.op("ConstantOfShape", g.constant([LARGE])),
    "Expand": lambda g: g.op("Expand", g.constant([1, 2], np.float32), g.constant([LARGE, 2])),
    "Range": lambda g: g.op(
        "Range", *(g.constant(v, np.float32) for v in (0, LARGE, 1))
    ),
    "Tile": lambda g: g.op("Tile", g.constant(np.arange(4), np.float32), g.constant([LARGE])),
}


@pytest.mark.parametrize("name", LARGE_TENSORS)
def test_large_tensors_of_few_bytes_are_not_made(tmp_path, name):
    """Chains of them that follow from constants are code, neither evaluated nor stored."""
    g = bombs.Graph()
    t = g.op("Reshape", LARGE_TENSORS[name](g), g.constant([-1]))
    for _ in range(4):
        t = g.op("Concat", g.op("Sin", t), g.op("Add", t, t), axis=0)
    y = g.op("Add", "x", g.op("Gather", t, g.constant([7])))
    path = tmp_path / "model.onnx"
    path.write_bytes(g.model([bombs.info("x", [1])], [bombs.info(y, [1])]).SerializeToString())
    engine = tmp_path / "model.engine"
    harness.compile_model(path, engine, extra=["--no-cache", "--memory-limit", "400"])
    assert engine.stat().st_size < 200_000


def test_shared_constant(tmp_path):
    """What is asked of a kernel takes no look at all kernels that read the same constant.
    It took one, and minutes; the limit is far above what is needed now."""
    model = tmp_path / "model.onnx"
    model.write_bytes(bombs.shifted_views(80_000).SerializeToString())
    engine = tmp_path / "model.engine"
    extra = ["--no-cache", "--time-limit", "150"]
    harness.compile_model(model, engine, extra=extra, timeout=400)
    (got,) = harness.run_engine(
        engine, {"x": np.ones((2, 2), np.float32)}, [onnx.load(model).graph.output[0].name], tmp_path / "run"
    )  # fmt: skip
    np.testing.assert_array_equal(got, np.zeros((2, 2)))


@pytest.mark.parametrize("ordered", [True, False])
def test_loops_are_counted(tmp_path, ordered):
    """Steps of a loop in a loop, with nodes that nothing needs: these are looked at once.
    Were they in every step, 2 GiB of nodes would be the first limit that is met."""
    model = tmp_path / "model.onnx"
    model.write_bytes(bombs.dead_loop(8000, 64, 64, ordered).SerializeToString())
    result = harness.invoke("compile", model, "-o", tmp_path / "model.engine", timeout=300)
    assert result.kind == "failed", result.stderr
    for text in (
        "node 'outer' (Loop", "in its body, Loop 'inner'",
        "functions, loops and tables written out are over 131072 nodes", "fewer steps",
    ):  # fmt: skip
        assert text in result.stderr, result.stderr
    assert not (tmp_path / "model.engine").exists()


def odd_lstm(steps: int):
    """Steps start at any number of elements."""
    return bombs.lstm(steps, hidden=7, width=5)


def lengths(steps: int):
    """Each sequence of the batch ends behind another step."""
    return bombs.lstm(steps, lengths=True)


def both_ways(steps: int):
    """Both directions' inputs are one product, of which each step reads some columns."""
    return bombs.lstm(steps, directions=2)


def gru(steps: int):
    """All of it: both directions, and each sequence of the batch ends behind another step."""
    return bombs.lstm(steps, 16, 3, directions=2, lengths=True, kind="GRU")


STEPS = 64  # which are written out, of layers too


@pytest.mark.parametrize(
    "recurrence, target",
    [(bombs.lstm, "cpu"), (bombs.lstm, "sm_90"), (bombs.scan, "cpu"), (bombs.scan, "sm_90"),
     (odd_lstm, "cpu"), (lengths, "cpu"), (both_ways, "cpu"), (both_ways, "sm_90"), (gru, "cpu")],
)  # fmt: skip
def test_steps_share_kernels(tmp_path, recurrence, target):
    """Steps of a recurrence differ in where they read: that is no other code. Were it,
    there would be hundreds of kernels, which take a minute."""
    model = tmp_path / "model.onnx"
    model.write_bytes(recurrence(STEPS).SerializeToString())
    result = harness.invoke(
        "compile", model, "-o", tmp_path / "model.engine", "--target", target
    )
    counts = re.search(r"(\d+) launches of (\d+) kernels", result.stdout)
    assert counts, result.stdout + result.stderr
    launches, kernels = map(int, counts.groups())
    # What steps compute of their own parts of the sequence is one launch (stack-steps).
    assert launches >= STEPS and kernels <= 16, result.stdout
    # They are told apart by the places that they are given.
    told = harness.invoke("inspect", tmp_path / "model.engine", "--json")
    steps = json.loads(told.stdout)["programs"][0]["steps"]
    places = [(s["kernel"], *s["buffers"], *s["offsets"]) for s in steps if s["kind"] == "launch"]
    assert len(places) == launches and len(set(places)) == launches
