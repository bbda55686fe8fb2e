#!/usr/bin/env python3
"""Makes the exported programs of tests/e2e/pt2 (needs torch).

    pt2_cases.py [NAME...]

Each case is a module of operators with awkward attributes, exported as it is
(NAME.pt2) and after run_decompositions() (NAME-core.pt2). Inputs, of other sizes than
those that it was traced at, and the results of PyTorch, in float64 where the types
do not matter, lie in the folder `extra` of NAME.pt2 (in0.npy, out0.npy ...). Entries are deflated and
stack traces are left out, so that the files are small. pt2_*_cases.py beside it make more.
"""

from __future__ import annotations

import copy
import io
import json
import math
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = Path(__file__).resolve().parent / "pt2"
BATCH = torch.export.Dim("batch", min=1, max=8)
LENGTH = torch.export.Dim("length", min=4, max=64)


class Case(nn.Module):
    """`inputs(b, n)` are tensors of batch b and length n, `dims` what is dynamic."""

    dims: tuple = ({0: BATCH},)
    exact = False  # types matter: the reference is computed in them
    core = True
    grad = False  # exported with gradients, so that no_grad stays in the program

    def inputs(self, b: int, n: int):
        return (torch.randn(b, 4, 9, 7),)


class Conv(Case):
    def __init__(self):
        super().__init__()
        self.grouped = nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), dilation=(1, 2), groups=2)
        self.same = nn.Conv2d(4, 3, (4, 3), padding="same", bias=False)
        self.line = nn.Conv1d(9, 5, 3, padding=2, stride=2)
        self.solid = nn.Conv3d(1, 2, 3, padding=1)
        self.last = nn.Conv2d(4, 8, 3).to(memory_format=torch.channels_last)

    def forward(self, x):
        line = self.line(x[:, :, :, 0].transpose(1, 2).reshape(-1, 9, 4))
        return (self.grouped(x), self.same(x), line, self.solid(x[:, None]),
                self.last(x), self.grouped(x[0]))  # fmt: skip


class Pool(Case):
    def forward(self, x):
        return (
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.max_pool2d(x, (2, 3), dilation=(2, 1)),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool2d(x, 2, divisor_override=3),
            F.avg_pool2d(x[0], 2),
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_avg_pool2d(x, (3, 5)),
            F.adaptive_avg_pool2d(x, (3, 7)),
            F.adaptive_avg_pool1d(x[:, 0], 3),
            F.max_pool1d(x[:, 1], 3),
        )


class Norm(Case):
    def __init__(self):
        super().__init__()
        self.batch = nn.BatchNorm2d(4)
        self.bare = nn.BatchNorm2d(4, affine=False)
        self.layer = nn.LayerNorm([9, 7])
        self.group = nn.GroupNorm(2, 4, eps=1e-3)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.rms = nn.RMSNorm(7)
        for p in self.parameters():
            nn.init.normal_(p)
        for b in (self.batch, self.bare):
            nn.init.normal_(b.running_mean)
            nn.init.uniform_(b.running_var, 0.5, 2)

    def forward(self, x):
        return (self.batch(x), self.bare(x), self.layer(x), F.layer_norm(x, [7]),
                self.group(x), self.instance(x), self.rms(x))  # fmt: skip


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
            x.to(torch.int32), x.to(torch.bool), u.to(torch.float16), x.type_as(h), h.float().mean(),
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


