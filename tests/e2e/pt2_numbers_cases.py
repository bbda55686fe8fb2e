#!/usr/bin/env python3
"""Exported programs of tests/e2e/pt2: arithmetic, functions, order. Made as those of pt2_cases.py,
which has what a case is (needs torch).

    pt2_numbers_cases.py [NAME...]
"""

from __future__ import annotations

import math

import pt2_cases
import torch
import torch.nn.functional as F
from pt2_cases import BATCH, LENGTH, Case


class Arithmetic(Case):
    dims = ({0: BATCH}, {0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        whole = torch.arange(-7, 8).repeat(b, 1)
        return torch.randn(b, 15) * 3, whole, torch.randint(1, 5, (b, 15)) * 2 - 5

    def forward(self, x, i, j):
        return (
            torch.add(x, i, alpha=2), torch.sub(x, 1.5, alpha=-2), 3 - x, torch.rsub(i, 2),
            i / j, i // j, torch.div(i, j, rounding_mode="trunc"),
            torch.div(x, j, rounding_mode="floor"), torch.div(x, 0.7, rounding_mode="trunc"),
            i % j, x % -1.3, torch.fmod(i, 3), torch.fmod(x, j), x**2, x**3, 2.0**x,
            x.abs() ** 0.5, i**2, x.abs() ** j, torch.square(x), -i, i.abs(), x.sign(),
            torch.addcmul(x, i, j, value=0.5), torch.addcdiv(x, x, j), torch.lerp(x, x * 2, 0.3),
            x + True, i * 2.5, i + 1, x.clamp(-1), x.clamp(max=0.5), torch.clamp(x, -1, 1),
            torch.clamp(x, min=j, max=j + 1), i.clamp(-2, 3), torch.maximum(x, i * 0.1), torch.min(i, j),
        )  # fmt: skip


class Types(Case):
    """Promotion: numbers and tensors without dimensions do not widen within a kind."""

    exact = True
    dims = ({0: BATCH},) * 3

    def inputs(self, b, n):
        values = torch.tensor([-3.0, 0.0, 1.0, 2.5, 300.0]).repeat(b, 1)
        return values, values.half(), values.abs().to(torch.uint8)

    def forward(self, x, h, u):
        zero = torch.tensor(2.0)
        whole = u.to(torch.int32)
        return (
            h + zero, whole * torch.tensor(2.5, dtype=torch.float16), whole + torch.tensor(3),
            u + 255, h * 1e5, whole / 2, u.sum(), (u > 1).sum(1), whole.sum(0), u + whole,
            h + x, u * 0.5, (x > 0) + (x > 1), (x > 0) * 2, x > u, whole == 1.0, u < 2.5,
            x.to(torch.int32), x.to(torch.bool), u.to(torch.float16), x.type_as(h), u.type_as(x), h.float().mean(),
            torch.where(x > 0, x, 0.5), torch.where(u > 1, u, whole), u.masked_fill(u > 2, 7),
            x.bool() & (u > 1), whole & 5, u | 8, ~whole, ~(x > 0), torch.logical_not(u),
            torch.logical_and(x, u), torch.logical_or(x, u), torch.bitwise_xor(u, 3), x.isnan(), x.isfinite(),
        )  # fmt: skip


class Functions(Case):
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.randn(b, 33) * 4,)

    def forward(self, x):
        p = x.abs() + 0.1
        return (
            x.exp().clamp(max=50), p.log(), p.log2(), p.log1p(), p.sqrt(), p.rsqrt(), p.reciprocal(), x.erf(), x.tanh(),
            x.sigmoid(), x.sin(), x.cos(), x.floor(), x.ceil(), (x * 2).round(), x.trunc(), torch.expm1(x / 4),
            torch.exp2(x), F.relu(x), F.relu6(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x),
            F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x, -2, 0.5), F.leaky_relu(x), F.leaky_relu(x, 0.3),
            F.elu(x), F.elu(x, 0.5), F.celu(x, 2.0), F.selu(x), F.softplus(x), F.softplus(x, 2, 3), F.softsign(x),
            F.glu(x[:, :32]), F.softmax(x, 1), F.log_softmax(x, 0), F.softmax(x, -1, dtype=torch.float32),
        )  # fmt: skip


