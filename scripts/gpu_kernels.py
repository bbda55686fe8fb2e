#!/usr/bin/env python3
"""Tile kernels on a GPU: right on random data at awkward sizes, and how fast.

    gpu_kernels.py build DIR [--ptx-tool build/dev/bin/charonia-ptx] [--arch sm_80,sm_90,sm_90a]
    gpu_kernels.py run DIR [--json FILE] [--only NAME] [--time]

`build` needs no GPU: it writes the tile programs of the cases below and compiles them.
`run` needs a GPU and PyTorch, no compiler: it runs each kernel beside the same
mathematics in PyTorch. The cases are data here, so both agree on them.
"""
import argparse
import ctypes
import json
import math
import os
import re
import subprocess
import sys

# --- Tile programs ---------------------------------------------------------------------


def affine(dims, symbols, exprs):
    names = ", ".join(f"d{i}" for i in range(dims))
    syms = ", ".join(f"s{i}" for i in range(symbols))
    return f"affine_map<({names})[{syms}] -> ({', '.join(map(str, exprs))})>"


class Program:
    """Text of one kernel; values are strings like '%3', types are kept beside."""

    def __init__(self, name, grid, warps=4, stages=3, symbols=()):
        self.name, self.warps, self.stages, self.grid = name, warps, stages, grid
        self.symbols = list(symbols)  # (name, value, divisor)
        self.buffers, self.lines, self.types, self.n = [], [], {}, 0
        self.indent = 1

    def buffer(self, dtype):
        name = f"%b{len(self.buffers)}"
        self.buffers.append((name, dtype))
        return name

    def emit(self, text, type=None, results=1):
        if type is None:
            self.lines.append("  " * self.indent + text)
            return None
        self.n += 1
        name = f"%{self.n}v"
        name = f"%v{self.n}"
        self.lines.append("  " * self.indent + f"{name} = {text}")
        self.types[name] = type
        return name

    def index(self, value):
        return self.emit(f"arith.constant {value} : index", "index")

    def pid(self):
        return self.emit("tile.program_id : index", "index")

    def arith(self, op, a, b):
        return self.emit(f"arith.{op} {a}, {b} : {self.types[a]}", self.types[a])

    def unary(self, op, a):
        return self.emit(f"{op} {a} : {self.types[a]}", self.types[a])

    def cast(self, op, a, dtype):
        to = self.types[a].rsplit("x", 1)[0] + "x" + dtype + ">"
        return self.emit(f"arith.{op} {a} : {self.types[a]} to {to}", to)

    def const(self, value, shape, dtype):
        type = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
        return self.emit(f"arith.constant dense<{value}> : {type}", type)

    def _access(self, symbols, dims, exprs, shape, checks, rank, extra=""):
        checks = ": " + ", ".join(map(str, checks)) if checks else ""
        return (
            f"{{map = {affine(dims, len(symbols), exprs)}, "
            f"shape = affine_map<()[{', '.join(f's{i}' for i in range(len(symbols)))}] -> ({', '.join(map(str, shape))})>, "
            f"rank = {rank if rank is not None else len(shape)} : i64, checks = array<i64{checks}>{extra}}}"
        )

    def load(self, buffer, symbols, tile, exprs, shape, checks=(), rank=None, independent=False):
        dtype = dict(self.buffers)[buffer]
        type = f"tensor<{'x'.join(map(str, tile))}x{dtype}>"
        attrs = self._access(symbols, len(tile), exprs, shape, checks, rank,
                             ", independent" if independent else "")
        types = ", ".join([f"!tile.buffer<{dtype}>"] + [self.types[s] for s in symbols])
        return self.emit(f"tile.load {buffer}[{', '.join(symbols)}] {attrs} : ({types}) -> {type}", type)

    def store(self, value, buffer, symbols, exprs, shape, checks=(), rank=None):
        dtype = dict(self.buffers)[buffer]
        dims = self.types[value].count("x") if "x" in self.types[value] else 0
        attrs = self._access(symbols, dims, exprs, shape, checks, rank)
        types = ", ".join([self.types[value], f"!tile.buffer<{dtype}>"] + [self.types[s] for s in symbols])
        self.emit(f"tile.store {value}, {buffer}[{', '.join(symbols)}] {attrs} : {types}")

    def reduce(self, value, axis, op):
        shape = self.types[value][7:-1].split("x")
        dtype = shape[-1]
        rest = "x".join(shape[:axis] + shape[axis + 1:])
        type = f"tensor<{rest}>"
        return self.emit(
            f"tile.reduce {value} {{axis = {axis} : i64}} : ({self.types[value]}) -> {type} {{\n"
            f"    ^bb0(%l: {dtype}, %r: {dtype}):\n      %o = {op} %l, %r : {dtype}\n"
            f"      tile.yield %o : {dtype}\n    }}", type)

    def broadcast(self, value, axes, shape):
        dtype = self.types[value][7:-1].split("x")[-1]
        type = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
        return self.emit(
            f"tile.broadcast {value} {{axes = array<i64: {', '.join(map(str, axes))}>}} : {self.types[value]} -> {type}",
            type)

    def transpose(self, value, permutation):
        shape = self.types[value][7:-1].split("x")
        type = "tensor<" + "x".join([shape[p] for p in permutation] + [shape[-1]]) + ">"
        return self.emit(
            f"tile.transpose {value} {{permutation = array<i64: {', '.join(map(str, permutation))}>}} : {self.types[value]} -> {type}",
            type)

    def dot(self, a, b, c, tf32=False):
        return self.emit(
            f"tile.dot {a}, {b}, {c} {'{tf32}' if tf32 else ''} : {self.types[a]}, {self.types[b]} -> {self.types[c]}",
            self.types[c])

    def loop(self, count, carried, body):
        """for i in range(count): carried = body(i, carried); returns the results."""
        zero, one = self.index(0), self.index(1)
        end = count if isinstance(count, str) else self.index(count)
        types = [self.types[c] for c in carried]
        self.n += 1
        id = self.n
        inner = [f"%c{id}_{i}" for i in range(len(carried))]
        for name, type in zip(inner, types):
            self.types[name] = type
        iv = f"%i{id}"
        self.types[iv] = "index"
        args = ", ".join(f"{a} = {b}" for a, b in zip(inner, carried))
        self.emit(f"%r{id}:{len(carried)} = scf.for {iv} = {zero} to {end} step {one} iter_args({args}) -> ({', '.join(types)}) {{")
        self.indent += 1
        results = body(iv, inner)
        self.emit(f"scf.yield {', '.join(results)} : {', '.join(types)}")
        self.indent -= 1
        self.emit("}")
        names = [f"%r{id}#{i}" for i in range(len(carried))]
        for name, type in zip(names, types):
            self.types[name] = type
        return names

    def text(self):
        args = [f"{n}: !tile.buffer<{t}>" for n, t in self.buffers]
        for name, _, divisor in self.symbols:
            args.append(f"%{name}: index" + (f" {{tile.divisor = {divisor} : i64}}" if divisor > 1 else ""))
        syms = ", ".join(f"s{i}" for i in range(len(self.symbols)))
        return (
            f"func.func @{self.name}({', '.join(args)})\n"
            f"    attributes {{tile.kernel, tile.grid = affine_map<()[{syms}] -> ({self.grid})>, "
            f"tile.warps = {self.warps} : i64, tile.stages = {self.stages} : i64}} {{\n"
            + "\n".join(self.lines) + "\n  return\n}\n")

    def symbol(self, name):
        self.types["%" + name] = "index"
        return "%" + name


