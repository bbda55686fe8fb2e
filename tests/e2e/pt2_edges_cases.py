#!/usr/bin/env python3
"""Exported programs of what operators do at their edges, for tests/e2e/pt2, made as those of pt2_cases.py.

    pt2_edges_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
from pt2_cases import BATCH, Case
from pt2_complex_cases import real
from torch import fft
from torch.nn.functional import fold


class Ignored(Case):
    """What is added 0 times is not looked at, be it infinite."""

    exact = True
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.randn(b, 3, 3),)

    def forward(self, x):
        a, c = x[0], torch.complex(x[0], x[0].T)
        line, full = a[0], torch.full_like(a, float("inf"))
        return real((
            torch.addr(full, line, line, beta=0), torch.addr(full.to(torch.int64), (line * 9).to(torch.int64), (line * 9).to(torch.int64), beta=0), torch.addr(a, line, a[1], beta=2, alpha=0.5),
            torch.addmm(full, a, a, beta=0), torch.addmv(full[0], a, line, beta=0), torch.addmm(torch.complex(full, full), c, c, beta=0), torch.addmm(c, c, c, beta=1, alpha=2),
            torch.baddbmm(torch.complex(full, a)[None], c[None], c[None], beta=0, alpha=1j),
        ))  # fmt: skip


class Truths(Case):
    """Complex numbers are true where either part is not 0; truths are added as one or the other."""

    exact = True
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.tensor([0.0, 1.0, -0.0, 0.3, float("nan"), 0.0]).repeat(b, 1),)

    def forward(self, x):
        z, w = torch.complex(0 * x, x), torch.complex(x, 0 * x)
        yes = x > 5
        truths = torch.zeros_like(x, dtype=torch.bool)
        truths.copy_(z)
        t, some = x[0] != 0, x[0] > 0.1
        t2 = torch.stack([some] * 6)
        return real((
            *(torch.addr(t2, t, some, alpha=a, beta=b) for a, b in ((1, 1), (2, 2), (-1, 1), (0, 1), (1, 0), (True, False))), torch.addr(t2, t, some.int(), alpha=3), torch.addr(t2.int(), t, some),
            t2.sum(0, dtype=torch.bool), t2.sum(dtype=torch.bool), x.sum((0, 1), dtype=torch.bool), t2[:5].nansum(0, dtype=torch.bool), t2[:0].sum(0, dtype=torch.bool), fold(t2[:1, :4, None].expand(1, 4, 9), (4, 4), 2),
            z.to(torch.bool), w.to(torch.bool), z.to(yes), z.type_as(yes), z.bool(), x.to(torch.complex64), z.to(torch.complex128).to(torch.complex64), truths,
        ))  # fmt: skip


class Lines(Case):
    """Transforms of a vector, and of no dimension."""

    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.randn(b, 2, 8),)

    def forward(self, x):
        a, z = x[0, 0], torch.complex(x[0, 0], x[0, 1])
        r = fft.rfft(a)
        return real((
            fft.ihfft(a).imag, z.conj().imag, z.conj().real, fft.fft(a), fft.fft(z), fft.ifft(z, n=5), r, fft.irfft(r), fft.irfft(r, n=7), fft.hfft(z), fft.ihfft(a), fft.fftn(z), fft.rfftn(a), fft.fftn(z, dim=()), fft.ifftn(z, dim=(), norm="ortho"),
            fft.fftn(a, dim=()), fft.fft2(x[0], dim=()), fft.fftn(x[0]), fft.fft(torch.cat([z] * 18)), fft.irfft(fft.rfft(torch.cat([a] * 150))),
        ))  # fmt: skip


class Lent(Case):
    """Writes to results that share memory though no schema says so (PyTorch's decompositions lose them)."""

    exact = True
    core = False
    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.arange(12).float().repeat(b, 1).reshape(b, 3, 4),)

    def forward(self, x):
        results = []
        for split in (
            lambda t: torch.unsafe_chunk(t, 2), lambda t: torch.unsafe_split(t, 2), lambda t: torch.unsafe_split_with_sizes(t, [1, 3]),
        ):  # fmt: skip
            y = x[0, 0] * 1
            split(y)[0].add_(1)
            results.append(y)
        y = x[0] * 1
        v, w = y.view(4, 3), torch.conj_physical(y)
        w.add_(1)
        y = x[0] * 2
        u, w = y.view(4, 3), y.sum_to_size(3, 4)
        w.add_(1)
        y = x[0] * 3
        t, w = y.view(4, 3), y.sum_to_size(1, 4)
        w.add_(1)
        y = x[0] * 4
        s = y.view(12)
        y.conj_physical_()
        y.add_(1)
        i = x.to(torch.int32)
        return (*results, v, u, t, w, s, i.sum_to_size(3, 4), i.sum_to_size(1, 4), x.half().sum_to_size(1, 1, 4), (i > 3).sum_to_size(3, 1))


class Wraps(Case):
    """Integers that are too large for their type; what has no elements."""

    exact = True
    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        left, right = [40, -40, 400, -128, -128, -128, 200, 0, 6], [25, 25, 101, -128, 1, 3, 7, 5, 4]
        return torch.tensor(left).repeat(b, 1), torch.tensor(right).repeat(b, 1)

    def forward(self, i, j):
        types = (torch.int8, torch.int16, torch.int32, torch.uint8)
        x, e = i.float(), torch.zeros(0)
        return (
            *(torch.lcm(i.to(t), j.to(t)) for t in types), *(torch.gcd(i.to(t), j.to(t)) for t in types), torch.lcm(i, j),
            torch.cdist(x[0, :, None][:, :0], x[0, 1:, None][:, :0], p=float("inf")), torch.hstack((e, x[0])), torch.hstack((e, x)), torch.chain_matmul(x),
        )  # fmt: skip


class Endless(Case):
    """Complex numbers that are infinite, or become so; a diagonal without elements; bytes that are truth values."""

    exact = True
    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        inf = float("inf")
        parts = [[100, 0], [-100, 0.0], [100, 0.5], [0, 100], [0, 2]], [[1, inf], [-1, -inf], [-inf, inf], [4, 0], [0, 0]]
        return tuple(torch.tensor(p, dtype=torch.float32).repeat(b, 1, 1) for p in parts)

    def forward(self, x, y):
        z, w, zero = torch.view_as_complex(x), torch.view_as_complex(y), torch.view_as_complex(0 * x)
        square = y[0, :2] * 1
        square.diagonal(offset=3).fill_(7)
        yes = x[..., 0] > 0
        return real((
            z.sinh(), z.cosh(), z.exp(), z.sin(), z.cos(), w.sqrt(), zero**2.5, zero ** torch.tensor(2.5 + 1j), zero**0, (zero**-1.5).real,
            square, x[0, :2].diagonal(-2), yes.view(torch.uint8), yes.to(torch.uint8).view(torch.bool), yes.view(torch.int8) + 1,
        ))  # fmt: skip


CASES = {cls.__name__.lower(): cls for cls in (Ignored, Truths, Lines, Lent, Wraps, Endless)}


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
