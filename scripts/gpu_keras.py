#!/usr/bin/env python3
"""Keras models in fp16 on a GPU whose machine has no TensorFlow.

    gpu_keras.py pack DIR [NAME...]       where TensorFlow is: SavedModels without their weights,
                                          and what float64 gives
    gpu_keras.py check DIR [NAME...] [--device cuda] [--target cuda] [--precision fp16]
                                          where the GPU is: needs numpy alone
    gpu_keras.py beside DIR               ResNet-50 of Keras beside the same network of
                                          torchvision with the same weights; needs torchvision

Weights are drawn by numpy's RandomState, whose stream never changes, and statistics of
batch norms are those of a pass, kept in 8 bits a channel: `pack` keeps what draws them, and
`check` writes the very bytes that the SavedModel's checksums are of. The error is the
largest difference from float64 divided by the largest value. The measure is an emulation of
float16: products are exact, but weights and each value that a contraction, pool,
concatenation or sum of two branches reads are rounded to float16, as a compiler has to that
fuses all else.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import harness
import numpy as np

# Of the emulation's error.
FACTOR = 1.5
BATCH = 4
# Size, and the largest value of an input.
MODELS = {
    "MobileNet": (224, 1), "MobileNetV2": (160, 1), "EfficientNetB0": (160, 255), "ResNet50": (224, 1),
    "ResNet50V2": (160, 1), "DenseNet121": (160, 1), "InceptionV3": (160, 1), "Xception": (160, 1),
    "EfficientNetV2B0": (160, 255), "NASNetMobile": (128, 1), "VGG16": (64, 1),
    "MobileNetV3Small": (160, 255),
}  # fmt: skip


def draw(recipe: dict, codes: np.ndarray) -> np.ndarray:
    """The float32 values of one weight."""
    low, high = recipe["range"]
    if "codes" in recipe:
        first, count = recipe["codes"]
        unit = codes[first : first + count].astype(np.float64) / 255
    else:
        unit = np.random.RandomState(recipe["seed"]).random_sample(int(np.prod(recipe["shape"])))
    return (low + unit * (high - low)).astype(np.float32).reshape(recipe["shape"])


def images(name: str) -> np.ndarray:
    """Coarse patterns with noise: white noise alone makes all samples alike."""
    size, scale = MODELS[name]
    rng = np.random.RandomState(5)
    coarse = rng.random_sample([BATCH, (size + 15) // 16, (size + 15) // 16, 3])
    coarse = coarse.repeat(16, 1).repeat(16, 2)[:, :size, :size]
    fine = rng.random_sample([BATCH, size, size, 3])
    return ((0.7 * coarse + 0.3 * fine) * scale).astype(np.float32)


# Where TensorFlow is.


def rule(weight, seed: int) -> dict:
    """How a weight is drawn, that activations keep their size."""
    kind, shape = weight.path.split("/")[-1], tuple(weight.shape)
    recipe = {"path": weight.path, "shape": shape, "seed": seed}
    if kind in ("gamma", "scale"):
        return recipe | {"range": (0.5, 1.5)}
    if kind in ("beta", "bias"):
        return recipe | {"range": (-0.2, 0.2)}
    fan = np.prod(shape[:2]) if "depthwise" in weight.path and len(shape) == 4 else np.prod(shape[:-1])
    bound = float(np.sqrt((6 if len(shape) == 4 else 3) / fan))
    return recipe | {"range": (-bound, bound)}


def recipes_of(keras, model, inputs: np.ndarray) -> tuple[list[dict], np.ndarray]:
    """Assigns every float weight what its recipe draws."""
    statistics = ("moving_mean", "moving_variance")
    weights = [w for w in model.weights if w.dtype == "float32" and np.prod(w.shape) > 1]
    codes, table, count = [], [], 0
    for seed, weight in enumerate(weights):
        if weight.path.split("/")[-1] not in statistics:
            table.append((weight, rule(weight, seed)))
            weight.assign(draw(table[-1][1], np.zeros(0, np.uint8)))
    norms = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    for layer in norms:
        layer.momentum = 0.0
    if norms:
        model(inputs, training=True)
    for layer in norms:
        for weight in (layer.moving_mean, layer.moving_variance):
            value = weight.numpy().astype(np.float64)
            low, high = float(np.float32(value.min())), float(np.float32(value.max()))
            code = np.round((value - low) / max(high - low, 1e-30) * 255).astype(np.uint8)
            recipe = {"path": weight.path, "shape": tuple(weight.shape), "range": (low, high), "codes": (count, code.size)}
            codes.append(code)
            count += code.size
            table.append((weight, recipe))
    all_codes = np.concatenate(codes) if codes else np.zeros(0, np.uint8)
    for weight, recipe in table:
        weight.assign(draw(recipe, all_codes))
    return [recipe for _, recipe in table], all_codes


def holes(data: bytes, recipes: list[dict], codes: np.ndarray) -> tuple[list, bytes]:
    """Where the file has which weight, and the bytes between."""
    places = []
    for index, recipe in enumerate(recipes):
        wanted = draw(recipe, codes).tobytes()
        at = data.find(wanted)
        while at >= 0:
            places.append((at, len(wanted), index))
            at = data.find(wanted, at + len(wanted))
    rest, taken, end = [], [], 0
    for at, size, index in sorted(places):
        if at < end:  # two weights have the same bytes
            continue
        taken.append((at, size, index))
        rest.append(data[end:at])
        end = at + size
    rest.append(data[end:])
    return taken, b"".join(rest)


ROUNDS_WHAT_IT_READS = (
    "Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2", "Einsum", "MaxPool", "AvgPool", "ConcatV2",
    "Mean", "StatefulPartitionedCall", "PartitionedCall",
)  # fmt: skip


def rounded_to_float16(tf, graph):
    """The frozen graph with casts to float16 and back where a compiled model stores values."""
    half, single = tf.float16.as_datatype_enum, tf.float32.as_datatype_enum
    base = lambda name: name.lstrip("^").split(":")[0]  # noqa: E731
    varies, result = set(), tf.compat.v1.GraphDef()
    result.versions.CopyFrom(graph.versions)
    result.library.CopyFrom(graph.library)
    done = {}

    def rounded(name: str) -> str:
        if name not in done:
            stem = f"rounded_{len(done)}"
            for suffix, source, kinds in (("a", name, (single, half)), ("b", f"{stem}a", (half, single))):
                node = result.node.add(name=stem + suffix, op="Cast", input=[source])
                node.attr["SrcT"].type, node.attr["DstT"].type = kinds
            done[name] = f"{stem}b"
        return done[name]

    for node in graph.node:
        if node.op == "Placeholder" or any(base(i) in varies for i in node.input):
            varies.add(node.name)
        copy = tf.compat.v1.NodeDef()
        copy.CopyFrom(node)
        branches = [base(i) in varies for i in node.input]
        if any(branches):
            is_sum = node.op == "AddV2" and all(branches)
            if node.op in ROUNDS_WHAT_IT_READS or is_sum:
                last = len(node.input) - (node.op in ("ConcatV2", "Mean"))
                copy.input[:last] = [rounded(i) for i in node.input[:last]]
        result.node.add().CopyFrom(copy)
    return result


def pack(name: str, folder: Path) -> None:
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    from tensorflow_model import TensorFlowModel, imported

    size, _ = MODELS[name]
    keras.utils.set_random_seed(0)
    how = {} if name == "NASNetMobile" else {"classifier_activation": None}
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), **how)
    inputs = images(name)
    recipes, codes = recipes_of(keras, model, inputs)
    with tempfile.TemporaryDirectory() as scratch:
        saved = Path(scratch) / name
        model.export(saved, verbose=False)
        data = (saved / "variables/variables.data-00000-of-00001").read_bytes()
        places, rest = holes(data, recipes, codes)
        subject = TensorFlowModel(saved)
        (key,) = subject.inputs
        (output,) = (exact := subject.run_float64({key: inputs}))
        frozen = convert_variables_to_constants_v2(subject.function)
        graph = rounded_to_float16(tf, frozen.graph.as_graph_def())
        half = imported(graph, [x.name for x in frozen.inputs], [x.name for x in frozen.outputs])
        (emulated,) = half(tf.constant(inputs))
        single = subject.prepare({key: inputs})()[output].numpy()
        out = folder / name
        out.mkdir(parents=True, exist_ok=True)
        for file in ("saved_model.pb", "variables/variables.index"):
            (out / (Path(file).name + ".xz")).write_bytes(lzma.compress((saved / file).read_bytes(), preset=9))
        (out / "rest.xz").write_bytes(lzma.compress(rest, preset=9))
    np.savez_compressed(out / "values.npz", codes=codes, exact=exact[output].astype(np.float32))
    errors = {k: harness.scaled_error(exact[output], v) for k, v in
              (("emulated", emulated.numpy()), ("fp32", single))}  # fmt: skip
    samples = exact[output]
    spread = float(np.abs(samples - samples.mean(0)).max() / np.abs(samples).max())
    kept = {"input": key, "output": output, "errors": errors, "spread": spread, "places": places, "recipes": recipes}  # fmt: skip
    (out / "model.json").write_text(json.dumps(kept))
    print(f"{name}: emulated float16 {errors['emulated']:.1e}, TensorFlow's float32 {errors['fp32']:.1e}, "
          f"samples differ by {spread:.2f} of scale, {len(rest)} bytes are kept", flush=True)  # fmt: skip


# Where the GPU is.


def unpack(packed: Path, target: Path) -> dict:
    """The SavedModel at `target`, whole; what model.json says."""
    about, values = json.loads((packed / "model.json").read_text()), np.load(packed / "values.npz")
    (target / "variables").mkdir(parents=True)
    for file in ("saved_model.pb", "variables/variables.index"):
        (target / file).write_bytes(lzma.decompress((packed / (Path(file).name + ".xz")).read_bytes()))
    rest = lzma.decompress((packed / "rest.xz").read_bytes())
    weights, taken, end = {}, 0, 0
    with (target / "variables/variables.data-00000-of-00001").open("wb") as file:
        for at, size, index in about["places"]:
            if index not in weights:
                weights[index] = draw(about["recipes"][index], values["codes"]).tobytes()
            file.write(rest[taken : taken + at - end])
            file.write(weights[index])
            taken, end = taken + at - end, at + size
        file.write(rest[taken:])
    return about | {"exact": values["exact"]}


def check(name: str, options, scratch: Path) -> list:
    packed, folder = options.folder / name, scratch / name
    try:
        about = unpack(packed, folder / "model")
        start = time.time()
        harness.compile_model(
            folder / "model", folder / "m.engine", target=options.target, precision=options.precision,
            timeout=300, shapes={about["input"]: [(1, BATCH, 16), *images(name).shape[1:]]},
        )  # fmt: skip
        seconds = time.time() - start
        got = harness.run_all_outputs(folder / "m.engine", {about["input"]: images(name)}, folder, device=options.device)
        error = harness.scaled_error(about["exact"], got[about["output"]].astype(np.float32))
        emulated = about["errors"]["emulated"]
        limit = FACTOR * emulated if options.precision in ("fp16", "bf16") else 1e-4
        row = [f"{seconds:.1f}", f"{error:.1e}", f"{emulated:.1e}", f"{error / emulated:.2f}",
               "ok" if error <= limit else "TOO LARGE"]  # fmt: skip
    except Exception as failure:  # noqa: BLE001: each model gets its row
        print(f"{name}: {str(failure)[:1500]}", flush=True)
        row = ["", "", "", "", "FAILED: " + str(failure).split("\n")[0][:150]]
    shutil.rmtree(folder, ignore_errors=True)
    print(" ".join([name, *row]), flush=True)
    return [name, *row]


def torch_twin(about: dict, codes: np.ndarray):
    """torchvision's ResNet-50 as Keras has it: the first convolution of a block strides, all
    have biases; with the same weights."""
    import torch
    import torchvision

    net = torchvision.models.resnet50(weights=None).eval()
    values = dict(zip((r["path"] for r in about["recipes"]), (draw(r, codes) for r in about["recipes"])))

    def biased(conv, stride):
        return torch.nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size, stride, conv.padding)

    def load(conv, norm, stem: str) -> None:
        take = lambda part: torch.from_numpy(values[f"{stem}_{part}"].copy())  # noqa: E731
        conv.weight.data = take("conv/kernel").permute(3, 2, 0, 1).contiguous()
        conv.bias.data = take("conv/bias")
        norm.weight.data, norm.bias.data = take("bn/gamma"), take("bn/beta")
        norm.running_mean, norm.running_var = take("bn/moving_mean"), take("bn/moving_variance")
        norm.eps = 1.001e-5

    net.conv1 = biased(net.conv1, 2)
    load(net.conv1, net.bn1, "conv1")
    for index, layer in enumerate((net.layer1, net.layer2, net.layer3, net.layer4)):
        for number, block in enumerate(layer):
            stride = 2 if index and not number else 1
            stem = f"conv{index + 2}_block{number + 1}"
            for part in (1, 2, 3):
                conv = biased(getattr(block, f"conv{part}"), stride if part == 1 else 1)
                setattr(block, f"conv{part}", conv)
                load(conv, getattr(block, f"bn{part}"), f"{stem}_{part}")
            if block.downsample is not None:
                block.downsample[0] = biased(block.downsample[0], stride)
                load(*block.downsample, f"{stem}_0")
    net.fc.weight.data = torch.from_numpy(values["predictions/kernel"].T.copy())
    net.fc.bias.data = torch.from_numpy(values["predictions/bias"])
    return net


def launches(engine: Path) -> str:
    """Of the engine's program, as inspect says it: "21 kernel launches of 19 kernels"."""
    found = re.search(r"\d+ kernel launches.* of \d+ kernels", harness.invoke("inspect", engine).stdout)
    return found.group() if found else "launches unknown"