# --- Cases -------------------------------------------------------------------------------

TORCH = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i8": "int8",
         "i32": "int32", "i64": "int64"}
CASES = []


class Case:
    def __init__(self, program, instances, inputs, outputs, reference, tolerance=0.0, flops=0, bytes=0,
                 peer=None, time=False):
        """inputs: (dtype, shape, make or None); outputs: (dtype, shape).
        reference(torch, *inputs) -> list of tensors, in f64 where that matters.
        tolerance: largest error relative to the largest magnitude of the reference."""
        self.program, self.instances, self.inputs, self.outputs = program, instances, inputs, outputs
        self.reference, self.tolerance, self.flops, self.bytes = reference, tolerance, flops, bytes
        self.peer, self.time, self.problem = peer, time, None
        CASES.append(self)


EPS = {"f32": 2e-6, "f16": 1e-3, "bf16": 8e-3, "f64": 1e-13, "i32": 0, "i64": 0, "i8": 0}


def numel(shape):
    return math.prod(shape)


def wide(p, v):
    return p.cast("extf", v, "f32") if p.types[v].endswith(("xf16>", "bf16>")) else v


def narrow(p, v, dtype):
    return p.cast("truncf", v, dtype) if dtype in ("f16", "bf16") and p.types[v].endswith("xf32>") else v


