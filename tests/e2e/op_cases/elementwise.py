"""Cases of element-wise operators, comparisons, casts, Where and Clip."""

from __future__ import annotations

import numpy as np

from .base import (
    BF16, BOOL, F32, F64, FLOATS, INTS, Case, Tensor, allowed_types, booleans,
    broadcast_shapes, case, chance, choose, const, integers, maybe_constant, normal,
    numbers, open_broadcast, pick_type, shape, uniform, with_specials,
)  # fmt: skip

INF, NAN = float("inf"), float("nan")
SIGNED_ZERO = (0.0, -0.0)

# name: (fill for a float type, special values that have one right answer)
FLOAT_UNARY = {
    "Exp": (lambda t: uniform(t, -10, 9), (INF, -INF, NAN, 0.0)),
    "Log": (lambda t: uniform(t, 1e-3, 50), (INF, NAN, 0.0, -1.0, 1.0)),
    "Sqrt": (lambda t: uniform(t, 0, 50), (INF, NAN, 0.0, -1.0)),
    "Reciprocal": (lambda t: normal(t, 1, 3), (INF, -INF, 2.0)),
    "Floor": (lambda t: normal(t, 4), (0.5, -0.5, 2.0, -2.0)),
    "Ceil": (lambda t: normal(t, 4), (0.5, -0.5, 2.0, -2.0)),
    "Round": (lambda t: normal(t, 4), (0.5, -0.5, 1.5, 2.5, -1.5, -2.5)),
    "Erf": (lambda t: normal(t, 2), (INF, -INF, 0.0, 6.0, -6.0)),
    "Sin": (lambda t: normal(t, 4), (0.0, 100.0)),
    "Cos": (lambda t: normal(t, 4), (0.0, 100.0)),
    "Tan": (lambda t: uniform(t, -1.4, 1.4), SIGNED_ZERO),
    "Asin": (lambda t: uniform(t, -1, 1), (1.0, -1.0, 0.0)),
    "Acos": (lambda t: uniform(t, -1, 1), (1.0, -1.0, 0.0)),
    "Atan": (lambda t: normal(t, 4), (INF, -INF, 0.0)),
    "Sinh": (lambda t: normal(t, 2), SIGNED_ZERO),
    "Cosh": (lambda t: normal(t, 2), SIGNED_ZERO),
    "Asinh": (lambda t: normal(t, 4), SIGNED_ZERO),
    "Acosh": (lambda t: uniform(t, 1, 20), (1.0,)),
    "Atanh": (lambda t: uniform(t, -0.95, 0.95), SIGNED_ZERO),
    "Tanh": (lambda t: normal(t, 3), (INF, -INF, NAN, 0.0, 20.0, -20.0)),
    "Sigmoid": (lambda t: normal(t, 4), (INF, -INF, NAN, 0.0, 80.0, -80.0)),
    "Softplus": (lambda t: normal(t, 4), (0.0, 50.0, -50.0)),
    "Softsign": (lambda t: normal(t, 4), SIGNED_ZERO),
    "HardSwish": (lambda t: normal(t, 4), (3.0, -3.0)),
    "Mish": (lambda t: normal(t, 3), (0.0, 20.0, -20.0)),
    "Swish": (lambda t: normal(t, 3), (0.0, 20.0, -20.0)),
    "IsNaN": (lambda t: normal(t, 4), (INF, -INF, NAN)),
}  # fmt: skip


def unary_operand(rng, dtype, fill, dynamic=0.35) -> Tensor:
    operand = Tensor(shape(rng, empty=0.04), dtype, fill)
    open_broadcast(rng, [operand], dynamic)
    return operand


@case(*FLOAT_UNARY)
def float_unary(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    make, specials = FLOAT_UNARY[op]
    fill = make(dtype)
    if chance(rng, 0.3):
        fill = with_specials(fill, specials)
    attributes = {}
    if op == "Swish" and chance(rng, 0.5):
        attributes["alpha"] = float(rng.uniform(0.5, 2))
    result = Case(op, [unary_operand(rng, dtype, fill)], attributes)
    result.oracle = FLOAT_UNARY_ORACLES.get(op)
    return result


def softsign(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return np.asarray(wide / (1 + np.abs(wide))).astype(x.dtype)


def sigmoid(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x.astype(np.float64)))).astype(x.dtype)


