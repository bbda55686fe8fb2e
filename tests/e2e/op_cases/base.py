"""What a random operator case is, and the registry of its generators.

A generator is `f(rng, opset) -> Case`; it draws shapes, attributes and element
types that the operator's schema allows at that opset. Shapes favour what breaks
compilers: 1, primes, sizes that no tile divides, and empty where that is legal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

Rng = np.random.Generator
Fill = Callable[[Rng, tuple[int, ...]], np.ndarray]

BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = map(np.dtype, ("float16", "float32", "float64"))
FLOATS = (F32, F16, BF16, F64)
INTS = tuple(map(np.dtype, "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()))
BOOL = np.dtype(bool)

TYPE_NAMES = {
    "tensor(float)": F32, "tensor(float16)": F16, "tensor(bfloat16)": BF16,
    "tensor(double)": F64, "tensor(bool)": BOOL,
    **{f"tensor({d.name})": d for d in INTS},
}  # fmt: skip
ONNX_TYPES = {
    F32: TensorProto.FLOAT, F16: TensorProto.FLOAT16, BF16: TensorProto.BFLOAT16,
    F64: TensorProto.DOUBLE, BOOL: TensorProto.BOOL,
    **{d: getattr(TensorProto, d.name.upper()) for d in INTS},
}  # fmt: skip
# Relative error allowed for one operator, per element type.
TOLERANCE = {F32: 3e-5, F16: 2e-3, BF16: 1.6e-2, F64: 1e-6}


@dataclass
class Tensor:
    """One operand: how to fill it, and which dimensions the model leaves open.

    `symbols` maps an axis to (name, smallest size); axes that share a name share
    their size. A constant becomes an initializer of the model.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    fill: Fill
    symbols: dict[int, tuple[str, int]] = field(default_factory=dict)
    constant: bool = False


def const(values, dtype=np.int64, shape=None) -> Tensor:
    """A constant operand with these very values."""
    array = np.asarray(values, dtype)
    if shape is not None:
        array = array.reshape(shape)
    return Tensor(array.shape, array.dtype, lambda _r, _s: array, {}, True)


@dataclass
class Case:
    """One node: its operands (None for an omitted one), attributes, outputs."""

    op: str
    inputs: list[Tensor | None]
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    rtol: float | None = None  # None: TOLERANCE of the output's type
    # Error that counts as none, in units of the largest output; sums need it.
    scale_tol: float = 1e-6
    # Error that counts as none, whatever the outputs are.
    absolute: float = 0.0
    # NumPy's answer, for what neither ONNX Runtime nor the reference implements.
    oracle: Callable[..., np.ndarray] | None = None


Generator = Callable[[Rng, int], Case]


@dataclass(frozen=True)
class Entry:
    op: str
    since: int
    generate: Generator


REGISTRY: dict[str, Entry] = {}


def case(*ops: str, since: int = 7):
    """Registers a generator `f(rng, opset, op)` under each operator name."""

    def register(function):
        for op in ops:
            first = max(since, first_version(op))
            REGISTRY[op] = Entry(
                op, first, lambda rng, opset, op=op: function(rng, opset, op)
            )
        return function

    return register


def first_version(op: str) -> int:
    versions = [
        s.since_version for s in onnx.defs.get_all_schemas_with_history()
        if s.name == op and s.domain == ""
    ]  # fmt: skip
    return min(versions)


def allowed_types(op: str, opset: int, operand: int = 0) -> set[np.dtype]:
    """The element types that the schema allows for that operand."""
    schema = onnx.defs.get_schema(op, opset)
    operands = schema.inputs
    types = operands[min(operand, len(operands) - 1)].types
    return {TYPE_NAMES[t] for t in types if t in TYPE_NAMES}


def choose(rng: Rng, options: Sequence):
    return options[int(rng.integers(len(options)))]


def chance(rng: Rng, probability: float) -> bool:
    return bool(rng.random() < probability)


def pick_type(
    rng: Rng, op: str, opset: int, among: Sequence[np.dtype] = FLOATS,
    operand: int = 0, favour: np.dtype = F32,
) -> np.dtype:  # fmt: skip
    """An allowed element type; mostly `favour`."""
    legal = [t for t in among if t in allowed_types(op, opset, operand)]
    if favour in legal and chance(rng, 0.65):
        return favour
    return choose(rng, legal)


SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 61, 64, 67, 127, 131)


def size(rng: Rng, limit: int = 200, empty: float = 0.0) -> int:
    if empty and chance(rng, empty):
        return 0
    return choose(rng, [s for s in SIZES if s <= limit])


