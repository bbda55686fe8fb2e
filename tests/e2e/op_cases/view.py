"""Cases of operators that move or repeat data by rule."""

from __future__ import annotations

import numpy as np

from .base import (
    BOOL, F32, FLOATS, INTS, Case, Tensor, case, chance, choose, const, negative,
    numbers, open_broadcast, open_dims, pick_type, shape, size,
)  # fmt: skip

DATA = (*FLOATS, *INTS, BOOL)


def data(rng, op, opset, dims, among=DATA, operand=0) -> Tensor:
    dtype = pick_type(rng, op, opset, among, operand)
    return Tensor(tuple(dims), dtype, numbers(dtype, 3))


def fold(rng, dims) -> list[int]:
    """Another shape with as many elements: axes merged or split."""
    total = int(np.prod(dims))
    result: list[int] = []
    left = total
    while left > 1 and len(result) < 4 and chance(rng, 0.75):
        factors = [f for f in range(2, min(left, 200) + 1) if left % f == 0]
        if not factors:
            break
        factor = choose(rng, factors)
        result.append(factor)
        left //= factor
    result.append(left)
    return [int(v) for v in rng.permutation(result)]


@case("Reshape")
def reshape(rng, opset, op):
    dims = shape(rng, low=1)
    x = data(rng, op, opset, dims)
    kind = choose(rng, ("fold", "infer", "keep", "open"))
    target = fold(rng, dims)
    if kind == "infer":
        target[int(rng.integers(len(target)))] = -1
    if kind == "keep":
        target = [0, *fold(rng, dims[1:])]
        if chance(rng, 0.5):
            target[-1] = -1
    if kind == "open":
        target = [0, -1] if chance(rng, 0.5) else [-1, *fold(rng, dims[1:])]
        open_dims(rng, x, ["n"])
    return Case(op, [x, const(target)])


@case("Flatten")
def flatten(rng, opset, op):
    dims = shape(rng, low=1, empty=0.03)
    x = data(rng, op, opset, dims, FLOATS if opset < 9 else DATA)
    open_broadcast(rng, [x], 0.3)
    axis = int(rng.integers(0, len(dims) + 1))
    if opset >= 11 and axis < len(dims):
        axis = negative(rng, axis, len(dims))
    return Case(op, [x], {"axis": axis} if axis != 1 or chance(rng, 0.5) else {})


@case("Transpose")
def transpose(rng, opset, op):
    x = data(rng, op, opset, shape(rng, low=1, high=5, empty=0.03))
    open_broadcast(rng, [x], 0.4)
    order = [int(a) for a in rng.permutation(len(x.shape))]
    return Case(op, [x], {"perm": order} if chance(rng, 0.8) else {})


@case("Slice")
def slice_(rng, opset, op):
    x = data(rng, op, opset, shape(rng, low=1))
    rank = len(x.shape)
    axes = [int(a) for a in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]]
    steps_allowed = opset >= 10
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = x.shape[axis]
        step = choose(rng, (1, 1, 2, 3, -1, -2)) if steps_allowed else 1
        first, last = sorted(int(v) for v in rng.integers(0, extent + 1, 2))
        if step < 0:
            first, last = last, first - 1
            if last < 0:
                last = -extent - 1  # one before the first element
            if first >= extent:
                first = extent + 5
        elif chance(rng, 0.3):
            last = choose(rng, (2**31 - 1, 2**63 - 1, extent + 7))
        elif chance(rng, 0.4):
            last = last - extent if last < extent else last
        if step > 0 and chance(rng, 0.3) and first < extent:
            first -= extent
        starts.append(first), ends.append(last), steps.append(step)
    if chance(rng, 0.3):
        names = [f"d{i}" if i not in axes else "" for i in range(rank)]
        open_dims(rng, x, names)
    if opset < 10:
        return Case(op, [x], {"axes": axes, "starts": starts, "ends": ends})
    width = choose(rng, (np.int64, np.int32))
    if width is np.int32:
        ends = [min(e, 2**31 - 1) for e in ends]
    axes = [negative(rng, a, rank) for a in axes]
    inputs = [x, *(const(v, width) for v in (starts, ends, axes, steps))]
    if all(s == 1 for s in steps) and chance(rng, 0.5):
        inputs.pop()
    return Case(op, inputs)


@case("Concat")
def concat(rng, opset, op):
    dims = shape(rng, low=1, elements=6000)
    axis = int(rng.integers(len(dims)))
    dtype = pick_type(rng, op, opset, DATA)
    count = int(rng.integers(1, 5))
    tensors = []
    for _ in range(count):
        extent = size(rng, 33, 0.05)
        own = (*dims[:axis], extent, *dims[axis + 1 :])
        tensors.append(Tensor(own, dtype, numbers(dtype)))
    if chance(rng, 0.35):
        for number, tensor in enumerate(tensors):
            names = [f"d{i}" for i in range(len(dims))]
            names[axis] = choose(rng, ("", f"c{number}"))
            open_dims(rng, tensor, names)
    elif chance(rng, 0.3):
        tensors[-1].constant = True
    if opset >= 11:
        axis = negative(rng, axis, len(dims))
    return Case(op, tensors, {"axis": axis})


