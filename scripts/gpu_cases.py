"""The cases of gpu_kernels.py: sizes, tiles and types of each kernel."""
from gpu_case_kernels import (
    CASES, argmax, attention, column_sum, conv, gather, gemm, math_op, pointwise, softmax, transposition,
)  # fmt: skip


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
