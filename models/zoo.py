"""The models that Charonia is tested and measured on, as PyTorch modules.

Each entry builds the real architecture (torchvision's or transformers' own
classes, or their blocks with fewer and narrower layers) with seeded random
weights. Nothing is downloaded. The export script, the PyTorch side of
`charonia compare --with torch` and the GPU benchmarks all build their modules
here, so they have the same weights.

Random weights prove something only if activations stay alive, so:
  * every linear layer keeps the variance of its input, and no head is zero;
  * query and key projections are scaled so that attention is far from uniform;
  * biases and the scale and shift of every normalization are random: a compiler
    that drops one of them is caught;
  * batch-norm statistics are those of a forward pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
import torchvision
from torch import nn

# Ratio of the standard deviation of attention logits to that of unit-variance
# queries and keys; 1.5 makes the largest weight of a row dominate visibly.
ATTENTION_GAIN = 1.5


@dataclass(frozen=True)
class ModelSpec:
    """One model: how to build it, what goes in and out, how to export it.

    `inputs(batch, seq, rng)` returns the inputs by name, in the order of the
    module's positional arguments; `seq` is ignored by models without a sequence.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[int, int, np.random.RandomState], dict[str, np.ndarray]]
    outputs: tuple[str, ...]
    # Names of the dynamic dimensions, by input and axis.
    dynamic: Mapping[str, Mapping[int, str]]
    # Names of the dynamic dimensions, by output and axis.
    dynamic_outputs: Mapping[str, Mapping[int, str]]
    exporter: str = "dynamo"  # "dynamo" or "legacy" (TorchScript tracing)
    opset: int = 18
    seed: int = 0
    batches: tuple[int, ...] = (1, 3, 8)
    sequences: tuple[int, ...] = (0,)
    # Sequence length of the committed sample input and of benchmarks.
    bench_sequence: int = 0
    seq_max: int = 0

    def shapes(self) -> list[tuple[int, int]]:
        """The (batch, sequence) pairs every correctness check covers."""
        return [(b, s) for b in self.batches for s in self.sequences]


def _normal_(tensor: torch.Tensor, std: float, mean: float = 0.0) -> None:
    with torch.no_grad():
        tensor.normal_(mean, std)


def randomize_(model: nn.Module) -> None:
    """Gives every parameter of `model` a seeded value that keeps signals alive."""
    from transformers.pytorch_utils import Conv1D

    for name, module in model.named_modules():
        is_query_key = name.rsplit(".", 1)[-1] in ("query", "key")
        gain = ATTENTION_GAIN**0.5 if is_query_key else 1.0
        if isinstance(module, nn.MultiheadAttention):
            # in_proj_weight stacks query, key and value by rows.
            width = module.embed_dim
            _normal_(module.in_proj_weight, width**-0.5)
            with torch.no_grad():
                module.in_proj_weight[: 2 * width] *= ATTENTION_GAIN**0.5
            _normal_(module.in_proj_bias, 0.1)
        elif isinstance(module, nn.Linear):
            _normal_(module.weight, gain * module.in_features**-0.5)
            if module.bias is not None:
                _normal_(module.bias, 0.1)
        elif isinstance(module, Conv1D):
            # [in, out]; c_attn stacks query, key and value by columns.
            _normal_(module.weight, module.weight.shape[0] ** -0.5)
            if name.endswith("c_attn"):
                with torch.no_grad():
                    width = module.weight.shape[1] // 3
                    module.weight[:, : 2 * width] *= ATTENTION_GAIN**0.5
            _normal_(module.bias, 0.1)
        elif isinstance(module, nn.Conv2d):
            fan_in = module.weight[0].numel()
            _normal_(module.weight, (2.0 / fan_in) ** 0.5)
            if module.bias is not None:
                _normal_(module.bias, 0.1)
        elif isinstance(module, nn.Embedding):
            _normal_(module.weight, module.embedding_dim**-0.5)
        elif isinstance(module, (nn.LayerNorm, nn.BatchNorm2d)):
            _normal_(module.weight, 0.1, mean=1.0)
            _normal_(module.bias, 0.1)
    for name, parameter in model.named_parameters():
        if name.endswith(("class_token", "pos_embedding")):
            _normal_(parameter, 0.5)


def calibrate_batch_norm_(model: nn.Module, sample: torch.Tensor) -> None:
    """Sets running mean and variance to those of `sample` as it flows through."""
    layers = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    if not layers:
        return
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # plain average, so one pass sets the statistics
    model.train()
    with torch.no_grad():
        model(sample)
    model.eval()
    for layer in layers:
        layer.momentum = 0.1


