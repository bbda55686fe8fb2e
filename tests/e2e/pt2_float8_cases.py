#!/usr/bin/env python3
"""Exported programs of floats of 8 bits for tests/e2e/pt2, made as those of pt2_cases.py.

    pt2_float8_cases.py [NAME...]
"""

from __future__ import annotations

import pt2_cases
import torch
from pt2_cases import BATCH, Case

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


class Float8(Case):
    """Conversions, and products with scales of tensors, rows and columns."""

    exact = True
    dims = ({0: BATCH}, None)

    def __init__(self):
        super().__init__()
        weight = (torch.randn(48, 32) * 2).to(E4M3)
        self.register_buffer("weight", weight)
        self.register_buffer("each", torch.rand(1, 48) + 0.1)
        self.register_buffer("one", torch.tensor(0.03))
        self.bias = torch.nn.Parameter(torch.randn(48))

    def inputs(self, b, n):
        edges = torch.tensor([448, 464, 465, 480, -500, 57344, 61439, 61440, 70000, 240, 248, 250, 2**-10, 2**-9, 0.75 * 2**-9,
                              0, -0.0, float("inf"), float("-inf"), float("nan"), 17, 18, 19, 1.0625, 2**-17, 2**-18])  # fmt: skip
        return torch.randn(b, 32) * 3, edges

    def forward(self, x, edges):
        kinds = E4M3, E5M2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz
        casts = [edges.to(kind).float() for kind in kinds] + [edges.to(E5M2).to(torch.float16).clamp(-100, 100).to(E4M3).float()]
        scale = x.abs().max() / 448
        rows = x.abs().amax(1, keepdim=True) / 448
        whole, lined = (x / scale).clamp(-448, 448).to(E4M3), (x / rows).clamp(-448, 448).to(E4M3)
        multiply = torch._scaled_mm
        return (
            *casts,
            multiply(whole, self.weight.t(), scale, self.one, out_dtype=torch.float32, use_fast_accum=True),
            multiply(whole, self.weight.t(), scale, self.one, bias=self.bias.half(), out_dtype=torch.float16).float(),
            multiply(lined, self.weight.t(), rows, self.each, out_dtype=torch.bfloat16).float(),
            multiply(whole, self.weight.t(), scale, self.one).float(),
        )  # fmt: skip


CASES = {cls.__name__.lower(): cls for cls in (Float8,)}


if __name__ == "__main__":
    pt2_cases.CASES = CASES
    pt2_cases.main()
