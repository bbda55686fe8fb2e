#!/usr/bin/env python3
"""Eleven models on the GPU beside PyTorch, each captured as a CUDA graph, in one run.

    bench_gpu_models.py [NAME...] [--batch 1] [--charonia PROGRAM]... [--peers eager,default,max-autotune]
                        [--precision fp16|bf16|tf32|fp32] [--rounds 3] [--limit SECONDS] [--json out.json] [--tables DIR]

Without names they are the eleven of `subjects`; `transformers/NAME` is one of gpu_transformers.py, any
other NAME an image model of torchvision at 224 x 224.
The models are built here with drawn weights, exported with torch.export at the measured shape and
compiled by each PROGRAM (the first is "ours", others are older ones beside it). The peers: eager
PyTorch; torch.compile in its default mode; torch.compile in mode max-autotune-no-cudagraphs, captured
as a graph as the others are. Medians of alternating rounds, in us; a ratio above 1 means that ours is
faster; errors beside PyTorch in fp32 on the CPU, relative to the largest value.
Models that are not reached within --limit are named and left out. --tables writes what ours launches,
kernel by kernel with the time of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import harness
import numpy as np
import torch
from latency import TorchGraph, geomean

sys.path.insert(0, str(harness.ROOT / "models"))
import torchvision  # noqa: E402
import zoo  # noqa: E402

MODES = {"default": "default", "max-autotune": "max-autotune-no-cudagraphs"}


def image_model(name: str):
    factory = getattr(torchvision.models, name)
    return zoo._vision(lambda: factory(weights=None), 224, 8), zoo._image_inputs(224), 0


def llama():
    """TinyLlama 1.1B: 22 layers of 2048, 32 heads of 64, 4 of keys."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
        num_key_value_heads=4, max_position_embeddings=2048, use_cache=False, attn_implementation="sdpa",
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    zoo.randomize_(model)
    return zoo.CausalLM(model, ("logits",), ("input_ids",))


def subjects() -> dict[str, tuple]:
    """Of each name: what builds the module, what makes its inputs, tokens."""
    full = zoo.FULL
    bert, gpt2 = full["bert-base"], full["gpt2"]
    table = {
        "bert-base-128": (bert.build, bert.inputs, 128),
        "gpt2-512": (gpt2.build, gpt2.inputs, 512),
        "vit_b_16": image_model("vit_b_16"),
        "swin_t": image_model("swin_t"),
        "tinyllama-512": (llama, zoo._gpt2_inputs(32000), 512),
        "resnet50": image_model("resnet50"),
        "bert-base-512": (bert.build, bert.inputs, 512),
        "convnext_tiny": image_model("convnext_tiny"),
        "mobilenet_v2": image_model("mobilenet_v2"),
        "resnet18": image_model("resnet18"),
        "efficientnet_b0": image_model("efficientnet_b0"),
    }
    return table


def subject(name: str) -> tuple:
    if name.startswith("transformers/"):
        import gpu_transformers

        return gpu_transformers.subject(name.removeprefix("transformers/"))
    return subjects().get(name) or image_model(name)


def first(value):
    """The first output of a module."""
    values = list(value.values()) if isinstance(value, dict) else value
    return values[0] if isinstance(values, (tuple, list)) else values


class Charonia:
    """One program, its engine of the model at hand, and the rounds of it."""

    def __init__(self, program: Path, number: int):
        self.program, self.label = program, "ours" if number == 0 else f"other {number}"
        self.number = number

    def call(self, *arguments) -> str:
        result = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"{self.program} {arguments[0]}: {result.stderr.strip()[:500]}")
        return result.stdout

    def compile(self, model: Path, options, folder: Path) -> float:
        self.engine = folder / f"{self.number}.engine"
        start = time.time()
        self.call("compile", model, "-o", self.engine, "--target", options.target, "--precision", options.precision,
                  "--no-cache")  # fmt: skip
        return time.time() - start

    def latency(self, inputs: list[str], options, folder: Path) -> dict:
        report = folder / f"{self.number}.json"
        self.call("bench", self.engine, *inputs, "--device", "cuda", "--duration", options.seconds, "--no-profile",
                  "--json", report)  # fmt: skip
        return json.loads(report.read_text())["latency_ms"]


