"""Attention whose keys and values the copy engine brings, each when the dot that reads it asks for it, and whose last
product runs under the next step, run by charonia-simt."""

from __future__ import annotations

import harness
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from simt_orders import ORDERS, check_finds, in_orders


class Attention:
    """ONNX's operator for sm_90a; `most`: the number of keys is open, up to so many; `window`: of so many keys, by a mask
    of positions; `bias`: added to scores, an input."""

    def __init__(self, folder, heads, queries, keys, size, *, causal=False, most=0, window=0, bias=False, precision="fp16"):
        self.folder, self.causal, self.window, self.bias = folder, causal, window, bias
        self.shapes = dict(q=(heads, queries, size), k=(heads, keys, size), v=(heads, keys, size))
        known = {n: [1, *s] for n, s in self.shapes.items()}
        if most:
            known["k"][2] = known["v"][2] = "t"
        if bias:
            known["mask"] = [1, 1, queries, keys]
        info = helper.make_tensor_value_info
        more = []
        if window:
            rows, columns = (np.arange(n, dtype=np.int64) for n in (queries, keys))
            mask = (columns <= rows[:, None]) & (columns > rows[:, None] - window)
            more = [onnx.numpy_helper.from_array(mask, "mask")]
        names = [*known, *(["mask"] if window else [])]
        node = helper.make_node("Attention", names, ["y"], is_causal=int(causal))
        graph = helper.make_graph(
            [node], "attention", [info(n, TensorProto.FLOAT, s) for n, s in known.items()],
            [info("y", TensorProto.FLOAT, known["q"])], more,
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        path, self.engine, self.dump = (folder / name for name in ("m.onnx", "m.engine", "dump"))
        onnx.save(model, path)
        opened = {n: [1, heads, f"1..{keys}..{most}", size] for n in "kv"} if most else None
        harness.compile_model(
            path, self.engine, target="sm_90a", precision=precision, dump=self.dump, shapes=opened
        )

    def program(self) -> str:
        return "".join(path.read_text() for path in self.dump.glob("*-cuda-code/*/*-simt.mlir"))

    def check(self, orders, keys=None, limit=2e-3):
        rng = np.random.default_rng(3)
        inputs = {}
        for name, (heads, length, size) in self.shapes.items():
            length = keys if keys is not None and name != "q" else length
            inputs[name] = rng.standard_normal((1, heads, length, size)).astype(np.float32)
        q, k, v = (inputs[n].astype(np.float64) for n in "qkv")
        scores = q @ k.swapaxes(2, 3) / q.shape[3] ** 0.5
        rows, columns = (np.arange(n) for n in scores.shape[2:])
        if self.bias:
            inputs["mask"] = rng.standard_normal((1, 1, *scores.shape[2:])).astype(np.float32)
            scores = scores + inputs["mask"]
        if self.causal or self.window:
            scores = np.where(columns <= rows[:, None], scores, -np.inf)
        if self.window:
            scores = np.where(columns > rows[:, None] - self.window, scores, -np.inf)
        # Rows that keep no key are anything.
        some = np.isfinite(scores).any(-1)
        weights = np.exp(scores[some] - scores[some].max(-1, keepdims=True))
        want = np.einsum("nk,nkd->nd", weights / weights.sum(-1, keepdims=True), v[0, np.nonzero(some)[1]])
        for got in in_orders(self.engine, inputs, self.folder, self.dump, orders):
            assert np.abs(got[some] - want).max() <= limit * np.abs(want).max()


@pytest.mark.parametrize(
    "heads, queries, keys, size, causal, defers",
    [
        (27, 300, 300, 64, True, True),  # 64 rows, three instances of a multiprocessor
        (2, 129, 577, 64, False, False),  # steps of 128 keys leave three no registers for it
        (4, 257, 577, 128, False, True),  # 64 rows, one instance
        (2, 300, 300, 80, True, True),
        (2, 65, 400, 256, False, True),  # wide heads
        (2, 63, 385, 96, False, True),
        (100, 65, 640, 72, False, True),  # 128 rows, their registers given by the warps that copy
    ],
)
def test_attention(tmp_path, heads, queries, keys, size, causal, defers):
    model = Attention(tmp_path, heads, queries, keys, size, causal=causal)
    program = model.program()
    assert "simt.copy_box" in program
    assert ("simt.wait_dots 1" in program) == defers
    # The queries come by the engine, too.
    assert "simt.copy_async" not in program
    model.check(ORDERS[: 1 if heads > 8 else None])


def test_instances_that_stay(tmp_path):
    """The next tile's queries, keys and values are under way while one ends."""
    model = Attention(tmp_path, 133, 65, 640, 72)
    assert "simt.tiles" in model.program()
    model.check([(5, "seeded")])


@pytest.mark.parametrize("size", [64, 128])
def test_open_keys(tmp_path, size):
    model = Attention(tmp_path, 2, 70, 400, size, most=700)
    assert "simt.copy_box" in model.program()
    for keys in (1, 65, 128, 400):
        model.check([(keys + 1, "seeded")], keys)


@pytest.mark.parametrize("window, keys", [(1, 400), (100, 400), (300, 400), (60, 200)])
def test_windows(tmp_path, window, keys):
    """Of a sliding window the steps begin anywhere, and where queries are beyond all keys there are none: a branch is
    around the first step and the last product."""
    model = Attention(tmp_path, 2, 400, keys, 128, window=window)
    assert "simt.wait_dots 1" in model.program() or keys < 257
    model.check([(2, "seeded")])


@pytest.mark.parametrize("size, boxes", [(64, False), (128, True)])
def test_bias(tmp_path, size, boxes):
    """What is loaded for scores takes registers."""
    model = Attention(tmp_path, 2, 100, 500, size, bias=True)
    assert ("simt.copy_box" in model.program()) == boxes
    model.check([(3, "seeded")])


def test_bf16(tmp_path):
    model = Attention(tmp_path, 2, 200, 400, 128, precision="bf16")
    assert "simt.wait_dots 1" in model.program()
    model.check([(7, "seeded")], limit=1.5e-2)


def test_infinite_scores(tmp_path):
    """Threads that write what is no number for one row write the same."""
    model = Attention(tmp_path, 2, 65, 65, 160, causal=True)
    rng = np.random.default_rng(5)
    inputs = {n: rng.standard_normal((1, *s)).astype(np.float32) for n, s in model.shapes.items()}
    inputs["k"][:, :, 40] = np.where(np.arange(160) == 0, np.inf, 0)
    for got in in_orders(model.engine, inputs, tmp_path, model.dump):
        assert np.isfinite(got[0, :, :40]).all()


@pytest.mark.parametrize(
    "pattern, text, finding",
    [
        # The last product of a step, and the first one, are read before they are done.
        (r"wgmma\.wait_group\.sync\.aligned 0", "wgmma.wait_group.sync.aligned 1", "race"),
        (r"wgmma\.wait_group\.sync\.aligned 1", "wgmma.wait_group.sync.aligned 2", "race"),
        # Slots are read before they are full, and filled before they are read.
        (r"nvvm\.mbarrier\.try_wait\.parity .*\n", "\n", "barrier misuse"),
        (r"nvvm\.wgmma\.fence\.aligned\n", "\n", "missing fence"),
    ],
)  # fmt: skip
def test_what_orders_its_products_is_missed(tmp_path, pattern, text, finding):
    model = Attention(tmp_path, 1, 65, 400, 128)
    check_finds(model.dump, pattern, text, finding, lambda: model.check([(1, "seeded")]))
