"""Concatenations of what kernels compute: these store it where it belongs. On the CPU, and for a GPU thread by thread by
charonia-simt, with memory that is filled with NaN where a value's life begins."""

from __future__ import annotations

import json

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from branches import Graph, inception
from simt_orders import ORDERS, save_of_batch


def fire():
    """Squeeze and two expansions, of channels that fill no tile."""
    g = Graph(1, [2, 19, 9, 7])
    x, channels = "x", 19
    for left, right in ((16, 24), (33, 7), (5, 64)):
        s = g.conv(x, channels, 8)
        x, channels = g.add("Concat", g.conv(s, 8, left), g.conv(s, 8, right, 3), axis=1), left + right
    return g.model(x)


def unet():
    """What goes on is read once more, beside what comes back."""
    g = Graph(2, [1, 3, 16, 24])
    one = g.conv("x", 3, 12, 3)
    two = g.conv(g.add("MaxPool", one, kernel_shape=[2, 2], strides=[2, 2]), 12, 20, 3)
    low = g.conv(g.add("MaxPool", two, kernel_shape=[2, 2], strides=[2, 2]), 20, 40, 3)
    scales = g.weight(np.array([1, 1, 2, 2], np.float32))
    up = lambda x: g.add("Resize", x, "", scales, mode="linear")
    x = g.conv(g.add("Concat", two, up(low), axis=1), 60, 24, 3)
    x = g.conv(g.add("Concat", one, up(x), axis=1), 36, 8, 3)
    return g.model(x)


def halves():
    """Both halves of an image and what is computed of the second one, as detectors have it."""
    g = Graph(3, [1, 24, 10, 10])
    y = g.conv("x", 24, 32)
    first, second = (g.add("Slice", y, *(g.weight(np.array([n])) for n in at)) for at in ((0, 16, 1), (16, 32, 1)))
    third = g.conv(g.conv(second, 16, 16, 3), 16, 16, 3)
    x = g.conv(g.add("Concat", first, second, third, axis=1), 48, 20)
    # In another order, and not all of it.
    some = g.add("Slice", y, *(g.weight(np.array([n])) for n in (3, 10, 1)))
    return g.model(x, g.add("Concat", second, third, some, axis=1))


def products():
    """Along each dimension, of products that have other shapes on the way; returned, and read by others."""
    g = Graph(4, [6, 10, 40])
    a, b, c = (g.gemm("x", 40, n) for n in (24, 33, 64))
    last = g.add("Concat", a, b, c, axis=2)
    long = g.add("Concat", g.gemm("x", 40, 16), g.gemm(g.add("Tanh", c), 64, 16), axis=1)
    images = g.add("Concat", g.gemm("x", 40, 16), g.add("Softmax", g.gemm("x", 40, 16), axis=2), axis=0)
    shape = g.weight(np.array([6, 2, 5, 33]))
    folded = g.add("Concat", g.add("Reshape", b, shape), g.add("Relu", g.add("Reshape", b, shape)), axis=3)
    return g.model(last, long, images, b, folded)


def nested():
    """Joined values that are joined, one value twice, an input, rows of a reduction."""
    g = Graph(5, [4, 6, 32])
    a, b = g.gemm("x", 32, 16), g.gemm("x", 32, 8)
    inner = g.add("Concat", a, b, axis=2)
    outer = g.add("Concat", inner, g.gemm(b, 8, 24), a, a, axis=2)
    mean = g.add("ReduceMean", "x", g.weight(np.array([2])), keepdims=1)
    most = g.add("ReduceMax", g.gemm("x", 32, 48), g.weight(np.array([2])), keepdims=1)
    return g.model(outer, g.add("Concat", mean, most, axis=2), g.add("Concat", "x", g.gemm("x", 32, 40), axis=2))


def itself():
    """A value beside what is computed of it: by no kernel may it be read where it has been stored for the caller."""
    g = Graph(6, [6, 8, 20])
    cut = lambda x, *at: g.add("Slice", x, *(g.weight(np.array([n])) for n in at))
    # Of values of their own, since products of one would be one.
    a, b, c, d, e = (g.gemm(g.add(f, "x"), 20, 12) for f in ("Tanh", "Sigmoid", "Relu", "Neg", "Abs"))
    back = g.add("Concat", a, cut(a, -1, -100, 2, -1), axis=2)
    rows = g.add("Concat", cut(b, -1, -100, 1, -1), b, axis=2)
    half = g.gemm(g.add("Concat", c, cut(c, 0, 100, 2, 2), axis=2), 18, 7)
    pair = g.add("Reshape", d, g.weight(np.array([6, 8, 2, 6])))
    turned = g.add("Transpose", pair, perm=[1, 0, 2, 3])
    square = g.add("Concat", cut(pair, 0, 6, 1, 1), cut(turned, 0, 6, 0, 1), axis=3)
    # Around its middle, nothing else reads it.
    around = g.add("Concat", cut(e, 5, 12, 2, 1), g.add("Tanh", a), cut(e, 0, 5, 2, 1), axis=2)
    return g.model(back, rows, half, square, around)


def pieces():
    """More slices of one value than a kernel has results."""
    g = Graph(7, [5, 64])
    a, b = g.gemm("x", 64, 48), g.gemm("x", 64, 16)
    cut = lambda x, n: g.add("Slice", x, *(g.weight(np.array([at])) for at in (n, n + 4, 1)))
    return g.model(g.add("Concat", *(cut(a, n) for n in range(44, -4, -4)), b, axis=1), b)