class Reduce(Case):
    def inputs(self, b, n):
        return (torch.randn(b, 5, 7, 3),)

    def forward(self, x):
        values, where = x.max(2)
        low, there = torch.min(x, -1, keepdim=True)
        return (
            x.mean(), x.mean((1, -1), keepdim=True), x.sum(), x.sum(2), x.prod(1), x.amax((1, 2)), x.amin(),
            values, where, low, there, x.max(), x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True),
            (x > 2).any(), (x > 1).any(1), (x > -2).all(2, keepdim=True), x.var(1), x.var((2, 3), correction=0),
            x.std(2, keepdim=True), x.var(), torch.var_mean(x, 1)[1], x.logsumexp((1, 2)), x.logsumexp(3, keepdim=True),
            torch.linalg.vector_norm(x, dim=1), torch.linalg.vector_norm(x, 1, (2, 3)), torch.linalg.vector_norm(x, 3, 2),
            torch.linalg.vector_norm(x, float("inf"), 1), F.normalize(x, dim=2), x[:, 0].mean(0),
        )  # fmt: skip


class Sources(Case):
    dims = ({0: BATCH, 1: LENGTH},)
    exact = True

    def inputs(self, b, n):
        return (torch.randn(b, n),)

    def forward(self, x):
        b, n = x.shape
        return (
            torch.arange(n), torch.arange(2, n + 2), torch.arange(0, 2 * n, 2), torch.arange(0, 3, 0.5),
            torch.arange(5, 0, -2), torch.zeros(b, 3), torch.ones(n, dtype=torch.int32), torch.full((b, 2), -1.5),
            torch.full((2,), True), torch.full_like(x, 7), torch.zeros_like(x, dtype=torch.int64), x.new_ones(n, 2),
            x.new_zeros(3), x.new_full((2,), 4), torch.eye(3), torch.eye(2, 4), torch.linspace(-1, 2, 7),
            torch.scalar_tensor(5) + x, torch.tensor([1.5, 2.5]) * 2,
        )  # fmt: skip


class Order(Case):
    dims = ({0: BATCH, 1: LENGTH},)
    exact = True

    def inputs(self, b, n):
        return ((torch.randn(b, n, 21) * 8).round() / 4,)

    def forward(self, x):
        unique = x + torch.arange(21) / 256 + torch.arange(x.shape[1])[:, None] / 64
        values, where = unique.topk(5)
        low, there = torch.topk(unique, 3, 1, largest=False)
        ordered, places = torch.sort(unique, 1, descending=True)
        stable, order = torch.sort(x, dim=-1, stable=True)
        edges = torch.tensor([-2.0, -0.5, 0.25, 3.0])
        return (
            values, where, low, there, ordered, places, stable, order, unique.argsort(), torch.argsort(x, dim=-1, descending=True, stable=True),
            x.cumsum(1), x.int().cumsum(-1), (x > 0).cumsum(0), x.clamp(-1.25, 1.25).cumprod(2), x.cumsum(2, dtype=torch.float64).float(),
            torch.bucketize(x, edges), torch.bucketize(x, edges, right=True, out_int32=True), torch.searchsorted(edges, x, side="right"),
            torch.isin(x, edges), torch.isin(x, 0.5, invert=True), torch.histc(x[0], 5, -3, 4), x[0, 0, 0].sort()[0],
        )  # fmt: skip


class Extremes(Case):
    """NaN, infinities, zeros with signs, integers at their ends."""

    exact = True

    dims = ({0: BATCH},) * 2

    def inputs(self, b, n):
        inf, nan = float("inf"), float("nan")
        x = torch.tensor([1.0, 5.5, -1.0, inf, -inf, nan, 0.0, -0.0, 7.0]).repeat(b, 1)
        i = torch.tensor([-128, 127, -1, 0, 5, 100, -100, 7, -7], dtype=torch.int8).repeat(b, 1)
        return x, i

    def forward(self, x, i):
        masked = torch.stack([x.nan_to_num() - float("inf"), x.new_full((), float("inf")) + x.nan_to_num(0, 1, 1)], 1)
        big = torch.tensor(4503599627370497)
        return (
            x // 0.1, torch.div(x, float("inf"), rounding_mode="floor"), x // -2, x // x.flip(1), torch.floor_divide(x, 3),
            i // 3, i // -128, i.flip(1) // torch.tensor(-5, dtype=torch.int8), torch.div(i, 7, rounding_mode="trunc"),
            x.sign(), i.sign(), masked.logsumexp(2), masked.logsumexp((1, 2)), x.isinf(), x.isposinf(), x.isneginf(), x.nan_to_num(2, 3, 4),
            i.floor(), i.round(), i.ceil(), i.isnan(), i.isfinite(), i.isinf(), torch.add(i.long() * 0, i.long(), alpha=9007199254740993),
            torch.addcmul(i.long() * 0, big, torch.tensor(1), value=3), torch.any(x > 0, dim=()), torch.all(i > 0, dim=(0, 1)),
            *i[0, 0].max(0), x.narrow(1, -2, 2), i.index_select(1, torch.tensor(2)), torch.cat([torch.zeros(0), torch.zeros(0)]),
            x.slice_scatter(i[:, :2].long(), 1, 0, 2), x.bool(), torch.round(x[:, :3]),
        )  # fmt: skip


