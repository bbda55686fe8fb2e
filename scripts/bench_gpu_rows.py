#!/usr/bin/env python3
"""Products, convolutions, attention and memory-bound kernels beside cuBLAS, cuDNN and eager PyTorch.

    bench_gpu_rows.py [FAMILY...] [--only TEXT] [--rounds 3] [--seconds 0.1] [--json out.json]

FAMILY: gemm, gelu (bias + gelu fused), types (bf16, tf32, fp8), float32 (products and attention), conv
(+ bias + relu), attention, memory, recurrent (LSTM of so many steps that one is repeated), packed (weights of 4 and 8
bits; --compiled-peers adds torch.compile); all by default. An engine holds a row several times, each on inputs of its own,
and so does the peer's CUDA graph; both run in alternating rounds, times are medians and of one.
Every result is compared with PyTorch's in fp32. A ratio above 1 means that charonia is faster;
"of copy" is the share of the speed at which a kernel that negates 1 GiB runs in the same run.
Kernels run one after another, as the peer's do; with --waves those of the copies, which need nothing of
one another, run side by side as in a model with branches. Engines are compiled first, side by side; with --folder they are kept, and taken from there by
another run, so that a machine without a GPU can compile them (--compile-only). Needs PyTorch and an
NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import harness
import numpy as np
import onnx
from latency import TorchGraph, geomean
from onnx import TensorProto, helper, numpy_helper
from packed_rows import Packed, packed_rows

KINDS = {
    "fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "tf32": TensorProto.FLOAT,
    "fp32": TensorProto.FLOAT, "fp8": TensorProto.FLOAT8E4M3FN,
}  # fmt: skip
# Of results where they have another type than what they are made of, and the compiler's precision.
RESULTS = {"fp8": "bf16"}
COMPILED = {"fp8": "fp32"}


@dataclass
class Row:
    family: str
    name: str
    # Shapes of a copy's inputs, and of weights that all copies share.
    inputs: list[tuple[int, ...]]
    # nodes(inputs, output, prefix): the nodes from the named inputs to the output.
    nodes: Callable[[list[str], str, str], list]
    # peers(torch): functions of the inputs and the weights; the best of them counts.
    peers: Callable
    # The same exactly, on tensors of float32.
    exact: Callable
    output: tuple[int, ...]
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict)
    precision: str = "fp16"
    flops: float = 0
    bytes: float = 0
    # Standard deviation of each input, 1 by default.
    scales: dict[int, float] = field(default_factory=dict)
    # Weights of each copy's own.
    packed: Packed | None = None

    def copies(self) -> int:
        if self.packed:
            return self.packed.copies()
        micros = 3 + max(self.flops / 600e6, self.bytes / 4e6)
        held = max(1, self.bytes / 500e6)
        return int(max(2, min(24, 240 / micros, 24 / held)))


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def elements(shape) -> int:
    return int(np.prod(shape))


def product(m, n, k, gelu=False, precision="fp16") -> Row:
    width = 4 if precision in ("tf32", "fp32") else 2

    def nodes(i, o, p):
        if not gelu:
            return [node("Gemm", i, [o], transB=1)]
        return [node("Gemm", i, [p + "t"], transB=1), node("Gelu", [p + "t"], [o])]

    def run(torch, a, w, *b):
        f = torch.nn.functional
        return f.gelu(f.linear(a, w, *b)) if gelu else torch.matmul(a, w.t())

    family = "gelu" if gelu else dict(fp16="gemm", fp32="float32").get(precision, "types")
    return Row(
        family, f"{m}x{n}x{k}" + (f" {precision}" if precision != "fp16" else ""),
        [(m, k), (n, k)] + [(n,)] * gelu, nodes, lambda torch: [lambda *x: run(torch, *x)], run,
        (m, n), precision=precision, flops=2.0 * m * n * k, bytes=width * (m * k + n * k + m * n),
        scales={1: k**-0.5},
    )  # fmt: skip


def scaled_product(m, n, k, fast) -> Row:
    """Of e4m3 with a scale of each operand, as a layer of a quantized model; `fast`: beside the
    peer's sums of fewer bits. Ours are added up in float32 every 128 terms, as its others are."""
    scale = 0.5

    def nodes(i, o, p):
        names = [p + part for part in ("scale", "a", "b", "t", "y")]
        value = numpy_helper.from_array(np.float32(scale))
        return [
            node("Constant", [], names[:1], value=value),
            node("DequantizeLinear", [i[0], names[0]], [names[1]]),
            node("DequantizeLinear", [i[1], names[0]], [names[2]]),
            node("Transpose", [names[2]], [names[3]], perm=[1, 0]),
            node("MatMul", [names[1], names[3]], [names[4]]),
            node("Cast", [names[4]], [o], to=TensorProto.BFLOAT16),
        ]

    def peer(torch):
        one = torch.full((), scale, device="cuda")
        return lambda a, w: torch._scaled_mm(
            a, w.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast
        )

    return Row(
        "types", f"{m}x{n}x{k} fp8" + " fast" * fast, [(m, k), (n, k)], nodes, lambda torch: [peer(torch)],
        lambda torch, a, w: torch.matmul(a, w.t()) * scale**2, (m, n), precision="fp8",
        flops=2.0 * m * n * k, bytes=m * k + n * k + 2 * m * n,
    )  # fmt: skip


