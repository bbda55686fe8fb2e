#!/usr/bin/env python3
"""The other side of `charonia compare`: ONNX Runtime, PyTorch or cuBLAS.

    peer.py --with onnxruntime|torch|cublas MODEL.onnx --input NAME=FILE.npy ...
            [--output-dir DIR] [--device cpu|cuda] [--precision fp32|tf32|fp16|bf16]
            [--threads N] [--name MODEL] [--serve]

Runs the model once, writes DIR/<number>.npy for each output, and prints one JSON line:
    {"peer": "onnxruntime 1.31.0 on the CPU, 2 threads, IO binding",
     "outputs": ["logits"], "latency_ms": {...}}
With --serve the line has no latency; then each line "time SECONDS" on standard
input is answered by a line {"latency_ms": {"min", "mean", "p50", "p90", "p99"}},
so that both sides can be measured in alternating rounds. "quit" or the end of
input ends it. Errors: exit status 1 and a message on standard error, or with --serve
a line {"error": "..."}.

--with torch builds the module of models/zoo.py that MODEL was exported from (named
by its folder or file, or by --name). --with cublas times torch.matmul on every
matrix product of the model and prints {"gemms": [{"node", "m", "n", "k", "batch",
"ms", "tflops"}]} instead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path


def fail(message: str):
    if "--serve" not in sys.argv:
        sys.exit(f"error: {message}")
    print(json.dumps(dict(error=message)), flush=True)
    sys.exit(1)


def fail_missing(missing: ModuleNotFoundError):
    fail(
        f"{sys.executable} has no module {missing.name}; name an interpreter that has it "
        "with --python or the environment variable CHARONIA_PYTHON"
    )


def counted(threads: int) -> str:
    return f"{threads} thread" + "s" * (threads != 1)


try:
    import numpy as np
except ModuleNotFoundError as missing:
    fail_missing(missing)

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "models"))


def summary(times: list[float]) -> dict[str, float]:
    ordered = sorted(t * 1e3 for t in times)
    at = lambda q: ordered[min(len(ordered) - 1, int(q * len(ordered)))]
    return dict(
        min=ordered[0], mean=statistics.fmean(ordered), p50=statistics.median(ordered),
        p90=at(0.9), p99=at(0.99), count=len(ordered),
    )  # fmt: skip


class OnnxRuntimePeer:
    """A session whose inputs and outputs stay bound to where the device has them."""

    def __init__(self, options, inputs):
        import onnxruntime
        from latency import BoundSession

        name = f"onnxruntime {onnxruntime.__version__}"
        gpu = options.device == "cuda"
        provider = "CUDAExecutionProvider" if gpu else "CPUExecutionProvider"
        if provider not in onnxruntime.get_available_providers():
            fail(f"{name} here has no {provider}; use --with torch for the GPU")
        threads = counted(options.threads) if options.threads else "its own choice of threads"
        self.title = f"{name} on the {'GPU' if gpu else 'CPU'}, {threads}, IO binding"
        try:
            self.session = BoundSession(options.model, provider, options.threads)
        except Exception as error:  # the library's classes have no common base
            fail(f"{name} cannot load {options.model}: {brief(error)}")
        self.check(options.model, inputs)
        try:
            self.session.bind(inputs)
        except Exception as error:
            fail(f"{name} cannot run {options.model} on the engine's inputs: {brief(error)}")
        self.once = self.session.once

    def check(self, model, inputs):
        takes = {i.name: i for i in self.session.session.get_inputs()}
        if set(takes) == set(inputs):
            return
        names = lambda mapping: ", ".join(map(repr, mapping)) or "nothing"
        fail(
            f"the engine was not compiled from {model}: the model takes {names(takes)}, "
            f"the engine {names(inputs)}"
        )

    def outputs(self):
        return self.session.outputs()


def brief(error: Exception) -> str:
    """On one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