class Spellings(Case):
    """Overloads that Python code seldom names, and second names of operators."""

    core = False
    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, 3, 5), torch.randint(-4, 5, (b, 3, 5))

    def forward(self, x, i):
        a = torch.ops.aten
        y, j = x.flip(2), i.flip(2)
        small = torch.tanh(x) * 0.99
        return (
            x.absolute(), a.negative.default(x), a.multiply.Tensor(x, y), a.multiply.Scalar(x, 1.5),
            a.subtract.Tensor(x, y, alpha=3), a.subtract.Scalar(x, 2, 0.5), a.sub.Scalar(x, 2, 3),
            a.divide.Tensor(x, i * 2 + 1), a.divide.Scalar(x, 3), a.div.Scalar(x, -0.3), a.true_divide.Tensor(i, i * 2 + 1),
            a.true_divide.Scalar(i, 4), a.divide.Tensor_mode(x, y, rounding_mode="floor"),
            a.div.Scalar_mode(x, 0.3, rounding_mode="trunc"), a.div.Scalar_mode(i, 3, rounding_mode="floor"),
            a.floor_divide.Scalar(i, -3), a.rsub.Tensor(x, y, alpha=2), a.lerp.Tensor(x, y, small),
            small.acos(), small.asin(), x.atan(), x.sinh(), x.cosh(), (x * 0.4).tan(), (x.abs() + 0.1).log10(),
            torch.round(x * 100, decimals=1), torch.round(x, decimals=2),
            i | j, i ^ j, (x > 0) | (y > 0), (x > 0) ^ (y > 0), torch.bitwise_or(i, j), a.bitwise_xor.Tensor(i, j),
            a.__or__.Tensor(i, j), a.__xor__.Tensor(i, j),
            i < j, i <= j, i >= j, i != j, a.less.Tensor(i, j), a.less.Scalar(i, 1), a.less_equal.Tensor(x, y),
            a.less_equal.Scalar(x, 0.5), a.greater.Tensor(x, y), a.greater.Scalar(x, 0.5), a.greater_equal.Tensor(i, j),
            a.greater_equal.Scalar(i, 1), a.not_equal.Tensor(i, j), a.not_equal.Scalar(i, 1),
            torch.maximum(x, y), torch.max(i, j), x.clamp_min(0.2), x.clamp_max(0.2), x.clamp_min(y), x.clamp_max(y),
            a.clip.default(x, -0.5, 0.5), a.clip.Tensor(x, y, y + 1), x.masked_fill(i > 0, torch.tensor(7.0)),
            i ^ 6, i.abs() << 2, i >> 1, i.abs() << j.abs(), i >> j.abs(), torch.bitwise_left_shift(i, 1), torch.bitwise_right_shift(i, j.abs()),
            a.bitwise_left_shift.Tensor_Scalar(i, 2), a.bitwise_right_shift.Tensor_Scalar(i, 2), a.__rshift__.Tensor(i, j.abs()),
            a.__lshift__.Tensor(i, j.abs()), a.bitwise_left_shift.Tensor(i, j.abs()),
            F.threshold(x, 0.1, 20), F.hardshrink(x), F.softshrink(x, 0.3), F.logsigmoid(x * 9), x.asinh(), (x.abs() + 1).acosh(), small.atanh(),
            torch.atan2(x, y), torch.atan2(x * 0, y), torch.atan2(x, y * -0.0),
            a.where.ScalarSelf(i > 0, 2.5, x), torch.where(i > 0, x, -1.0), a.fill.Tensor(x, torch.tensor(2.0)),
        )  # fmt: skip