def convolution(n, c, h, k, r, stride) -> Row:
    pad, out = r // 2, (h + 2 * (r // 2) - r) // stride + 1

    def nodes(i, o, p):
        # The engine's images are channels-last as the peer's are.
        return [
            node("Transpose", [i[0]], [p + "x"], perm=[0, 3, 1, 2]),
            node("Conv", [p + "x", "w", "b"], [p + "y"], strides=[stride] * 2, pads=[pad] * 4),
            node("Relu", [p + "y"], [p + "z"]),
            node("Transpose", [p + "z"], [o], perm=[0, 2, 3, 1]),
        ]

    def exact(torch, x, w, b):
        y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w, b, stride, pad)
        return y.relu().permute(0, 2, 3, 1)

    def peers(torch):
        last = lambda t: t.contiguous(memory_format=torch.channels_last)
        held: dict = {}

        def filters(w):
            if id(w) not in held:
                held[id(w)] = last(w)
            return held[id(w)]

        def plain(x, w, b):
            return torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), filters(w), None, stride, pad)

        def fused(x, w, b):
            x = x.permute(0, 3, 1, 2)
            return torch.cudnn_convolution_relu(x, filters(w), b, [stride] * 2, [pad] * 2, [1, 1], 1)

        return [plain, fused]

    return Row(
        "conv", f"N{n} C{c} H{h} K{k} R{r} s{stride}", [(n, h, h, c)], nodes, peers, exact,
        (n, out, out, k), dict(w=(k, c, r, r), b=(k,)), flops=2.0 * n * out * out * k * c * r * r,
        bytes=2 * (n * h * h * c + n * out * out * k + k * c * r * r),
    )  # fmt: skip