# ONNX Runtime's Sigmoid is a rational approximation, 1 % off at -12.
FLOAT_UNARY_ORACLES = {"Softsign": softsign, "Sigmoid": sigmoid}


@case("Abs", "Neg", "Sign", "Relu", "Identity")
def number_unary(rng, opset, op):
    dtype = pick_type(rng, op, opset, (*FLOATS, *INTS))
    return Case(op, [unary_operand(rng, dtype, numbers(dtype, 3))])


ALPHA = {
    "LeakyRelu": dict(alpha=(0.01, 0.5)), "Elu": dict(alpha=(0.5, 2)),
    "Celu": dict(alpha=(0.5, 2)), "Selu": dict(alpha=(0.5, 2), gamma=(0.5, 2)),
    "ThresholdedRelu": dict(alpha=(0.2, 1)),
    "HardSigmoid": dict(alpha=(0.1, 0.5), beta=(0.2, 0.7)),
    "Shrink": dict(lambd=(0.2, 1), bias=(0, 0.5)),
}  # fmt: skip


@case(*ALPHA)
def activation(rng, opset, op):
    among = (*FLOATS, *INTS) if op == "Shrink" else FLOATS
    dtype = pick_type(rng, op, opset, among)
    if dtype.kind == "u":
        dtype = F32
    attributes = {
        name: float(np.float32(rng.uniform(low, high)))
        for name, (low, high) in ALPHA[op].items() if chance(rng, 0.7)
    }  # fmt: skip
    if dtype in INTS:  # the reference rounds fractions in its own way
        attributes = {"lambd": 2.0, "bias": 1.0}
    return Case(op, [unary_operand(rng, dtype, numbers(dtype, 3))], attributes)


