"""Tile kernels with data to run them on and the same mathematics in PyTorch: each function adds a
case to CASES. Which sizes and tiles there are is in gpu_cases.py."""
import math

from tile_text import Program, affine

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
