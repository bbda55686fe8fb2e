"""Attention with any number of batch dimensions, in any order, shape and place on the way through it: each is one kernel
and gives what NumPy does.

    pytest attention_batches_test.py --device simt --precision fp16     GPU kernels without a GPU
"""

from __future__ import annotations

import shutil

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

# What a result may differ by, of values about 1.
ALLOWED = {"fp32": 2e-5, "fp16": 2e-2}


class Model:
    """Nodes of a model, and the same in NumPy: a tensor is its name and its value."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.feeds = [], [], {}

    def input(self, *shape):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = self.rng.standard_normal(shape).astype(np.float32)
        return name, self.feeds[name].astype(np.float64)

    def weight(self, value):
        value = np.asarray(value)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name, value.astype(np.float64) if value.dtype == np.float32 else value

    def draw(self, *shape):
        return self.weight(self.rng.standard_normal(shape).astype(np.float32))

    def node(self, op, operands, value, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [name for name, _ in operands], [name], **attributes))
        return name, value

    def einsum(self, equation, *operands):
        return self.node("Einsum", operands, np.einsum(equation, *(v for _, v in operands)), equation=equation)

    def product(self, a, b):
        return self.node("MatMul", [a, b], a[1] @ b[1])

    def turn(self, x, *order):
        return self.node("Transpose", [x], x[1].transpose(order), perm=order)

    def swap(self, x):
        rank = x[1].ndim
        return self.turn(x, *range(rank - 2), rank - 1, rank - 2)

    def shape(self, x, *dims):
        return self.node("Reshape", [x, self.weight(np.array(dims, np.int64))], x[1].reshape(dims))

    def repeat(self, x, *dims):
        return self.node("Expand", [x, self.weight(np.array(dims, np.int64))], np.broadcast_to(x[1], dims))

    def add(self, a, b):
        return self.node("Add", [a, b], a[1] + b[1])

    def mul(self, a, b):
        return self.node("Mul", [a, b], a[1] * b[1])

    def div(self, a, b):
        return self.node("Div", [a, b], a[1] / b[1])

    def scale(self, x, factor):
        return self.mul(x, self.weight(np.float32(factor)))

    def keep(self, x, condition, fill):
        low = self.weight(np.float32(fill))
        return self.node("Where", [self.weight(condition), x, low], np.where(condition, x[1], np.float64(np.float32(fill))))

    def softmax(self, x, axis=-1):
        e = np.exp(x[1] - x[1].max(axis, keepdims=True))
        return self.node("Softmax", [x], e / e.sum(axis, keepdims=True), axis=axis)

    def heads(self, x, order, *dims):
        """[..., tokens, heads * width] of a projection as the heads' own."""
        return self.turn(self.shape(x, *dims), *order)

    def proto(self, result):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            [*self.nodes, helper.make_node("Identity", [result[0]], ["y"])], "batches",
            [info(n, TensorProto.FLOAT, v.shape) for n, v in self.feeds.items()],
            [info("y", TensorProto.FLOAT, result[1].shape)], self.weights,
        )  # fmt: skip
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


B, W = 2, 3


def qkv(m, h, n, d, lead=(B, W)):
    return [m.input(*lead, h, n, d) for _ in range(3)]


def maxvit(m, h, n, d):
    """Windows, heads; the scale on keys; a bias that windows share."""
    q, k, v = qkv(m, h, n, d)
    scores = m.einsum("bghid,bghjd->bghij", q, m.scale(k, d**-0.5))
    return m.einsum("bghij,bghjd->bghid", m.softmax(m.add(scores, m.draw(1, h, n, n))), v)


def projected(m, h, n, d):
    """Heads of one projection each, whose scales are on both sides."""
    q, k, v = (m.input(B, W, n, h * d) for _ in range(3))
    q = m.heads(m.scale(q, 0.5), (0, 1, 3, 2, 4), B, W, n, h, d)
    k = m.heads(m.scale(k, 0.4), (0, 1, 3, 4, 2), B, W, n, h, d)
    y = m.product(m.softmax(m.product(q, k)), m.heads(v, (0, 1, 3, 2, 4), B, W, n, h, d))
    return m.shape(m.turn(y, 0, 1, 3, 2, 4), B, W, n, h * d)


def windows_and_heads(m, h, n, d):
    """A bias of each head and one of each window, which images share."""
    q, k, v = qkv(m, h, n, d)
    scores = m.add(m.scale(m.product(q, m.swap(k)), 0.3), m.draw(h, n, n))
    return m.product(m.softmax(m.add(scores, m.draw(W, 1, n, n))), v)


