#!/usr/bin/env python3
"""Exported programs of norms, distances and of what matrices are put together from, for
tests/e2e/pt2, made as those of pt2_cases.py.

    pt2_linear_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
import torch.nn.functional as F
from pt2_cases import BATCH, LENGTH, Case

INF = float("inf")


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """What the mixtures of experts of transformers 5 call."""
    starts = [0, *offs.tolist()]
    return torch.cat([input[a:b] @ w for a, b, w in zip(starts, starts[1:], weight)])


@grouped.register_fake
def _(input, weight, offs):
    return input.new_empty(input.shape[0], weight.shape[2])


def grouped_in_float64(input, weight, offs):
    return grouped(input, weight, offs) if offs[-1] == len(input) else torch.cat((grouped(input, weight, offs), input.new_zeros(len(input) - offs[-1], weight.shape[2])))


pt2_cases.INSTEAD[torch.ops.aten._grouped_mm.default] = grouped_in_float64


def with_float_scales(op):
    """PyTorch takes scales and places of zero of float32 alone, whatever is quantized."""
    return lambda x, *rest: op(x, *(v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in rest))


for _op in (
    torch.ops.aten.fake_quantize_per_channel_affine.default, torch.ops.aten.fake_quantize_per_channel_affine_cachemask.default,
    torch.ops.aten.fake_quantize_per_tensor_affine.tensor_qparams, torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
):  # fmt: skip
    pt2_cases.INSTEAD[_op] = with_float_scales(_op)


class Norms(Case):
    """Each order, over each kind of dimensions."""

    dims = ({0: BATCH, 1: LENGTH}, {0: BATCH})

    def inputs(self, b, n):
        x = torch.randn(b, n, 6)
        x[0, :2] = 0
        return x, torch.randn(b, 3, 6)

    def forward(self, x, y):
        norm, aten, la = torch.linalg.norm, torch.ops.aten, torch.linalg
        m = y[0]
        return (
            la.vector_norm(x, 3, 1), la.vector_norm(x, INF), la.vector_norm(x, -INF, (0, 2), keepdim=True), la.vector_norm(x, 0, 2), la.vector_norm(x, 0.5, dim=-1), norm(x), norm(x, 1, 2), norm(m),
            norm(m, 1), norm(m, -INF, (0, 1)), norm(x, 0, 1), norm(m, INF, (1, 0), keepdim=True), norm(y, "fro", (1, 2)), norm(m, "fro"), norm(m[0], -1), la.matrix_norm(x), la.matrix_norm(m, -1, (1, 0)),
            la.matrix_norm(y[:1], INF, keepdim=True), la.matrix_norm(y, "fro", (0, 1), keepdim=True), la.matrix_norm(m, 1), x.norm(), x.norm(3), x.norm(1, 0), x.norm("fro", (0, 1)), x.norm(2, [0, 1], dtype=torch.float64).to(x.dtype),
            aten.norm.Scalar(x, 1), aten.norm.ScalarOpt_dim(x, None, [1], True), aten.norm.ScalarOpt_dtype(x, 3, dtype=torch.float64).to(x.dtype), aten.norm.ScalarOpt_dim_dtype(x, 2, [2], False, dtype=torch.float64).to(x.dtype), F.normalize(x, 1, 2),
            torch.dist(x, x * 2), torch.dist(y, y[:, :1], 3), torch.dist(y, y + 1, INF), torch.dist(y, y, 0), F.pairwise_distance(y, y[:, :1]), F.pairwise_distance(y, y + 1, p=1, keepdim=True), F.pairwise_distance(m, m * 2, INF, 0.1),
            torch.cdist(x, y, 0.5), torch.cdist(x, y, 0), torch.cdist(x, y, INF), torch.cdist(x, y, 1), torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist"), torch.cdist(m, m + 1), F.pdist(m), F.pdist(m, 1), F.pdist(m, INF),
        )  # fmt: skip


class Assembled(Case):
    """Stacks, blocks, diagonals, turns."""

    exact = True
    dims = ({0: BATCH, 1: LENGTH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, n, 6), torch.arange(12).reshape(3, 4).repeat(b, 1, 1)

    def forward(self, x, i):
        m, v, w = i[0], i[0, 0], x[0, 0]
        z, u = i * 1, x * 1
        hs, ds = torch.hsplit(z, [1, 2]), torch.dsplit(u, 3)
        hs[1].mul_(2)
        ds[2].add_(1)
        torch.linalg.diagonal(z, offset=1, dim1=1, dim2=2).fill_(70)
        return (
            z, u, torch.hstack((x, x[:, :1])), torch.hstack((v, v[:2])), torch.hstack((w[0], w)), torch.vstack((m, v)), torch.vstack((v, v)), torch.row_stack((v, m)), torch.dstack((x, x)), torch.dstack((v, v)), torch.dstack((m, m)),
            torch.column_stack((v, v)), torch.column_stack((m, m[:, 1])), torch.column_stack((w[1], w[2])), *torch.vsplit(m, 3), *torch.vsplit(m, [1]), *torch.hsplit(v, 2), *torch.dsplit(x, [2, 5]), *torch.hsplit(m, 2),
            *x.unsafe_chunk(4, 2), *x.unsafe_split(4, 2), *torch.unsafe_split_with_sizes(x, [1, 5], 2), torch.narrow_copy(x, 2, 1, 3), torch.block_diag(m, v, w[0], m * 2.5), torch.cartesian_prod(v, v[:2] * 2, v[:3]), torch.cartesian_prod(w), *torch.atleast_1d(v, m[0, 0]), *torch.atleast_2d(v, m), *torch.atleast_3d(v, m, m[0, 0]),
            torch.rot90(m), torch.rot90(x, 3, (1, 2)), torch.rot90(m, 2), torch.rot90(x, -1, (2, 0)), torch.rot90(m, 4), m.flipud(), x.fliplr(), torch.diag_embed(x), torch.diag_embed(x, 2, 0, 1), torch.diag_embed(x, -1, 1, -1), torch.diag_embed(v > 1),
            torch.diag(m), torch.diag(m, 1), torch.diag(m, -1), torch.diag(v, -2), torch.diag(w), torch.diagflat(m), torch.diagflat(v, 1), torch.diagonal_scatter(m, m[0, :3] + 50), torch.diagonal_scatter(i, -i[:, 0, :2], -1, 1, 2),
            torch.linalg.diagonal(x), torch.linalg.diagonal(i, offset=-1, dim1=2, dim2=1), m[:3, :3].trace(), m.trace(), torch.tril_indices(3, 4, 1), torch.triu_indices(4, 3, -1), torch.triu_indices(2, 2, 5, dtype=torch.int32), torch.tril_indices(2, 0),
            torch.kron(m, m[:2, :2]), torch.kron(v, m), x.moveaxis(0, 2), x.moveaxis((0, 1), (2, 0)), +x, x.adjoint(), m.H, x.sum_to_size(1, 6), m.sum_to_size(3, 1), v.sum_to_size(4), torch.tril_indices(3, 3).sum(), *torch.dsplit(x, 3),
        )  # fmt: skip


class Determinants(Case):
    """Of matrices whose size is known; products of vectors of 3; of matrices that are singular, and large."""

    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.randn(b, 4, 6),)

    def forward(self, x):
        la, a, b = torch.linalg, x[..., :3], x[..., 3:]
        m = x[:, :3, :3]
        square, one = x[0, :1, :1], x[:, :4, :4]
        return (
            la.cross(a, b), torch.cross(a[0], b[0]), torch.cross(a, b, -1), la.cross(m, x[:1, :3, 3:], dim=1), la.cross((a * 9).to(torch.int32), (b * 9).to(torch.int32)), la.cross(a[:1, :1], b),
            la.det(m), torch.det(square), torch.det(one), *la.slogdet(one * 100), *torch.slogdet(m), torch.logdet(m @ m.mT + 1), la.det(one[:, :1] * one[:, :, :1]), torch.cross(m[:1, :1], m), torch.cross(b[:1, :1].mT, m), *(v.float() for v in la.slogdet(one.double() * 1e-90)), *la.slogdet(one * 0), torch.det(x[:, :0, :0]),
            *(torch.matrix_power(one, n) for n in (0, 1, 2, 7)), la.matrix_power(m[0], 3),
        )  # fmt: skip


class Inverses(Case):
    """Of small matrices, alone and in equations and powers; of any number of them."""

    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.randn(b, 4, 6),)

    def forward(self, x):
        la, m = torch.linalg, x[..., :4] + 3 * torch.eye(4)
        return (
            la.inv(m), torch.inverse(m[0]), la.inv_ex(m[:, 1:, 1:])[0], la.inv(m[:, :1, :1]), torch.matrix_power(m, -2), la.solve(m, x), la.solve(m, x[..., 0]), la.solve(m, x[0, :, 1]), la.solve(m, x.mT, left=False),
            la.solve(m[0], x[..., 4:]), la.solve_ex(m, x)[0], la.inv(m[:1, None] * 1e6), (la.inv(m.double() * 1e90) * 1e90).float(), la.solve(m.double() * torch.tensor([1e-120, 1.0, 1e150, 2.0], dtype=torch.float64)[:, None], x.double()).mul(1e-120).float(), la.inv(m[:, :0, :0]),
        )  # fmt: skip


class FakeQuantized(Case):
    """What training for quantization rounds: half to even, cut, and back; what is cut is told."""

    exact = True
    dims = ({},)  # PyTorch has no rule for open sizes

    def inputs(self, b, n):
        return (torch.round(torch.randn(2, 5, 4) * 40) / 20,)

    def forward(self, x):
        one, each, aten = torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine, torch.ops.aten
        scales, points = torch.tensor([0.1, 0.2, 0.05, 0.7]), torch.tensor([0, 3, -7, 19], dtype=torch.int32)
        scale, point, on = torch.tensor([0.07]), torch.tensor([2], dtype=torch.int32), torch.tensor([1])
        y = x * 0.97 + 0.0137  # nowhere half way, so that float64 rounds alike
        return (
            one(y, 0.1, 3, -128, 127), one(y, scale, point, -8, 7), each(y, scales, points, 2, -128, 127), aten.fake_quantize_per_tensor_affine_cachemask(y, 0.1, 0, -20, 20)[0],
            aten.fake_quantize_per_channel_affine_cachemask(y, scales, points, 2, -20, 20)[0], aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(y, scale, point, on, -8, 7)[0],
            one(x, 0.1, 3, -128, 127), one(x, 1 / 3, 0, 0, 255), one(x, scale[0], point[0], -8, 7), one(x, scale, point, -8, 7), one(x.half(), 0.1, 3, 0, 15), one(torch.arange(-8, 8) * 0.05, 0.1, 0, -128, 127),
            each(x, scales, points, 2, -128, 127), each(x[:1], scales[:1], points[:1], 0, -5, 5), each(x, scales, points + 0.25, 2, 0, 255), *aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 0, -20, 20),
            *aten.fake_quantize_per_channel_affine_cachemask(x, scales, points, 2, -20, 20), *aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, scale, point, on, -8, 7),
            *aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, scale, point, on * 0, -8, 7),
        )  # fmt: skip


class Counted(Case):
    """Counts, what is not NaN, both extrema, products of vectors, whole divisors."""

    exact = True
    dims = ({0: BATCH, 1: LENGTH}, {0: BATCH})

    def inputs(self, b, n):
        x = torch.randn(b, n, 6).mul(2).round()
        x[0, 1] = float("nan")
        x[1, 2, 3] = float("nan")
        return x, torch.tensor([[12, -18, 0, 5, 2**30, -(2**31) + 1, 1836311903]] * b, dtype=torch.int32)

    def forward(self, x, i):
        n, k = x.nan_to_num(0), torch.tensor([18, 12, 0, 0, 3 * 2**20, 2, 1134903170])
        h = n.half()
        a = n[0, :4]
        line = torch.tensor([0, 2, 0])
        y, holes = n * 1, n * 1
        holes[:, :, torch.tensor([True, False, True, True, False, False])] = 9.0
        holes[n > 3] = 7
        y.put_(torch.tensor([1, -1]), torch.tensor([50.0, 60.0]))
        fine = torch.cat((torch.linspace(0, 1, 41, dtype=torch.float64), torch.tensor([0.3, 0.3 + 1e-12, 0.3 - 1e-12, 2.0, -1e-9], dtype=torch.float64)))
        return (
            fine.histc(10, 0, 1).float(), (fine * 3).float().histc(30, 0, 3), n.histc(5, -2, 2), n.count_nonzero(), x.count_nonzero(1), (x > 0).count_nonzero((0, 2)), i.count_nonzero(-1), x.nansum(), x.nansum(2, keepdim=True), i.nansum(1), x.nansum((0, 1), dtype=torch.float64).float(), x.nanmean(0), x.nanmean(),
            x.half().nanmean(2), *n.aminmax(), *n.aminmax(dim=2, keepdim=True), *x.aminmax(dim=1), *i.aminmax(), *torch.std_mean(n, 1), *torch.std_mean(n), *torch.ops.aten.std_mean.default(n, False), *torch.std_mean(n, (0, 2), correction=0, keepdim=True), *torch.std_mean(h, 2, unbiased=False),
            torch.gcd(i, k), torch.lcm(i[:, :4], k[:4]), torch.gcd(i.to(torch.uint8), torch.tensor(6, dtype=torch.uint8)), torch.gcd(i.to(torch.int64), k), torch.lcm(i.to(torch.int8), torch.tensor(6, dtype=torch.int8)), torch.lcm(i.to(torch.int64), k),
            holes, n.view(torch.int32), x.half().view(torch.int16) & 0x7C00, y, n.put(torch.tensor([[1, 3]]), torch.tensor([[1.0, 2.0]])), n.put(torch.tensor([1, 1, -2]), torch.tensor([1.0, 2.0, 5.0]), True), (n > 0).put(torch.tensor([2, 2]), torch.tensor([True, False]), True),
            torch.index_reduce(a, 0, line, a[1:] * 2, "amax"), torch.index_reduce(a, 1, line, a[:, 1:4], "amin", include_self=False), torch.index_reduce(a, 0, line, a[1:], "prod"), torch.index_reduce(a, 0, line, a[1:], "mean", include_self=False),
            torch.addr(a, a[:, 0], a[0]), torch.addr(a[0], a[:, 1], a[1], beta=0.3, alpha=2), torch.ger(a[0], a[:, 1]), torch.linalg.multi_dot([a, a.T, a]), torch.linalg.multi_dot([a[0], a.T, a, a[1]]), torch.chain_matmul(a, a.T, a),
            torch.msort(a), torch.special.softmax(a, 0), torch.special.log_softmax(a, 1),
        )  # fmt: skip


class Experts(Case):
    """Products of groups of rows, whose ends are known, or data."""

    exact = True
    dims = ({0: torch.export.Dim("rows", min=8, max=64)}, None)

    def inputs(self, b, n):
        return (torch.randn(b * 5, 16) * 4).round(), torch.tensor([2, 2, 7], dtype=torch.int32)

    def forward(self, x, ends):
        x, w = x.bfloat16(), (torch.arange(3 * 16 * 8).reshape(3, 16, 8) % 7 - 3).bfloat16()
        known = torch.tensor([2, 5, 8], dtype=torch.int32)
        y, v = x.float() * 0.3, w.float() / 7
        return (
            torch._grouped_mm(x[:8], w, offs=known).float(), torch._grouped_mm(x, w, offs=ends)[:7].float(), grouped(x[:7].float(), w.float(), ends),
            torch._grouped_mm(y[:8], v, offs=known), torch._grouped_mm(y, v, offs=ends)[:7], grouped(y[:7], v, ends),
        )  # fmt: skip


class Gammas(Case):
    """Functions of statistics."""

    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.cat((torch.linspace(-6.28, 40, 90), torch.tensor([0.0, 1, 2, 1e-6, 1e4, 0.5, 3e-3, -3, float("inf"), float("nan")]))).repeat(b, 1),)

    def forward(self, x):
        s, p = torch.special, (x[:, :90] / 10).tanh()
        edges = torch.tensor([1.0, -1, 0, 2, 1 - 2**-20, -1e-5])
        return (
            x.lgamma(), s.gammaln(x + 0.25), x.digamma(), s.digamma(x + 0.25), s.psi(x), p.erfinv(), s.erfinv(edges), torch.arange(1, 6).lgamma(),
        )  # fmt: skip


CASES = {cls.__name__.lower(): cls for cls in (Norms, Assembled, Determinants, Inverses, FakeQuantized, Counted, Experts, Gammas)}


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