def pointwise(name, dtype, n, tile=1024, warps=4, divisor=1, op="addf"):
    p = Program(name, f"s0 ceildiv {tile}", warps, symbols=[("n", n, divisor)])
    a, b, o = p.buffer(dtype), p.buffer(dtype), p.buffer(dtype)
    s, pid = p.symbol("n"), p.pid()
    access = ([pid, s], [tile], [f"s0 * {tile} + d0"], ["s1"], [0])
    x, y = (wide(p, p.load(buffer, *access)) for buffer in (a, b))
    z = narrow(p, p.arith(op, x, y), dtype)
    p.store(z, o, [pid, s], [f"s0 * {tile} + d0"], ["s1"], [0])
    Case(p, -(-n // tile), [(dtype, [n], None)] * 2, [(dtype, [n])],
         lambda torch, x, y: [x + y if op.startswith("add") else x * y], EPS[dtype],
         bytes=3 * n * size(dtype), time=n > 1 << 22)


def size(dtype):
    return {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i8": 1}[dtype]


def math_op(name, op, torch_op, low, high, tolerance=3e-6):
    n, tile = 5000, 1024
    p = Program(name, n // tile + 1)
    a, o, pid = p.buffer("f32"), p.buffer("f32"), p.pid()
    x = p.load(a, [pid], [tile], [f"s0 * {tile} + d0"], [n], [0])
    p.store(p.unary(op, x), o, [pid], [f"s0 * {tile} + d0"], [n], [0])
    Case(p, n // tile + 1, [("f32", [n], lambda torch: torch.rand(n, device="cuda") * (high - low) + low)],
         [("f32", [n])], lambda torch, x: [getattr(torch, torch_op)(x.double())], ("relative", tolerance))


def transposition(name, dtype, rows, columns, tile=64):
    tr, tc = -(-rows // tile), -(-columns // tile)
    p = Program(name, tr * tc)
    a, o, pid = p.buffer(dtype), p.buffer(dtype), p.pid()
    row = p.arith("divui", pid, p.index(tc))
    column = p.arith("remui", pid, p.index(tc))
    x = p.load(a, [row, column], [tile, tile], [f"s0 * {tile} + d0", f"s1 * {tile} + d1"], [rows, columns], [0, 1])
    y = p.transpose(x, [1, 0])
    p.store(y, o, [row, column], [f"s1 * {tile} + d0", f"s0 * {tile} + d1"], [columns, rows], [0, 1])
    Case(p, tr * tc, [(dtype, [rows, columns], None)], [(dtype, [columns, rows])],
         lambda torch, x: [x.t().contiguous()], 0.0)


def softmax(name, dtype, rows, n, tile_rows=1, warps=4):
    width = 1 << (n - 1).bit_length()
    grid = -(-rows // tile_rows)
    p = Program(name, grid, warps)
    a, o, pid = p.buffer(dtype), p.buffer(dtype), p.pid()
    tile, exprs = [tile_rows, width], [f"s0 * {tile_rows} + d0", "d1"]
    checks = ([0] if rows % tile_rows else []) + ([1] if n != width else [])
    x = wide(p, p.load(a, [pid], tile, exprs, [rows, n], checks))
    if n != width:
        inside = p.emit(f"tile.in_bounds [] {{map = {affine(2, 0, ['d1'])}, shape = affine_map<() -> ({n})>}} : () -> tensor<{tile_rows}x{width}xi1>", f"tensor<{tile_rows}x{width}xi1>")
        low = p.const("0xFF800000", tile, "f32")
        x = p.emit(f"arith.select {inside}, {x}, {low} : tensor<{tile_rows}x{width}xi1>, {p.types[x]}", p.types[x])
    m = p.broadcast(p.reduce(x, 1, "arith.maximumf"), [0], tile)
    e = p.unary("math.exp", p.arith("subf", x, m))
    s = p.broadcast(p.reduce(e, 1, "arith.addf"), [0], tile)
    y = narrow(p, p.arith("divf", e, s), dtype)
    p.store(y, o, [pid], exprs, [rows, n], checks)
    Case(p, grid, [(dtype, [rows, n], None)], [(dtype, [rows, n])],
         lambda torch, x: [torch.softmax(x.double(), 1)], EPS[dtype], bytes=2 * rows * n * size(dtype),
         time=rows * n > 1 << 22)


def argmax(name, rows, n, warps=4):
    """Reduction of two operands at once: value and index."""
    width = 1 << (n - 1).bit_length()
    p = Program(name, rows, warps)
    a, o, pid = p.buffer("f32"), p.buffer("i64"), p.pid()
    x = p.load(a, [pid], [1, width], ["s0 + d0", "d1"], [rows, n], [1])
    inside = p.emit(f"tile.in_bounds [] {{map = {affine(2, 0, ['d1'])}, shape = affine_map<() -> ({n})>}} : () -> tensor<1x{width}xi1>", f"tensor<1x{width}xi1>")
    low = p.const("0xFF800000", [1, width], "f32")
    x = p.emit(f"arith.select {inside}, {x}, {low} : tensor<1x{width}xi1>, {p.types[x]}", p.types[x])
    i = p.emit(f"tile.index [] {{map = {affine(2, 0, ['d1'])}}} : () -> tensor<1x{width}xindex>", f"tensor<1x{width}xindex>")
    i = p.emit(f"arith.index_cast {i} : tensor<1x{width}xindex> to tensor<1x{width}xi64>", f"tensor<1x{width}xi64>")
    p.emit(f"%am:2 = tile.reduce {x}, {i} {{axis = 1 : i64}} : ({p.types[x]}, {p.types[i]}) -> (tensor<1xf32>, tensor<1xi64>) {{\n"
           "    ^bb0(%l: f32, %li: i64, %r: f32, %ri: i64):\n"
           "      %gt = arith.cmpf ogt, %l, %r : f32\n      %eq = arith.cmpf oeq, %l, %r : f32\n"
           "      %lt = arith.cmpi slt, %li, %ri : i64\n      %tie = arith.andi %eq, %lt : i1\n"
           "      %take = arith.ori %gt, %tie : i1\n      %v = arith.select %take, %l, %r : f32\n"
           "      %vi = arith.select %take, %li, %ri : i64\n      tile.yield %v, %vi : f32, i64\n    }")
    p.types["%am#1"] = "tensor<1xi64>"
    p.store("%am#1", o, [pid], ["s0 + d0"], [rows], [])
    Case(p, rows, [("f32", [rows, n], lambda torch: torch.randint(0, 50, (rows, n), device="cuda").float())],
         [("i64", [rows])], lambda torch, x: [(x == x.max(1, keepdim=True).values).int().argmax(1)], 0)


def column_sum(name, dtype, rows, columns, tile_columns=64, step=32):
    """Reduction across rows, in a loop over them."""
    grid = -(-columns // tile_columns)
    p = Program(name, grid)
    a, o, pid = p.buffer(dtype), p.buffer("f32"), p.pid()
    zero = p.const("0.0", [step, tile_columns], "f32")

    def body(i, carried):
        x = p.load(a, [pid, i], [step, tile_columns], [f"s1 * {step} + d0", f"s0 * {tile_columns} + d1"],
                   [rows, columns], [0, 1])
        return [p.arith("addf", carried[0], wide(p, x))]

    total = p.loop(-(-rows // step), [zero], body)[0]
    s = p.reduce(total, 0, "arith.addf")
    p.store(s, o, [pid], [f"s0 * {tile_columns} + d0"], [columns], [0])
    Case(p, grid, [(dtype, [rows, columns], None)], [("f32", [columns])],
         lambda torch, x: [x.double().sum(0)], 3e-6)


def gather(name, rows, n, picks):
    """Rows chosen by an index tensor: a load with a tile symbol."""
    p = Program(name, -(-picks // 4))
    a, ix, o, pid = p.buffer("f16"), p.buffer("i64"), p.buffer("f16"), p.pid()
    width = 1 << (n - 1).bit_length()
    i = p.load(ix, [pid], [4, 1], ["s0 * 4 + d0"], [picks], [0])
    i = p.emit(f"arith.index_cast {i} : tensor<4x1xi64> to tensor<4x1xindex>", "tensor<4x1xindex>")
    x = p.load(a, [i], [4, width], ["s0", "d1"], [rows, n], [0, 1])
    p.store(x, o, [pid], ["s0 * 4 + d0", "d1"], [picks, n], [0, 1])
    Case(p, -(-picks // 4), [("f16", [rows, n], None),
                             ("i64", [picks], lambda torch: torch.randint(0, rows, (picks,), device="cuda"))],
         [("f16", [picks, n])], lambda torch, x, i: [x[i]], 0.0)


def tiles_in_groups(p, pid, mt, nt, group=8):
    """Instances in super-rows of `group` tile rows, so that operands stay in L2."""
    size = p.index(group * nt)
    first = p.arith("muli", p.arith("divui", pid, size), p.index(group))
    rows = p.arith("minui", p.arith("subi", p.index(mt), first), p.index(group))
    inside = p.arith("remui", pid, size)
    return p.arith("addi", first, p.arith("remui", inside, rows)), p.arith("divui", inside, rows)


def gemm(name, M, N, K, BM, BN, BK, warps=8, stages=4, dtype="f16", out=None, b_kn=False, a_km=False,
         tf32=False, epilogue=None, prologue=None, symbolic=False, time=False, tolerance=None):
    """C = A B (+ bias, gelu, residual); B is [N, K], or [K, N] with b_kn; A [K, M] with a_km."""
    out = out or dtype
    acc = {"f64": "f64", "i8": "i32", "i32": "i32"}.get(dtype, "f32")
    nt, mt = -(-N // BN), -(-M // BM)
    p = Program(name, nt * mt, warps, stages, symbols=[("m", M, 1)] if symbolic else [])
    A, B = p.buffer(dtype), p.buffer(dtype)
    extra = [p.buffer(dtype) for _ in (epilogue or ())]
    scale = p.buffer("f32") if prologue else None
    C = p.buffer(out)
    m, n = tiles_in_groups(p, p.pid(), mt, nt)
    sym, Ms = ([p.symbol("m")], "s2") if symbolic else ([], M)
    mcheck, ncheck, kcheck = bool(M % BM) or symbolic, bool(N % BN), bool(K % BK)
    zero = p.const("0.0" if acc[0] == "f" else "0", [BM, BN], acc)

    def body(k, carried):
        row, col = f"s0 * {BM} + d0", f"s1 * {BK} + d1"
        a = p.load(A, [m, k] + sym, [BM, BK], [col, row] if a_km else [row, col],
                   [K, Ms] if a_km else [Ms, K],
                   sorted([int(a_km)] * mcheck + [int(not a_km)] * kcheck))
        if prologue:
            s = p.load(scale, [m] + sym, [BM, 1], [row], ["s1" if symbolic else M], [0] * mcheck)
            x = p.arith("mulf", wide(p, a), p.broadcast(s, [0, 1], [BM, BK]))
            a = narrow(p, x, dtype)
        row, col = f"s1 * {BK} + d0", f"s0 * {BN} + d1"
        b = p.load(B, [n, k], [BK, BN], [row, col] if b_kn else [col, row], [K, N] if b_kn else [N, K],
                   sorted([int(b_kn)] * ncheck + [int(not b_kn)] * kcheck), independent=True)
        return [p.dot(a, b, carried[0], tf32)]

    c = p.loop(-(-K // BK), [zero], body)[0]
    at = ([m, n] + sym, [f"s0 * {BM} + d0", f"s1 * {BN} + d1"], [Ms, N], [0] * mcheck + [1] * ncheck)
    inputs = [(dtype, [K, M] if a_km else [M, K], None), (dtype, [K, N] if b_kn else [N, K], None)]
    for step, buffer in zip(epilogue or (), extra):
        if step == "bias":
            bias = p.load(buffer, [n], [1, BN], [f"s0 * {BN} + d1"], [N], [0] * ncheck, independent=True)
            c = p.arith("addf", c, p.broadcast(wide(p, bias), [0, 1], [BM, BN]))
            inputs.append((dtype, [N], None))
        elif step == "residual":
            r = p.load(buffer, at[0], [BM, BN], *at[1:])
            c = p.arith("addf", c, wide(p, r))
            inputs.append((dtype, [M, N], None))
        elif step == "relu":
            c = p.arith("maximumf", c, p.const("0.0", [BM, BN], "f32"))
            inputs.append((dtype, [1], None))
    if prologue:
        inputs.append(("f32", [M], None))
    p.store(narrow(p, c, out), C, *at)

    def reference(torch, a, b, *rest):
        if prologue:
            *rest, s = rest
            a = (a.t() if a_km else a).float() * s[:, None]
            a = a.to(b.dtype)
            a = a.t() if a_km else a
        a, b = (a.t() if a_km else a).double(), (b if b_kn else b.t()).double()
        c = a @ b
        for step, x in zip(epilogue or (), rest):
            c = c + x if step in ("bias", "residual") else c.relu()
        return [c]

    def peer(torch, a, b, *rest):
        return (a.t() if a_km else a) @ (b if b_kn else b.t())

    Case(p, nt * mt, inputs, [(out, [M, N])], reference, tolerance or (1e-3 if tf32 else EPS[out]),
         flops=2 * M * N * K, peer=peer if dtype not in ("i8", "i32") else None, time=time)


def conv(name, N, H, W, C, K, R, stride, pad, BM, BN, BK, warps=4, stages=3, dtype="f16", time=False):
    """NHWC implicit GEMM: rows are pixels, K loop over (r, s, c); weights [K, R, R, C]."""
    P, Q = (H + 2 * pad - R) // stride + 1, (W + 2 * pad - R) // stride + 1
    M, KK = N * P * Q, R * R * C
    nt, mt = -(-K // BN), -(-M // BM)
    p = Program(name, nt * mt, warps, stages)
    X, F, O = p.buffer(dtype), p.buffer(dtype), p.buffer(dtype)
    m, n = tiles_in_groups(p, p.pid(), mt, nt)
    pix, kk = f"(s0 * {BM} + d0)", f"(s1 * {BK} + d1)"
    img, y = f"{pix} floordiv {P * Q}", f"(({pix} floordiv {Q}) mod {P}) * {stride} + {kk} floordiv {R * C} - {pad}"
    x, c = f"({pix} mod {Q}) * {stride} + ({kk} floordiv {C}) mod {R} - {pad}", f"{kk} mod {C}"
    zero = p.const("0.0", [BM, BN], "f32")
    guards = ([pix] if M % BM else []) + ([kk] if KK % BK else [])
    guard_shape = ([M] if M % BM else []) + ([KK] if KK % BK else [])

    def body(k, carried):
        a = p.load(X, [m, k], [BM, BK], [img, y, x, c] + guards, [N, H, W, C] + guard_shape,
                   [1, 2] * bool(pad) + list(range(4, 4 + len(guards))), rank=4)
        b = p.load(F, [n, k], [BK, BN], [f"s0 * {BN} + d1", f"s1 * {BK} + d0"], [K, KK],
                   [0] * bool(K % BN) + [1] * bool(KK % BK), independent=True)
        return [p.dot(a, b, carried[0])]

    c = p.loop(-(-KK // BK), [zero], body)[0]
    p.store(narrow(p, c, dtype), O, [m, n], [f"s0 * {BM} + d0", f"s1 * {BN} + d1"], [M, K],
            [0] * bool(M % BM) + [1] * bool(K % BN))

    def reference(torch, x, f):
        y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2).double(), f.permute(0, 3, 1, 2).double(),
                                       stride=stride, padding=pad)
        return [y.permute(0, 2, 3, 1).reshape(M, K)]

    def peer(torch, x, f):
        return torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2), stride=stride, padding=pad)

    Case(p, nt * mt, [(dtype, [N, H, W, C], None), (dtype, [K, R, R, C], None)], [(dtype, [M, K])], reference,
         EPS[dtype], flops=2 * M * K * KK, peer=peer, time=time)


def attention(name, heads, S, D, BM, BN, warps=4, stages=3, dtype="f16", time=False):
    """softmax(Q K^T / sqrt(D)) V, online, one program instance per 64 or 128 queries of a head."""
    mt, steps = -(-S // BM), -(-S // BN)
    p = Program(name, mt * heads, warps, stages)
    Q, K, V, O, pid = p.buffer(dtype), p.buffer(dtype), p.buffer(dtype), p.buffer(dtype), p.pid()
    count = p.index(mt)
    head, m = p.arith("divui", pid, count), p.arith("remui", pid, count)
    shape = [heads, S, D]
    q = p.load(Q, [head, m], [BM, D], ["s0", f"s1 * {BM} + d0", "d1"], shape, [1] * bool(S % BM))
    low = p.const("0xFF800000", [BM], "f32")
    zeros, acc = p.const("0.0", [BM], "f32"), p.const("0.0", [BM, D], "f32")
    scale = p.const(repr(1 / math.sqrt(D)), [BM, BN], "f32")
    sz = p.const("0.0", [BM, BN], "f32")

    def body(i, carried):
        top, total, o = carried
        k = p.load(K, [head, i], [D, BN], ["s0", f"s1 * {BN} + d1", "d0"], shape, [1] * bool(S % BN))
        s = p.arith("mulf", p.dot(q, k, sz), scale)
        if S % BN:
            inside = p.emit(f"tile.in_bounds [{i}] {{map = {affine(2, 1, [f's0 * {BN} + d1'])}, shape = affine_map<()[s0] -> ({S})>}} : (index) -> tensor<{BM}x{BN}xi1>", f"tensor<{BM}x{BN}xi1>")
            s = p.emit(f"arith.select {inside}, {s}, {p.const('0xFF800000', [BM, BN], 'f32')} : tensor<{BM}x{BN}xi1>, {p.types[s]}", p.types[s])
        new = p.arith("maximumf", top, p.reduce(s, 1, "arith.maximumf"))
        e = p.unary("math.exp", p.arith("subf", s, p.broadcast(new, [0], [BM, BN])))
        fix = p.unary("math.exp", p.arith("subf", top, new))
        total = p.arith("addf", p.arith("mulf", total, fix), p.reduce(e, 1, "arith.addf"))
        o = p.arith("mulf", o, p.broadcast(fix, [0], [BM, D]))
        v = p.load(V, [head, i], [BN, D], ["s0", f"s1 * {BN} + d0", "d1"], shape, [1] * bool(S % BN))
        return [new, total, p.dot(narrow(p, e, dtype), v, o)]

    _, total, o = p.loop(steps, [low, zeros, acc], body)
    o = p.arith("divf", o, p.broadcast(total, [0], [BM, D]))
    p.store(narrow(p, o, dtype), O, [head, m], ["s0", f"s1 * {BM} + d0", "d1"], shape, [1] * bool(S % BM))

    def reference(torch, q, k, v):
        q, k, v = q.double(), k.double(), v.double()
        return [torch.softmax(q @ k.transpose(1, 2) / math.sqrt(D), -1) @ v]

    def peer(torch, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])

    Case(p, mt * heads, [(dtype, shape, None)] * 3, [(dtype, shape)], reference, 2 * EPS[dtype],
         flops=4 * heads * S * S * D, peer=peer, time=time)


def add_cases():
    for dtype in ("f16", "bf16", "f32", "f64"):
        pointwise(f"add_{dtype}", dtype, 5003)
    pointwise("add_f16_vec", "f16", 5008, divisor=8)
    pointwise("mul_i32", "i32", 4099, op="muli")
    pointwise("add_i8", "i8", 4099, op="addi")
    pointwise("add_f16_large", "f16", 1 << 25, tile=2048, divisor=1 << 12)
    for op, torch_op, low, high in [("exp", "exp", -20, 10), ("log", "log", 1e-3, 50), ("tanh", "tanh", -5, 5),
                                    ("erf", "erf", -4, 4), ("sin", "sin", -50, 50), ("sqrt", "sqrt", 0, 9),
                                    ("rsqrt", "rsqrt", 1e-3, 9), ("exp2", "exp2", -30, 30)]:
        math_op(f"math_{op}", f"math.{op}", torch_op, low, high)
    transposition("transpose_f16", "f16", 200, 333)
    transposition("transpose_f32_vec", "f32", 256, 128)
    for rows, n, tile_rows, warps in [(37, 1000, 1, 4), (129, 64, 4, 4), (5, 4096, 1, 8), (33, 17, 2, 1), (3, 2, 1, 1)]:
        softmax(f"softmax_f16_{rows}x{n}", "f16", rows, n, tile_rows, warps)
    softmax("softmax_f32", "f32", 50, 777)
    softmax("softmax_f16_large", "f16", 16384, 2048, 1, 4)
    argmax("argmax", 21, 700)
    column_sum("column_sum", "f16", 333, 150)
    gather("gather", 100, 96, 37)
    # Dots: shapes that no tile divides, both orientations, every type.
    gemm("gemm_f16", 200, 136, 96, 64, 64, 32, warps=4, stages=3)
    gemm("gemm_f16_odd", 77, 53, 61, 64, 64, 32, warps=4, stages=3)
    gemm("gemm_f16_kn", 200, 136, 96, 64, 64, 32, warps=4, stages=3, b_kn=True)
    gemm("gemm_f16_km", 200, 136, 96, 64, 64, 32, warps=4, stages=3, a_km=True, b_kn=True)
    gemm("gemm_bf16", 256, 256, 128, 128, 128, 64, dtype="bf16")
    gemm("gemm_f16_small", 16, 24, 512, 16, 8, 64, warps=1, stages=4)
    gemm("gemm_f16_warps", 32, 64, 256, 16, 32, 64, warps=8, stages=4)
    gemm("gemm_f16_k2", 64, 64, 34, 32, 32, 16, warps=4, stages=2)
    gemm("gemm_f16_oneiter", 64, 64, 32, 64, 64, 32, warps=4, stages=3)
    gemm("gemm_f16_symbolic", 333, 256, 256, 128, 128, 64, symbolic=True)
    gemm("gemm_f16_epilogue", 200, 136, 96, 64, 64, 32, warps=4, epilogue=["bias", "residual", "relu"])
    gemm("gemm_f16_f32out", 200, 136, 96, 64, 64, 32, warps=4, out="f32", tolerance=1e-5)
    gemm("gemm_f16_prologue", 200, 136, 160, 64, 64, 32, warps=4, prologue=True)
    gemm("gemm_tf32", 200, 136, 96, 64, 64, 32, warps=4, dtype="f32", tf32=True)
    gemm("gemm_tf32_kn", 200, 136, 96, 64, 64, 32, warps=4, dtype="f32", tf32=True, b_kn=True)
    gemm("gemm_f32", 200, 136, 96, 64, 64, 16, warps=4, dtype="f32")
    gemm("gemm_f32_odd", 77, 53, 61, 64, 64, 16, warps=4, dtype="f32")
    gemm("gemm_f32_kn", 200, 136, 96, 64, 64, 16, warps=4, dtype="f32", b_kn=True)
    gemm("gemm_f64", 100, 72, 40, 32, 32, 16, warps=4, dtype="f64")
    gemm("gemm_i32", 100, 72, 40, 32, 32, 16, warps=4, dtype="i32")
    # What warpgroups take, where a chip has them.
    gemm("gemm_f16_128x256", 200, 333, 160, 128, 256, 64, 8, 4)
    gemm("gemm_f16_256x128_kn", 300, 136, 200, 256, 128, 64, 8, 4, b_kn=True, epilogue=["bias", "relu"])
    gemm("gemm_bf16_64x256", 100, 300, 700, 64, 256, 64, 4, 4, dtype="bf16", a_km=True, b_kn=True)
    gemm("gemm_f16_128x128_prologue", 200, 136, 500, 128, 128, 64, 8, 4, prologue=True)
    gemm("gemm_f16_64x64_short", 65, 63, 61, 64, 64, 64, 4, 6, symbolic=True)
    conv("conv_3x3", 3, 14, 14, 64, 96, 3, 1, 1, 64, 64, 32)
    conv("conv_3x3_s2", 2, 15, 13, 32, 40, 3, 2, 1, 64, 32, 32)
    conv("conv_stem", 1, 40, 40, 3, 64, 7, 2, 3, 64, 64, 32)
    conv("conv_1x1", 2, 9, 9, 40, 48, 1, 1, 0, 32, 32, 16)
    attention("attention_f16", 3, 128, 64, 64, 64)
    attention("attention_f16_odd", 2, 77, 64, 64, 32)
    attention("attention_d128", 2, 200, 128, 64, 64)
    attention("attention_few_rows", 2, 64, 64, 16, 64)


def add_timed():
    for bm, bn, bk, warps, stages in [(128, 128, 32, 8, 4), (128, 128, 64, 8, 3), (128, 128, 32, 4, 4),
                                      (128, 256, 32, 8, 4), (128, 256, 64, 8, 3), (256, 128, 32, 8, 4),
                                      (256, 128, 64, 8, 3), (128, 256, 32, 8, 3)]:
        gemm(f"gemm4096_{bm}x{bn}x{bk}_w{warps}_s{stages}", 4096, 4096, 4096, bm, bn, bk, warps, stages, time=True)
    gemm("gemm4096_kn_128x256x64", 4096, 4096, 4096, 128, 256, 64, 8, 3, b_kn=True, time=True)
    gemm("gemm2048_f32", 2048, 2048, 2048, 128, 128, 16, 8, 3, dtype="f32", time=True)
    gemm("gemm4096_tf32", 4096, 4096, 4096, 128, 128, 32, 8, 3, dtype="f32", tf32=True, time=True)
    gemm("gemm_bert_128x3072x768", 128, 3072, 768, 64, 64, 64, 4, 4, time=True)
    attention("attention_12x512x64", 12, 512, 64, 64, 64, warps=4, time=True)
    attention("attention_16x4096x128", 16, 4096, 128, 128, 64, warps=8, time=True)
    conv("conv_56_64", 8, 56, 56, 64, 64, 3, 1, 1, 128, 64, 32, 4, 4, time=True)
    conv("conv_28_128", 1, 28, 28, 128, 128, 3, 1, 1, 64, 64, 64, 4, 4, time=True)


def add_random(count, seed):
    """Random shapes, tiles, types and orientations; the same for the same seed."""
    import random
    r = random.Random(seed)
    pick = r.choice

    def extent(tile, most=3):
        return pick([tile, tile * r.randint(1, most), r.randint(1, tile * most), r.randint(1, tile * most) * 8])

    for i in range(count):
        kind = pick(["gemm"] * 6 + ["conv"] * 3 + ["attention"] * 2 + ["softmax", "pointwise", "transpose", "column", "argmax"])
        name = f"random{seed}_{i}_{kind}"
        warps = pick([1, 2, 4, 8])
        if kind == "gemm":
            dtype = pick(["f16"] * 4 + ["bf16", "f32", "f32", "f64", "i32"])
            tf32 = dtype == "f32" and pick([True, False])
            bm, bn, bk = pick([16, 32, 64, 128]), pick([8, 16, 32, 64, 128]), pick([16, 32, 64])
            if dtype in ("f64", "f32", "i32"):
                bm, bn, bk = min(bm, 64), min(bn, 64), min(bk, 32)
            # What a thread holds has to fit into its registers.
            if bm * bn > 64 * 32 * warps:
                warps = max(1, bm * bn // (64 * 32))
            half = dtype in ("f16", "bf16")
            gemm(name, extent(bm), extent(bn), pick([extent(bk, 6), bk * r.randint(1, 9)]), bm, bn, bk, warps,
                 pick([2, 3, 4]), dtype, b_kn=pick([True, False]), a_km=pick([True, False, False]), tf32=tf32,
                 epilogue=pick([None, ["bias"], ["bias", "residual", "relu"]]) if half else None,
                 prologue=half and pick([True, False, False]), symbolic=pick([True, False]),
                 tolerance=3e-3 if tf32 else None)
        elif kind == "conv":
            bm, bn, bk = pick([16, 32, 64]), pick([16, 32, 64]), pick([16, 32, 64])
            R, c = pick([1, 3, 3, 5]), pick([3, 8, 16, 32, 24, 64])
            conv(name, r.randint(1, 3), r.randint(5, 20), r.randint(5, 20), c, pick([bn, bn * 2, r.randint(1, 60)]),
                 R, r.randint(1, 2), pick([0, R // 2]), bm, bn, bk, min(warps, 4), pick([2, 3, 4]))
        elif kind == "attention":
            attention(name, r.randint(1, 3), r.randint(1, 200), pick([16, 32, 64, 128]), pick([16, 32, 64]),
                      pick([16, 32, 64]), warps, pick([2, 3]), pick(["f16", "bf16"]))
        elif kind == "softmax":
            softmax(name, pick(["f16", "f32"]), r.randint(1, 100), r.randint(1, 3000), pick([1, 2, 8]), warps)
        elif kind == "pointwise":
            dtype = pick(["f16", "f32", "f64", "bf16"])
            pointwise(name, dtype, r.randint(1, 9000), pick([64, 256, 1024, 2048]), warps)
        elif kind == "transpose":
            transposition(name, pick(["f16", "f32", "f64", "i8"]), r.randint(1, 300), r.randint(1, 300), pick([16, 32, 64]))
        elif kind == "column":
            column_sum(name, pick(["f16", "f32"]), r.randint(1, 500), r.randint(1, 300), pick([16, 64, 128]), pick([4, 32]))
        else:
            argmax(name, r.randint(1, 40), r.randint(1, 3000), warps)


# Dots of real models at batch 1: rows, columns, K; convolutions by their image.
PROBLEMS = [
    ("bert_qkv", 128, 2304, 768), ("bert_out", 128, 768, 768), ("bert_up", 128, 3072, 768), ("bert_down", 128, 768, 3072),
    ("vit_qkv", 197, 2304, 768), ("vit_out", 197, 768, 768), ("vit_up", 197, 3072, 768), ("vit_down", 197, 768, 3072),
    ("gpt2_qkv", 512, 2304, 768), ("gpt2_out", 512, 768, 768), ("gpt2_up", 512, 3072, 768), ("gpt2_down", 512, 768, 3072),
    ("gpt2_head", 512, 50257, 768), ("rn_56_64_64", 3136, 64, 64), ("rn_56_64_256", 3136, 256, 64),
    ("rn_56_256_64", 3136, 64, 256), ("rn_28_512_128", 784, 128, 512), ("rn_28_128_512", 784, 512, 128),
    ("rn_14_1024_256", 196, 256, 1024), ("rn_14_256_1024", 196, 1024, 256), ("rn_7_2048_512", 49, 512, 2048),
    ("rn_7_512_2048", 49, 2048, 512), ("mb_112_32_96", 12544, 96, 16), ("mb_14_96_576", 196, 576, 96),
    ("mb_7_960_320", 49, 320, 960), ("mb_7_320_1280", 49, 1280, 320),
    ("rn_conv_56_64", (56, 64), 64, 3), ("rn_conv_28_128", (28, 128), 128, 3), ("rn_conv_14_256", (14, 256), 256, 3),
    ("rn_conv_7_512", (7, 512), 512, 3),
]
TILES = [(16, 32, 64, 2, 4), (16, 64, 64, 4, 4), (16, 32, 128, 2, 4), (16, 32, 128, 4, 6), (32, 32, 64, 4, 4),
         (32, 32, 64, 2, 4), (32, 32, 128, 4, 4), (32, 32, 128, 4, 3), (32, 64, 64, 4, 4), (32, 64, 64, 4, 6), (32, 64, 128, 4, 3),
         (64, 32, 64, 4, 4), (64, 32, 128, 4, 3), (64, 64, 32, 4, 4), (64, 64, 64, 4, 3), (64, 64, 64, 4, 4),
         (64, 64, 64, 4, 6), (64, 64, 128, 4, 3), (64, 128, 32, 4, 4), (64, 128, 64, 4, 4), (128, 64, 32, 4, 4),
         (128, 64, 64, 4, 4), (128, 64, 64, 8, 4), (128, 128, 32, 8, 4), (128, 128, 64, 8, 4), (128, 256, 32, 8, 4)]


ATTENTION = [("bert_attention", 12, 128, 64), ("vit_attention", 12, 197, 64), ("gpt2_attention", 12, 512, 64),
             ("long_attention", 16, 4096, 128)]


def add_problems():
    """Every problem with every tile shape that is not far larger than it."""
    for name, heads, length, width in ATTENTION:
        for bm in (16, 32, 64, 128):
            for bn in (32, 64, 128):
                for stages in (2, 3):
                    for warps in {max(1, bm // 32), bm // 16}:
                        if length > 1000 and bm < 64:
                            continue
                        attention(f"{name}_{bm}x{bn}x{width}_w{warps}_s{stages}", heads, length, width, bm, bn, warps,
                                  stages, time=True)
                        CASES[-1].problem = name
    for name, *size in PROBLEMS:
        for bm, bn, bk, warps, stages in TILES:
            m = size[0] if isinstance(size[0], int) else size[0][0] ** 2
            n, k = size[1], size[2] if isinstance(size[0], int) else size[0][1] * 9
            tiles = -(-m // bm) * -(-n // bn)
            if bm >= 2 * max(m, 16) or bn >= 2 * n or bk >= 2 * k or tiles > 6000 or (tiles < 12 and m * n > 65536):
                continue
            full = f"{name}_{bm}x{bn}x{bk}_w{warps}_s{stages}"
            if isinstance(size[0], int):
                gemm(full, m, n, k, bm, bn, bk, warps, stages, time=True)
            else:
                conv(full, 1, size[0][0], size[0][0], size[0][1], n, 3, 1, 1, bm, bn, bk, warps, stages, time=True)
            CASES[-1].problem = name


# Products that are bound by arithmetic or nearly so: rows, columns, K.
PRODUCTS = [
    (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 768, 768),
    (4096, 3072, 768), (4096, 768, 3072), (512, 4096, 4096), (2048, 11008, 4096), (8192, 1024, 8192), (64, 4096, 14336),
    (128, 3072, 768), (784, 512, 4608), (3136, 64, 576)]
PRODUCT_TILES = [
    (128, 256, 64, 8, 4), (256, 128, 64, 8, 4), (128, 128, 64, 8, 3), (128, 128, 64, 8, 6), (128, 128, 64, 4, 3), (64, 256, 64, 4, 4),
    (64, 128, 64, 4, 4), (64, 128, 64, 4, 6), (128, 64, 64, 4, 4), (64, 64, 64, 4, 4), (64, 64, 64, 4, 6), (64, 64, 128, 4, 3)]


def add_products():
    """Every product with every tile that fits it."""
    for m, n, k in PRODUCTS:
        for bm, bn, bk, warps, stages in PRODUCT_TILES:
            tiles = -(-m // bm) * -(-n // bn)
            if bm > m or bn > n or tiles > 5000 or (tiles < 32 and bm * bn > 64 * 64):
                continue
            gemm(f"p{m}x{n}x{k}_{bm}x{bn}x{bk}_w{warps}_s{stages}", m, n, k, bm, bn, bk, warps, stages, time=True)
            CASES[-1].problem = f"p{m}x{n}x{k}"


# --- Build -------------------------------------------------------------------------------


def build(args):
    os.makedirs(args.dir, exist_ok=True)
    source = os.path.join(args.dir, "kernels.mlir")
    with open(source, "w") as f:
        for case in CASES:
            f.write(case.program.text())
    for arch in args.arch.split(","):
        out = os.path.join(args.dir, arch)
        os.makedirs(out, exist_ok=True)
        r = subprocess.run([args.ptx_tool, source, "--arch", arch, "-o", out], stderr=subprocess.PIPE, text=True)
        if r.returncode:
            sys.exit(r.stderr)
        if args.verbose:
            print(r.stderr)
        remarks = sorted(set(re.findall(r"\(C75\d\d\)", r.stderr)))
        if remarks:
            # Products that wait for each other, or a register split that is ignored.
            sys.exit(f"{arch}: ptxas says {', '.join(remarks)}\n{r.stderr}")
        kernels = json.load(open(os.path.join(out, "kernels.json")))
        spilled = [k["entry"] for k in kernels if k["spills"] > 0]
        if len(kernels) != len(CASES):
            sys.exit(f"{arch}: {len(kernels)} kernels of {len(CASES)}")
        print(f"{arch}: {len(CASES)} kernels" + (f", spills in {', '.join(spilled)}" if spilled else ", no spills"))
        if spilled:
            sys.exit(1)


# --- Run ---------------------------------------------------------------------------------


class Driver:
    def __init__(self):
        self.cu = ctypes.CDLL("libcuda.so.1")

    def check(self, code, what):
        if code:
            raise RuntimeError(f"{what}: CUDA error {code}")

    def load(self, path, entry, shared):
        image = open(path, "rb").read()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cu.cuModuleLoadData(ctypes.byref(module), image), f"loading {path}")
        self.check(self.cu.cuModuleGetFunction(ctypes.byref(function), module, entry.encode()), entry)
        if shared > 48 * 1024:
            self.check(self.cu.cuFuncSetAttribute(function, 8, shared), "shared memory")
        return function

    def launcher(self, torch, function, grid, threads, shared, values):
        cells = [ctypes.c_uint64(v) for v in values]
        array = (ctypes.c_void_p * max(1, len(cells)))(*[ctypes.addressof(c) for c in cells])

        def launch():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self.check(self.cu.cuLaunchKernel(function, grid, 1, 1, threads, 1, 1, shared, stream, array, None), "launch")

        launch.keep = cells
        return launch


def milliseconds(torch, f, repeat=50, launches=10):
    """Median of the times of single runs inside a CUDA graph of many. f(i) is run i."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(3):
            f(i)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(launches):
                f(i)
        times = []
        for _ in range(repeat):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / launches)
    return sorted(times)[len(times) // 2]


def run(args):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.zeros(1, device="cuda")
    capability = torch.cuda.get_device_capability()
    arch = args.arch or f"sm_{capability[0]}{capability[1]}"
    folder = os.path.join(args.dir, arch)
    kernels = {k["entry"]: k for k in json.load(open(os.path.join(folder, "kernels.json")))}
    driver, rows, failures, peers = Driver(), [], 0, {}
    for number, case in enumerate(CASES[args.first:], args.first):
        p = case.program
        if args.only and args.only not in p.name:
            continue
        torch.manual_seed(sum(map(ord, p.name)))
        inputs = []
        for dtype, shape, make in case.inputs:
            if make:
                x = make(torch)
            elif dtype in ("i8", "i32", "i64"):
                x = torch.randint(-50, 50, shape, device="cuda")
            else:
                x = torch.randn(shape, device="cuda")
            inputs.append(x.to(getattr(torch, TORCH[dtype])))
        outputs = []
        for dtype, shape in case.outputs:
            x = torch.full(shape, 77, device="cuda").to(getattr(torch, TORCH[dtype]))
            outputs.append(x)
        k = kernels[p.name]
        row = {"name": p.name, "registers": k["registers"], "shared": k["shared"]}
        try:
            path = os.path.join(folder, p.name + (".ptx" if args.ptx else ".cubin"))
            function = driver.load(path, p.name, k["shared"])
            values = [x.data_ptr() for x in inputs + outputs] + [v for _, v, _ in p.symbols]
            launch = driver.launcher(torch, function, case.instances, k["threads"], k["shared"], values)
            launch()
            torch.cuda.synchronize()
            reference = case.reference(torch, *inputs)
            error = 0.0
            tolerance, relative = case.tolerance, False
            if isinstance(tolerance, tuple):
                relative, tolerance = True, tolerance[1]
            for got, want in zip(outputs, reference):
                got, want = got.double(), want.double()
                scale = want.abs().clamp_min(1e-3) if relative else want.abs().max().clamp_min(1e-30)
                difference = ((got - want).abs() / scale).max().item() if got.numel() else 0.0
                error = max(error, math.inf if math.isnan(difference) else difference)
            row["error"] = error
            row["ok"] = error <= tolerance
            if case.time and args.time:
                # Weights of a model are not in the cache when its next run comes to them.
                weight = inputs[1] if case.flops else None
                copies = 1
                if weight is not None and weight.numel() * weight.element_size() < 1 << 27:
                    copies = max(1, min(64, (1 << 27) // (weight.numel() * weight.element_size())))
                weights = [weight] + [weight.clone() for _ in range(copies - 1)] if weight is not None else []
                runs = [driver.launcher(torch, function, case.instances, k["threads"], k["shared"],
                                        [values[0], w.data_ptr(), *values[2:]]) for w in weights] or [launch]
                launches = max(10, copies)
                ms = milliseconds(torch, lambda i: runs[i % len(runs)](), args.repeat, launches)
                row["us"] = ms * 1e3
                if case.flops:
                    row["tflops"] = case.flops / ms / 1e9
                if case.bytes:
                    row["gbs"] = case.bytes / ms / 1e6
                if case.peer:
                    key = case.problem
                    if key is None or key not in peers:
                        peers[key] = milliseconds(
                            torch, lambda i: case.peer(torch, inputs[0], weights[i % copies], *inputs[2:]),
                            args.repeat, launches)
                    row["peer_us"], row["ratio"] = peers[key] * 1e3, peers[key] / ms
        except RuntimeError as e:
            row["ok"], row["message"] = False, str(e).splitlines()[0]
        failures += not row["ok"]
        rows.append(row)
        row["problem"] = case.problem
        if case.problem and row["ok"]:
            continue
        print(f"{'ok  ' if row['ok'] else 'FAIL'} {p.name:34} {row['registers']:4} regs {row['shared']:7} B  "
              + (f"error {row['error']:.1e}" if "error" in row else row.get("message", ""))
              + (f"  {row['us']:9.1f} us" if "us" in row else "")
              + (f" {row['tflops']:6.1f} TFLOP/s" if "tflops" in row else "")
              + (f" {row['gbs']:6.0f} GB/s" if "gbs" in row else "")
              + (f"  peer {row['peer_us']:.1f} us, {row['ratio']:.2f}x" if "ratio" in row else ""), flush=True)
        if "illegal" in row.get("message", "") or "unspecified launch" in row.get("message", ""):
            # This process has lost the device: the other cases run in another.
            command = [sys.executable, __file__, *sys.argv[1:], "--first", str(number + 1)]
            failures += subprocess.run(command).returncode != 0
            break
    for problem in dict.fromkeys(r["problem"] for r in rows if r["problem"] and "us" in r):
        of = sorted((r for r in rows if r["problem"] == problem and "us" in r), key=lambda r: r["us"])
        print(f"{problem:18} peer {of[0]['peer_us']:7.2f} us; "
              + ", ".join(f"{r['name'][len(problem) + 1:]} {r['us']:.2f}" for r in of[:6]))
    print(f"{len(rows)} kernels, {failures} failed")
    if args.json:
        json.dump(rows, open(args.json, "w"), indent=1)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    b = commands.add_parser("build")
    b.add_argument("dir")
    b.add_argument("--ptx-tool", default="build/dev/bin/charonia-ptx")
    b.add_argument("--arch", default="sm_80,sm_90,sm_90a")
    b.add_argument("--timed", action="store_true", help="also the kernels that are timed")
    b.add_argument("--problems", action="store_true", help="real problems, every tile shape")
    b.add_argument("--products", action="store_true", help="large products, every tile shape")
    b.add_argument("--random", type=int, default=0, help="so many random cases as well")
    b.add_argument("--seed", type=int, default=1)
    b.add_argument("--verbose", action="store_true")
    r = commands.add_parser("run")
    r.add_argument("dir")
    r.add_argument("--json")
    r.add_argument("--only")
    r.add_argument("--first", type=int, default=0, help="number of the first case")
    r.add_argument("--arch")
    r.add_argument("--repeat", type=int, default=50, help="timed replays")
    r.add_argument("--ptx", action="store_true", help="let the driver compile the PTX")
    r.add_argument("--time", action="store_true")
    r.add_argument("--timed", action="store_true", help="also the kernels that are timed")
    r.add_argument("--problems", action="store_true", help="real problems, every tile shape")
    r.add_argument("--products", action="store_true", help="large products, every tile shape")
    r.add_argument("--random", type=int, default=0, help="so many random cases as well")
    r.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.products:
        add_products()
    elif args.problems:
        add_problems()
    else:
        add_cases()
    if args.timed:
        add_timed()
    add_random(args.random, args.seed)
    if args.command == "build":
        build(args)
    else:
        sys.exit(1 if run(args) else 0)


if __name__ == "__main__":
    main()
