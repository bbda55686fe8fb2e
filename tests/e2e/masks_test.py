"""Masks that a model computes, at half precision: their lowest numbers are none of fp16.

Results are compared with NumPy in fp32. Rows that keep nothing give what the model
says: the mean of values under a finite fill, whatever the precision.
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnx_graph
import pytest
from onnx import TensorProto, helper

B, H, S, T, D = 2, 2, 9, 21, 16
LOWEST = float(np.finfo(np.float32).min)
FILLS = (LOWEST, -1e9, -1e4, -65504.0)
TYPES = {np.bool_: TensorProto.BOOL, np.int64: TensorProto.INT64, np.float32: TensorProto.FLOAT}


class Model(onnx_graph.Model):
    """Its inputs are given, and it has any number of outputs."""

    def __init__(self):
        super().__init__(opset=18, seed=7)

    def input(self, name, array):
        self.feeds[name] = array
        kind = TYPES[array.dtype.type]
        self.infos.append(helper.make_tensor_value_info(name, kind, array.shape))
        return name

    def outputs(self, **shapes):
        """Each output is named as the value it repeats."""
        made = []
        for name, shape in shapes.items():
            made.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        graph = helper.make_graph(self.nodes, "masks", self.infos, made, self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def keeps(model):
    """[B, 1, S, T], with rows that keep nothing."""
    keep = model.rng.random((B, 1, S, T)) < 0.6
    keep[:, :, ::4] = False
    return keep


def inverted(model, name, dtype):
    """(1 - m) in fp32, as exporters write it."""
    if dtype == np.bool_:
        return model.node("Cast", model.node("Not", name), to=TensorProto.FLOAT)
    if dtype == np.int64:
        name = model.node("Cast", name, to=TensorProto.FLOAT)
    return model.node("Sub", model.constant(1), name)


def computed(model, keep, fill, dtype):
    """(1 - m) * fill"""
    name = model.input("m", keep.astype(dtype))
    mask = model.node("Mul", inverted(model, name, dtype), model.constant(fill))
    return mask, (~keep).astype(np.float32) * np.float32(fill)


def chosen(model, keep, fill, dtype):
    """Where(1 - m, fill, 1 - m), as T5 and BERT's later exports write it."""
    away = inverted(model, model.input("m", keep.astype(dtype)), dtype)
    condition = model.node("Cast", away, to=TensorProto.BOOL)
    mask = model.node("Where", condition, model.constant(fill), away)
    return mask, np.where(keep, np.float32(0), np.float32(fill))


def twice(model, keep, fill, dtype):
    """Two masks, of which the sum is lower than either."""
    mask, value = computed(model, keep, fill, dtype)
    left = np.ones((B, 1, 1, T), np.float32)
    left[..., :4] = 0
    other = model.node("Sub", model.constant(1), model.input("left", left))
    other = model.node("Mul", other, model.constant(fill))
    with np.errstate(over="ignore"):
        return model.node("Add", mask, other), value + (1 - left) * np.float32(fill)


def as_is(model, keep, fill, dtype):
    """The mask is an input."""
    value = np.where(keep, np.float32(0), np.float32(fill))
    return model.input("m", value), value


def stored(model, keep, fill, dtype):
    """The mask is a weight of the model, of which a part is used."""
    value = np.where(keep, np.float32(0), np.float32(fill))
    larger = np.concatenate([value, value], -1)
    name = model.node("Slice", model.constant(larger), *(model.constant([x], np.int64) for x in (0, T, 3)))
    return name, value


MASKS = {m.__name__: m for m in (computed, chosen, twice, as_is, stored)}


def attention(build, fill, dtype, form):
    model = Model()
    keep = keeps(model)
    q, k, v = (model.rng.standard_normal((B, H, n, D)).astype(np.float32) for n in (S, T, T))
    for name, array in zip("qkv", (q, k, v)):
        model.input(name, array)
    scores = model.node("MatMul", "q", model.node("Transpose", "k", perm=[0, 1, 3, 2]))
    mask, value = build(model, keep, fill, dtype)
    scale = np.float32(0.25)
    with np.errstate(over="ignore", invalid="ignore"):
        x = (q @ np.swapaxes(k, 2, 3)) * scale + value
        e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True).astype(np.float64))
        p = e / e.sum(-1, keepdims=True)
    x = model.node("Add", model.node("Mul", scores, model.constant(scale)), mask)
    probabilities = model.node("Softmax", x, axis=-1)
    if form == "probabilities":
        model.nodes[-1].output[0] = "y"
        return model, model.outputs(y=p.shape), p
    model.node("MatMul", probabilities, "v")
    model.nodes[-1].output[0] = "y"
    return model, model.outputs(y=v.shape[:2] + (S, D)), p @ v


