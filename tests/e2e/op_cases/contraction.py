"""Cases of MatMul, Gemm, Conv and pooling."""

from __future__ import annotations

from functools import partial

import numpy as np

from .base import (
    FLOATS, INTS, Case, Tensor, case, chance, choose, integers,
    make_attribute_dict, maybe_constant, normal, open_dims, pick_type, shape, size,
)  # fmt: skip


def thin(rng, *sizes):
    """Now and then one or two of the sizes are 1: products that are no products of tiles."""
    if not chance(rng, 0.2):
        return sizes
    ones = rng.permutation(len(sizes))[: rng.integers(1, 3)]
    return tuple(1 if i in ones else s for i, s in enumerate(sizes))


@case("MatMul")
def matmul(rng, opset, op):
    dtype = pick_type(rng, op, opset, (*FLOATS, *INTS[2:4]))
    m, n, k = thin(rng, size(rng, 131, 0.03), size(rng, 131), size(rng, 131, 0.03))
    fill = integers(dtype, -4, 4) if dtype in INTS else normal(dtype)
    batch = shape(rng, int(rng.integers(0, 3)), elements=12)
    left = (*batch, m, k)
    right = (*batch, k, n)
    if chance(rng, 0.4):  # broadcast batch
        right = (*(1 if chance(rng, 0.5) else d for d in batch), k, n)
    if chance(rng, 0.3):
        right = (k, n)
    if chance(rng, 0.08):
        left, right = (k,), (*batch, k, n)
    elif chance(rng, 0.08):
        right = (k,)
    a, b = Tensor(left, dtype, fill), Tensor(right, dtype, fill)
    kind = choose(rng, ("weights", "open", "fixed"))
    if kind == "weights":
        b.constant = True
    if kind != "fixed" and len(left) >= 2:
        names = [f"b{i}" for i in range(len(batch))]
        if kind == "open" and right[:-2] == batch:
            open_dims(rng, b, [*names, "", choose(rng, ("", "n"))])
        elif len(right) > 2:
            names = [""] * len(names)  # the other operand settles these axes
        open_dims(rng, a, [*names, choose(rng, ("", "m")), ""])
    return Case(op, [a, b], scale_tol=2e-6 * max(4, k**0.5))