def images_and_heads(m, h, n, d):
    q, k, v = qkv(m, h, n, d)
    keep = m.rng.random((B, 1, 1, 1, n)) < 0.7
    keep[..., 0] = True
    scores = m.add(m.product(m.scale(q, 0.3), m.swap(k)), m.draw(h, n, 1))
    return m.product(m.softmax(m.keep(scores, keep, -np.inf)), v)


def middle(m, h, n, d):
    """What is added is of the dimension in the middle alone."""
    q, k, v = qkv(m, h, n, d)
    return m.product(m.softmax(m.add(m.product(q, m.swap(k)), m.draw(1, W, 1, n, n))), v)


def six(m, h, n, d):
    q, k, v = qkv(m, h, n, d, (B, 2, W))
    scores = m.add(m.scale(m.product(q, m.swap(k)), 0.3), m.draw(2, 1, 1, n, n))
    return m.product(m.softmax(scores), v)


def causal(m, h, n, d):
    q, k, v = qkv(m, h, n, d)
    scores = m.scale(m.product(q, m.swap(k)), 0.3)
    return m.product(m.softmax(m.keep(scores, np.tril(np.ones((n, n), bool)), -np.inf)), v)


def grouped(m, h, n, d):
    """Queries in groups that share keys and values."""
    q, k, v = m.input(B, W, h, n, d), m.input(B, W, 1, n + 3, d), m.input(B, W, 1, n + 3, d)
    return m.product(m.softmax(m.scale(m.product(q, m.swap(k)), 0.3)), v)


def shared_windows(m, h, n, d):
    """Windows of an image share its keys and values."""
    q, k, v = m.input(B, W, h, n, d), m.input(B, 1, h, n + 3, d), m.input(B, 1, h, n + 3, d)
    return m.product(m.softmax(m.scale(m.product(q, m.swap(k)), 0.3)), v)


def shared_queries(m, h, n, d):
    q, k, v = m.input(h, n, d), m.input(B, W, h, n, d), m.input(B, W, h, n, d)
    return m.product(m.softmax(m.scale(m.product(q, m.swap(k)), 0.3)), v)


def shared_scores(m, h, n, d):
    """Scores of one image for the values of all, which repeat them."""
    q, k, v = m.input(h, n, d), m.input(h, n, d), m.input(B, h, n, d)
    p = m.softmax(m.scale(m.product(q, m.swap(k)), 0.3))
    return m.product(m.repeat(p, B, h, n, n), v)


def channels_first(m, h, n, d):
    """Values on the left of turned probabilities."""
    q, k, v = (m.input(B, h, d, n) for _ in range(3))
    return m.product(v, m.swap(m.softmax(m.scale(m.product(m.swap(q), k), 0.3))))


def keys_first(m, h, n, d):
    """Scores of keys by queries, and a softmax along the keys all the same."""
    q, k, v = (m.input(B, h, n, d) for _ in range(3))
    p = m.softmax(m.scale(m.product(k, m.swap(q)), 0.3), axis=-2)
    return m.product(m.swap(p), v)


def rows_before_heads(m, h, n, d):
    """Scores [batch, row, head, column], and what is added to them."""
    q, k, v = (m.input(B, W, n, h, d) for _ in range(3))
    scores = m.einsum("bgihd,bgjhd->bgihj", q, m.scale(k, 0.3))
    return m.einsum("bgihj,bgjhd->bgihd", m.softmax(m.add(scores, m.draw(1, n, h, n))), v)


def heads_first(m, h, n, d):
    """The softmax has its dimensions in another order than the products, and a bias of each."""
    q, k, v = qkv(m, h, n, d)
    scores = m.add(m.product(q, m.swap(m.scale(k, 0.3))), m.draw(W, h, n, 1))
    p = m.softmax(m.add(m.turn(scores, 2, 0, 1, 3, 4), m.draw(h, 1, 1, n, n)))
    return m.product(m.turn(p, 1, 2, 0, 3, 4), v)


def merged(m, h, n, d):
    """Products of one batch dimension, a softmax of three."""
    q, k, v = (m.input(B * W * h, n, d) for _ in range(3))
    scores = m.add(m.scale(m.product(q, m.swap(k)), 0.3), m.draw(B * W * h, 1, n))
    p = m.softmax(m.add(m.shape(scores, B, W, h, n, n), m.draw(h, n, n)))
    return m.product(m.shape(p, B * W * h, n, n), v)