def check(model, proto, want, folder, device, *, limit=1e-2):
    """`want`: of the output y, or of each output."""
    wanted = want if isinstance(want, dict) else {"y": want}
    path, engine = folder / "model.onnx", folder / "model.engine"
    onnx.save(proto, path)
    target, dump = ("cpu", None) if device == "cpu" else ("sm_90", folder / "dump")
    harness.compile_model(path, engine, target=target, precision="fp16", dump=dump)
    values = harness.run_engine(
        engine, model.feeds, list(wanted), folder / "run", device=device, dump=dump
    )
    for (name, want), got in zip(wanted.items(), values):
        assert np.array_equal(np.isnan(got), np.isnan(want)), name
        np.testing.assert_allclose(got, want, atol=limit / 2, rtol=limit, err_msg=name)


CASES = [
    (mask, dtype)
    for mask in MASKS
    for dtype in (TYPES if mask not in ("as_is", "stored") else [np.float32])
]


@pytest.mark.parametrize("form", ("attention", "probabilities"))
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("mask, dtype", CASES)
def test_cpu(mask, dtype, fill, form, tmp_path):
    model, proto, want = attention(MASKS[mask], fill, dtype, form)
    check(model, proto, want, tmp_path, "cpu")


@pytest.mark.parametrize("form", ("attention", "probabilities"))
@pytest.mark.parametrize("mask", ("chosen", "stored"))
def test_infinite(mask, form, tmp_path):
    """Rows that keep nothing give NaN, as the model does."""
    model, proto, want = attention(MASKS[mask], -np.inf, np.float32, form)
    assert np.isnan(want).any()
    check(model, proto, want, tmp_path, "cpu")


@pytest.mark.parametrize("form", ("attention", "probabilities"))
@pytest.mark.parametrize(
    "mask, dtype, fill",
    [
        ("computed", np.float32, LOWEST), ("computed", np.int64, -1e4),
        ("twice", np.bool_, -1e9), ("as_is", np.float32, LOWEST),
    ],
)  # fmt: skip
def test_gpu(mask, dtype, fill, form, tmp_path):
    model, proto, want = attention(MASKS[mask], fill, dtype, form)
    check(model, proto, want, tmp_path, "simt")


def kept(model, keep, dtype):
    """1 for what is kept, as a value of the model; no dtype: a weight."""
    if dtype is None:
        return model.constant(keep.astype(np.float32))
    name = model.input("m", keep.astype(dtype))
    return name if dtype == np.float32 else model.node("Cast", name, to=TensorProto.FLOAT)


def divided(model, keep, dtype):
    """(1 - m) / -1e-9"""
    away = model.node("Sub", model.constant(1), kept(model, keep, dtype))
    value = (~keep).astype(np.float32) / np.float32(-1e-9)
    return model.node("Div", away, model.constant(-1e-9)), value


def raised(model, keep, dtype):
    """-(1000 (1 - m)) ** 3"""
    away = model.node("Sub", model.constant(1), kept(model, keep, dtype))
    large = model.node("Mul", away, model.constant(1000))
    mask = model.node("Neg", model.node("Pow", large, model.constant(3)))
    return mask, np.where(keep, np.float32(0), np.float32(-1e9))


def logarithm(model, keep, dtype):
    """log m: what is not kept is infinitely far away."""
    value = np.where(keep, np.float32(0), np.float32(-np.inf))
    return model.node("Log", kept(model, keep, dtype)), value


@pytest.mark.parametrize("form", ("attention", "probabilities"))
@pytest.mark.parametrize("dtype", (None, *TYPES))
@pytest.mark.parametrize("mask", (divided, raised, logarithm))
def test_made_otherwise(mask, dtype, form, tmp_path):
    """By operators of which no range is known, from weights, integers and inputs."""
    model, proto, want = attention(
        lambda model, keep, fill, dtype: mask(model, keep, dtype), 0, dtype, form
    )
    assert np.isnan(want).any() == (mask is logarithm)
    check(model, proto, want, tmp_path, "cpu")