class Attention(Case):
    dims = ({0: BATCH, 2: LENGTH}, {0: BATCH})

    def inputs(self, b, n):
        mask = torch.rand(b, 1, 1, 9) > 0.3
        mask[0] = False  # nothing to attend to: zeros
        return torch.randn(b, 4, n, 8), mask

    def __init__(self):
        super().__init__()
        self.keys = nn.Parameter(torch.randn(1, 2, 9, 8))

    def forward(self, q, mask):
        b = q.shape[0]
        k = self.keys.expand(b, 2, 9, 8)
        many = torch.cat([k, k * 0.5], 1)
        a = F.scaled_dot_product_attention
        return (
            a(q, many, many * 2), a(q, many, many, attn_mask=mask), a(q, many, many, is_causal=True),
            a(q, q, q, is_causal=True, scale=0.2), a(q, k, k, enable_gqa=True),
            a(q, many, many, attn_mask=torch.where(mask, 0.0, -1.0)), a(q[:, 0], k[:, 0], k[:, 0]),
            torch.softmax(q @ many.transpose(-1, -2) * 0.3, -1) @ many,
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


class Product(Case):
    dims = ({0: BATCH, 1: LENGTH},)

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 5)
        self.bare = nn.Linear(6, 3, bias=False)
        self.vector = nn.Parameter(torch.randn(6))
        self.matrix = nn.Parameter(torch.randn(6, 4))

    def inputs(self, b, n):
        return (torch.randn(b, n, 6),)

    def forward(self, x):
        y = x[:, 0]
        return (
            self.fc(x), self.bare(y), x @ self.vector, self.vector @ self.matrix, x @ self.matrix, y @ y.t(),
            torch.bmm(x, x.transpose(1, 2)), torch.addmm(self.vector[:4], y, self.matrix, beta=0.5, alpha=2),
            torch.baddbmm(x[:, :1, :1], x, x.transpose(1, 2), alpha=0.1), torch.mm(y, self.matrix), torch.mv(self.matrix.T, self.vector),
            torch.dot(self.vector, self.vector), F.linear(self.vector, self.fc.weight),
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


class Resize(Case):
    """Coordinates follow from factors where those are given, else from sizes."""

    def forward(self, x):
        up = F.interpolate
        line, solid = x[:, :, 0], x[:, :, None, :5]
        return (
            up(x, (13, 5)), up(x, scale_factor=1.7), up(x, scale_factor=(0.6, 2), mode="nearest-exact"),
            up(x, (4, 11), mode="nearest-exact"), up(x, (5, 12), mode="bilinear"), up(x, scale_factor=1.7, mode="bilinear"),
            up(x, scale_factor=(2, 0.4), mode="bilinear", recompute_scale_factor=True),
            up(x, (18, 4), mode="bilinear", align_corners=True), up(x, (1, 9), mode="bilinear", align_corners=True),
            up(x, (6, 10), mode="bicubic"), up(x, scale_factor=1.3, mode="bicubic"), up(x, (4, 3), mode="bicubic", align_corners=True),
            up(x, (4, 3), mode="bilinear", antialias=True), up(x, (5, 11), mode="bicubic", antialias=True),
            up(line, 11), up(line, 3, mode="linear"), up(line, scale_factor=2.5, mode="linear"),
            up(solid, (2, 7, 4)), up(solid, (3, 4, 9), mode="trilinear"),
        )  # fmt: skip


class Sample(Case):
    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, 3, 6, 5), torch.rand(b, 4, 7, 2) * 3 - 1.5

    def forward(self, x, grid):
        modes = [(m, p, a) for m in ("bilinear", "nearest", "bicubic") for p in ("zeros", "border", "reflection") for a in (False, True)]
        whole = [F.grid_sample(x, grid, *m) for m in modes if m[0] != "nearest" or not m[2]]
        deep = F.grid_sample(x[:, :, None], torch.cat([grid, grid[..., :1]], -1)[:, None])
        return *whole, deep


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


class Recurrent(Case):
    dims = ({0: BATCH},)

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True)
        self.bare = nn.LSTM(5, 3, bias=False)
        self.gru = nn.GRU(5, 3, 2, batch_first=True)
        self.both = nn.GRU(5, 3, bidirectional=True)
        self.rnn = nn.RNN(5, 4, nonlinearity="relu", batch_first=True)
        self.soft = nn.RNN(5, 4)
        self.cell, self.gated = nn.LSTMCell(5, 6), nn.GRUCell(5, 6)

    def inputs(self, b, n):
        return (torch.randn(b, 6, 5),)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, (g, d) = self.bare(x.transpose(0, 1))
        u, k = self.gru(x, torch.ones(2, x.shape[0], 3) * 0.5)
        v, m = self.both(x.transpose(0, 1))
        one, _ = self.soft(x[0])
        return y, h, c, z, g, d, u, k, v, m, *self.rnn(x), one, *self.cell(x[:, 0]), self.gated(x[:, 1])


class Fold(Case):
    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 8, 6),)

    def forward(self, x):
        image = x.transpose(1, 2)[:, :, :4].contiguous()
        columns = F.unfold(x[:, :3], (3, 2), dilation=(2, 1), padding=(1, 0), stride=2)
        n = x.shape[1]
        return (
            x.unfold(1, 2, 1), x.unfold(2, 4, 3), x.unfold(-1, 2, 2), columns,
            F.fold(columns, (8, 6), (3, 2), dilation=(2, 1), padding=(1, 0), stride=2),
            F.fold(F.unfold(image, 2, stride=2), (4, 6), 2, stride=2), F.pixel_shuffle(image, 2), F.pixel_unshuffle(x, 2),
            F.channel_shuffle(image, 4), x.repeat_interleave(3, 1), x[0, 0].repeat_interleave(2),
            *torch.meshgrid(torch.arange(n), torch.arange(3), indexing="ij"), *torch.meshgrid(x[0, :, 0, 0], x[0, 0, 0], indexing="xy"),
            x.diff(), x.diff(n=2, dim=1), (x > 0).diff(dim=2), x.diff(dim=1, prepend=x[:, :1]), x.diagonal(1, 2, 3), x.diagonal(-2, -1, 2),
        )  # fmt: skip


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


