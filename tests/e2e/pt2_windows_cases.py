#!/usr/bin/env python3
"""Exported programs of tests/e2e/pt2: layers, windows, attention. Made as those of pt2_cases.py,
which has what a case is (needs torch).

    pt2_windows_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
import torch.nn.functional as F
from pt2_cases import BATCH, LENGTH, Case
from torch import nn


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


class PoolOpen(Case):
    """Windows whose extents follow from open sizes: equal ones, others, and some that overlap since there are more of them than elements."""

    dims = ({0: BATCH, 2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}, {0: BATCH, 2: torch.export.Dim.AUTO})

    def inputs(self, b, n):
        line = torch.randn(b, 2, 3 * n)
        line[0, 0, n] = float("nan")
        line[0, 1] = -float("inf")
        return torch.randn(b, 3, n + 2, 2 * n + 1), line

    def forward(self, x, line):
        return (
            *(pool(x, k) for pool in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d) for k in (2, (1, 4), (3, 6), (16, 5))),
            F.adaptive_avg_pool3d(x[:, None], (2, 3, 4)), F.adaptive_avg_pool2d(x.permute(0, 2, 3, 1), (3, 2)), F.adaptive_avg_pool2d(x.half(), 3),
            *(pool(line, k) for pool in (F.adaptive_avg_pool1d, F.adaptive_max_pool1d) for k in (2, 3, 11, 70)),
        )  # fmt: skip


class Unpool(Case):
    """Maxima put back where they were found; the size that is left out, and others."""

    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, 3, 9, 7), torch.randn(b, 2, 4, 6, 5)

    def forward(self, x, y):
        pooled, at = F.max_pool2d(x, 2, return_indices=True)
        deep, there = F.max_pool3d(y, 2, return_indices=True)
        line, here = F.max_pool1d(x[:, 0], 2, return_indices=True)
        apart, far = F.max_pool2d(x[..., :6], 2, 3, return_indices=True)
        return (
            F.max_unpool2d(pooled[0], at[0], 2, output_size=(9, 7)), F.max_unpool2d(pooled, at, 2, output_size=(9, 7)), F.max_unpool2d(apart, far, 2, 3, output_size=(9, 6)), F.max_unpool1d(line, here, 2, output_size=[7]),
            F.max_unpool3d(deep, there, 2, output_size=(4, 6, 5)), F.max_unpool3d(deep[1:2, 0], there[1:2, 0], 2, output_size=(5, 6, 5)),
        )  # fmt: skip


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


class MaxPlaces(Case):
    """Where the largest element of a window lies."""

    def inputs(self, b, n):
        return torch.randn(b, 3, 12), torch.randn(b, 2, 6, 8)

    dims = ({0: BATCH}, {0: BATCH})

    def forward(self, x, y):
        return (
            *F.max_pool1d(x, 3, 2, 1, return_indices=True), *F.adaptive_max_pool2d(y, (3, 4), return_indices=True),
            *F.adaptive_max_pool1d(x, 1, return_indices=True), *F.adaptive_max_pool3d(y[:, None], (1, 3, 4), return_indices=True),
            F.adaptive_max_pool3d(y[:, None], (2, 4, 3)),
        )  # fmt: skip


CASES = {
    cls.__name__.lower(): cls for cls in (
        Conv, Pool, PoolOpen, Unpool, Norm, Attention, Product, Resize, Sample, Recurrent, Fold, Transposed, Heads,
        Rotary, Solid, Scaled, HalfNorm, MaxPlaces,
    )
}  # fmt: skip


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