class TorchPeer:
    """Eager PyTorch, not torch.compile; on the GPU captured as a CUDA graph."""

    def __init__(self, options, inputs):
        try:
            import torch
            import zoo
        except ImportError as error:
            fail(f"--with torch needs PyTorch, torchvision and transformers: {error}")
        self.torch = torch
        spec = find_spec(zoo, options)
        self.names = list(spec.outputs)
        if options.threads:
            torch.set_num_threads(options.threads)
        torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
        dtype = dict(fp16=torch.float16, bf16=torch.bfloat16).get(options.precision, torch.float32)
        self.device = options.device
        self.module = zoo.build(spec).to(options.device, dtype)
        order = list(spec.inputs(1, 2, np.random.RandomState(0)))
        if missing := [name for name in order if name not in inputs]:
            fail(f"no --input for {', '.join(missing)}; {spec.name} takes {', '.join(order)}")
        tensors = [torch.from_numpy(inputs[name]).to(options.device) for name in order]
        self.tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
        self.graph = None
        name = f"torch {torch.__version__}, eager"
        if options.device == "cuda":
            from latency import TorchGraph

            device = torch.cuda.get_device_name()
            self.title = f"{name}, captured as a CUDA graph, {options.precision} on {device}"
            self.graph = TorchGraph(self.module, self.tensors)
        else:
            self.title = f"{name} on the CPU, {counted(torch.get_num_threads())}"

    def outputs(self):
        with self.torch.no_grad():
            values = self.module(*self.tensors)
        values = values if isinstance(values, tuple) else (values,)
        return {n: v.float().cpu().numpy() for n, v in zip(self.names, values)}

    def once(self) -> float:
        if self.graph:
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.graph.graph.replay()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) / 1e3
        start = time.perf_counter()
        with self.torch.no_grad():
            self.module(*self.tensors)
        return time.perf_counter() - start


def find_spec(zoo, options):
    """The module that a model file was exported from."""
    path = options.model.resolve()
    names = [options.name] if options.name else [path.parent.name, path.stem]
    table = zoo.COMPACT if path.parent.name == "compact" else zoo.FULL
    for name in names:
        if name in table:
            return table[name]
    fail(
        f"{path} is not an export of models/export.py; --name says which of "
        f"{', '.join(zoo.FULL)} it is"
    )