@case("Split")
def split(rng, opset, op):
    dims = list(shape(rng, low=1, elements=6000))
    axis = int(rng.integers(len(dims)))
    parts = int(rng.integers(1, 5))
    even = chance(rng, 0.5)
    lengths = [size(rng, 13)] * parts if even else [size(rng, 13) for _ in range(parts)]
    dims[axis] = sum(lengths)
    x = data(rng, op, opset, dims)
    if chance(rng, 0.3):
        open_dims(rng, x, ["" if i == axis else f"d{i}" for i in range(len(dims))])
    attributes = {"axis": negative(rng, axis, len(dims)) if opset >= 11 else axis}
    inputs = [x]
    if not even or chance(rng, 0.4):
        if opset >= 13:
            inputs.append(const(lengths))
        else:
            attributes["split"] = lengths
    elif opset >= 18:
        attributes["num_outputs"] = parts
        if parts > 1 and chance(rng, 0.3):  # the last part may be smaller
            x.shape = tuple(
                d - 1 if i == axis and d > parts * (lengths[0] - 1) + 1 else d
                for i, d in enumerate(x.shape)
            )
            smaller = -(-x.shape[axis] // parts)
            if smaller * (parts - 1) >= x.shape[axis]:
                x.shape = tuple(dims)
    return Case(op, inputs, attributes, parts)


@case("Pad")
def pad(rng, opset, op):
    dims = shape(rng, low=1, elements=4000)
    rank = len(dims)
    modes = ["constant", "constant", "reflect", "edge"]
    if opset >= 19:
        modes.append("wrap")
    mode = choose(rng, modes)
    x = data(rng, op, opset, dims, FLOATS if opset < 11 else (*FLOATS, *INTS))
    before_after = []
    for _side in range(2):
        for extent in dims:
            most = {"constant": 7, "edge": 7}.get(mode, extent - 1)
            before_after.append(int(rng.integers(0, max(0, min(most, 7)) + 1)))
    if mode == "constant" and x.dtype == F32 and chance(rng, 0.3):
        axis = int(rng.integers(rank))  # negative pads crop
        if dims[axis] > 3:
            before_after[axis] = -1
    if mode == "constant" and chance(rng, 0.35):
        open_dims(rng, x, [f"d{i}" for i in range(rank)], [min(d, 4) for d in dims])
    attributes = {} if mode == "constant" and chance(rng, 0.5) else {"mode": mode}
    if opset < 11:
        if mode == "constant" and chance(rng, 0.5):
            attributes["value"] = 1.5
        return Case(op, [x], {**attributes, "pads": before_after})
    inputs = [x, const(before_after)]
    if mode == "constant" and chance(rng, 0.5):
        inputs.append(const(3, x.dtype))
    if opset >= 18 and chance(rng, 0.3):
        axes = [int(a) for a in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]]
        chosen = [before_after[a] for a in axes] + [before_after[rank + a] for a in axes]
        inputs[1] = const(chosen)
        inputs = [*inputs, *[None] * (3 - len(inputs))]
        inputs.append(const([negative(rng, a, rank) for a in axes]))
    return Case(op, inputs, attributes)


@case("Expand")
def expand(rng, opset, op):
    full = shape(rng, low=1, elements=8000, empty=0.03)
    own = tuple(1 if chance(rng, 0.5) else d for d in full)
    own = own[int(rng.integers(0, len(own))) :]
    target = [d if chance(rng, 0.7) else 1 for d in full]
    if chance(rng, 0.2):
        target = target[int(rng.integers(0, len(target))) :]
    return Case(op, [data(rng, op, opset, own), const(target)])


@case("Tile")
def tile(rng, opset, op):
    x = data(rng, op, opset, shape(rng, low=1, elements=600))
    if chance(rng, 0.3):
        open_dims(rng, x, ["n"])
    repeats = [choose(rng, (1, 1, 2, 3)) for _ in x.shape]
    return Case(op, [x, const(repeats)])


@case("Squeeze")
def squeeze(rng, opset, op):
    dims = list(shape(rng, low=1, high=3))
    for _ in range(int(rng.integers(1, 3))):
        dims.insert(int(rng.integers(len(dims) + 1)), 1)
    ones = [i for i, d in enumerate(dims) if d == 1]
    picks = [i for i in ones if chance(rng, 0.7)] or ones[:1]
    x = data(rng, op, opset, dims)
    if chance(rng, 0.3):
        open_dims(rng, x, ["" if d == 1 else f"d{i}" for i, d in enumerate(dims)])
    if opset >= 11:
        picks = [negative(rng, p, len(dims)) for p in picks]
    if chance(rng, 0.2) and not x.symbols:
        return Case(op, [x])
    if opset >= 13:
        return Case(op, [x, const(picks)])
    return Case(op, [x], {"axes": picks})