READERS = {
    "returned": (lambda model, m: model.node("Identity", m), lambda m: m),
    "reduced": (
        lambda model, m: model.node("ReduceMin", m, model.constant([3], np.int64), keepdims=0),
        lambda m: m.min(3),
    ),
    "bounded": (lambda model, m: model.node("Max", m, model.constant(-1)), lambda m: np.maximum(m, -1)),
    "contracted": (
        lambda model, m: model.node(
            "Exp", model.node("MatMul", m, model.constant(np.ones((T, 3), np.float32)))
        ),
        lambda m: np.exp((m @ np.ones((T, 3), np.float32))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ("attention", "probabilities"))
@pytest.mark.parametrize("reader", READERS)
def test_other_readers(reader, form, tmp_path):
    """A mask that is an input and has a reader beside the softmax."""
    model, _, want = attention(as_is, LOWEST, np.float32, form)
    build, compute = READERS[reader]
    build(model, "m")
    model.nodes[-1].output[0] = "z"
    with np.errstate(over="ignore"):
        other = compute(model.feeds["m"])
    proto = model.outputs(y=want.shape, z=other.shape)
    check(model, proto, {"y": want, "z": other}, tmp_path, "cpu")


def far_stored(model, keep, fill, dtype):
    """A bias with a large common part, at which a small type has steps of 1."""
    value = (1400 + 3 * model.rng.random((1, H, S, T))).astype(np.float32)
    return model.constant(value), value


def far_product(model, keep, fill, dtype):
    """The same of two weights, neither of which is large."""
    a, b = (30 + model.rng.random(shape) for shape in ((1, H, 1, T), (1, 1, S, T)))
    a, b = a.astype(np.float32), b.astype(np.float32)
    return model.node("Mul", model.constant(a), model.constant(b)), a * b


@pytest.mark.parametrize("form", ("attention", "probabilities"))
@pytest.mark.parametrize("bias", (far_stored, far_product))
def test_far_biases(bias, form, tmp_path):
    """What is added to scores is not rounded by what a softmax feels."""
    model, proto, want = attention(bias, 0, np.float32, form)
    check(model, proto, want, tmp_path, "cpu", limit=1e-2)


@pytest.mark.parametrize("device", ("cpu", "simt"))
def test_windows_of_images(device, tmp_path):
    """Windows of images that share masks (Swin's): those are added in the shape of images, a bias of
    each head in that of windows, and one kernel computes it all."""
    images, windows = 3, 2
    model, n = Model(), images * windows
    q, k, v = (model.rng.standard_normal((n, H, S, D)).astype(np.float32) for _ in "qkv")
    for name, value in zip("qkv", (q, k, v)):
        model.input(name, value)
    bias = model.rng.standard_normal((1, H, S, S)).astype(np.float32)
    away = np.where(model.rng.random((1, windows, 1, S, S)) < 0.3, -100, 0).astype(np.float32)
    shape = lambda *sizes: model.constant(sizes, np.int64)
    scores = model.node("MatMul", "q", model.node("Transpose", "k", perm=[0, 1, 3, 2]))
    x = model.node("Add", scores, model.constant(bias))
    x = model.node("Reshape", x, shape(images, windows, H, S, S))
    x = model.node("Add", x, model.constant(away))
    x = model.node("Softmax", model.node("Reshape", x, shape(n, H, S, S)), axis=-1)
    model.node("MatMul", x, "v")
    model.nodes[-1].output[0] = "y"
    mask = np.broadcast_to(away, (images, windows, 1, S, S)).reshape(n, 1, S, S)
    e = q @ np.swapaxes(k, 2, 3) + bias + mask
    e = np.exp(e - e.max(-1, keepdims=True))
    want = e / e.sum(-1, keepdims=True) @ v
    check(model, model.outputs(y=v.shape), want, tmp_path, device)
    kernels = harness.invoke("inspect", tmp_path / "model.engine", "--kernels").stdout
    assert " attention" in kernels and "softmax" not in kernels