def shape(
    rng: Rng, rank: int | None = None, elements: int = 30000, empty: float = 0.0,
    low: int = 0, high: int = 4,
) -> tuple[int, ...]:  # fmt: skip
    """A shape of at most `elements` elements."""
    if rank is None:
        rank = int(rng.integers(low, high + 1))
    dims: list[int] = []
    left = elements
    for axis in range(rank):
        limit = max(1, left if axis == rank - 1 else min(left, 131))
        dims.append(size(rng, limit, empty))
        left //= max(1, dims[-1])
    order = rng.permutation(rank)
    return tuple(dims[i] for i in order)


# --- Fills -------------------------------------------------------------------


def normal(dtype: np.dtype, scale: float = 1.0, shift: float = 0.0) -> Fill:
    return lambda rng, dims: (rng.standard_normal(dims) * scale + shift).astype(dtype)


def uniform(dtype: np.dtype, low: float, high: float) -> Fill:
    return lambda rng, dims: rng.uniform(low, high, dims).astype(dtype)


def integers(dtype: np.dtype, low: int, high: int) -> Fill:
    """Integers in [low, high], also as floats."""
    return lambda rng, dims: rng.integers(low, high + 1, dims).astype(dtype)


def booleans(dtype: np.dtype = BOOL) -> Fill:
    return lambda rng, dims: (rng.random(dims) < 0.5).astype(dtype)


def with_specials(fill: Fill, specials: Sequence[float]) -> Fill:
    """Replaces some elements by special values such as infinities."""

    def filled(rng: Rng, dims):
        value = fill(rng, dims)
        hits = rng.random(dims) < 0.1
        picks = rng.choice(np.asarray(specials, np.float64), dims).astype(value.dtype)
        return np.where(hits, picks, value)

    return filled


def numbers(dtype: np.dtype, scale: float = 1.0) -> Fill:
    """Ordinary values of a type: normal floats, small integers, booleans."""
    if dtype == BOOL:
        return booleans()
    if dtype in INTS:
        low = 0 if dtype.kind == "u" else -9
        return integers(dtype, low, 9)
    return normal(dtype, scale)


# --- Symbols -----------------------------------------------------------------


def open_dims(rng: Rng, tensor: Tensor, names: str | Sequence[str], low=None) -> None:
    """Leaves some axes open: axis i gets names[i]; '' keeps it fixed."""
    for axis, name in enumerate(names):
        # An open dimension has at least one element; only a fixed one may be 0.
        if name and axis < len(tensor.shape) and tensor.shape[axis]:
            tensor.symbols[axis] = (name, low[axis] if low else 1)


def broadcast_shapes(rng: Rng, count: int, empty: float = 0.05) -> list[tuple]:
    """Shapes that broadcast together: axes of size 1 and missing leading axes."""
    full = shape(rng, elements=8000, empty=empty)
    result = []
    for _ in range(count):
        dims = tuple(1 if chance(rng, 0.25) else d for d in full)
        drop = int(rng.integers(0, len(full) + 1)) if chance(rng, 0.35) else 0
        result.append(dims[drop:])
    if chance(rng, 0.7):
        result[int(rng.integers(count))] = full
    return result


def open_broadcast(rng: Rng, tensors: Sequence[Tensor], probability=0.35) -> None:
    """Leaves aligned axes of broadcast operands open, under shared names."""
    if not chance(rng, probability):
        return
    fixed = {  # axes, counted from the last, whose size a constant settles
        len(t.shape) - axis
        for t in tensors if t.constant
        for axis, extent in enumerate(t.shape) if extent != 1
    }  # fmt: skip
    for tensor in tensors:
        rank = len(tensor.shape)
        for axis, extent in enumerate(tensor.shape):
            if extent > 1 and not tensor.constant and rank - axis not in fixed:
                tensor.symbols[axis] = (f"d{rank - axis}", 1)


def maybe_constant(rng: Rng, tensor: Tensor, probability: float = 0.3) -> Tensor:
    """Makes the operand an initializer now and then (weights often are)."""
    if chance(rng, probability):
        tensor.constant = True
        tensor.symbols = {}
    return tensor


def negative(rng: Rng, axis: int, rank: int) -> int:
    """The same axis, half of the time counted from the end."""
    return axis - rank if chance(rng, 0.5) else axis


def make_attribute_dict(**attributes) -> dict:
    return {k: v for k, v in attributes.items() if v is not None}


def value_info(name: str, dtype: np.dtype, dims) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, ONNX_TYPES[dtype], dims)


def tensor_proto(name: str, value: np.ndarray) -> TensorProto:
    dense = np.ascontiguousarray(value).reshape(value.shape)  # scalars stay scalars
    return onnx.numpy_helper.from_array(dense, name)