@case("Unsqueeze")
def unsqueeze(rng, opset, op):
    x = data(rng, op, opset, shape(rng, high=3))
    open_broadcast(rng, [x], 0.3)
    count = int(rng.integers(1, 3))
    rank = len(x.shape) + count
    axes = [int(a) for a in rng.permutation(rank)[:count]]
    if opset >= 11:
        axes = [negative(rng, a, rank) for a in axes]
    if opset >= 13:
        return Case(op, [x, const(axes)])
    return Case(op, [x], {"axes": sorted(axes) if opset < 11 else axes})


@case("Shape", "Size")
def shape_of(rng, opset, op):
    x = data(rng, op, opset, shape(rng, empty=0.05))
    open_broadcast(rng, [x], 0.5)
    attributes = {}
    if op == "Shape" and opset >= 15:
        for name in ("start", "end"):
            if chance(rng, 0.4):
                rank = len(x.shape)
                attributes[name] = int(rng.integers(-rank - 1, rank + 2))
    return Case(op, [x], attributes)


@case("Range")
def range_(rng, opset, op):
    dtype = np.dtype(choose(rng, (np.int64, np.int64, np.int32, np.float32)))
    start, step = int(rng.integers(-9, 9)), choose(rng, (1, 2, 3, -1, -2))
    count = size(rng, 67, 0.1)
    values = (start, start + step * count, step)
    return Case(op, [const(v, dtype) for v in values])


@case("ConstantOfShape")
def constant_of_shape(rng, opset, op):
    from .base import tensor_proto

    dtype = choose(rng, [t for t in DATA if t.name not in ("bfloat16",)])
    attributes = {}
    if chance(rng, 0.8):
        attributes["value"] = tensor_proto("", np.asarray([3], dtype))
    return Case(op, [const(list(shape(rng, empty=0.05)), np.int64)], attributes)


@case("Trilu")
def trilu(rng, opset, op):
    x = data(rng, op, opset, shape(rng, low=2, elements=8000))
    open_broadcast(rng, [x], 0.4)
    inputs = [x]
    if chance(rng, 0.6):
        inputs.append(const(int(rng.integers(-5, 6)), np.int64))
    return Case(op, inputs, {"upper": int(chance(rng, 0.5))} if chance(rng, 0.8) else {})


@case("Dropout")
def dropout(rng, opset, op):
    x = data(rng, op, opset, shape(rng, empty=0.03), FLOATS)
    open_broadcast(rng, [x], 0.3)
    # Until opset 10 nothing says what the mask is.
    outputs = 2 if chance(rng, 0.2) and opset >= 12 else 1
    if opset >= 12:
        inputs = [x, const(0.3, np.float32)] if chance(rng, 0.5) else [x]
        return Case(op, inputs, {}, outputs)
    return Case(op, [x], {"ratio": 0.3} if chance(rng, 0.5) else {}, outputs)


RESIZE_COORDINATES = (
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
    "half_pixel_symmetric",
)  # fmt: skip


@case("Resize", since=10)
def resize(rng, opset, op):
    rank = choose(rng, (1, 2, 2, 3))
    dims = (size(rng, 3), size(rng, 7), *(int(v) for v in rng.integers(1, 14, rank)))
    x = Tensor(dims, F32, numbers(F32))
    modes = ["nearest", "linear"] + (["cubic"] if rank == 2 and opset >= 11 else [])
    attributes = {"mode": choose(rng, modes)}
    if chance(rng, 0.3):
        open_dims(rng, x, ["n"])
    scales = [1.0, 1.0, *(choose(rng, (0.5, 1.0, 1.5, 2.0, 3.0, 0.7)) for _ in range(rank))]
    # An output dimension of zero has no meaning.
    scales = [max(s, 1.0 / d) if d else s for s, d in zip(scales, dims)]
    scales = [float(np.float32(s)) for s in scales]
    scales = [s if int(np.floor(d * np.float32(s))) else 1.0 for s, d in zip(scales, dims)]
    if opset == 10:
        return Case(op, [x, const(scales, np.float32)], attributes, scale_tol=2e-5)
    coordinates = choose(rng, RESIZE_COORDINATES[: 5 if opset >= 19 else 4])
    if chance(rng, 0.8):
        attributes["coordinate_transformation_mode"] = coordinates
    if attributes["mode"] == "nearest" and chance(rng, 0.7):
        attributes["nearest_mode"] = choose(
            rng, ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        )
    if attributes["mode"] == "cubic":
        if chance(rng, 0.5):
            attributes["cubic_coeff_a"] = -0.5
        if chance(rng, 0.3):
            attributes["exclude_outside"] = 1
    roi = const([], np.float32) if opset < 13 else None
    if chance(rng, 0.5):
        return Case(op, [x, roi, const(scales, np.float32)], attributes, scale_tol=2e-5)
    sizes = [*dims[:2], *(int(v) for v in rng.integers(1, 25, rank))]
    empty = const([], np.float32) if opset < 13 else None
    x.symbols = {}
    return Case(op, [x, roi, empty, const(sizes)], attributes, scale_tol=2e-5)