class Ends(Case):
    """What lies at an end, or behind all: weights near 1, NaN among boundaries."""

    exact = True
    core = False

    def inputs(self, b, n):
        return (torch.randn(b, 3),)

    def forward(self, x):
        inf, nan = float("inf"), float("nan")
        edges = torch.tensor([1.0, 2, 3])
        odd = torch.tensor([nan, 2, -inf, inf, 2.5])
        far, near = torch.full((3,), 1e8), torch.ones(3)
        return (
            x + 1, torch.bucketize(odd, edges), torch.bucketize(odd, edges, right=True), torch.searchsorted(edges, odd),
            torch.lerp(far, near, 1.0), torch.lerp(far, near, torch.tensor([0.0, 0.5, 1.0])), torch.lerp(near, far, 0.75),
            x[0, 0].var(correction=0), x[0, 0].sum(),
        )  # fmt: skip


class Numbers(Case):
    """Numbers that follow from open sizes, also through floats."""

    core = False
    dims = ({0: BATCH, 2: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, 3, n, 7),)

    def forward(self, x):
        n = x.shape[2]
        line = torch.arange(n) * (2 * math.pi / n)
        return (
            x * n**-0.5, x * (1.0 / n), line.sin(), x + n / 3, x.sum(2) / torch.sym_max(n, 6), x / torch.sym_min(n, 6), x * n**0.5,
            x / max(n, 6), x * (n * 0.3 + 1), x * (n // 3), torch.where(x > n / 10, x, 1 / n), (x * 9).to(torch.int32) * (n / 2),
            x.clamp(max=1 / n), torch.full_like(x, n / 7) * x, x.half() * (n / 64),
        )  # fmt: skip


class Whole(Case):
    """What programs round down has to be exact where the result is whole."""

    exact = True
    core = False

    def inputs(self, b, n):
        return (torch.arange(-20, 30).float().repeat(b, 1),)

    def forward(self, x):
        power = torch.pow(2.0, x)
        return (power.log2().floor(), power.double().log2().floor().float(), x.exp2() == power, (10.0 ** torch.arange(9)).log10().floor(),
                (torch.linspace(0, 1, 50) * 49).floor()[:24], torch.linspace(3, -1, 6, dtype=torch.float64).float(), torch.linspace(2, 5, 1))  # fmt: skip


class InPlaceTypes(Case):
    """Operators in place compute in the common type and store in the operand's."""

    exact = True
    core = False
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.tensor([-128, -127, -1, 5, 127]).to(torch.int8).repeat(b, 1),)

    def forward(self, x):
        wide = torch.tensor([257, 256, 300, 3, 1000])
        a, b, c = x.clone(), x.clone(), x.clone()
        a.div_(wide, rounding_mode="floor")
        b.remainder_(wide)
        c.add_(wide)
        h = x.half().sub_(torch.full((5,), 70000.0))
        f = x.float().ge_(0)
        g = x.float().clamp_(min=torch.tensor([-1.0, 0, 1, 2, 3], dtype=torch.float64))
        return a, b, c, h, f, g, F.dropout(x.float().mul_(2), 0.5, False, True)


class Items(Case):
    """Elements as numbers: of sizes, sizes again; of data, operands."""

    dims = ({0: BATCH, 1: LENGTH},)

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(200, 3))
        self.register_buffer("scale", torch.tensor(0.3))

    def inputs(self, b, n):
        return (torch.randn(b, n),)

    def forward(self, x):
        size = torch.scalar_tensor(x.shape[1], dtype=torch.int64)
        start, end = (128 - size).item(), (size // 2 + 128).item()
        torch._check(start >= 0)
        torch._check(end <= 200)
        largest = x.abs().max().item()
        return (
            self.table[start:end] * 2, x * largest, torch.clamp(x, max=largest * 0.5), x + self.scale.item(),
            torch.full((2,), largest), x * (size * 3).item(), x / (largest + (size + 1).item()),
        )  # fmt: skip


CASES = {
    cls.__name__.lower(): cls for cls in (
        Arithmetic, Types, Functions, Reduce, Sources, Order, Extremes, Spellings, Ends, Numbers,
        Whole, InPlaceTypes, Items,
    )
}  # fmt: skip


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