def operand_shapes(options, inputs) -> dict[str, tuple[int, ...]]:
    """Shapes of what matrix products read and write, from a run of ONNX Runtime.

    Shape inference of the onnx package gives up on many dynamic models.
    """
    import onnx
    import onnxruntime

    model = onnx.load(options.model, load_external_data=False)
    shapes = {t.name: tuple(t.dims) for t in model.graph.initializer}
    shapes |= {name: value.shape for name, value in inputs.items()}
    wanted = {
        name for node in model.graph.node if node.op_type in ("MatMul", "Gemm", "Conv")
        for name in (*node.input[:2], *node.output)
    } - set(shapes)  # fmt: skip
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(wanted))
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.add_session_config_entry(
        "session.model_external_initializers_file_folder_path",
        str(options.model.resolve().parent),
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    for name, value in zip(sorted(wanted), session.run(None, inputs)):
        shapes[name] = value.shape
    return shapes


def matrix_products(options, inputs) -> list[dict]:
    """MatMul, Gemm and Conv nodes as matrix products, at these input shapes."""
    import onnx

    shapes = operand_shapes(options, inputs)
    found = []
    for node in onnx.load(options.model, load_external_data=False).graph.node:
        if node.op_type not in ("MatMul", "Gemm", "Conv"):
            continue
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        a, b, out = (shapes[n] for n in (*node.input[:2], node.output[0]))
        record = dict(node=node.name or node.output[0], batch=1)
        if node.op_type == "MatMul" and len(a) >= 2 and len(b) >= 2:
            batch = int(np.prod(out[:-2])) if len(b) > 2 else 1
            rows = a[-2] if len(b) > 2 else int(np.prod(a[:-1]))
            record.update(m=rows, n=b[-1], k=a[-1], batch=batch)
        elif node.op_type == "Gemm":
            m, k = reversed(a) if attributes.get("transA") else a
            record.update(m=m, n=b[0 if attributes.get("transB") else 1], k=k)
        elif node.op_type == "Conv" and attributes.get("group", 1) == 1:
            pixels = out[0] * int(np.prod(out[2:]))
            record.update(m=pixels, n=b[0], k=int(np.prod(b[1:])))
        else:
            continue  # a vector product or a depthwise convolution
        found.append(record)
    return found


def time_products(options, inputs) -> list[dict]:
    try:
        import torch
    except ImportError as error:
        fail(f"--with cublas needs PyTorch: {error}")
    from latency import TorchGraph

    if options.device != "cuda":
        fail("--with cublas needs --device cuda")
    torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    dtype = dict(fp16=torch.float16, bf16=torch.bfloat16).get(options.precision, torch.float32)
    known: dict[tuple, float] = {}
    products = matrix_products(options, inputs)
    for record in products:
        key = tuple(record[name] for name in ("batch", "m", "n", "k"))
        if key not in known:
            batch, m, n, k = key
            left = torch.randn(batch, m, k, device="cuda", dtype=dtype)
            right = torch.randn(batch, n, k, device="cuda", dtype=dtype)
            run = lambda a, b: torch.matmul(a, b.transpose(1, 2))
            known[key] = TorchGraph(run, [left, right]).latency(0.05)
        record["ms"] = known[key] * 1e3
        record["tflops"] = 2e-12 * np.prod(key, dtype=float) / known[key]
    return products


def measure(peer, seconds: float) -> dict[str, float]:
    for period in (seconds / 5, seconds):
        times: list[float] = []
        end = time.perf_counter() + period
        while time.perf_counter() < end or len(times) < 3:
            times.append(peer.once())
    return summary(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("model", type=Path)
    add("--with", dest="peer", required=True, choices=("onnxruntime", "torch", "cublas"))
    add("--input", action="append", default=[], metavar="NAME=FILE")
    add("--output-dir", type=Path)
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--precision", choices=("fp32", "tf32", "fp16", "bf16"), default="fp32")
    add("--threads", type=int, default=0)
    add("--duration", type=float, default=1.0)
    add("--name")
    add("--serve", action="store_true")
    options = parser.parse_args()
    inputs = {}
    for text in options.input:
        name, sep, path = text.rpartition("=")
        if not sep:
            fail(f"--input {text!r} is not NAME=FILE")
        inputs[name] = np.load(path)
    if options.peer == "cublas":
        import torch

        products = time_products(options, inputs)
        print(json.dumps(dict(peer=f"cuBLAS by torch {torch.__version__}", gemms=products)), flush=True)
        return 0
    peer = (OnnxRuntimePeer if options.peer == "onnxruntime" else TorchPeer)(options, inputs)
    values = peer.outputs()
    if options.output_dir:
        options.output_dir.mkdir(parents=True, exist_ok=True)
        for number, value in enumerate(values.values()):
            np.save(options.output_dir / f"{number}.npy", value)
    first = dict(peer=peer.title, outputs=list(values))
    if not options.serve:
        first["latency_ms"] = measure(peer, options.duration)
    print(json.dumps(first), flush=True)
    for line in sys.stdin if options.serve else ():
        words = line.split()
        if words[:1] == ["time"] and len(words) == 2:
            print(json.dumps(dict(latency_ms=measure(peer, float(words[1])))), flush=True)
        elif words == ["quit"]:
            break
        elif words:
            fail(f"unknown request {line.strip()!r}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        fail_missing(missing)
    except (KeyError, ValueError, RuntimeError, OSError) as error:
        fail(f"{type(error).__name__}: {brief(error)}")
