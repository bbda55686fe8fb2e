#!/usr/bin/env python3
"""Tile kernels on a GPU: right on random data at awkward sizes, and how fast.

    gpu_kernels.py build DIR [--ptx-tool build/dev/bin/charonia-ptx] [--arch sm_80,sm_90,sm_90a]
    gpu_kernels.py run DIR [--json FILE] [--only NAME] [--time]

`build` needs no GPU: it writes the tile programs of gpu_cases.py and compiles them.
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

from gpu_case_kernels import CASES, TORCH
from gpu_cases import add_cases, add_problems, add_products, add_random, add_timed

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


def make_tensors(torch, case):
    """Inputs, the same in every run, and outputs that hold something else than results."""
    torch.manual_seed(sum(map(ord, case.program.name)))
    inputs = []
    for dtype, shape, make in case.inputs:
        if make:
            x = make(torch)
        elif dtype in ("i8", "i32", "i64"):
            x = torch.randint(-50, 50, shape, device="cuda")
        else:
            x = torch.randn(shape, device="cuda")
        inputs.append(x.to(getattr(torch, TORCH[dtype])))
    outputs = [torch.full(shape, 77, device="cuda").to(getattr(torch, TORCH[dtype])) for dtype, shape in case.outputs]
    return inputs, outputs


def check(torch, case, inputs, outputs):
    """The largest error, relative as the case says, and whether it is within the case's bound."""
    tolerance, relative, error = case.tolerance, False, 0.0
    if isinstance(tolerance, tuple):
        relative, tolerance = True, tolerance[1]
    for got, want in zip(outputs, case.reference(torch, *inputs)):
        got, want = got.double(), want.double()
        scale = want.abs().clamp_min(1e-3) if relative else want.abs().max().clamp_min(1e-30)
        difference = ((got - want).abs() / scale).max().item() if got.numel() else 0.0
        error = max(error, math.inf if math.isnan(difference) else difference)
    return error, error <= tolerance


def measure(torch, case, inputs, launcher, peers, repeat):
    """Times of the kernel and of its peer. launcher(weight): a launch with that weight."""
    # Weights of a model are not in the cache when its next run comes to them.
    weight = inputs[1] if case.flops else None
    copies = 1
    if weight is not None and weight.numel() * weight.element_size() < 1 << 27:
        copies = max(1, min(64, (1 << 27) // (weight.numel() * weight.element_size())))
    weights = [weight] + [weight.clone() for _ in range(copies - 1)] if weight is not None else []
    runs = [launcher(w) for w in weights] or [launcher(None)]
    launches = max(10, copies)
    ms = milliseconds(torch, lambda i: runs[i % len(runs)](), repeat, launches)
    row = {"us": ms * 1e3}
    if case.flops:
        row["tflops"] = case.flops / ms / 1e9
    if case.bytes:
        row["gbs"] = case.bytes / ms / 1e6
    if case.peer:
        key = case.problem
        if key is None or key not in peers:
            peers[key] = milliseconds(
                torch, lambda i: case.peer(torch, inputs[0], weights[i % copies], *inputs[2:]), repeat, launches)
        row["peer_us"], row["ratio"] = peers[key] * 1e3, peers[key] / ms
    return row


def run_case(torch, driver, case, kernel, folder, peers, args):
    p = case.program
    row = {"name": p.name, "registers": kernel["registers"], "shared": kernel["shared"], "problem": case.problem}
    inputs, outputs = make_tensors(torch, case)
    try:
        path = os.path.join(folder, p.name + (".ptx" if args.ptx else ".cubin"))
        function = driver.load(path, p.name, kernel["shared"])
        values = [x.data_ptr() for x in inputs + outputs] + [v for _, v, _ in p.symbols]

        def launcher(weight):
            given = values if weight is None else [values[0], weight.data_ptr(), *values[2:]]
            return driver.launcher(torch, function, case.instances, kernel["threads"], kernel["shared"], given)

        launcher(None)()
        torch.cuda.synchronize()
        row["error"], row["ok"] = check(torch, case, inputs, outputs)
        if case.time and args.time:
            row |= measure(torch, case, inputs, launcher, peers, args.repeat)
    except RuntimeError as e:
        row["ok"], row["message"] = False, str(e).splitlines()[0]
    return row


def describe(row):
    return (f"{'ok  ' if row['ok'] else 'FAIL'} {row['name']:34} {row['registers']:4} regs {row['shared']:7} B  "
            + (f"error {row['error']:.1e}" if "error" in row else row.get("message", ""))
            + (f"  {row['us']:9.1f} us" if "us" in row else "")
            + (f" {row['tflops']:6.1f} TFLOP/s" if "tflops" in row else "")
            + (f" {row['gbs']:6.0f} GB/s" if "gbs" in row else "")
            + (f"  peer {row['peer_us']:.1f} us, {row['ratio']:.2f}x" if "ratio" in row else ""))


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
        name = case.program.name
        if args.only and args.only not in name:
            continue
        row = run_case(torch, driver, case, kernels[name], folder, peers, args)
        failures += not row["ok"]
        rows.append(row)
        if case.problem and row["ok"]:
            continue
        print(describe(row), flush=True)
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

