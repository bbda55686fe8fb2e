#!/usr/bin/env python3
"""Makes those exported programs of tests/e2e/pt2 in which order matters: regions, loops,
writes that are seen through other names. As pt2_cases.py, which has what a case is.

    pt2_flow_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
from pt2_cases import BATCH, LENGTH, Case
from torch import nn


class Regions(Case):
    """Graphs in the graph: no_grad, autocast, branches."""

    grad = True
    exact = True
    core = False
    dims = ({0: BATCH, 1: LENGTH},)

    def __init__(self):
        super().__init__()
        self.fc, self.exact_fc = nn.Linear(6, 5), nn.Linear(6, 5)
        for p in self.exact_fc.parameters():
            p.data = (p.data * 4).round() / 2  # exact in bfloat16, as are all sums

    def inputs(self, b, n):
        return (torch.randn(b, n, 6),)

    def forward(self, x):
        with torch.no_grad():
            angle = x.cumsum(1) * 0.5
            kept = x
            y = x.clone()
            y[:, 0] = 3
        with torch.autocast("cpu", enabled=False):
            plain = self.fc(angle)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast = self.exact_fc(y.round()).float()
            with torch.no_grad():
                inner = torch.sin(x) + 1
        chosen = torch.cond(x.sum() > 0, lambda v: (v * 2, v[0] + 1), lambda v: (v - 1, v[0] * 3), (x,))
        return angle, kept * 1, y, plain, cast, inner, *chosen


class Branch(Case):
    """A branch that the length decides."""

    core = False
    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 6),)

    def forward(self, x):
        return torch.cond(x.shape[1] > 6, lambda v: v + 10, lambda v: v * 0, (x,))


def loop(condition, step, *states):
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(condition, step, states)


class Loops(Case):
    """Loops whose numbers of steps are known: in loops, of no step, with views and writes in their steps."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def inputs(self, b, n):
        return (torch.randn(b, 4, 6),)

    def nested(self, i, total):
        inner = loop(lambda k, t: k <= i, lambda k, t: (k + 2, t * 0.5 + k), torch.zeros((), dtype=torch.int64), total)
        return i + 1, inner[1]

    def writes(self, i, go, h):
        h = h.clone()
        h[:, 1].mul_(2)
        part, rest = h.transpose(1, 2).split([2, 4], 1)
        rest[:, 0] = part[:, 1] + i
        return i * 3, torch.logical_and(i < 20, go), h

    def forward(self, x):
        zero, one = torch.tensor(0), torch.ones((), dtype=torch.int32)
        h = loop(lambda i, h: i < 3, lambda i, h: (i + 1, torch.tanh(self.fc(h)) + h[:, :1]), zero, x)
        none = loop(lambda i, h: i > 3, lambda i, h: (i + 1, h * 2), zero, x)
        nested = loop(lambda i, h: i < 4, self.nested, zero, x)
        written = loop(lambda i, go, h: go.clone(), self.writes, one, torch.ones((), dtype=torch.bool), x)
        return (*h, *none, *nested, *written)


class Steps(Case):
    """A loop of as many steps as a length is."""

    core = False
    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 6),)

    def forward(self, x):
        n = x.shape[1]
        return loop(lambda i, h: i < n, lambda i, h: (i + 1, h * 0.5 + x.index_select(1, i.reshape(1))[:, 0]), torch.tensor(0), torch.zeros_like(x[:, 0]))


class EndedSteps(Case):
    """A loop of at most five steps that a sum may end before."""

    core = False
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.rand(b, 3),)

    def forward(self, x):
        return loop(lambda i, h: (i < 5) & (h.sum() < 8), lambda i, h: (i + 1, h * 1.5 + i), torch.tensor(0), x)


class CountedSteps(Case):
    """Loops whose steps read their number, and one that data gives."""

    core = False
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.rand(b, 3),)

    def forward(self, x):
        torch._dynamo.config.capture_scalar_outputs = True
        numbers = loop(lambda i, h: i < 4, lambda i, h: (i + 1, h * 2 + i.item() * i.item()), torch.tensor(0), x)
        sums = loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * 0.5 + h.sum().item()), torch.tensor(0), x)
        again = loop(lambda i, h: i < 5, lambda i, h: (i + 2, h - i.item()), torch.tensor(1), x)
        return (*numbers, *sums, *again)


class ComplexViews(Case):
    """Complex numbers that see what is written to their parts, and real numbers beside them."""

    def inputs(self, b, n):
        return (torch.randn(b, 4, 6),)

    def forward(self, x):
        y, z = x * 1, x * 1
        c = torch.view_as_complex(y.reshape(-1, 4, 3, 2))
        d = c[:, 1:]
        y.mul_(2)
        y[:, 2, 3:] = 7
        r = z[:, :, 0]
        t = torch.view_as_complex(z.reshape(-1, 4, 3, 2)).transpose(1, 2)
        joined = torch.cat([r[..., None], t.transpose(1, 2)], 2), torch.stack([t[:, 0], r])
        made = r.to(t.dtype) * 1j, t.index_select(1, torch.tensor([2, 0]))
        z.add_(1)
        return [torch.view_as_real(v) for v in (c * 1, d * 1, t * 1, *joined, *made)]