class Transposed(Case):
    def __init__(self):
        super().__init__()
        self.plain = nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2)
        self.wide = nn.ConvTranspose2d(4, 3, (2, 4), (3, 2), (0, 1), dilation=(2, 1), bias=False)
        self.line = nn.ConvTranspose1d(9, 5, 4, 2)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Conv1d(9, 4, 3))

    def forward(self, x):
        line = x[:, 0]
        a, b = x[:, 0], x[:, 1]
        return (
            self.plain(x), self.wide(x), self.line(line), self.plain(x[0]), self.normed(line),
            torch.einsum("bij, bkj -> bik", a, b), torch.einsum("bcij,cd->bijd", x, x[0, :, :3, 0]), torch.einsum("B...j, j", x, x[0, 0, 0]),
            torch.einsum("bij,bij", a, b), torch.cdist(a, b), torch.cdist(a, b, 1), torch.cdist(a, b, float("inf")), torch.cdist(a, b, 3),
        )  # fmt: skip


class Heads(Case):
    """Attention without batch, without heads, and with more dimensions in front."""

    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.randn(b, 2, 3, 5, 8),)

    def forward(self, x):
        a = F.scaled_dot_product_attention
        mask = torch.ones(5, 5, dtype=torch.bool).tril(1)
        return (a(x, x, x), a(x, x, x, mask), a(x, x, x, torch.zeros(2, 1, 1, 5) + 0.5), a(x[0, 0], x[0, 1], x[0, 0], mask),
                a(x[0, 0, 0], x[0, 0, 1], x[0, 0, 0], is_causal=True), F.dropout(x * 2, 0.5, False, inplace=True))  # fmt: skip


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


class Rotary(Case):
    """Complex numbers as rotary embeddings use them."""

    dims = ({0: BATCH, 1: LENGTH},)

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(64), 1 / 100 ** (torch.arange(4) / 4))
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles), persistent=False)
        self.register_buffer("turned", torch.randn(3, 4, dtype=torch.complex64).t())

    def double(self):
        result = super().double()
        result.table = self.table.to(torch.complex128)
        result.turned = self.turned.to(torch.complex128)
        return result

    def inputs(self, b, n):
        return (torch.randn(b, n, 2, 8),)

    def forward(self, x):
        n = x.shape[1]
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        turned = torch.view_as_real(pairs * self.table[:n].view(1, n, 1, 4)).flatten(3)
        angle = torch.arange(n)[:, None] * torch.tensor([0.5, 0.25, 0.1, 0.01]).to(x.dtype)
        made = torch.polar(torch.ones_like(angle), angle)
        joined = torch.cat([pairs, pairs.transpose(1, 2).transpose(2, 1) * 2], 2)[:, -1, 1:]
        return (turned, torch.view_as_real(pairs * made[None, :, None]), torch.view_as_real(joined - made[0]), joined.abs(),
                made.real, made.imag, torch.view_as_real(pairs.conj() * 0.5), self.turned.real, torch.complex(x, x + 1).imag)  # fmt: skip


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


