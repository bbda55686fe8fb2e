"""Attention whose rows may attend to nothing, against ONNX Runtime and NumPy.

A model is a list of steps between the product of queries and keys and the softmax.
Rows that keep nothing give what the model says: NaN of a plain softmax, zeros where
the model or ONNX's operator replaces them, the mean of values under a finite fill.

    pytest attention_test.py --device simt --precision fp16     GPU kernels without a GPU
"""

from __future__ import annotations

import shutil

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

B, H, D, DV = 2, 2, 16, 8
INF = float("inf")
LOWEST = float(np.finfo(np.float32).min)
NAN_ROWS, EMPTY_ROWS = "nan", "empty"


class Model:
    """Nodes of an attention model, its inputs, and the same in NumPy."""

    def __init__(self, s: int, t: int, seed: int = 0):
        self.rng = np.random.default_rng(seed)
        self.s, self.t = s, t
        self.nodes, self.weights, self.feeds, self.infos = [], [], {}, []
        draw = lambda *dims: self.rng.standard_normal(dims).astype(np.float32)
        self.qkv = draw(B, H, s, D), draw(B, H, t, D), draw(B, H, t, DV)
        for name, array in zip("qkv", self.qkv):
            self.input(name, array)

    def input(self, name, array, dims=None):
        dtype = TensorProto.BOOL if array.dtype == bool else TensorProto.FLOAT
        self.feeds[name] = array
        self.infos.append(helper.make_tensor_value_info(name, dtype, dims or array.shape))
        return name

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, op, inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def causal_mask(self, back=None):
        """[S, T] from ranges: true where t <= s + (T - S), and more than that less `back`."""
        i64 = np.int64
        rows = self.node("Range", [self.constant(self.t - self.s, i64), self.constant(self.t, i64), self.constant(1, i64)])
        columns = self.node("Range", [self.constant(0, i64), self.constant(self.t, i64), self.constant(1, i64)])
        rows = self.node("Unsqueeze", [rows, self.constant([1], i64)])
        keep = self.node("LessOrEqual", [columns, rows])
        if back is None:
            return keep
        after = self.node("Sub", [rows, self.constant(back, i64)])
        return self.node("And", [keep, self.node("Greater", [columns, after])])

    def decomposed(self, steps, guard=None):
        """softmax(steps(Q K^T)) V as a model, and its result in float64."""
        q, k, v = self.qkv
        turned = self.node("Transpose", ["k"], perm=[0, 1, 3, 2])
        x, scores = self.node("MatMul", ["q", turned]), q @ np.swapaxes(k, 2, 3)
        ahead = np.arange(self.t)[None] - np.arange(self.s)[:, None] - self.t + self.s
        for number, (kind, *arguments) in enumerate(steps):
            if kind == "scale":
                x = self.node("Mul", [x, self.constant(arguments[0])])
                scores = scores * np.float32(arguments[0])
            elif kind == "add":
                x = self.node("Add", [x, self.input(f"m{number}", arguments[0])])
                with np.errstate(over="ignore"):
                    scores = scores + arguments[0]
            else:
                keep, fill = arguments
                if isinstance(keep, str):
                    back = None if keep == "causal" else int(keep)
                    name = self.causal_mask(back)
                    keep = (ahead <= 0) & (ahead > -(back or np.inf))
                else:
                    name = self.input(f"m{number}", keep)
                low = self.constant(fill)
                with np.errstate(over="ignore"):
                    if kind == "where":
                        x = self.node("Where", [name, x, low])
                        scores = np.where(keep, scores, np.float32(fill))
                    else:  # a float mask made of the condition
                        zero = self.constant(0)
                        x = self.node("Add", [x, self.node("Where", [name, zero, low])])
                        scores = scores + np.where(keep, 0, np.float32(fill)).astype(np.float32)
        p = self.node("Softmax", [x], axis=-1)
        if guard == NAN_ROWS:
            p = self.node("Where", [self.node("IsNaN", [p]), self.constant(0), p])
        self.nodes.append(helper.make_node("MatMul", [p, "v"], ["y"]))
        scores = scores.astype(np.float64)
        with np.errstate(invalid="ignore"):
            e = np.exp(scores - scores.max(-1, keepdims=True))
            weights = e / e.sum(-1, keepdims=True)
        if guard == NAN_ROWS:
            weights = np.where(np.isnan(weights), 0, weights)
        return weights @ v.astype(np.float64)

    def proto(self, opset=18):
        shape = [B, H, self.s, DV]
        graph = helper.make_graph(
            self.nodes, "attention", self.infos,
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], self.weights,
        )  # fmt: skip
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def random_mask(rng, s, t):
    """[B, 1, S, T] with whole rows false, and rows that begin or end so."""
    keep = rng.random((B, 1, s, t)) < 0.6
    for batch in range(B):
        for row in range(s):
            match (row + batch) % 5:
                case 0:
                    keep[batch, :, row] = False
                case 1:
                    keep[batch, :, row, : 2 * t // 3] = False
                case 2:
                    keep[batch, :, row, t // 3 :] = False
    return keep


def floats(keep, fill):
    return np.where(keep, 0, np.float32(fill)).astype(np.float32)


def padding(t, left):
    """[B, 1, 1, T]: the first keys of the first batch are none."""
    keep = np.ones((B, 1, 1, t), bool)
    keep[0, ..., :left] = False
    return keep


# Queries, keys: one row; keys that no tile divides; whole tiles.
SIZES = ((1, 1), (1, 37), (9, 37), (8, 64), (21, 70), (70, 21))
FORMS = {
    "plain": lambda m, p: [("scale", 0.25)],
    "bool": lambda m, p: [("scale", 0.25), ("where", m, -INF)],
    "float": lambda m, p: [("scale", 0.25), ("add", floats(m, -INF))],
    "added": lambda m, p: [("added", m, -INF)],
    "causal_left": lambda m, p: [("where", "causal", -INF), ("added", p, -INF)],
    "left_causal": lambda m, p: [("scale", 0.5), ("add", floats(p, -INF)), ("where", "causal", -INF)],
    "uniform": lambda m, p: [("where", m, -1e9)],
    "uniform_small": lambda m, p: [("where", m, -1e4), ("scale", 0.125)],
    "uniform_lowest": lambda m, p: [("scale", 0.25), ("add", floats(m, LOWEST))],
    "uniform_half": lambda m, p: [("where", m, -65504.0)],
    "added_lowest": lambda m, p: [("added", m, LOWEST)],
    "bias_1e9": lambda m, p: [("add", floats(m, -1e9))],
    "causal_finite_left": lambda m, p: [("where", "causal", LOWEST), ("add", floats(p, LOWEST))],
    "causal_1e4_left": lambda m, p: [("where", "causal", -1e4), ("add", floats(p, -1e4))],
    "causal_added_left": lambda m, p: [("added", "causal", LOWEST), ("add", floats(p, LOWEST))],
    "left_causal_finite": lambda m, p: [("where", p, -1e9), ("where", "causal", -1e9)],
    "infinite_then_finite": lambda m, p: [("where", "causal", -INF), ("where", m, -1e9)],
    "finite_then_infinite": lambda m, p: [("where", m, -1e9), ("where", "causal", -INF)],
    "two_fills": lambda m, p: [("where", m, -1e9), ("where", p, -1e4), ("scale", 0.5)],
    "bias_between": lambda m, p: [("where", m, -3.0), ("add", floats(p, -2.5)), ("where", "causal", 1.5)],
}  # fmt: skip


# What a result may differ by, of values about 1.
ALLOWED = {"fp32": 2e-5, "fp16": 2e-2, "bf16": 1e-1}


def compare(got, want, what, precision="fp32"):
    assert np.array_equal(np.isnan(got), np.isnan(want)), (
        f"{what}: {np.isnan(got).sum()} NaN, not {np.isnan(want).sum()}"
    )
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=ALLOWED[precision], err_msg=what)


@pytest.fixture
def check(request, tmp_path):
    """Compiles and runs a model as --device and --precision say."""
    device = request.config.getoption("--device")
    chosen = request.config.getoption("--precision")

    def check(model, proto, want, against=True, precision=chosen):
        path, engine = tmp_path / "model.onnx", tmp_path / "model.engine"
        onnx.save(proto, path)
        if against:
            peer = onnxruntime.InferenceSession(path).run(None, model.feeds)[0]
            compare(peer, want, "ONNX Runtime against NumPy")
        simt = device == "simt"
        dump = tmp_path / "dump" if simt else None
        shutil.rmtree(tmp_path / "dump", ignore_errors=True)
        harness.compile_model(
            path, engine, target="sm_90" if simt else "cpu", precision=precision, dump=dump
        )
        got = harness.run_engine(
            engine, model.feeds, ["y"], tmp_path, device=device, dump=dump,
            extra=["--seed", "3", "--copies", "seeded"] if simt else [],
        )[0]  # fmt: skip
        compare(got, want, "Charonia against NumPy", precision)

    return check


@pytest.mark.parametrize("guard", (None, NAN_ROWS))
@pytest.mark.parametrize("form", FORMS)
def test_decomposed(form, guard, check):
    # The sizes take turns, so that every form meets several over the two guards.
    index = list(FORMS).index(form) * 2 + (guard is not None)
    for s, t in (SIZES[index % len(SIZES)], (37, 37)):
        model = Model(s, t, index)
        steps = FORMS[form](random_mask(model.rng, s, t), padding(t, min(5, t - 1)))
        want = model.decomposed(steps, guard)
        check(model, model.proto(), want)


@pytest.mark.parametrize("keep", ("causal", "20"))
@pytest.mark.parametrize("s, t", ((1, 129), (7, 7), (63, 129), (65, 127), (129, 129), (129, 65)))
def test_blocks_of_keys(s, t, keep, check):
    """Rows that keep the keys up to their own, or the last 20 of them: whole blocks of
    keys are left out, before and behind."""
    model = Model(s, t, s + t)
    want = model.decomposed([("scale", 0.25), ("where", keep, -INF)], NAN_ROWS)
    check(model, model.proto(), want)


class OpenModel(Model):
    """As many queries as keys, how many is left open: the triangle stays one of ranges."""

    def input(self, name, array, dims=None):
        return super().input(name, array, (B, H, "s", array.shape[-1]))

    def causal_mask(self, *_):
        i64 = np.int64
        length = self.node("Gather", [self.node("Shape", ["q"]), self.constant(2, i64)])
        places = self.node("Range", [self.constant(0, i64), length, self.constant(1, i64)])
        return self.node("LessOrEqual", [places, self.node("Unsqueeze", [places, self.constant([1], i64)])])


@pytest.mark.parametrize("kind", ("where", "added"))
@pytest.mark.parametrize("fill", (-1e4, -1e9, LOWEST))
def test_scores_below_the_fill(kind, fill, check):
    """Every row keeps a score, but those may be lower than the fill."""
    model = OpenModel(9, 9)
    model.qkv[0][:] = np.abs(model.qkv[0]) * 100
    model.qkv[1][:] = -np.abs(model.qkv[1]) * 100
    want = model.decomposed([(kind, "causal", fill)])
    check(model, model.proto(), want, against=False)


def test_wild(check):
    """A guard of NaN behind a mask of which a row is all -inf."""
    model = Model(8, 8)
    mask = np.zeros((1, 1, 8, 8), np.float32)
    mask[..., 3, :] = -INF
    want = model.decomposed([("add", mask)], NAN_ROWS)
    assert not want[:, :, 3].any()
    check(model, model.proto(), want)


def test_nan_scores(check):
    """NaN in a query: its own row is NaN, or what the guard makes of it."""
    for guard in (None, NAN_ROWS):
        model = Model(9, 37)
        model.qkv[0][0, 0, 4, 3] = np.nan
        model.qkv[1][1, 1, 20, 2] = INF
        want = model.decomposed([("scale", 0.25)], guard)
        assert np.isnan(want).any() == (guard is None)
        check(model, model.proto(), want)


@pytest.mark.parametrize("precision", ("fp16", "bf16"))
def test_small_types(precision, check):
    """The lowest float32 of a mask is none in a small type."""
    model = Model(21, 21, 4)
    mask = floats(random_mask(model.rng, 21, 21), LOWEST)
    want = model.decomposed([("scale", 0.25), ("add", mask)])
    check(model, model.proto(), want, against=False, precision=precision)


@pytest.mark.parametrize("kind", ("bool", "float"))
@pytest.mark.parametrize("causal", (0, 1))
@pytest.mark.parametrize("extra", ({}, {"softcap": 2.0}))
def test_operator(kind, causal, extra, check):
    """ONNX's operator: zeros for a query that may attend to no key."""
    model = Model(37, 37, 5)
    keep = random_mask(model.rng, 37, 37) & padding(37, 7)
    model.qkv[0][0, 0, 0, 3] = np.nan  # a row that the mask leaves nothing of
    mask = keep if kind == "bool" else floats(keep, -INF)
    model.input("m", mask)
    model.nodes.append(helper.make_node("Attention", ["q", "k", "v", "m"], ["y"], is_causal=causal, **extra))
    q, k, v = (x.astype(np.float64) for x in model.qkv)
    scores = q @ np.swapaxes(k, 2, 3) / 4
    if "softcap" in extra:
        scores = 2 * np.tanh(scores / 2)
    if causal:
        keep = keep & np.tril(np.ones((37, 37), bool))
    scores = np.where(keep, scores, -INF)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    want = e / np.where(total == 0, 1, total) @ v
    assert (want == 0).all(-1).any() and not np.isnan(want).any()
    # ONNX Runtime knows neither softcap with masks nor zeros for all of these.
    check(model, model.proto(opset=23), want, against=False)


@pytest.mark.parametrize("open_heads", (False, True))
@pytest.mark.parametrize("s, t, d, dv", ((1, 1, 16, 8), (1, 33, 33, 1), (1, 257, 80, 48), (5, 31, 16, 16)))
def test_heads_that_share_keys(s, t, d, dv, open_heads, check):
    """A row alone or some of them, where how many heads the keys have may be known at run time."""
    model = Model(s, t)
    model.feeds, model.infos = {}, []
    for name, shape in (("q", (2, 8, s, d)), ("k", (2, 2, t, d)), ("v", (2, 2, t, dv))):
        dims = [shape[0], "h" if open_heads and name != "q" else shape[1], *shape[2:]]
        model.input(name, model.rng.standard_normal(shape).astype(np.float32), dims)
    model.nodes.append(helper.make_node("Attention", ["q", "k", "v"], ["y"]))
    q, k, v = (model.feeds[name].astype(np.float64) for name in "qkv")
    scores = q @ np.swapaxes(np.repeat(k, 4, 1), 2, 3) / np.sqrt(d)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    want = e / e.sum(-1, keepdims=True) @ np.repeat(v, 4, 1)
    proto = model.proto(opset=23)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    check(model, proto, want, against=False)


def test_dynamic_left_padding(check):
    """A symbolic length, causal by ranges, padding on the left, guarded."""
    model = Model(21, 21, 3)
    steps = [("where", "causal", -INF), ("added", padding(21, 5), -INF)]
    want = model.decomposed(steps, NAN_ROWS)
    assert not want[0, :, :5].any() and want[0, :, 5:].all()
    proto = model.proto()
    # The ranges' limits come from the input's shape.
    del proto.graph.initializer[:]
    limits = {"c0": 0, "c1": None, "c2": 1, "c3": 0, "c4": None, "c5": 1}
    for weight in model.weights:
        if limits.get(weight.name, 0) is not None:
            proto.graph.initializer.append(weight)
    size = numpy_helper.from_array(np.array(2, np.int64), "axis")
    proto.graph.initializer.append(size)
    shape = [helper.make_node("Shape", ["q"], ["shape"])]
    shape += [helper.make_node("Gather", ["shape", "axis"], [name]) for name in ("c1", "c4")]
    nodes = shape + list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    for info in [*proto.graph.input, *proto.graph.output]:
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_value == 21:
                dim.dim_param = "s"
    check(model, proto, want)


class ShortModel(Model):
    """Keys and values lose their first row: with one row nothing is left."""

    def decomposed(self, steps, guard=None):
        q, k, v = self.qkv
        names = [self.constant([number], np.int64) for number in (1, np.iinfo(np.int64).max, 2)]
        for name in "kv":
            self.nodes.append(helper.make_node("Slice", [name, *names], [f"{name}_left"]))
        turned = self.node("Transpose", ["k_left"], perm=[0, 1, 3, 2])
        x, scores = self.node("MatMul", ["q", turned]), q @ np.swapaxes(k[:, :, 1:], 2, 3)
        for kind, number in steps:
            x = self.node({"scale": "Mul", "add": "Add"}[kind], [x, self.constant(number)])
            scores = scores * number if kind == "scale" else scores + number
        p = self.node("Softmax", [x], axis=-1)
        if guard == NAN_ROWS:
            p = self.node("Where", [self.node("IsNaN", [p]), self.constant(0), p])
        self.nodes.append(helper.make_node("MatMul", [p, "v_left"], ["y"]))
        e = np.exp(scores - scores.max(-1, keepdims=True, initial=-INF))
        return e / e.sum(-1, keepdims=True) @ v[:, :, 1:].astype(np.float64)

    def input(self, name, array, dims=None):
        open_size = dims or [array.shape[0], H, "t" if name in "kv" else array.shape[2], array.shape[3]]
        return super().input(name, array, open_size)


@pytest.mark.parametrize("t", (1, 2, 38))
@pytest.mark.parametrize("steps", ([], [("scale", 0.25), ("add", -1.0)]), ids=("plain", "scaled"))
@pytest.mark.parametrize("guard", (None, NAN_ROWS))
def test_no_keys(t, steps, guard, check):
    """A product over no keys is 0, whatever a softmax of nothing would be."""
    model = ShortModel(5, t, t)
    want = model.decomposed(steps, guard)
    assert (t > 1) == bool(want.any()) and not np.isnan(want).any()
    check(model, model.proto(), want)


@pytest.mark.parametrize("masks", ["alibi", "keys", "alibi keys causal", "causal inside", "windows keys"])
@pytest.mark.parametrize("open_sizes", [True, False])
def test_heads_in_batches(tmp_path, masks, open_sizes):
    """Products of [batch * heads, rows, columns], masks and softmax of [batch, heads, rows, columns] or of either, as
    exports of older models have it. One kernel."""
    batch, heads, rows, keys, width = 3, 4, 7, 11, 8
    rng = np.random.default_rng(len(masks))
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    feeds = {"q": draw(batch, rows, heads * width), "k": draw(batch, keys, heads * width), "v": draw(batch, keys, heads * width)}
    names = {"q": ["b", "s", heads * width], "k": ["b", "t", heads * width], "v": ["b", "t", heads * width]}
    constants = {"three": np.array([0, 0, heads, width]), "rest": np.array([-1]), "heads": np.array([heads]), "width": np.array([width])}
    nodes = []

    def node(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs.split(), [output], **attributes))

    for name, x in (("rows", "q"), ("keys", "k")):
        node("Shape", x, name, start=1, end=2)
        node("Concat", f"rest {name} width", f"{name}_shape", axis=0)
    node("Concat", "rest heads rows keys", "four", axis=0)
    node("Concat", "rest rows keys", "joined", axis=0)
    for x, shape in (("q", "rows_shape"), ("k", "keys_shape"), ("v", "keys_shape")):
        node("Reshape", f"{x} three", f"{x}_heads")
        node("Transpose", f"{x}_heads", f"{x}_first", perm=[0, 2, 1, 3])
        node("Reshape", f"{x}_first {shape}", f"{x}_joined")
    node("Transpose", "k_joined", "turned", perm=[0, 2, 1])
    node("MatMul", "q_joined turned", "scores")
    x = "scores"

    def add(name, value, dims):
        nonlocal x
        feeds[name], names[name] = value, dims
        node("Add", f"{x} {name}", f"with_{name}")
        x = f"with_{name}"

    causal = np.where(np.tri(rows, keys, keys - rows, dtype=bool), 0, -1e9).astype(np.float32)
    if "alibi" in masks:
        add("alibi", draw(batch * heads, 1, keys), ["bh", 1, "t"])
    if "inside" in masks:
        add("inside", causal[None], [1, "s", "t"])
    node("Reshape", f"{x} four", "scores4")
    x = "scores4"
    if "keys" in masks:
        add("padding", np.where(rng.random((batch, 1, 1, keys)) < 0.3, -1e9, 0).astype(np.float32), ["b", 1, 1, "t"])
    if masks.endswith("causal"):
        add("mask", causal[None, None], [1, 1, "s", "t"])
    if "windows" in masks:  # back before the softmax
        node("Reshape", f"{x} joined", "back")
        node("Softmax", "back", "p", axis=-1)
    else:
        node("Softmax", x, "p4", axis=-1)
        node("Reshape", "p4 joined", "p")
    node("MatMul", "p v_joined", "y")
    path = tmp_path / "m.onnx"
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, names[n] if open_sizes else v.shape) for n, v in feeds.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    weights = [numpy_helper.from_array(v, n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "heads", infos, outputs, weights)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), path)
    (want,) = onnxruntime.InferenceSession(path).run(None, feeds)
    harness.compile_model(path, tmp_path / "m.engine")
    (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path / "run")
    np.testing.assert_allclose(got, want, 1e-4, 1e-5)
    kernels = harness.invoke("inspect", tmp_path / "m.engine", "--kernels").stdout
    assert "attention" in kernels and "softmax" not in kernels, kernels
