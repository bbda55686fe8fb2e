"""Latency of one model on each side: the engine, ONNX Runtime, PyTorch.

Every function returns seconds, the median over many runs of one measuring period.
Comparisons call them in alternating rounds, so that a machine that slows down
slows both sides down.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import harness
import numpy as np

SESSIONS: dict[tuple, object] = {}


def bench_record(
    engine: Path, inputs: Mapping[str, np.ndarray], *, device: str = "cpu",
    threads: int = 0, seconds: float = 1.0, precision: str | None = None, warm_up: float | None = None,
) -> dict:  # fmt: skip
    """What `charonia bench --json` measures for these inputs."""
    with tempfile.TemporaryDirectory(prefix="charonia-bench-") as name:
        folder = Path(name)
        arguments: list[str | Path] = ["bench", engine, "--device", device]
        for index, (key, value) in enumerate(inputs.items()):
            path = folder / f"{index}.npy"
            harness.save_array(path, value)
            arguments += ["--input", f"{key}={path}"]
        if threads:
            arguments += ["--threads", str(threads)]
        if precision:
            arguments += ["--precision", precision]
        if warm_up is not None:
            arguments += ["--warm-up", str(warm_up)]
        report = folder / "bench.json"
        arguments += ["--duration", str(seconds), "--no-profile", "--json", report]
        result = harness.invoke(*arguments)
        if result.kind != "ok":
            raise harness.CharoniaError("bench", result)
        return json.loads(report.read_text())


def charonia_latency(engine: Path, inputs, **options) -> float:
    return bench_record(engine, inputs, **options)["latency_ms"]["p50"] / 1e3


class BoundSession:
    """A session of ONNX Runtime with inputs and outputs bound: a run copies nothing."""

    def __init__(self, model: Path, provider: str, threads: int, entries: Mapping[str, str] = {}):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        for key, value in entries.items():
            options.add_session_config_entry(key, value)
        self.session = onnxruntime.InferenceSession(str(model), options, providers=[provider])
        self.device = "cuda" if provider.startswith("CUDA") else "cpu"

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Binds the inputs, runs once, and keeps the outputs where that run put them."""
        from onnxruntime import OrtValue

        self.binding = self.session.io_binding()
        for name, value in inputs.items():
            placed = OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value), self.device)
            self.binding.bind_ortvalue_input(name, placed)
        self.names = [output.name for output in self.session.get_outputs()]
        for name in self.names:
            self.binding.bind_output(name, self.device)
        self.run()
        for name, value in zip(self.names, self.binding.get_outputs()):
            self.binding.bind_ortvalue_output(name, value)
        self.run()

    def run(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def once(self) -> float:
        start = time.perf_counter()
        self.run()
        return time.perf_counter() - start

    def outputs(self) -> dict[str, np.ndarray]:
        return dict(zip(self.names, self.binding.copy_outputs_to_cpu()))


def onnxruntime_latency(
    model: Path, inputs: Mapping[str, np.ndarray], *, threads: int, seconds: float = 1.0, of=statistics.median, entries: Mapping[str, str] = {},
) -> float:  # fmt: skip
    """`entries`: of the session's configuration."""
    key = (str(model), threads, *entries.items())
    if key not in SESSIONS:
        for other in [k for k in SESSIONS if k[0] != key[0]]:  # one model's weights at a time
            del SESSIONS[other]
        SESSIONS[key] = BoundSession(model, "CPUExecutionProvider", threads, entries)
    SESSIONS[key].bind(inputs)
    return median_time(SESSIONS[key].run, seconds, of)


def median_time(run: Callable[[], object], seconds: float, of=statistics.median) -> float:
    """Warms up for a fifth of the time, then measures single runs."""
    for period in (seconds / 5, seconds):
        times: list[float] = []
        end = time.perf_counter() + period
        while time.perf_counter() < end or len(times) < 3:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return of(times)


class TorchGraph:
    """A PyTorch module, captured as a CUDA graph at fixed inputs."""

    def __init__(self, module, inputs):
        import torch

        self.torch = torch
        self.inputs = inputs
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            for _ in range(3):  # cuBLAS and cuDNN choose their kernels
                module(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph), torch.no_grad():
            self.outputs = module(*inputs)

    def latency(self, seconds: float) -> float:
        """Median of single replays, timed by events on the device."""
        torch = self.torch
        times: list[float] = []
        for period in (seconds / 5, seconds):
            times.clear()
            end = time.perf_counter() + period
            while time.perf_counter() < end or len(times) < 20:
                begin, finish = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                self.graph.replay()
                finish.record()
                finish.synchronize()
                times.append(begin.elapsed_time(finish) / 1e3)
        return statistics.median(times)


def geomean(values) -> float:
    values = list(values)
    return statistics.geometric_mean(values) if values else float("nan")
