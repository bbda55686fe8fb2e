#!/usr/bin/env python3
"""Exported programs of tests/e2e/pt2: views, writes in place, places. Made as those of pt2_cases.py,
which has what a case is (needs torch).

    pt2_layouts_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
import torch.nn.functional as F
from pt2_cases import BATCH, LENGTH, Case
from torch import nn


class View(Case):
    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 4, 6),)

    def forward(self, x):
        b, n = x.shape[:2]
        return (
            x.view(b, n, 24), x.view(b * n, -1), x.reshape(b, -1), x.flatten(2), x.flatten(), x.unflatten(3, (2, -1)),
            x.transpose(1, -2), x.permute(3, 0, 2, 1), x[0, 0].t(), x[0, 0].T, x.swapaxes(0, 2), x.movedim(1, 3),
            x.movedim((0, 1), (2, 0)), x.unsqueeze(-1).squeeze(-1), x[:, :, :1].squeeze(2), x[:, :, :1].squeeze(),
            x[:, :, 0, :1].expand(b, n, 5), x[0, 0, 0].expand(n, 6), x.mT, x.contiguous().clone(),
            x.transpose(1, 2).reshape(b, 4, n * 6), x[:, :, 0].expand_as(x[:, :, 1]),
        )  # fmt: skip


class Slice(Case):
    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 7),)

    def forward(self, x):
        n = x.shape[1]
        a, c, d = torch.split(x, [2, 1, 4], 2)
        parts = x.chunk(4, 2)
        even = torch.tensor_split(x, 3, 2)
        first, *rest = x[..., :3].unbind(-1)
        return (
            x[:, 1:], x[:, :-1], x[..., 2:100], x[..., -3:], x[..., 1:6:2], x[:, : n - 2], x[:, -1], x[..., -2],
            a, c, d, *parts, *even, *torch.split(x, 3, -1), first, rest[-1], x.narrow(2, 1, 3),
            torch.cat([x, x[:, :1]], 1), torch.cat([x.int(), x], 2), torch.stack([x, x + 1], 1),
            torch.stack([x[0], x[0]], -1), x.flip(0, 2), x.flip(1), torch.roll(x, 2, 2), torch.roll(x, (-1, 3), (1, 2)),
            torch.roll(x, 1), torch.cat([torch.zeros(0), x[0, 0]]),
        )  # fmt: skip


class InPlace(Case):
    """Writes through views: what is read afterwards sees them, and nothing else does."""

    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 6),)

    def forward(self, x):
        y = x * 2
        before = y + 0
        view = y.transpose(1, 2)
        row = view[:, 1]
        row.add_(10)
        y[:, 0].fill_(3)
        y[:, :, 2:4] *= -1
        y[..., ::2].sub_(0.5)
        early = y.view(y.shape[0], -1)
        flat = early + 0
        early[:, 1] = 7
        z = torch.zeros_like(x)
        z[:, 1:].copy_(x[:, :-1])
        z[..., -1].zero_()
        w = x.clone()
        w.relu_()
        tail = w.unsqueeze(0)[0, :, -1]
        w.masked_fill_(w > 1, 1.0)
        w.detach().clamp_(max=0.75)
        return before, y, view, row, flat, early, z, w, tail, x + 1


class Outputs(Case):
    """Results that are written where `out=` says: over others, through views, over operands, in other types, and resized."""

    exact = True
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.randn(b, 3, 4),)

    def forward(self, x):
        a, b = x[:, 0], x[:, 1]
        largest, wide, all_of, parts = torch.empty_like(a), torch.empty_like(a, dtype=torch.float64), torch.empty(0), torch.zeros_like(x)
        before = parts + 0
        torch.maximum(a, b, out=largest)
        torch.add(a, b, out=wide)
        torch.cat([a, b], 1, out=all_of)
        torch.mul(a, b, out=parts[:, 1])
        seen = parts * 2
        torch.div(a, b, rounding_mode="floor", out=parts[:, 2, ...])
        values, places, most, where = torch.empty_like(x), torch.empty_like(x, dtype=torch.int64), torch.empty_like(a), torch.empty_like(a, dtype=torch.int64)
        torch.sort(x, 1, out=(values, places))
        torch.max(x, 1, out=(most, where))
        truths, z = torch.empty_like(a), torch.empty_like(a, dtype=torch.complex64)
        torch.gt(a, b, out=truths)
        torch.complex(a, b, out=z)
        summed = b * 3
        torch.sum(x, 1, out=summed)
        torch.clamp(summed, -1, 1, out=summed)
        return (largest, wide.float(), all_of, before, parts, seen, values, places, most, where, truths, torch.view_as_real(z), summed)


class Index(Case):
    dims = ({0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH})

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 5, padding_idx=0)
        nn.init.normal_(self.table.weight)

    def inputs(self, b, n):
        return torch.randn(b, n, 4, 3), torch.randint(0, 11, (b, n))

    def forward(self, x, ids):
        i, j = torch.tensor([0, 3, -1]), torch.tensor([[2], [0]])
        rows = torch.arange(x.shape[0])
        return (
            self.table(ids), x[:, :, i], x[:, :, i, j], x[rows, -1], x[:, :, :, torch.tensor([1, 1])],
            x[rows[:, None], :, i], x.index_select(2, i % 4), x.gather(2, (ids % 4)[:, :, None, None].expand(-1, -1, 2, 3)),
            x.tril(), x.triu(1), x.tril(-1), (x[0, 0] > 0).tril(),
        )  # fmt: skip


class Masks(Case):
    """Masks that the model holds are the positions at which they are set."""

    dims = ({0: BATCH},)

    def __init__(self):
        super().__init__()
        self.register_buffer("lower", torch.tril(torch.ones(12, 11)).bool())
        self.register_buffer("some", torch.arange(12) % 3 > 0)

    def inputs(self, b, n):
        return (torch.randn(b, 12, 11),)

    def forward(self, x):
        y, z, w = x[0, :4, :3] + 0, x[0] * 1, x[0] * 2
        y[:, torch.tensor([True, False, True])] = torch.arange(2.0)
        z.index_put_((self.some,), x[0, 0, 0], accumulate=True)
        w[self.some] = 7
        return (
            x[:, self.some], x[:, self.lower], x[:, self.some, 3], x[0][self.some] * 2, x.transpose(0, 1)[self.some][:, :1], x[:, torch.arange(12) > 3].mean(1),
            x[0, :, :3][:, torch.tensor([True, False, True])], x[0][torch.tensor([[0], [4]]), self.some[:11]], x[0][torch.zeros(12, dtype=torch.bool)].sum(0), y, z, w,
        )  # fmt: skip


class Storage(Case):
    """Parameters that share storages, in all the ways in which they can."""

    def __init__(self):
        super().__init__()
        whole = torch.randn(2, 96)
        self.first, self.second = nn.Parameter(whole[0]), nn.Parameter(whole[1])
        self.tied = self.first
        self.register_buffer("turned", torch.randn(7, 9).t())
        self.register_buffer("spread", torch.randn(7).expand(9, 7))
        self.register_buffer("gaps", torch.randn(9, 14)[:, ::2])
        self.register_buffer("hidden", torch.randn(4, 1, 1) > 0, persistent=False)
        self.register_buffer("empty", torch.zeros(0, 7))
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        scale = (self.first * self.tied + self.second).sum()
        self.count.add_(1)
        return {"scaled": x * scale, "sum": x + self.turned + self.spread * self.gaps,
                "hidden": torch.where(self.hidden, x, -x), "nothing": None,
                "joined": torch.cat([x[0, 0], self.empty])}  # fmt: skip


class Scatter(Case):
    dims = ({0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH})

    def inputs(self, b, n):
        # Different positions: which of two updates of one is the last is not defined.
        ids = (torch.rand(b, n, 11).argsort()[..., :4]).contiguous()
        return torch.randn(b, n, 11), ids

    def forward(self, x, ids):
        b, n = x.shape[:2]
        i, j, rows = torch.tensor([0, 2, -1]), torch.tensor([1, 5, 3]), torch.arange(b)
        y = x.clone()
        y[:, 1] = 5
        y[rows, 0, 2] += 1
        y[..., i] = y[..., j] * 2
        y[y > 1.5] = -1
        again = (ids % 3).float()
        return (
            y, x.index_put((rows[:, None], i), x[:, :1] + 1), torch.ops.aten.index_put(x, (None, None, torch.tensor([1, 1, 4])), torch.tensor(0.5, dtype=x.dtype), True),
            x.scatter(2, ids, ids.to(x.dtype)), x.scatter(-1, ids, 7.5), x.scatter_add(2, ids % 3, again.to(x.dtype)), x.scatter(2, ids[:, :2, :3], x),
            x.scatter_reduce(2, ids % 5, x, "amax"), x.scatter_reduce(2, ids % 5, x, "prod", include_self=False),
            x.scatter_reduce(2, ids % 5, x, "amin", include_self=False), x.scatter_reduce(2, ids % 5, x, "sum"),
            x.index_add(2, torch.tensor([1, 1, 0]), x[..., :3], alpha=-0.5), x.index_copy(2, torch.tensor([3, 1]), x[..., :2]),
            x.index_fill(2, torch.tensor([0, -1]), 3), x[0, :3].take_along_dim(ids[0, :3, :2], 1), x.take(ids[0]), F.one_hot(ids[0], 12),
        )  # fmt: skip


class Alias(Case):
    """What is a view and what is a copy: only views see later writes, and only what shares memory is written to."""

    core = False
    exact = True  # conversions are copies

    def inputs(self, b, n):
        return (torch.randn(b, 4, 6),)

    def forward(self, x):
        y = x * 2
        row, part = y[0], y[0][1:3]
        inner = part * 1
        row.add_(1)  # seen by part, a view of a view
        wide = y.to(torch.float64)
        wide[0].fill_(0)  # a copy: y keeps its values
        wide.add_(1)
        y.sub_(0.5)
        copied = y.to(torch.float32, copy=True)
        copied.mul_(3)
        chained = y.add_(1)
        chained.mul_(2)
        first = chained[:, 0]
        y.sub_(3)
        turned = y.transpose(1, 2).contiguous()
        turned[:, 0].zero_()
        y.mul_(0.5)
        flat = y[:, :3].transpose(1, 2).reshape(x.shape[0], 18)
        flat.add_(100)
        whole = y.view(-1)
        whole[2] = 7
        left, right = y.chunk(2, 2)
        y[:, 1] = -1
        lone = y[:, 2].clone()
        seen = lone * 1
        lone.unsqueeze_(0)
        square = torch.zeros(3, 5)
        square.t_().add_(torch.arange(3))
        square[:, 1] = 9
        many = torch.zeros(x.shape[0])
        for i in range(300):
            many += x[:, 0, 0]
        return (row * 1, part, inner, wide.float(), y, copied, first, turned, flat, whole * 1, left, right + 0, seen, lone, square,
                many, torch.as_strided(x * 1, (x.shape[0], 24), (24, 1)))  # fmt: skip


class Layouts(Case):
    """Joins, parts, views and types in their less frequent forms."""

    core = False
    dims = ({}, {})

    def inputs(self, b, n):
        return torch.randn(2, 4, 6), torch.randint(0, 4, (2, 4, 6))

    def forward(self, x, i):
        a = torch.ops.aten
        y = x.flip(1)
        return (
            torch.concat([x, y], 1), torch.concatenate([x, y], -1), x.swapdims(1, 2), x.ravel(), x.reshape_as(x.transpose(1, 2)),
            x.view_as(y), x[:, :1].broadcast_to(x.shape), torch.tile(x, (1, 2, 1)), torch.tile(x, (2,)), F.pad(x, (1, -1, 0, 2), value=3),
            F.pad(x[:, None], (2, 1, 1, 0), mode="circular"), x.select_scatter(y[:, 0], 1, -1), *torch.tensor_split(x, (1, 4), 2),
            *torch.tensor_split(x, 4, 2), *a.split.sizes(x, [1, 3], 1), *torch.meshgrid(x[0, 0], y[0, :, 0]), a._unsafe_view.default(x, [-1, 24]),
            a.to.device(i, torch.device("cpu"), torch.float32), a.to.dtype_layout(x, dtype=torch.float64).float(), a.to.other(i, x), a.to.other(x, i),
            a.prod.default(x), x.min(), a.var.default(x), a.std.default(x), *a.var_mean.default(x), x.std((0, 2), correction=0), (x > -9).all(),
            x.norm(3, (1, 2), True), a.norm.ScalarOpt_dim(x, None, [1]), x[:, :, 0].index_fill(1, torch.tensor([0, 2]), torch.tensor(5.0)),
            torch.isin(3, i[0, 0]), torch.bucketize(0.3, torch.tensor([0.0, 0.2, 0.5])), torch.searchsorted(torch.tensor([0, 2, 5]), 3),
            x.scatter(1, i, y, reduce="add"), x.scatter(1, i, 1.5, reduce="multiply"),
            a._unsafe_index.Tensor(x, [None, torch.tensor([3, 0, -1])]),
            a._unsafe_index_put.default(x, [None, torch.tensor([3, 0])], y[:, :2]),
            F.prelu(x, torch.tensor([0.1, 0.2, -0.3, 0.4])), a._prelu_kernel.default(x, torch.tensor([[[0.1]]])),
            F.alpha_dropout(x, 0.5), a.feature_dropout.default(x, 0.5, False),
            a._weight_norm_interface.default(x[0], x[0, :, :1].abs(), 0)[0],
            a.empty.memory_format([2, 3]).fill_(1), torch.empty_like(x).copy_(y), x.new_empty(2).fill_(4), a.empty_permuted.default([2, 3], [1, 0]).fill_(2),
            torch.imag(a.conj.default(torch.view_as_complex(x.reshape(-1, 2)))),
            torch.view_as_real(a.conj_physical.default(torch.view_as_complex(x.reshape(-1, 2)))),
            a.native_channel_shuffle.default(x[..., None], 2), torch.outer(x[0, 0], y[1, :, 0]), torch.tensordot(x, y, ([0, 2], [0, 2])),
            torch.tensordot(x, y.transpose(1, 2), ([2], [1])), F.cosine_similarity(x, y, 2), F.cosine_similarity(x, y[:1]),
            torch.atleast_1d(x[0, 0, 0]), torch.atleast_2d(x[0, 0]), torch.atleast_3d(x[0]), torch.atleast_3d(x[0, 0]),
            F.adaptive_avg_pool2d(x, (1, None)), F.adaptive_avg_pool2d(x, (None, 4)), F.adaptive_max_pool2d(x, (3, None)),
        )  # fmt: skip


class Parts(Case):
    """Writes through the parts of a split, and rolls by more than some sizes."""

    core = False  # decomposed, a roll fixes its size
    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 6),)

    def forward(self, x):
        y = x.clone()
        p, q = y.chunk(2, 2)
        p.add_(1)
        q[:, 0].mul_(3)
        r = torch.split(y, [1, 2, 3], 2)[1]
        r.neg_()
        z = x * 2
        rows = z.unbind(2)
        rows[4].zero_()
        rows[-1].sub_(rows[0])
        torch.tensor_split(z, (2, 3), 2)[1].fill_(9)
        z.narrow(2, 0, 1).clamp_(max=0)
        square = x[:, :3, 1:5] * 1
        square.diagonal(0, 1, 2).fill_(7)
        square.diagonal(-1, 2, 1).neg_()
        wide = x[:, :3] * 2
        wide.diagonal(1, 1, 2).add_(wide[:, :, 0])
        wide.diagonal(-2, 1, 2).zero_()
        n = x.shape[1]
        return (square, wide, y, p, q, r, z, rows[4], x.roll(5, 1), x.roll(-7, 1), x.roll((9, -4), (1, 2)), x.roll(n // 2, 1), x.roll(1, 0),
                x.roll(2))  # fmt: skip


CASES = {
    cls.__name__.lower(): cls for cls in (
        View, Slice, InPlace, Outputs, Index, Masks, Storage, Scatter, Alias, Layouts, Parts,
    )
}  # fmt: skip


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
