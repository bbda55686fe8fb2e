"""Attention with wide heads, whose tiles have to fit into the shared memory of a chip, run by charonia-simt."""

from __future__ import annotations

import re

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from simt_orders import ORDERS, in_orders

LIMITS = {"fp32": 1e-5, "tf32": 2e-3, "fp16": 2e-3, "bf16": 1e-2, "f64": 1e-13}
# Precisions of --precision; a model of f64 stays that.
FLAGS = {"f64": "fp32"}


def attention(q, k, v, how="", mask=None):
    """The reference, in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(2, 3) * q.shape[3] ** -0.5
    if how == "causal":
        rows, keys = scores.shape[2:]
        scores = np.where(np.arange(keys) <= np.arange(rows)[:, None], scores, -np.inf)
    if mask is not None:
        scores = scores + mask
    p = np.exp(scores - scores.max(axis=3, keepdims=True))
    return p / p.sum(axis=3, keepdims=True) @ v


class Model:
    """ONNX's operator on inputs that are drawn, and what it should give."""

    def __init__(self, heads, rows, keys, width, columns=None, how="", shared=1, f64=False):
        self.rng = np.random.default_rng(rows + keys + width)
        self.type = np.float64 if f64 else np.float32
        self.open, self.shapes = {}, {}
        self.how = how
        self.draw("q", 1, heads, rows, width)
        self.draw("k", 1, heads // shared, keys, width)
        self.draw("v", 1, heads // shared, keys, columns or width)
        if how == "mask":
            self.draw("mask", 1, 1, rows, keys)

    def draw(self, name, *shape):
        self.__dict__.setdefault("inputs", {})[name] = self.rng.standard_normal(shape).astype(self.type)

    def ranges(self, rows, keys):
        """Open lengths."""
        for name, value in self.inputs.items():
            shape, known = list(value.shape), list(value.shape)
            for axis, size in {"q": {2: ("s", rows)}, "mask": {2: ("s", rows), 3: ("t", keys)}}.get(
                name, {2: ("t", keys)}
            ).items():
                shape[axis], known[axis] = size
            self.open[name], self.shapes[name] = shape, known

    def compile(self, folder, target, precision, dump=None):
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(self.type))
        info = helper.make_tensor_value_info
        node = helper.make_node("Attention", list(self.inputs), ["y"], is_causal=int(self.how == "causal"))
        graph = helper.make_graph(
            [node], "heads",
            [info(n, dtype, self.open.get(n, v.shape)) for n, v in self.inputs.items()],
            [info("y", dtype, None)],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        path, engine = folder / "m.onnx", folder / "m.engine"
        onnx.save(model, path)
        harness.compile_model(
            path, engine, target=target, precision=FLAGS.get(precision, precision), dump=dump, shapes=self.shapes
        )
        return engine

    def run(self, engine, folder, dump, limit, orders):
        want = attention(*(self.inputs[n] for n in "qkv"), self.how, self.inputs.get("mask"))
        for got in in_orders(engine, self.inputs, folder, dump, orders):
            error = np.abs(got - want).max() / np.abs(want).max()
            assert error <= limit, f"{error:.2e}"

    def check(self, folder, target, precision, orders=((1, "seeded"),)):
        dump = folder / "dump"
        engine = self.compile(folder, target, precision, dump)
        self.run(engine, folder, dump, LIMITS[precision], orders)


@pytest.mark.parametrize(
    "target, precision", [("sm_80", "tf32"), ("sm_90", "tf32"), ("sm_90a", "tf32"), ("sm_90", "fp32")]
)
@pytest.mark.parametrize("width", [130, 192, 256])
def test_wide_heads(tmp_path, target, precision, width):
    Model(1, 33, 77, width).check(tmp_path, target, precision, ORDERS if width == 256 else ORDERS[1:2])


@pytest.mark.parametrize("target", ["sm_86", "sm_90a"])
@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("width", [257, 1000])
def test_wider_heads(tmp_path, target, precision, width):
    Model(1, 17, 45, width, f64=precision == "f64").check(tmp_path, target, precision)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", ["tf32", "fp16"])
@pytest.mark.parametrize(
    "how, shared, width, columns", [("causal", 1, 200, 256), ("mask", 2, 256, 256), ("causal", 4, 320, 72), ("", 2, 72, 520)]
)
def test_masks_and_shared_keys(tmp_path, target, precision, how, shared, width, columns):
    Model(4, 65, 90, width, columns, how, shared).check(tmp_path, target, precision)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", ["tf32", "fp16"])
@pytest.mark.parametrize("width", [513])
def test_open_lengths(tmp_path, target, precision, width):
    """One engine for a row and for many, keys that do not fill a step, and several steps."""
    models = [Model(2, rows, keys, width, how="mask") for rows, keys in ((33, 100), (1, 1), (70, 15), (3, 129))]
    dump = tmp_path / "dump"
    models[0].ranges("1..33..128", "1..100..256")
    engine = models[0].compile(tmp_path, target, precision, dump)
    for model in models:
        model.run(engine, tmp_path, dump, LIMITS[precision], [(1, "seeded")])


@pytest.mark.parametrize("target", ["sm_86", "sm_90a"])
@pytest.mark.parametrize("precision", LIMITS)
def test_compiles(tmp_path, target, precision):
    """Rows whose results no program instance holds."""
    Model(8, 512, 512, 5000, how="causal", f64=precision == "f64").compile(tmp_path, target, precision)


GROUP = "{{dims = array<i64: {}>, tile = {} : i64}}"


def with_schedule(folder, path, kernel, schedule, **options):
    """Compiles a model with a schedule for one of its kernels; the engine and its dump."""
    first, dump, engine = folder / "first", folder / "dump", folder / "m.engine"
    harness.compile_model(path, engine, dump=first, **options)
    (stage,) = first.glob("*-kernels.mlir")
    text, count = re.subn(
        rf'(graph\.kernel "{kernel}[^"]*"\([^)]*\)) :',
        lambda found: f"{found[1]} attributes {{schedule = {{{schedule}}}}} :",
        stage.read_text(),
    )
    assert count == 1
    stage.write_text(text)
    harness.compile_model(stage, engine, dump=dump, **options)
    return engine, dump


SCHEDULES = {
    "rows and keys": (128, 128, 512, 0, 8),
    "keys": (32, 256, 256, 0, 4),
    "columns": (64, 64, 1024, 64, 8),
    "two warps": (64, 128, 256, 128, 2),
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("precision", ["tf32", "fp16"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_that_do_not_fit(tmp_path, target, precision, name):
    """Somebody's own tiles that have no room are narrowed, and those that have no room for a second step wait for each."""
    rows, keys, columns, features, warps = SCHEDULES[name]
    groups = ", ".join(GROUP.format(*g) for g in (("0, 1", 1), (3, columns), (2, rows)))
    schedule = (
        f"groups = [{groups}], axes = array<i64: 2, 1>, key_tile = {keys} : i64, feature_tile = {features} : i64, "
        f"warps = {warps} : i64, stages = 4 : i64"
    )
    model = Model(2, 65, 150, 256)
    model.compile(tmp_path, target, precision)
    engine, dump = with_schedule(
        tmp_path, tmp_path / "m.onnx", "attention", schedule, target=target, precision=precision
    )
    model.run(engine, tmp_path, dump, LIMITS[precision], ORDERS)


@pytest.mark.parametrize("target", ["sm_86", "sm_90"])
@pytest.mark.parametrize("tile, step, warps", [((128, 128), 16, 8), ((128, 128), 128, 8), ((256, 64), 64, 4)])
def test_products_that_do_not_fit(tmp_path, target, tile, step, warps):
    """128 x 128 doubles were the choice for large products, and more than an sm_86 has for what is stored."""
    info, path = helper.make_tensor_value_info, tmp_path / "m.onnx"
    sizes = {"a": (200, 300), "b": (300, 130)}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], "product",
        [info(n, TensorProto.DOUBLE, size) for n, size in sizes.items()], [info("y", TensorProto.DOUBLE, None)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    groups = ", ".join(GROUP.format(*g) for g in ((0, tile[0]), (1, tile[1])))
    schedule = f"groups = [{groups}], axes = array<i64: 0, 1>, k_tile = {step} : i64, warps = {warps} : i64, stages = 3 : i64"
    engine, dump = with_schedule(tmp_path, path, "matmul", schedule, target=target)
    rng = np.random.default_rng(step)
    inputs = {n: rng.standard_normal(size) for n, size in sizes.items()}
    want = inputs["a"] @ inputs["b"]
    for got in in_orders(engine, inputs, tmp_path, dump):
        assert np.abs(got - want).max() <= 1e-13 * np.abs(want).max()