class Solid(Case):
    """Windows and sizes of one and three dimensions, cells, and resizing without scales."""

    core = False

    def __init__(self):
        super().__init__()
        self.line, self.solid = nn.Conv1d(2, 3, 3, padding="same"), nn.Conv3d(2, 3, 2, padding="valid")
        self.up = nn.ConvTranspose3d(2, 3, 3, 2, 1, 1, groups=1)
        self.tanh, self.relu = nn.RNNCell(6, 4), nn.RNNCell(6, 4, nonlinearity="relu")

    def inputs(self, b, n):
        return (torch.randn(b, 2, 4, 5, 6),)

    def forward(self, x):
        a = torch.ops.aten
        line, plane = x[:, :, 0, 0], x[:, :, 0]
        return (
            F.avg_pool1d(line, 2, ceil_mode=True, padding=1), F.avg_pool3d(x, 2, 1, count_include_pad=False, padding=1),
            F.max_pool3d(x, 2, (1, 2, 2)), a.max_pool3d_with_indices.default(x, 3, 2, 1)[0], F.adaptive_avg_pool3d(x, (2, 5, 1)),
            a._adaptive_avg_pool3d.default(x, [1, 1, 1]), F.adaptive_max_pool2d(plane, (5, 3)),
            self.line(line), self.solid(x), self.up(x), self.tanh(line[:, 0], plane[:, 0, 0, :4]), self.relu(line[:, 0], plane[:, 0, 0, :4]),
            a.upsample_nearest1d.default(line, [9]), a.upsample_nearest2d.default(plane, [7, 13]), a.upsample_nearest3d.default(x, [2, 7, 9]),
            a._upsample_nearest_exact1d.default(line, [9]), a._upsample_nearest_exact2d.default(plane, [7, 4]),
            a._upsample_nearest_exact3d.default(x, [2, 7, 9]), F.interpolate(line, 9, mode="nearest-exact"),
            F.interpolate(x, (3, 5, 9), mode="nearest-exact"), a.upsample_linear1d.default(line, [9], True),
            a.upsample_bilinear2d.default(plane, [3, 9], False), a.upsample_trilinear3d.default(x, [3, 5, 9], True),
            a.upsample_bicubic2d.default(plane, [7, 9], False),
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


class Scaled(Case):
    """Sizes that follow from open ones through floats."""

    dims = ({0: BATCH, 2: torch.export.Dim("length", min=8, max=64)},)

    def inputs(self, b, n):
        return (torch.randn(b, 3, n + 5, 7),)

    def forward(self, x):
        n, up = x.shape[2], F.interpolate
        return (
            up(x, scale_factor=0.5), up(x, scale_factor=1.5, mode="bilinear"), up(x, scale_factor=(0.7, 2), mode="bilinear", align_corners=True),
            up(x, scale_factor=(3, 2), mode="bicubic"), up(x[:, 0], scale_factor=0.7, mode="linear"), up(x, scale_factor=0.3, mode="nearest-exact"),
            up(x, scale_factor=(1.3, 2), mode="bilinear", recompute_scale_factor=True), up(x, scale_factor=1 / 3, mode="bicubic"),
            up(up(x, scale_factor=0.6, mode="bilinear"), scale_factor=1.7, mode="bilinear"),
            x.new_ones(torch.sym_min(n, 12)), torch.arange(torch.sym_max(n, 12)) * 2,
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


class HalfNorm(Case):
    """Batch norms of half types, whose means are far larger than their deviations."""

    exact = True

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(4)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)
        nn.init.uniform_(self.norm.running_mean, 20, 40)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)
        self.norm.half()

    def inputs(self, b, n):
        return ((torch.randn(b, 4, 5, 5) + 30).half(),)

    def forward(self, x):
        return self.norm(x)


CASES = {
    cls.__name__.lower(): cls
    for cls in (Conv, Pool, Norm, Arithmetic, Types, Functions, Reduce, View, Slice, InPlace, Index,
                Attention, Sources, Product, Storage, Resize, Sample, Order, Recurrent, Fold, Scatter, Transposed, Heads, Alias, InPlaceTypes,
                Extremes, Rotary, Spellings, Layouts, Solid, Ends, Parts, Scaled, Numbers, Whole, HalfNorm)
}  # fmt: skip


def array(value: torch.Tensor) -> np.ndarray:
    value = value.detach()
    return (value.float() if value.dtype == torch.float64 else value).contiguous().numpy()


def reference(module: Case, inputs) -> list[np.ndarray]:
    if not module.exact:
        module = copy.deepcopy(module).double()
        inputs = [v.double() if v.is_floating_point() else v for v in inputs]
        torch.set_default_dtype(torch.float64)
    with torch.no_grad():
        result = module(*[v.clone() for v in inputs])
    torch.set_default_dtype(torch.float32)
    return [array(v) for v in torch.utils._pytree.tree_leaves(result) if v is not None]


def strip(text: bytes) -> bytes:
    """Without what only people read."""
    root = json.loads(text)
    for node in root["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
    return json.dumps(root).encode()


def write(path: Path, program, inputs, outputs) -> None:
    packed = io.BytesIO()
    torch.export.save(program, packed)
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        top = names[0].split("/")[0]
        entries = {n: old.read(n) for n in names if "/sample_inputs/" not in n}
        for name in entries:
            if "/models/" in name:
                entries[name] = strip(entries[name])
        for kind, values in (("in", inputs), ("out", outputs)):
            for i, value in enumerate(values):
                data = io.BytesIO()
                np.save(data, value)
                entries[f"{top}/extra/{kind}{i}.npy"] = data.getvalue()
        for name, data in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data, compresslevel=9)


def make(name: str) -> None:
    torch.manual_seed(1)
    module = CASES[name]().eval()
    example = module.inputs(2, 5)
    inputs = module.inputs(3, 9)
    outputs = reference(module, inputs)
    with torch.set_grad_enabled(module.grad):
        program = torch.export.export(copy.deepcopy(module), example, dynamic_shapes=module.dims)
        arrays = [array(v) for v in inputs]
        write(FOLDER / f"{name}.pt2", program, arrays, outputs)
        if module.core:
            write(FOLDER / f"{name}-core.pt2", program.run_decompositions(), [], [])
    sizes = [p.stat().st_size for p in FOLDER.glob(f"{name}*.pt2")]
    print(f"{name}: {len(outputs)} results, {sizes} bytes", flush=True)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or CASES:
        make(name)
    total = sum(p.stat().st_size for p in FOLDER.glob("*.pt2"))
    print(f"{total} bytes in all")


if __name__ == "__main__":
    main()
