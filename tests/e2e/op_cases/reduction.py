"""Cases of reductions, softmax and normalizations."""

from __future__ import annotations

import numpy as np

from .base import (
    BF16, F16, F32, F64, FLOATS, INTS, Case, Tensor, case, chance, choose, const,
    integers, make_attribute_dict, negative, normal, numbers, open_broadcast,
    open_dims, pick_type, shape, size, uniform,
)  # fmt: skip

# Opset from which `axes` is an input instead of an attribute.
AXES_INPUT = {"ReduceSum": 13}


def reduced_axes(rng, rank: int):
    """Some axes, unordered, some negative; None for all of them."""
    if rank == 0 or chance(rng, 0.15):
        return None
    count = int(rng.integers(1, rank + 1))
    picks = rng.permutation(rank)[:count]
    return [int(negative(rng, int(a), rank)) for a in picks]


@case(
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
def reduce(rng, opset, op):
    exact = op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare")
    among = (*FLOATS, *INTS[2:4]) if exact else FLOATS
    dtype = pick_type(rng, op, opset, among)
    fill = {
        "ReduceProd": uniform(dtype, 0.9, 1.1),
        "ReduceLogSum": uniform(dtype, 0.1, 2),
    }.get(op, numbers(dtype))
    x = Tensor(shape(rng, low=1), dtype, fill)
    open_broadcast(rng, [x], 0.4)
    axes = reduced_axes(rng, len(x.shape))
    attributes = {}
    if chance(rng, 0.7):
        attributes["keepdims"] = int(chance(rng, 0.5))
    inputs = [x]
    if opset >= AXES_INPUT.get(op, 18):
        if axes is not None:
            inputs.append(const(axes))
        elif chance(rng, 0.5):
            attributes["noop_with_empty_axes"] = int(chance(rng, 0.5))
            if chance(rng, 0.5):
                inputs.append(const([], np.int64))
    elif axes is not None:
        attributes["axes"] = axes
    return Case(op, inputs, attributes, scale_tol=5e-6)


@case("ArgMax", "ArgMin")
def arg_reduce(rng, opset, op):
    dtype = pick_type(rng, op, opset, (F32, F16, F64, *INTS[2:4]))
    x = Tensor(shape(rng, low=1), dtype, normal(dtype))
    if dtype in INTS or chance(rng, 0.4):
        x.fill = integers(dtype, 0, 3)  # ties decide which index is right
    open_broadcast(rng, [x], 0.3)
    attributes = {}
    if chance(rng, 0.85):
        attributes["axis"] = choose(rng, range(len(x.shape)))
        if opset >= 11:
            attributes["axis"] = negative(rng, attributes["axis"], len(x.shape))
    if chance(rng, 0.6):
        attributes["keepdims"] = int(chance(rng, 0.5))
    if opset >= 12 and chance(rng, 0.4):
        attributes["select_last_index"] = int(chance(rng, 0.5))
    return Case(op, [x], attributes)


@case("Softmax", "LogSoftmax", "Hardmax")
def softmax(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    x = Tensor(shape(rng, low=1), dtype, normal(dtype, choose(rng, (1, 4))))
    open_broadcast(rng, [x], 0.4)
    rank = len(x.shape)
    attributes = {}
    if chance(rng, 0.8) or (opset < 13 and rank == 1):
        axis = choose(rng, range(rank))
        attributes["axis"] = negative(rng, axis, rank) if opset >= 11 else axis
    oracle = None
    if op == "Hardmax" and opset < 13 and dtype == np.float64:
        # ONNX Runtime lacks the type, the reference that axes are flattened.
        axis = attributes.get("axis", 1) % rank

        def oracle(value):
            flat = value.reshape(int(np.prod(value.shape[:axis])), -1)
            hits = np.zeros_like(flat)
            hits[np.arange(len(flat)), flat.argmax(1)] = 1
            return hits.reshape(value.shape)

    return Case(op, [x], attributes, scale_tol=5e-6, oracle=oracle)


@case("BatchNormalization")
def batch_norm(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    dims = shape(rng, low=2, high=5, elements=10000)
    channels = dims[1]
    x = Tensor(dims, dtype, normal(dtype))
    if chance(rng, 0.4):
        open_dims(rng, x, ["n"])
    # Statistics may have their own type from opset 14 and 15 on; keep x's.
    fixed = chance(rng, 0.8)
    stats = [
        Tensor((channels,), dtype, fill, {}, fixed)
        for fill in (
            normal(dtype), normal(dtype), normal(dtype), uniform(dtype, 0.2, 2),
        )
    ]  # fmt: skip
    attributes = {}
    if chance(rng, 0.6):
        attributes["epsilon"] = choose(rng, (1e-5, 1e-3))
    if chance(rng, 0.3):
        attributes["momentum"] = 0.8
    return Case(op, [x, *stats], attributes, scale_tol=5e-6)


@case("InstanceNormalization")
def instance_norm(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    dims = (size(rng, 3), size(rng, 17), *shape(rng, choose(rng, (1, 2, 3)), 500))
    if np.prod(dims[2:]) < 2:  # one element has no variance to divide by
        dims = (*dims[:2], 7, *dims[3:])
    x = Tensor(dims, dtype, normal(dtype, 1, 0.5))
    if chance(rng, 0.4):
        open_dims(rng, x, ["n"])
    affine = [Tensor((dims[1],), dtype, normal(dtype), {}, True) for _ in range(2)]
    attributes = {"epsilon": 1e-3} if chance(rng, 0.5) else {}
    return Case(op, [x, *affine], attributes, scale_tol=2e-5)


@case("GroupNormalization")
def group_norm(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    groups, per = choose(rng, (1, 2, 3, 4)), choose(rng, (1, 2, 5))
    dims = (size(rng, 3), groups * per, *shape(rng, choose(rng, (1, 2)), 300))
    if np.prod(dims[2:]) < 2:
        dims = (*dims[:2], 7, *dims[3:])
    x = Tensor(dims, dtype, normal(dtype, 1, 0.5))
    if chance(rng, 0.4):
        open_dims(rng, x, ["n"])
    # Opset 18 has one scale per group, later ones one per channel.
    count = groups if opset < 21 else groups * per
    affine = [Tensor((count,), dtype, normal(dtype), {}, True) for _ in range(2)]
    attributes = {"num_groups": groups}
    if chance(rng, 0.5):
        attributes["epsilon"] = 1e-3
    return Case(op, [x, *affine], attributes, scale_tol=2e-5)


@case("LayerNormalization", "RMSNormalization")
def layer_norm(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    dims = shape(rng, low=1, elements=20000)
    rank = len(dims)
    axis = choose(rng, range(rank)) if chance(rng, 0.4) else rank - 1
    if np.prod(dims[axis:]) < 2:
        dims = (*dims[:-1], 31)
    x = Tensor(dims, dtype, normal(dtype, 1, 0.5))
    if chance(rng, 0.5):
        open_dims(rng, x, [f"d{i}" for i in range(axis)])
    inputs = [x, Tensor(dims[axis:], dtype, normal(dtype), {}, chance(rng, 0.8))]
    if op == "LayerNormalization" and chance(rng, 0.7):
        inputs.append(Tensor(dims[axis:], dtype, normal(dtype), {}, True))
    attributes = make_attribute_dict(
        axis=negative(rng, axis, rank) if axis != rank - 1 or chance(rng, 0.5) else None,
        epsilon=choose(rng, (None, 1e-3, 1e-12 if dtype != F16 else 1e-3)),
    )
    outputs = 3 if op == "LayerNormalization" and chance(rng, 0.15) else 1
    return Case(op, inputs, attributes, outputs, scale_tol=2e-5)


@case("LRN")
def lrn(rng, opset, op):
    dtype = pick_type(rng, op, opset, (F32, F16, BF16))
    dims = (size(rng, 3), size(rng, 33), *shape(rng, choose(rng, (1, 2)), 200))
    if len(dims) == 3:
        dims = (*dims, 1)  # ONNX Runtime wants four axes
    x = Tensor(dims, dtype, normal(dtype))
    if chance(rng, 0.4):
        open_dims(rng, x, ["n"])
    attributes = make_attribute_dict(
        size=choose(rng, (1, 3, 5)),
        alpha=choose(rng, (None, 1e-3, 0.5)),
        beta=choose(rng, (None, 0.5)),
        bias=choose(rng, (None, 2.0)),
    )
    return Case(op, [x], attributes, scale_tol=2e-5)


@case("LpNormalization")
def lp_norm(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    x = Tensor(shape(rng, low=1), dtype, normal(dtype, 1, 2))
    open_broadcast(rng, [x], 0.3)
    rank = len(x.shape)
    attributes = make_attribute_dict(
        axis=negative(rng, choose(rng, range(rank)), rank),
        p=choose(rng, (None, 1, 2)),
    )
    return Case(op, [x], attributes, scale_tol=1e-5)


@case("MeanVarianceNormalization")
def mean_variance(rng, opset, op):
    dtype = F32  # its function body holds constants of this type
    dims = (size(rng, 5), size(rng, 9), *shape(rng, 2, elements=300))
    if np.prod(dims) < 4:
        dims = (2, 3, 5, 7)
    x = Tensor(dims, dtype, normal(dtype, 1, 0.5))
    attributes = {}
    if dims[0] * dims[2] * dims[3] < 2 or chance(rng, 0.5):
        attributes["axes"] = [0, 1, 2, 3]
    return Case(op, [x], attributes, scale_tol=2e-5)