def _vision(build: Callable[[], nn.Module], size: int, calibration: int):
    """A builder of a seeded, calibrated image model."""

    def make() -> nn.Module:
        model = build()
        randomize_(model)
        sample = torch.randn(calibration, 3, size, size)
        calibrate_batch_norm_(model, sample)
        return model

    return make


def _image_inputs(size: int):
    def inputs(batch, _seq, rng):
        # Multiples of 1/32: exact in every float type, and they compress well.
        x = np.round(rng.standard_normal((batch, 3, size, size)) * 32) / 32
        return {"x": x.astype(np.float32)}

    return inputs


class CompactResNet(nn.Module):
    """torchvision's own blocks of both kinds in a short, narrow ResNet."""

    def __init__(self, classes: int = 40):
        super().__init__()
        from torchvision.models.resnet import BasicBlock, Bottleneck

        def project(cin, cout, stride):
            conv = nn.Conv2d(cin, cout, 1, stride, bias=False)
            return nn.Sequential(conv, nn.BatchNorm2d(cout))

        self.conv1 = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = BasicBlock(16, 16)
        self.layer2 = BasicBlock(16, 24, 2, project(16, 24, 2))
        self.layer3 = Bottleneck(24, 16, 2, project(24, 64, 2))
        self.layer4 = Bottleneck(64, 16)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def _compact_mobilenet() -> nn.Module:
    settings = [[1, 8, 1, 1], [6, 16, 2, 2], [6, 24, 1, 2]]
    return torchvision.models.MobileNetV2(
        num_classes=40, width_mult=0.25, inverted_residual_setting=settings
    )


def _compact_vit() -> nn.Module:
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=4,
        hidden_dim=64, mlp_dim=128, num_classes=40,
    )  # fmt: skip


def _bert(attention: str = "sdpa", **config):
    """A builder of BERT; without keywords this is bert-base-uncased."""

    def make() -> nn.Module:
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig(attn_implementation=attention, **config))
        randomize_(model)
        return Positional(model, ("last_hidden_state", "pooler_output"), BERT_INPUTS)

    return make


def _gpt2(attention: str = "sdpa", **config):
    """A builder of GPT-2; without keywords this is gpt2 (124M)."""

    def make() -> nn.Module:
        from transformers import GPT2Config, GPT2LMHeadModel

        settings = GPT2Config(attn_implementation=attention, use_cache=False, **config)
        model = GPT2LMHeadModel(settings)
        randomize_(model)
        return CausalLM(model, ("logits",), ("input_ids",))

    return make


class Positional(nn.Module):
    """Calls a transformers model with positional inputs, returns plain tensors."""

    def __init__(self, model: nn.Module, outputs, inputs):
        super().__init__()
        self.model = model
        self.output_names = tuple(outputs)
        self.input_names = tuple(inputs)

    def forward(self, *args):
        named = dict(zip(self.input_names, args))
        result = self.model(**named, return_dict=True)
        values = tuple(getattr(result, name) for name in self.output_names)
        return values if len(values) > 1 else values[0]


class CausalLM(Positional):
    """Exports the causal mask as a lower triangle, as decoders usually have it.

    Without this, transformers exports its search for several sequences packed
    in a row (a CumSum of position differences), which no inference needs.
    """

    def forward(self, ids):
        mask = None
        exports = torch.compiler.is_exporting() and not torch.compiler.is_dynamo_compiling()
        if exports or torch.jit.is_tracing():
            length = ids.shape[1]
            keep = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
            mask = keep
            if self.model.config._attn_implementation == "eager":  # wants a summand
                mask = torch.zeros(1, 1, length, length)
                mask = mask.masked_fill(~keep, torch.finfo(mask.dtype).min)
        return self.model(ids, attention_mask=mask, return_dict=True).logits


