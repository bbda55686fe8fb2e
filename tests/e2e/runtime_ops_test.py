"""ONNX Runtime's own operators, as its optimizers and quantizers write them, beside ONNX Runtime."""

from __future__ import annotations

import harness
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

F32, I8, U8, I32, I64 = np.float32, np.int8, np.uint8, np.int32, np.int64


class Random:
    def __init__(self, seed: int = 3):
        self.rng = np.random.default_rng(seed)

    def floats(self, *shape: int, scale: float = 1) -> np.ndarray:
        return (self.rng.standard_normal(shape) * scale).astype(F32)

    def integers(self, dtype, *shape: int) -> np.ndarray:
        info = np.iinfo(dtype)
        return self.rng.integers(info.min, info.max, shape, dtype, endpoint=True)

    def weights(self, *shape: int) -> np.ndarray:
        """Of 7 bits: on a CPU without VNNI two products of 8 bits saturate ONNX Runtime's sums of 16."""
        return self.rng.integers(-64, 63, shape, I8, endpoint=True)


def make(op: str, inputs: list, attributes: dict, fixed=(), outputs: int = 1, domain="com.microsoft", opset=17):
    """The model of one node; `inputs` may be None, those at `fixed` are initializers."""
    names = [f"i{i}" if v is not None else "" for i, v in enumerate(inputs)]
    results = [f"o{i}" for i in range(outputs)]
    given = {n: np.asarray(v) for n, v in zip(names, inputs) if n}
    graph = helper.make_graph(
        [helper.make_node(op, names, results, name="n", domain=domain, **attributes)], "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for i, n in enumerate(names) if n and i not in fixed for v in [given[n]]
        ],
        [helper.make_empty_tensor_value_info(r) for r in results],
        [onnx.numpy_helper.from_array(given[names[i]], names[i]) for i in fixed],
    )  # fmt: skip
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, ir_version=9, opset_imports=imports)


def ours(tmp_path, model, feeds):
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(model, path)
    harness.compile_model(path, engine)
    return harness.run_engine(engine, feeds, [o.name for o in model.graph.output], tmp_path)


def runtimes(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feeds)


def compare(tmp_path, model, inputs, wanted=None):
    feeds = {i.name: np.asarray(inputs[int(i.name[1:])]) for i in model.graph.input}
    got, want = ours(tmp_path, model, feeds), runtimes(model, feeds)
    for i in range(len(want)) if wanted is None else wanted:
        assert got[i].shape == want[i].shape
        assert got[i].dtype == want[i].dtype
        if want[i].dtype.kind == "f":
            np.testing.assert_allclose(got[i], want[i], 2e-5, 2e-5)
        else:
            # A value between two integers may round either way.
            apart = np.abs(got[i].astype(I32) - want[i].astype(I32))
            assert apart.max(initial=0) <= 1
            assert (apart != 0).mean() < 0.02


def normalizations():
    r = Random()
    x, skip, gamma, beta, bias = r.floats(2, 5, 32), r.floats(2, 5, 32), r.floats(32), r.floats(32), r.floats(32)
    ids, segments = r.rng.integers(0, 20, (2, 5), I32), r.rng.integers(0, 2, (2, 5), I32)
    tables = [r.floats(20, 32), r.floats(9, 32), r.floats(2, 32)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], I32)
    yield "skip", "SkipLayerNormalization", [x, skip, gamma, beta, bias], {"epsilon": 1e-5}, {"outputs": 4, "wanted": [0, 3]}
    yield "skip-spread", "SkipLayerNormalization", [x, skip[:1], gamma], {}, {}
    yield "skip-rms", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], {"epsilon": 1e-6}, {"outputs": 4, "wanted": [0, 3]}
    yield "embed", "EmbedLayerNormalization", [ids, segments, *tables, gamma, beta, mask], {"mask_index_type": 1}, {"outputs": 3}
    yield "embed-positions", "EmbedLayerNormalization", [ids, None, *tables[:2], None, gamma, beta, None, ids % 9], {}, {"outputs": 2, "wanted": [0]}
    tables[2:] = [*tables[2:], gamma, beta]
    quantized = [r.integers(U8, *t.shape) for t in tables]
    scales = [F32(0.01 + 0.003 * k) for k in range(5)]
    yield "embed-bytes", "QEmbedLayerNormalization", [ids, segments, *quantized, mask, *scales, *(U8(100 + k) for k in range(5))], {}, {
        "outputs": 2, "fixed": [*range(2, 7), *range(8, 18)]}  # fmt: skip
    signed = [q.astype(I8) for q in quantized[:2]], [q.astype(I8) for q in quantized[3:]]
    without = lambda parts: [*parts[:2], None, *parts[3:]]  # noqa: E731
    yield "embed-bytes-signed", "QEmbedLayerNormalization", [ids, None, *signed[0], None, *signed[1], None, *without(scales), *without([I8(k) for k in range(5)])], {
        "epsilon": 1e-5}, {"outputs": 2, "wanted": [0]}  # fmt: skip
    yield "layer-old", "LayerNormalization", [x, gamma, beta], {"epsilon": 1e-5}, {"domain": "", "opset": 14}
    yield "layer-rms", "SimplifiedLayerNormalization", [x, gamma], {"epsilon": 1e-5}, {"domain": "", "opset": 14}


