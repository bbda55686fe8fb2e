"""Cases of gathers and scatters."""

from __future__ import annotations

import numpy as np

from .base import (
    BOOL, F32, FLOATS, INTS, Case, Tensor, case, chance, choose, integers,
    negative, numbers, open_dims, pick_type, shape, size, uniform,
)  # fmt: skip

DATA = (*FLOATS, *INTS, BOOL)


def indices(rng, opset, dims, extent, narrow=True) -> Tensor:
    """Indices into an axis of `extent` elements, negative ones from opset 11."""
    dtype = np.dtype(choose(rng, (np.int64, np.int32)) if narrow else np.int64)
    low = -extent if opset >= 11 and chance(rng, 0.5) else 0
    return Tensor(tuple(dims), dtype, integers(dtype, low, extent - 1))


@case("Gather")
def gather(rng, opset, op):
    dims = shape(rng, low=1, elements=6000)
    axis = int(rng.integers(len(dims)))
    dtype = pick_type(rng, op, opset, DATA)
    x = Tensor(dims, dtype, numbers(dtype), {}, chance(rng, 0.3))
    index = indices(rng, opset, shape(rng, high=2, elements=60, empty=0.03), dims[axis])
    if chance(rng, 0.4):
        index.symbols = {i: (f"i{i}", 1) for i, d in enumerate(index.shape) if d}
    elif chance(rng, 0.3):
        index.constant = True
    if not x.constant and chance(rng, 0.3):
        open_dims(rng, x, ["" if i == axis else f"d{i}" for i in range(len(dims))])
    attributes = {"axis": negative(rng, axis, len(dims))}
    return Case(op, [x, index], attributes if axis or chance(rng, 0.5) else {})


@case("GatherElements")
def gather_elements(rng, opset, op):
    dims = shape(rng, low=1, elements=6000)
    axis = int(rng.integers(len(dims)))
    dtype = pick_type(rng, op, opset, DATA)
    taken = tuple(
        size(rng, 33) if i == axis else int(rng.integers(1, d + 1))
        for i, d in enumerate(dims)
    )
    index = indices(rng, opset, taken, dims[axis])
    x = Tensor(dims, dtype, numbers(dtype))
    return Case(op, [x, index], {"axis": negative(rng, axis, len(dims))})


def nd_indices(rng, opset, dims, batch: int, lead) -> Tensor:
    """Index tuples into dims[batch:batch+k]."""
    depth = int(rng.integers(1, len(dims) - batch + 1))
    extents = np.asarray(dims[batch : batch + depth])
    low = -extents if opset >= 11 and chance(rng, 0.4) else 0 * extents

    def fill(rng, where):
        return rng.integers(low, extents, where).astype(np.int64)

    return Tensor((*lead, depth), np.dtype(np.int64), fill)


@case("GatherND")
def gather_nd(rng, opset, op):
    dims = shape(rng, low=1, elements=6000)
    batch = 0
    if opset >= 12 and len(dims) > 1 and chance(rng, 0.4):
        batch = int(rng.integers(1, len(dims)))
    dtype = pick_type(rng, op, opset, DATA)
    lead = (*dims[:batch], *shape(rng, high=2, elements=40))
    x = Tensor(dims, dtype, numbers(dtype))
    index = nd_indices(rng, opset, dims, batch, lead)
    if batch == 0 and chance(rng, 0.3):
        open_dims(rng, index, [f"i{i}" for i in range(len(lead))])
    return Case(op, [x, index], {"batch_dims": batch} if batch else {})


@case("ScatterND")
def scatter_nd(rng, opset, op):
    dims = shape(rng, low=1, elements=4000)
    reduction = "none"
    if opset >= 16 and chance(rng, 0.5):
        reduction = choose(
            rng, ("add", "mul") if opset < 18 else ("add", "mul", "max", "min")
        )
    among = DATA if reduction == "none" else (F32, *INTS[2:4])
    dtype = pick_type(rng, op, opset, among)
    depth = int(rng.integers(1, len(dims) + 1))
    cells = int(np.prod(dims[:depth]))
    count = int(rng.integers(1, min(cells, choose(rng, (8, 40, 400))) + 1))
    if reduction != "none" and chance(rng, 0.3):
        count += 500
    shift = opset >= 11 and chance(rng, 0.4)

    def fill(rng, where):
        # Without a reduction, two writes to one place have no defined winner.
        flat = rng.permutation(cells)[:count]
        if reduction != "none" and cells > 1:
            flat = rng.integers(0, cells, count)
        index = np.stack(np.unravel_index(flat, dims[:depth]), -1)
        if shift:
            index = index - np.asarray(dims[:depth])
        return index.astype(np.int64)

    x = Tensor(dims, dtype, numbers(dtype))
    updates = Tensor((count, *dims[depth:]), dtype, numbers(dtype))
    index = Tensor((count, depth), np.dtype(np.int64), fill)
    attributes = {} if reduction == "none" else {"reduction": reduction}
    if reduction == "mul" and dtype.kind == "f":
        updates.fill = uniform(dtype, 0.95, 1.05)
    return Case(op, [x, index, updates], attributes, scale_tol=1e-5)