def peers_of(module, tensors, options) -> dict[str, TorchGraph]:
    graphs = {}
    for peer in options.peers.split(","):
        torch._dynamo.reset()
        run = module if peer == "eager" else torch.compile(module, mode=MODES[peer])
        try:
            graphs[peer] = TorchGraph(run, tensors)
        except Exception as error:  # noqa: BLE001: a peer that does not compile is said and left out
            print(f"  {peer}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return graphs


def measure(name: str, programs: list[Charonia], options, folder: Path) -> dict:
    build, make, tokens = subject(name)
    torch.manual_seed(0)
    module = build().eval()
    arrays = make(options.batch, tokens, np.random.RandomState(7))
    given = tuple(torch.from_numpy(a) for a in arrays.values())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = first(module(*given)).numpy()
        program = torch.export.export(module, given)
    model = folder / "model.pt2"
    torch.export.save(program, model)
    signature = program.graph_signature.user_inputs
    inputs = []
    for key, value in zip(signature, arrays.values()):
        harness.save_array(folder / f"{key}.npy", value)
        inputs += ["--input", f"{key}={folder / f'{key}.npy'}"]
    compile_s = [p.compile(model, options, folder) for p in programs]
    dtype = dict(fp16=torch.float16, bf16=torch.bfloat16).get(options.precision, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    module = module.to("cuda", dtype)
    tensors = [t.cuda().to(dtype) if t.is_floating_point() else t.cuda() for t in given]
    with torch.no_grad():
        peers = peers_of(module, tensors, options)
    times: dict[str, list[float]] = {p.label: [] for p in programs} | {p: [] for p in peers}
    tails = []
    for _ in range(options.rounds):
        for p in programs:
            found = p.latency(inputs, options, folder)
            times[p.label].append(found["p50"] * 1e3)
            tails += [found["p99"] / found["p50"]] if p.number == 0 else []
        for peer, graph in peers.items():
            times[peer].append(graph.latency(options.seconds) * 1e6)
    medians = {key: statistics.median(values) for key, values in times.items()}
    if options.tables:
        options.tables.mkdir(parents=True, exist_ok=True)
        text = programs[0].call("inspect", programs[0].engine, "--kernels")
        text += programs[0].call("bench", programs[0].engine, *inputs, "--device", "cuda", "--duration", options.seconds)
        (options.tables / f"{name.replace('/', '-')}.txt").write_text(text)
    outputs = folder / "outputs"
    programs[0].call("run", programs[0].engine, *inputs, "--device", "cuda", "--output-dir", outputs)
    got = [np.load(path) for path in sorted(outputs.glob("*.npy"))]
    error = min(harness.scaled_error(want, g.astype(np.float32)) for g in got if g.shape == want.shape)
    return dict(name=name, us=medians, least={k: min(v) for k, v in times.items()}, error=error,
                tail=max(tails), compile_s=compile_s)  # fmt: skip


def report(rows: list[dict], labels: list[str]) -> None:
    others = [label for label in labels if label != "ours"]
    cells = []
    for row in rows:
        us = row["us"]
        show = lambda label: f"{us[label]:.1f}" if label in us else ""
        ratio = lambda label: f"{us[label] / us['ours']:.2f}" if label in us else ""
        cells.append([row["name"], *(show(k) for k in labels), *(ratio(k) for k in others), f"{row['error']:.1e}",
                      f"{row['tail']:.2f}", f"{row['compile_s'][0]:.1f}"])  # fmt: skip
    header = ["model", *labels, *(f"{k} / ours" for k in others), "error", "p99 / p50", "compile, s"]
    print(harness.table(header, cells))
    for label in others:
        ratios = [row["us"][label] / row["us"]["ours"] for row in rows if label in row["us"]]
        if ratios:
            print(f"{label} / ours: geometric mean {geomean(ratios):.3f} of {len(ratios)}, least {min(ratios):.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--charonia", type=Path, action="append", help="a program; the first is ours (default: harness's)")
    add("--peers", default="eager,default,max-autotune")
    add("--precision", default="fp16", choices=("fp16", "bf16", "tf32", "fp32"))
    add("--target", default="cuda")
    add("--batch", type=int, default=1)
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=0.5)
    add("--limit", type=float, default=1e9, help="seconds after which no further model is begun")
    add("--json", type=Path)
    add("--tables", type=Path)
    options = parser.parse_args()
    paths = options.charonia or [harness.binary()]
    programs = [Charonia(path.resolve(), number) for number, path in enumerate(paths)]
    start, rows = time.time(), []
    torch.backends.mha.set_fastpath_enabled(False)
    names = options.names or list(subjects())
    for name in names:
        if time.time() - start > options.limit:
            print(f"{name}: not measured, {options.limit:.0f} s are over")
            continue
        with tempfile.TemporaryDirectory(prefix="charonia-models-") as folder:
            try:
                rows.append(measure(name, programs, options, Path(folder)))
            except Exception as error:  # noqa: BLE001: each model gets its line
                print(f"{name}: {type(error).__name__}: {str(error)[:400]}", flush=True)
                continue
        torch.cuda.empty_cache()
        us = ", ".join(f"{k} {v:.1f}" for k, v in rows[-1]["us"].items())
        print(f"{name}: {us}; error {rows[-1]['error']:.1e}; {time.time() - start:.0f} s", flush=True)
        harness.write_json(options.json, rows)
    report(rows, [p.label for p in programs] + options.peers.split(","))
    return 0 if len(rows) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