class Grids(Case):
    """What lists are made of, seen through what is made of them."""

    def inputs(self, b, n):
        return (torch.randn(b, 4, 6),)

    def forward(self, x):
        y = x[0] * 1
        rows, columns = torch.meshgrid(y[0], y[:, 1], indexing="xy")
        # [b, 4, 3, 2] whose batch does not lie outermost, cut and seen anew: one view.
        shifted = (x * 1).transpose(0, 1).reshape(4, -1, 3, 2).transpose(0, 1)[:, :, 1:].reshape(-1, 4, 2, 2)
        shifted[..., :1].mul_(3)
        kept = torch.cat([y[0], y[1]]), torch.stack([y[0], y[1]])
        y.mul_(2)
        y[0, 3] = 5
        return rows, columns, shifted, *kept, {"a": {"b": y * x[:1]}, "a_b": y + 1, 3: y + 2}


class Shared(Case):
    """One bounded size that is the first dimension of one input and the second of another."""

    core = False
    dims = ({1: LENGTH, 0: BATCH}, {1: BATCH}, {0: LENGTH})

    def inputs(self, b, n):
        return torch.randn(b, n, 3), torch.randn(2, b, 3), torch.randn(n, 3)

    def forward(self, x, h, w):
        return x + h[0][:, None], (x * w).sum(1), h * 2


class Guarded(Case):
    """Branches that sizes decided when it was exported, so that it has guards."""

    core = False
    dims = ({0: BATCH, 1: torch.export.Dim.AUTO}, {0: BATCH, 1: torch.export.Dim.AUTO})

    def inputs(self, b, n):
        return torch.randn(b, n, 4), torch.randn(b, n - 2, 4)

    def forward(self, x, y):
        n, m = x.size(1), y.size(1)
        padded = nn.functional.pad(x, (0, 0, 0, 4 - n % 4)) if n % 4 != 0 else x
        longer = x * 2 if n > m else y * 2
        tenths = x + 1 if n // 5 == 1 else x
        return padded.cumsum(1), longer, tenths, y - 1 if m != 4 else y


class Colliding(Case):
    """Arguments that torch names alike, one of them in a dictionary: the second is d_a_1."""

    core = False
    dims = ({"a": {0: torch.export.Dim.AUTO}}, {0: torch.export.Dim.AUTO})

    def inputs(self, b, n):
        return {"a": torch.randn(2 * b)}, torch.randn(n + 1)

    def forward(self, d, d_a):
        if d_a.size(0) % 3 != 2:
            return d["a"] * 2, d_a + 1
        return d["a"] * 3, d_a - 1


class Capitals(Case):
    """Arguments that differ in case alone: the second is a_1."""

    core = False
    dims = ({0: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO})

    def inputs(self, b, n):
        return torch.randn(2 * b), torch.randn(n + 1)

    def forward(self, A, a):  # noqa: N803
        return (A * 2, a + 1) if a.size(0) % 3 != 2 else (A * 3, a - 1)


class Asserted(Guarded):
    """The same as nodes of the program that assert it, one of them in a region."""

    deferred = True
    grad = True

    def forward(self, x, y):
        with torch.no_grad():
            torch._check(y.size(1) != 77)
            z = x + y.sum()
        return *super().forward(x, y), z


class Chunked(Case):
    """Rows in blocks of 64, of which there was one: what is written there has as many."""

    core = False
    dims = ({0: BATCH, 1: torch.export.Dim.AUTO},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 6),)

    def forward(self, x):
        rows = nn.functional.pad(x, (0, 0, 0, -x.size(1) % 64))
        blocks = rows.reshape(x.size(0), -1, 64, 6)
        a = blocks @ blocks.transpose(-1, -2)
        for i in range(1, 3):
            row, before = a[..., i, :i].clone(), a[..., :i, :i].clone()
            a[..., i, :i] = row + (row.unsqueeze(-1) * before).sum(-2)
        for i in range(blocks.size(1)):
            a[:, i] = a[:, i] / 2
        return a[..., :4, :4]


class Computed(Case):
    """Diagonals and sizes that are computed from open sizes."""

    core = False
    dims = ({0: BATCH, 1: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO})

    def inputs(self, b, n):
        return torch.randn(b, n), torch.randn(n - 3)

    def forward(self, x, y):
        b, n, k = *x.shape, y.size(0)
        mask = torch.ones(k, n, dtype=torch.bool).tril(n - k)
        padded = nn.functional.pad(x, (0, max(b * k + b - n, 0)))
        return mask, x.triu(k - n), x.tril(-k // 3), torch.arange(max(k * n + k, 7)), x.new_zeros(max(n * k + n - 4, 1)), padded


pt2_cases.CASES = {
    cls.__name__.lower(): cls
    for cls in (Regions, Branch, Loops, Steps, EndedSteps, CountedSteps, ComplexViews, Grids, Shared, Guarded, Colliding, Capitals, Asserted, Chunked, Computed)
}  # fmt: skip


if __name__ == "__main__":
    pt2_cases.main()