@case("Gelu")
def gelu(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    mode = choose(rng, ({}, {"approximate": "none"}, {"approximate": "tanh"}))
    # x / 2 * (1 + erf) is a difference of two rounded numbers of about 1 where x is -3 or less: there all that is left of it is
    # an error of some 1e-7 x / 2, in ONNX Runtime as here, and an output may have no larger numbers.
    operand = unary_operand(rng, dtype, normal(dtype, 2))
    return Case(op, [operand], mode, absolute=0 if dtype == F64 else 5e-7)


@case("PRelu")
def prelu(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    dims = shape(rng, low=1)
    slope = tuple(d if chance(rng, 0.5) else 1 for d in dims)
    slope = slope[int(rng.integers(0, len(slope))) :]
    return Case(
        op, [Tensor(dims, dtype, normal(dtype)), Tensor(slope, dtype, normal(dtype))]
    )


@case("IsInf")
def is_inf(rng, opset, op):
    dtype = pick_type(rng, op, opset)
    attributes = {
        name: int(chance(rng, 0.5))
        for name in ("detect_negative", "detect_positive") if chance(rng, 0.5)
    }  # fmt: skip
    fill = with_specials(normal(dtype), (INF, -INF, NAN))
    return Case(op, [unary_operand(rng, dtype, fill)], attributes)


@case("Not")
def logical_not(rng, opset, op):
    return Case(op, [unary_operand(rng, BOOL, booleans())])


@case("BitwiseNot")
def bitwise_not(rng, opset, op):
    dtype = choose(rng, INTS)
    return Case(op, [unary_operand(rng, dtype, numbers(dtype))])


def binary_case(rng, op, dtype, left, right, right_type=None, **options) -> Case:
    a, b = broadcast_shapes(rng, 2)
    tensors = [Tensor(a, dtype, left), Tensor(b, right_type or dtype, right)]
    maybe_constant(rng, choose(rng, tensors), 0.25)
    open_broadcast(rng, tensors)
    return Case(op, tensors, **options)


@case("Add", "Sub", "Mul")
def arithmetic(rng, opset, op):
    dtype = pick_type(rng, op, opset, (*FLOATS, *INTS))
    return binary_case(rng, op, dtype, numbers(dtype, 3), numbers(dtype, 3))


@case("Div")
def division(rng, opset, op):
    dtype = pick_type(rng, op, opset, (*FLOATS, *INTS))
    if dtype in INTS:
        low = 0 if dtype.kind == "u" else -90
        divisor = integers(dtype, 1, 9)
        if dtype.kind == "i" and chance(rng, 0.5):
            divisor = integers(dtype, -9, -1)
        return binary_case(rng, op, dtype, integers(dtype, low, 90), divisor)
    return binary_case(rng, op, dtype, normal(dtype, 3), normal(dtype, 0.3, 2))


@case("Mod")
def modulo(rng, opset, op):
    types = [t for t in (*INTS, *FLOATS) if t in allowed_types(op, opset)]
    dtype = choose(rng, types)
    fmod = int(dtype in FLOATS or chance(rng, 0.4))
    low = 0 if dtype.kind == "u" else -90
    divisor = integers(dtype, 1, 9)
    if dtype.kind != "u" and chance(rng, 0.5):
        divisor = integers(dtype, -9, -1)
    return binary_case(
        rng, op, dtype, integers(dtype, low, 90), divisor, attributes={"fmod": fmod}
    )


@case("Pow")
def power(rng, opset, op):
    if opset >= 12 and chance(rng, 0.3):
        return integer_power(rng, opset, op)
    dtype = pick_type(rng, op, opset)
    kind = choose(rng, ("square", "any", "root", "integer"))
    if kind == "any" and dtype in allowed_types(op, opset, 1):
        return binary_case(
            rng, op, dtype, uniform(dtype, 0.1, 4), uniform(dtype, -2, 2), rtol=None
        )
    base, exponent = normal(dtype, 2), np.asarray(2.0)
    if kind == "root":
        base, exponent = uniform(dtype, 0.1, 9), np.asarray(0.5)
    if kind == "integer":
        exponent = np.asarray(choose(rng, (0.0, 1.0, 3.0, -1.0, -2.0)))
        base = normal(dtype, 0.3, choose(rng, (2, -2)))
    operand = unary_operand(rng, dtype, base)
    exponent_type = dtype
    if opset >= 12 and dtype not in allowed_types(op, opset, 1):
        exponent_type = F32
    elif opset >= 12 and chance(rng, 0.3) and kind != "root":
        exponent_type = np.dtype(choose(rng, (np.int32, np.int64, np.float32)))
    return Case(op, [operand, const(exponent, exponent_type)])


def integer_power(rng, opset, op) -> Case:
    """Integer bases are exact, wrap, and below zero give the whole part."""
    among = (np.dtype(np.int32), np.dtype(np.int64))
    dtype = choose(rng, [t for t in among if t in allowed_types(op, opset)])
    exponent = choose(rng, (*INTS, F32, F64))
    low = 0 if exponent.kind == "u" else -3
    fills = choose(rng, (
        (integers(dtype, -40, 40), integers(exponent, low, 6)),
        (integers(dtype, -3, 3), integers(exponent, low, 31 if dtype.itemsize == 4 else 63)),
        (integers(dtype, -(2**20), 2**20), integers(exponent, 0, 120)),
    ))  # fmt: skip
    return binary_case(rng, op, dtype, *fills, right_type=exponent, oracle=exact_power)


def exact_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = x.dtype.itemsize * 8

    def of(base: int, exponent: int) -> int:
        if exponent < 0 and base == 0:
            return -(2 ** (bits - 1))
        if exponent < 0:
            return base ** (-exponent) if abs(base) == 1 else 0
        value = pow(base, exponent, 2**bits)
        return value - 2**bits if value >= 2 ** (bits - 1) else value

    # An array of objects, since unsigned and signed 64 bits have no common type.
    values = np.frompyfunc(lambda a, b: of(int(a), int(b)), 2, 1)(x, y)
    return np.asarray(values, object).astype(x.dtype)


@case("Min", "Max", "Sum", "Mean")
def variadic(rng, opset, op):
    among = (*FLOATS, *INTS) if op in ("Min", "Max") else FLOATS
    dtype = pick_type(rng, op, opset, among)
    count = int(rng.integers(1, 5))
    dims = broadcast_shapes(rng, count)
    tensors = [Tensor(d, dtype, numbers(dtype, 3)) for d in dims]
    open_broadcast(rng, tensors)
    return Case(op, tensors, oracle=mean if op == "Mean" else None)


def mean(*values: np.ndarray) -> np.ndarray:
    total = sum(v.astype(np.float64) for v in values) / len(values)
    return np.asarray(total).astype(values[0].dtype)


@case("And", "Or", "Xor")
def logical(rng, opset, op):
    return binary_case(rng, op, BOOL, booleans(), booleans())


@case("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
def comparison(rng, opset, op):
    dtype = pick_type(rng, op, opset, (*FLOATS, *INTS, BOOL))
    fill = booleans() if dtype == BOOL else integers(dtype, 0, 4)
    if dtype in FLOATS and chance(rng, 0.3):
        fill = with_specials(fill, (NAN, INF, -INF, -0.0))
    return binary_case(rng, op, dtype, fill, fill)


@case("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(rng, opset, op):
    dtype = choose(rng, INTS)
    return binary_case(rng, op, dtype, numbers(dtype), numbers(dtype))


@case("BitShift")
def bit_shift(rng, opset, op):
    dtype = choose(rng, [d for d in INTS if d.kind == "u"])
    attributes = {"direction": choose(rng, ("LEFT", "RIGHT"))}
    return binary_case(
        rng, op, dtype, integers(dtype, 0, 200), integers(dtype, 0, 6),
        attributes=attributes,
    )  # fmt: skip


@case("Cast", "CastLike")
def cast(rng, opset, op):
    from .base import ONNX_TYPES

    types = (*FLOATS, BOOL, *INTS)
    if opset < 13:  # bfloat16 came then
        types = tuple(t for t in types if t != BF16)
    source, target = choose(rng, types), choose(rng, types)
    # Values every type can hold exactly or rounds the same way everywhere.
    low = 0 if target.kind == "u" or source.kind == "u" else -100
    fill = integers(source, low, 100)
    if source in FLOATS:
        fill = uniform(source, low, 100)
    if source == BOOL:
        fill = booleans()
    operand = unary_operand(rng, source, fill)
    if op == "CastLike":
        return Case(op, [operand, const([1], target)])
    return Case(op, [operand], {"to": int(ONNX_TYPES[target])})


@case("BitCast")
def bit_cast(rng, opset, op):
    from .base import ONNX_TYPES

    source = choose(rng, (*FLOATS, *INTS))
    target = choose(rng, [t for t in (*FLOATS, *INTS) if t.itemsize == source.itemsize])
    # Small integers would read as denormal floats, which arithmetic may flush.
    low = 2 ** (source.itemsize * 8 - 3) if target.kind not in "iu" and source in INTS else 0
    operand = unary_operand(rng, source, integers(source, low, low + 1000) if low else numbers(source))
    return Case(
        op, [operand], {"to": int(ONNX_TYPES[target])}, oracle=lambda x: x.view(target),
    )  # fmt: skip


@case("Where")
def where(rng, opset, op):
    dtype = pick_type(rng, op, opset, (*FLOATS, *INTS, BOOL), operand=1)
    dims = broadcast_shapes(rng, 3)
    tensors = [
        Tensor(dims[0], BOOL, booleans()),
        Tensor(dims[1], dtype, numbers(dtype)),
        Tensor(dims[2], dtype, numbers(dtype)),
    ]
    maybe_constant(rng, tensors[2])
    open_broadcast(rng, tensors)
    return Case(op, tensors)


@case("Clip")
def clip(rng, opset, op):
    among = (*FLOATS, *INTS) if opset >= 12 else FLOATS
    dtype = pick_type(rng, op, opset, among)
    operand = unary_operand(rng, dtype, numbers(dtype, 3))
    low, high = (2, 5) if dtype.kind == "u" else (-2, 3)
    keep_low, keep_high = chance(rng, 0.7), chance(rng, 0.7)
    if opset < 11:
        bounds = {}
        if keep_low:
            bounds["min"] = float(low)
        if keep_high:
            bounds["max"] = float(high)
        return Case(op, [operand], bounds)
    bounds = [
        const(value, dtype) if keep else None
        for value, keep in ((low, keep_low), (high, keep_high))
    ]
    if bounds[0] is not None and chance(rng, 0.2):  # bounds may be computed values
        bounds[0].constant = False
    return Case(op, [operand, *bounds])
