"""The models that the check and bench scripts work on, and their inputs.

Shapes and types come from the model file, so this needs no PyTorch; only the
PyTorch peer imports it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import harness
import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(harness.ROOT / "models"))

FULL = ("resnet18", "resnet50", "mobilenet_v2", "vit_b_16", "bert-base", "gpt2")


@dataclass
class Subject:
    """A model file and how to make its inputs."""

    name: str
    path: Path
    spec: object | None = None  # zoo.ModelSpec, when PyTorch is installed
    expected: Path | None = None  # .pb of a light model's output

    def graph(self) -> onnx.GraphProto:
        return onnx.load(self.path, load_external_data=False).graph

    def input_infos(self) -> list[onnx.ValueInfoProto]:
        graph = self.graph()
        constants = {t.name for t in graph.initializer}
        return [i for i in graph.input if i.name not in constants]


def dims_of(info) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]


def shape_ranges(subject: Subject, batches, sequences) -> dict[str, list]:
    """--shape of each input: the whole range that will be run."""
    ranges = {
        "batch": (min(batches), min(batches), max(batches)),
        "seq": (min(sequences), max(sequences), max(sequences)),
    }
    return {
        info.name: [ranges.get(d, d) if isinstance(d, str) else d for d in dims_of(info)]
        for info in subject.input_infos()
        if any(isinstance(d, str) for d in dims_of(info))
    }


def make_inputs(subject: Subject, batch: int, seq: int) -> dict[str, np.ndarray]:
    """Seeded inputs by declared shape and type; the same ones zoo.py would make."""
    rng = np.random.RandomState(1000 * batch + seq)
    values = {}
    for info in subject.input_infos():
        sizes = {"batch": batch, "seq": seq}
        dims = [sizes.get(d, d) for d in dims_of(info)]
        if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            x = np.round(rng.standard_normal(dims) * 32) / 32
            values[info.name] = x.astype(np.float32)
        elif info.name == "attention_mask":
            lengths = rng.randint((seq + 1) // 2, seq + 1, (batch, 1))
            lengths[0] = seq
            values[info.name] = (np.arange(seq) < lengths).astype(np.int64)
        elif info.name == "token_type_ids":
            values[info.name] = (np.arange(dims[1]) >= seq // 2).astype(np.int64)[
                None
            ].repeat(batch, 0)
        else:
            limit = vocabulary(subject)
            values[info.name] = rng.randint(0, limit, dims).astype(np.int64)
    return values


def vocabulary(subject: Subject) -> int:
    """Rows of the table that token ids index."""
    graph = subject.graph()
    tables = {t.name: t.dims for t in graph.initializer}
    ids = {"input_ids"}
    for node in graph.node:
        if node.op_type == "Gather" and node.input[1] in ids:
            return int(tables[node.input[0]][0])
        if node.op_type in ("Cast", "Identity", "Reshape") and node.input[0] in ids:
            ids.update(node.output)
    raise SystemExit(f"{subject.path}: no embedding of input_ids found")


def onnxruntime_session(path: Path, threads: int = 0):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )


def scaled_error(want: np.ndarray, got: np.ndarray) -> float:
    if want.shape != got.shape or not np.isfinite(got).all():
        return float("inf")
    scale = float(np.abs(want).max()) or 1.0
    return float(np.abs(want.astype(np.float64) - got.astype(np.float64)).max() / scale)


class TorchPeer:
    """The PyTorch module of a model, in its own reduced precision on the GPU."""

    def __init__(self, subject: Subject, precision: str):
        import torch
        import zoo

        dtypes = dict(fp16=torch.float16, bf16=torch.bfloat16, fp32=torch.float32)
        self.torch = torch
        self.dtype = dtypes.get(precision, torch.float32)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        self.module = zoo.build(zoo.FULL[subject.name]).to("cuda", self.dtype)

    def run(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        torch = self.torch
        tensors = []
        for value in inputs.values():
            tensor = torch.from_numpy(value).cuda()
            tensors.append(tensor.to(self.dtype) if tensor.is_floating_point() else tensor)
        with torch.no_grad():
            results = self.module(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        return [r.float().cpu().numpy() for r in results]


def liven(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Replaces the constant weights of a light model by seeded random ones.

    As they come, these models map every image to the same vector, which hides
    most errors.
    """
    rng = np.random.RandomState(seed)
    shapes = {t.name: t for t in model.graph.initializer}
    roles = {}  # weight -> (operator, operand)
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            roles.setdefault(name, (node.op_type, position))
    live = onnx.ModelProto()
    live.CopyFrom(model)
    del live.graph.node[:]
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            live.graph.node.append(node)
            continue
        dims = onnx.numpy_helper.to_array(shapes[node.input[0]])
        operator, position = roles.get(node.output[0], ("", 0))
        if operator in ("Conv", "Gemm") and position == 1:
            fan_in = np.prod(dims[1:]) if len(dims) > 1 else 1
            value = rng.standard_normal(dims) * (2 / fan_in) ** 0.5
        elif operator == "BatchNormalization" and position in (1, 4):
            value = rng.uniform(0.5, 1.5, dims)
        elif operator in ("Mul", "Unsqueeze"):
            value = rng.uniform(0.5, 1.5, dims)
        else:
            value = rng.standard_normal(dims) * 0.1
        array = value.astype(np.float32)
        live.graph.initializer.append(
            onnx.numpy_helper.from_array(array, node.output[0])
        )
    return live