def places(m, h, n, d):
    """Rows and columns of an image, each of which has a bias, seen apart on the way."""
    q, k, v = (m.input(B * h, 2 * n, d) for _ in range(3))
    scores = m.shape(m.product(q, m.swap(k)), B * h, 2, n, 2, n)
    scores = m.add(m.add(scores, m.draw(B * h, 2, n, 2, 1)), m.draw(B * h, 2, n, 1, n))
    return m.product(m.softmax(m.shape(scores, B * h, 2 * n, 2 * n)), v)


def cosine(m, h, n, d):
    """A factor of each head, and what scores of a row are divided by."""
    q, k, v = qkv(m, h, n, d)
    some = lambda *shape: m.weight(m.rng.uniform(0.5, 2, shape).astype(np.float32))
    scores = m.div(m.mul(m.product(q, m.swap(k)), some(h, 1, 1)), some(n, 1))
    return m.product(m.softmax(m.add(scores, m.draw(h, n, n))), v)


def bias_product(m, h, n, d):
    """A bias that is made by a product of its own, on the left."""
    q, k, v = qkv(m, h, n, d)
    bias = m.turn(m.shape(m.product(m.input(n * n, 5), m.draw(5, h)), n, n, h), 2, 0, 1)
    return m.product(m.softmax(m.add(bias, m.scale(m.product(q, m.swap(k)), 0.3))), v)


FORMS = [
    maxvit, projected, windows_and_heads, images_and_heads, middle, six, causal, grouped, shared_windows, shared_queries,
    shared_scores, channels_first, keys_first, rows_before_heads, heads_first, merged, places, cosine, bias_product,
]  # fmt: skip
# Heads, tokens, width.
SIZES = [(1, 7, 8), (4, 49, 32), (2, 65, 40), (3, 1, 8), (2, 7, 32), (1, 49, 40), (2, 50, 8)]


def graph_of(path):
    """The model once attention is recognized."""
    result = harness.invoke("compile", path, "--stop-after", "recognize")
    assert result.code == 0, result.message
    return result.stdout


@pytest.fixture
def check(request, tmp_path):
    """Compiles and runs a model as --device and --precision say."""
    simt = request.config.getoption("--device") == "simt"
    precision = request.config.getoption("--precision")

    def check(form, sizes):
        model = Model(sum(sizes))
        result = form(model, *sizes)
        path, engine = tmp_path / "model.onnx", tmp_path / "model.engine"
        onnx.save(model.proto(result), path)
        graph = graph_of(path)
        assert graph.count("graph.attention ") == 1 and "graph.softmax" not in graph
        dump = tmp_path / "dump" if simt else None
        shutil.rmtree(tmp_path / "dump", ignore_errors=True)
        harness.compile_model(path, engine, target="sm_90a" if simt else "cpu", precision=precision, dump=dump)
        got = harness.run_engine(
            engine, model.feeds, ["y"], tmp_path, device="simt" if simt else "cpu", dump=dump,
            extra=["--seed", "3", "--copies", "seeded"] if simt else [],
        )[0]  # fmt: skip
        np.testing.assert_allclose(got, result[1], rtol=2e-4, atol=ALLOWED[precision], err_msg=f"{form.__name__} {sizes}")

    return check


@pytest.mark.parametrize("form", FORMS)
def test_form(form, check):
    # The sizes take turns, so that every form meets three of them.
    first = FORMS.index(form)
    for i in range(3):
        check(form, SIZES[(first + 2 * i) % len(SIZES)])


def test_others(tmp_path):
    """What has another meaning, or cannot be seen not to, stays as it is: rows that become part of other dimensions,
    factors of single scores, a softmax of something else than keys."""

    def tangled(m):
        q, k, v = (m.input(4, 6, 8) for _ in range(3))
        p = m.softmax(m.shape(m.product(q, m.swap(k)), 6, 4, 6))
        return m.product(m.shape(p, 4, 6, 6), v)

    def gated(m):
        q, k, v = (m.input(4, 6, 8) for _ in range(3))
        return m.product(m.softmax(m.mul(m.product(q, m.swap(k)), m.draw(6, 6))), v)

    def along_rows(m):
        q, k, v = (m.input(4, 6, 8) for _ in range(3))
        return m.product(m.softmax(m.product(q, m.swap(k)), axis=-2), v)

    def along_heads(m):
        q, k, v = (m.input(6, 6, 8) for _ in range(3))
        return m.product(m.softmax(m.product(q, m.swap(k)), axis=0), v)

    for form in (tangled, gated, along_rows, along_heads):
        model = Model(1)
        onnx.save(model.proto(form(model)), tmp_path / "model.onnx")
        graph = graph_of(tmp_path / "model.onnx")
        assert "graph.attention" not in graph and "graph.softmax" in graph, form.__name__
