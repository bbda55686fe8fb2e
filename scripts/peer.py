#!/usr/bin/env python3
"""The other side of `charonia compare`: ONNX Runtime, PyTorch, TensorFlow or cuBLAS.

    peer.py --with onnxruntime|torch|tensorflow|cublas MODEL --input NAME=FILE.npy ...
            [--output-dir DIR] [--device cpu|cuda] [--precision fp32|tf32|fp16|bf16]
            [--threads N] [--name MODEL] [--program NAME] [--peer-mode eager|compile] [--serve]

Runs the model once, writes DIR/<number>.npy for each output, and prints one JSON line:
    {"peer": "onnxruntime 1.31.0 on the CPU, 2 threads, IO binding",
     "outputs": ["logits"], "latency_ms": {...}}
With --serve the line has no latency; then each line "time SECONDS" on standard
input is answered by a line {"latency_ms": {"min", "mean", "p50", "p90", "p99"}},
so that both sides can be measured in alternating rounds. "quit" or the end of
input ends it. Errors: exit status 1 and a message on standard error, or with --serve
a line {"error": "..."}.

--with torch runs the exported program where MODEL is a .pt2 file; else it builds the module
of models/zoo.py that MODEL was exported from (named by its folder or file, or by --name). --with cublas times torch.matmul on every
matrix product of the model and prints {"gemms": [{"node", "m", "n", "k", "batch",
"ms", "tflops"}]} instead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import zipfile
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


def fail_missing_library(option: str, libraries: str, error: ImportError):
    fail(
        f"{option} needs {libraries}, which {sys.executable} does not have ({error}); name an interpreter "
        "that has it with --python or the environment variable CHARONIA_PYTHON"
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
        if zipfile.is_zipfile(options.model):
            fail(f"{name} does not run {options.model}, a program of PyTorch: use --with torch")
        if options.model.suffix in (".pb", ".pbtxt"):
            fail(f"{name} does not run {options.model}, a model of TensorFlow: use --with tensorflow")
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
        check_names(options.model, {i.name for i in self.session.session.get_inputs()}, inputs)
        try:
            self.session.bind(inputs)
        except Exception as error:
            fail(f"{name} cannot run {options.model} on the engine's inputs: {brief(error)}")
        self.once = self.session.once

    def outputs(self):
        return self.session.outputs()


def brief(error: Exception) -> str:
    """On one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def tensor_of(torch, value):
    """Of bfloat16 NumPy without its extensions has the bytes alone: the engine writes no other type that it lacks."""
    if value.dtype.kind == "V" and value.dtype.itemsize == 2:
        return torch.from_numpy(value.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(value)


class TorchPeer:
    """Eager PyTorch, on the GPU captured as a CUDA graph; or torch.compile.

    The module is the exported program itself where the model is a .pt2 file, else that of
    models/zoo.py which the model was exported from.
    """

    def __init__(self, options, inputs):
        try:
            import torch
        except ImportError as error:
            fail_missing_library("--with torch", "torch", error)
        self.torch = torch
        self.device = options.device
        if options.threads:
            torch.set_num_threads(options.threads)
        torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
        dtype = dict(fp16=torch.float16, bf16=torch.bfloat16).get(options.precision, torch.float32)
        tensors = {name: tensor_of(torch, value).to(options.device) for name, value in inputs.items()}
        from torch_program import is_program

        prepare = self.prepare_program if is_program(options.model) else self.prepare_spec
        self.run = prepare(options, tensors, dtype)
        self.graph = None
        kind = "eager"
        if options.peer_mode == "compile":
            self.run = torch.compile(self.run, mode="max-autotune")
            kind = "torch.compile max-autotune"
        elif options.device == "cuda":
            from latency import TorchGraph

            self.graph = TorchGraph(self.run, [])
            kind = "eager, captured as a CUDA graph"
        where = torch.cuda.get_device_name() if options.device == "cuda" else "the CPU"
        threads = "" if options.device == "cuda" else f", {counted(torch.get_num_threads())}"
        self.title = f"torch {torch.__version__}, {kind}, {options.precision} on {where}{threads}"

    def prepare_program(self, options, tensors, dtype):
        """The program of a .pt2 file, without arguments."""
        from torch_program import TorchProgram

        torch = self.torch
        try:
            program = TorchProgram(options.model, options.program)
        except Exception as error:  # whatever a damaged file raises
            fail(f"torch {torch.__version__} cannot load {options.model}: {brief(error)}")
        check_names(options.model, program.inputs, tensors)
        self.read = lambda result: program.outputs(result)
        half = dtype != torch.float32

        def prepared(dtype):
            module = program.module(options.device, dtype)
            cast = {n: v.to(dtype) if v.dtype == torch.float32 else v for n, v in tensors.items()}
            args, kwargs = program.arguments(cast)
            return lambda: module(*args, **kwargs)

        run = prepared(dtype)
        try:
            with torch.no_grad():
                run()
        except (RuntimeError, AssertionError) as error:
            # The program fixes types on the way: its products alone are in the narrow type.
            if not half:
                fail(f"torch {torch.__version__} cannot run {options.model} on the engine's inputs: {brief(error)}")
            plain = prepared(torch.float32)
            options.precision += " by autocast"

            def run():
                with torch.autocast(options.device, dtype):
                    return plain()

        return run

    def prepare_spec(self, options, tensors, dtype):
        try:
            import zoo
        except ImportError as error:
            fail_missing_library("--with torch", "torchvision and transformers", error)
        spec = find_spec(zoo, options)
        module = zoo.build(spec).to(options.device, dtype)
        order = list(spec.inputs(1, 2, np.random.RandomState(0)))
        if missing := [name for name in order if name not in tensors]:
            fail(f"no --input for {', '.join(missing)}; {spec.name} takes {', '.join(order)}")
        values = [tensors[name] for name in order]
        values = [v.to(dtype) if v.is_floating_point() else v for v in values]
        self.read = lambda result: dict(zip(spec.outputs, result if isinstance(result, tuple) else (result,)))
        return lambda: module(*values)

    def outputs(self):
        with self.torch.no_grad():
            values = self.read(self.run())
        plain = lambda v: v.float() if v.is_floating_point() and v.dtype != self.torch.float64 else v
        return {n: plain(v).cpu().numpy() for n, v in values.items()}

    def once(self) -> float:
        torch = self.torch
        if self.device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            if self.graph:
                self.graph.graph.replay()
            else:
                with torch.no_grad():
                    self.run()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) / 1e3
        start = time.perf_counter()
        with torch.no_grad():
            self.run()
        return time.perf_counter() - start