def temper(model: onnx.ModelProto) -> None:
    """Scales the last layer so that the softmax behind it does not saturate."""
    if model.graph.node[-1].op_type != "Softmax":
        return
    logits = model.graph.node[-1].input[0]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.ValueInfoProto(name=logits))
    constants = {t.name: t for t in model.graph.initializer}
    info = next(i for i in model.graph.input if i.name not in constants)
    dims = dims_of(info)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options)
    sample = np.random.RandomState(0).standard_normal(dims).astype(np.float32)
    factor = 2 / session.run(None, {info.name: sample})[0].std()
    producers = {name: node for node in model.graph.node for name in node.output}
    node = producers[logits]
    while node.op_type not in ("Gemm", "Conv"):
        node = producers[node.input[0]]
    names = [
        producers[n].input[0] if n in producers else n  # behind a Reshape
        for n in node.input[1:3]
    ]
    for name in set(names) & set(constants):
        scaled = onnx.numpy_helper.to_array(constants[name]) * np.float32(factor)
        constants[name].CopyFrom(onnx.numpy_helper.from_array(scaled, name))


def light_models(folder: Path | None) -> list[Subject]:
    """The wheel's light models; with a folder, copies with random weights there."""
    source = Path(onnx.__file__).parent / "backend/test/data/light"
    found = []
    for path in sorted(source.glob("*.onnx")):
        if folder is None:
            expected = path.with_name(path.stem + "_output_0.pb")
            found.append(Subject(path.stem, path, expected=expected))
            continue
        copy = folder / f"{path.stem}.random.onnx"
        if not copy.exists():
            folder.mkdir(parents=True, exist_ok=True)
            live = liven(onnx.load(path))
            temper(live)
            onnx.save(live, copy)
        found.append(Subject(copy.stem, copy))
    return found


def compact_models() -> list[Subject]:
    folder = harness.ROOT / "models/compact"
    return [Subject(path.stem, path) for path in sorted(folder.glob("*.onnx"))]


def full_models(folder: Path) -> list[Subject]:
    """The models that models/export.py --output-dir wrote to `folder`."""
    found = [Subject(name, folder / name / "model.onnx") for name in FULL]
    for subject in found:
        if not subject.path.exists():
            sys.exit(f"{subject.path} is missing: run models/export.py --output-dir first")
    return found
