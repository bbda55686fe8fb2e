"""Few long rows, each of which the instances of a cluster share, run by charonia-simt."""

from __future__ import annotations

import numpy as np
import pytest
from simt_sums_test import Model


def layer_norm(model: Model, x: str, n: int) -> str:
    return model.add("LayerNormalization", model.add("Add", x, model.input("r", *model.inputs[x].shape)),
                     model.weight(n), model.weight(n), axis=-1)  # fmt: skip


def log_softmax(model: Model, x: str, n: int) -> str:
    return model.add("LogSoftmax", x, axis=-1)


def softmax(model: Model, x: str, n: int) -> str:
    return model.add("Softmax", x, axis=-1)


def largest_beside(model: Model, x: str, n: int) -> str:
    """A reduction of another kind reads the same row."""
    most = model.add("ReduceMax", x, keepdims=1)
    return model.add("Mul", model.add("Softmax", x, axis=-1), most)


def softmax_less_normalized(model: Model, x: str, n: int) -> str:
    """A kernel of several results, of which one has a number a row."""
    norm = model.add("LayerNormalization", x, model.weight(n), model.weight(n), axis=-1)
    return model.add("Sub", model.add("Softmax", x, axis=-1), norm)


CASES = [
    (layer_norm, 2, 20011, "fp16"), (layer_norm, 1, 16384, "fp32"), (softmax, 3, 16411, "fp32"),
    (softmax, 1, 24576, "bf16"), (log_softmax, 2, 16385, "fp16"),
    (largest_beside, 2, 17000, "fp32"), (softmax_less_normalized, 2, 40001, "fp16"),
]  # fmt: skip


@pytest.mark.parametrize("body, rows, n, precision", CASES)
def test_row_of_a_cluster(tmp_path, body, rows, n, precision):
    model = Model(rows * n)
    x = model.input("x", rows, n)
    model.inputs[x] += 3  # a mean that is not small beside the deviations
    model.check(tmp_path, body(model, x, n), None, "sm_90a", precision)
    assert any("tile.exchange" in p.read_text() for p in tmp_path.glob("dump/**/*tile.mlir"))


def test_most_of_a_row_is_masked(tmp_path):
    """All but the first elements are -inf: most instances have nothing to add."""
    model = Model(1)
    x = model.input("x", 2, 16400)
    model.inputs[x][:, 100:] = -np.inf
    model.check(tmp_path, softmax(model, x, 16400), None, "sm_90a", "fp32")


def test_many_rows_are_not_shared(tmp_path):
    """As many instances as the chip takes at once have a row each."""
    model = Model(2)
    x = model.input("x", 70, 16400)
    model.check(tmp_path, softmax(model, x, 16400), None, "sm_90a", "fp16")
    assert not any("tile.exchange" in p.read_text() for p in tmp_path.glob("dump/**/*tile.mlir"))


@pytest.mark.parametrize("rows, n", [(3, 9002), (3, 16411), (2, 20001), (70, 9002)])
@pytest.mark.parametrize("first", [False, True])
def test_two_results_of_a_row(tmp_path, rows, n, first):
    """What else is stored of a row that begins anywhere is checked beside its place in memory: both are moved in front."""
    model = Model(n)
    s = model.add("Add", model.input("x", rows, n), model.input("r", rows, n))
    y = softmax(model, s, n)
    model.check(tmp_path, y if first else s, None, "sm_90a", "fp16", also=[s if first else y])
