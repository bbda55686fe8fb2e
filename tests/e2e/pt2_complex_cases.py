#!/usr/bin/env python3
"""Exported programs of complex numbers for tests/e2e/pt2, made as those of pt2_cases.py.

    pt2_complex_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
import torch.nn.functional as F
from pt2_cases import BATCH, LENGTH, Case
from torch import fft


def real(values):
    """Results as they can be kept in a file."""
    return tuple(torch.view_as_real(v.resolve_conj()) if v.is_complex() else v for v in values)


class Complexes(Case):
    """Arithmetic and functions of complex numbers, beside real ones and numbers."""

    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        x = torch.randn(b, 3, 6)
        x[0, 0, 0] = x[0, 1, 0] = 0
        x[0, 0, 1] = -1.5
        x[0, 1, 1] = 0
        return x, torch.randn(b, 3, 6)

    def forward(self, x, y):
        z, w = torch.complex(x[:, 0], x[:, 1]), torch.complex(y[:, 0], y[:, 1])
        r = x[:, 2]
        d = torch.tensor([[1.5, -2, 0, 3, 1, 1]], dtype=torch.float64)
        return real((
            (z * d).to(z.dtype), (d + z).to(z.dtype), (z + w.to(torch.complex128)).to(z.dtype), z - torch.arange(6), z / w, z / r, r / w, 2 / w, z / (1 + 2j), z / 3, z.mul(2j), torch.add(z, w, alpha=2), torch.sub(z, r, alpha=3), 1 - z, z + (1 - 1j), r - z, r + w, r * 1j, r + 1j,
            z.exp(), w.log(), z.sqrt(), w.rsqrt(), w.reciprocal(), z.sin(), z.cos(), z.tan(), z.sinh(), z.cosh(), (z * 9).tanh(), z.sigmoid(), z**2, w**3, w**-2, z**0, w**0.5,
            w**1.7, w**z, z**w, 2.0**w, z.square(), z.abs(), z.angle(), r.angle(), z.sgn(), z == w, z == z.clone(), z != w, z == 0, z.isfinite(), (w / 0).isnan(), (w / 0).isinf(),
            z.isreal(), r.isreal(), z.conj() * w, z.conj_physical(), -z, z.sum(), z.sum(1), z.mean(1, keepdim=True), z.cumsum(1), z.var(1), z.std(), torch.linalg.vector_norm(z, dim=1), z.norm(),
            torch.where(r > 0, z, w), torch.where(r > 0, z, 0), torch.where(r > 0, 1j, z), z.masked_fill(r > 0, 2), torch.zeros_like(z) + w, torch.ones_like(z) * w, torch.full_like(z, 2j) * w,
            z.new_zeros(2, 3) + 1, z.gather(1, torch.zeros(1, 2, dtype=torch.int64)), F.pad(z, (1, 2)), F.pad(z[:, None], (1, 2), value=3.0), z.clone().index_put((torch.tensor([0]),), w[0] * 2),
            *(f(torch.outer(z[0], w[0])) for f in (torch.tril, torch.diagonal)), torch.outer(z[0], w[0]).trace(), z.roll(1, 1), z.flip(0), z.to(torch.complex128).abs().to(x.dtype), torch.stack((z, w)), torch.cat((z, r)),
        ))  # fmt: skip


class Mixed(Case):
    """Products of complex matrices, real ones among them."""

    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, 2, 4, 4), torch.randn(b, 2, 4, 4)

    def forward(self, x, y):
        z, w = torch.complex(x[:, 0], x[:, 1]), torch.complex(y[:, 0], y[:, 1])
        a, b, v, r = z[0], w[0], z[0, 1], y[0, 0]
        return real((
            z @ w, a @ b, a @ v, v @ a, torch.dot(v, b[0]), torch.vdot(v, b[0]), torch.mm(a, b), torch.bmm(z, w), torch.mv(a, b[0]), torch.outer(v, b[0]), torch.ger(v, r[0]),
            torch.addmm(a, a, b), torch.addmm(a, b, a, beta=2, alpha=1j), torch.baddbmm(z, z, w, alpha=0.5), F.linear(z, b, v), F.linear(z, b), F.linear(z, r.to(z.dtype)), torch.einsum("bij,bjk->bik", z, w),
            torch.einsum("ij->ji", a), torch.einsum("ij,j->i", a, r[0].to(a.dtype)), torch.tensordot(a, b, 1), torch.inner(a, b), torch.kron(a, b), torch.kron(r, b), z.mH, z.adjoint(), a.H, a.mT, x[0, 0].H, x.mH,
        ))  # fmt: skip


class Fourier(Case):
    """Transforms of real and complex signals, cut and filled up, each scaling."""

    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, 6, 10), torch.randn(b, 6, 10)

    def forward(self, x, y):
        z = torch.complex(x, y)
        r = fft.rfft(x)
        return real((
            fft.fft(x), fft.fft(z), fft.fft(z, n=7, dim=1), fft.fft(x, n=13, norm="ortho"), fft.fft(z, norm="forward"), fft.ifft(z), fft.ifft(x, n=6, norm="ortho"), fft.ifft(z, norm="forward"),
            r, fft.rfft(x, n=9, dim=1, norm="ortho"), fft.rfft(x, norm="forward"), fft.irfft(r), fft.irfft(r, n=9), fft.irfft(z, n=8, dim=1, norm="ortho"), fft.irfft(z, n=24, norm="forward"), fft.irfft(x),
            fft.hfft(z), fft.hfft(z, n=9, norm="ortho"), fft.ihfft(x), fft.ihfft(x, norm="forward"), fft.fft2(x), fft.fft2(z, s=(4, 12), norm="ortho"), fft.ifft2(z), fft.rfft2(x), fft.irfft2(fft.rfft2(x)),
            fft.irfft2(fft.rfft2(x), s=(6, 9), norm="ortho"), fft.fftn(z[0]), fft.fftn(x, dim=(1, 2)).real, fft.fftn(z, s=(5,), norm="ortho"), fft.ifftn(z, dim=(2, 1)), fft.rfftn(x, dim=(2, 1)),
            fft.irfftn(z, dim=(1, 2), s=(6, 8)), fft.fftshift(z), fft.fftshift(x, dim=1), fft.ifftshift(x, (1, 2)), fft.fftfreq(7) * x[0, 0, 0], fft.fftfreq(8, 0.5), fft.rfftfreq(9, 0.1),
            fft.fft(x.to(torch.int32)), torch.hann_window(9), torch.hann_window(8, periodic=False), torch.hamming_window(7), torch.hamming_window(6, periodic=False), torch.hamming_window(6, True, 0.6),
            torch.hamming_window(6, True, 0.6, 0.3), torch.blackman_window(8), torch.blackman_window(5, periodic=False), torch.hann_window(1),
        ))  # fmt: skip


class OpenFourier(Case):
    """Transforms of lengths that are known at run time alone."""

    dims = ({0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH})

    def inputs(self, b, n):
        return torch.randn(b, n, 3), torch.randn(b, n, 3)

    def forward(self, x, y):
        z, n = torch.complex(x, y), x.shape[1]
        r = fft.rfft(x, dim=1)
        return real((
            fft.fft(x, dim=1), fft.fft(z, dim=1, norm="ortho"), fft.ifft(z, dim=1), r, fft.irfft(r, n=n, dim=1), fft.hfft(z, n=2 * n, dim=1), fft.fft2(z, dim=(1, 2)),
            fft.ifftn(z, dim=(2, 1), norm="forward"), fft.rfft2(x, dim=(1, 2), norm="ortho"), fft.fft(x, n=2 * n + 1, dim=1),
        ))  # fmt: skip


CASES = {cls.__name__.lower(): cls for cls in (Complexes, Mixed, Fourier, OpenFourier)}


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