def elementwise():
    r = Random()
    x, bias = r.floats(3, 7, 16, scale=3), r.floats(16)
    yield "gelu", "Gelu", [x], {}, {}
    yield "bias-gelu", "BiasGelu", [x, bias], {}, {}
    yield "fast-gelu", "FastGelu", [x, bias], {}, {}
    yield "fast-gelu-plain", "FastGelu", [x], {}, {}
    yield "quick-gelu", "QuickGelu", [x], {"alpha": 1.5}, {}


def products():
    r = Random()
    yield "matmul", "FusedMatMul", [r.floats(2, 5, 4), r.floats(2, 7, 5)], {"transA": 1, "transB": 1, "alpha": 0.25}, {}
    yield "matmul-batch", "FusedMatMul", [r.floats(4, 2, 3, 5), r.floats(6, 2, 3, 5)], {"transBatchA": 1, "transBatchB": 1, "transB": 1}, {}
    yield "matmul-batch-matrix", "FusedMatMul", [r.floats(5, 2, 3, 4), r.floats(2, 3, 5, 6)], {"transBatchA": 1, "transA": 1}, {}
    for activation, parameters in {"Relu": {}, "Tanh": {}, "LeakyRelu": {"activation_alpha": 0.2}, "Sigmoid": {}}.items():
        yield f"gemm-{activation}", "FusedGemm", [r.floats(3, 5), r.floats(4, 5), r.floats(4)], {
            "transB": 1, "alpha": 0.5, "activation": activation, **parameters}, {}  # fmt: skip
    conv = [r.floats(1, 6, 9, 9), r.floats(8, 3, 3, 3), r.floats(8)]
    window = {"group": 2, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    for activation, parameters in {"Relu": [], "LeakyRelu": [0.1], "Clip": [0.0, 1.0], "HardSigmoid": [0.3, 0.4]}.items():
        yield f"conv-{activation}", "FusedConv", conv, {
            **window, "activation": activation, **({"activation_params": parameters} if parameters else {})}, {}  # fmt: skip
    yield "conv-sum", "FusedConv", [*conv, r.floats(1, 8, 9, 9)], {**window, "activation": "Relu"}, {}


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Along the last dimension, the lowest first."""
    each = 8 // bits
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], -values.shape[-1] % each), U8)], -1)
    parts = padded.reshape(*padded.shape[:-1], -1, each).astype(np.uint32)
    return (parts << (np.arange(each, dtype=np.uint32) * bits)).sum(-1).astype(U8)


def quantized_weights():
    for bits, block, depth, points in [(4, 32, 96, "packed"), (4, 16, 80, None), (4, 32, 70, "packed"), (8, 32, 64, "packed"),
                                       (2, 32, 64, "packed"), (4, 32, 64, "float")]:  # fmt: skip
        r = Random(bits + depth)
        blocks, rows = -(-depth // block), 24
        values = r.rng.integers(0, 1 << bits, (rows, blocks, block), U8)
        zero = r.rng.integers(0, 1 << bits, (rows, blocks), U8)
        inputs = [r.floats(3, 5, depth), packed(values, bits), np.abs(r.floats(rows, blocks)) * F32(0.1) + F32(0.01)]
        inputs += {"packed": [packed(zero, bits)], "float": [zero.astype(F32)], None: []}[points]
        attributes = {"N": rows, "K": depth, "bits": bits, "block_size": block}
        yield f"bits-{bits}-{block}-{depth}-{points}", "MatMulNBits", inputs, attributes, {"fixed": range(1, len(inputs))}


def narrow_weights():
    """As quantize_static(weight_type=QInt4) writes them below opset 21."""
    r = Random()
    for kind in (ml_dtypes.int4, ml_dtypes.uint4):
        info = ml_dtypes.iinfo(kind)
        q = r.rng.integers(info.min, info.max + 1, (6, 5)).astype(kind)
        z = r.rng.integers(info.min, info.max + 1, 5).astype(kind)
        s = np.abs(r.floats(5)) + F32(0.1)
        name = np.dtype(kind).name
        yield f"{name}", "DequantizeLinear", [q, F32(0.3), z[2]], {}, {"fixed": range(3)}
        yield f"{name}-axis", "DequantizeLinear", [q, s, z], {"axis": 1}, {"fixed": range(3)}
        yield f"{name}-points", "DequantizeLinear", [q, F32(0.3)], {}, {"fixed": range(2)}


def gathered_blocks():
    """Rows of tables of few bits; the quantizer writes those of INT4, along the last axis."""
    r = Random()
    i, j = np.array([[3, 0, -1], [2, 2, 5]], I64), np.array([1, -2], I32)

    def case(name, kind, shape, indices, points, dtype=F32, **attributes):
        axis, block, bits = attributes.get("quantize_axis", 1), attributes["block_size"], attributes.get("bits", 4)
        scales = list(shape)
        scales[axis] = -(-shape[axis] // block)
        of = lambda s: r.rng.integers(0, 1 << bits, s, U8)  # noqa: E731
        if kind is U8:
            table, zero = packed(of(shape), bits), packed(of(scales), bits)
        else:
            least = ml_dtypes.iinfo(kind).min
            table, zero = ((of(s).astype(I8) + least).astype(kind) for s in (shape, scales))
        inputs = [table, indices, np.abs(r.floats(*scales)).astype(dtype) + dtype(0.1), *([zero] if points else [])]
        return f"gather-{name}", "GatherBlockQuantized", inputs, attributes, {"fixed": [k for k in range(len(inputs)) if k != 1]}

    for points in (False, True):
        yield case(f"int4-{points}", ml_dtypes.int4, (6, 64), i, points, block_size=16)
        yield case(f"uint4-{points}", ml_dtypes.uint4, (6, 64), i, points, block_size=32)
        yield case(f"odd-{points}", ml_dtypes.int4, (6, 37), i, points, block_size=16)
        yield case(f"columns-{points}", ml_dtypes.int4, (40, 7), j, points, block_size=16, gather_axis=1, quantize_axis=0)
        yield case(f"middle-{points}", ml_dtypes.uint4, (3, 4, 34), i % 4, points, block_size=16, gather_axis=1, quantize_axis=-1)
        yield case(f"before-{points}", ml_dtypes.int4, (33, 6, 4), i, points, block_size=16, gather_axis=1, quantize_axis=0)
        for bits in (2, 4, 8):
            yield case(f"bytes-{bits}-{points}", U8, (6, 80), i, points, block_size=16, bits=bits)
        yield case(f"three-{points}", U8, (6, 2, 48), j, points, block_size=32, quantize_axis=2)
    yield case("half", ml_dtypes.int4, (6, 64), np.array(2, I64), True, np.float16, block_size=16)


def quantized():
    r = Random()
    a, b, u, v = F32(0.05), F32(0.03), U8(120), U8(130)
    x, y = r.integers(U8, 2, 6, 9, 9), r.integers(U8, 2, 6, 9, 9)
    s, t = r.integers(I8, 2, 6, 9, 9), I8(-3)
    yield "add", "QLinearAdd", [x, a, u, y, b, v, F32(0.07), U8(100)], {}, {}
    yield "add-signed", "QLinearAdd", [s, a, t, s, b, I8(7), F32(0.07), I8(0)], {}, {}
    yield "mul", "QLinearMul", [x, a, u, y[:1, :, :1], b, v, F32(0.1), U8(100)], {}, {}
    yield "sigmoid", "QLinearSigmoid", [x, a, u, F32(1 / 256), U8(0)], {}, {}
    yield "leaky-relu", "QLinearLeakyRelu", [x, a, u, F32(0.04), U8(30)], {"alpha": 0.1}, {}
    yield "softmax", "QLinearSoftmax", [x, a, u, F32(1 / 256), U8(0)], {"axis": -1, "opset": 13}, {"fixed": range(1, 5)}
    yield "softmax-flat", "QLinearSoftmax", [x[:, :1, :3, :3], a, u, F32(1 / 256), U8(0)], {"axis": 2, "opset": 11}, {"fixed": range(1, 5)}
    yield "average-pool", "QLinearAveragePool", [x, a, u, F32(0.047), v], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, {}
    yield "average-pool-last", "QLinearAveragePool", [x, a, u, F32(0.047), v], {"kernel_shape": [2, 3], "channels_last": 1}, {}
    yield "global-pool", "QLinearGlobalAveragePool", [x, a, u, F32(0.01), v], {}, {}
    yield "concat", "QLinearConcat", [F32(0.06), U8(110), x, a, u, y, b, v], {"axis": 1}, {}
    yield "where", "QLinearWhere", [x > 100, x, a, u, y, b, v, F32(0.06), U8(110)], {}, {"fixed": range(2, 0)}
    m, w = r.integers(U8, 3, 7, 16), r.weights(16, 10)
    columns = np.abs(r.floats(10)) * F32(0.02)
    yield "integer-to-float", "MatMulIntegerToFloat", [m, w, a, columns, u, r.integers(I8, 10), r.floats(10)], {}, {}
    yield "integer-to-float-plain", "MatMulIntegerToFloat", [m, w, a, b], {}, {}
    yield "dynamic", "DynamicQuantizeMatMul", [r.floats(3, 7, 16), w, columns, I8(np.zeros(10)), r.floats(10)], {}, {}
    yield "dynamic-zeros", "DynamicQuantizeMatMul", [np.zeros((3, 16), F32), w, b], {}, {}
    row, column = np.ascontiguousarray(m[0, 0]), np.ascontiguousarray(w[:, 0])
    for name, left, right in [("row", row, w), ("column", m, column), ("dot", row, column), ("rows", row, r.weights(2, 16, 10))]:
        yield f"linear-{name}", "QLinearMatMul", [left, a, u, right, b, I8(4), F32(0.5), U8(90)], {}, {"fixed": range(3, 8), "domain": ""}
        yield f"integer-to-float-{name}", "MatMulIntegerToFloat", [left, right, a, b, u, I8(4)], {}, {}
    yield "dynamic-row", "DynamicQuantizeMatMul", [r.floats(16), w, columns, I8(np.zeros(10)), r.floats(10)], {}, {}
    gemm = [m[0], a, u, w, b, I8(4), r.rng.integers(-900, 900, 10, I32)]
    yield "gemm", "QGemm", [*gemm, F32(0.5), U8(90)], {"alpha": 0.5}, {"fixed": range(3, 9)}
    yield "gemm-float", "QGemm", [m[0], a, u, np.ascontiguousarray(w.T), columns, I8(np.zeros(10)), gemm[6]], {"transB": 1}, {"fixed": range(3, 7)}
    conv = [x, a, u, r.weights(8, 3, 3, 3), np.abs(r.floats(8)) * F32(0.02), I8(np.zeros(8)), F32(0.9), U8(128)]
    bias = r.rng.integers(-900, 900, 8, I32)
    window = {"group": 2, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]}
    yield "conv", "QLinearConv", [*conv, bias], window, {"fixed": range(1, 9), "domain": ""}
    yield "conv-plain", "QLinearConv", [*conv[:4], b, I8(0), *conv[6:]], {"group": 2}, {"fixed": range(1, 8), "domain": ""}


def attentions():
    r = Random()
    batch, length, heads, depth = 2, 6, 4, 16
    width = heads * depth
    x, w, bias = r.floats(batch, length, width), r.floats(width, 3 * width, scale=0.3), r.floats(3 * width)
    mask = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], I32)
    whole = {"num_heads": heads}
    yield "attention", "Attention", [x, w, bias], whole, {}
    yield "attention-mask", "Attention", [x, w, bias, mask], whole, {}
    yield "attention-lengths", "Attention", [x, w, bias, np.array([4, 6], I32)], whole, {}
    yield "attention-ends", "Attention", [x, w, bias, np.array([4, 6, 1, 2], I32)], whole, {}
    yield "attention-rows", "Attention", [x, w, bias, np.tril(np.ones((2, length, length), I32))], whole, {}
    yield "attention-causal", "Attention", [x, w, bias, mask], {**whole, "unidirectional": 1, "scale": 0.2}, {}
    yield "attention-bias", "Attention", [x, w, bias, None, None, r.floats(1, heads, length, length)], whole, {}
    narrow = r.floats(width, 2 * width + 16, scale=0.3)
    yield "attention-widths", "Attention", [x, narrow, r.floats(2 * width + 16)], {**whole, "qkv_hidden_sizes": [width, width, 16]}, {}
    past = r.floats(2, batch, heads, 3, depth)
    yield "attention-past", "Attention", [x, w, bias, None, past], {**whole, "unidirectional": 1}, {"outputs": 2}
    quantized = [r.integers(U8, batch, length, width), r.weights(width, 3 * width), bias, F32(0.02), F32(0.01)]
    yield "q-attention", "QAttention", [*quantized, np.array([4, 6], I32), U8(128), I8(0)], whole, {"fixed": range(1, 5)}
    q, k, v = r.floats(batch, length, width), r.floats(batch, 5, width), r.floats(batch, 5, width)
    yield "heads", "MultiHeadAttention", [q, k, v], whole, {}
    yield "heads-bias", "MultiHeadAttention", [q, k, v, bias, mask[:, 1:]], whole, {}
    yield "heads-rows", "MultiHeadAttention", [q, k, v, None, None, r.floats(1, 1, length, 5)], {**whole, "scale": 0.5}, {}
    yield "heads-causal", "MultiHeadAttention", [q, q, q], {**whole, "unidirectional": 1}, {}
    split = r.floats(batch, heads, 5, depth), r.floats(batch, heads, 5, depth)
    yield "heads-split", "MultiHeadAttention", [q, *split], whole, {}
    yield "heads-past", "MultiHeadAttention", [q, q, q, None, None, None, *split], whole, {"outputs": 3}
    total = [np.full(batch, length - 1, I32), np.array(length, I32)]
    keys, values = r.floats(batch, length, 2 * depth), r.floats(batch, length, 2 * depth)
    groups = {"num_heads": heads, "kv_num_heads": 2}
    angles = r.floats(10, depth // 2), r.floats(10, depth // 2)
    plain = [q, keys, values, None, None, *total]
    yield "groups", "GroupQueryAttention", plain, groups, {"outputs": 3}
    yield "groups-window", "GroupQueryAttention", plain, {**groups, "local_window_size": 3}, {"outputs": 3}
    yield "groups-rotary", "GroupQueryAttention", [*plain, *angles], {**groups, "do_rotary": 1}, {"outputs": 3}
    together = np.concatenate([q, keys, values], -1)
    yield "groups-packed", "GroupQueryAttention", [together, None, None, None, None, *total, *angles], {
        **groups, "do_rotary": 1, "rotary_interleaved": 1}, {"outputs": 3}  # fmt: skip
    yield "groups-cap", "GroupQueryAttention", [*plain, *angles], {**groups, "softcap": 1.5, "do_rotary": 1, "local_window_size": 2}, {"outputs": 3}
    yield "groups-smooth", "GroupQueryAttention", plain, {**groups, "smooth_softmax": 1}, {"outputs": 3}
    yield "groups-sink", "GroupQueryAttention", [*plain, *[None] * 4, r.floats(heads)], groups, {"outputs": 3}
    cached = r.floats(batch, 2, 5, depth), r.floats(batch, 2, 5, depth)
    one, ends = [q[:, :1], keys[:, :1], values[:, :1]], np.array([3, 5], I32)
    yield "groups-past", "GroupQueryAttention", [*one, *cached, ends, np.array(6, I32)], groups, {"outputs": 3, "fixed": [6]}
    yield "groups-past-cap", "GroupQueryAttention", [*one, *cached, ends, np.array(6, I32), *angles], {
        **groups, "do_rotary": 1, "softcap": 0.7, "local_window_size": 3}, {"outputs": 3, "fixed": [6]}  # fmt: skip
    yield "groups-past-bias", "GroupQueryAttention", [*one, *cached, ends, np.array(6, I32), *angles, np.array([[7], [2]], I64), r.floats(1, heads, 1, 6)], {
        **groups, "do_rotary": 1, "softcap": 0.7}, {"outputs": 3, "fixed": [6]}  # fmt: skip
    yield "groups-past-many", "GroupQueryAttention", [q[:1], keys[:1], values[:1], *(c[:1] for c in cached), np.array([10], I32), np.array(11, I32)], {
        **groups, "local_window_size": 7}, {"outputs": 3, "fixed": [6]}  # fmt: skip
    room = r.floats(batch, 2, 9, depth), r.floats(batch, 2, 9, depth)
    yield "groups-past-room", "GroupQueryAttention", [*one, *room, ends, np.array(6, I32), *angles], {**groups, "do_rotary": 1}, {"outputs": 3, "fixed": [6]}
    yield "groups-past-prompt", "GroupQueryAttention", [q, keys, values, *room, np.array([3, 5], I32), np.array(6, I32), *angles], {
        **groups, "do_rotary": 1}, {"outputs": 3, "fixed": [6], "wanted": [1, 2]}  # fmt: skip
    yield "groups-past-data", "GroupQueryAttention", [*one, *cached, ends, np.array(6, I32)], groups, {"outputs": 3}
    places = r.rng.integers(0, 10, (batch, length), I64)
    yield "rotary", "RotaryEmbedding", [q, places, *angles], {}, {}
    yield "rotary-pairs", "RotaryEmbedding", [q, np.array([3], I64), *angles], {"interleaved": 1}, {}
    yield "rotary-heads", "RotaryEmbedding", [r.floats(batch, heads, length, depth), places, *angles], {}, {}
    part = [a[:, :2] for a in angles]
    yield "rotary-part", "RotaryEmbedding", [q, places, *part], {"num_heads": heads, "rotary_embedding_dim": 4}, {}


FAMILIES = (normalizations, elementwise, products, quantized_weights, narrow_weights, gathered_blocks, quantized, attentions)
CASES = {case[0]: case[1:] for family in FAMILIES for case in family()}


@pytest.mark.parametrize("name", CASES)
def test_beside_onnx_runtime(tmp_path, name):
    op, inputs, attributes, options = CASES[name]
    wanted = options.pop("wanted", None) if options else None
    compare(tmp_path, make(op, inputs, attributes, **options), inputs, wanted)


@pytest.mark.parametrize("columns", [False, True], ids=["whole", "columns"])
@pytest.mark.parametrize("direction, operands", [("forward", False), ("reverse", True), ("bidirectional", True)])
def test_lstm_of_bytes(tmp_path, direction, operands, columns):
    """The LSTM of the dequantized weights; ONNX Runtime also makes bytes of inputs and states."""
    r, steps, batch, width, hidden = Random(), 7, 3, 11, 13
    ways, lengths = 1 + (direction == "bidirectional"), np.array([7, 2, 5], I32)
    x, bias = r.floats(steps, batch, width), r.floats(ways, 8 * hidden)
    dtype = U8 if operands else I8
    points = [np.zeros((ways, 4 * hidden) if columns else ways, dtype) + dtype(0 if columns else 120 if operands else 5) for _ in range(2)]
    scales = [(r.rng.uniform(0.5, 1, p.shape) * 3e-3).astype(F32) for p in points]
    bytes_ = [(r.integers if operands else lambda _, *shape: r.weights(*shape))(dtype, ways, n, 4 * hidden) for n in (width, hidden)]
    others = [lengths, r.floats(ways, batch, hidden), r.floats(ways, batch, hidden), r.floats(ways, 3 * hidden)]
    others = others if operands else [None] * 4
    inputs = [x, *bytes_, bias, *others, scales[0], points[0], scales[1], points[1]]
    attributes = {"direction": direction, "hidden_size": hidden}
    fixed = [i for i in range(12) if i in (1, 2, 3) or i > 7]
    model = make("DynamicQuantizeLSTM", inputs, attributes, fixed, 3)
    feeds = {i.name: inputs[int(i.name[1:])] for i in model.graph.input}
    got = ours(tmp_path, model, feeds)
    wide = lambda p: p.reshape(ways, 1, -1)  # noqa: E731
    weights = [((b.astype(F32) - wide(p)) * wide(s)).transpose(0, 2, 1) for b, s, p in zip(bytes_, scales, points)]
    inputs[1:3] = weights
    floats = make("LSTM", inputs[:8], attributes, [i for i in fixed if i < 8], 3, domain="")
    for a, b, c in zip(got, runtimes(floats, feeds), runtimes(model, feeds)):
        np.testing.assert_allclose(a, b, 2e-5, 2e-5)
        assert np.abs(a - c).mean() < 0.02
        np.testing.assert_allclose(a, c, 0, 0.1)


def decoder_layer(depth: int, heads: int, shared: int, attributes: dict):
    """A step of a decoder as onnxruntime-genai writes it: lengths follow from the mask, and its width is the total length."""
    sizes = {"q": ["b", "s", heads * depth], "k": ["b", "s", shared * depth], "v": ["b", "s", shared * depth],
             "past_k": ["b", shared, "p", depth], "past_v": ["b", shared, "p", depth], "mask": ["b", "t"]}  # fmt: skip
    nodes = [
        helper.make_node("ReduceSum", ["mask", "axis"], ["count"], keepdims=0),
        helper.make_node("Sub", ["count", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["ends"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "column"], ["width"]),
        helper.make_node("Cast", ["width"], ["total"], to=TensorProto.INT32),
        helper.make_node("GroupQueryAttention", ["q", "k", "v", "past_k", "past_v", "ends", "total", "cos", "sin"], ["y", "now_k", "now_v"],
                         domain="com.microsoft", num_heads=heads, kv_num_heads=shared, do_rotary=1, **attributes),
    ]  # fmt: skip
    r = Random()
    tables = {"cos": r.floats(64, depth // 2), "sin": r.floats(64, depth // 2), "axis": np.array([1]), "one": np.array([1]), "column": np.array(1)}
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(n, TensorProto.INT64 if n == "mask" else TensorProto.FLOAT, s) for n, s in sizes.items()],
        [helper.make_empty_tensor_value_info(o) for o in ("y", "now_k", "now_v")],
        [onnx.numpy_helper.from_array(v, n) for n, v in tables.items()],
    )  # fmt: skip
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


@pytest.mark.parametrize("room", [None, 16], ids=["grows", "room"])
@pytest.mark.parametrize("attributes", [{}, {"local_window_size": 4, "softcap": 3.0}], ids=["plain", "window"])
def test_open_past(tmp_path, attributes, room):
    """One engine at several lengths, where the past grows and where it has room for what comes."""
    depth, heads, shared = 16, 6, 2
    model = decoder_layer(depth, heads, shared, attributes)
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    onnx.save(model, path)
    extra = [f"--shape=past_k=?x?x{room}x?", f"--shape=past_v=?x?x{room}x?", f"--shape=mask=?x1..8..{room}"] if room else []
    harness.compile_model(path, engine, extra=extra)
    r = Random()
    for batch, past, queries, lengths in (1, 5, 1, [6]), (3, 7, 1, [8, 3, 1]), (1, 9, 4, [13]), (2, 1, 1, [2, 1]), (1, 4, 9, [13]), (2, 0, 5, [5, 3]):
        total, holds = past + queries, room or past
        if not holds:
            continue
        mask = (np.arange(total) < np.array(lengths)[:, None]).astype(I64)
        widths = {"q": heads, "k": shared, "v": shared}
        feeds = {n: r.floats(batch, queries, w * depth) for n, w in widths.items()}
        feeds |= {n: r.floats(batch, shared, holds, depth) for n in ("past_k", "past_v")} | {"mask": mask}
        got = harness.run_engine(engine, feeds, ["y", "now_k", "now_v"], tmp_path)
        for i, (a, b) in enumerate(zip(got, runtimes(model, feeds))):
            assert a.shape == b.shape
            for row, end in enumerate(lengths if i == 0 else [None] * batch):
                np.testing.assert_allclose(a[row, :end], b[row, :end], 2e-5, 2e-5)


@pytest.mark.parametrize(
    "op, inputs, attributes, words",
    [
        ("BeamSearch", 5, {}, "operator com.microsoft.BeamSearch is not supported: it is ONNX Runtime's own"),
        ("QMoE", 5, {}, "operator com.microsoft.QMoE is not supported: it is ONNX Runtime's own"),
        ("GatherBlockQuantized", 0, {"gather_axis": 1}, "gathers along axis 1 what is in blocks along axis 1, which is not supported"),
        ("FusedGemm", 2, {"activation": "HardSigmoid", "activation_beta": 0.1}, "has attribute 'activation_beta', but no 'activation_alpha'"),
        ("FusedGemm", 2, {"activation": "Warp"}, "attribute 'activation' = 'Warp' with 0 parameters is not supported"),
        ("MatMulNBits", 0, {"bits": 3}, "attribute 'bits' = 3 is not supported"),
        ("Attention", 3, {"num_heads": 4, "do_rotary": 1}, "attribute 'do_rotary' = 1 is not supported"),
        ("GroupQueryAttention", 3, {"causal": 0}, "attribute 'causal' = 0 is not supported"),
        ("RotaryEmbedding", 4, {"scale": 2.0}, "attribute 'scale' = 2.000000 is not supported"),
    ],
)
def test_refused(tmp_path, op, inputs, attributes, words):
    known = {c[0]: c for c in reversed(CASES.values())}.get(op)
    if known:
        _, values, given, options = known
        model = make(op, values, {**given, **attributes}, **{k: v for k, v in options.items() if k != "wanted"})
    else:
        model = make(op, [Random().floats(2)] * inputs, attributes)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(harness.CharoniaError) as error:
        harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    assert words in str(error.value)
    assert f"node 'n' (com.microsoft.{op}, opset 1)" in str(error.value)


@pytest.mark.parametrize("total, words", [(7, "a total length of 7 is not supported: it is neither that of the past and the queries, 6, nor always inside of the past"), (None, "the total length is data")])
def test_total_length_of_a_past(tmp_path, total, words):
    """One that fits no form of the cache is refused; of one that is data the user is told what is taken."""
    r = Random()
    past = r.floats(1, 2, 5, 16)
    inputs = [r.floats(1, 1, 64), r.floats(1, 1, 32), r.floats(1, 1, 32), past, past, np.array([5], I32), np.array(total or 6, I32)]
    onnx.save(make("GroupQueryAttention", inputs, {"num_heads": 4, "kv_num_heads": 2}, [6] if total else (), 3), tmp_path / "m.onnx")
    result = harness.invoke("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.engine", "--target", "x86-64-v3")
    assert result.kind == ("refused" if total else "ok")
    assert words in result.stderr


def test_gathered_table_stays_packed(tmp_path):
    """A table of 4 bits takes no more in an engine, and no kernel makes all of it floats."""
    r, rows, width, block = Random(), 500, 64, 32
    table = r.rng.integers(-8, 8, (rows, width)).astype(ml_dtypes.int4)
    inputs = [table, np.array([[7, 499]], I64), np.abs(r.floats(rows, width // block)) + F32(0.1)]
    onnx.save(make("GatherBlockQuantized", inputs, {"block_size": block}, (0, 2)), tmp_path / "m.onnx")
    harness.compile_model(tmp_path / "m.onnx", tmp_path / "m.engine")
    text = harness.invoke("inspect", tmp_path / "m.engine").stdout
    number, unit = text.split("weights ")[1].split(",")[0].split()
    assert float(number) * {"B": 1, "kB": 1e3}[unit] <= rows * (width / 2 + 4 * width / block) + 512


def test_remedies_speak_of_who_wrote_the_operator(tmp_path):
    for op, words in ("QMoE", "quantize without it"), ("BeamSearch", "save the model without ONNX Runtime's optimizations"):
        onnx.save(make(op, [Random().floats(2)], {}), tmp_path / "m.onnx")
        result = harness.invoke("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.engine")
        assert f"remedy: {words}" in result.stderr