@case("Gemm")
def gemm(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    m, n, k = thin(rng, size(rng, 131), size(rng, 131), size(rng, 131))
    ta, tb = int(chance(rng, 0.4)), int(chance(rng, 0.5))
    fill = normal(dtype)
    a = Tensor((k, m) if ta else (m, k), dtype, fill)
    b = Tensor((n, k) if tb else (k, n), dtype, fill)
    maybe_constant(rng, b, 0.6)
    inputs = [a, b]
    if opset < 11 or chance(rng, 0.7):
        bias = choose(rng, ((n,), (1, n), (m, 1), (m, n), (1,), ()))
        inputs.append(Tensor(bias, dtype, fill, {}, chance(rng, 0.6)))
        fixed_rows = m in bias[:1] and len(bias) == 2
    else:
        fixed_rows = False
    if chance(rng, 0.4) and not fixed_rows:
        open_dims(rng, a, ["", "m"] if ta else ["m", ""])
    attributes = make_attribute_dict(
        transA=ta or None, transB=tb or None,
        alpha=float(np.float32(rng.uniform(0.3, 2))) if chance(rng, 0.4) else None,
        beta=float(np.float32(rng.uniform(0.3, 2))) if chance(rng, 0.4) else None,
    )  # fmt: skip
    return Case(op, inputs, attributes, scale_tol=2e-6 * max(4, k**0.5))


def windows(rng, rank: int, dilated: bool = True):
    """Kernel, strides and dilations of a sliding window, and a large enough input."""
    kernel = [choose(rng, (1, 1, 2, 3, 3, 5)) for _ in range(rank)]
    strides = [choose(rng, (1, 1, 2, 3)) for _ in range(rank)]
    dilations = [choose(rng, (1, 1, 2)) if dilated else 1 for _ in range(rank)]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    limit = {1: 67, 2: 20, 3: 9}[rank]
    sizes = [e + int(rng.integers(0, limit)) for e in extents]
    return kernel, strides, dilations, extents, sizes


def paddings(rng, rank: int, extents, strides) -> dict:
    """Explicit pads, or one of the auto_pad modes, or nothing."""
    mode = choose(rng, ("pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", "none"))
    if mode.startswith("SAME") and any(s > e for s, e in zip(strides, extents)):
        mode = "none"  # would ask for a negative pad
    if mode == "none":
        return {}
    if mode == "pads":
        # A window must keep touching the input, or pooling has no answer.
        return {
            "pads": [
                int(rng.integers(0, (e + 1) // 2)) for _ in range(2) for e in extents
            ]
        }
    return {"auto_pad": mode}


def open_image(rng, tensor: Tensor, extents) -> None:
    rank = len(extents)
    kind = choose(rng, ("fixed", "fixed", "batch", "all"))
    if kind == "batch":
        open_dims(rng, tensor, ["n"])
    if kind == "all":
        names = ["n", "", *(f"x{i}" for i in range(rank))]
        open_dims(rng, tensor, names, [1, 0, *extents])


@case("Conv")
def conv(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    rank = choose(rng, (1, 2, 2, 2, 3))
    kernel, strides, dilations, extents, sizes = windows(rng, rank)
    style = choose(rng, ("dense", "dense", "grouped", "depthwise", "multiplier"))
    group, per_in, per_out = 1, size(rng, 17), size(rng, 33)
    if style == "grouped":
        group, per_in, per_out = choose(rng, (2, 3, 4)), size(rng, 5), size(rng, 5)
    if style == "depthwise":
        group, per_in, per_out = size(rng, 33), 1, 1
    if style == "multiplier":
        group, per_in, per_out = size(rng, 13), 1, choose(rng, (2, 3))
    x = Tensor((size(rng, 3), group * per_in, *sizes), dtype, normal(dtype))
    open_image(rng, x, extents)
    weights = Tensor((group * per_out, per_in, *kernel), dtype, normal(dtype))
    weights.constant = chance(rng, 0.8)
    inputs = [x, weights]
    if chance(rng, 0.6):
        inputs.append(
            Tensor((group * per_out,), dtype, normal(dtype), {}, weights.constant)
        )
    pads = paddings(rng, rank, kernel, strides)
    if str(pads.get("auto_pad", "")).startswith("SAME"):
        dilations = [1] * rank  # runtimes disagree on the other case
    attributes = make_attribute_dict(
        kernel_shape=kernel if chance(rng, 0.7) else None,
        strides=strides if chance(rng, 0.8) else None,
        dilations=dilations,
        group=group if group > 1 or chance(rng, 0.3) else None,
        **pads,
    )
    taps = per_in * int(np.prod(kernel))
    return Case(op, inputs, attributes, scale_tol=2e-6 * max(4, taps**0.5))


@case("MaxPool", "AveragePool", "LpPool")
def pool(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    rank = choose(rng, (1, 2, 2, 2, 3))
    dilated = op == "MaxPool" and opset >= 10 or opset >= 19
    kernel, strides, dilations, extents, sizes = windows(rng, rank, dilated)
    x = Tensor((size(rng, 3), size(rng, 9), *sizes), dtype, normal(dtype))
    open_image(rng, x, extents)
    attributes = dict(kernel_shape=kernel, **paddings(rng, rank, extents, strides))
    if chance(rng, 0.8):
        attributes["strides"] = strides
    if dilated and (max(dilations) > 1):
        attributes["dilations"] = dilations
        if str(attributes.get("auto_pad", "")).startswith("SAME"):
            del attributes["auto_pad"]
    ceil_since = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]
    if opset >= ceil_since and "auto_pad" not in attributes and chance(rng, 0.3):
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and max(strides) > 1 and "auto_pad" in attributes:
        x.symbols = {}  # how many pixels a window has would depend on the size
    if op == "AveragePool" and chance(rng, 0.5):
        attributes["count_include_pad"] = int(chance(rng, 0.5))
    if op == "LpPool" and chance(rng, 0.6):
        attributes["p"] = choose(rng, (1, 2, 3))
    if op == "LpPool" and dtype == np.float64:
        attributes.pop("ceil_mode", None)  # the reference, alone here, is wrong
    return Case(op, [x], attributes, scale_tol=5e-6)


@case("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    rank = choose(rng, (1, 2, 2, 3))
    dims = (size(rng, 5), size(rng, 33), *shape(rng, rank, elements=600))
    x = Tensor(dims, dtype, normal(dtype))
    if chance(rng, 0.4):
        open_dims(rng, x, ["n", "", "h"][: rank + 2])
    attributes = {}
    if op == "GlobalLpPool" and chance(rng, 0.6):
        attributes["p"] = choose(rng, (1, 2, 3))
    answer = {  # the oracles lack some types, or drop the reduced axes
        "GlobalAveragePool": lambda v, axes: v.mean(axes, keepdims=True),
        "GlobalMaxPool": lambda v, axes: v.max(axes, keepdims=True),
        "GlobalLpPool": partial(lp_norm, attributes.get("p", 2)),
    }[op]

    def oracle(value):
        axes = tuple(range(2, value.ndim))
        return answer(value.astype(np.float64), axes).astype(value.dtype)

    return Case(op, [x], attributes, scale_tol=5e-6, oracle=oracle)


def lp_norm(p: int, x: np.ndarray, axes) -> np.ndarray:
    return (np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)