def beside(options, scratch: Path) -> None:
    import torch
    from latency import charonia_latency

    about = unpack(options.folder / "ResNet50", scratch / "keras")
    net = torch_twin(about, np.load(options.folder / "ResNet50/values.npz")["codes"])
    picture = torch.from_numpy(images("ResNet50")).permute(0, 3, 1, 2).contiguous()
    with torch.no_grad():
        error = harness.scaled_error(about["exact"], net(picture).numpy())
        print(f"torchvision's network with Keras's weights, fp32: {error:.1e} from float64", flush=True)
        batch = torch.export.Dim("batch", min=1, max=64)
        program = torch.export.export(net, (picture,), dynamic_shapes=({0: batch},))
        torch.export.save(program, scratch / "torch.pt2")
        if options.device == "cuda":
            half = net.cuda().half()(picture.cuda().half()).float().cpu().numpy()
            print(f"torch in fp16: {harness.scaled_error(about['exact'], half):.1e}", flush=True)
    for size in options.batches:
        engines, inputs = {}, {}
        for kind, model, key, array in (
            ("keras", scratch / "keras", about["input"], images("ResNet50")),
            ("torch", scratch / "torch.pt2", "x", picture.numpy()),
        ):  # fmt: skip
            engines[kind] = scratch / f"{kind}.engine"
            harness.compile_model(model, engines[kind], target=options.target, precision=options.precision,
                                  timeout=300, shapes={key: [(1, size, 64), *array.shape[1:]]})  # fmt: skip
            reps = -(-size // BATCH)
            inputs[kind] = {key: np.concatenate([array] * reps)[:size]}
            got = harness.run_all_outputs(engines[kind], {key: array}, scratch, device=options.device)
            error = harness.scaled_error(about["exact"], next(iter(got.values())).astype(np.float32))
            print(f"batch {size} {kind}: error {error:.1e}, {launches(engines[kind])}", flush=True)
        times = {kind: [] for kind in engines}
        for _ in range(options.rounds):
            for kind, engine in engines.items():
                times[kind].append(charonia_latency(engine, inputs[kind], device=options.device, seconds=options.seconds))
        least = {kind: min(values) * 1e3 for kind, values in times.items()}
        print(f"batch {size}: keras {least['keras']:.4f} ms, torch {least['torch']:.4f} ms, "
              f"ratio {least['keras'] / least['torch']:.3f}", flush=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("command", choices=("pack", "check", "beside"))
    add("folder", type=Path)
    add("names", nargs="*", metavar="NAME")
    add("--device", default="cuda")
    add("--target", default="cuda")
    add("--precision", default="fp16")
    add("--jobs", type=int, default=1)
    add("--batches", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8])
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    if options.command == "pack":
        for name in options.names or MODELS:
            pack(name, options.folder)
        return 0
    with tempfile.TemporaryDirectory(prefix="charonia-keras-") as scratch:
        if options.command == "beside":
            beside(options, Path(scratch))
            return 0
        names = options.names or [n for n in MODELS if (options.folder / n).exists()]
        with ThreadPoolExecutor(options.jobs) as pool:
            rows = list(pool.map(lambda n: check(n, options, Path(scratch)), names))
    print(harness.table(["model", "compiled s", "error", "emulated", "ratio", ""], rows))
    right = sum(row[-1] == "ok" for row in rows)
    print(f"{right} of {len(rows)} within {FACTOR} times the emulation's error")
    return int(right != len(rows))


if __name__ == "__main__":
    sys.exit(main())