def attention(b, h, s, d, causal, precision="fp16") -> Row:
    half = precision == "fp16"

    def run(torch, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def peers(torch):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def cudnn(*x):
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return run(torch, *x)

        return [cudnn] if half else [lambda *x: run(torch, *x)]

    return Row(
        "attention" if half else "float32",
        f"B{b} H{h} S{s} D{d}" + " causal" * causal + f" {precision}" * (not half), [(b, h, s, d)] * 3,
        lambda i, o, p: [node("Attention", i, [o], is_causal=int(causal))], peers, run,
        (b, h, s, d), precision=precision, flops=4.0 * b * h * s * s * d / (1 + causal),
        bytes=(8 if half else 16) * b * h * s * d,
    )  # fmt: skip


def memory(kind, rows, columns) -> Row:
    def nodes(i, o, p):
        if kind == "softmax":
            return [node("Softmax", i, [o], axis=-1)]
        if kind == "add+layernorm":
            return [node("Add", i, [p + "s"]), node("LayerNormalization", [p + "s", "g", "b"], [o], axis=-1)]
        return [node("Gelu", i[:1], [p + "s"], approximate="tanh"), node("Mul", [p + "s", i[1]], [o])]

    def run(torch, *x):
        f = torch.nn.functional
        if kind == "softmax":
            return x[0].softmax(-1)
        if kind == "add+layernorm":
            return f.layer_norm(x[0] + x[1], (columns,), x[2], x[3], 1e-5)
        return f.gelu(x[0], approximate="tanh") * x[1]

    count = 1 if kind == "softmax" else 2
    weights = dict(g=(columns,), b=(columns,)) if kind == "add+layernorm" else {}
    return Row(
        "memory", f"{kind} {rows}x{columns}", [(rows, columns)] * count, nodes,
        lambda torch: [lambda *x: run(torch, *x)], run, (rows, columns), weights,
        bytes=2.0 * rows * columns * (count + 1),
    )  # fmt: skip


def lstm(steps, batch, size, hidden, precision="fp16") -> Row:
    kept = {}

    def run(torch, x, w, r, b):
        if w.data_ptr() not in kept:
            # ONNX has the gates in the order i, o, f, c, cuDNN in the order i, f, c, o.
            order = lambda v: v.reshape(4, hidden, -1)[[0, 2, 3, 1]].reshape(4 * hidden, -1)
            biases = [order(half)[:, 0].contiguous() for half in b[0].chunk(2)]
            kept[w.data_ptr()] = w, [order(w[0]), order(r[0]), *biases]
        first = torch.zeros(1, batch, hidden, device=x.device, dtype=x.dtype)
        weights = kept[w.data_ptr()][1]
        return torch._VF.lstm(x, (first, first), weights, True, 1, 0.0, False, False, False)[0].unsqueeze(1)

    gates = 4 * hidden
    return Row(
        "recurrent", f"LSTM {steps} steps b{batch} {size} to {hidden}" + f" {precision}" * (precision != "fp16"),
        [(steps, batch, size)], lambda i, o, p: [node("LSTM", [*i, "w", "r", "b"], [o], hidden_size=hidden)],
        lambda torch: [lambda *x: run(torch, *x)], lambda torch, *x: run(torch, *x),
        (steps, 1, batch, hidden), dict(w=(1, gates, size), r=(1, gates, hidden), b=(1, 2 * gates)), precision,
        flops=2.0 * steps * batch * gates * (size + hidden), bytes=2.0 * steps * gates * hidden,
    )  # fmt: skip


def packed(p: Packed) -> Row:
    return Row(
        "packed", f"{p.m}x{p.k}x{p.n} {p.kind}", [(p.m, p.k)], p.nodes, lambda torch: [], p.exact, (p.m, p.n),
        flops=2.0 * p.m * p.k * p.n, bytes=p.bytes, packed=p,
    )  # fmt: skip


PRODUCTS = """512x512x512 1024x1024x1024 2048x2048x2048 4096x4096x4096 8192x8192x8192 128x768x768
128x3072x768 128x768x3072 4096x768x768 4096x3072x768 4096x768x3072 1x4096x4096 1x11008x4096
16x4096x4096 16x14336x4096 64x4096x14336 512x4096x4096 2048x11008x4096 2048x4096x11008
8192x1024x8192 3136x64x576 12544x64x147 784x512x4608 4097x1000x2048"""
CONVOLUTIONS = """1,3,224,64,7,2 1,64,56,64,3,1 1,256,14,256,3,1 1,512,7,2048,1,1 32,3,224,64,7,2
32,64,56,64,3,1 32,128,28,128,3,1 32,256,14,256,3,1 32,512,7,512,3,1 32,256,56,64,1,1
32,1024,14,256,1,1 32,256,56,512,1,2 1,320,64,320,3,1 1,1280,16,1280,3,1"""
ATTENTIONS = """1,12,128,64 32,12,128,64 4,12,512,64 1,32,2048,64 1,32,4096,128 4,16,1024,128
2,32,8192,128"""
FLOAT_PRODUCTS = """512x512x512 1024x1024x1024 2048x2048x2048 4096x4096x4096 128x768x768 128x3072x768
4096x768x3072 784x512x4608 1x4096x4096 16x4096x4096 4097x1000x2048"""
RECURRENT = "600,1,256,256 600,16,256,512 600,64,1024,1024 1000,1,80,1024"
FLOAT_ATTENTIONS = "1,12,128,64 4,12,512,64 1,32,2048,64 1,8,512,256 1,1,4096,512"
MEMORY = "8x128256 32x50257 4096x768 4096x4096 8192x8192 32768x1024 1024x50257 1024x50264 2048x32768"


def numbers(text: str, separator: str) -> list[list[int]]:
    return [[int(x) for x in item.split(separator)] for item in text.split()]


def all_rows() -> list[Row]:
    rows = [product(*p) for p in numbers(PRODUCTS, "x")]
    rows += [product(*p, gelu=True) for p in numbers(PRODUCTS, "x")]
    large = numbers("4096x4096x4096 8192x8192x8192 16x14336x4096", "x")
    rows += [product(*p, precision=kind) for kind in ("bf16", "tf32") for p in large]
    rows += [scaled_product(*p, fast) for p in large for fast in (False, True)]
    rows += [convolution(*c) for c in numbers(CONVOLUTIONS, ",")]
    rows += [attention(*a, causal) for a in numbers(ATTENTIONS, ",") for causal in (False, True)]
    rows += [product(*p, precision="fp32") for p in numbers(FLOAT_PRODUCTS, "x")]
    rows += [attention(*a, False, "fp32") for a in numbers(FLOAT_ATTENTIONS, ",")]
    rows += [lstm(*l) for l in numbers(RECURRENT, ",")]
    rows += [lstm(600, 16, 256, 512, "fp32")]
    kinds = ("softmax", "add+layernorm", "gelu-tanh(x)*r")
    rows += [memory(kind, *size) for size in numbers(MEMORY, "x") for kind in kinds]
    return rows + [packed(p) for p in packed_rows()]


def element_type(precision: str):
    if precision in ("bf16", "fp8"):
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16 if precision == "bf16" else ml_dtypes.float8_e4m3fn)
    return np.dtype(np.float16 if precision == "fp16" else np.float32)


