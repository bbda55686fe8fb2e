#!/usr/bin/env python3
"""More exported programs of tests/e2e/pt2: signals in windows, images read at places that are
data. Made as those of pt2_cases.py (needs torch and torchvision).

    pt2_signal_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
import torch.nn.functional as F
import torchvision
from pt2_cases import BATCH, LENGTH, Case
from pt2_complex_cases import real


class Spectra(Case):
    """Spectra of a signal in windows, each scaling, and the signal of such."""

    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randn(b, 50), torch.randn(b, 50)

    def forward(self, x, y):
        z, hann, line = torch.complex(x, y), torch.hann_window(16), torch.linspace(0.5, 1, 11)
        s = torch.stft(x, 16, 5, window=hann, return_complex=True)
        back = torch.stft(x, 12, 3, 11, line, return_complex=True, normalized=True)
        both = torch.stft(x, 8, 3, onesided=False, center=False, return_complex=True)
        return real((
            s, back, both, torch.stft(z, 8, return_complex=True), torch.stft(x[0], 16, 7, 10, center=False, return_complex=True),
            torch.view_as_real(torch.stft(x, 15, 6, 12, hann[:12] + 0.1, pad_mode="constant", normalized=True, return_complex=True)),
            torch.ops.aten.stft.center(x, 16, 5, 12, hann[:12], True, "reflect", False, True, True), torch.istft(s, 16, 5, window=hann), torch.istft(s, 16, 5, window=hann, length=43), torch.istft(back, 12, 3, 11, line, normalized=True),
            torch.istft(both, 8, 3, onesided=False, center=False), torch.istft(torch.stft(x[0], 12, 3, return_complex=True), 12, 3, length=60),
        ))  # fmt: skip


class Windows(Case):
    """Windows, and the functions that they are made of."""

    dims = ({0: BATCH},)

    def inputs(self, b, n):
        return (torch.cat((torch.linspace(-31, 31, 63), torch.tensor([0.0, 1e-8, 19.999, 20.001, 80, -80]))).repeat(b, 1),)

    def forward(self, x):
        s, t = torch.special, x[:, :63] / 20
        return (
            torch.i0(t), s.i0(t), s.i0e(x), s.i1(t), s.i1e(x), torch.kaiser_window(9), torch.kaiser_window(8, periodic=False), torch.kaiser_window(7, True, 3.5), torch.kaiser_window(1),
            torch.bartlett_window(8), torch.bartlett_window(7, periodic=False), torch.bartlett_window(1), torch.kaiser_window(6, False, 0.1),
            torch.i0(x[:, :63].half() / 8).to(x.dtype),
        )  # fmt: skip


class Places2d(Case):
    """Regions, deformed windows, grids of affine maps."""

    core = False  # torch cannot take it apart

    dims = ({0: BATCH}, {0: BATCH}, {0: BATCH}, {0: torch.export.Dim("regions", min=3, max=32)})

    def inputs(self, b, n):
        regions = torch.rand(n, 5) * 6
        regions[:, 0] = torch.arange(n) % b
        regions[:, 3:] += regions[:, 1:3] + torch.rand(n, 2) * 9 - 2
        return torch.randn(b, 4, 9, 7), torch.randn(b, 18, 9, 7) * 2, torch.randn(b, 2, 3), regions

    def forward(self, x, offsets, maps, regions):
        w = torch.linspace(-1, 1, 6 * 2 * 9).reshape(6, 2, 3, 3).to(x.dtype)
        v = torch.linspace(-1, 1, 3 * 4 * 9).reshape(3, 4, 3, 3).to(x.dtype)
        solid = torch.cat((maps, maps * 0.3, maps[:, :, :2]), 2)[:, :, :4].repeat(1, 2, 1)[:, :3]
        grid, image = F.affine_grid(maps, (x.shape[0], 4, 5, 6), align_corners=False), torchvision.ops
        return (
            grid, F.affine_grid(maps, (x.shape[0], 1, 4, 1), align_corners=True), F.affine_grid(solid, (x.shape[0], 2, 3, 4, 5), align_corners=True), F.grid_sample(x, grid, align_corners=False),
            image.roi_align(x, regions, (3, 2), 0.7, 2, True), image.roi_align(x, regions, 2, sampling_ratio=3), image.roi_align(x, regions[:3], (1, 4), 1.3, 1, False),
            image.deform_conv2d(x, offsets, w, v[0, 0, 0, :1].repeat(6), padding=1, mask=offsets[:, :9].sigmoid()), image.deform_conv2d(x, offsets[:, :, :5, :4], v, stride=2, padding=(1, 2), dilation=(1, 2)),
            image.deform_conv2d(x, torch.cat((offsets, -offsets), 1), w, padding=1),
        )  # fmt: skip


class Sampled(Case):
    """Regions with as many samples as they are large, or empty; grids that are no numbers."""

    core = False  # torch cannot take it apart
    dims = ({0: BATCH}, {0: torch.export.Dim("regions", min=2, max=32)})

    def inputs(self, b, n):
        regions = torch.rand(n, 5) * 9 - 2
        regions[:, 0] = torch.arange(n) % b
        regions[:, 3:] += regions[:, 1:3] + torch.rand(n, 2) * torch.tensor([3, 40])
        regions[-1, 3:] = regions[-1, 1:3] - 2
        return torch.randn(b, 3, 9, 7), regions

    def forward(self, x, regions):
        image = torchvision.ops
        grid = torch.tensor([[float("nan"), 0.0], [0.1, float("nan")], [float("inf"), 0.4], [-0.2, float("-inf")], [0.3, 1.4]])
        grid = grid.to(x.dtype).expand(x.shape[0], 1, 5, 2)
        sampled = [
            F.grid_sample(x, grid, mode, padding, False)
            for mode in ("bilinear", "nearest") for padding in ("zeros", "border", "reflection")
        ]  # fmt: skip
        return (
            image.roi_align(x, regions, 3, 1.0, aligned=True), image.roi_align(x, regions, (1, 2), 0.5), image.roi_align(x, regions, (7, 5), 1.0, -1, True),
            *sampled,
        )  # fmt: skip


class Sums(Case):
    """Sums of exponentials of many elements, over ranges that no float holds."""

    dims = ({0: BATCH, 1: LENGTH},)

    def inputs(self, b, n):
        return (torch.randn(b, n, 150).cumsum(2) * 40,)

    def forward(self, x):
        holes = torch.where(x > 300, torch.full_like(x, float("-inf")), x)
        return x.logcumsumexp(2), x.logcumsumexp(1), holes.logcumsumexp(-1), (x[:, :, :65] / 100).logcumsumexp(2), x.reshape(x.shape[0], -1).logcumsumexp(1)


class Bytes(Case):
    """Bytes between elements, and filters over them and over floats with aligned corners."""

    core = False  # torch's own decomposition is off by one in places
    exact = True
    dims = ({0: BATCH}, {0: BATCH})

    def inputs(self, b, n):
        return torch.randint(0, 256, (b, 3, 9, 11), dtype=torch.uint8), torch.randn(b, 2, 9, 11)

    def forward(self, x, y):
        def each(x, mode, *sizes):
            return tuple(
                F.interpolate(x, size=s, mode=mode, align_corners=align, antialias=filtered)
                for s in sizes for align in (False, True) for filtered in (False, True)
            )  # fmt: skip

        return (
            *each(x, "bilinear", (5, 7), (17, 20), (9, 4), (1, 30)), *each(x, "bicubic", (6, 20), (20, 5), (1, 11)), F.interpolate(x, scale_factor=(1.7, 0.6), mode="bilinear"),
            F.interpolate(x, scale_factor=1.3, mode="bicubic", recompute_scale_factor=False), F.interpolate(x, size=(5, 20), mode="nearest"), F.interpolate(x, size=(5, 20), mode="nearest-exact"),
            torch.bitwise_left_shift(3, x % 9), torch.bitwise_right_shift(200, x % 9), *each(y, "bilinear", (5, 20)), *each(y, "bicubic", (1, 7), (20, 5)),
        )  # fmt: skip


CASES = {cls.__name__.lower(): cls for cls in (Spectra, Windows, Places2d, Sampled, Sums, Bytes)}


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
