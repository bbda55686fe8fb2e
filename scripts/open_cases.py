"""Cases of bench_ops.py with open sizes: which of a case's sizes a model's author would leave
open, and the sizes at which the one engine is then run.

What is open follows from the small and the large case alone: a size that a constant of the small
case has, in its shape or as a value, is fixed (weights, targets of reshapes), as are an image's
channels; all others are open, equal ones of a case together. A Case may say so itself (`open`): a
word for each input, a letter for each dimension, "." for a fixed one.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

# The least, what the compiler takes for the optimum, primes, and large ones: of what comes first
# in an input and of what comes later.
POINTS = ("one", "optimum", "prime", "large")
FIRST = dict(one=1, optimum=1, prime=7)
LATER = dict(one=1, optimum=128, prime=61)
IMAGE = dict(one=1, optimum=128, prime=13)


def shape_of(operand):
    """The shape of an input, None of a constant, of what is made of constants, or of nothing."""
    if operand is None or isinstance(operand, np.ndarray) or hasattr(operand, "constants"):
        return None
    return operand[1] if operand and isinstance(operand[0], type) else operand


def fixed_sizes(case) -> set[int]:
    sizes = set()
    for operand in (part for o in case.inputs for part in getattr(o, "constants", (o,))):
        if isinstance(operand, np.ndarray):
            sizes.update(operand.shape)
            if operand.dtype.kind in "iu" and operand.size <= 64:
                sizes.update(int(v) for v in operand.reshape(-1))
    return {s for s in sizes if s > 1}


@dataclass
class Open:
    """A case and the names of its open sizes."""

    case: object
    names: list  # of each input: a name or None for each dimension; None where it is none
    bounds: list  # of each input: the name of the size that bounds its values, or None
    first: set  # names that come first in an input
    image: bool
    natural: dict  # sizes of the large case

    def sizes(self, point: str) -> dict[str, int]:
        later = IMAGE if self.image else LATER
        if point == "large":
            return {name: size if size > 1 else 4 for name, size in self.natural.items()}
        return {name: (FIRST if name in self.first else later)[point] for name in self.natural}

    def __post_init__(self):
        self.image &= not self.case.open

    def at(self, sizes: dict[str, int]):
        """The case with these sizes."""
        case = copy.copy(self.case)
        case.inputs = tuple(
            operand if names is None else self.operand(operand, names, bound, sizes)
            for operand, names, bound in zip(self.case.inputs, self.names, self.bounds)
        )
        return case

    def operand(self, operand, names, bound, sizes):
        shape = tuple(sizes[n] if n else d for n, d in zip(names, shape_of(operand)))
        if not (operand and isinstance(operand[0], type)):
            return shape
        below = operand[2:]
        return (operand[0], shape, *((sizes[bound],) if bound else below))

    def optimized_for(self, optimum: dict[str, int]) -> dict[str, list]:
        """For harness.compile_model: each input's sizes with another optimum."""
        shapes = {}
        for index, (names, operand) in enumerate(zip(self.names, self.case.inputs)):
            if names and any(names):
                shapes[f"x{index}"] = [
                    (1, optimum["first" if n in self.first else "later"], 1 << 20) if n else d
                    for n, d in zip(names, shape_of(operand))
                ]
        return shapes

    def declare(self, model) -> None:
        """Writes the names into a model of the case at any sizes."""
        by_input = {f"x{i}": names for i, names in enumerate(self.names) if names}
        for value in model.graph.input:
            for name, dim in zip(by_input.get(value.name, ()), value.type.tensor_type.shape.dim):
                if name:
                    dim.dim_param = name


def opened(small, large, first_alone: bool) -> Open | None:
    """The open variant of a case, at most of what comes first; None where nothing of it is open."""
    fixed, named, first, natural, names = fixed_sizes(small), {}, set(), {}, []
    image = any(len(shape_of(o) or ()) >= 4 for o in small.inputs)
    for index, (a, b) in enumerate(zip(small.inputs, large.inputs)):
        shape, at_large = shape_of(a), shape_of(b)
        if shape is None:
            names.append(None)
            continue
        said = small.open[index] if small.open else None
        own: list = []
        for axis, size in enumerate(shape):
            channels = len(shape) >= 3 and axis == 1 and image
            if said:
                name = None if said[axis] == "." else said[axis]
            elif size in fixed or channels or (axis and (size == 1 or (first_alone and size not in named))):
                name = None
            else:
                # Equal sizes of one input are two, as height and width are.
                name = f"{'n' if axis == 0 and size == 1 else 's'}{size}"
                while name in own:
                    name += "_"
            own.append(name)
            if name:
                natural.setdefault(name, at_large[axis])
                named.setdefault(size, name)
                if axis == 0 or name == "n":
                    first.add(name)
        names.append(own)
    bounds = [
        named.get(o[2]) if names[i] and o and isinstance(o[0], type) and len(o) > 2 else None
        for i, o in enumerate(small.inputs)
    ]
    return Open(large, names, bounds, first, image, natural) if natural else None
