"""Cases of bench_gpu_ops.py: what has an order, groups' normalizations, transposed convolutions,
and single operators of every family, each as nodes of ONNX and in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from onnx import helper


@dataclass
class Case:
    name: str
    # The case's inputs: an array each, of float32 what is of the measured precision.
    inputs: Callable[[np.random.Generator], list[np.ndarray]]
    # nodes(inputs, output, prefix): the nodes from the named inputs to the output.
    nodes: Callable[[list[str], str, str], list]
    # The same in PyTorch; weights are tensors by name.
    torch: Callable
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    precision: str = "fp32"
    # The result's elements, where they are not of the measured precision.
    result: type | None = None
    opset: int = 21


def normal(*shapes):
    return lambda rng: [rng.standard_normal(shape, np.float32) for shape in shapes]


def weight(*shape, fan: int):
    rng = np.random.default_rng(1)
    return (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)


def constant(value, dtype=np.int64):
    return np.asarray(value, dtype)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def cumsum(shape, axis):
    return Case(
        f"CumSum {list(shape)} axis {axis}", normal(shape),
        lambda i, o, p: [node("CumSum", [i[0], "axis"], [o])],
        lambda torch, w, x: torch.cumsum(x, axis), dict(axis=constant(axis)),
    )  # fmt: skip


def topk(rows, columns, count):
    def inputs(rng):
        values = np.stack([rng.permutation(columns) for _ in range(rows)])
        return [values.astype(np.float32)]

    return Case(
        f"TopK {count} of {columns}, {rows} rows", inputs,
        lambda i, o, p: [node("TopK", [i[0], "k"], [o, f"{p}indices"])],
        lambda torch, w, x: torch.topk(x, count).values, dict(k=constant([count])),
    )  # fmt: skip


def scatter_elements(rows, updates, columns, reduction):
    def inputs(rng):
        # Distinct places of a column where the last one wins in no order.
        if reduction == "none":
            places = np.stack([rng.permutation(rows)[:updates] for _ in range(columns)], 1)
        else:
            places = rng.integers(0, rows, (updates, columns))
        return [
            rng.standard_normal((rows, columns), np.float32), places.astype(np.int64),
            rng.standard_normal(places.shape, np.float32),
        ]  # fmt: skip

    def run(torch, w, x, i, u):
        return x.scatter_add(0, i, u) if reduction == "add" else x.scatter(0, i, u)

    return Case(
        f"ScatterElements {reduction} {updates}x{columns} into {rows}x{columns}", inputs,
        lambda i, o, p: [node("ScatterElements", i, [o], axis=0, reduction=reduction)], run,
    )  # fmt: skip


def scatter_nd(rows, updates, columns):
    inner = [columns] if columns else []

    def inputs(rng):
        return [
            rng.standard_normal([rows, *inner], np.float32),
            rng.integers(0, rows, (updates, 1)).astype(np.int64),
            rng.standard_normal([updates, *inner], np.float32),
        ]

    return Case(
        f"ScatterND add {updates} of {rows}" + f"x{columns}" * bool(columns), inputs,
        lambda i, o, p: [node("ScatterND", i, [o], reduction="add")],
        lambda torch, w, x, i, u: x.index_add(0, i[:, 0], u),
    )  # fmt: skip


def group_norm(channels, groups, size, precision):
    weights = dict(
        w0=weight(channels, channels, 3, 3, fan=9 * channels),
        w1=weight(channels, channels, 3, 3, fan=9 * channels),
        scale=weight(channels, fan=1), shift=weight(channels, fan=4),
    )  # fmt: skip

    def nodes(i, o, p):
        t = lambda name: p + name
        pads = dict(pads=[1, 1, 1, 1])
        return [
            node("Conv", [i[0], "w0"], [t("a")], **pads),
            node("GroupNormalization", [t("a"), "scale", "shift"], [t("b")], num_groups=groups),
            node("Sigmoid", [t("b")], [t("c")]), node("Mul", [t("b"), t("c")], [t("d")]),
            node("Conv", [t("d"), "w1"], [o], **pads),
        ]  # fmt: skip

    def run(torch, w, x):
        f = torch.nn.functional
        y = f.group_norm(f.conv2d(x, w["w0"], padding=1), groups, w["scale"], w["shift"])
        return f.conv2d(f.silu(y), w["w1"], padding=1)

    return Case(
        f"Conv, GroupNorm {channels}/{groups}, SiLU, Conv {size}x{size} {precision}",
        normal((1, channels, size, size)), nodes, run, weights, precision,
    )  # fmt: skip


def conv_transpose(inner, outer, kernel, size, precision, **extra):
    weights = dict(w=weight(inner, outer, kernel, kernel, fan=inner * kernel))
    pads = 1 if kernel > 2 else 0
    return Case(
        f"ConvTranspose {inner}to{outer} k{kernel} s2 {size}x{size} {precision}",
        normal((1, inner, size, size)),
        lambda i, o, p: [node("ConvTranspose", [i[0], "w"], [o], strides=[2, 2], pads=[pads] * 4)],
        lambda torch, w, x: torch.nn.functional.conv_transpose2d(x, w["w"], stride=2, padding=pads),
        weights, precision,
    )  # fmt: skip


def single(op, shapes, run, constants=(), title="", precision="fp32", result=None, weights=None, inputs=None,
           outputs=1, opset=21, **attributes):
    """One node: its inputs, then constants, then weights by name."""
    named = {f"c{n}": value for n, value in enumerate(constants)}
    held = dict(weights or {})

    def nodes(i, o, p):
        names = [*i, *named, *held]
        names = [n if named.get(n, 0) is not None else "" for n in names]
        return [node(op, names, [o, *(f"{p}{n}" for n in range(1, outputs))], **attributes)]

    return Case(
        title or f"{op} {' '.join(str(list(s)) for s in shapes)}", inputs or normal(*shapes), nodes, run,
        {n: v for n, v in {**named, **held}.items() if v is not None}, precision, result, opset,
    )  # fmt: skip


def arg_max(*shape):
    return single(
        "ArgMax", [shape], lambda torch, w, x: x.argmax(1, keepdim=True), result=np.int64, axis=1,
        title=f"ArgMax {list(shape)} axis 1",
    )  # fmt: skip


CASES = [
    cumsum((16000,), 0), cumsum((64000,), 0), cumsum((8, 512, 256), 1), cumsum((1024, 4096), 1),
    topk(1, 8400, 100), topk(32, 300, 10), topk(256, 64, 8), topk(64, 50257, 50),
    scatter_elements(1000, 5000, 64, "add"), scatter_elements(5000, 1000, 64, "none"),
    scatter_elements(100000, 50000, 64, "add"),
    scatter_nd(1000, 5000, 0), scatter_nd(1000, 500, 64),
    group_norm(320, 32, 32, "fp16"), group_norm(320, 32, 64, "fp16"), group_norm(64, 8, 32, "fp32"),
    conv_transpose(16, 3, 4, 64, "fp16"), conv_transpose(64, 64, 3, 32, "fp16"),
    conv_transpose(128, 64, 4, 16, "fp16"), conv_transpose(64, 32, 2, 64, "fp16"),
    conv_transpose(512, 256, 2, 64, "fp16"),
    arg_max(2048, 1000), arg_max(1, 21, 512, 512), arg_max(1, 50257), arg_max(64, 50257), arg_max(8, 150, 128, 128),
    single("Softmax", [(2048, 1000)], lambda torch, w, x: x.softmax(1), axis=1),
    single("LogSoftmax", [(2048, 1000)], lambda torch, w, x: x.log_softmax(1), axis=1),
]  # fmt: skip


def functional(torch):
    return torch.nn.functional


def indexed(shape, places, below):
    """A tensor, and places in it."""
    return lambda rng: [
        rng.standard_normal(shape, np.float32), rng.integers(0, below, places).astype(np.int64),
    ]  # fmt: skip


def sample_grid(shape, size, smooth=False):
    """Places at random, or those of a turned image, whose neighbours are neighbours."""

    def turned(rng):
        y, x = np.meshgrid(*[np.linspace(-1, 1, size)] * 2, indexing="ij")
        return np.stack([0.9 * x - 0.2 * y, 0.2 * x + 0.9 * y], -1)[None].repeat(shape[0], 0)

    grid = turned if smooth else lambda rng: rng.uniform(-1, 1, (shape[0], size, size, 2))
    return lambda rng: [rng.standard_normal(shape, np.float32), grid(rng).astype(np.float32)]


def resize(mode, shape):
    how = {"nearest": {}, "linear": dict(align_corners=False), "cubic": dict(align_corners=False)}[mode]
    name = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}[mode]
    return single(
        "Resize", [shape], lambda torch, w, x: functional(torch).interpolate(x, scale_factor=2, mode=name, **how),
        [None, constant([1, 1, 2, 2], np.float32)], title=f"Resize {mode} x2 {list(shape)}", mode=mode,
        **(dict(coordinate_transformation_mode="asymmetric", nearest_mode="floor") if mode == "nearest" else {}),
        **(dict(cubic_coeff_a=-0.75) if mode == "cubic" else {}),
    )  # fmt: skip


def dynamic_quantize(torch, w, x):
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = (high - low) / 255
    zero = (-low / scale).round().clamp(0, 255)
    return ((x / scale).round() + zero).clamp(0, 255).to(torch.uint8)


def convolution(shape, filters, groups, title, precision="fp16", **attributes):
    pad = filters[-1] // 2

    def run(torch, w, x):
        return functional(torch).conv2d(x, w["f"], padding=pad, groups=groups)

    return single(
        "Conv", [shape], run, title=f"Conv {title} {list(shape)} {precision}", precision=precision, pads=[pad] * 4,
        group=groups, weights=dict(f=weight(*filters, fan=int(np.prod(filters[1:])))), **attributes,
    )  # fmt: skip


def lstm(steps, width):
    fan = dict(fan=width)
    weights = dict(w=weight(1, 4 * width, width, **fan), r=weight(1, 4 * width, width, **fan))

    def run(torch, w, x):
        # Gates are i, o, f, c here and i, f, c, o there.
        turned = [
            torch.cat([v[0].chunk(4)[n] for n in (0, 2, 3, 1)]) for v in (w["w"], w["r"])
        ]
        zero = torch.zeros(1, 1, width, device=x.device)
        return torch.lstm(x, (zero, zero), turned, False, 1, 0.0, False, False, False)[0].unsqueeze(1)

    return single(
        "LSTM", [(steps, 1, width)], run, title=f"LSTM {steps} steps of {width}", weights=weights, hidden_size=width
    )


IMAGE, ROWS = (8, 64, 112, 112), (2048, 1000)
NORMS = dict(scale=weight(64, fan=1), shift=weight(64, fan=4))
# A large case of what the benchmark of operators on the CPU has and PyTorch too.
OTHERS = [
    single("Transpose", [(4096, 4096)], lambda torch, w, x: x.t().contiguous(), perm=[1, 0]),
    single("Transpose", [IMAGE], lambda torch, w, x: x.permute(0, 2, 3, 1).contiguous(), perm=[0, 2, 3, 1]),
    single("Transpose", [(8, 128, 12, 64)], lambda torch, w, x: x.transpose(1, 2).contiguous(), perm=[0, 2, 1, 3]),
    single("Transpose", [IMAGE], lambda torch, w, x: x.permute(0, 2, 3, 1).contiguous(), perm=[0, 2, 3, 1],
           precision="fp16", title=f"Transpose {list(IMAGE)} fp16"),
    single("Concat", [(1024, 1024)] * 3, lambda torch, w, *x: torch.cat(x, 1), axis=1),
    single("Slice", [(2048, 2048)], lambda torch, w, x: x[:, ::2].contiguous(),
           [constant([v]) for v in (0, 2048, 1, 2)], title="Slice of every second [2048, 2048]"),
    single("Pad", [IMAGE], lambda torch, w, x: functional(torch).pad(x, (1,) * 4), [constant([0, 0, 1, 1] * 2)]),
    single("Pad", [IMAGE], lambda torch, w, x: functional(torch).pad(x, (1,) * 4, mode="reflect"),
           [constant([0, 0, 1, 1] * 2)], title=f"Pad by reflection {list(IMAGE)}", mode="reflect"),
    single("DepthToSpace", [IMAGE], lambda torch, w, x: functional(torch).pixel_shuffle(x, 2), blocksize=2, mode="CRD"),
    single("Tile", [(1024, 1024)], lambda torch, w, x: x.repeat(2, 2), [constant([2, 2])]),
    single("Trilu", [(4096, 4096)], lambda torch, w, x: x.triu()),
    single("Gelu", [(4096, 4096)], lambda torch, w, x: functional(torch).gelu(x)),
    single("Pow", [(4096, 4096)], lambda torch, w, x: x**3, [constant(3.0, np.float32)]),
    single("ReduceSum", [ROWS], lambda torch, w, x: x.sum(1), [constant([1])], title="ReduceSum of rows", keepdims=0),
    single("ReduceSum", [ROWS], lambda torch, w, x: x.sum(0), [constant([0])], title="ReduceSum of columns", keepdims=0),
    single("ReduceSum", [(1 << 24,)], lambda torch, w, x: x.sum(), [constant([0])], title="ReduceSum of 2^24", keepdims=0),
    single("ReduceMax", [(64, 50257)], lambda torch, w, x: x.amax(1), [constant([1])], keepdims=0),
    single("ReduceLogSumExp", [ROWS], lambda torch, w, x: x.logsumexp(1), [constant([1])], keepdims=0),
    single("ReduceMean", [IMAGE], lambda torch, w, x: x.mean((0, 2, 3)), [constant([0, 2, 3])],
           title="ReduceMean of channels", keepdims=0),
    single("GlobalAveragePool", [IMAGE], lambda torch, w, x: x.mean((2, 3), keepdim=True)),
    single("Softmax", [ROWS], lambda torch, w, x: x.softmax(0), title="Softmax of columns", axis=0),
    single("InstanceNormalization", [IMAGE], lambda torch, w, x: functional(torch).instance_norm(
        x, weight=w["scale"], bias=w["shift"]), weights=NORMS),
    single("GroupNormalization", [IMAGE], lambda torch, w, x: functional(torch).group_norm(
        x, 8, w["scale"], w["shift"]), weights=NORMS, num_groups=8),
    single("LRN", [IMAGE], lambda torch, w, x: functional(torch).local_response_norm(x, 5), size=5),
    single("CumProd", [(2048, 1000)], lambda torch, w, x: x.cumprod(1), [constant(1)], opset=26),
    single("MaxPool", [IMAGE], lambda torch, w, x: functional(torch).max_pool2d(x, 3, 2, 1),
           kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    single("AveragePool", [IMAGE], lambda torch, w, x: functional(torch).avg_pool2d(x, 3, 2, 1, False, False),
           kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    single("Gather", [], lambda torch, w, x, i: x[i], inputs=indexed((50257, 768), (4096,), 50257),
           title="Gather 4096 of 50257x768"),
    single("Gather", [], lambda torch, w, x, i: x[:, i], inputs=indexed(ROWS, (1000,), 1000), title="Gather of columns",
           axis=1),
    single("GatherElements", [], lambda torch, w, x, i: x.gather(1, i), inputs=indexed(ROWS, (2048, 500), 1000), axis=1,
           title="GatherElements 500 of 1000, 2048 rows"),
    resize("nearest", (1, 64, 256, 256)), resize("linear", (1, 64, 256, 256)), resize("cubic", (1, 64, 256, 256)),
    single("GridSample", [], lambda torch, w, x, g: functional(torch).grid_sample(x, g, align_corners=False),
           inputs=sample_grid((1, 32, 256, 256), 256), title="GridSample [1, 32, 256, 256]"),
    single("GridSample", [], lambda torch, w, x, g: functional(torch).grid_sample(x, g, align_corners=False),
           inputs=sample_grid((1, 32, 256, 256), 256, smooth=True), title="GridSample of a turned image"),
    single("GridSample", [], lambda torch, w, x, g: functional(torch).grid_sample(x, g, align_corners=False),
           inputs=sample_grid((4, 3, 224, 224), 224, smooth=True), title="GridSample of turned pictures"),
    single("DynamicQuantizeLinear", [(2048, 1024)], dynamic_quantize, result=np.uint8, outputs=3),
    convolution((8, 64, 56, 56), (64, 1, 3, 3), 64, "3x3, depthwise"),
    convolution((1, 64, 56, 56), (64, 1, 31, 31), 64, "31x31, depthwise"),
    convolution((8, 64, 56, 56), (64, 8, 3, 3), 8, "3x3, groups of 8"),
    lstm(32, 256),
]  # fmt: skip
CASES += OTHERS
