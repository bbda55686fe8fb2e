#!/usr/bin/env python3
"""Random graphs against ONNX Runtime: tests of fusion and of everything after it.

    graphs_test.py [--seconds 60] [--seed N] [--device cuda] [--precision fp16]
    graphs_test.py --count 60 --seed 1      always the same graphs: what ctest runs
    graphs_test.py --reproduce SEED:INDEX [--shrink]

A failing graph is saved; --shrink cuts it down to a small one that still fails. Prints
the seed, and for each failure the command that shows it again. Exit status 0 only if
every graph is right at each of its sizes.
"""

from __future__ import annotations

import argparse
import collections
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]

import graph_cases
import harness
import numpy as np
import onnx
import onnxruntime

# Errors relative to the largest output; several roundings in a row add up.
LIMITS = {None: 1e-4, "fp32": 1e-4, "tf32": 1e-2, "fp16": 2e-2, "bf16": 1.5e-1}


class GraphTester:
    def __init__(self, options):
        self.options = options
        self.folder = Path(tempfile.mkdtemp(prefix="charonia-graphs-"))
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.failures: list[str] = []
        self.next = 0

    def feeds(self, model, sizes: dict[str, int], seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        values = {}
        for info in model.graph.input:
            dims = [sizes.get(d.dim_param, d.dim_value) for d in info.type.tensor_type.shape.dim]
            values[info.name] = rng.standard_normal(dims).astype(np.float32)
        return values

    def oracle(self, model, feeds) -> list[np.ndarray]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        # Its own rewrites have faults (a Pad fused into a pool, for one).
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        )
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, feeds)

    def ranges(self, model, runs) -> dict[str, list]:
        """The --shape of each input with open dimensions that covers all runs."""
        shapes = {}
        for info in model.graph.input:
            dims = info.type.tensor_type.shape.dim
            if any(d.dim_param for d in dims):
                shapes[info.name] = [
                    self.range([r[d.dim_param] for r in runs]) if d.dim_param else d.dim_value
                    for d in dims
                ]
        return shapes

    def range(self, values) -> tuple[int, int, int]:
        return min(values), values[0], max(values)

    def check(self, model, runs, seed: int, target: str, tag: str) -> tuple[str, str]:
        """('ok', '') or (kind of failure, message)."""
        folder = self.folder / tag
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path, engine = folder / "model.onnx", folder / "model.engine"
        onnx.save(model, path)
        names = [o.name for o in model.graph.output]
        dump = folder / "dump" if self.options.device == "simt" else None
        try:
            harness.compile_model(
                path, engine, target=target, shapes=self.ranges(model, runs),
                precision=self.options.precision, extra=["--no-cache"], dump=dump,
                timeout=self.options.timeout,
            )  # fmt: skip
            for sizes in runs:
                feeds = self.feeds(model, sizes, seed)
                want = self.oracle(model, feeds)
                got = harness.run_engine(
                    engine, feeds, names, folder / "run", device=self.options.device, dump=dump,
                    timeout=self.options.timeout,
                )  # fmt: skip
                for name, w, g in zip(names, want, got):
                    if problem := self.difference(w, g):
                        at = ", ".join(f"{k} = {v}" for k, v in sizes.items())
                        return "wrong", f"{at}; {name}: {problem}"
        except harness.CharoniaError as error:
            return error.kind, str(error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return "ok", ""

    def difference(self, want, got) -> str:
        if want.shape != got.shape or want.dtype != got.dtype:
            return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
        if not want.size:
            return ""
        scale = float(np.abs(want).max())
        if not np.isfinite(scale):
            return f"ONNX Runtime's result is not finite: {want[~np.isfinite(want)][0]}"
        gap = np.abs(want - got)
        at = np.unravel_index(int(np.nanargmax(np.where(np.isnan(gap), np.inf, gap))), gap.shape)
        if gap[at] <= LIMITS[self.options.precision] * max(scale, 1e-3):
            return ""
        return (
            f"error {gap[at] / scale:.2e} of the scale at {list(map(int, at))}: "
            f"{got[at]} instead of {want[at]}"
        )

    def test(self, seed: int, index: int, target: str) -> None:
        builder = graph_cases.build(seed, index)
        model, runs = builder.model(), builder.sizes
        if self.options.check_generators:
            for sizes in runs:
                for value in self.oracle(model, self.feeds(model, sizes, index)):
                    if not np.isfinite(value).all():
                        raise SystemExit(f"{seed}:{index} gives infinities")
            state, message = "ok", ""
        else:
            state, message = self.check(model, runs, index, target, f"{index}")
        with self.lock:
            self.counts[state] += 1
            if state == "ok":
                return
            ops = collections.Counter(n.op_type for n in model.graph.node)
            text = " ".join(f"{k}*{v}" if v > 1 else k for k, v in sorted(ops.items()))
            self.failures.append(
                f"{state.upper()} {seed}:{index} ({text})\n  {message}\n"
                f"  {self.command(seed, index, target)}"
            )
            print(self.failures[-1], flush=True)
            self.save(model, f"{seed}_{index}")
        if self.options.shrink:
            small, why = self.shrink(model, runs, index, target, state)
            with self.lock:
                path = self.save(small, f"{seed}_{index}_small")
                print(f"  shrunk to {len(small.graph.node)} nodes: {path}: {why}", flush=True)
                for node in small.graph.node:
                    print(f"    {list(node.output)} = {node.op_type}({list(node.input)})")

    def command(self, seed: int, index: int, target: str) -> str:
        """What shows a failure again."""
        settings = dict(vars(self.options), target=target)
        words = [
            f"--{k} {settings[k]}" for k in ("target", "device", "precision") if settings[k]
        ]
        return f"tests/e2e/graphs_test.py --reproduce {seed}:{index} {' '.join(words)}"

    def save(self, model, name: str) -> Path:
        self.options.keep.mkdir(parents=True, exist_ok=True)
        path = self.options.keep / f"{name}.onnx"
        onnx.save(model, path)
        return path

    def shrink(self, model, runs, seed: int, target: str, state: str):
        """Greedy: keep one output, cut values off into inputs, while it fails alike."""
        message = ""
        improved = True
        while improved:
            improved = False
            for candidate in candidates(model, set(runs[0])):
                kind, text = self.check(candidate, runs, seed, target, f"shrink{seed}")
                if kind == state:
                    model, message, improved = candidate, text, True
                    break
        return model, message


def candidates(model, symbols: set[str]):
    """Models with one output less, or with one value turned into an input; of its
    open dimensions only these `symbols` are known."""
    inferred = onnx.shape_inference.infer_shapes(model)
    infos = {i.name: i for i in (*inferred.graph.value_info, *model.graph.output)}
    if len(model.graph.output) > 1:
        for output in model.graph.output:
            yield without_dead(model, [output], model.graph.input)
    for node in reversed(model.graph.node):  # an earlier value as the only output
        for name in node.output:
            if name in infos and [o.name for o in model.graph.output] != [name]:
                yield without_dead(model, [infos[name]], model.graph.input)
    kinds = (onnx.TensorProto.FLOAT,)
    for node in model.graph.node:
        for name in node.output:
            info = infos.get(name)
            if info is None or info.type.tensor_type.elem_type not in kinds:
                continue
            if name in {o.name for o in model.graph.output}:
                continue
            dims = info.type.tensor_type.shape.dim
            if any(not d.HasField("dim_value") and d.dim_param not in symbols for d in dims):
                continue
            yield without_dead(model, model.graph.output, [*model.graph.input, info])


def without_dead(model, outputs, inputs):
    given = {i.name for i in inputs}
    needed = {o.name for o in outputs}
    nodes = []
    for node in reversed(model.graph.node):
        if needed & set(node.output) - given:
            nodes.insert(0, node)
            needed |= set(node.input)
    graph = onnx.helper.make_graph(
        nodes, "small", [i for i in inputs if i.name in needed], list(outputs),
        [t for t in model.graph.initializer if t.name in needed],
    )  # fmt: skip
    return onnx.helper.make_model(
        graph, opset_imports=list(model.opset_import), ir_version=model.ir_version
    )


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, help="start no graph after this time; default: 60")
    add("--count", type=int, default=0, help="this many graphs, however long they take")
    add("--seed", type=int, default=None)
    add("--device", choices=["cpu", "cuda", "simt"], help="simt: GPU kernels without a GPU")
    add("--target", type=lambda t: t.split(","),
        help="several take turns; default: this CPU's, or sm_90 with --device cuda or simt")
    add("--precision", choices=[k for k in LIMITS if k])
    add("--jobs", type=int, default=2)
    add("--timeout", type=float, default=300)
    add("--keep", type=Path, default=harness.ROOT / "build/failing-graphs")
    add("--shrink", action="store_true")
    add("--reproduce", metavar="SEED:INDEX")
    add("--check-generators", action="store_true")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = int(time.time()) % 1000000
    if options.target is None:
        options.target = ["sm_90"] if options.device in ("cuda", "simt") else harness.cpu_targets()
    if options.seconds is None:
        options.seconds = float("inf") if options.count else 60
    return options


def main(arguments=None) -> int:
    options = parse(arguments)
    print(f"seed {options.seed}", flush=True)
    tester = GraphTester(options)
    deadline = time.time() + options.seconds
    try:
        if options.reproduce:
            seed, index = map(int, options.reproduce.split(":"))
            for target in options.target:
                tester.test(seed, index, target)
            return int(bool(tester.failures))

        def work():
            while time.time() < deadline:
                with tester.lock:
                    index, tester.next = tester.next, tester.next + 1
                if options.count and index >= options.count:
                    return
                targets = options.target
                tester.test(options.seed, index, targets[index // 3 % len(targets)])

        with ThreadPoolExecutor(options.jobs) as pool:
            for future in [pool.submit(work) for _ in range(options.jobs)]:
                future.result()
    finally:
        shutil.rmtree(tester.folder, ignore_errors=True)
    print(f"seed {options.seed}: {dict(tester.counts)}")
    return int(bool(tester.failures))


if __name__ == "__main__":
    sys.exit(main())