def model(row: Row) -> onnx.ModelProto:
    kind, info = KINDS[row.precision], helper.make_tensor_value_info
    result = KINDS[RESULTS.get(row.precision, row.precision)]
    inputs, outputs, nodes, own = [], [], [], []
    for copy in range(row.copies()):
        names = [f"x{copy}_{i}" for i in range(len(row.inputs))]
        inputs += [info(n, kind, shape) for n, shape in zip(names, row.inputs)]
        outputs.append(info(f"y{copy}", result, row.output))
        nodes += row.nodes(names, f"y{copy}", f"t{copy}_")
        own += row.packed.initializers(copy, f"t{copy}_") if row.packed else []
    weights = [numpy_helper.from_array(v, n) for n, v in weight_arrays(row).items()]
    graph = helper.make_graph(nodes, "row", inputs, outputs, weights + own)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


def weight_arrays(row: Row) -> dict[str, np.ndarray]:
    rng, dtype = np.random.default_rng(1), element_type(row.precision)
    return {
        name: (rng.standard_normal(shape, np.float32) * elements(shape[1:]) ** -0.5).astype(dtype)
        for name, shape in row.weights.items()
    }


def compile_row(row: Row, folder: Path, options) -> str:
    """The error, if it fails. An engine that is there is kept."""
    if (folder / "row.engine").exists():
        return ""
    try:
        onnx.save(model(row), folder / "model.onnx")
        harness.compile_model(
            folder / "model.onnx", folder / "row.engine", target=options.target,
            precision=COMPILED.get(row.precision, row.precision), extra=[] if options.waves else ["--no-waves"],
        )  # fmt: skip
    except harness.CharoniaError as error:
        return str(error)
    return ""


