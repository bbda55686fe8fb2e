"""Cases of operators that the importer composes of others."""

from __future__ import annotations

import numpy as np

from .base import (
    F16, F32, F64, FLOATS, INTS, Case, Tensor, case, chance, choose, const, integers,
    make_attribute_dict, negative, normal, numbers, open_dims, pick_type, shape,
    size, uniform, with_specials,
)  # fmt: skip

I8, U8 = np.dtype(np.int8), np.dtype(np.uint8)


def distinct(dtype):
    """Values of which no two are equal."""

    def fill(rng, dims):
        count = int(np.prod(dims))
        return (rng.permutation(count) - count // 2).reshape(dims).astype(dtype)

    return fill


LENGTHS = (129, 255, 256, 257, 511, 1021, 1024, 1025, 2053, 5003)


def long_rows(rng):
    """A shape with one long dimension among short ones, and that dimension."""
    dims = list(shape(rng, low=0, high=2, elements=12))
    axis = int(rng.integers(len(dims) + 1))
    dims.insert(axis, choose(rng, LENGTHS))
    return tuple(dims), axis


@case("CumSum", "CumProd")
def cumulative(rng, opset, op):
    dtype = pick_type(rng, op, opset, (F32, F16, F64, *INTS[2:4]))
    dims = shape(rng, low=1, elements=3000, empty=0.05)
    axis = int(rng.integers(len(dims)))
    if chance(rng, 0.4):
        dims, axis = long_rows(rng)
    # Products of many numbers stay in the type's range.
    wide = 0.3 if dims[axis] < 200 else 0.01
    fill = uniform(dtype, 1 - wide, 1 + wide) if dtype.kind == "f" else numbers(dtype)
    if op == "CumSum" and dtype.kind == "f":
        fill = normal(dtype)
    x = Tensor(dims, dtype, fill)
    if chance(rng, 0.4):
        open_dims(rng, x, [f"d{i}" for i in range(len(dims))])
    attributes = {k: 1 for k in ("exclusive", "reverse") if chance(rng, 0.4)}
    where = const(negative(rng, axis, len(dims)))
    return Case(op, [x, where], attributes, scale_tol=1e-5)


@case("OneHot")
def one_hot(rng, opset, op):
    depth = size(rng, 33)
    dims = shape(rng, high=3, elements=500)
    indices = Tensor(dims, np.dtype(np.int64), integers(np.dtype(np.int64), -depth, depth - 1))
    axis = int(rng.integers(-len(dims) - 1, len(dims) + 1))
    dtype = choose(rng, (F32, np.dtype(np.int64), np.dtype(np.int32)))
    values = const([2, 5], dtype)
    return Case(op, [indices, const(depth), values], {"axis": axis})


@case("ScatterElements")
def scatter_elements(rng, opset, op):
    dims = shape(rng, low=1, high=3, elements=600)
    axis = int(rng.integers(len(dims)))
    if chance(rng, 0.3):
        dims, axis = long_rows(rng)
    reduction = "none"
    if opset >= 16 and chance(rng, 0.5):
        reduction = choose(rng, ("add", "mul") if opset < 18 else ("add", "mul", "max", "min"))
    taken = tuple(int(rng.integers(1, d + 1)) for d in dims)

    def fill(rng, where):
        if reduction != "none":
            return rng.integers(-dims[axis] if opset >= 11 else 0, dims[axis], where)
        # Each line of updates writes to distinct places.
        order = np.argsort(rng.random(dims), axis=axis)
        return order[tuple(slice(0, d) for d in where)].astype(np.int64)

    if reduction != "none" and chance(rng, 0.5):
        # More updates than elements.
        taken = (*taken[:axis], taken[axis] + choose(rng, (1, 67, 500)), *taken[axis + 1 :])
    dtype = pick_type(rng, op, opset, (F32, np.dtype(np.int64)))
    fill_values = numbers(dtype)
    if reduction == "mul" and dtype.kind == "f":
        fill_values = uniform(dtype, 0.9, 1.1)
    tensors = [
        Tensor(dims, dtype, numbers(dtype)), Tensor(taken, np.dtype(np.int64), fill),
        Tensor(taken, dtype, fill_values),
    ]  # fmt: skip
    if reduction != "none" and chance(rng, 0.4):
        for tensor in tensors[1:]:
            tensor.symbols[axis] = ("updates", 1)
    attributes = {"axis": negative(rng, axis, len(dims)) if opset >= 11 else axis}
    if reduction != "none":
        attributes["reduction"] = reduction
    return Case(op, tensors, attributes, scale_tol=1e-5)


@case("DepthToSpace", "SpaceToDepth")
def blocks(rng, opset, op):
    block = choose(rng, (1, 2, 3))
    n, c, h, w = size(rng, 3), size(rng, 5), size(rng, 8), size(rng, 8)
    dims = (n, c * block**2, h, w) if op == "DepthToSpace" else (n, c, h * block, w * block)
    x = Tensor(dims, F32, normal(F32))
    if chance(rng, 0.3):
        open_dims(rng, x, ["n"])
    attributes = {"blocksize": block}
    if op == "DepthToSpace" and opset >= 11 and chance(rng, 0.5):
        attributes["mode"] = choose(rng, ("DCR", "CRD"))
    return Case(op, [x], attributes)


EQUATIONS = (
    "ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->i", "ij->", "i,j->ij", "i,i->",
    "bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "ij,ij->ij", "ii->i", "bii->bi", "iji->j",
    "ij,jk,kl->il", "abc,cd->abd", "ij,jk", "bi,ij,bj->b", "...ij,...jk->...ik",
    "ii", "iij", "iijj", "ij,ji", "ba", "...ii",
)  # fmt: skip


@case("Einsum")
def einsum(rng, opset, op):
    equation = choose(rng, EQUATIONS)
    sizes = {letter: size(rng, 17) for letter in equation if letter.isalpha()}
    batch = shape(rng, high=2, elements=20)
    tensors = []
    for term in equation.split("->")[0].split(","):
        dims = tuple(sizes[c] for c in term if c.isalpha())
        if term.startswith("..."):
            dims = (*batch, *dims)
        tensors.append(Tensor(dims, F32, normal(F32)))
    return Case(op, tensors, {"equation": equation}, scale_tol=1e-5)


@case("ConvTranspose")
def conv_transpose(rng, opset, op):
    rank = choose(rng, (1, 2, 2, 3))
    group = choose(rng, (1, 1, 1, 2, 3))
    per_in, per_out = size(rng, 5), size(rng, 5)
    kernel = [int(k) for k in rng.integers(1, 6 if rank < 3 else 4, rank)]
    strides = [int(k) for k in rng.integers(1, 5 if rank < 3 else 4, rank)]
    dilations = [int(k) for k in rng.integers(1, 4 if rank < 3 else 3, rank)]
    sizes = [int(k) for k in rng.integers(1, 9, rank)]
    x = Tensor((size(rng, 3), group * per_in, *sizes), F32, normal(F32))
    if chance(rng, 0.4):
        # Padding may cut all of smaller ones.
        open_dims(rng, x, ["n", "", *(f"s{i}" for i in range(rank))], (1, 1, *sizes))
    w = Tensor((group * per_in, per_out, *kernel), F32, normal(F32), {}, chance(rng, 0.8))
    inputs = [x, w]
    if chance(rng, 0.5):
        inputs.append(Tensor((group * per_out,), F32, normal(F32), {}, True))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = None
    if chance(rng, 0.5):
        # At least one element of the result is left.
        room = [(s - 1) * t + r - 1 for s, t, r in zip(sizes, strides, reach)]
        low = [int(rng.integers(0, min(r, 2) + 1)) for r in room]
        high = [int(rng.integers(0, min(r - a, 2) + 1)) for r, a in zip(room, low)]
        pads = low + high
    extra = None
    if chance(rng, 0.3):
        extra = [int(rng.integers(0, s)) for s in strides]
    attributes = make_attribute_dict(
        kernel_shape=kernel, strides=strides, dilations=dilations, group=group,
        pads=pads, output_padding=extra,
    )  # fmt: skip
    return Case(op, inputs, attributes, scale_tol=1e-5)


@case("MatMulInteger")
def matmul_integer(rng, opset, op):
    m, k, n = size(rng, 33), size(rng, 67), size(rng, 33)
    batch = shape(rng, high=1, elements=3)
    left, right = choose(rng, (I8, U8)), choose(rng, (I8, U8))
    a = Tensor((*batch, m, k), left, integers(left, 0 if left == U8 else -128, 127))
    b = Tensor((k, n), right, integers(right, 0, 127), {}, chance(rng, 0.5))
    inputs = [a, b]
    if chance(rng, 0.7):
        inputs += [const(3, left), const(100, right)]
    return Case(op, inputs)


def scales(rng, dims) -> Tensor:
    return Tensor(dims, F32, uniform(F32, 0.01, 0.2), {}, True)


@case("QuantizeLinear", "DequantizeLinear")
def quantize(rng, opset, op):
    dims = shape(rng, low=1, elements=4000)
    narrow = choose(rng, (I8, U8))
    axis = int(rng.integers(len(dims)))
    per_axis = opset >= 13 and chance(rng, 0.5)
    of = (dims[axis],) if per_axis else ()
    zero = Tensor(of, narrow, integers(narrow, 0, 20), {}, True)
    x = Tensor(dims, F32, normal(F32, 5))
    if op == "DequantizeLinear":
        x = Tensor(dims, narrow, integers(narrow, 0, 127))
    if chance(rng, 0.3):
        open_dims(rng, x, ["" if i == axis else f"d{i}" for i in range(len(dims))])
    inputs = [x, scales(rng, of)]
    if chance(rng, 0.7):
        inputs.append(zero)
    attributes = {"axis": negative(rng, axis, len(dims))} if per_axis else {}
    return Case(op, inputs, attributes)


@case("TopK", since=11)
def top_k(rng, opset, op):
    dims = shape(rng, low=1, high=3, elements=3000)
    axis = int(rng.integers(len(dims)))
    if chance(rng, 0.4):
        dims, axis = long_rows(rng)
    k = int(rng.integers(1, dims[axis] + 1))
    dtype = choose(rng, (F32, F32, F64, np.dtype(np.int32), np.dtype(np.int64)))
    fill = choose(rng, (distinct(dtype), numbers(dtype)))
    if dtype.kind == "f" and chance(rng, 0.3):
        fill = with_specials(numbers(dtype), (np.inf, -np.inf, 0.0, -0.0))
    x = Tensor(dims, dtype, fill)
    if chance(rng, 0.4):
        along = "n" if chance(rng, 0.5) else ""
        open_dims(rng, x, [along if i == axis else f"d{i}" for i in range(len(dims))])
        if axis in x.symbols:
            x.symbols[axis] = (x.symbols[axis][0], k)
    attributes = {"axis": negative(rng, axis, len(dims))}
    if chance(rng, 0.4):
        attributes["largest"] = 0
    return Case(op, [x, const([k])], attributes, outputs=2)


@case("ReverseSequence")
def reverse_sequence(rng, opset, op):
    time, batch = size(rng, 17), size(rng, 8)
    first = chance(rng, 0.5)
    dims = (time, batch) if first else (batch, time)
    x = Tensor((*dims, *shape(rng, high=2, elements=30)), F32, normal(F32))
    i64 = np.dtype(np.int64)
    lengths = Tensor((batch,), i64, integers(i64, 1, time))
    return Case(op, [x, lengths], {"time_axis": int(not first), "batch_axis": int(first)})


@case("GridSample")
def grid_sample(rng, opset, op):
    rank = 2 if opset < 20 else choose(rng, (2, 2, 3))
    modes = ("bilinear", "nearest", "bicubic") if opset < 20 else ("linear", "nearest", "cubic")
    mode = choose(rng, modes if rank == 2 else modes[:2])
    n, sizes = size(rng, 3), [int(v) for v in rng.integers(2, 9, rank)]
    x = Tensor((n, size(rng, 4), *sizes), F32, normal(F32))
    out = [int(v) for v in rng.integers(1, 7, rank)]
    grid = Tensor((n, *out, rank), F32, uniform(F32, -1.4, 1.4))
    attributes = {
        "mode": mode, "padding_mode": choose(rng, ("zeros", "border", "reflection")),
        "align_corners": int(chance(rng, 0.5)),
    }  # fmt: skip
    return Case(op, [x, grid], attributes, rtol=1e-3, scale_tol=1e-4)


def spans(size, kernel, dilation, pad, stride):
    """How many windows there are along a dimension."""
    return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


def fold(x, image, kernel, strides, dilations, pads):
    """Windows added where they lie, by the definition."""
    counts = [spans(*v) for v in zip(image, kernel, dilations, pads, strides)]
    windows = x.reshape(x.shape[0], -1, *kernel, *counts)
    padded = np.zeros((*windows.shape[:2], *(s + 2 * p for s, p in zip(image, pads))), np.float64)
    for tap in np.ndindex(*kernel):
        for at in np.ndindex(*counts):
            place = tuple(t * d + a * s for t, d, a, s in zip(tap, dilations, at, strides))
            padded[(..., *place)] += windows[(slice(None), slice(None), *tap, *at)]
    return padded[(..., *(slice(p, p + s) for p, s in zip(pads, image)))].astype(x.dtype)


@case("Col2Im")
def columns_to_image(rng, opset, op):
    rank = int(rng.integers(1, 4))
    kernel = [int(v) for v in rng.integers(1, 4, rank)]
    dilations, strides = ([int(v) for v in rng.integers(1, 4, rank)] for _ in range(2))
    pads = [int(v) for v in rng.integers(0, 3, rank)]
    image = [d * (k - 1) + 1 + int(v) for d, k, v in zip(dilations, kernel, rng.integers(0, 12, rank))]
    windows = [spans(*v) for v in zip(image, kernel, dilations, pads, strides)]
    dims = (size(rng, 3), size(rng, 4) * int(np.prod(kernel)), int(np.prod(windows)))
    x = Tensor(dims, F32, normal(F32))
    if chance(rng, 0.4):
        open_dims(rng, x, ["n"])
    attributes = {"dilations": dilations, "strides": strides, "pads": pads + pads}
    # ONNX Runtime 1.31 adds rows of several channels where they do not lie, if windows are dilated by over 2.
    def oracle(values, *_):
        return fold(values, image, kernel, strides, dilations, pads)

    return Case(op, [x, const(image), const(kernel)], attributes, scale_tol=1e-5, oracle=oracle)


@case("STFT")
def short_time_fourier(rng, opset, op):
    length = choose(rng, (1, 2, 5, 8, 16, 31, 64))
    elements = length + choose(rng, (0, 1, 7, 40, 333))
    onesided = chance(rng, 0.6)
    parts = 1 if onesided else choose(rng, (1, 2))
    signal = Tensor((size(rng, 3), elements, parts), F32, normal(F32))
    if chance(rng, 0.5):
        open_dims(rng, signal, ["n", "elements"], [1, length])
    window = Tensor((length,), F32, uniform(F32, 0, 1), constant=chance(rng, 0.5)) if chance(rng, 0.6) else None
    step = const(int(rng.integers(1, length + 2)), shape=())
    frame = const(length, shape=()) if window is None or chance(rng, 0.5) else None
    inputs = [signal, step, window, frame]
    return Case(op, inputs, {"onesided": int(onesided)}, rtol=1e-3, scale_tol=1e-4)


@case("DeformConv")
def deformed_convolution(rng, opset, op):
    groups, moved, own, out = (choose(rng, (1, 1, 2, 3)) for _ in range(4))
    n, kernel = size(rng, 3), [int(v) for v in rng.integers(1, 4, 2)]
    channels = groups * moved * own
    strides, dilations = ([int(v) for v in rng.integers(1, 3, 2)] for _ in range(2))
    pads = [int(v) for v in rng.integers(0, 3, 2)]
    image = [d * (k - 1) + 1 + int(v) for d, k, v in zip(dilations, kernel, rng.integers(0, 9, 2))]
    windows = [spans(*v) for v in zip(image, kernel, dilations, pads, strides)]
    taps = moved * int(np.prod(kernel))
    x = Tensor((n, channels, *image), F32, normal(F32))
    filters = Tensor((groups * out, channels // groups, *kernel), F32, normal(F32), constant=chance(rng, 0.7))
    offsets = Tensor((n, 2 * taps, *windows), F32, normal(F32))
    bias = Tensor((groups * out,), F32, normal(F32)) if chance(rng, 0.5) else None
    mask = Tensor((n, taps, *windows), F32, uniform(F32, 0, 1)) if chance(rng, 0.5) else None
    attributes = {
        "group": groups, "offset_group": moved, "strides": strides, "dilations": dilations,
        "pads": pads + pads, "kernel_shape": kernel,
    }  # fmt: skip
    return Case(op, [x, filters, offsets, bias, mask], attributes, rtol=1e-3, scale_tol=1e-4)


@case("TensorScatter")
def tensor_scatter(rng, opset, op):
    dims = [size(rng, 4), *shape(rng, low=2, high=3, elements=2000)]
    axis = int(rng.integers(1, len(dims)))
    new = list(dims)
    new[axis] = int(rng.integers(1, dims[axis] + 1))
    mode = choose(rng, ("linear", "circular"))
    last = dims[axis] - 1 if mode == "circular" else dims[axis] - new[axis]
    dtype = pick_type(rng, op, opset, (F32, F16, *INTS[2:4]))
    where = Tensor((dims[0],), np.dtype(np.int64), integers(np.int64, 0, last))
    inputs = [Tensor(tuple(dims), dtype, numbers(dtype)), Tensor(tuple(new), dtype, numbers(dtype))]
    attributes = {"axis": axis if chance(rng, 0.5) else axis - len(dims), "mode": mode}
    return Case(op, [*inputs, where] if chance(rng, 0.8) else inputs, attributes)


@case("RoiAlign", since=16)
def regions(rng, opset, op):
    n, high, wide = size(rng, 4), *(int(v) for v in rng.integers(2, 20, 2))
    count = size(rng, 9)
    x = Tensor((n, size(rng, 5), high, wide), F32, normal(F32))

    def bounds(rng, dims):
        corners = rng.uniform(-3, [wide, high], (dims[0], 2))
        return np.concatenate([corners, corners + rng.uniform(0.1, [wide, high], (dims[0], 2))], 1).astype(np.float32)

    mode = choose(rng, ("avg", "avg", "max"))
    attributes = {
        "coordinate_transformation_mode": choose(rng, ("half_pixel", "output_half_pixel")), "mode": mode,
        "output_height": int(rng.integers(1, 6)), "output_width": int(rng.integers(1, 6)),
        "sampling_ratio": int(rng.integers(mode == "max", 4)), "spatial_scale": float(choose(rng, (1.0, 0.5))),
    }  # fmt: skip
    rois, where = Tensor((count, 4), F32, bounds), Tensor((count,), np.dtype(np.int64), integers(np.int64, 0, n - 1))
    return Case(op, [x, rois, where], attributes, rtol=1e-3, scale_tol=1e-4)


@case("Det")
def determinant(rng, opset, op):
    rows = int(rng.integers(1, 7))
    x = Tensor((*shape(rng, low=0, high=2, elements=50), rows, rows), F32, normal(F32))
    return Case(op, [x], rtol=1e-3, scale_tol=1e-4)


def attends(rng, dims):
    """Which keys a query may attend to: some rows none, some only first or last ones."""
    keep = rng.random(dims) < 0.7
    rows = keep.reshape(-1, dims[-1])
    kinds = rng.integers(5, size=len(rows))
    rows[kinds == 0] = False
    rows[kinds == 1, : 2 * dims[-1] // 3] = False
    rows[kinds == 2, dims[-1] // 3 :] = False
    return keep


def attention_result(q, k, v, mask=None, *, is_causal=0, scale=None, softcap=0.0):
    """What ONNX says: zeros for a query that may attend to nothing."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ np.swapaxes(k, 2, 3) * (scale or q.shape[-1] ** -0.5)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if mask is not None:
        if mask.dtype == bool:
            scores = np.where(mask, scores, -np.inf)
        else:  # the digits that float32 keeps of a score beside -1e9
            scores = (scores.astype(np.float32) + mask).astype(np.float64)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return (e / np.where(total == 0, 1, total) @ v).astype(np.float32)


@case("Attention")
def attention(rng, opset, op):
    n, q, k = size(rng, 3), size(rng, 17), size(rng, 140)
    heads = choose(rng, (1, 2, 4))
    shared = choose(rng, [h for h in (1, 2, 4) if heads % h == 0])
    depth, width = size(rng, 33), size(rng, 33)
    tensors = [
        Tensor((n, heads, q, depth), F32, normal(F32)),
        Tensor((n, shared, k, depth), F32, normal(F32)),
        Tensor((n, shared, k, width), F32, normal(F32)),
    ]
    if chance(rng, 0.7):
        kind = choose(rng, ("bias", "float", "bool"))
        dims = choose(rng, ((q, k), (n, 1, q, k), (1, 1, 1, k), (heads, q, k)))
        low = choose(rng, (-np.inf, -np.inf, -1e9))
        added = lambda rng, dims: np.where(attends(rng, dims), rng.standard_normal(dims), low)
        fill = {"bias": normal(F32), "float": added, "bool": attends}[kind]
        tensors.append(Tensor(dims, np.dtype(bool) if kind == "bool" else F32, fill))
    attributes = make_attribute_dict(
        is_causal=1 if chance(rng, 0.4) else None,
        scale=0.3 if chance(rng, 0.3) else None,
        softcap=2.0 if chance(rng, 0.2) else None,
    )
    return Case(
        op, tensors, attributes, scale_tol=2e-5,
        oracle=lambda *operands: attention_result(*operands, **attributes),
    )  # fmt: skip


@case("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def loss(rng, opset, op):
    n, classes = size(rng, 8), size(rng, 17)
    space = shape(rng, high=2, elements=20)
    i64 = np.dtype(np.int64)
    inputs = [
        Tensor((n, classes, *space), F32, normal(F32)),
        Tensor((n, *space), i64, integers(i64, 0, classes - 1)),
    ]
    if chance(rng, 0.5):
        inputs.append(Tensor((classes,), F32, uniform(F32, 0.2, 2)))
    attributes = {"reduction": choose(rng, ("none", "mean", "sum"))}
    if chance(rng, 0.3):
        attributes["ignore_index"] = int(rng.integers(classes))
        if n * int(np.prod(space)) < 8:
            attributes["reduction"] = "none"  # else perhaps nothing is left
    return Case(op, inputs, attributes, scale_tol=1e-5)


@case("RNN", "GRU", "LSTM")
def recurrent(rng, opset, op):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    steps, n, inner, hidden = (int(rng.integers(1, 7)) for _ in range(4))
    direction = choose(rng, ("forward", "reverse", "bidirectional"))
    count = 2 if direction == "bidirectional" else 1
    fixed = chance(rng, 0.7)
    weight = lambda *dims: Tensor(dims, F32, normal(F32, 0.5), {}, fixed)
    x = Tensor((steps, n, inner), F32, normal(F32))
    inputs = [x, weight(count, gates * hidden, inner), weight(count, gates * hidden, hidden)]
    inputs.append(weight(count, 2 * gates * hidden) if chance(rng, 0.7) else None)
    i32 = np.dtype(np.int32)
    lengths = Tensor((n,), i32, integers(i32, 1, steps)) if chance(rng, 0.4) else None
    state = lambda: Tensor((count, n, hidden), F32, normal(F32)) if chance(rng, 0.5) else None
    inputs += [lengths, state()]
    attributes = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM":
        inputs.append(state())
        inputs.append(weight(count, 3 * hidden) if chance(rng, 0.3) else None)
    if op == "GRU" and chance(rng, 0.5):
        attributes["linear_before_reset"] = 1
    while inputs[-1] is None:
        inputs.pop()
    return Case(op, inputs, attributes, outputs=3 if op == "LSTM" else 2, rtol=1e-4, scale_tol=1e-5)