def shifted():
    """A window that moves on: what is left of it and what is new, of the same length as before, of rows that fill no tile."""
    g = Graph(9, [13, 33])
    cut = lambda x, *at: g.add("Slice", x, *(g.weight(np.array([n])) for n in at))
    h, new = g.gemm("x", 33, 40), g.gemm(g.add("Tanh", "x"), 33, 8)
    left, right = g.add("Concat", cut(h, 8, 40, 1, 1), new, axis=1), g.add("Concat", new, cut(h, 0, 32, 1, 1), axis=1)
    middle = g.add("Concat", cut(new, 0, 3, 1, 1), cut(h, 3, 35, 1, 1), cut(new, 3, 8, 1, 1), axis=1)
    return g.model(left, right, middle, g.add("Concat", cut("x", 5, 33, 1, 1), g.gemm("x", 33, 5), axis=1), h)


MODELS = dict(shifted=shifted, itself=itself, pieces=pieces, fire=fire, unet=unet, halves=halves, products=products, nested=nested, inception=inception)
# Kernels that still join something: in float32 those that transpose it for the caller, in float16 those that convert it, too.
LEFT = dict(shifted=(0, 4), itself=(1, 4), pieces=(1, 1), fire=(1, 1), unet=(0, 0), halves=(1, 1), products=(0, 4), nested=(0, 2), inception=(1, 1))


def joins(engine) -> int:
    result = harness.invoke("inspect", engine, "--json")
    assert result.kind == "ok", result
    kernels = json.loads(result.stdout)["programs"][0]["kernels"]
    return sum(any(op.startswith("concat") for op in kernel["ops"]) for kernel in kernels)


def check(tmp_path, model: onnx.ModelProto, target, precision, limit, batch=0) -> int:
    """How many kernels join, once all values are right."""
    path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
    shape, shapes = save_of_batch(model, path, batch)
    is_gpu = target.startswith("sm_")
    extra = dict(dump=dump) if is_gpu else {}
    harness.compile_model(path, engine, target=target, precision=precision, shapes=shapes, **extra)
    x = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    names = [o.name for o in model.graph.output]
    wants = onnxruntime.InferenceSession(path).run(names, {"x": x})
    for seed, copies in ORDERS if is_gpu else ORDERS[:1]:
        order = dict(device="simt", dump=dump, extra=["--seed", str(seed), "--copies", copies]) if is_gpu else {}
        for got, want in zip(harness.run_engine(engine, {"x": x}, names, tmp_path / "run", **order), wants):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=0, atol=limit * np.abs(want).max())
    return joins(engine)


@pytest.mark.parametrize("target, precision, limit", [
    ("cpu", "fp32", 1e-5), ("sm_90a", "fp16", 6e-3), ("sm_80", "fp32", 1e-4),
])  # fmt: skip
@pytest.mark.parametrize("name", MODELS)
def test_joined(tmp_path, name, target, precision, limit):
    assert check(tmp_path, MODELS[name](), target, precision, limit) == LEFT[name][precision == "fp16"]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", ["unet", "halves", "inception"])
def test_open_batch(tmp_path, name, target, batch):
    assert check(tmp_path, MODELS[name](), target, "fp32", 1e-4, batch) == LEFT[name][0]


def test_tuned(tmp_path):
    """What a kernel leaves of a larger value is none of its results."""
    model, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(unet(), model)
    extra = ["--tune=20", "--tuning-cache", tmp_path / "tuning"]
    result = harness.invoke("compile", model, "-o", engine, "--target", "cpu", *extra)
    assert result.kind == "ok" and "mistake" not in result.stderr, result
    assert "tuned" in result.stderr + result.stdout, result


def lengths():
    """Of two open lengths side by side, along the first and along the last dimension."""
    g = Graph(8, ["n", 24])
    a, b = g.gemm("x", 24, 24), g.add("Tanh", g.gemm("x", 24, 24))
    t = lambda x: g.add("Transpose", x, perm=[1, 0])
    long = g.add("Concat", a, b, g.add("Relu", a), axis=0)
    wide = g.add("Concat", g.add("Softmax", t(a), axis=0), t(b), axis=1)
    return g.model(long, wide, g.gemm(long, 24, 5))


@pytest.mark.parametrize("rows", [1, 7, 64, 130])
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_open_lengths(tmp_path, target, rows):
    path, engine, dump = (tmp_path / n for n in ("m.onnx", "m.engine", "dump"))
    onnx.save(lengths(), path)
    is_gpu = target.startswith("sm_")
    extra = dict(dump=dump) if is_gpu else {}
    harness.compile_model(path, engine, target=target, shapes={"x": ["1..16..200", 24]}, **extra)
    x = np.random.default_rng(rows).standard_normal((rows, 24)).astype(np.float32)
    names = ["y", "y1", "y2"]
    wants = onnxruntime.InferenceSession(path).run(names, {"x": x})
    for seed, copies in ORDERS if is_gpu else ORDERS[:1]:
        order = dict(device="simt", dump=dump, extra=["--seed", str(seed), "--copies", copies]) if is_gpu else {}
        for got, want in zip(harness.run_engine(engine, {"x": x}, names, tmp_path / "run", **order), wants):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())