def measure(row: Row, folder: Path, options) -> dict:
    import torch

    dtypes = dict(fp16=torch.float16, bf16=torch.bfloat16, fp8=torch.float8_e4m3fn)
    dtype = dtypes.get(row.precision, torch.float32)
    result_type = element_type(RESULTS.get(row.precision, row.precision))
    generator = torch.Generator("cuda").manual_seed(2)
    draw = lambda shape, scale: (
        torch.randn(shape, generator=generator, device="cuda") * scale
    ).to(dtype)
    copies = row.copies()
    inputs = [[draw(s, row.scales.get(i, 1)) for i, s in enumerate(row.inputs)] for _ in range(copies)]
    as_tensor = lambda v: torch.from_numpy(v.astype(np.float32)).cuda().to(dtype)
    weights = [as_tensor(v) for v in weight_arrays(row).values()]
    arguments, arrays = [], {}
    for copy, values in enumerate(inputs):
        for i, value in enumerate(values):
            array = value.float().cpu().numpy().astype(element_type(row.precision))
            arrays[f"x{copy}_{i}"] = array
            harness.save_array(folder / f"x{copy}_{i}.npy", array)
            arguments += ["--input", f"x{copy}_{i}={folder}/x{copy}_{i}.npy"]
    engine, names = folder / "row.engine", [f"y{c}" for c in range(copies)]
    found = harness.run_engine(engine, arrays, names, folder / "run", device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    errors = []
    if row.packed:
        inputs = [[*values, *row.packed.hold(torch, copy)] for copy, values in enumerate(inputs)]
    for values, got in zip(inputs, found):
        as_exact = lambda v: v.float() if v.is_floating_point() else v
        want = row.exact(torch, *map(as_exact, [*values, *weights]))
        got = harness.as_dtype(got, result_type).astype(np.float32)
        difference = (torch.from_numpy(got).cuda() - want).abs().max() / want.abs().max()
        errors.append(difference.nan_to_num(float("inf")).item())
    torch.backends.cuda.matmul.allow_tf32 = row.precision == "tf32"
    named = row.packed.peers(torch, options.compiled_peers) if row.packed else {}
    for i, peer in enumerate(row.peers(torch)):
        named[str(i)] = peer
    peers = {}
    for name, peer in named.items():
        try:
            graph = lambda peer=peer: [peer(*values, *weights) for values in inputs]
            peers[name] = TorchGraph(graph, [])
        except (RuntimeError, NotImplementedError) as error:
            if not row.packed:
                raise
            print(f"{row.name}: no {name} here: {str(error).splitlines()[0][:120]}", flush=True)
    ours, theirs, each = [], [], {name: [] for name in peers}
    for _ in range(options.rounds):
        report = folder / "bench.json"
        result = harness.invoke(
            "bench", engine, "--device", "cuda", "--duration", str(options.seconds), "--no-profile",
            "--json", report, *arguments,
        )  # fmt: skip
        if result.kind != "ok":
            raise harness.CharoniaError("bench", result)
        ours.append(json.loads(report.read_text())["latency_ms"]["p50"] / 1e3)
        for name, peer in peers.items():
            each[name].append(peer.latency(options.seconds))
        theirs.append(min(times[-1] for times in each.values()))
    a, b = (statistics.median(side) / copies for side in (ours, theirs))
    return dict(
        family=row.family, name=row.name, copies=copies, charonia_us=a * 1e6, torch_us=b * 1e6,
        ratio=b / a, error=max(errors), tflops=row.flops / a / 1e12, gbs=row.bytes / a / 1e9,
        peers_us={name: statistics.median(times) / copies * 1e6 for name, times in each.items()},
    )  # fmt: skip


def copy_speed() -> float:
    """Bytes read and written in a second, by a kernel (a copy would be the copy engine's)."""
    import torch

    x, y = (torch.empty(1 << 28, device="cuda") for _ in range(2))
    return 2 * x.nbytes / TorchGraph(lambda: torch.neg(x, out=y), []).latency(0.2)


def print_family(records: list[dict], speed: float) -> None:
    rows = [
        [r["name"], r["copies"], f"{r['charonia_us']:.2f}", f"{r['torch_us']:.2f}", f"{r['ratio']:.2f}",
         f"{r['tflops']:.0f}", f"{r['gbs'] * 1e9 / speed:.2f}", f"{r['error']:.1e}"]
        for r in records
    ]  # fmt: skip
    header = ["row", "copies", "charonia us", "peer us", "ratio", "TFLOP/s", "of copy", "error"]
    ratios = [r["ratio"] for r in records]
    print(f"\n{records[0]['family']}: geometric mean {geomean(ratios):.2f}, least {min(ratios):.2f}")
    print(harness.table(header, rows), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("families", nargs="*", metavar="FAMILY")
    add("--only", action="append", default=[], help="rows whose name contains one of these")
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=0.1)
    add("--target", default="sm_90a")
    add("--folder", type=Path, help="where models and engines are kept; else they are removed")
    add("--compile-only", action="store_true")
    add("--waves", action="store_true", help="copies of a row side by side")
    add("--compiled-peers", action="store_true", help="torch.compile beside packed weights, too")
    add("--json", type=Path)
    options = parser.parse_args()
    rows = [
        row for row in all_rows()
        if (not options.families or row.family in options.families)
        and (not options.only or any(text in row.name for text in options.only))
    ]  # fmt: skip
    if not rows:
        parser.error("no such rows")
    with tempfile.TemporaryDirectory(prefix="charonia-rows-") as temporary:
        base = options.folder or Path(temporary)
        folders = [base / re.sub(r"[^a-zA-Z0-9]+", "_", f"{r.family} {r.name}") for r in rows]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool:
            failures = list(pool.map(lambda x: compile_row(*x, options), zip(rows, folders)))
        if options.compile_only:
            print("\n".join(failure for failure in failures if failure))
            return int(any(failures))
        import torch

        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        speed = copy_speed()
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
              f"copy {speed / 1e9:.0f} GB/s, medians of {options.rounds} rounds", flush=True)
        records: list[dict] = []
        for row, folder, failure in zip(rows, folders, failures):
            try:
                if failure:
                    raise RuntimeError(failure)
                records.append(record := measure(row, folder, options))
                print(f"{row.family} {row.name}: {record['charonia_us']:.2f} {record['torch_us']:.2f} us "
                      f"{record['ratio']:.2f}x error {record['error']:.1e}"
                      + "".join(f" {n} {t:.2f}" for n, t in record["peers_us"].items() if row.packed), flush=True)
            except (RuntimeError, harness.CharoniaError) as error:
                print(f"{row.family} {row.name}: {error}", flush=True)
            for path in folder.glob("**/*.npy"):
                path.unlink()
            torch.cuda.empty_cache()
    for family in dict.fromkeys(r["family"] for r in records):
        print_family([r for r in records if r["family"] == family], speed)
    harness.write_json(options.json, records)
    return int(len(records) != len(rows))


if __name__ == "__main__":
    sys.exit(main())
