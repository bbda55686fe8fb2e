"""Rows of bench_gpu_rows.py: products of weights that are packed in 4 and 8 bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import helper, numpy_helper

BLOCK = 32  # terms that share a scale
COMPILED = "compiled"


@dataclass(frozen=True)
class Packed:
    """x [m, k] by a weight [k, n]: "nbits4" and "nbits8" in blocks (MatMulNBits), "int8" with a scale
    for each column (DequantizeLinear in front of MatMul), "int8t" the same, stored [n, k] (Gemm)."""

    m: int
    k: int
    n: int
    kind: str

    @property
    def whole_columns(self) -> bool:
        return self.kind in ("int8", "int8t")

    @property
    def bits(self) -> int:
        return 4 if self.kind == "nbits4" else 8

    @property
    def bytes(self) -> float:
        scales = 2 * self.n * (1 if self.whole_columns else self.k / BLOCK)
        return self.k * self.n * self.bits / 8 + scales + 2 * self.m * (self.k + self.n)

    def copies(self) -> int:
        """Together more than the second-level cache holds."""
        return min(12, math.ceil(100e6 / self.bytes))

    def arrays(self, copy: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(100 + copy)
        if self.whole_columns:
            shape = (self.k, self.n) if self.kind == "int8" else (self.n, self.k)
            numbers = rng.integers(-127, 128, shape, np.int8)
            scales = rng.uniform(0.5, 1.5, self.n) / (74 * math.sqrt(self.k))
        else:
            numbers = rng.integers(0, 256, (self.n, self.k // BLOCK, BLOCK * self.bits // 8), np.uint8)
            scales = rng.uniform(0.5, 1.5, (self.n, self.k // BLOCK)) / (0.29 * 2**self.bits * math.sqrt(self.k))
        return {"W": numbers, "S": scales.astype(np.float16)}

    def initializers(self, copy: int, prefix: str) -> list:
        return [numpy_helper.from_array(v, prefix + n) for n, v in self.arrays(copy).items()]

    def nodes(self, inputs, output, prefix) -> list:
        held = [prefix + "W", prefix + "S"]
        if self.kind == "int8t":
            return [
                helper.make_node("DequantizeLinear", held, [prefix + "w"], axis=0),
                helper.make_node("Gemm", [inputs[0], prefix + "w"], [output], transB=1),
            ]
        if self.kind == "int8":
            return [
                helper.make_node("DequantizeLinear", held, [prefix + "w"], axis=1),
                helper.make_node("MatMul", [inputs[0], prefix + "w"], [output]),
            ]
        return [
            helper.make_node(
                "MatMulNBits", [inputs[0], *held], [output], domain="com.microsoft",
                K=self.k, N=self.n, bits=self.bits, block_size=BLOCK,
            )  # fmt: skip
        ]

    def hold(self, torch, copy: int) -> list:
        """On the device: the numbers as the model has them, and scales."""
        return [torch.from_numpy(v).cuda() for v in self.arrays(copy).values()]

    def numbers(self, torch, w):
        """Without their zero points: [n, k], or [k, n] of int8."""
        if self.whole_columns:
            return w
        w = w.reshape(self.n, -1)
        if self.bits == 4:
            w = torch.stack([w & 15, w >> 4], -1).reshape(self.n, -1)
        return w.to(torch.int16) - 2 ** (self.bits - 1)

    def dense(self, torch, w, s, dtype):
        """[k, n]."""
        if self.kind == "int8":
            return w.to(dtype) * s.to(dtype)
        if self.kind == "int8t":
            return w.t().to(dtype) * s.to(dtype)
        scaled = self.numbers(torch, w).to(dtype).reshape(self.n, -1, BLOCK) * s.to(dtype)[..., None]
        return scaled.reshape(self.n, -1).t()

    def exact(self, torch, x, w, s):
        return x.float() @ self.dense(torch, w, s, torch.float32)

    def peers(self, torch, compiled: bool) -> dict:
        """Functions of x, the numbers and scales; each keeps its own form of a weight."""
        held: dict = {}

        def keep(key, w, make):
            if (key, id(w)) not in held:
                held[key, id(w)] = make()
            return held[key, id(w)]

        def cublas(x, w, s):
            return x @ keep("dense", w, lambda: self.dense(torch, w, s, torch.float16).contiguous())

        def int4pack(x, w, s):
            def make():
                q = (self.numbers(torch, w) + 8).to(torch.uint8)
                pairs = (q[:, ::2] << 4 | q[:, 1::2]).contiguous()
                zeros = torch.zeros_like(s)
                return torch._convert_weight_to_int4pack(pairs, 8), torch.stack([s.t(), zeros.t()], -1).to(
                    torch.bfloat16
                ).contiguous()

            packed, scales = keep("int4pack", w, make)
            return torch._weight_int4pack_mm(keep("x", x, lambda: x.to(torch.bfloat16)), packed, BLOCK, scales)

        def int8pack(x, w, s):
            bf16 = torch.bfloat16
            turned, scales = keep("int8pack", w, lambda: (w.t().contiguous(), s.to(bf16)))
            return torch._weight_int8pack_mm(keep("x", x, lambda: x.to(bf16)), turned, scales)

        found = dict(cublas=cublas)
        if self.kind == "nbits4":
            found["int4pack"] = int4pack
        if self.kind == "int8":
            found["int8pack"] = int8pack
        if compiled:
            found[COMPILED] = torch.compile(
                lambda x, w, s: x @ self.dense(torch, w, s, torch.float16), dynamic=False
            )
        return found


def packed_rows() -> list[Packed]:
    sizes = ((4096, 4096), (4096, 11008))
    return [Packed(m, k, n, kind) for kind in ("nbits4", "nbits8", "int8", "int8t") for k, n in sizes for m in (1, 8, 64, 512)]