BERT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def _bert_inputs(vocabulary: int):
    def inputs(batch, seq, rng):
        ids = rng.randint(0, vocabulary, (batch, seq)).astype(np.int64)
        # Rows of a batch have different lengths, as padded text has.
        lengths = rng.randint((seq + 1) // 2, seq + 1, (batch, 1))
        lengths[0] = seq
        mask = (np.arange(seq)[None, :] < lengths).astype(np.int64)
        types = (np.arange(seq)[None, :] >= lengths // 2).astype(np.int64)
        types = np.broadcast_to(types, (batch, seq)).copy()
        return dict(zip(BERT_INPUTS, (ids, mask, types)))

    return inputs


def _gpt2_inputs(vocabulary: int):
    def inputs(batch, seq, rng):
        return {"input_ids": rng.randint(0, vocabulary, (batch, seq)).astype(np.int64)}

    return inputs


_IMAGE = dict(
    outputs=("logits",),
    dynamic={"x": {0: "batch"}},
    dynamic_outputs={"logits": {0: "batch"}},
)
_BERT = dict(
    outputs=("last_hidden_state", "pooler_output"),
    dynamic={name: {0: "batch", 1: "seq"} for name in BERT_INPUTS},
    dynamic_outputs={
        "last_hidden_state": {0: "batch", 1: "seq"},
        "pooler_output": {0: "batch"},
    },
    sequences=(1, 37, 128),
)
_GPT2 = dict(
    outputs=("logits",),
    dynamic={"input_ids": {0: "batch", 1: "seq"}},
    dynamic_outputs={"logits": {0: "batch", 1: "seq"}},
    sequences=(1, 37, 128),
)
_NARROW_BERT = dict(
    vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=128, max_position_embeddings=160,
)  # fmt: skip
_NARROW_GPT2 = dict(
    vocab_size=96, n_positions=160, n_embd=64, n_layer=2, n_head=4,
    bos_token_id=0, eos_token_id=0,
)  # fmt: skip


def _full(name: str, factory, **options) -> ModelSpec:
    make = _vision(lambda: factory(weights=None), 224, 8)
    return ModelSpec(name, make, _image_inputs(224), **_IMAGE, **options)


FULL = {
    spec.name: spec
    for spec in (
        _full("resnet18", torchvision.models.resnet18, exporter="legacy", opset=13),
        _full("resnet50", torchvision.models.resnet50),
        _full("mobilenet_v2", torchvision.models.mobilenet_v2),
        _full("vit_b_16", torchvision.models.vit_b_16),
        ModelSpec(
            "bert-base", _bert(), _bert_inputs(30522), bench_sequence=128,
            seq_max=512, **_BERT,
        ),
        ModelSpec(
            "gpt2", _gpt2(), _gpt2_inputs(50257), bench_sequence=512,
            seq_max=1024, **_GPT2,
        ),
    )
}  # fmt: skip

# Both exporters, since they decompose the same module differently.
COMPACT = {
    spec.name: spec
    for spec in (
        ModelSpec("resnet", _vision(CompactResNet, 48, 32), _image_inputs(48), **_IMAGE),
        ModelSpec(
            "resnet_legacy", _vision(CompactResNet, 48, 32), _image_inputs(48),
            exporter="legacy", opset=13, **_IMAGE,
        ),
        ModelSpec("mobilenet_v2", _vision(_compact_mobilenet, 48, 32), _image_inputs(48), **_IMAGE),
        ModelSpec("vit", _vision(_compact_vit, 32, 8), _image_inputs(32), **_IMAGE),
        ModelSpec(
            "vit_legacy", _vision(_compact_vit, 32, 8), _image_inputs(32),
            exporter="legacy", opset=17, **_IMAGE,
        ),
        ModelSpec(
            "bert", _bert(**_NARROW_BERT), _bert_inputs(200), opset=20,
            bench_sequence=37, seq_max=128, **_BERT,
        ),
        ModelSpec(
            "bert_legacy", _bert("eager", **_NARROW_BERT), _bert_inputs(200),
            exporter="legacy", opset=14, bench_sequence=37, seq_max=128, **_BERT,
        ),
        ModelSpec(
            "gpt2", _gpt2(**_NARROW_GPT2), _gpt2_inputs(96),
            bench_sequence=37, seq_max=128, **_GPT2,
        ),
        ModelSpec(
            "gpt2_legacy", _gpt2("eager", **_NARROW_GPT2), _gpt2_inputs(96),
            exporter="legacy", opset=17, bench_sequence=37, seq_max=128, **_GPT2,
        ),
    )
}  # fmt: skip


def build(spec: ModelSpec) -> nn.Module:
    """The module of `spec`, in evaluation mode, with its seeded weights."""
    torch.manual_seed(spec.seed)
    model = spec.build().eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model


def sample_inputs(spec: ModelSpec, batch: int, seq: int) -> dict[str, np.ndarray]:
    """The inputs every script uses for this model at this shape."""
    rng = np.random.RandomState(1000 * batch + seq + spec.seed)
    return spec.inputs(batch, seq, rng)


def dynamic_shapes(spec: ModelSpec, module: torch.nn.Module) -> tuple:
    """What torch.export takes as the dynamic dimensions of `module`'s inputs."""
    dims = {
        "batch": torch.export.Dim("batch", min=1, max=64),
        "seq": torch.export.Dim("seq", min=1, max=spec.seq_max or 2),
    }
    shapes = tuple(
        {axis: dims[name] for axis, name in spec.dynamic[i].items()}
        for i in sample_inputs(spec, 2, 24)
    )
    return (shapes,) if type(module) is Positional else shapes  # one variadic parameter
