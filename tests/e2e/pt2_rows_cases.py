#!/usr/bin/env python3
"""More exported programs of tests/e2e/pt2, made as those of pt2_cases.py (needs torch).

    pt2_rows_cases.py [NAME...]

Beside them it writes tests/frontends/pytorch/in_place.txt: what PyTorch has in place,
and what the same is called that is not.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pt2_cases
import torch
import torch.nn.functional as F
from pt2_cases import BATCH, LENGTH, Case
from torch import nn

IN_PLACE = Path(__file__).resolve().parents[1] / "frontends/pytorch/in_place.txt"


class Halves(Case):
    """Numbers that float16 has no exact form of: results are those in float64, rounded once."""

    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.linspace(-6, 6, 300).repeat(b, 1).half(), (torch.randn(b, 300) * 30).half()

    def forward(self, x, w):
        results = (
            F.hardswish(x), F.leaky_relu(x, 0.01), F.elu(x, 0.3), F.selu(x), F.hardsigmoid(x), F.celu(x, 0.3), F.softplus(x, 0.3),
            torch.add(x, w, alpha=0.1), torch.sub(x, w, alpha=0.3), torch.rsub(x, w, alpha=0.7), torch.addcmul(x, w, x, value=0.1),
            torch.addcdiv(x, x, w.abs() + 1, value=0.1), torch.lerp(x, w, 0.3), F.softshrink(x, 0.3),
            w // 0.3719, x * torch.tensor(0.1), x / torch.tensor(0.3), x + torch.tensor(0.1),
        )  # fmt: skip
        return tuple(r.half() for r in results)


class Counting(Case):
    """Numbers that programs compare and round down."""

    exact = True
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.linspace(-1, 1, 12).repeat(b, 1),)

    def forward(self, x):
        fine = torch.tensor([0.05, 0.1, 0.2], dtype=torch.float64)
        return (
            torch.bucketize(0.1, fine), torch.bucketize(0.1, fine, right=True), torch.searchsorted(fine, 0.2), torch.bucketize(2, torch.tensor([1, 2, 3])),
            torch.bucketize(0.3, torch.tensor([0.1, 0.3])), torch.bucketize(x, fine.float()), torch.bucketize(1.5, torch.tensor([1, 2, 3])),
            (torch.arange(0, 30, 0.1, dtype=torch.float64) * 10).floor().float() + x[0, 0].floor(), torch.arange(0, 30, 0.1)[::8] == torch.arange(300)[::8].double().mul(0.1).float(),
            (torch.arange(0, 30, 0.1)[13] * 1e7).to(torch.int64), torch.arange(5.0) + x[0, 0].floor(), torch.arange(3, 20, 4, dtype=torch.float32),
            torch.arange(7, -3, -2), torch.arange(0.5, 4), torch.arange(1, 2, 0.25, dtype=torch.float16),
        )  # fmt: skip


class Magnitude(Case):
    """Of complex numbers whose squares are too large, or too small."""

    exact = True
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        rows = [[3e25, 4e25], [3e-30, 4e-30], [0, 0], [-5, 12], [float("inf"), float("nan")], [float("-inf"), 1], [float("nan"), 1], [0, -2]]
        return (torch.tensor(rows).repeat(b, 1, 1),)

    def forward(self, x):
        return torch.view_as_complex(x).abs() / x[:, 3, 1:].reshape(-1, 1).clamp(min=1), torch.hypot(x[..., 0], x[..., 1])


class Named(Case):
    """In place, where the overload has another name than what is not in place."""

    exact = True
    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.arange(1, 13).float().repeat(b, 1), torch.arange(12).repeat(b, 1)

    def forward(self, x, i):
        m, n = i > 3, i < 9
        m &= n
        o, p = i > 3, i % 2 == 0
        o |= p
        q = i > 3
        q ^= p
        i = i.clone()
        i <<= 2
        j = i.clone()
        j >>= 1
        x = x.clone()
        y, z, u, v = x.clone(), x.clone(), x.clone(), x.clone()
        x //= z + 1
        y **= z / 6
        u **= 2
        v.divide_(3, rounding_mode="floor")
        w = z.clone()
        w.transpose_(0, 1)
        w += 1
        z //= 5
        return m, o, q, i, j, x, y, z, u, v, w


class Special(Case):
    """Functions of one or two numbers."""

    exact = True
    dims = ({0: BATCH},) * 3

    def inputs(self, b, n):
        inf, nan = float("inf"), float("nan")
        x = torch.tensor([-3.7, -1.0, -0.5, -0.0, 0.0, 0.25, 0.9, 1.0, 2.5, inf, -inf, nan, 1.0, 0.0, nan, 4.0])
        y = torch.tensor([2.0, -1.0, 0.5, -1.0, 0.0, 0.25, -0.0, 3.0, -2.5, inf, -inf, 1.0, nan, nan, 2.0, inf])
        return x.repeat(b, 1), y.repeat(b, 1), torch.arange(-8, 8).repeat(b, 1)

    def forward(self, x, y, i):
        p, s = x.nan_to_num(0.5, 0.7, 0.2).sigmoid(), torch.special
        h = x.half()
        return (
            torch.hypot(x, y), torch.hypot(h, y.half()), torch.xlogy(x, y), torch.xlogy(i, 2.5), torch.xlogy(0.0, y), s.xlogy(x, p), s.xlogy(2.0, p), s.xlogy(x, 3.0),
            s.xlog1py(x, p), s.xlog1py(2, p), s.xlog1py(x, 1.5), torch.copysign(x, y), torch.copysign(i, y), torch.copysign(x, -2.0), torch.signbit(x),
            torch.signbit(i), torch.signbit(i > 0), torch.fmax(x, y), torch.fmin(x, y), torch.fmax(i, 2 - i), torch.logaddexp(x, y), torch.logaddexp2(x, y),
            torch.heaviside(x, y), torch.heaviside(i, i + 3), torch.ldexp(x, i), torch.float_power(p, 3).float(), torch.float_power(p, i).float(),
            torch.float_power(2, i).float(), torch.isclose(x, y), torch.isclose(x, x + 1e-6), torch.isclose(x, y, equal_nan=True), torch.isclose(i, i + 1, rtol=0.2),
            x.frac(), torch.sinc(x[:, :9]), s.sinc(x[:, :9] / 3), torch.logit(p), torch.logit(p, 0.3), s.logit(p, eps=0.1), s.entr(x), x.deg2rad(), h.rad2deg(), x.rad2deg(), i.deg2rad(),
            s.expit(x), s.erf(x), s.expm1(p), s.log1p(p), s.exp2(x[:, :9]), s.round(p * 100, decimals=-1), torch.arcsin(p), torch.arccos(p), torch.arctan(x), torch.arcsinh(p),
            torch.arccosh(p + 1), torch.arctanh(p), torch.arctan2(x, y), torch.fix(x), torch.sgn(i), torch.divide(p, 0.3, rounding_mode="trunc"),
        )  # fmt: skip


class Meet(Case):
    """What several updates make of one element."""

    exact = True
    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return (torch.arange(18).reshape(6, 3) * 1.5 - 9).repeat(b, 1, 1), torch.tensor([[0, 1, 1], [4, 1, 0], [0, 4, 2]]).repeat(b, 1, 1)

    def forward(self, x, i):
        start, whole, no = torch.full_like(x, 2.0), x.to(torch.int64), x < -100
        line, yes = torch.tensor([1, 1, 4, 4]), torch.ones(4, 3, dtype=torch.bool)
        first = no[0]
        return (
            start.scatter_reduce(1, i, x, "mean"), start.scatter_reduce(1, i, x, "mean", include_self=False), whole.scatter_reduce(1, i, whole * 7 - 3, "mean"),
            start.half().scatter_reduce(1, i, x.half(), "mean"), start.scatter_reduce(1, i, x, "prod", include_self=False), x.scatter_reduce(1, i, x, "amax"),
            first.index_put((line,), yes, accumulate=True), first.index_add(0, line, yes), no.scatter_add(1, i, x > -200), no.scatter_reduce(1, i, x > -200, "sum"),
            (~no).scatter_reduce(1, i, x > 0, "prod"),
        )  # fmt: skip


class Places(Case):
    """Elements at places of the order, and of what came before."""

    exact = True
    dims = ({0: BATCH, 1: LENGTH}, {0: BATCH})

    def inputs(self, b, n):
        steps = torch.randperm(b * n * 20, generator=torch.Generator().manual_seed(n)).float() - 50
        holes = torch.randperm(b * 22).reshape(b, 22).float()
        holes[0, 3] = holes[0, 7] = holes[-1] = float("nan")
        return steps.reshape(b, n, 20) / 8, holes

    def forward(self, x, h):
        q = torch.tensor([0.0, 0.35, 0.5, 1.0])
        ties = (x / 3).round()
        return (
            x.kthvalue(3, 1), x.kthvalue(20, -1, keepdim=True), x[0, 0, 0].kthvalue(1), x.median(), x.median(1), x.to(torch.int64).median(), h.median(),
            h.median(1, keepdim=True), h.nanmedian(1).values, h[0].nanmedian(), x.quantile(0.3, 2), x.quantile(q, 1, keepdim=True), x.quantile(0.75), h.quantile(0.5, dim=1),
            x.quantile(0.42, 2, interpolation="lower"), x.quantile(0.42, 2, interpolation="higher"), x.quantile(q, 2, interpolation="nearest"), x.quantile(0.42, 1, interpolation="midpoint"),
            x.cummax(1), ties.cummin(2), h.cummax(1), x.to(torch.int32).cummax(-1), (x * 20).logcumsumexp(1), h.log().logcumsumexp(1), x.half().cummin(2),
            torch.logcumsumexp(torch.where(x > 0, x, float("-inf")), 2),
        )  # fmt: skip


class Bags(Case):
    """Rows of a table by bags, bilinear forms, what a mask takes."""

    dims = ({0: BATCH}, {0: BATCH}, {0: LENGTH}, {0: BATCH})

    def __init__(self):
        super().__init__()
        self.sum = nn.EmbeddingBag(11, 5, mode="sum")
        self.mean = nn.EmbeddingBag(11, 5, padding_idx=2)
        self.max = nn.EmbeddingBag(11, 5, mode="max", padding_idx=2)
        self.last = nn.EmbeddingBag(11, 5, mode="sum", include_last_offset=True)
        self.both = nn.Bilinear(4, 3, 6)

    def inputs(self, b, n):
        ids = torch.randint(0, 11, (b, 6))
        ids[0] = 2
        ids[1, 1:4] = 2
        return torch.randn(b, 4), ids, torch.randint(0, 11, (n,)), torch.arange(b) * 2

    def forward(self, x, ids, line, offsets):
        m = torch.ones(5, 4) * 0.5
        v = x[0]
        return (
            self.sum(ids), self.mean(ids), self.max(ids), self.mean(line, offsets), self.max(line, offsets.clamp(max=3)), self.sum(ids, per_sample_weights=x[:, :1] * ids), self.last(line, torch.tensor([0, 2, 4])),
            self.both(x, x[:, :3]), torch.addmv(m[:, 0], m, v, beta=0.3, alpha=2), torch.vdot(v, v + 1), torch.inner(x, m), torch.inner(v, v), torch.inner(x, v[0]),
            x.masked_scatter(x > 0, x[:, 1:].contiguous() * 0 + 2), ids.masked_scatter(ids % 2 == 0, torch.arange(48)), x.masked_scatter(x[:, :1] > 0, torch.arange(64.0).to(x.dtype)),
            F.embedding_bag(ids.clamp(max=4), m, mode="mean"), torch.embedding_bag(m, ids[0].clamp(max=4), torch.tensor([0, 2]))[0],
            F.rrelu(x), F.rrelu(x, 0.1, 0.7), F.adaptive_max_pool1d(x[:, None], 2),
        )  # fmt: skip


class Loss(Case):
    """Losses, each reduction, weights and places that are ignored."""

    dims = ({0: BATCH}, {0: BATCH}, {0: BATCH})

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.rand(6) + 0.5)

    def inputs(self, b, n):
        classes = torch.randint(0, 6, (b, 3))
        classes[0, 1] = -100
        classes[-1] = 2
        return torch.randn(b, 6, 3) * 2, torch.rand(b, 6, 3), classes

    def forward(self, x, p, k):
        w, q = self.weight[:, None], x.sigmoid()
        line = k[:, 0]
        z = x[0] * 1.0
        spread, _ = torch.broadcast_tensors(z, x)
        z.mul_(2)  # of which `spread` is a view
        return (
            spread, F.mse_loss(x, p), F.mse_loss(x, p, reduction="sum"), F.l1_loss(x, p, reduction="none"), F.smooth_l1_loss(x, p, beta=0.3), F.smooth_l1_loss(x, p, beta=0.0),
            F.huber_loss(x, p, delta=0.7), F.kl_div(x, p, reduction="sum"), F.kl_div(x, p.log(), reduction="batchmean", log_target=True), F.kl_div(x, (p - 0.5).relu()),
            F.binary_cross_entropy(q, p), F.binary_cross_entropy(q.round(), p, w, reduction="none"), F.binary_cross_entropy_with_logits(x * 30, p),
            F.binary_cross_entropy_with_logits(x, p, w, pos_weight=w * 2, reduction="sum"), F.soft_margin_loss(x, p * 2 - 1),
            F.nll_loss(x, k), F.nll_loss(x[:, :, 0], line, self.weight, ignore_index=2), F.nll_loss(x, k, reduction="none"), F.nll_loss(x[0, :, 0], line[-1]),
            F.nll_loss(x[..., None], k[..., None], self.weight, reduction="sum"), F.cross_entropy(x, k), F.cross_entropy(x, k, self.weight, label_smoothing=0.2),
            F.cross_entropy(x, p, self.weight, label_smoothing=0.1), F.cross_entropy(x, p, reduction="none"), F.cross_entropy(x[0, :, 0], line[-1]), F.cross_entropy(x[:, :, 0], line, reduction="sum", label_smoothing=0.1),
        )  # fmt: skip


class Margins(Case):
    """Losses of pairs and of counts; parts of a normal distribution."""

    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, 7) * 3, torch.randn(b, 7)

    def forward(self, x, y):
        sign, count = torch.sign(y), (y.abs() * 5).round()
        return (
            F.margin_ranking_loss(x, y, sign), F.margin_ranking_loss(x, y, sign, 0.3, reduction="none"), F.hinge_embedding_loss(x, sign), F.hinge_embedding_loss(x, sign * 2, 0.4, reduction="sum"),
            F.hinge_embedding_loss(x, sign.long(), reduction="none"), F.poisson_nll_loss(x, count), F.poisson_nll_loss(x.abs(), count, False, True, reduction="none"), F.poisson_nll_loss(x, y.abs(), True, True, reduction="sum"),
            torch.special.ndtr(x), torch.special.ndtr(count.int() - 2), torch.special.ndtr(x - 20),
        )  # fmt: skip


class Projected(Case):
    """LSTMs whose outputs are projected."""

    dims = ({0: BATCH},)

    def __init__(self):
        super().__init__()
        self.deep = nn.LSTM(7, 6, num_layers=2, proj_size=4, bidirectional=True, batch_first=True)
        self.bare = nn.LSTM(7, 5, proj_size=2, bias=False)

    def inputs(self, b, n):
        return (torch.randn(b, 5, 7),)

    def forward(self, x):
        y = x.transpose(0, 1)
        h, c = x.new_full((1, x.shape[0], 2), 0.3), x.new_full((1, x.shape[0], 5), -0.2)
        return (*self.deep(x), *self.bare(y, (h, c)), *self.bare(x[0]))


class Tails(Case):
    """Results that are small, and exact all the same."""

    def inputs(self, b, n):
        return (torch.linspace(-5, 9, 141).repeat(b, 1),)

    def forward(self, x):
        return torch.erfc(x), torch.special.erfc(x), 0.5 * x * torch.erfc(-x / math.sqrt(2))


CASES = {cls.__name__.lower(): cls for cls in (Halves, Counting, Magnitude, Named, Special, Meet, Places, Bags, Loss, Margins, Projected, Tails)}


def in_place() -> list[str]:
    """'in place, not in place' by their names without overloads, and the overload of the first."""
    found = []
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        name, _, overload = full.partition(".")
        inside = re.fullmatch(r"aten::__i(\w+)__", name)
        if not inside and not re.fullmatch(r"aten::[a-zA-Z]\w*[^_]_", name):
            continue
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        first, *_ = getattr(packet, overload or "default")._schema.arguments or [None]
        other = f"__{inside[1]}__" if inside else name.removeprefix("aten::")[:-1]
        if first and first.alias_info and first.alias_info.is_write and hasattr(torch.ops.aten, other):
            found.append(f"{name.replace('::', '.')}.{overload or 'default'} aten.{other}")
    return found


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
    IN_PLACE.write_text("\n".join(in_place()) + "\n")