def check_names(model, takes, inputs):
    """The model's inputs are the engine's."""
    if set(takes) == set(inputs):
        return
    names = lambda mapping: ", ".join(map(repr, mapping)) or "nothing"
    fail(
        f"the engine was not compiled from {model}: the model takes {names(takes)}, "
        f"the engine {names(inputs)}"
    )


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
        fail_missing_library("--with cublas", "torch", error)
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


class TensorFlowPeer:
    """The signature, or the graph, that TensorFlow runs on the CPU as a tf.function."""

    def __init__(self, options, inputs):
        if options.device == "cuda":
            fail("--with tensorflow runs on the CPU: name it with --device cpu")
        try:
            import tensorflow as tf
            from tensorflow_model import TensorFlowModel
        except ImportError as error:
            fail_missing_library("--with tensorflow", "tensorflow", error)
        if options.threads:
            tf.config.threading.set_intra_op_parallelism_threads(options.threads)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        threads = counted(options.threads) if options.threads else "its own choice of threads"
        self.title = f"tensorflow {tf.__version__} on the CPU, {threads}"
        try:
            model = TensorFlowModel(options.model, names=set(inputs))
        except Exception as error:  # the library's classes have no common base
            fail(f"tensorflow {tf.__version__} cannot load {options.model}: {brief(error)}")
        check_names(options.model, model.inputs, inputs)
        self.run = model.prepare(inputs)
        try:
            self.run()
        except Exception as error:
            fail(f"tensorflow {tf.__version__} cannot run {options.model} on the engine's inputs: {brief(error)}")

    def outputs(self):
        return {name: value.numpy() for name, value in self.run().items()}

    def once(self) -> float:
        start = time.perf_counter()
        for value in self.run().values():
            value.numpy()
        return time.perf_counter() - start


# By what --with names: a class whose objects have a title, the model's outputs() by name,
# and once(), which runs the model and gives the seconds that it took.
PEERS = dict(onnxruntime=OnnxRuntimePeer, torch=TorchPeer, tensorflow=TensorFlowPeer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("model", type=Path)
    add("--with", dest="peer", required=True, choices=(*PEERS, "cublas"))
    add("--input", action="append", default=[], metavar="NAME=FILE")
    add("--output-dir", type=Path)
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--precision", choices=("fp32", "tf32", "fp16", "bf16"), default="fp32")
    add("--threads", type=int, default=0)
    add("--duration", type=float, default=1.0)
    add("--name")
    add("--program", default="", help="of a .pt2 file of several")
    add("--peer-mode", choices=("eager", "compile"), default="eager")
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
    peer = PEERS[options.peer](options, inputs)
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
